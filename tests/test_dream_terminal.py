"""A dream watched in a terminal: one line that lives as long as it does; Ctrl-C ends it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dream_set
import pytest
from kernels import ROOT, eventually
from model_server import Fault, ModelServer

from ipymemory import consent, places
from ipymemory.config import Settings
from ipymemory.dream_line import line
from ipymemory.memory_files import opened
from ipymemory.places import Project

Spawn = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda body, number: "Nothing is to be done.") as server:
        yield server


@pytest.fixture
def environment(tmp_path: Path, server: ModelServer) -> dict[str, str]:
    return {
        **os.environ,
        **server.environment(),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "IPYMEMORY_HOME": str(tmp_path / "home"),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "jupyter"),
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm-256color",
        "COLUMNS": "200",
    }


@pytest.fixture
def spawn(tmp_path: Path, environment: dict[str, str]) -> Iterator[Spawn]:
    import pexpect  # there is none on Windows, and no pseudo-terminal

    started = []

    def start(*words: str) -> Any:
        started.append(
            pexpect.spawn(
                sys.executable,
                ["-m", *words],
                env=environment,
                cwd=str(tmp_path / "work"),
                encoding="utf-8",
                dimensions=(40, 200),
                timeout=60,
            )
        )
        return started[-1]

    yield start
    for each in started:
        each.close(force=True)


@pytest.fixture
def project(tmp_path: Path, server: ModelServer) -> Project:
    root = tmp_path / "work"
    root.mkdir()
    project = places.project_of(root, places.home(str(tmp_path / "home")))
    dream_set.fill(opened(project, Settings()).folder, root, 20)
    consent.choose(project, "anthropic", server.host)
    return project


def texts(project: Project) -> dict[str, bytes]:
    folder = opened(project, Settings()).folder
    return {each.name: each.read_bytes() for each in folder.glob("*-*.md")}


def seen(text: str) -> str:
    """Return what came, without colours and moves."""
    return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text).replace("\r", "")


def state(project: Project) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.folder / "dream" / "state.json").read_text())
    return found


@pytest.mark.spec("D6", "L12")
def test_the_line_holds_counts() -> None:
    told = {
        "step": "consolidate", "started": "2026-11-27T10:00:00Z", "memories": 1234, "sessions": 6,
        "reviewed": 1, "files": 1, "turns": 3, "calls": 1, "tokens": 5000, "usd": 0.0042,
        "run": "r", "error": "no word of it",
    }  # fmt: skip
    from datetime import UTC, datetime

    assert line(told, datetime(2026, 11, 27, 10, 1, 5, tzinfo=UTC)) == (
        "A dream tidies the memories: it brings together what belongs together · 1,234 memories · "
        "1 of 6 sessions reviewed · 1 file written · 3 turns · 1 tool call · 5,000 tokens · "
        "0.0042 $ · 65 s"
    )
    assert (
        line({"sessions": 1}) == "A dream tidies the memories: it begins · 1 session since the last"
    )
    odd = {"started": "soon", "memories": "many", "usd": "dear", "files": True, "step": ["x"]}
    assert line(odd) == "A dream tidies the memories: it begins"


@pytest.mark.terminal
@pytest.mark.spec("D6", "D7")
def test_on_the_command_line_a_line_lives_as_long_as_the_dream(
    project: Project, spawn: Spawn, server: ModelServer
) -> None:
    def brain(body: dict[str, Any], number: int) -> Any:
        time.sleep(2.5)
        return "Nothing is to be done."

    server.brain = brain
    child = spawn("ipymemory", "dream")
    child.expect("brings together .* 20 memories .* 1 s")
    child.expect("· 2 s")
    child.expect("memories looked through")
    # The line is gone from the screen: its last sign is to clear it.
    assert "\x1b[2K" in child.before
    rest = seen(child.read())
    assert "said again what another" in rest and "A dream tidies" not in rest


@pytest.mark.terminal
@pytest.mark.spec("D6")
def test_in_terminal_ipython_control_c_ends_the_dream(
    project: Project, spawn: Spawn, server: ModelServer
) -> None:
    before = texts(project)
    child = spawn("IPython", "--no-banner", "--simple-prompt", "--colors=NoColor")
    for number, each in enumerate(("%load_ext ipymemory", "x = 1"), 1):
        child.expect_exact(f"In [{number}]: ")
        child.sendline(each)
    child.expect_exact("In [3]: ")
    server.faults = [Fault("hang")]
    child.sendline("%memory dream --now")
    child.expect("A dream tidies the memories: it brings together.*20 memories")
    child.expect("· 2 s")
    eventually(lambda: server.requests, "the model is asked")
    began = time.monotonic()
    child.sendintr()
    child.expect_exact("In [4]: ")
    assert time.monotonic() - began < 2
    said = seen(child.before)
    assert "The dream was ended. The memories are as they were." in said
    assert "Traceback" not in said
    assert child.before.rindex("\x1b[?25h") >= 0, "the cursor is shown again"
    assert state(project)["status"] == "killed" and texts(project) == before
    child.sendline("%memory dream --now")
    child.expect("memories looked through")
    child.expect_exact("In [5]: ")
    child.sendline("%memory undo")
    child.expect("Undone: dream")
    assert texts(project) == before


@pytest.mark.worker
@pytest.mark.spec("D6")
def test_where_no_terminal_is_nothing_moves(project: Project, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ipymemory", "dream", "--json"],
        env=environment,
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout)["status"] == "done" and not done.stderr
