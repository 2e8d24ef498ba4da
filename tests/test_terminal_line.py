"""The line of a terminal that says what ``docs update`` is doing, as long as it does it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer
from scripted import good
from test_document_files import DOC, notebook, written
from test_dream_terminal import Spawn, seen
from test_dream_terminal import environment as environment
from test_dream_terminal import server as server
from test_dream_terminal import spawn as spawn

from ipymemory import consent, places
from ipymemory.commands.document_pages import working


@pytest.fixture
def work(tmp_path: Path, server: ModelServer) -> Path:
    """A folder with two documents, written by a model that takes its time."""
    work = tmp_path / "work"
    work.mkdir()
    for name in ("a", "b"):
        written(work / f"{name}.ipynb", notebook(DOC.replace("Pipeline", name.upper())))
    (work / "clean.py").write_text("x = 1\n")
    project = places.project_of(work, places.home(str(tmp_path / "home")))
    consent.choose(project, "anthropic", server.host)
    below = "_Keep it short._\n"
    edit = {"path": "document.md", "old_string": below, "new_string": f"{below}\nOne.\n"}
    steps = good(("Read", {"path": "clean.py"}), ("Edit", edit))

    def brain(body: dict[str, Any], number: int) -> Any:
        time.sleep(1.2)
        return steps(body, number)

    server.brain = brain
    return work


def test_the_line_says_which_document_how_far_and_what() -> None:
    assert working({}) == "Looking for living documents"
    assert working({"since": 5.0}, 7.9) == "Looking for living documents · 2 s"
    one = {"title": "Tides", "file": "a.ipynb", "at": 1, "all": 1, "since": 5.0}
    assert working(one, 6.0) == 'Writing "Tides" in a.ipynb · 1 s'
    told = {**one, "all": 1200, "doing": "Reading clean.py"}
    assert working(told, 6.0) == 'Writing "Tides" in a.ipynb · 1 of 1,200 · Reading clean.py · 1 s'


@pytest.mark.terminal
@pytest.mark.spec("A1", "M9")
def test_in_a_terminal_a_line_lives_as_long_as_the_update(work: Path, spawn: Spawn) -> None:
    child = spawn("ipymemory", "docs", "update")
    child.expect_exact('Writing "A" in a.ipynb · 1 of 2 · 1 s')
    child.expect_exact("1 of 2 · Reading clean.py · ")
    child.expect_exact('Writing "B" in b.ipynb · 2 of 2 · ')
    child.expect_exact('"A" is up to date')
    # The line is gone from the screen: its last sign is to clear it.
    assert "\x1b[2K" in child.before
    rest = seen(child.read())
    assert "2 living documents written anew." in rest and "Writing" not in rest


@pytest.mark.terminal
@pytest.mark.spec("M9")
def test_what_is_asked_for_as_json_is_all_that_comes(work: Path, spawn: Spawn) -> None:
    child = spawn("ipymemory", "docs", "update", "--json")
    said = seen(child.read())
    assert [each["changed"] for each in json.loads(said)["documents"]] == [True, True]


@pytest.mark.worker
@pytest.mark.spec("M9")
def test_where_no_terminal_is_nothing_moves(work: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ipymemory", "docs", "update"],
        env=environment,
        cwd=work,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "2 living documents written anew." in done.stdout and not done.stderr
