"""A worker is nobody's child in the kernel: what a cell sees of it, and how its end is known."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from kernels import Kernel, eventually
from recorded import Recorded, until
from workers import faulty, gone, stand_in

from ipymemory import processes, started, starting
from ipymemory.client import Client
from ipymemory.config import Settings

pytestmark = pytest.mark.skipif(os.name == "nt", reason="on Windows nobody waits for all children")

READS = "import sys; sys.stdin.read()"


@pytest.fixture
def recorded(home: Path, tmp_path: Path) -> Recorded:
    return Recorded(home, tmp_path / "work")


# In a kernel.


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel with a worker that has written the first notes."""
    kernel = Kernel(tmp_path)
    kernel.run("import os, psutil, time\nimport ipymemory.restarts as restarts")
    kernel.run("%load_ext ipymemory")
    kernel.run("first = 1")
    eventually(lambda: "first = 1" in kernel.notes(), "notes")
    yield kernel
    kernel.close()
    eventually(lambda: not kernel.workers(), "nothing is left over")


def worker_of(kernel: Kernel) -> int:
    (worker,) = kernel.workers()
    return int(worker.pid)


@pytest.mark.kernel
@pytest.mark.spec("L2")
def test_a_cell_that_waits_for_all_its_children_comes_to_an_end(kernel: Kernel) -> None:
    worker = worker_of(kernel)
    assert kernel.run("print(psutil.Process().children(recursive=True))").text == "[]\n"
    ran = kernel.run(
        "children = {os.spawnlp(os.P_NOWAIT, 'true', 'true') for _ in range(3)}\n"
        "seen = set()\n"
        "while True:\n"
        "    try:\n"
        "        seen.add(os.wait()[0])\n"
        "    except ChildProcessError:\n"
        "        break\n"
        "print(seen == children)"
    )
    assert ran.text == "True\n"
    ran = kernel.run(
        "for each in psutil.Process().children(recursive=True):\n"
        "    each.kill()\n"
        "psutil.wait_procs(psutil.Process().children(recursive=True))"
    )
    assert ran.text == "([], [])\n"
    assert worker_of(kernel) == worker


@pytest.mark.kernel
@pytest.mark.spec("L2")
def test_a_cell_waits_for_its_own_child_also_when_the_worker_ends_meanwhile(
    kernel: Kernel,
) -> None:
    worker = worker_of(kernel)
    ran = kernel.run(
        "restarts.FIRST_WAIT = 0.02\n"
        "import signal\n"
        "told = []\n"
        "signal.signal(signal.SIGCHLD, lambda *rest: told.append(1))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    time.sleep(0.5)\n"
        "    os._exit(7)\n"
        f"os.kill({worker}, signal.SIGKILL)\n"
        "pid, status = os.wait()\n"
        "print(pid == child, os.waitstatus_to_exitcode(status), told)"
    )
    assert ran.text == "True 7 [1]\n"
    assert gone(worker)
    # The next one waited for the end of the cell.
    eventually(kernel.workers, "another one")


@pytest.mark.kernel
@pytest.mark.spec("L2")
def test_the_first_cells_see_nothing_of_the_shell_that_starts_it(tmp_path: Path) -> None:
    """A blocked ``os.wait()`` would return with the shell, though it is reaped at once."""
    kernel = Kernel(tmp_path)
    try:
        kernel.run("%load_ext ipymemory")
        first = kernel.send(
            "import os, signal, time\ntold = []\n"
            "signal.signal(signal.SIGCHLD, lambda *rest: told.append(1))\n"
            "time.sleep(0.5)\nprint(told)"
        )
        others = [
            kernel.send(
                "child = os.fork()\nif child == 0:\n    time.sleep(0.1)\n    os._exit(0)\n"
                "print(os.wait()[0] == child)"
            )
            for _ in range(3)
        ]
        assert kernel.collect(first).text == "[]\n"
        assert [kernel.collect(each).text for each in others] == ["True\n"] * 3
        assert len(kernel.workers()) == 1
    finally:
        kernel.close()


@pytest.mark.kernel
@pytest.mark.spec("L2")
@pytest.mark.parametrize("way", ["SIGKILL", "SIGSTOP"])
def test_one_that_is_killed_or_stopped_is_started_again(kernel: Kernel, way: str) -> None:
    kernel.run("restarts.FIRST_WAIT = 0.02")
    if way == "SIGSTOP":
        # Only then: on a busy machine one that has just begun may take longer to hear.
        kernel.run("restarts.HEARD_SECONDS = 2.0\nrestarts.GRACE_SECONDS = 0.5")
    worker = worker_of(kernel)
    os.kill(worker, getattr(signal, way))
    kernel.run("after = 1")
    eventually(lambda: "after = 1" in kernel.notes(), "the work of another")
    assert gone(worker)
    assert worker not in {each.pid for each in kernel.workers()}
    why = "it ended without a word" if way == "SIGKILL" else "it did not hear for"
    assert why in kernel.run("%memory status").text
    assert kernel.run("print(psutil.Process().children(recursive=True))").text == "[]\n"


@pytest.mark.kernel
@pytest.mark.spec("L5")
def test_a_killed_kernel_leaves_no_worker(kernel: Kernel) -> None:
    worker = worker_of(kernel)
    kernel.run("last = 1")
    kernel.kill()
    eventually(lambda: gone(worker), "the end of the worker")
    assert "last = 1" in kernel.notes()


@pytest.mark.kernel
@pytest.mark.spec("L5", "L11")
def test_a_kernel_that_shuts_down_has_its_worker_finish_first(kernel: Kernel) -> None:
    worker = worker_of(kernel)
    kernel.run("%config SessionNotes.wait_seconds = 3600.0")
    kernel.run("last = 1")
    assert kernel.shutdown() < 2.5
    eventually(lambda: gone(worker), "the end of the worker")
    assert "last = 1" in kernel.notes()


# The shell that starts it.


@pytest.mark.worker
@pytest.mark.spec("L2", "L3")
def test_a_turn_starts_it_when_no_cell_runs_and_a_question_at_once(recorded: Recorded) -> None:
    unseen = starting.Unseen()
    client = Client(recorded.folder, recorded.project, Settings(), unseen=unseen)
    unseen.cell_begins()
    recorded.cell("x = 1")
    client.hint()
    client.hint()
    time.sleep(0.3)
    assert client.state == "not started"
    assert client._sender._patience() is None, "its thread sleeps meanwhile"
    unseen.cell_ended()
    until(lambda: "x = 1" in recorded.notes(), "notes")
    client.close(5.0)
    client = Client(recorded.folder, recorded.project, Settings(), unseen=unseen)
    unseen.cell_begins()
    assert client.ask("ping", 20) == "pong"
    client.close(5.0)


def test_a_cell_that_begins_waits_for_a_start_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(starting, "UNSEEN_SECONDS", 20.0)
    unseen = starting.Unseen()
    unseen.lock.acquire()
    cell = threading.Thread(target=unseen.cell_begins)
    cell.start()
    cell.join(0.2)
    assert cell.is_alive() and unseen.cell_runs
    unseen.lock.release()
    cell.join(20)
    assert not cell.is_alive() and not unseen.lock.locked()
    monkeypatch.setattr(starting, "UNSEEN_SECONDS", 0.05)
    with unseen.moment(asked=True):
        unseen.cell_begins()
        monkeypatch.setattr(starting, "UNSEEN_SECONDS", 20.0)
        begun = time.monotonic()
        unseen.cell_begins()
        assert time.monotonic() - begun < 5
    with pytest.raises(starting.CellRuns), unseen.moment(asked=False):
        pass
    assert not unseen.lock.locked()


USER = """
import json, os, signal, sys, threading, time
sys.path[:0] = json.loads(sys.argv[1])
from pathlib import Path
from ipymemory import started
from ipymemory.client import Client
from ipymemory.config import Settings
from recorded import Recorded, until
recorded = Recorded(Path(sys.argv[2]), Path(sys.argv[3]))
client = Client(recorded.folder, recorded.project, Settings())
"""


@pytest.mark.worker
@pytest.mark.spec("L2")
@pytest.mark.parametrize(
    "user",
    [
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "signal.signal(signal.SIGCHLD, lambda *rest: reap())",
        "wait = started.Process.wait\nstarted.Process.wait = lambda s: (os.wait(), wait(s))[1]",
    ],
    ids=["it ignores all", "its handler reaps all", "it is always first"],
)
def test_user_code_may_reap_the_shell_first(home: Path, tmp_path: Path, user: str) -> None:
    code = f"""
def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: pass
    except ChildProcessError:
        pass
{user}
assert client.ask("ping", 20) == "pong"
recorded.cell("x = 1")
client.hint()
until(lambda: "x = 1" in recorded.notes(), "notes")
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child")
client.close(5.0)
print(client.state, repr(client.last_error))
"""
    tests = Path(__file__).parent
    path = json.dumps([str(tests), str(tests.parent)])
    done = subprocess.run(
        [sys.executable, "-c", USER + code, path, str(home), str(tmp_path / "work")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "no child\nended ''\n"


@pytest.mark.worker
@pytest.mark.parametrize(
    ("script", "instead", "why"),
    [
        ("_LEAVE", "exit 2", "the shell that starts it ended with code 2"),
        ("_LEAVE", "exit 0", "it did not say its number"),
        ("_BEGIN", "exit 0", "it did not say its number"),
        ("_BEGIN", "echo 12x", "it did not say its number"),
        ("_BEGIN", "echo 123456789012345678901234567890", "it did not say its number"),
        ("_BEGIN", "read forever", "it had not begun after 0.2 s"),
    ],
)
def test_a_shell_that_does_not_start_it_is_told(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, script: str, instead: str, why: str
) -> None:
    monkeypatch.setattr(started, "BEGIN_SECONDS", 0.2 if "read" in instead else 20.0)
    monkeypatch.setattr(started, script, instead)
    before = psutil.Process().num_fds()
    with pytest.raises(OSError) as caught:
        starting.start(stand_in(READS), recorded.folder.path, recorded.folder.log)
    assert str(caught.value) == why
    assert psutil.Process().num_fds() == before
    assert not psutil.Process().children()


@pytest.mark.worker
def test_where_it_cannot_be_left_it_is_a_child(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, without a shell, and in a kernel that is process 1 itself."""
    monkeypatch.setattr("ipymemory.restarts.FIRST_WAIT", 0.02)
    monkeypatch.setattr(started, "_SHELL", "/nowhere/sh")
    client = Client(recorded.folder, recorded.project, Settings())
    assert client.ask("ping", 20) == "pong"
    worker = client.worker_pid
    assert [each.pid for each in psutil.Process().children()] == [worker]
    os.kill(worker or 0, signal.SIGKILL)
    until(lambda: client.worker_pid not in (None, worker), "another one")
    assert client.last_error == "it ended with code -9"
    assert client.ask("ping", 20) == "pong"
    client.close(5.0)
    assert client.worker_pid is None
    assert not psutil.Process().children()


def test_what_a_shell_would_lose_is_no_work_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in tuple(os.environ):
        if each.startswith("DYLD_"):
            monkeypatch.delenv(each)
    assert started.can_be_left()
    monkeypatch.setenv("DYLD_LIBRARY_PATH", "/opt/lib")
    assert not started.can_be_left()
    monkeypatch.delenv("DYLD_LIBRARY_PATH")
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert not started.can_be_left()


# How its end is known, and how it is ended.


@pytest.mark.worker
def test_the_end_is_seen_though_a_child_holds_its_pipe(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of the user's does that was forked just when the worker was started."""
    monkeypatch.setattr("ipymemory.restarts.FIRST_WAIT", 0.02)
    holding = recorded.folder.path / "holding"
    holding.touch()
    code = """
import time
if once("died"):
    if os.fork():
        die()
    while (Path.cwd() / "holding").exists():
        time.sleep(0.05)
    os._exit(0)
"""
    client = Client(recorded.folder, recorded.project, Settings(), faulty(code))
    recorded.cell("x = 1")
    client.hint()
    until((recorded.folder.path / "died").exists, "its death")
    until(lambda: client.worker_pid is None, "that it is seen")
    client.hint()
    until(lambda: "x = 1" in recorded.notes(), "the work of another")
    assert client.last_error == "it ended without a word"
    client.close(5.0)
    holding.unlink()


@pytest.mark.worker
def test_another_that_has_its_number_now_is_left_alone() -> None:
    command = [sys.executable, "-c", "input(); print('alive', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        one, other = started.Adopted(child.pid), started.Adopted(child.pid)
        assert one.running
        found: Any = processes.identity(child.pid)
        one._identity = replace(found, started=found.started - 100)
        one.kill()
        one.wait()
        assert not one.running
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"alive\n"
        other.kill()
        assert child.wait(20) == -signal.SIGKILL
    other.wait()
    other.kill()
    assert (other.running, other.code) == (False, None)
