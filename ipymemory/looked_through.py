"""What a session's extraction keeps on disk beside the cursor; a part of `sessions`.

``opened.json`` holds, for each kernel, what the saved notebook held when that kernel began: the
words of the file, against which a person's are told (behaviour E13). ``extraction.json`` holds
what was looked at, so that a cell that is run again teaches nothing again; ``shown.json`` holds the
same of a model, which looks less often. ``untold.json`` holds what was learned and not told yet
(behaviour E9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ipymemory import sessions
from ipymemory.errors import NotebookError
from ipymemory.files import read_json, write_json
from ipymemory.places import Project, SessionFolder
from ipymemory.session_record import SessionRecord

VERSION = 1

KERNELS = 3
"""Kernels whose notebook is kept: turns of an older one are long looked through."""

MOST_LEFT = 20
"""Sessions, the newest, among which one is looked for whose end nobody looked through."""

MOST = 20_000
"""Cells and texts that are known as looked at, the newest."""


@dataclass(frozen=True, slots=True)
class LookedThrough:
    """What ``extraction.json`` holds. `read` are bytes of the transcript that were looked at.

    `looked_at` is the hash of what a cell last held, by the cell; of a text without a name it is
    the text itself.
    """

    looked_at: Mapping[str, str] = field(default_factory=dict)
    read: int = 0


def opened(folder: SessionFolder) -> dict[int, str | None]:
    """Return what the notebook held by the kernel's generation; None where nobody knows.

    Raises `FormatError`, `PlaceError`.
    """
    told = (read_json(folder.opened) or {}).get("kernels")
    found = told.items() if isinstance(told, dict) else ()
    return {
        int(kernel): words if isinstance(words, str) else None
        for kernel, words in found
        if kernel.isdecimal()
    }


def open_kernel(folder: SessionFolder, record: SessionRecord) -> None:
    """Keep what the notebook holds now as what it held when this kernel began, once a kernel.

    Raises `FormatError`, `PlaceError`.
    """
    known = opened(folder)
    if record.generation in known:
        return
    known[record.generation] = _words(record)
    newest = dict(sorted(known.items())[-KERNELS:])
    write_json(folder.opened, {"version": VERSION, "kernels": newest})


def read(folder: SessionFolder) -> LookedThrough | None:
    """Return what is on record, None where nothing ever was; raises `FormatError`, `PlaceError`."""
    value = read_json(folder.extraction)
    if value is None:
        return None
    size = value.get("read")
    return LookedThrough(_looked_at(value), size if isinstance(size, int) else 0)


def write(folder: SessionFolder, found: LookedThrough) -> None:
    """Put `found` on record; raises `PlaceError`."""
    write_json(
        folder.extraction,
        {
            "version": VERSION,
            "looked_at": dict(list(found.looked_at.items())[-MOST:]),
            "read": found.read,
        },
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """What ``shown.json`` holds: as `LookedThrough`, and `through`, the last entry."""

    looked_at: Mapping[str, str] = field(default_factory=dict)
    through: str = ""


def shown(folder: SessionFolder) -> Shown:
    """Return what a model was shown, as far as is known; raises `FormatError`, `PlaceError`."""
    value = read_json(folder.shown) or {}
    return Shown(_looked_at(value), str(value.get("through") or ""))


def show(folder: SessionFolder, found: Shown) -> None:
    """Put `found` on record; raises `PlaceError`."""
    looked_at = dict(list(found.looked_at.items())[-MOST:])
    write_json(folder.shown, {"version": VERSION, "looked_at": looked_at, "through": found.through})


def untold(folder: SessionFolder) -> list[dict[str, str]]:
    """Return the ``run``, ``name`` and ``words`` of what was learned and not told yet.

    Raises `FormatError`, `PlaceError`.
    """
    found = (read_json(folder.untold) or {}).get("untold")
    keys = ("run", "name", "words")
    return [
        {key: str(each.get(key, "")) for key in keys}
        for each in (found if isinstance(found, list) else ())
        if isinstance(each, dict)
    ]


def tell_later(folder: SessionFolder, found: Sequence[Mapping[str, str]]) -> None:
    """Have `found` wait to be told, and nothing else; raises `PlaceError`."""
    write_json(folder.untold, {"version": VERSION, "untold": list(found)})


def left_behind(project: Project, own: SessionFolder) -> list[SessionFolder]:
    """Return the sessions, of the newest, whose end was not looked through and nobody owns.

    For the next session to do (behaviour E11). One that was never looked at at all, such as one
    of an older version, is none: whose words they were is not known. Raises `IpymemoryError`.
    """
    found = []
    now = datetime.now(UTC)
    had = [each for each in sessions.every(project) if not each[1].of_file]
    for record, folder in had[:MOST_LEFT]:
        if folder.id == own.id or not folder.opened.exists():
            continue
        looked = (read(folder) or LookedThrough()).read
        if not sessions.owned(record, folder, now) and looked < _size(folder.transcript):
            found.append(folder)
    return found


def _looked_at(value: Mapping[str, Any]) -> dict[str, str]:
    told = value.get("looked_at")
    return {str(key): str(each) for key, each in told.items()} if isinstance(told, dict) else {}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _words(record: SessionRecord) -> str | None:
    """Return the words of the session's notebook as it is saved now, none for a terminal."""
    from ipymemory import notebooks  # late: the kernel needs none of it

    if not record.notebook:
        typed = not record.connection or record.connection.startswith("terminal ")
        return "" if typed else None
    try:
        return notebooks.words(Path(record.notebook))
    except (NotebookError, OSError, UnicodeDecodeError):
        return None
