"""Real kernels for tests: started, run, interrupted and killed, each in a home of its own."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Ran:
    """What a client saw of one request: its messages and the reply."""

    reply: dict[str, Any]
    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The streams, and the plain text of results and displays."""
        return "".join(
            content["text"] if kind == "stream" else content["data"].get("text/plain", "") + "\n"
            for kind, content in self.messages
            if kind in ("stream", "execute_result", "display_data")
        )

    @property
    def markdown(self) -> str:
        """What was displayed as Markdown."""
        return "\n".join(
            content["data"]["text/markdown"]
            for kind, content in self.messages
            if kind == "display_data" and "text/markdown" in content["data"]
        )

    @property
    def kinds(self) -> list[str]:
        """The kinds of messages in order."""
        return [kind for kind, _ in self.messages]


class Kernel:
    """One real kernel that works on ``<folder>/work/<notebook>``, with home and all in `folder`."""

    def __init__(
        self,
        folder: Path,
        notebook: str | None = "clean.ipynb",
        *,
        env: dict[str, str] | None = None,
        connection: Path | None = None,
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True, parents=True)
        self.manager = KernelManager()
        if connection is not None:
            self.manager.connection_file = str(connection)
        self.manager._kernel_spec = KernelSpec(
            argv=[
                sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}",
                "--HistoryManager.hist_file=:memory:",
            ],
            display_name="test",
            language="python",
        )  # fmt: skip
        self.env = {
            **os.environ,
            "HOME": str(folder),
            "USERPROFILE": str(folder),
            "IPYTHONDIR": str(folder / "ipython"),
            "IPYMEMORY_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "default",
        }
        self.env.pop("JPY_SESSION_NAME", None)
        if notebook is not None:
            path = self.work / notebook
            if not path.exists():
                path.write_text(
                    json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
                )
            self.env["JPY_SESSION_NAME"] = str(path)
        self.env.update(env or {})
        self._start()

    def _start(self) -> None:
        self.manager.start_kernel(env=self.env, cwd=str(self.work))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    @property
    def pid(self) -> int:
        """The kernel's process id."""
        return int(self.manager.provisioner.pid)

    def workers(self) -> list[psutil.Process]:
        """Return the workers that run for its home: no children of its, but at work in there."""
        home, found = self.home.resolve(), []
        for each in psutil.process_iter(["cwd", "status"]):
            cwd = each.info["cwd"]
            dead = each.info["status"] == psutil.STATUS_ZOMBIE
            if cwd and not dead and Path(cwd).resolve().is_relative_to(home):
                found.append(each)
        return found

    def send(self, code: str, *, cell_id: str | None = None, **options: Any) -> str:
        """Send a cell to run; return the request's id."""
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
            **options,
        }
        message = self.client.session.msg("execute_request", content)
        message["metadata"] = {"cellId": cell_id} if cell_id else {}
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def collect(self, request: str, timeout: float = 60) -> Ran:
        """Return what came of a request, once it is idle and answered."""
        ran = Ran({})
        end = time.monotonic() + timeout
        while True:
            message = self.client.get_iopub_msg(timeout=max(0.01, end - time.monotonic()))
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status":
                if content["execution_state"] == "idle":
                    break
            elif kind != "execute_input":
                ran.messages.append((kind, content))
        while True:
            reply = self.client.get_shell_msg(timeout=max(1.0, end - time.monotonic()))
            if reply["parent_header"].get("msg_id") == request:
                ran.reply = reply["content"]
                return ran

    def when(self, request: str, fits: Callable[[str], bool]) -> float:
        """Return the time at which a message of `request` came whose content fits."""
        while True:
            message = self.client.get_iopub_msg(timeout=30)
            ours = message["parent_header"].get("msg_id") == request
            if ours and fits(str(message["content"])):
                return time.time()

    def run(
        self, code: str, *, timeout: float = 60, answer: str | None = None, **options: Any
    ) -> Ran:
        """Run a cell and return what came of it; `answer` is typed when it asks for input."""
        request = self.send(code, allow_stdin=answer is not None, **options)
        if answer is not None:
            asked = self.client.get_stdin_msg(timeout=timeout)
            assert asked["msg_type"] == "input_request", asked
            self.client.input(answer)
        return self.collect(request, timeout)

    def interrupt(self) -> None:
        """Interrupt the cell that runs, as the stop button does."""
        self.manager.interrupt_kernel()

    def restart(self) -> None:
        """Restart the kernel as a frontend does: the same connection file, a new process."""
        self.manager.restart_kernel(now=False)
        self.client.wait_for_ready(timeout=60)

    def kill(self) -> None:
        """Kill the kernel with SIGKILL and wait until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        eventually(lambda: not self.manager.is_alive(), "the kernel is gone")

    def shutdown(self) -> float:
        """Shut the kernel down as a frontend does; return the seconds it took."""
        began = time.monotonic()
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=False)
        return time.monotonic() - began

    def close(self) -> None:
        """End it, whatever state it is in."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.context.destroy(linger=0)

    # What it left on disk.

    @property
    def sessions(self) -> list[Path]:
        """The folders of its home's sessions, the oldest first."""
        return sorted(self.home.glob("projects/*/sessions/*"))

    def lines(self, session: int = -1) -> list[dict[str, Any]]:
        """Return the lines of a session's transcript; none when there is none."""
        sessions = self.sessions
        if not sessions or not (sessions[session] / "transcript.jsonl").exists():
            return []
        data = (sessions[session] / "transcript.jsonl").read_bytes()
        return [json.loads(line) for line in data.split(b"\n") if line]

    def cells(self, session: int = -1) -> list[dict[str, Any]]:
        """Return one dict a recorded cell: its ``cell``, ``end`` and ``outputs`` put together."""
        found: dict[str, dict[str, Any]] = {}
        for line in self.lines(session):
            if line["type"] in ("cell", "end", "outputs"):
                cell = found.setdefault(line["id"], {"lines": []})
                cell["lines"].append(line["type"])
                if line.get("late"):
                    cell.setdefault("late", []).extend(line["outputs"])
                else:
                    cell.update(
                        {k: v for k, v in line.items() if k != "error" or isinstance(v, dict)}
                    )
                    if line["type"] == "end":
                        cell["error_name"] = line.get("error")
        return list(found.values())

    def recorded(self, source: str, session: int = -1) -> dict[str, Any]:
        """Return the recorded cell with this source, once its outputs are there."""

        def found() -> list[dict[str, Any]]:
            return [
                each
                for each in self.cells(session)
                if each.get("source") == source and "outputs" in each["lines"]
            ]

        eventually(found, f"the cell {source!r} is on record")
        return found()[-1]

    def notes(self, session: int = -1) -> str:
        """Return the notes of a session, or nothing."""
        sessions = self.sessions
        path = sessions[session] / "notes.md" if sessions else None
        return path.read_text("utf-8") if path is not None and path.exists() else ""


def eventually(true: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    """Wait until `true()` is, at most `seconds`; fails with `what` when it never is."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


def texts(cell: dict[str, Any]) -> str:
    """Return the text of all outputs of a recorded cell."""
    return "".join(each["text"] for each in cell["outputs"])
