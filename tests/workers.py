"""Worker processes for tests: the real one, the real one with a fault, one on bare pipes."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from recorded import Recorded

from ipymemory import processes
from ipymemory.config import Settings
from ipymemory.starting import worker_command

ONCE = """
import os, signal
from pathlib import Path
def once(name):
    # Whether this is the first process of the test that gets here.
    try:
        os.close(os.open(Path.cwd() / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""

SLOW = """
import asyncio, time
from ipymemory.extractive import ExtractiveModel
complete = ExtractiveModel.complete
async def slow(self, request):
    (Path.cwd() / "in flight").touch()
    {wait}
    return await complete(self, request)
ExtractiveModel.complete = slow
"""
"""A fault: what stands for `wait` happens in the engine, once the file ``in flight`` is there."""


def faulty(code: str) -> list[str]:
    """Return the command of a worker that runs `code` before its ``main``."""
    *start, boot, told = worker_command()
    assert boot.endswith("main()\n")
    return [*start, boot.removesuffix("main()\n") + ONCE + code + "\nmain()\n", told]


def stand_in(code: str) -> list[str]:
    """Return the command of a program that is no worker at all."""
    return [sys.executable, "-I", "-c", code]


def gone(pid: int) -> bool:
    """Return whether that process has ended; who is its parent now may take time to reap it."""
    return processes.identity(pid) is None


class Piped:
    """A worker on two pipes, spoken to line by line."""

    def __init__(self, recorded: Recorded, command: list[str] | None = None, **more: Any) -> None:
        self.recorded = recorded
        self.process = subprocess.Popen(
            command or worker_command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log(),
            cwd=recorded.folder.path,
            **more,
        )
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.reading = threading.Event()
        self.reading.set()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Piped:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()

    def _log(self) -> Any:
        return os.open(self.recorded.folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.put(json.loads(line))
                self.reading.wait()

    def hello(self, **config: Any) -> None:
        project = self.recorded.project
        self.say(
            type="hello",
            session=str(self.recorded.folder.path),
            project={
                "root": str(project.root),
                "key": project.key,
                "folder": str(project.folder),
            },
            settings=Settings.read(config)[0].as_dict(),
            parent=processes.own().as_dict(),
        )
        self.hear("ready")
        self.hear("heard")

    def say(self, **message: Any) -> None:
        self.raw(json.dumps(message).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def hear(self, kind: str, seconds: float = 20.0) -> dict[str, Any]:
        """Return the next message of that kind; what comes before it is passed over."""
        while (message := self.lines.get(timeout=seconds))["type"] != kind:
            pass
        return message

    def ask(self, name: str, **args: Any) -> dict[str, Any]:
        self.say(type="ask", id=7, name=name, args=args)
        return self.hear("reply")

    def eof(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ends(self, seconds: float = 20.0) -> int:
        return self.process.wait(seconds)

    @property
    def log(self) -> str:
        return Path(self.recorded.folder.log).read_text()
