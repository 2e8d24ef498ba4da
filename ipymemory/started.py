"""A program that was started: whether it runs, how it ended, and how to end it.

Where that can be had it is no child of this process. ``os.wait()`` in a cell waits for every child
there is, and who ends all of ``psutil.Process().children()`` means those of the notebook. So a
shell starts it in the background and leaves at once, and the system gives it another parent, most
often process 1. The shell itself is our child for a millisecond: `starting.Unseen` sees to it that
no cell runs meanwhile. Only a thread of the user's that waits for all children at rest, or during
a question that the page asks, may still be told of it.

Only a parent is told an exit code: a worker says it as its last word, and of one that ended without
it no more is known. Its pipe may be held open by a child that user code forked, and its number may
be another's by now; so which process it is tells its identity.

In a container whose process 1 reaps nobody, one that ended stays a zombie there, with a number and
nothing else. Against that there is only a parent that waits, and that would be a child of ours.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ipymemory import descriptors, processes

log = logging.getLogger(__name__)

BEGIN_SECONDS = 10.0
"""What a program gets until it has said its number: one call of the shell."""

_SHELL = "/bin/sh"

# A background command of a shell reads from nowhere unless it is told from where.
_LEAVE = 'exec 3<&0; "$@" <&3 3<&- &'

_BEGIN = 'echo $$ && exec "$@"'

_LONGEST_NUMBER = 20
_FIRST_LOOK, _LAST_LOOK = 0.001, 0.25
"""Seconds between two looks at one whose pipe has ended, as its life has or is about to."""


class Process(subprocess.Popen[bytes]):
    """A process that may outlive this one."""

    def __del__(self, *rest: Any) -> None:
        """Say nothing of a process that still runs, also in a child that user code forked."""


class Started(ABC):
    """A program that was started."""

    pid: int

    said: int | None = None
    """The exit code that it said it leaves with; set by who reads what it says."""

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether it runs; a zombie does not."""

    @property
    @abstractmethod
    def code(self) -> int | None:
        """What it ended with, None where nobody knows."""

    @abstractmethod
    def wait(self) -> None:
        """Return when it has ended."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once, also one that was stopped; nothing happens when it is gone."""


class Child(Started):
    """One that this process is the parent of, and reaps."""

    def __init__(self, process: Process) -> None:
        self.pid = process.pid
        self._process = process

    @property
    def running(self) -> bool:
        """Whether it runs; a zombie does not."""
        return self._process.poll() is None

    @property
    def code(self) -> int | None:
        """What it ended with, None while it runs."""
        return self._process.poll()

    def wait(self) -> None:
        """Return when it has ended and is reaped."""
        self._process.wait()

    def kill(self) -> None:
        """End it at once, also one that was stopped; nothing happens when it is gone."""
        try:
            self._process.kill()
        except (OSError, subprocess.SubprocessError):
            log.warning("the worker %d could not be ended", self.pid)


class Adopted(Started):
    """One that another process is the parent of."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._identity = processes.identity(pid)

    @property
    def running(self) -> bool:
        """Whether it runs; a zombie does not."""
        identity = self._identity
        if identity is None:
            return False
        if processes.alive(identity):
            return True
        self._identity = None
        return False

    @property
    def code(self) -> int | None:
        """What it said it leaves with, None where it ended without a word."""
        return self.said

    def wait(self) -> None:
        """Return when it has ended."""
        pause = _FIRST_LOOK
        while self.running:
            time.sleep(pause)
            pause = min(2 * pause, _LAST_LOOK)

    def kill(self) -> None:
        """End it at once, also one that was stopped; nothing happens when it is gone."""
        try:
            if self.running:
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        except OSError:
            log.warning("the worker %d could not be ended", self.pid)


def can_be_left() -> bool:
    """Return whether a program can be started so that it is no child of this process.

    Process 1 is given back what it left. macOS takes from a shell the variables that tell a
    program where its libraries are.
    """
    return (
        os.name != "nt"
        and os.getpid() != 1
        and os.access(_SHELL, os.X_OK)
        and not any(each.startswith("DYLD_") for each in os.environ)
    )


def left(command: Sequence[str]) -> list[str]:
    """Return the command of a shell that starts `command` and leaves it.

    `command` first writes its number as a line, so that it is known before it can go wrong.
    Raises `OSError` where there is no such program, which a shell would tell nobody.
    """
    if shutil.which(command[0]) is None:
        raise OSError(f"{command[0]} is not there or cannot be run")
    return [_SHELL, "-c", _LEAVE, "sh", _SHELL, "-c", _BEGIN, "sh", *command]


def adopted(shell: int, source: int) -> Adopted:
    """Return the program that wrote its number to the pipe `source`.

    `shell` is what the shell that started it ended with. Raises `OSError` where there is none.
    """
    if shell != 0:
        raise OSError(f"the shell that starts it ended with code {shell}")
    return Adopted(_number(source))


def _number(source: int) -> int:
    """Return the number that comes first on the pipe, and take no byte more."""
    until, line = time.monotonic() + BEGIN_SECONDS, b""
    os.set_blocking(source, False)
    while not line.endswith(b"\n"):
        try:
            byte = descriptors.read(source, 1)
        except BlockingIOError:
            if time.monotonic() > until:
                raise OSError(f"it had not begun after {BEGIN_SECONDS:g} s") from None
            time.sleep(_FIRST_LOOK)
            continue
        if not byte or len(line) == _LONGEST_NUMBER:
            raise OSError("it did not say its number")
        line += byte
    os.set_blocking(source, True)
    if not line.strip().isdigit():
        raise OSError("it did not say its number")
    return int(line)
