"""What ``doctor`` finds in the memory folder: files nobody can read, an index that is behind.

The index is derived from the files and a person's own lines, so one that is behind is rebuilt on
the spot, in every mode: no memory changes by it. In a shared folder it is only said.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipymemory.commands.amounts import counted
from ipymemory.commands.place import Place
from ipymemory.errors import IpymemoryError
from ipymemory.memory_files import MemoryFolder, opened
from ipymemory.memory_files import index as lines
from ipymemory.memory_files.values import one_line
from ipymemory.redaction import mask_with_marks


def findings(place: Place) -> Iterator[tuple[str, str]]:
    """Yield what was found and what to do about it, a sentence or two each."""
    try:
        folder = opened(place.project, place.settings)
        if folder.refusal:
            yield f"No memory can be written. {folder.refusal}", "Memories are read meanwhile."
        yield from _files(place, folder)
        yield from _index(place, folder)
    except IpymemoryError as error:
        what, _, to_do = str(error).partition(". ")
        yield f"{what}.", to_do or "Look at the file."


def _files(place: Place, folder: MemoryFolder) -> Iterator[tuple[str, str]]:
    for each in folder.scan():
        if each.problem:
            yield (
                f"The memory {each.path} is shown by its name only. {each.problem}",
                "Mend it in an editor; it is left as it is until then.",
            )
        text = "\n".join((each.title, each.description, each.body))
        _, marks = mask_with_marks(text)
        if marks:
            yield (
                f"The memory {each.path} holds what looks like a secret ({marks[0].rule}).",
                f"Take it out in an editor, or type {place.prefix}forget {one_line(each.name, 80)}",
            )


def _index(place: Place, folder: MemoryFolder) -> Iterator[tuple[str, str]]:
    pages = folder.pages()
    every = {each.file for each in folder.scan()}
    missing, behind = every - lines.listed(pages), bool(folder.drift())
    if behind and not folder.shared:
        folder.mend()
        what = f"{counted(len(missing), 'memory', 'memories')} had no line in it"
        yield (
            f"The index {folder.folder / 'MEMORY.md'} was behind its files: "
            f"{what if missing else 'some lines were old'}.",
            "It was rebuilt; there is nothing to do.",
        )
        pages = folder.pages()
    elif missing:
        yield (
            f"{counted(len(missing), 'memory', 'memories')} of {folder.folder} have no line in "
            "its index.",
            "The next write that you confirm adds them.",
        )
    for each in lines.dangling(pages, every):
        yield (
            f"A line of {folder.folder / 'MEMORY.md'} leads to no file: {one_line(each, 120)}",
            "If it is not wanted, take it out in an editor.",
        )
    if pages and lines.too_long(pages[0]):
        yield (
            f"{folder.folder / 'MEMORY.md'} is longer than {lines.MOST_LINES} lines or "
            f"{lines.MOST_BYTES // 1000} KB by lines that somebody else wrote.",
            "Make it shorter in an editor: programs read no more of it than that.",
        )
