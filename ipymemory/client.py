"""The kernel's end of the worker: hints go out, events and answers come in, nothing blocks.

Two daemon threads: one starts the process and writes to it, one reads from it. A hint costs the
cell a flag and a queue entry; a hint that is not heard yet stands for all that follow, so the
pipe never fills. A worker that dies is started again, each time after a longer wait; one that
does not hear is ended first. The turns are in the transcript: what is lost here is only time.

In a child that user code forked nothing is done and no lock is touched: threads and process
belong to the parent.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import ipymemory
from ipymemory import processes
from ipymemory.config import Settings
from ipymemory.errors import WorkerError
from ipymemory.files import make_folder
from ipymemory.places import Project, SessionFolder

log = logging.getLogger(__name__)

HEARD_SECONDS = 60.0
"""A worker that has not heard a hint for so long hangs: an update holds it for 2 s at most."""

FIRST_WAIT = 1.0
LAST_WAIT = 300.0
"""Seconds until a worker that died is started again: doubled from the first to the last."""

STARTS_AN_HOUR = 20
"""More starts than this are a fault that starting again does not mend."""

LOG_BYTES = 1_000_000
"""The worker's log begins anew when it is longer."""

MOST_LINE = 1_000_000
"""Bytes of one line from the worker; what is longer is rubbish."""

_BOOT = (
    "import json, sys; "
    "sys.path += [p for p in json.loads(sys.argv[1]) if p not in sys.path]; "
    "from ipymemory.worker import main; main()"
)

_HINT, _BYE = "hint", "bye"


class Client:
    """One worker for one session, from the first `hint` to `close`."""

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        settings: Settings,
        command: Sequence[str] | None = None,
    ) -> None:
        self.events: deque[dict[str, Any]] = deque(maxlen=200)
        """The newest events of jobs, as `Event.as_dict` gives them."""
        self.garbage = 0
        """Lines from the worker that were no message."""
        self.last_error = ""
        self._folder = folder
        self._project = project
        self._settings = settings
        self._command = list(command) if command is not None else worker_command()
        self._pid = os.getpid()
        self._queue: queue.SimpleQueue[str | dict[str, Any]] = queue.SimpleQueue()
        self._hinted = False
        self._sender: threading.Thread | None = None
        self._reader: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False
        self._closing = False
        self._failing = False
        self._hung = False
        self._unheard: float | None = None
        self._failures = 0
        self._not_before = 0.0
        self._starts: deque[float] = deque(maxlen=STARTS_AN_HOUR)
        self._asked = 0
        self._waiting: dict[int, _Answer] = {}

    @property
    def state(self) -> str:
        """``not started``, ``running``, ``ended`` (it will be started again) or ``failing``."""
        process = self._process
        if process is not None and process.poll() is None:
            return "running"
        if self._failing:
            return "failing"
        return "ended" if self._starts else "not started"

    @property
    def worker_pid(self) -> int | None:
        """The process id of the worker while it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def hint(self) -> None:
        """Let the worker know that there is something new in the transcript. Never blocks."""
        if os.getpid() != self._pid or self._closing or self._hinted:
            return
        self._hinted = True
        self._queue.put(_HINT)
        if self._sender is None:
            self._sender = _thread(self._send_all, "ipymemory-sender")

    def configure(self, settings: Settings) -> None:
        """Use `settings` in the worker from its next run on."""
        self._settings = settings
        if os.getpid() == self._pid and self._sender is not None and not self._closing:
            self._queue.put({"type": "settings", "settings": settings.as_dict()})

    def ask(self, name: str, timeout: float, **arguments: Any) -> Any:
        """Ask the worker, which is started if need be, and wait at most `timeout` seconds.

        Raises `WorkerError` when it cannot answer or does not in time.
        """
        if os.getpid() != self._pid or self._closing:
            raise WorkerError("The worker of this session is closed. Load the extension again.")
        answer = _Answer()
        self._asked += 1
        number = self._asked
        self._waiting[number] = answer
        try:
            self.hint()
            self._queue.put({"type": "ask", "id": number, "name": name, "args": arguments})
            if not answer.there.wait(timeout):
                why = f" ({self.last_error})" if self.last_error else ""
                raise WorkerError(
                    f"The worker has not answered for {timeout:g} s{why}. Try again, or see "
                    f"{self._folder.log}."
                )
        finally:
            self._waiting.pop(number, None)
        if answer.error:
            raise WorkerError(answer.error)
        return answer.value

    def close(self, timeout: float = 1.0, *, drain: bool = True) -> None:
        """Say goodbye; return when the worker is gone or after `timeout` seconds.

        A worker that has something in flight then goes on for `Engine.drain_seconds` at most and
        ends by itself. Without `drain` it is ended.
        """
        if os.getpid() != self._pid or self._closing:
            return
        self._closing = True
        end = time.monotonic() + timeout
        self._queue.put(_BYE)
        for thread in (self._sender, self._reader):
            if thread is not None:
                thread.join(max(0.0, end - time.monotonic()))
        process = self._process
        if not drain and process is not None and process.poll() is None:
            with contextlib.suppress(OSError):
                process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout)

    # The sender's thread.

    def _send_all(self) -> None:
        while True:
            try:
                message = self._queue.get(timeout=self._patience())
            except queue.Empty:
                message = None
            try:
                if message == _BYE:
                    self._goodbye()
                    return
                self._send_one(message)
            except Exception as error:
                log.exception("the worker was not reached")
                self._failed(f"{type(error).__name__}: {error}")

    def _patience(self) -> float | None:
        """Return the seconds to wait for a message; None, for ever, when nothing is open."""
        now = time.monotonic()
        if self._unheard is not None:
            return max(0.05, self._unheard + HEARD_SECONDS - now)
        if self._hinted and self._not_before > now:
            return self._not_before - now
        return None

    def _send_one(self, message: str | dict[str, Any] | None) -> None:
        process = self._process
        if process is not None and process.poll() is None and self._hangs():
            self._hung = True
            self._failed(f"it did not hear for {HEARD_SECONDS:g} s and was ended")
            process.kill()
            return
        if self._hinted and self._unheard is None:
            if not self._running():
                self._give_up_waiting(message)
                return
            # Before the worker reads: what is recorded from now on needs a hint of its own.
            self._hinted = False
            self._unheard = time.monotonic()
            self._write({"type": "turn"})
        if isinstance(message, dict) and (message["type"] == "ask" or self._process is not None):
            if self._running():
                self._write(message)
            else:
                self._give_up_waiting(message)

    def _give_up_waiting(self, message: str | dict[str, Any] | None) -> None:
        if isinstance(message, dict) and message["type"] == "ask":
            why = self.last_error or "it is started again in a moment"
            self._answer(message["id"], error=f"The worker does not run: {why}. Try again.")

    def _hangs(self) -> bool:
        return self._unheard is not None and time.monotonic() - self._unheard >= HEARD_SECONDS

    def _running(self) -> bool:
        """Return whether there is a worker; start one where none runs and it is time."""
        process = self._process
        if process is not None and process.poll() is None:
            return True
        now = time.monotonic()
        if now < self._not_before:
            return False
        if len(self._starts) == STARTS_AN_HOUR and now - self._starts[0] < 3600:
            self._not_before = self._starts[0] + 3600
            self._failing = True
            self.last_error = f"it ended {STARTS_AN_HOUR} times within an hour; see the log"
            return False
        self._start(now)
        return self._process is not None

    def _start(self, now: float) -> None:
        self._starts.append(now)
        self._ready = self._hung = False
        self._unheard = None
        try:
            make_folder(self._folder.path)
            with self._log_file() as errors:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=self._folder.path,
                    **_apart(),
                )
        except (OSError, ValueError) as error:
            self._process = None
            self._failed(f"it could not be started: {error}")
            return
        self._write(self._hello())
        process = self._process
        self._reader = _thread(lambda: self._read_all(process), "ipymemory-reader")

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
            "settings": self._settings.as_dict(),
            "parent": processes.own().as_dict(),
        }

    def _log_file(self) -> IO[bytes]:
        path = self._folder.log
        anew = path.exists() and path.stat().st_size > LOG_BYTES
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if anew else os.O_APPEND)
        return os.fdopen(os.open(path, flags, 0o600), "ab")

    def _write(self, message: Mapping[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        # A worker that just died is seen by the reader.
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write(json.dumps(message, default=str).encode() + b"\n")
            process.stdin.flush()

    def _goodbye(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            self._write({"type": "bye"})
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()

    def _failed(self, why: str) -> None:
        self.last_error = why
        self._failing = True
        self._not_before = time.monotonic() + min(FIRST_WAIT * 2**self._failures, LAST_WAIT)
        self._failures += 1

    # The reader's thread, one a process.

    def _read_all(self, process: subprocess.Popen[bytes]) -> None:
        try:
            self._read_lines(process)
            code = process.wait()
        except Exception:
            log.exception("the worker's answers could not be read")
            code = -1
        for stream in (process.stdout, process.stdin):
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.close()
        if self._process is not process:
            return
        lost, self._unheard = self._unheard is not None, None
        for number in tuple(self._waiting):
            self._answer(number, error="The worker ended before it answered. Try again.")
        if code != 0 and not self._hung:
            self._failed(f"it ended with code {code}")
        if (code != 0 or lost) and not self._closing:
            # What it left undone is taken up by the next one, without waiting for a turn.
            self._hinted = True
            self._queue.put(_HINT)

    def _read_lines(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        while line := process.stdout.readline(MOST_LINE):
            try:
                message = json.loads(line)
                kind = message["type"]
            except (ValueError, KeyError, TypeError, RecursionError):
                self.garbage += 1
                continue
            if kind == "ready":
                self._ready, self._failing = True, False
            elif kind == "heard":
                self._unheard = None
                self._failures = 0
                if self._hinted:
                    self._queue.put(_HINT)
            elif kind == "event" and isinstance(message.get("event"), dict):
                self.events.append(message["event"])
            elif kind == "reply":
                error = "" if message.get("ok") else str(message.get("error") or "it failed")
                self._answer(message.get("id"), message.get("value"), error)
            else:
                self.garbage += 1

    def _answer(self, number: object, value: Any = None, error: str = "") -> None:
        answer = self._waiting.get(number) if isinstance(number, int) else None
        if answer is not None:
            answer.value, answer.error = value, error
            answer.there.set()


class _Answer:
    """What an `ask` waits for."""

    __slots__ = ("error", "there", "value")

    def __init__(self) -> None:
        self.there = threading.Event()
        self.value: Any = None
        self.error = ""


def worker_command() -> list[str]:
    """Return the command that starts a worker.

    ``-I`` leaves out the working folder, PYTHONPATH and the user's site folder: a ``json.py``
    beside a notebook must not be imported. The folders that packages were installed into, and
    the one that holds this package, are put behind the rest, where they hide nothing.
    """
    folders = [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]
    folders.append(str(Path(ipymemory.__file__).resolve().parent.parent))
    return [sys.executable, "-I", "-c", _BOOT, json.dumps(folders)]


def _apart() -> dict[str, Any]:
    """Return what keeps the worker out of the kernel's signals and its window.

    A process left in the kernel's group makes its shutdown take seconds. Never ``preexec_fn``:
    it forks the memory of the user.
    """
    if sys.platform == "win32":
        flags = (
            subprocess.CREATE_NEW_PROCESS_GROUP
            | subprocess.CREATE_NO_WINDOW
            | subprocess.BELOW_NORMAL_PRIORITY_CLASS
        )
        return {"creationflags": flags}
    return {"start_new_session": True}


def _thread(target: Any, name: str) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True, name=name)
    # As ipykernel marks its own: a debugger must not stop in them.
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    thread.start()
    return thread
