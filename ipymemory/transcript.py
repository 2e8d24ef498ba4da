"""The transcript of a session: JSON Lines, only ever appended to, written by the kernel alone.

A cell is a few lines with one id: ``cell`` before it runs, ``end`` when it ended, ``outputs``
when they are masked (formats.md). One ``write`` a line on a descriptor opened for appending:
what was written survives the kernel, whatever kills it, and a line torn by a full disk or a
kill is skipped by the reader and never repaired in place.

`TranscriptWriter` is on the path of every cell and does no more than it must. `Transcript`
reads what came since it last looked and folds the lines into entries (`entry_lines`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from ipymemory import descriptors
from ipymemory.entry_lines import (
    answered,
    as_line,
    as_object,
    ask,
    cell,
    ended,
    event,
    markdown,
    with_outputs,
)
from ipymemory.errors import IpymemoryError, TranscriptError
from ipymemory.files import make_folder
from ipymemory.places import SessionFolder
from ipymemory.steps import Step, is_open, step_of
from ipymemory.turns import Ask, Entry, Status, Turn, utc_now

VERSION = 1
_HERE = os.SEEK_CUR
LOOK_SECONDS = 0.05
"""Lines that follow each other sooner find the file as the one before did: not purged meanwhile."""

_BLOCK = 1024 * 1024
"""Bytes read at once: what is held in memory of a long transcript beside its entries."""


class TranscriptWriter:
    """Appends to the transcript of one session; the file begins with the first line.

    May be called from several threads. In a child that was forked it refuses to write: the
    transcript belongs to the parent.
    """

    def __init__(self, folder: SessionFolder, session_id: str) -> None:
        self._path = folder.transcript
        self._session = session_id
        self._descriptor = -1
        self._file = (0, 0)
        self._torn = False
        self._end = -1
        """Where our last line ended, in bytes."""
        self._look_at = 0.0
        """When the state of the file is to be looked at again, by the clock `monotonic`."""
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def append(self, line: Mapping[str, Any]) -> int:
        """Append one line and return the offset of its end in bytes.

        When this returns the line survives the process. Raises `TranscriptError`, and then the
        line is not there; the next one is tried anew.
        """
        return self.write(as_line(line))

    def write(self, data: bytes, *, soon: bool = False) -> int:
        """Append what is one line already, as `append` does.

        `soon`: it belongs to a line that was just written. Then the file's place is looked at and
        not its state, which costs a third: a descriptor that user code closed meanwhile, or gave
        to a file of its own, stands elsewhere. So it is for `LOOK_SECONDS` after a look.
        """
        # Before the lock: in a child that was forked a thread that is gone may hold it.
        if os.getpid() != self._pid:
            raise TranscriptError("A forked process does not write its parent's transcript.")
        with self._lock:
            if not soon and (now := monotonic()) >= self._look_at:
                self._look_at = now + LOOK_SECONDS
                size = self._size()
            else:
                size = self._end if self._stands() else self._size()
            if self._torn:
                data = b"\n" + data
            try:
                written = descriptors.write(self._descriptor, data)
            except OSError as error:
                raise self._refused(error) from error
            self._end = size + written
            # A disk that fills up takes a part. The next line then begins with a line feed.
            self._torn = written != len(data)
            if self._torn:
                raise self._refused(OSError(28, "the disk is full"))
            return self._end

    def close(self) -> None:
        """Let the file go; a later line opens it again. Does nothing in a forked child."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._descriptor >= 0 and self._ours() is not None:
                descriptors.close(self._descriptor)
            self._descriptor = -1

    def _size(self) -> int:
        """Return the size of the file in bytes, opened if it is not."""
        found = self._ours()
        if found is None or not found.st_nlink:
            if found is not None:
                descriptors.close(self._descriptor)
            self._descriptor = -1
            self._open()
            found = descriptors.fstat(self._descriptor)
        return found.st_size

    def _stands(self) -> bool:
        """Return whether the descriptor stands where our last line ended."""
        try:
            return descriptors.lseek(self._descriptor, 0, _HERE) == self._end
        except OSError:
            return False

    def _ours(self) -> os.stat_result | None:
        """Return the state of our file, None when the descriptor is another's by now.

        User code may close descriptors it does not know, and then the number is given to a file
        of the user's. This costs a microsecond.
        """
        if self._descriptor < 0:
            return None
        try:
            found = descriptors.fstat(self._descriptor)
        except OSError:
            return None
        return found if (found.st_dev, found.st_ino) == self._file else None

    def _open(self) -> None:
        try:
            make_folder(self._path.parent)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            flags |= getattr(os, "O_CLOEXEC", 0)
            descriptor = descriptors.above(descriptors.open(self._path, flags, 0o600))
        except OSError as error:
            raise self._refused(error) from error
        except IpymemoryError as error:
            raise TranscriptError(str(error)) from error
        try:
            self._begin(descriptor)
        except OSError as error:
            descriptors.close(descriptor)
            raise self._refused(error) from error
        except BaseException:
            descriptors.close(descriptor)
            raise
        self._descriptor = descriptor

    def _begin(self, descriptor: int) -> None:
        """Write the first line, or look at what an earlier kernel left."""
        state = descriptors.fstat(descriptor)
        self._file = (state.st_dev, state.st_ino)
        if not state.st_size:
            head = {"type": "session", "version": VERSION, "id": self._session, "time": utc_now()}
            data = as_line(head)
            self._torn = descriptors.write(descriptor, data) != len(data)
            return
        descriptors.lseek(descriptor, 0, os.SEEK_SET)
        first = as_object(descriptors.read(descriptor, 4096).split(b"\n", 1)[0]) or {}
        version = first.get("version")
        if isinstance(version, int) and version > VERSION:
            raise TranscriptError(
                f"{self._path} was written by a newer ipymemory and is only read here. Upgrade "
                "with: pip install --upgrade ipymemory"
            )
        descriptors.lseek(descriptor, -1, os.SEEK_END)
        self._torn = descriptors.read(descriptor, 1) != b"\n"

    def _refused(self, error: OSError) -> TranscriptError:
        return TranscriptError(
            f"Nothing is recorded: {self._path} cannot be written ({error.strerror or error}). "
            "Free some space or mend the permissions; recording then goes on by itself."
        )


class Transcript:
    """Reads a transcript: `entries` in the order in which they began, as far as `follow` got.

    `steps` are the same in the order in which they came to be told: only ever appended to, and
    the same whenever they are read. Another list means that another file was read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.steps: list[Step] = []
        self.offset = 0
        """Bytes read and understood."""
        self.torn = 0
        """Lines that could not be understood."""
        self.generation = 0
        """The newest kernel that wrote here."""
        self._places: dict[str, int] = {}
        self._open: dict[str, None] = {}
        """Ids of what the newest kernel began and whose end or outputs are not on record."""
        self._file = (0, 0)
        self._skipping = False

    @property
    def busy(self) -> bool:
        """Whether the last cell of the newest kernel is neither ended nor shown on record.

        An earlier one without an end is none of that: then its end could not be written.
        """
        for each in reversed(self.entries):
            if isinstance(each, Turn) and each.origin != "history":
                return each.status == "running" and not each.complete
        return False

    def follow(self) -> list[str]:
        """Read what is new; return the ids of entries that are new or changed, in order.

        A last line without its line feed is waited for. A file that was put in place of the one
        read so far, or that is shorter, is read anew. Raises `TranscriptError` when there is a
        file that cannot be read.
        """
        changed: dict[str, None] = {}
        try:
            with self.path.open("rb") as file:
                state = descriptors.fstat(file.fileno())
                if self._file != (state.st_dev, state.st_ino) or state.st_size < self.offset:
                    self._forget()
                    self._file = (state.st_dev, state.st_ino)
                file.seek(self.offset)
                rest = b""
                while block := file.read(_BLOCK):
                    *lines, rest = (rest + block).split(b"\n")
                    for line in lines:
                        self.offset += len(line) + 1
                        if line and not self._skipping:
                            changed.update(dict.fromkeys(self._take(line)))
                        self._skipping = False
                    if len(rest) > _BLOCK:
                        # No line of ours is so long: not to be read again and again.
                        self.offset += len(rest)
                        self.torn += not self._skipping
                        self._skipping, rest = True, b""
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TranscriptError(
                f"{self.path} cannot be read: {error.strerror or error}. Mend its permissions."
            ) from error
        return list(changed)

    def _forget(self) -> None:
        self.entries, self.steps, self._places, self._open = [], [], {}, {}
        self.offset = self.torn = self.generation = 0
        self._skipping = False

    def _take(self, line: bytes) -> list[str]:
        """Fold one line into the entries; return the ids it changed."""
        value = as_object(line)
        kind = value.get("type") if value else None
        if value is None or not isinstance(kind, str):
            self.torn += 1
            return []
        if kind not in _KINDS:
            # A first line, or what a newer version has to tell.
            return []
        id = value.get("id")
        if not isinstance(id, str) or not id:
            self.torn += 1
            return []
        changed = self._new_generation(value)
        place = self._places.get(id)
        known = self.entries[place] if place is not None else None
        entry: Entry | None = None
        if kind == "markdown":
            entry = markdown(id, value)
        elif kind == "event":
            entry = event(id, value)
        elif kind == "cell":
            entry = cell(id, value) if known is None else None
        elif kind == "ask":
            entry = ask(id, value) if known is None else None
        elif kind == "ask_end":
            entry = answered(known, value) if isinstance(known, Ask) else None
        elif isinstance(known, Turn):
            entry = ended(known, value) if kind == "end" else with_outputs(known, value)
        if entry is None:
            self.torn += 1
            return changed
        self._put(id, entry)
        return [*changed, id]

    def _new_generation(self, value: Mapping[str, Any]) -> list[str]:
        """Close what an earlier kernel left open; nobody knows how it ended."""
        kernel = value.get("kernel")
        if not isinstance(kernel, int) or kernel <= self.generation:
            return []
        self.generation = kernel
        left = list(self._open)
        for id in left:
            each = self.entries[self._places[id]]
            if isinstance(each, Turn):
                status: Status = "unknown" if each.status == "running" else each.status
                self._put(id, replace(each, status=status, complete=True))
            elif isinstance(each, Ask):
                self._put(id, replace(each, status="unknown"))
        self._open.clear()
        return left

    def _put(self, id: str, entry: Entry) -> None:
        place = self._places.get(id)
        before = self.entries[place] if place is not None else None
        if place is None:
            self._places[id] = len(self.entries)
            self.entries.append(entry)
        else:
            self.entries[place] = entry
        if is_open(entry):
            self._open[id] = None
        else:
            self._open.pop(id, None)
        if step := step_of(self.offset, before, entry):
            self.steps.append(step)


_KINDS = frozenset({"cell", "end", "outputs", "markdown", "event", "ask", "ask_end"})
