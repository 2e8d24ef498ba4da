"""``export``: everything that is kept of this project, as a folder or a zip file of one's own."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ipymemory import dream_journal, dream_state
from ipymemory.commands.amounts import counted, size
from ipymemory.commands.memories import one
from ipymemory.commands.pages import Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError, PlaceError
from ipymemory.turns import new_id

_OF_DREAMS = frozenset({dream_state.STATE, dream_state.ASKED})
"""What is copied of a dream's folder: counts, and hashes of what was asked."""


def _export(place: Place, arguments: Arguments) -> Page:
    source = place.project.folder
    target = Path(arguments["path"]).expanduser().absolute()
    if not source.is_dir():
        raise CommandError(f"There is nothing to export yet of the project {place.project.root}.")
    if target.exists():
        raise CommandError(f"{target} is there already. Name a new folder or a new .zip file.")
    if target.resolve().is_relative_to(place.home.resolve()):
        raise CommandError(
            f"{target} lies in the memory itself. Name a place outside {place.home}."
        )
    temporary = target.with_name(f".{target.name}-{new_id()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = _zip if target.suffix.lower() == ".zip" else _copy
        count, total = copy(source, temporary)
        temporary.replace(target)
    except OSError as error:
        _remove(temporary)
        raise PlaceError(
            f"The export to {target} failed: {error.strerror or error}. Nothing was left there; "
            "make room or name another place."
        ) from error
    return Page(
        f"Exported to {one(str(target))}: {counted(count, 'file')}, {size(total)}. It holds "
        "transcripts and notes with secrets masked; look through it before you give it away."
        f"{_half(place)}",
        {"path": str(target), "files": count, "bytes": total},
    )


def _half(place: Place) -> str:
    if not dream_journal.waits(place.project.folder / dream_state.FOLDER):
        return ""
    return (
        " A dream was cut short while it wrote, so some memories are as before it and some as "
        f"after; {place.prefix}dream --now puts that right, then export again."
    )


def _files(source: Path) -> Iterator[Path]:
    """Yield every file of `source` but locks and temporary files, whose names begin with a dot.

    Neither a dream's working copies and journal: they say again, as it stands in the files of
    another moment, what the memories say.
    """
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source).parts
        if inside[0] == dream_state.FOLDER and path.name not in _OF_DREAMS:
            continue
        if path.is_file() and not path.is_symlink() and not any(p.startswith(".") for p in inside):
            yield path


def _copy(source: Path, target: Path) -> tuple[int, int]:
    """Copy into the new folder `target`; return how many files and bytes."""
    target.mkdir(mode=0o700)
    count = total = 0
    for path in _files(source):
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copy2(path, to)
        count, total = count + 1, total + to.stat().st_size
    return count, total


def _zip(source: Path, target: Path) -> tuple[int, int]:
    """Pack into the new file `target`; return how many files and bytes went in."""
    count = total = 0
    descriptor = os.open(
        target, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
    )
    with (
        os.fdopen(descriptor, "w+b") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive,
    ):
        for path in _files(source):
            archive.write(path, Path(source.name) / path.relative_to(source))
            count, total = count + 1, total + path.stat().st_size
    return count, total


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


EXPORT = Command(
    "export",
    "copy all that is kept of this project to a folder or .zip",
    _export,
    (Argument("PATH", "a new folder, or a new file that ends in .zip", required=True),),
)
