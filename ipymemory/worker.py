"""The worker process: JSON lines in on a pipe, JSON lines out, jobs between.

It hears ``hello`` first, then ``turn`` whenever something was recorded, ``settings``,
``environment``, ``ask``, ``cancel`` and ``bye``; it says ``heard`` for each of them, ``ready``
once, ``event`` and ``reply``, before the reply of the assistant a ``piece`` for what it says
meanwhile, and as its last word ``left`` with its exit code, which only a parent is told: the
kernel is none. The turns themselves it reads from the transcript, so a worker that dies loses
nothing. It ends when the pipe closes, when the kernel is gone (a child that user code forked may
hold the pipe open), on ``bye``, and after `Engine.idle_minutes` with nothing to do; a run in
flight may take `Engine.drain_seconds` more.

The protocol runs on duplicates of descriptors 0 and 1. 1 itself goes where 2 goes, to the log, so
that a stray print cannot break it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from ipymemory import processes
from ipymemory.answers import Answers
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.pipes import End, Outlet, Splitter, decode
from ipymemory.places import Project, SessionFolder
from ipymemory.processes import ProcessIdentity
from ipymemory.session import MemorySession

log = logging.getLogger(__name__)

PARENT_SECONDS = 2.0
"""How often a thread looks whether the kernel lives."""

CANCEL_SECONDS = 2.0
"""What a run that is over its time may take to stop."""

STUCK_SECONDS = 10.0
"""What the end may take beyond the drain. A worker that takes longer is stuck, and ended."""

STRANGER_SECONDS = 20.0
"""How long a worker waits for its hello."""

LAST_WORDS_SECONDS = 0.5
"""What the parent gets to read the last words."""

Message = Mapping[str, Any]


def main() -> None:
    """Run a worker on this process's pipes until it has nothing more to do; never returns."""
    source, out = End(os.dup(0)), End(os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    code, worker = 1, None
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        logging.basicConfig(
            stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
        )
        processes.lower_priority()
        worker = Worker(source, out)
        code = asyncio.run(worker.serve())
    except BaseException:
        log.exception("the worker failed")
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        with contextlib.suppress(Exception):
            if worker is not None:
                worker.leave(code)
        # Its threads may still wait for a line that never comes.
        os._exit(code)


class Worker:
    """One worker on two pipes, from hello to the end."""

    def __init__(self, source: End, out: End) -> None:
        self._source = source
        self._outlet = Outlet(out)
        self._session: MemorySession | None = None
        self._parent: ProcessIdentity | None = None
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers = Answers(self._outlet.say, lambda: self._session)
        self._last_work = time.monotonic()
        self._leaving = False
        self._over = threading.Event()
        self._code = 0

    async def serve(self) -> int:
        """Serve until the end; the run in flight is finished or stopped then.

        Returns the exit code: 0, or 2 where nobody said which session it is.
        """
        loop = asyncio.get_running_loop()
        for work in (self._read, self._watch):
            threading.Thread(target=work, args=(loop,), daemon=True, name=work.__name__).start()
        while not self._leaving:
            try:
                message = await asyncio.wait_for(self._messages.get(), self._patience())
            except TimeoutError:
                pass
            else:
                if message is None:
                    break
                self._take(message)
            if self._idle():
                break
            self._start_due()
        self._over.set()
        await self._drain()
        return self._code

    def leave(self, code: int) -> None:
        """Say as the last word that it ends with `code`."""
        self._outlet.say({"type": "left", "code": code})
        self._outlet.close(LAST_WORDS_SECONDS)

    # Two threads that only watch.

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand each message of the pipe to the loop, None at its end."""
        splitter = Splitter()
        while data := self._source.read():
            for line in splitter.feed(data):
                message = decode(line)
                if message is None:
                    log.warning("a line that is no message was passed over")
                else:
                    self._hand_over(loop, message)
        self._over.set()
        self._hand_over(loop, None)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell the loop when the kernel is gone, and end a process that does not come to an end."""
        while not self._over.wait(PARENT_SECONDS):
            if self._orphaned():
                self._hand_over(loop, None)
                break
        session = self._session
        drain = session.settings.engine.drain_seconds if session is not None else 0.0
        time.sleep(drain + CANCEL_SECONDS + STUCK_SECONDS)
        log.error("the worker was stuck and is ended")
        self.leave(3)
        os._exit(3)

    def _hand_over(self, loop: asyncio.AbstractEventLoop, message: Message | None) -> None:
        # A loop that is closed wants nothing any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._messages.put_nowait, message)

    def _orphaned(self) -> bool:
        """Return whether the kernel is gone, though the pipe may be open."""
        return self._parent is not None and not processes.alive(self._parent)

    # The loop.

    def _patience(self) -> float:
        """Return how long to wait for the next message before looking around, in seconds."""
        idle = self._last_work + self._idle_seconds() - time.monotonic()
        waits = [max(0.01, idle)]
        if self._session is not None and not self._session.running and not self._answers.streaming:
            due = self._session.due()
            if due is not None:
                waits = [due]
        return min(waits)

    def _idle_seconds(self) -> float:
        if self._session is None:
            return STRANGER_SECONDS
        return self._session.settings.engine.idle_minutes * 60

    def _idle(self) -> bool:
        session = self._session
        if self._tasks or (session is not None and (session.running or session.due() is not None)):
            return False
        if time.monotonic() - self._last_work < self._idle_seconds():
            return False
        self._code = 0 if session is not None else 2
        return True

    def _take(self, message: Message) -> None:
        kind = message["type"]
        if kind == "look":
            return
        self._last_work = time.monotonic()
        try:
            self._use(kind, message)
        except Exception:
            log.exception("a message of type %r could not be used", kind)
            if self._session is None:
                self._code = 2
                self._leaving = True
        self._outlet.say({"type": "heard"})

    def _use(self, kind: str, message: Message) -> None:
        session = self._session
        if kind == "hello":
            self._hello(message)
        elif kind == "ask":
            self._task(self._answers.answer(message))
        elif kind == "cancel":
            self._answers.streaming.discard(message.get("id"))
        elif kind == "bye":
            self._leaving = True
        elif kind == "environment":
            _set_environment(message["variables"])
        elif kind == "turn" and session is not None:
            session.observe()
        elif kind == "settings" and session is not None:
            session.configure(_settings(message))
        else:
            log.warning("a message of the type %r was passed over", kind)

    def _hello(self, message: Message) -> None:
        told = message["project"]
        self._parent = ProcessIdentity.from_dict(message.get("parent"))
        bus = Bus()
        bus.subscribe(self._tell)
        self._session = MemorySession(
            SessionFolder(Path(message["session"])),
            Project(Path(told["root"]), str(told["key"]), Path(told["folder"])),
            _settings(message),
            bus,
        )
        self._outlet.say({"type": "ready", "pid": os.getpid()})
        self._session.extracting.opened()
        self._session.observe()
        self._task(self._begun(self._session))

    async def _begun(self, session: MemorySession) -> None:
        """Look around once, beside the loop and one after the other, so that one thread serves.

        For the project's own documents, then for sessions past their days, which may be many.
        """
        await asyncio.to_thread(session.documenting.look_around)
        try:
            gone = await asyncio.to_thread(session.expire)
        except IpymemoryError as error:
            log.warning("sessions past their days were not looked for: %s", error)
            return
        if gone:
            log.info("past their days and gone: %s", ", ".join(gone))

    def _start_due(self) -> None:
        session = self._session
        # Whoever waits for an answer goes first; no cell can run meanwhile.
        if session is None or session.running or self._answers.streaming:
            return
        due = session.due()
        if due is not None and due <= 0:
            self._task(self._run_due(session))

    async def _run_due(self, session: MemorySession) -> None:
        await session.run_due()

    async def _drain(self) -> None:
        """Finish what is in flight and cover what is left, within `Engine.drain_seconds`."""
        session = self._session
        # Nobody hears an answer any more; what came of it is kept.
        self._answers.streaming.clear()
        if session is None:
            return
        seconds = session.settings.engine.drain_seconds
        finishing = asyncio.ensure_future(self._finish(session))
        done, _ = await asyncio.wait({finishing}, timeout=seconds)
        if not done:
            session.cancelled = True
            await asyncio.wait({finishing}, timeout=CANCEL_SECONDS)
            log.warning("the run in flight was stopped after %g s", seconds)

    async def _finish(self, session: MemorySession) -> None:
        session.observe()
        await session.finish()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await session.session_model.close()

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._last_work = time.monotonic()
        if not task.cancelled() and task.exception() is not None:
            log.error("a task of the worker failed", exc_info=task.exception())
        # The loop may be waiting for a message: what is due is looked at anew.
        self._messages.put_nowait({"type": "look"})

    def _tell(self, event: Event) -> None:
        self._outlet.say({"type": "event", "event": event.as_dict()})


def _settings(message: Message) -> Settings:
    """Return the settings in `message`; what this version does not take has its default."""
    settings, refused = Settings.read(message["settings"])
    for each in refused:
        log.warning("%s", each)
    return settings


def _set_environment(variables: Mapping[str, str | None]) -> None:
    """Set those variables as they are in the kernel; None takes one away."""
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


if __name__ == "__main__":
    main()
