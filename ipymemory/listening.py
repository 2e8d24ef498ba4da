"""What a worker says, taken in as it comes: events, answers, pieces of them, and rubbish.

Runs on a thread of the client's. Whatever a worker writes, nothing here raises for it, prints it
or keeps more of it than a bound.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ipymemory.pipes import End, Splitter, decode
from ipymemory.streaming import Stream

MOST_GARBAGE = 1000
"""Lines that are no message after which a worker is ended: reading them takes the kernel's time."""

_KEPT_EVENTS = 200


@dataclass(slots=True)
class Ask:
    """A question and, once `there` is set, its answer."""

    number: int
    message: dict[str, Any]
    there: threading.Event = field(default_factory=threading.Event)
    value: Any = None
    error: str = ""
    sent: bool = False
    stream: Stream | None = None
    """Where the pieces of the answer go that come before it; None where nobody wants any."""

    def answer(self, value: Any = None, error: str = "") -> None:
        """Give the answer, or why there is none."""
        self.value, self.error = value, error
        self.there.set()
        if self.stream is not None:
            self.stream.end(value, error)


class Listener:
    """Keeps what the workers of one client said. `on_heard` is called for each ``heard``."""

    def __init__(self, waiting: Mapping[int, Ask], on_heard: Callable[[], None]) -> None:
        self.events: deque[dict[str, Any]] = deque(maxlen=_KEPT_EVENTS)
        """The newest events of jobs, as `Event.as_dict` gives them."""
        self.garbage = 0
        """Lines that were no message."""
        self.on_event: Callable[[dict[str, Any]], None] | None = None
        """Called with each event on the thread that listens; must neither wait nor raise."""
        self._waiting = waiting
        self._on_heard = on_heard

    def listen(self, source: End, on_left: Callable[[int], None]) -> bool:
        """Read until the end of the pipe; return False where rubbish was all that came.

        `on_left` is called with the exit code that the worker says it leaves with.
        """
        splitter, before = Splitter(), self.garbage
        while data := source.read():
            for line in splitter.feed(data):
                message = decode(line)
                if message is None or not self._hear(message, on_left):
                    self.garbage += 1
            if self.garbage - before > MOST_GARBAGE:
                return False
        return True

    def _hear(self, message: Mapping[str, Any], on_left: Callable[[int], None]) -> bool:
        """Take in a message; return whether it was one."""
        kind = message["type"]
        if kind == "heard":
            self._on_heard()
            return True
        if kind == "event":
            event = message.get("event")
            if not isinstance(event, dict) or not isinstance(event.get("details"), dict):
                return False
            told = {"kind": "", "job": "", **event}
            self.events.append(told)
            if self.on_event is not None:
                self.on_event(told)
            return True
        if kind in ("reply", "piece"):
            number = message.get("id")
            ask = self._waiting.get(number) if isinstance(number, int) else None
            if kind == "piece":
                return self._hear_piece(ask, message.get("piece"))
            if ask is not None:
                failed = "" if message.get("ok") else str(message.get("error") or "it failed")
                ask.answer(message.get("value"), failed)
            return True
        if kind == "left":
            code = message.get("code")
            if not isinstance(code, int):
                return False
            on_left(code)
            return True
        return bool(kind == "ready")

    def _hear_piece(self, ask: Ask | None, piece: object) -> bool:
        """Hand a piece on; one that nobody waits for any more is no rubbish."""
        if not isinstance(piece, dict):
            return False
        if ask is not None and ask.stream is not None:
            ask.stream.put(piece)
        return True
