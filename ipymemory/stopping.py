"""The stop button and Ctrl-C while a question is answered: a wish first, an interrupt only then.

An interrupt that is raised wherever the main thread happens to be would tear what ends an ask: a
line of the record, the word to the worker, a terminal whose cursor is hidden. And whoever stops
something often does so twice. So from `with Stop()` to its end SIGINT only notes the wish, which
`asking.follow` looks for; should the end of the ask itself hang, the next one interrupts as ever.
And it takes in what comes right after, of a second press or a key held down: a kernel that is
interrupted while it answers its frontend never does, and the cell would seem to run for ever.
What handled the signal before handles it again afterwards, whatever happened.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

PATIENCE_SECONDS = 1.0
"""What an ask gets to end in once it is to stop, five times what it should take; an interrupt
after that is raised."""

QUIET_SECONDS = 0.08
"""How long no interrupt came before an ask that was stopped lets go: twice as long as a key that
is held down waits between two."""


class Stopped(KeyboardInterrupt):
    """An ask that was stopped: the cell counts as interrupted, so those queued behind do not run.

    It is shown as one line in place of a traceback, which would be one of ours.
    """

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


# What tells an interrupted cell from a failed one goes by this name: frontends, and our record.
Stopped.__name__ = Stopped.__qualname__ = "KeyboardInterrupt"


class Stop:
    """Whether the person wants an ask to stop, from `with` to its end.

    Only the main thread gets signals; on another one nothing is put in their way.
    """

    def __init__(self) -> None:
        self.wanted = False
        self._first = self._last = 0.0
        self._before: Callable[[int, FrameType | None], Any] | None = None
        self._ours = self._on_signal

    def __enter__(self) -> Stop:
        before = signal.getsignal(signal.SIGINT)
        # What ignores the signal, or handles it outside Python, is left alone.
        if callable(before) and threading.current_thread() is threading.main_thread():
            self._before = before
            signal.signal(signal.SIGINT, self._ours)
        return self

    def __exit__(self, *args: object) -> None:
        while self.wanted and self._last and not self._over(time.monotonic()):
            time.sleep(QUIET_SECONDS / 8)
        if self._before is not None and signal.getsignal(signal.SIGINT) is self._ours:
            signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self._last:
            self.wanted, self._first = True, now
        elif now - self._first > PATIENCE_SECONDS and self._before is not None:
            self._before(number, frame)
        self._last = now

    def _over(self, now: float) -> bool:
        return now - self._last > QUIET_SECONDS or now - self._first > PATIENCE_SECONDS
