"""The thread that owns a worker: starts it, writes to it, ends it when it hangs, buries it.

A worker says of every message that it heard it, and what is not heard yet never fills a pipe; so
this thread cannot be made to wait. A worker that dies is started again, each time after a longer
wait; so is one that does not hear. None is started for a turn while a cell runs, which could
wait for it (see `starting.Unseen`). A second thread, one a process, only listens.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ipymemory import processes, starting
from ipymemory.background import in_background
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.files import make_folder
from ipymemory.listening import Ask, Listener
from ipymemory.pipes import End, encode
from ipymemory.places import Project, SessionFolder
from ipymemory.restarts import DEATHS_AN_HOUR, Restarts, Suspicion
from ipymemory.started import Started
from ipymemory.starting import CellRuns, Unseen
from ipymemory.unheard import Unheard

log = logging.getLogger(__name__)

READER_SECONDS = 2.0
"""What the reader gets to read the last words of a worker that ended. Its pipe may be held open
for ever, by a child that user code forked while the worker was started."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """The reader's last word: this process said nothing more and ended."""

    process: Started


class _Bye:
    """Tells the sender to end."""


class Sender:
    """The worker of one session, and the threads around it.

    Others set `hinted`, `unsettled` and `settings`, put into `waiting`, and call `wake` and
    `close`; the rest is the thread's own.
    """

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        settings: Settings,
        command: Sequence[str] | None,
        unseen: Unseen,
    ) -> None:
        self.settings = settings
        self.hinted = False
        """Whether there is something new in the transcript that the worker was not told of."""
        self.unsettled = False
        """Whether the settings changed since the worker was told them."""
        self.waiting: dict[int, Ask] = {}
        """The questions that somebody waits for the answers of."""
        self.listener = Listener(self.waiting, self._on_heard)
        self.last_error = ""
        """What last went wrong, as a clause without its full stop."""
        self._folder = folder
        self._project = project
        self._command = command
        self._unseen = unseen
        self._queue: queue.SimpleQueue[Ask | _Ended | _Bye | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._thread_lock = threading.Lock()
        self._reader: threading.Thread | None = None
        self._process: Started | None = None
        self._out: End | None = None
        self._unheard = Unheard()
        self._asks: deque[Ask] = deque()
        self._cancels: deque[int] = deque()
        self._environment: dict[str, str | None] = {}
        self._began = 0.0
        self._dead: float | None = None
        self._why = ""
        self._suspicion = Suspicion()
        self._restarts = Restarts()
        unseen.again = self.wake
        self._ever = False

    @property
    def state(self) -> str:
        """``not started``, ``running``, ``ended`` (the next turn starts it) or ``failing``."""
        if self.worker_pid is not None:
            return "running"
        if self._restarts.in_a_row:
            return "failing"
        return "ended" if self._ever else "not started"

    @property
    def begun(self) -> bool:
        """Whether anything was ever to be done."""
        return self._thread is not None

    @property
    def worker_pid(self) -> int | None:
        """The process id of the worker while it runs."""
        process = self._process
        return process.pid if process is not None and process.running else None

    def wake(self, ask: Ask | None = None) -> bool:
        """Give the thread something to do; return False when there can be no thread."""
        try:
            with self._thread_lock:
                if self._thread is None:
                    self._thread = in_background(self._send_all, "ipymemory-sender")
        except RuntimeError as error:
            # No more threads, or the interpreter is about to end.
            self.last_error = f"no thread could be started ({error})"
            return False
        self._queue.put(ask)
        return True

    def cancel(self, number: int) -> None:
        """Have the worker stop working on that ask, if it was told of it. Never waits."""
        self._cancels.append(number)
        self.wake()

    def close(self, timeout: float, *, drain: bool) -> None:
        """Say goodbye and wait at most `timeout` seconds for the end; without `drain`, end it."""
        end = time.monotonic() + timeout
        self._queue.put(_Bye())
        if self._thread is not None:
            self._thread.join(max(0.0, end - time.monotonic()))
        process = self._process
        if not drain and process is not None:
            process.kill()
        if self._reader is not None:
            self._reader.join(max(0.0, end - time.monotonic()))

    def _send_all(self) -> None:
        while True:
            try:
                message = self._queue.get(timeout=self._patience())
            except queue.Empty:
                message = None
            try:
                if isinstance(message, _Bye):
                    self._goodbye()
                    return
                if isinstance(message, Ask):
                    self._asks.append(message)
                elif isinstance(message, _Ended):
                    self._bury(message.process)
                self._step()
            except Exception as error:
                log.exception("the worker was not reached")
                self._failed(f"it was not reached: {type(error).__name__}: {error}")

    def _patience(self) -> float | None:
        """Return the seconds until something is to be done without a message, None for never."""
        until = []
        if self._dead is not None:
            until.append(self._dead + READER_SECONDS)
        elif self._process is not None and not self._why:
            since = self._unheard.since
            if since is not None:
                until.append(self._suspicion.next_look(since))
        if self._process is None and self._wanted:
            until.append(self._restarts.not_before)
        return max(0.01, min(until) - time.monotonic()) if until else None

    def _step(self) -> None:
        process = self._process
        self._asks = deque(each for each in self._asks if each.number in self.waiting)
        if process is not None and not process.running:
            now = time.monotonic()
            self._dead = now if self._dead is None else self._dead
            if now < self._dead + READER_SECONDS:
                return
            self._bury(process)
        elif (
            process is not None
            and not self._why
            and self._suspicion.confirmed(self._unheard.since, time.monotonic())
        ):
            self._why = f"it did not hear for {self._suspicion.limit:g} s and was ended"
            self._suspicion.ended(hung=True)
            process.kill()
            return
        if self._process is None:
            if not self._wanted:
                return
            if not self._start():
                self._refuse(self._asks, f"The worker does not run: {self.last_error}. Try again.")
                self._asks.clear()
                return
        self._send_what_fits()

    def _send_what_fits(self) -> None:
        """Send what there is to send, as long as little enough of it is unheard."""
        while self._cancels and self._unheard.room:
            self._send({"type": "cancel", "id": self._cancels.popleft()})
        if self.unsettled and self._unheard.room:
            self.unsettled = False
            self._send({"type": "settings", "settings": self.settings.as_dict()})
        if self.hinted and self._unheard.room and not self._unheard.has("turn"):
            self._tell_environment()
            # Before the worker reads: what is recorded from now on needs a hint of its own.
            self.hinted = False
            self._send({"type": "turn"})
        while self._asks and self._unheard.room:
            ask = self._asks.popleft()
            if ask.number in self.waiting:
                ask.sent = True
                self._tell_environment()
                self._send(ask.message)

    def _tell_environment(self) -> None:
        """Let the worker know of a key or proxy that was set since it was started."""
        now = starting.engine_environment()
        if now != self._environment:
            self._environment = now
            self._send({"type": "environment", "variables": now})

    def _send(self, message: Mapping[str, Any]) -> None:
        data = encode(message)
        self._unheard.sent(str(message["type"]), len(data))
        # Of one that just died the reader tells.
        if self._out is not None:
            self._out.write(data)

    @property
    def _wanted(self) -> bool:
        """Whether a worker is to be started: for a turn not before the cell that runs has ended."""
        return bool(self._asks) or (self.hinted and self._unseen.free())

    def _start(self) -> bool:
        """Start a worker where it is time; return whether there is one now."""
        now = time.monotonic()
        if now < self._restarts.not_before:
            return False
        self._began, self._why = now, ""
        self._unheard.clear()
        self._cancels.clear()
        self.unsettled = False
        self._environment = starting.engine_environment()
        moment = self._unseen.moment(asked=bool(self._asks))
        try:
            make_folder(self._folder.path)
            command = self._command if self._command is not None else starting.worker_command()
            process, out, source = starting.start(
                command, self._folder.path, self._folder.log, moment
            )
        except CellRuns:
            return False
        except (OSError, ValueError, IpymemoryError) as error:
            self._failed(f"it could not be started: {error}")
            return False
        self._ever = True
        try:
            read = partial(self._read_all, process, source)
            self._reader = in_background(read, "ipymemory-reader")
        except RuntimeError:
            process.kill()
            process.wait()
            out.close()
            source.close()
            raise
        self._process, self._out = process, out
        self._send(self._hello())
        return True

    def _hello(self) -> dict[str, Any]:
        project = self._project
        return {
            "type": "hello",
            "session": str(self._folder.path),
            "project": {
                "root": str(project.root),
                "key": project.key,
                "folder": str(project.folder),
            },
            "settings": self.settings.as_dict(),
            "parent": processes.own().as_dict(),
        }

    def _bury(self, process: Started) -> None:
        """Clear up after a worker that ended; what it left undone is for the next one."""
        if process is not self._process:
            return
        self._process = self._dead = None
        if self._out is not None:
            self._out.close()
        lost = bool(self._unheard)
        self._unheard.clear()
        sent = [each for each in tuple(self.waiting.values()) if each.sent]
        code = process.code
        if code == 0 and not self._why:
            self._restarts.went_well()
            self._suspicion.ended(hung=False)
            # It had nothing to do and left, perhaps as something came: the next one is asked.
            self._asks.extend(sent)
            self.hinted = self.hinted or lost
            return
        lived = time.monotonic() - self._began
        how = "without a word" if code is None else f"with code {code}"
        self._failed(self._why or f"it ended {how}", lived)
        self._refuse(sent, f"The worker ended before it answered: {self.last_error}. Try again.")
        self.hinted = True

    def _failed(self, why: str, lived: float = 0.0) -> None:
        """Remember a failure; the next worker is started when `Restarts` lets it."""
        self.last_error = why
        if self._restarts.failed(time.monotonic(), lived):
            self.last_error = f"it failed {DEATHS_AN_HOUR} times within an hour, last: {why}"

    def _goodbye(self) -> None:
        if self._out is not None and self._process is not None:
            self._out.write(encode({"type": "bye"}))
            self._out.close()
        self._refuse(tuple(self.waiting.values()), "The worker of this session was closed.")

    def _refuse(self, asks: Sequence[Ask], why: str) -> None:
        for each in tuple(asks):
            each.answer(error=why)

    # The reader's thread, one a process.

    def _read_all(self, process: Started, source: End) -> None:
        def left(code: int) -> None:
            process.said = code

        try:
            if not self.listener.listen(source, left):
                self._why = "it wrote rubbish"
                process.kill()
            source.close()
            process.wait()
        except Exception:
            log.exception("the worker's answers could not be read")
            self._why = "its answers could not be read"
            source.close()
            process.kill()
        self._queue.put(_Ended(process))

    def _on_heard(self) -> None:
        self._unheard.heard()
        if self.hinted or self.unsettled or self._asks or self._cancels:
            self._queue.put(None)
