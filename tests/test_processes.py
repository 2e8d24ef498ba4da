"""Which process is meant, also after its end, its zombie, a fork and a new boot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ipymemory import processes
from ipymemory.processes import ProcessIdentity

posix = os.name == "posix"


def python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_this_process_is_alive_and_known_by_the_same_identity_everywhere() -> None:
    me = processes.own()
    assert me.pid == os.getpid()
    assert processes.alive(me)
    assert processes.local(me)
    told = json.dumps(me.as_dict())
    assert ProcessIdentity.from_dict(json.loads(told)) == me
    code = f"""
import json
from ipymemory import processes
from ipymemory.processes import ProcessIdentity
parent = ProcessIdentity.from_dict(json.loads({told!r}))
print(processes.alive(parent), parent == processes.identity(parent.pid), processes.own() == parent)
"""
    assert python(code).split() == ["True", "True", "False"]


def test_an_ended_process_is_not_alive_and_neither_is_a_zombie() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = processes.identity(child.pid)
    assert found is not None and processes.alive(found)
    assert child.stdin is not None
    child.stdin.close()
    if posix:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{child.pid}").exists() or sys.platform != "linux"
        assert not processes.alive(found), "it waits to be reaped"
    child.wait()
    assert not processes.alive(found)
    assert processes.identity(child.pid) is None


@pytest.mark.parametrize(
    "change", [{"pid": 4_000_000}, {"started": 1.0}, {"boot": "another"}, {"host": "elsewhere"}]
)
def test_another_start_boot_or_host_is_another_process(change: dict[str, object]) -> None:
    other = replace(processes.own(), **change)  # type: ignore[arg-type]
    assert not processes.alive(other)
    assert processes.local(other) == ("host" not in change)


def test_a_forked_child_is_a_process_of_its_own() -> None:
    code = """
import os
from ipymemory import processes
parent = processes.own()
child = os.fork()
if child == 0:
    mine = processes.own()
    os._exit(0 if mine.pid == os.getpid() and mine != parent and processes.alive(mine) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code).strip() == "0"


def test_the_start_is_the_one_that_psutil_tells_and_needs_no_psutil() -> None:
    code = """
import sys
from ipymemory import processes
me = processes.own()
assert processes.alive(me)
processes.lower_priority()
assert "psutil" not in sys.modules
print(me.started)
"""
    started = processes.own().started
    assert abs(started + psutil.boot_time() - psutil.Process().create_time()) < 2
    assert float(python(code)) >= started


def test_elsewhere_psutil_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask as on a system without ``/proc``, in a process that has asked nothing yet."""
    code = """
import os
from pathlib import Path
from ipymemory import processes
processes._LINUX = Path("/nowhere/boot_id")
me = processes.own()
import psutil
assert me.started == psutil.Process().create_time()
assert me.boot == f"{psutil.boot_time():.0f}"
assert processes.alive(me)
assert processes.identity(4_000_000) is None
from dataclasses import replace
near, far = (replace(me, boot=str(float(me.boot) - off)) for off in (5, 5000))
assert processes.alive(near) and not processes.alive(far)
print("so it is")
"""
    assert python(code).strip() == "so it is"


@pytest.mark.parametrize(
    "value", [None, 5, [], {}, {"pid": 1}, {"pid": "x", "started": 1, "boot": "", "host": ""}]
)
def test_what_describes_no_process_is_none(value: object) -> None:
    assert ProcessIdentity.from_dict(value) is None


def test_a_process_lets_the_others_go_first() -> None:
    code = "import os; from ipymemory import processes; processes.lower_priority(); "
    assert int(python(code + "print(os.nice(0))")) >= 10


def test_a_terminal_is_told_by_its_shell() -> None:
    code = """
import os, pty, subprocess, sys
ask = "from ipymemory import processes; print('leader', processes.session_leader())"
shell = f"{sys.executable} -c \\"{ask}\\"; {sys.executable} -c \\"{ask}\\"; :"
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", shell])
said = b""
try:
    while got := os.read(terminal, 4096):
        said += got
except OSError:
    pass
lines = [each for each in said.decode().splitlines() if each.startswith("leader")]
assert len(lines) == 2 and lines[0] == lines[1], said
assert f"pid={pid}," in lines[0], said
print("so it is")
"""
    assert python(code).strip() == "so it is"
    assert python("from ipymemory import processes; print(processes.session_leader())") in (
        "None\n", f"{processes.session_leader()}\n",
    )  # fmt: skip
