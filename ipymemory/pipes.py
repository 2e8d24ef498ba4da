"""JSON Lines on the pipes between a kernel and its worker, where neither may wait for the other.

`End` is one end of a pipe that is still ours: code of the user's may close descriptors it does
not know, and then the number is given to a file of the user's. `Splitter` makes lines of what
comes and bounds them. `Outlet` writes from a thread of its own and drops what a reader that
stands still would make it keep.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from ipymemory import descriptors

MOST_LINE = 1_000_000
"""Bytes of one line; what is longer is rubbish."""

_BLOCK = 64 * 1024
_WAITING = 1000
"""Messages that an `Outlet` keeps for a reader that stands still."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Return the message as one line."""
    return json.dumps(message, separators=(",", ":"), default=str).encode("ascii") + b"\n"


def decode(line: bytes) -> dict[str, Any] | None:
    """Return the message in `line`, None for rubbish: a message is an object with a ``type``."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


class End:
    """One end of a pipe, owned from here on."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._which = _which(descriptor)

    def read(self) -> bytes:
        """Return what comes next, nothing when the other end is closed or this one is lost."""
        try:
            return descriptors.read(self._descriptor, _BLOCK) if self._ours() else b""
        except OSError:
            return b""

    def write(self, data: bytes) -> bool:
        """Write all of `data`; return False when nobody reads it or this end is lost."""
        try:
            while data:
                if not self._ours():
                    return False
                data = data[descriptors.write(self._descriptor, data) :]
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close it; a second time does nothing."""
        ours, descriptor = self._ours(), self._descriptor
        self._descriptor = -1
        if ours:
            with contextlib.suppress(OSError):
                descriptors.close(descriptor)

    def _ours(self) -> bool:
        return self._descriptor >= 0 and _which(self._descriptor) == self._which


def _which(descriptor: int) -> tuple[int, int] | None:
    try:
        found = descriptors.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Splitter:
    """Makes lines of pieces. One that is too long comes as its beginning, its rest is dropped."""

    def __init__(self, most: int = MOST_LINE) -> None:
        self._most = most
        self._rest = b""
        self._dropping = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that `data` completes, without their line feeds."""
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not self._dropping:
                yield line
            self._dropping = False
        if len(rest) > self._most:
            if not self._dropping:
                yield rest[:100]
            self._dropping, rest = True, b""
        self._rest = rest


class Outlet:
    """Writes messages to a pipe from a daemon thread; `say` never waits."""

    def __init__(self, end: End) -> None:
        self.dropped = 0
        """Messages that were dropped since the reader stood still."""
        self._end = end
        self._queue: queue.Queue[bytes | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._write_all, daemon=True, name="outlet")
        self._thread.start()

    def say(self, message: Mapping[str, Any]) -> None:
        """Write `message` in its turn, or drop it when too many wait."""
        try:
            self._queue.put_nowait(encode(message))
        except queue.Full:
            self.dropped += 1

    def close(self, seconds: float) -> None:
        """Wait at most `seconds` until all is written."""
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=seconds)
        self._thread.join(seconds)

    def _write_all(self) -> None:
        while (data := self._queue.get()) is not None:
            # A reader that is gone hears nothing, and that is no failure.
            self._end.write(data)
