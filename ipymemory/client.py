"""The kernel's end of the worker: hints go out, events and answers come in, nothing blocks.

A hint costs the cell a flag and a queue entry, and one that is not heard yet stands for all that
follow. The turns are in the transcript: what is lost here is only time. All else is done by
threads (see `sending`). In a child that user code forked nothing is done and no lock is touched:
threads and process belong to the parent.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ipymemory.config import Settings
from ipymemory.errors import WorkerError
from ipymemory.listening import Ask
from ipymemory.pipes import encode
from ipymemory.places import Project, SessionFolder
from ipymemory.sending import Sender
from ipymemory.starting import Unseen
from ipymemory.streaming import Stream

MOST_ASKED = 32 * 1024
"""Bytes of one question: any pipe holds as many, but for those of Windows."""

_ROOM = 1024
"""Bytes of a question's message that are not the question itself."""

MOST_WAITING = 32
"""Questions that may wait for their answers at once."""

MEANWHILE_SECONDS = 0.25
"""How often who waits for an answer may show how far it is."""


def fits(question: str) -> bool:
    """Return whether `question` goes into one message to the worker, whole."""
    return len(encode({"": question})) <= MOST_ASKED - _ROOM


class Client:
    """One worker for one session, from the first `hint` to `close`.

    `command` is what starts a worker, None for our own; `unseen` knows when a cell runs.
    """

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        settings: Settings,
        command: Sequence[str] | None = None,
        unseen: Unseen | None = None,
    ) -> None:
        self._folder = folder
        self._pid = os.getpid()
        self._numbers = itertools.count(1)
        self._closing = False
        self._sender = Sender(folder, project, settings, command, unseen or Unseen())

    @property
    def state(self) -> str:
        """``not started``, ``running``, ``ended`` (the next turn starts it) or ``failing``."""
        return self._sender.state if os.getpid() == self._pid else "not started"

    @property
    def worker_pid(self) -> int | None:
        """The process id of the worker while it runs."""
        return self._sender.worker_pid if os.getpid() == self._pid else None

    @property
    def last_error(self) -> str:
        """What last went wrong with the worker, as a clause without its full stop, or nothing."""
        return self._sender.last_error

    @property
    def events(self) -> tuple[dict[str, Any], ...]:
        """The newest events of jobs, as `Event.as_dict` gives them, the newest last."""
        return tuple(self._sender.listener.events)

    def hear(self, handler: Callable[[dict[str, Any]], None]) -> None:
        """Have `handler` called with each event as it comes, on a thread that only listens."""
        self._sender.listener.on_event = handler

    @property
    def garbage(self) -> int:
        """Lines from the worker that were no message."""
        return self._sender.listener.garbage

    def hint(self) -> None:
        """Let the worker know that there is something new in the transcript.

        Never blocks, and never raises.
        """
        sender = self._sender
        if sender.hinted or self._closing or os.getpid() != self._pid:
            return
        sender.hinted = True
        if not sender.wake():
            sender.hinted = False

    def configure(self, settings: Settings) -> None:
        """Use `settings` in the worker from its next run on. Never blocks, and never raises."""
        if self._closing or os.getpid() != self._pid:
            return
        self._sender.settings = settings
        if self._sender.begun:
            self._sender.unsettled = True
            self._sender.wake()

    def ask(
        self,
        name: str,
        timeout: float,
        meanwhile: Callable[[], None] | None = None,
        **arguments: Any,
    ) -> Any:
        """Ask the worker, which is started if need be, and wait at most `timeout` seconds.

        `meanwhile` is called some times a second on the thread that waits. Raises `WorkerError`
        when it cannot answer or does not in time.
        """
        sender, ask = self._sender, self._new_ask(name, arguments)
        number = ask.number
        sender.waiting[number] = ask
        try:
            if not sender.wake(ask):
                raise WorkerError(f"The worker cannot be reached: {self.last_error}. Try again.")
            if not _waited(ask, timeout, meanwhile):
                why = f" ({self.last_error})" if self.last_error else ""
                raise WorkerError(
                    f"The worker has not answered for {timeout:g} s{why}. Try again, or see "
                    f"{self._folder.log}."
                )
        finally:
            sender.waiting.pop(number, None)
        if ask.error:
            raise WorkerError(ask.error)
        return ask.value

    @contextlib.contextmanager
    def stream(self, name: str, **arguments: Any) -> Iterator[Stream]:
        """Ask the worker for an answer that comes in pieces, and give the stream they come from.

        Whatever ends the block before the answer has ended, an interrupt included, cancels it.
        Raises `WorkerError` when the worker cannot be asked; what goes wrong later is the
        stream's `error`.
        """
        sender, ask = self._sender, self._new_ask(name, arguments)
        ask.stream = stream = Stream()
        sender.waiting[ask.number] = ask
        try:
            if not sender.wake(ask):
                raise WorkerError(f"The worker cannot be reached: {self.last_error}. Try again.")
            yield stream
        finally:
            # First this: an ask that nobody waits for is not sent, and a cancel follows its ask.
            sender.waiting.pop(ask.number, None)
            if not ask.there.is_set():
                sender.cancel(ask.number)

    def _new_ask(self, name: str, arguments: Mapping[str, Any]) -> Ask:
        if os.getpid() != self._pid or self._closing:
            raise WorkerError("The worker of this session is closed. Load the extension again.")
        number = next(self._numbers)
        ask = Ask(number, {"type": "ask", "id": number, "name": name, "args": dict(arguments)})
        waiting = len(self._sender.waiting)
        if len(encode(ask.message)) > MOST_ASKED or waiting >= MOST_WAITING:
            raise WorkerError("That is more than a worker can be asked at once. Ask for less.")
        return ask

    def close(self, timeout: float = 1.0, *, drain: bool = True) -> None:
        """Say goodbye; return when the worker is gone, or after `timeout` seconds. Never raises.

        A worker that has something in flight then goes on for `Engine.drain_seconds` at most and
        ends by itself. Without `drain` it is ended at once.
        """
        if os.getpid() != self._pid or self._closing:
            return
        self._closing = True
        self._sender.close(timeout, drain=drain)


def _waited(ask: Ask, timeout: float, meanwhile: Callable[[], None] | None) -> bool:
    """Wait for the answer; return whether it came in time."""
    if meanwhile is None:
        return ask.there.wait(timeout)
    end = time.monotonic() + timeout
    while not ask.there.wait(max(0.0, min(MEANWHILE_SECONDS, end - time.monotonic()))):
        if time.monotonic() >= end:
            return False
        meanwhile()
    return True
