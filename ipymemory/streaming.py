"""An answer that comes in pieces, on its way from the thread that listens to the one that shows.

The thread that listens must never wait, so what nobody takes is kept only up to a bound; beyond
it pieces are left out and `lost` says so, and the reply at the end, which holds the whole text,
makes up for it. Taking a piece can be interrupted: by Ctrl-C, and by the stop button.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping
from typing import Any

MOST_KEPT = 4 * 1024 * 1024
"""Characters of pieces that wait to be taken: more than the longest answer of any model."""

MOST_PIECES = 20_000
"""Pieces that wait to be taken; the worker sends some thirty a second."""

SLICE_SECONDS = 0.05
"""Longest wait at once: on Windows nothing interrupts a wait for a lock before its end."""


class Stream:
    """The pieces of one answer. `put` and `end` are the listener's, the rest is the taker's."""

    def __init__(self) -> None:
        self.lost = False
        """Whether pieces were left out because nobody took them."""
        self.value: Any = None
        """What the reply holds, once `ended`."""
        self.error = ""
        """Why there is no answer, once `ended`; empty where there is one."""
        self._queue: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._ended = False
        # Each is written by one thread alone, so that neither needs a lock.
        self._put = 0
        self._taken = 0

    @property
    def ended(self) -> bool:
        """Whether the reply has come and every piece before it was taken."""
        return self._ended

    def put(self, piece: Mapping[str, Any]) -> None:
        """Keep a piece for the taker. Never waits."""
        size = sum(len(each) for each in piece.values() if isinstance(each, str))
        if self._put + size - self._taken > MOST_KEPT or self._queue.qsize() >= MOST_PIECES:
            self.lost = True
            return
        self._put += size
        self._queue.put(piece)

    def end(self, value: Any, error: str) -> None:
        """Give the reply, or why there is none. Never waits; a second end is passed over."""
        self.value, self.error = value, error
        self._queue.put(None)

    @property
    def chars(self) -> int:
        """Characters of what has come, kept or taken."""
        return self._put

    def take(self, seconds: float) -> list[Mapping[str, Any]]:
        """Return what has come; wait at most `seconds` for the first piece or the end."""
        found: list[Mapping[str, Any]] = []
        until = time.monotonic() + seconds
        while not self._ended:
            try:
                piece = self._queue.get(timeout=0 if found else self._slice(until))
            except queue.Empty:
                if found or time.monotonic() >= until:
                    break
                continue
            if piece is None:
                self._ended = True
            else:
                found.append(piece)
                self._taken += sum(len(e) for e in piece.values() if isinstance(e, str))
        return found

    @staticmethod
    def _slice(until: float) -> float:
        return max(0.0, min(SLICE_SECONDS, until - time.monotonic()))
