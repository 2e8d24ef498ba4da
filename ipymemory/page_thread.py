"""Work for a page that takes longer than its answer may: on a thread of its own, step by step."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable

log = logging.getLogger(__name__)


class Aside:
    """Steps done in order on one thread, which ends when there is none left. Nothing raises.

    A child that was forked does none of them. However many wait, each of `MOST_WAITING` is done.
    """

    MOST_WAITING = 1000
    """Steps that wait; a page that sends more means harm."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._steps: deque[Callable[[], object]] = deque()
        self._thread: threading.Thread | None = None

    def do(self, step: Callable[[], object]) -> None:
        """Have `step` done soon; returns at once."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if len(self._steps) >= self.MOST_WAITING:
                return
            self._steps.append(step)
            if self._thread is not None:
                return
            try:
                self._thread = threading.Thread(
                    target=self._work, name="ipymemory-page-aside", daemon=True
                )
                self._thread.start()
            except RuntimeError:
                # No more threads, or the interpreter is about to end.
                self._thread = None

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._steps:
                    # Under the same lock as what is put there: nothing is left behind.
                    self._thread = None
                    return
                step = self._steps.popleft()
            try:
                step()
            except Exception:  # a thread of ours must not print its end into a cell
                log.exception("a step for the page failed")
