"""The session's state: what is due, what runs, what is remembered, on real files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ipymemory import lines, places, processes, sessions
from ipymemory.config import Settings
from ipymemory.extractive import ExtractiveModel
from ipymemory.models import Reply, Request
from ipymemory.places import Project, SessionFolder
from ipymemory.session import FIRST_RETRY, MemorySession
from ipymemory.transcript import TranscriptWriter
from ipymemory.turns import new_id, utc_now


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Slow:
    """The extractive engine, but each answer waits until it is let go."""

    name = "extractive"

    def __init__(self) -> None:
        self.asked = 0
        self.at_once = 0
        self.most_at_once = 0
        self.let_go = asyncio.Event()
        self._engine = ExtractiveModel()

    async def complete(self, request: Request) -> Reply:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.let_go.wait()
        self.at_once -= 1
        return await self._engine.complete(request)


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Project:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4}')
    return places.project_of(work / "a.ipynb", home)


def claim(project: Project, name: str = "a.ipynb") -> SessionFolder:
    notebook = project.root / name
    who = sessions.Identity(notebook, None, f"{name}.json", False)
    return sessions.claim(project, who, datetime.now(UTC), processes.own()).folder


@pytest.fixture
def folder(project: Project) -> SessionFolder:
    return claim(project)


@pytest.fixture
def cell(folder: SessionFolder) -> Iterator[Callable[..., str]]:
    writer = TranscriptWriter(folder, folder.id)
    count = 0

    def add(source: str, *, ends: bool = True) -> str:
        nonlocal count
        count += 1
        id = new_id()
        writer.append(
            {"type": "cell", "id": id, "time": utc_now(), "kernel": 1, "cell_id": f"c{count}",
             "source": source}
        )  # fmt: skip
        if ends:
            writer.append(
                {"type": "end", "id": id, "execution_count": count, "status": "ok",
                 "duration_ms": 1.0}
            )  # fmt: skip
            writer.append({"type": "outputs", "id": id, "outputs": [], "error": None, "names": []})
        return id

    yield add
    writer.close()


def session(folder: SessionFolder, project: Project, **options: object) -> MemorySession:
    return MemorySession(folder, project, Settings(), **options)  # type: ignore[arg-type]


def test_a_turn_is_due_a_second_after_the_kernel_came_to_rest(
    folder: SessionFolder, project: Project, cell: Callable[..., str]
) -> None:
    clock = Clock()
    own = session(folder, project, clock=clock)
    assert own.due() is None
    running = cell("x = 1", ends=False)
    own.observe()
    assert own.due() is None
    assert own.gate().reason == "a cell is running"
    cell("y = 2")
    assert running
    own.observe()
    # The first cell has no end, the newest has: the kernel is at rest.
    assert own.due() == pytest.approx(1.0)
    clock.now += 0.4
    assert own.due() == pytest.approx(0.6)
    assert "less than 1 s" in own.gate().reason
    clock.now += 0.7
    assert own.due() == 0.0
    outcome = asyncio.run(own.run_due())  # type: ignore[arg-type]
    assert outcome is not None
    assert outcome.status == "done"
    assert "`y" in folder.notes.read_text("utf-8") or "y = 2" in folder.notes.read_text("utf-8")
    assert own.due() is None
    assert own.gate().reason == "the notes cover every turn"
    assert own.status()["services"]["notes"]["success"]


@pytest.mark.spec("S6")
def test_updates_never_overlap_and_requests_collapse(
    folder: SessionFolder, project: Project, cell: Callable[..., str]
) -> None:
    async def run() -> None:
        engine = Slow()
        own = session(folder, project, model=engine)
        cell("first = 1")
        one = asyncio.create_task(own.update_notes())
        while not engine.asked:
            await asyncio.sleep(0)
        cell("second = 2")
        others = [asyncio.create_task(own.update_notes()) for _ in range(50)]
        await asyncio.sleep(0.01)
        assert engine.asked == 1
        engine.let_go.set()
        outcomes = await asyncio.gather(one, *others)
        assert engine.most_at_once == 1
        assert len({outcome.run for outcome in outcomes}) == 2
        assert "second" in folder.notes.read_text("utf-8")
        assert not own.running

    asyncio.run(run())


@pytest.mark.spec("S4")
def test_numbers_change_while_the_session_runs(
    folder: SessionFolder, project: Project, cell: Callable[..., str]
) -> None:
    clock = Clock()
    own = session(folder, project, clock=clock)
    cell("x = 1")
    own.observe()
    assert own.due() == pytest.approx(1.0)
    changed = Settings.from_dict({"SessionNotes": {"wait_seconds": 30.0}})
    own.configure(changed)
    assert own.due() == pytest.approx(30.0)
    own.configure(Settings.from_dict({"SessionNotes": {"enabled": False}}))
    assert own.due() is None
    assert "turned off" in own.gate().reason


@pytest.mark.spec("L2", "L5")
def test_a_failure_is_remembered_and_tried_again_later(
    folder: SessionFolder, project: Project, cell: Callable[..., str]
) -> None:
    clock = Clock()
    own = session(folder, project, clock=clock)
    cell("x = 1")
    own.observe()
    folder.notes.mkdir()  # no file can be written where a folder is
    clock.now += 2
    outcome = asyncio.run(own.run_due())  # type: ignore[arg-type]
    assert outcome is not None
    assert outcome.status == "failed"
    assert own.status()["waiting"] == 1
    assert own.status()["services"]["notes"]["error"]
    assert own.due() == pytest.approx(FIRST_RETRY)
    assert "next try" in own.gate().reason
    assert asyncio.run(own.run_due()) is None  # type: ignore[arg-type]
    folder.notes.rmdir()
    clock.now += FIRST_RETRY
    outcome = asyncio.run(own.run_due())  # type: ignore[arg-type]
    assert outcome is not None
    assert outcome.status == "done"
    # Another worker of the same session knows how it went.
    told = session(folder, project).status()["services"]["notes"]
    assert told["success"]
    assert told["failed"]
    assert told["error"]


@pytest.mark.spec("L5")
def test_the_next_worker_finishes_what_the_last_left(
    folder: SessionFolder, project: Project, cell: Callable[..., str]
) -> None:
    cell("covered = 1")
    asyncio.run(session(folder, project).update_notes())  # type: ignore[arg-type]
    cell("left = 2")
    own = session(folder, project)
    assert own.observe() == 1
    assert own.due() is not None
    asyncio.run(own.update_notes())  # type: ignore[arg-type]
    assert "left" in folder.notes.read_text("utf-8")
    assert session(folder, project).observe() == 0


@pytest.mark.spec("L10")
@pytest.mark.parametrize("mode", ["auto", "confirm", "read", "off"])
def test_notes_go_on_in_every_mode(
    folder: SessionFolder, project: Project, cell: Callable[..., str], mode: str
) -> None:
    project.set_property("mode", mode)
    clock = Clock()
    own = session(folder, project, clock=clock)
    cell("x = 1")
    own.observe()
    clock.now += 2
    outcome = asyncio.run(own.run_due())  # type: ignore[arg-type]
    assert outcome is not None
    assert outcome.status == "done"


@pytest.mark.spec("L13")
def test_sessions_past_their_days_go_once_a_day_with_a_word(
    folder: SessionFolder, project: Project, cell: Callable[..., str]
) -> None:
    cell("x = 1")
    old = claim(project, "old.ipynb")
    writer = TranscriptWriter(old, old.id)
    writer.append({"type": "event", "id": new_id(), "time": utc_now(), "name": "loaded"})
    writer.close()
    sessions.release(old)
    long_ago = (datetime.now(UTC) - timedelta(days=401)).timestamp()
    os.utime(old.transcript, (long_ago, long_ago))
    own = session(folder, project)
    assert own.expire() == [old.id]
    assert not old.path.exists()
    assert folder.path.exists()
    told, _ = lines.read(folder.worker_log)
    assert [each["sessions"] for each in told if each["type"] == "expired"] == [[old.id]]
    assert own.expire() == []
    assert own.expire(datetime.now(UTC) + timedelta(days=2)) == []
