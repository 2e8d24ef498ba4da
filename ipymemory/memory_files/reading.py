"""The memory folder as a reader sees it: scan, manifest, one memory, the index. Writes nothing."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ipymemory.errors import MemoryMissing
from ipymemory.memory_files import drafts, scanning
from ipymemory.memory_files.listing import Listing
from ipymemory.memory_files.values import Draft, Memory, one_line
from ipymemory.memory_place import memory_files
from ipymemory.places import Project
from ipymemory.redaction import mask

State = tuple[int, int, int]
"""Time, size and inode of a file: it is another file, or was written, when one of them differs."""

_Known = dict[str, tuple[State, Memory]]
"""The state of a file when it was read, and the memory in it, by the memory's name."""


class ReadFolder:
    """The memories in `folder`, read as far as they changed each time they are asked for."""

    def __init__(self, folder: Path, project: Project) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.project = project
        self._listing = Listing(self.folder, project)
        self._known: _Known = {}
        self._sorted: tuple[Memory, ...] = ()
        self._said: dict[str, tuple[Memory, tuple[str, str]]] = {}

    def scan(self) -> tuple[Memory, ...]:
        """Return every memory, newest first; a file that did not change is not read again."""
        found: _Known = {}
        known, same = self._known, True
        skip = len(str(self.folder)) + 1
        for entry in memory_files(self.folder):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone meanwhile
            name = entry.path[skip:-3].replace(os.sep, "/")
            state = (status.st_mtime_ns, status.st_size, status.st_ino)
            before = known.get(name)
            if before is not None and before[0] == state:
                found[name] = before
            else:
                same = False
                found[name] = (state, scanning.scanned(Path(entry.path), name, status))
        if not same or len(found) != len(known):
            self._known = found
            self._sort()
        return self._sorted

    def _look_again(self, name: str) -> tuple[Memory, ...]:
        """Return the last scan with one file looked at again, which was just written or removed."""
        path = self._path(name)
        self._known = {**self._known}
        self._known.pop(name, None)
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            state = (status.st_mtime_ns, status.st_size, status.st_ino)
            self._known[name] = (state, scanning.scanned(path, name, status))
        self._sort()
        return self._sorted

    def _sort(self) -> None:
        self._sorted = tuple(
            sorted(
                (memory for _, memory in self._known.values()),
                key=lambda each: (each.modified, each.name),
                reverse=True,
            )
        )

    def states(self) -> dict[str, State]:
        """Return time, size and inode of each file by the memory's name; reads none of them."""
        found = {}
        skip = len(str(self.folder)) + 1
        for entry in memory_files(self.folder):
            with contextlib.suppress(OSError):  # gone meanwhile
                status = entry.stat(follow_symlinks=False)
                name = entry.path[skip:-3].replace(os.sep, "/")
                found[name] = (status.st_mtime_ns, status.st_size, status.st_ino)
        return found

    def manifest(self, most: int = 200) -> str:
        """Return a line for each of the newest `most` memories (behaviour E8)."""
        every = self.scan()
        lines = [_manifest_line(each) for each in every[:most]]
        if len(every) > most:
            lines.append(f"({len(every) - most} older ones are not listed here.)")
        return "\n".join(lines)

    def find(self, name: str) -> Memory:
        """Return the memory that a person means by `name`, as a scan sees it.

        Its name, its file or the name it gives itself, whatever the case and the form of Unicode
        (macOS writes file names apart that people type as one letter); the beginning is enough
        when only one begins so. Raises `MemoryMissing`.
        """
        every = self.scan()
        wanted = drafts.folded_name(name.strip().removesuffix(".md"))
        for each in every:
            if each.name == name:
                return each
        for each in every:
            if wanted in (drafts.folded_name(each.name), drafts.folded_name(each.label)):
                return each
        begun = [
            each for each in every if wanted and drafts.folded_name(each.name).startswith(wanted)
        ]
        if len(begun) == 1:
            return begun[0]
        raise MemoryMissing(_no_memory(one_line(name, 60), [each.name for each in begun or every]))

    def read(self, name: str) -> Memory:
        """Return the memory called `name` with all of its text; raises `MemoryMissing`."""
        found = self.find(name)
        return self._whole(found.path, found.name)

    def read_exactly(self, name: str) -> Memory:
        """Return the memory of exactly this name, from its file and without a scan.

        Raises `MemoryMissing`. `name` must come from a scan or an index of ours.
        """
        return self._whole(self._path(name), name)

    def _path(self, name: str) -> Path:
        parts = f"{name}.md".split("/")
        if not all(parts) or {"..", "."} & set(parts) or "\\" in name or "\0" in name:
            raise MemoryMissing(f"No memory can be called {one_line(name, 60)}.")
        return self.folder / f"{name}.md"

    def _whole(self, path: Path, name: str) -> Memory:
        try:
            status = os.lstat(path)
        except OSError as error:
            raise MemoryMissing(f"The memory {one_line(name)} has just been removed.") from error
        return scanning.whole(path, name, status)

    def index(self) -> str:
        """Return the text of ``MEMORY.md`` as it should read now; writes nothing."""
        pages = self._listing.due(self.scan())
        return pages[0] if pages else ""

    def saying(self, draft: Draft) -> Memory | None:
        """Return the current memory that says what `draft` says, word for word, or None."""
        wanted, known = drafts.said(draft), self._said
        self._said = {}
        found = None
        for each in self.scan():
            before = known.get(each.name)
            said = before[1] if before and before[0] is each else drafts.said(each)
            self._said[each.name] = each, said
            if said == wanted and each.current and not each.problem:
                found = each
        return found

    def drift(self) -> list[str]:
        """Return the pages of the index as they should read where they do not, else nothing."""
        now, due = self._listing.pages(), self._listing.due(self.scan())
        return due if (now or self.scan()) and now != due else []

    def pages(self) -> list[str]:
        """Return the texts of the index's pages as they are on disk."""
        return self._listing.pages()


def _manifest_line(memory: Memory) -> str:
    time = f"{memory.modified[:16].replace('T', ' ')} UTC"
    state = "" if memory.current else " (replaced by another)"
    what = one_line(mask(memory.description), 200) or memory.problem
    return f"- [{one_line(memory.kind, 20) or '?'}] {one_line(memory.file)} ({time}): {what}{state}"


def _no_memory(name: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known[:3]
    if not near:
        return f"There is no memory {name}, and none at all yet."
    return f"There is no memory {name}. Near it: {', '.join(near)}; the command list shows all."
