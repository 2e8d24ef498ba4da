"""The recorder: every executed cell becomes a turn, and the cell never notices.

`pre_run_cell` writes the ``cell`` line before the cell runs and `post_run_cell` the ``end`` line:
both on the main thread, so that they are on disk whatever happens next. Output is picked up by
`taps`, masked and written as an ``outputs`` line by a thread of its own when the kernel says
that the request is idle. What comes later than that is written once more, marked ``late``.

The two hooks run in the user's kernel: nothing may come out of them. IPython prints an exception
of a callback into every cell, hangs the cell when that fails, and dies of a ``SystemExit``. So
each body ends in one ``except BaseException``. An exception of the user's is never kept, since
it holds on to their arrays.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ipymemory.capture import Captured
from ipymemory.config import Settings
from ipymemory.earlier import Earlier
from ipymemory.errors import IpymemoryError
from ipymemory.names import Names
from ipymemory.on_record import OnRecord
from ipymemory.outputs import Outputs
from ipymemory.private import is_ours, is_private
from ipymemory.private_cells import PrivateCells
from ipymemory.redaction import Masker
from ipymemory.starting import Unseen
from ipymemory.taps import KernelTap, TerminalTee
from ipymemory.transcript import TranscriptWriter
from ipymemory.turning import Turning, outcome

log = logging.getLogger(__name__)


class Recorder:
    """Records the cells of `shell` from `install` to `remove`.

    `begin` gives the writer when the first turn asks for it; `notify` is told what was written
    (``begin``, ``end``, ``outputs``) and must not block.
    """

    def __init__(
        self,
        shell: Any,
        begin: Callable[[], TranscriptWriter],
        settings: Settings,
        notify: Callable[[str], None],
        masker: Masker,
    ) -> None:
        self.paused = False
        self.private = False
        """Whether the cell that runs is private, or one that it has run within it."""
        self.unseen = Unseen()
        """Told of each cell that begins and ends, also of one that is not recorded."""
        self._shell = shell
        self.lines = OnRecord(begin, settings, masker)
        self._settings = settings
        self._notify = notify
        self._masker = masker
        self._pid = os.getpid()
        self._unseen = False
        self._chars = 0
        settings.capture.observe(self._on_setting, names=["output_chars"])
        self._on_setting()
        self._turns: dict[str | None, Turning] = {}
        self._earlier = Earlier(shell)
        self._names = Names(settings.capture.names, settings.capture.columns)
        kernel = getattr(shell, "kernel", None)
        self._tap: KernelTap | None = None
        if kernel is not None:
            self._tap = KernelTap(kernel, self._find, self._idle, masker.learn)
        self._tee = TerminalTee(shell)
        self._outputs = Outputs(settings, masker, self._written, notify)
        self._private_cells = PrivateCells(shell, self._earlier, self._outputs)

    def install(self) -> None:
        """Record from the next cell on."""
        self._names.start(self._shell.user_ns)
        if self._tap is not None:
            self._tap.install()
        self._shell.events.register("pre_run_cell", self._pre_run_cell)
        self._shell.events.register("post_run_cell", self._post_run_cell)

    @property
    def hooked(self) -> bool:
        """Whether the shell still calls us: code in a cell can take all callbacks out of it."""
        known = getattr(getattr(self._shell, "events", None), "callbacks", None)
        return isinstance(known, dict) and all(
            hook in known.get(name, ())
            for name, hook in (
                ("pre_run_cell", self._pre_run_cell),
                ("post_run_cell", self._post_run_cell),
            )
        )

    def remove(self) -> None:
        """Record no more; what was captured so far is written. In a forked child, nothing."""
        if os.getpid() != self._pid:
            return
        for name, hook in (
            ("pre_run_cell", self._pre_run_cell),
            ("post_run_cell", self._post_run_cell),
        ):
            try:
                self._shell.events.unregister(name, hook)
            except ValueError:
                # Somebody took all callbacks out of the shell.
                continue
        self._earlier.leave(recorded=self.lines.writer is not None)
        self._tee.remove()
        if self._tap is not None:
            self._tap.remove()
        for turning in tuple(self._turns.values()):
            if not turning.ended:
                # It goes on unseen. Without an end the next kernel would say that it killed this.
                turning.ended = True
                self._append_end(turning, None, "unknown", None, "")
            if not turning.late_until:
                self._outputs.put(turning)
        self._turns.clear()
        self._outputs.close()
        with suppress(ValueError):
            # Whoever has the settings may have let all go that look at them.
            self._settings.capture.unobserve(self._on_setting, names=["output_chars"])
        self.lines.close()
        with suppress(IpymemoryError):
            self.lines.write_owed()

    def _on_setting(self, change: Any = None) -> None:
        self._chars = self._settings.capture.output_chars

    def begin(self, current: str = "") -> TranscriptWriter:
        """Claim the session, if that is not done yet; `current` is the cell about to run.

        Raises `IpymemoryError` when nothing can be written.
        """
        first = self.lines.writer is None
        writer = self.lines.begin()
        if first:
            self._outputs.start()
            self._enter_earlier(current)
        return writer

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave what is shown meanwhile out of the cell that runs: a magic of ours shows it."""
        turning = self._turns.get(self._key())
        captured = turning.captured if turning is not None else None
        if captured is not None:
            # A kernel sends what the cell printed before when it likes, perhaps only now.
            captured.aside = "streams" if self._tap is None else "displays"
        try:
            yield
        finally:
            if captured is not None:
                captured.aside = ""

    def settle(self) -> None:
        """Wait for a moment until the output of the cells before is on record."""
        self._outputs.settle()

    def pause(self) -> None:
        """Record nothing from the next cell on."""
        if not self.paused:
            self._earlier.pause()
        self.paused = True

    def resume(self) -> None:
        """Record again, from the next cell on."""
        if self.paused:
            self._earlier.resume()
        self.paused = False

    # The hooks, on the main thread or a subshell's.

    def _pre_run_cell(self, info: Any) -> None:
        try:
            if os.getpid() != self._pid:
                return
            self.unseen.cell_begins()
            private = is_private(info.raw_cell) or (
                self._private_cells.any and self._private_cells.goes_on(info.raw_cell)
            )
            key = self._key()
            running = self._turns.get(key)
            if running is not None and running.ended:
                running = None
            self.private = private or (running is not None and self.private)
            if self.paused or self._settings.held:
                self._left_out(info, private)
            elif not info.silent:
                self._cell_begins(info, key, running, private)
        except BaseException as error:  # noqa: BLE001 - nothing may come out into the user's cell
            self.lines.failed(error)

    def _post_run_cell(self, result: Any) -> None:
        try:
            if os.getpid() == self._pid:
                if self._private_cells.any:
                    self._private_cells.ended(result)
                self._cell_ended(result)
                running = self._turns.get(self._key()) if self._turns else None
                if running is None or running.ended:
                    self.unseen.cell_ended()
        except BaseException as error:  # noqa: BLE001 - as above
            self.lines.failed(error)

    def _left_out(self, info: Any, private: bool) -> None:
        """Let a cell pass while nothing may be recorded."""
        self._unseen = True
        if private:
            self._private_cells.begun(info)
        if self._settings.held:
            self._earlier.leave_out()
            self._notify("held")

    def _cell_begins(
        self, info: Any, key: str | None, running: Turning | None, private: bool
    ) -> None:
        """Put a cell on record that is about to run; `running` is the one that runs it, if any."""
        typed: str = info.raw_cell
        if running is not None:
            # A cell that a cell runs is part of it.
            running.nested += 1
            if self._private_cells.is_one(typed):
                self._outputs.keep_secret(typed)
                running.captured.mute()
            return
        if not info.store_history:
            return
        if private:
            self._private_cells.begun(info)
        if private or is_ours(typed) or (self.lines.reason and self.lines.waits):
            self._unseen = True
            return
        if self._unseen:
            # What a cell bound that is not recorded must not come up as bound by this one.
            self._names.start(self._shell.user_ns)
            self._unseen = False
        if self.lines.writer is None:
            self.begin(typed)
        turning = Turning(key, typed, self._chars)
        turning.source = source = self.lines.source(typed)
        if self._private_cells.any and self._private_cells.shown_by(typed):
            turning.captured.mute()
        self.lines.begun(turning.id, getattr(info, "cell_id", None), source)
        if self._turns and (before := self._turns.get(key)) is not None:
            self._let_go(before)
        self._turns[key] = turning
        if self._tap is None:
            self._tee.begin(turning.captured)
        self._outputs.tell("begin")

    def _cell_ended(self, result: Any) -> None:
        key = self._key()
        turning = self._turns.get(key)
        if turning is None or turning.ended:
            return
        info = getattr(result, "info", None)
        if info is not None and (turning.nested or info.raw_cell != turning.typed):
            # A cell that this one ran; an empty one has an end without a beginning.
            if info.raw_cell.strip():
                turning.nested = max(0, turning.nested - 1)
            return
        if self._tap is None:
            self._tee.end()
        turning.ended = True
        if self._tap is None:
            turning.prompt = getattr(result, "execution_count", None)
        duration = turning.lasted()
        self._look_at_names(turning)
        turning.typed = ""
        status, error = outcome(result, turning.captured)
        turning.count = count = getattr(result, "execution_count", None)
        self._append_end(turning, count, status, duration, error)
        if self._tap is None or key is None:
            self._turns.pop(key, None)
            self._outputs.put(turning)

    def _append_end(
        self, turning: Turning, count: int | None, status: str, duration: float | None, error: str
    ) -> None:
        self.lines.ended(turning.id, count, status, duration, error)
        self._outputs.tell("end")

    def _look_at_names(self, turning: Turning) -> None:
        """Note what the cell bound; whatever goes wrong, the end of the cell is written."""
        try:
            namespace, typed = self._shell.user_ns, turning.typed
            turning.names = bound = self._names.bound(typed, namespace)
            self.lines.learn(typed, bound, namespace)
            if turning.captured.muted:
                turning.names = [each.bare() for each in bound]
        except BaseException:
            # Also a SystemExit: a property that looks like a frame's may be anybody's.
            log.exception("the names that a cell bound were not noted")

    def _key(self) -> str | None:
        """Return the id of the request that runs; None where there are no requests."""
        if self._tap is None:
            return None
        parent = self._shell.get_parent() or {}
        found = (parent.get("header") or parent).get("msg_id")
        return found if isinstance(found, str) else None

    def _enter_earlier(self, current: str) -> None:
        """Enter the sources of cells that ran in this process before recording began."""
        self._private_cells.enter_earlier()
        for count, source in self._earlier.unseen(current):
            self.lines.earlier(count, source)

    # What the tap calls, in any thread.

    def _find(self, request: str) -> Captured | None:
        turning = self._turns.get(request)
        return turning.captured if turning is not None else None

    def _idle(self, request: str) -> None:
        turning = self._turns.get(request)
        if turning is None or turning.late_until:
            return
        self._outputs.put(turning)
        # From now on what comes is late; the outputs thread looks once more in a while.
        late = Captured(self._settings.capture.output_chars)
        if turning.captured.muted:
            late.mute()
        turning.captured = late
        wait = self._settings.capture.late_seconds
        turning.late_until = time.monotonic() + wait
        self._outputs.put_late(turning, lambda: self._turns.pop(request, None))

    def _let_go(self, turning: Turning) -> None:
        if not turning.late_until:
            self._outputs.put(turning)

    def _written(self, line: dict[str, Any]) -> None:
        """Append a line from the outputs thread; raises `TranscriptError`."""
        if self.lines.writer is not None:
            self.lines.put(line)
            self._notify("outputs")
