"""The transcript of a session: JSON Lines, only ever appended to, written by the kernel alone.

A cell is a few lines with one id: ``cell`` before it runs, ``end`` when it ended, ``outputs``
when they are masked (formats.md). One ``write`` a line on a descriptor opened for appending:
what was written survives the kernel, whatever kills it, and a line torn by a full disk or a
kill is skipped by the reader and never repaired in place.

`TranscriptWriter` is on the path of every cell and does no more than it must. `Transcript`
reads what came since it last looked and folds the lines into entries.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from ipymemory.errors import IpymemoryError, TranscriptError
from ipymemory.files import make_folder
from ipymemory.places import SessionFolder
from ipymemory.turns import (
    BoundName,
    CellError,
    Entry,
    Happening,
    Origin,
    Output,
    OutputKind,
    Prose,
    Status,
    Turn,
    utc_now,
)

VERSION = 1
MOST_LINE = 64 * 1024
"""Bytes of one line, its line feed included (formats.md)."""

_TAIL = 512 * 1024
"""Bytes from the end in which the cell that was running is looked for: eight longest lines."""

_CUTS = (16_000, 8_000, 4_000, 1_000, 200, 40)
"""Characters kept of a text in a line that would be too long, tried one after another."""

_MARK = "\n… [cut] …\n"

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


class TranscriptWriter:
    """Appends to the transcript of one session; the file begins with the first line.

    May be called from several threads. In a child that was forked it refuses to write: the
    transcript belongs to the parent.
    """

    def __init__(self, folder: SessionFolder, session_id: str) -> None:
        self._path = folder.transcript
        self._session = session_id
        self._descriptor = -1
        self._torn = False
        self._pid = os.getpid()

    def append(self, line: Mapping[str, Any]) -> None:
        """Append one line; when this returns it survives the process. Raises `TranscriptError`."""
        if os.getpid() != self._pid:
            raise TranscriptError("A forked process does not write its parent's transcript.")
        data = _encode(line).encode("utf-8", "backslashreplace") + b"\n"
        if len(data) > MOST_LINE:
            data = _shortened(line)
        if self._descriptor < 0:
            self._open()
        if self._torn:
            data = b"\n" + data
        try:
            written = os.write(self._descriptor, data)
        except OSError as error:
            raise self._refused(error) from error
        # A disk that fills up takes a part. The next line then begins with a line feed.
        self._torn = written != len(data)
        if self._torn:
            raise self._refused(OSError(28, "the disk is full"))

    def close(self) -> None:
        """Let the file go; a later line opens it again. Does nothing in a forked child."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0 and os.getpid() == self._pid:
            os.close(descriptor)

    def _open(self) -> None:
        try:
            make_folder(self._path.parent)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            descriptor = os.open(self._path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise self._refused(error) from error
        except IpymemoryError as error:
            raise TranscriptError(str(error)) from error
        try:
            self._begin(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _begin(self, descriptor: int) -> None:
        try:
            size = os.fstat(descriptor).st_size
            if not size:
                head = {
                    "type": "session", "version": VERSION, "id": self._session, "time": utc_now(),
                }  # fmt: skip
                os.write(descriptor, _encode(head).encode() + b"\n")
                return
            os.lseek(descriptor, size - 1, os.SEEK_SET)
            self._torn = os.read(descriptor, 1) != b"\n"
            os.lseek(descriptor, 0, os.SEEK_SET)
            first = _object(os.read(descriptor, 4096).split(b"\n", 1)[0]) or {}
        except OSError as error:
            raise self._refused(error) from error
        version = first.get("version", VERSION)
        if isinstance(version, int) and version > VERSION:
            raise TranscriptError(
                f"{self._path} was written by a newer ipymemory and is only read here. Upgrade "
                "with: pip install --upgrade ipymemory"
            )

    def _refused(self, error: OSError) -> TranscriptError:
        return TranscriptError(
            f"Nothing is recorded: {self._path} cannot be written ({error.strerror or error}). "
            "Free some space or mend the permissions; recording then goes on by itself."
        )


class Transcript:
    """Reads a transcript: `entries` in the order in which they began, as far as `follow` got."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.offset = 0
        """Bytes read and understood."""
        self.torn = 0
        """Lines that could not be understood."""
        self.generation = 0
        """The newest kernel that wrote here."""
        self._places: dict[str, int] = {}

    @property
    def busy(self) -> bool:
        """Whether a cell of the newest kernel has no end on record."""
        for each in reversed(self.entries):
            if isinstance(each, Turn) and each.origin != "history":
                return each.status == "running"
        return False

    def follow(self) -> list[str]:
        """Read what is new; return the ids of entries that are new or changed, in order.

        A last line without its line feed is waited for. A file that is shorter than it was is
        read anew. Raises `TranscriptError` when there is a file that cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self.offset:
                    self._forget()
                file.seek(self.offset)
                data = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TranscriptError(
                f"{self.path} cannot be read: {error.strerror or error}. Mend its permissions."
            ) from error
        end = data.rfind(b"\n") + 1
        self.offset += end
        changed: dict[str, None] = {}
        for line in data[:end].split(b"\n"):
            if line:
                changed.update(dict.fromkeys(self._take(line)))
        return list(changed)

    def _forget(self) -> None:
        self.entries, self._places = [], {}
        self.offset = self.torn = self.generation = 0

    def _take(self, line: bytes) -> list[str]:
        """Fold one line into the entries; return the ids it changed."""
        value = _object(line)
        kind = value.get("type") if value else None
        if value is None or not isinstance(kind, str):
            self.torn += 1
            return []
        if kind in ("session", "ask", "ask_end"):
            return []
        id = value.get("id")
        if not isinstance(id, str) or not id:
            self.torn += 1
            return []
        changed = self._new_generation(value)
        if kind in _BEGINS:
            self._put(id, _BEGINS[kind](id, value))
            return [*changed, id]
        turn = self._turn(id)
        if turn is not None and kind == "end":
            self._put(id, _ended(turn, value))
        elif turn is not None and kind == "outputs":
            self._put(id, _with_outputs(turn, value))
        else:
            self.torn += 1
            return changed
        return [*changed, id]

    def _new_generation(self, value: Mapping[str, Any]) -> list[str]:
        """Close what an earlier kernel left running; nobody knows how it ended."""
        kernel = value.get("kernel")
        if not isinstance(kernel, int) or kernel <= self.generation:
            return []
        self.generation = kernel
        left = [
            each
            for each in self.entries
            if isinstance(each, Turn) and (each.status == "running" or not each.complete)
        ]
        for each in left:
            status: Status = "unknown" if each.status == "running" else each.status
            self._put(each.id, replace(each, status=status, complete=True))
        return [each.id for each in left]

    def _turn(self, id: str) -> Turn | None:
        place = self._places.get(id)
        found = self.entries[place] if place is not None else None
        return found if isinstance(found, Turn) else None

    def _put(self, id: str, entry: Entry) -> None:
        place = self._places.get(id)
        if place is None:
            self._places[id] = len(self.entries)
            self.entries.append(entry)
        else:
            self.entries[place] = entry


def last_running(path: Path) -> Turn | None:
    """Return the cell of the newest kernel that has no end: it ran when that kernel died.

    Reads only the end of the file, whatever its length. None when there is no such cell, or
    the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            found = file.read().split(b"\n")
    except OSError:
        return None
    ended: set[str] = set()
    for line in reversed(found):
        value = _object(line)
        if not value:
            continue
        kind, id = value.get("type"), str(value.get("id"))
        if kind == "end":
            ended.add(id)
        elif kind == "cell" and value.get("origin") != "history":
            return None if id in ended else _cell(id, value)
    return None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _cell(id: str, value: Mapping[str, Any]) -> Turn:
    history = value.get("origin") == "history"
    return Turn(
        id=id,
        time=_text(value, "time"),
        source=_text(value, "source"),
        kernel=_number(value, "kernel") or 1,
        cell_id=_text(value, "cell_id") or None,
        execution_count=_number(value, "execution_count"),
        status="unknown" if history else "running",
        origin=_origin(value, "typed"),
        complete=history,
    )


def _markdown(id: str, value: Mapping[str, Any]) -> Prose:
    return Prose(
        id=id,
        time=_text(value, "time"),
        source=_text(value, "source"),
        cell_id=_text(value, "cell_id") or None,
        origin=_origin(value, "file"),
        position=_number(value, "position"),
    )


def _event(id: str, value: Mapping[str, Any]) -> Happening:
    details = {k: v for k, v in value.items() if k not in ("type", "id", "time", "name")}
    return Happening(id, _text(value, "time"), _text(value, "name"), details)


_BEGINS: dict[str, Callable[[str, Mapping[str, Any]], Entry]] = {
    "cell": _cell,
    "markdown": _markdown,
    "event": _event,
}
"""The lines that begin an entry, and what makes one of each."""


def _ended(turn: Turn, value: Mapping[str, Any]) -> Turn:
    status = value.get("status")
    duration = value.get("duration_ms")
    name = _text(value, "error")
    count = _number(value, "execution_count")
    return replace(
        turn,
        status=cast(Status, status) if status in get_args(Status) else "unknown",
        duration_ms=float(duration) if isinstance(duration, int | float) else None,
        execution_count=count if count is not None else turn.execution_count,
        error=turn.error or (CellError(name) if name else None),
    )


def _with_outputs(turn: Turn, value: Mapping[str, Any]) -> Turn:
    outputs = tuple(
        Output(
            kind=cast(OutputKind, each["kind"]),
            text=_text(each, "text"),
            mime=tuple(str(mime) for mime in _list(each, "mime")),
            truncated=_number(each, "truncated") or 0,
        )
        for each in _list(value, "outputs")
        if isinstance(each, dict) and each.get("kind") in get_args(OutputKind)
    )
    names = tuple(
        BoundName(
            name=_text(each, "name"),
            type=_text(each, "type"),
            shape=_text(each, "shape"),
            columns=tuple(str(column) for column in _list(each, "columns")),
        )
        for each in _list(value, "names")
        if isinstance(each, dict)
    )
    error = value.get("error")
    told = turn.error
    if isinstance(error, dict):
        told = CellError(_text(error, "name"), _text(error, "value"), _text(error, "traceback"))
    return replace(
        turn,
        outputs=turn.outputs + outputs,
        names=turn.names + names,
        error=told,
        complete=True,
    )


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _number(value: Mapping[str, Any], name: str) -> int | None:
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []


def _origin(value: Mapping[str, Any], otherwise: Origin) -> Origin:
    found = value.get("origin")
    return cast(Origin, found) if found in get_args(Origin) else otherwise


def _shortened(line: Mapping[str, Any]) -> bytes:
    """Return `line` with its long texts and lists cut until it fits into `MOST_LINE`."""
    data = b""
    for most in _CUTS:
        data = _encode(_cut(line, most)).encode("utf-8", "backslashreplace") + b"\n"
        if len(data) <= MOST_LINE:
            return data
    bare = {name: line.get(name) for name in ("type", "id", "time", "kernel") if name in line}
    return _encode(_cut(bare, _CUTS[-1])).encode("utf-8", "backslashreplace") + b"\n"


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        if len(value) <= most:
            return value
        return f"{value[: most // 2]}{_MARK}{value[len(value) - most // 2 :]}"
    if isinstance(value, Mapping):
        return {str(key)[:most]: _cut(each, most) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [_cut(each, most) for each in list(value)[:most]]
    return value
