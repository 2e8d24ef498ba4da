"""`ipymemory.open`: what a program reads of a project, without IPython and without writing."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import ipymemory
from ipymemory import processes
from ipymemory.errors import CommandError
from ipymemory.places import project_of
from ipymemory.project import update_notes
from ipymemory.sessions import Identity, claim
from ipymemory.transcript import TranscriptWriter
from ipymemory.turns import new_id, utc_now


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work" / "deep"
    folder.mkdir(parents=True)
    (folder.parent / ".git").mkdir()
    (folder.parent / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "jupyter"))
    return folder


def record(work: Path, source: str, *, live: bool = False) -> None:
    """Record one cell of a session of its own; its kernel is dead unless `live`."""
    project = project_of(work, Path(os.environ["IPYMEMORY_HOME"]))
    kernel = processes.own() if live else replace(processes.own(), pid=2**22 + 3)
    notebook = Identity(work / f"{new_id()}.ipynb", None, "", terminal=False)
    folder = claim(project, notebook, datetime.now(UTC), kernel).folder
    writer = TranscriptWriter(folder, folder.id)
    turn = {"id": new_id(), "time": utc_now()}
    writer.append({"type": "cell", **turn, "kernel": 1, "source": source})
    end = {"execution_count": 1, "status": "ok", "duration_ms": 1.0}
    writer.append({"type": "end", **turn, **end})
    writer.append({"type": "outputs", **turn, "outputs": [], "names": []})
    writer.close()


def test_a_project_nobody_worked_in_is_empty_and_stays_so(work: Path, home: Path) -> None:
    project = ipymemory.open(work)
    assert project.root == work.parent
    assert list(project.sessions) == []
    assert project.sessions.latest() is None
    assert not home.exists()


def test_the_latest_sessions_notes_by_section(work: Path) -> None:
    record(work, "first = 1")
    record(work, "second = 2")
    project = ipymemory.open(work / "some.ipynb")
    session = project.sessions.latest()
    assert session is not None
    assert session.notes.text == ""
    assert session.notes.section("Current State") is None
    update_notes(session.folder, project.place, project.settings)
    section = session.notes.section("current state")
    assert section is not None
    assert section.name == "Current State"
    assert "second = 2" in session.notes.text
    assert len(session.notes.sections) == 10
    assert session.notes._repr_markdown_() == session.notes.text
    assert [each.id for each in project.sessions] == sorted(
        (each.id for each in project.sessions), reverse=True
    )


def test_a_kernel_that_lives_keeps_its_notes_itself(work: Path) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from pathlib import Path\n"
        "from test_project import record\n"
        "record(Path(sys.argv[3]), 'x = 1', live=True)\n"
        "print(flush=True); input()"
    )
    top = Path(__file__).parent
    kernel = subprocess.Popen(
        [sys.executable, "-c", code, str(top.parent), str(top), str(work)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert kernel.stdout is not None
        kernel.stdout.readline()
        project = ipymemory.open(work)
        session = project.sessions.latest()
        assert session is not None
        with pytest.raises(CommandError, match="A running kernel keeps these notes itself"):
            update_notes(session.folder, project.place, project.settings)
    finally:
        kernel.communicate(b"\n")


def test_ipython_is_not_needed(work: Path) -> None:
    record(work, "x = 1")
    code = (
        "import sys, ipymemory; session = ipymemory.open(sys.argv[1]).sessions.latest(); "
        "print(session.notes.section('Worklog'), 'IPython' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(work)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "None False\n"
