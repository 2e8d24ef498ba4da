"""The worker process: JSON lines in on a pipe, JSON lines out, jobs between.

It hears ``hello`` first, then ``turn`` whenever something was recorded, ``settings``, ``ask``
and ``bye``; it says ``ready``, ``heard``, ``event`` and ``reply``. The turns themselves it reads
from the transcript, so a worker that dies loses nothing. It ends when the pipe closes, when its
parent is gone (a child that user code forked may hold the pipe open), on ``bye``, and after
`Engine.idle_minutes` with nothing to do; a run in flight may take `Engine.drain_seconds` more.

The protocol runs on a duplicate of descriptor 1, and 1 itself goes where 2 goes, to the log: a
stray print cannot break it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ipymemory import processes
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.places import Project, SessionFolder
from ipymemory.processes import ProcessIdentity
from ipymemory.session import MemorySession

log = logging.getLogger(__name__)

PARENT_SECONDS = 2.0
"""How often the worker looks whether its parent lives: one system call."""

CANCEL_SECONDS = 2.0
"""What a run that is over its time may take to stop."""

Message = Mapping[str, Any]


def main() -> None:
    """Run a worker on this process's pipes until it has nothing more to do."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    processes.lower_priority()
    asyncio.run(Worker(sys.stdin.buffer, out).serve())
    # The thread that reads the pipe may still wait for a line that never comes.
    sys.stderr.flush()
    os._exit(0)


class Worker:
    """One worker on two pipes, from `hello` to the end."""

    def __init__(self, source: BinaryIO, out: BinaryIO) -> None:
        self._source = source
        self._out = out
        self._out_lock = threading.Lock()
        self._session: MemorySession | None = None
        self._parent: ProcessIdentity | None = None
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_work = time.monotonic()
        self._leaving = False

    async def serve(self) -> None:
        """Serve until the end; the run in flight is finished or stopped when this returns."""
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=self._read, args=(loop,), daemon=True, name="pipe")
        thread.start()
        ppid = os.getppid()
        while not self._leaving:
            try:
                message = await asyncio.wait_for(self._messages.get(), self._patience())
            except TimeoutError:
                pass
            else:
                if message is None:
                    break
                await self._take(message)
            if self._orphaned(ppid) or self._idle():
                break
            self._start_due()
        await self._drain()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand each line of the pipe to the loop, None at its end; runs in a thread."""
        while True:
            try:
                line = self._source.readline()
            except OSError:
                line = b""
            message: Message | None = None
            if line:
                try:
                    value = json.loads(line)
                except ValueError:
                    value = None
                if not isinstance(value, dict):
                    log.warning("a line that is no message was passed over")
                    continue
                message = value
            try:
                loop.call_soon_threadsafe(self._messages.put_nowait, message)
            except RuntimeError:  # the loop is closed: the worker is about to end
                return
            if message is None:
                return

    def _patience(self) -> float:
        """Return how long to wait for the next message before looking around."""
        waits = [PARENT_SECONDS]
        if self._session is not None and not self._session.running:
            due = self._session.due()
            if due is not None:
                waits.append(due)
        return min(waits)

    async def _take(self, message: Message) -> None:
        kind = message.get("type")
        if kind != "look":
            self._last_work = time.monotonic()
        try:
            if kind == "hello":
                self._hello(message)
            elif kind == "turn" and self._session is not None:
                self._session.observe()
            elif kind == "settings" and self._session is not None:
                self._session.configure(Settings.from_dict(message["settings"]))
            elif kind == "ask":
                self._task(self._answer(message))
            elif kind == "bye":
                self._leaving = True
            elif kind != "look":
                log.warning("a message of the unknown type %r was passed over", kind)
        except (IpymemoryError, KeyError, TypeError, ValueError):
            log.exception("a message of type %r could not be used", kind)
        if kind == "turn":
            self._say({"type": "heard"})

    def _hello(self, message: Message) -> None:
        told = message["project"]
        self._parent = ProcessIdentity.from_dict(message.get("parent"))
        bus = Bus()
        bus.subscribe(self._tell)
        self._session = MemorySession(
            SessionFolder(Path(message["session"])),
            Project(Path(told["root"]), str(told["key"]), Path(told["folder"])),
            Settings.from_dict(message["settings"]),
            bus,
        )
        self._say({"type": "ready", "pid": os.getpid()})
        self._session.observe()
        with contextlib.suppress(IpymemoryError):
            for gone in self._session.expire():
                log.info("session %s was past its days and went", gone)

    def _start_due(self) -> None:
        session = self._session
        if session is None or session.running:
            return
        due = session.due()
        if due is not None and due <= 0:
            self._last_work = time.monotonic()
            self._task(self._run_due(session))

    async def _run_due(self, session: MemorySession) -> None:
        await session.run_due()

    async def _answer(self, message: Message) -> None:
        reply: dict[str, Any] = {"type": "reply", "id": message.get("id"), "ok": True}
        try:
            arguments = message.get("args") or {}
            reply["value"] = await self._asked(str(message.get("name")), arguments)
        except IpymemoryError as error:
            reply |= {"ok": False, "error": str(error)}
        except Exception as error:
            log.exception("an ask failed")
            reply |= {"ok": False, "error": f"{type(error).__name__}: {error}"}
        self._say(reply)

    async def _asked(self, name: str, arguments: Message) -> Any:
        session = self._session
        if name == "ping":
            return "pong"
        if session is None:
            raise IpymemoryError("The worker was asked before it was told which session it serves.")
        if name == "status":
            session.observe()
            return session.status()
        if name == "update_notes":
            outcome = await session.update_notes(force=bool(arguments.get("force")))
            if outcome.status != "done":
                raise IpymemoryError(
                    f"The notes were not updated: {outcome.error or outcome.status}"
                )
            return outcome.as_dict()
        raise IpymemoryError(f"The worker knows no question called {name!r}.")

    def _idle(self) -> bool:
        session = self._session
        if session is None:
            return time.monotonic() - self._last_work > PARENT_SECONDS * 10
        if session.running or self._tasks or session.due() is not None:
            return False
        minutes = session.settings.engine.idle_minutes
        busy = session.transcript.busy
        return not busy and time.monotonic() - self._last_work > minutes * 60

    def _orphaned(self, ppid: int) -> bool:
        """Return whether the kernel is gone though the pipe is open."""
        if os.name != "nt":
            return os.getppid() != ppid
        return self._parent is not None and not processes.alive(self._parent)

    async def _drain(self) -> None:
        """Finish what is in flight and cover what is left, within `Engine.drain_seconds`."""
        session = self._session
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
        with contextlib.suppress(IpymemoryError):
            session.observe()
        await session.finish()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _task(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._last_work = time.monotonic()
        if not task.cancelled() and task.exception() is not None:
            log.error("a task of the worker failed", exc_info=task.exception())
        # The loop may be waiting for a message: what is due is looked at anew.
        with contextlib.suppress(asyncio.QueueFull):
            self._messages.put_nowait({"type": "look"})

    def _tell(self, event: Event) -> None:
        self._say({"type": "event", **{"event": event.as_dict()}})

    def _say(self, message: Message) -> None:
        """Write one line; a parent that is gone hears nothing, and that is no failure."""
        data = json.dumps(message, ensure_ascii=True, default=str).encode() + b"\n"
        with self._out_lock, contextlib.suppress(OSError):
            while data:
                data = data[self._out.write(data) or len(data) :]


if __name__ == "__main__":
    main()
