"""When a dream begins by itself: its gates, what they cost, and that it runs at rest."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dream_set
import pytest
from kernels import eventually
from recorded import Recorded
from workers import Piped

from ipymemory import (
    dream_journal,
    dream_state,
    dream_waiting,
    gates,
    places,
    processes,
    recent_sessions,
)
from ipymemory.config import Settings
from ipymemory.dream_lock import NAME
from ipymemory.dreaming import Dreaming
from ipymemory.events import Bus
from ipymemory.files import write_json
from ipymemory.jobs import dream
from ipymemory.memory_files import opened
from ipymemory.places import Project, SessionFolder
from ipymemory.turns import new_id

pytestmark = pytest.mark.usefixtures("home")


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def project_in(tmp_path: Path, others: int = 0) -> Project:
    root = tmp_path / "work"
    root.mkdir(exist_ok=True)
    project = places.project_of(root, places.home(""))
    for n in range(others):
        folder = project.sessions / f"0193{n:08d}"
        folder.mkdir(parents=True)
        (folder / "transcript.jsonl").write_text("{}")
    return project


def dreaming(project: Project, clock: Clock) -> Dreaming:
    own = SessionFolder(project.sessions / "own")
    return Dreaming(own, project, Bus(), lambda: False, clock)


def after_a_turn(it: Dreaming, clock: Clock, settings: Settings) -> object:
    it.observe(["turn"])
    assert it.due(settings, busy=True) is None
    wait = it.due(settings, busy=False)
    assert wait is not None and 4 < wait <= 5
    clock.now += 6
    return asyncio.run(it.run_due(settings, busy=False))


@pytest.mark.spec("D1")
def test_the_gates_go_from_the_cheapest_on_and_say_why() -> None:
    def never() -> int:
        raise AssertionError("the sessions were looked at")

    def gate(**told: object) -> gates.Gate:
        usual = {
            "enabled": True, "waits": "", "hours_since": 30.0, "hours": 24.0,
            "sessions": never, "wanted": 5,
        }  # fmt: skip
        return gates.dream(**{**usual, **told})  # type: ignore[arg-type]

    assert "turned off" in gate(enabled=False).reason
    assert gate(hours_since=23.75).reason == "next dream in 15 minutes at the earliest"
    assert gate(hours_since=2.0).reason == "next dream in 22 h at the earliest"
    assert "a time to come" in gate(hours_since=-30.0).reason
    assert gate(hours_since=-0.5).reason == "next dream in 24 h at the earliest"
    assert gate(waits="the mode is read").reason == "the mode is read"
    assert gate(sessions=lambda: 2).reason == "next dream: 3 more sessions"
    assert gate(sessions=lambda: 4).reason == "next dream: 1 more session"
    assert not gate(sessions=lambda: None).open
    assert gate(sessions=lambda: 5).open
    assert gate(hours_since=None, sessions=lambda: 5).open


@pytest.mark.spec("D1")
def test_a_project_of_five_sessions_dreams_by_itself_once_a_day(tmp_path: Path) -> None:
    project, settings, clock = project_in(tmp_path, 5), Settings(), Clock()
    it = dreaming(project, clock)
    assert after_a_turn(it, clock, settings) is None
    assert "no memories" in it.last.reason
    folder = opened(project, settings)
    dream_set.fill(folder.folder, project.root, 50)
    outcome = after_a_turn(it, clock, settings)
    assert isinstance(outcome, dream.Dreamt) and outcome.status == "done"
    assert outcome.counts["merged"] == 10
    assert after_a_turn(it, clock, settings) is None
    assert "next dream in 24 h" in it.last.reason
    # A day later it is the sessions that are wanted, and its own turns are none.
    lock = folder.folder / NAME
    day = time.time() - 25 * 3600
    os.utime(lock, (day, day))
    for each in project.sessions.iterdir():
        if (each / "transcript.jsonl").exists():
            os.utime(each / "transcript.jsonl", (day - 60, day - 60))
    (project.sessions / "own").mkdir(exist_ok=True)
    (project.sessions / "own" / "transcript.jsonl").write_text("{}")
    assert after_a_turn(it, clock, settings) is None
    assert it.last.reason == "next dream: 5 more sessions"


@pytest.mark.spec("D1")
def test_the_sessions_are_looked_at_every_ten_minutes_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, settings, clock = project_in(tmp_path, 2), Settings(), Clock()
    dream_set.fill(opened(project, settings).folder, project.root, 10)
    looked = []
    whole = recent_sessions.count_since
    monkeypatch.setattr(
        recent_sessions,
        "count_since",
        lambda *told: looked.append(1) or whole(*told),  # type: ignore[func-returns-value]
    )
    it = dreaming(project, clock)
    for _ in range(3):
        after_a_turn(it, clock, settings)
    assert len(looked) == 1 and it.last.reason == "next dream: 3 more sessions"
    clock.now += 600
    after_a_turn(it, clock, settings)
    assert len(looked) == 2


@pytest.mark.spec("L10")
def test_in_mode_confirm_it_waits_and_says_so(tmp_path: Path) -> None:
    project, clock = project_in(tmp_path, 6), Clock()
    settings = Settings.read({"Memory": {"mode": "confirm"}})[0]
    dream_set.fill(opened(project, settings).folder, project.root, 10)
    it = dreaming(project, clock)
    waits = after_a_turn(it, clock, settings)
    assert isinstance(waits, dream.Dreamt) and waits.status == "waiting"
    assert after_a_turn(it, clock, settings) is None
    assert "a plan waits for a yes" in it.last.reason
    # A no counts as a dream, and a day later it is asked about anew.
    place = dream_state.place_of(project, settings)
    dream_waiting.dismiss(place, str(dream_state.state(project, settings)["id"]))
    assert after_a_turn(it, clock, settings) is None
    assert "next dream in 24 h" in it.last.reason
    state = dream_state.state(project, settings)
    state["ended"] = (datetime.now(UTC) - timedelta(hours=25)).isoformat()
    write_json(place / dream_state.STATE, state)
    for each in project.sessions.iterdir():
        if (each / "transcript.jsonl").exists():
            os.utime(each / "transcript.jsonl")
    waits = after_a_turn(it, clock, settings)
    assert isinstance(waits, dream.Dreamt) and waits.status == "waiting"


@pytest.mark.spec("D1")
def test_closed_by_time_the_gates_cost_under_a_millisecond(tmp_path: Path) -> None:
    project, settings = project_in(tmp_path, 6), Settings()
    folder = opened(project, settings)
    dream_set.fill(folder.folder, project.root, 10)
    (folder.folder / NAME).write_bytes(b"")
    it = dreaming(project, Clock())
    times = []
    for _ in range(50):
        began = time.perf_counter()
        assert not it.gate(settings).open
        times.append(time.perf_counter() - began)
    assert min(times) < 0.001, min(times)


def of_years(tmp_path: Path, count: int = 10_000, years: float = 2.0) -> Project:
    """A project with `count` sessions, the first of them so many years ago, one a cell each."""
    project = project_in(tmp_path)
    now = time.time()
    for n in range(count):
        began = now - years * 365 * 86_400 * (1 - n / count)
        folder = project.sessions / f"{int(began * 1000):012x}{'0' * 12}"
        folder.mkdir(parents=True)
        (folder / "transcript.jsonl").touch()
        os.utime(folder / "transcript.jsonl", (began, began))
    return project


@pytest.mark.slow
@pytest.mark.spec("D1")
def test_ten_thousand_sessions_are_counted_in_some_milliseconds(tmp_path: Path) -> None:
    project = of_years(tmp_path)
    yesterday = time.time() - 86_400
    seen = len(list(project.sessions.iterdir()))
    assert recent_sessions.count_since(project, yesterday) == 13 and seen == 10_000
    times = []
    for _ in range(7):
        began = time.process_time()
        assert recent_sessions.count_since(project, yesterday) == 13
        times.append(time.process_time() - began)
    assert min(times) < 0.02, min(times)
    assert recent_sessions.count_since(project, 0.0, "", 5) == 5


@pytest.mark.spec("D1")
def test_sessions_that_were_long_silent_are_passed_by_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = of_years(tmp_path, 1000)
    oldest, older, *_, newest = sorted(each.name for each in project.sessions.iterdir())
    # Begun two years ago and still at work: its kernel was never closed.
    os.utime(project.sessions / oldest / "transcript.jsonl")
    yesterday = time.time() - 86_400
    assert set(recent_sessions.since(project, yesterday)) == {newest, oldest}
    looked = []
    whole = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **how: looked.append(path) or whole(path, **how))
    assert set(recent_sessions.since(project, yesterday)) == {newest, oldest}
    assert 30 < len(looked) < 80
    monkeypatch.undo()
    # A new one and a foreign one are seen; the own one is none.
    for name in ("made-by-hand", new_id()):
        (project.sessions / name).mkdir()
        (project.sessions / name / "transcript.jsonl").touch()
    assert recent_sessions.count_since(project, yesterday, own=newest) == 3
    # What reaches further back than was looked is counted whole.
    assert recent_sessions.count_since(project, 0.0) == 1002
    assert older in recent_sessions.since(project, 0.0)


@pytest.mark.spec("D1", "L12")
@pytest.mark.parametrize(
    "found",
    [
        "{",
        "[]",
        '{"before": 3, "since": "x"}',
        '{"before": "f", "since": 9e9, "others": 1}',
        '{"before": "f", "since": NaN, "others": []}',
        '{"before": "f", "since": -Infinity, "others": []}',
    ],
)
def test_a_broken_list_of_silent_sessions_hides_none(tmp_path: Path, found: str) -> None:
    project = project_in(tmp_path, 3)
    (project.folder / recent_sessions.NAME).write_text(found)
    assert recent_sessions.count_since(project, time.time() - 60) == 3


@pytest.mark.spec("D1")
def test_after_a_clock_that_was_years_ahead_no_session_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = of_years(tmp_path, 600, years=1)
    ahead = time.time() + 20 * 365 * 86_400
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: ahead)
        assert recent_sessions.count_since(project, ahead - 86_400) == 0
    assert (project.folder / recent_sessions.NAME).exists()
    assert recent_sessions.count_since(project, time.time() - 86_400) == 1


@pytest.mark.spec("D3")
def test_what_a_dream_that_died_left_is_finished_first(tmp_path: Path) -> None:
    project, settings, clock = project_in(tmp_path), Settings(), Clock()
    folder = opened(project, settings)
    dream_set.fill(folder.folder, project.root, 10)
    place = project.folder / "dream"
    path = folder.folder / "plain-0.md"
    before = path.read_bytes()
    run = dream.History(project.history).begin("dream", "extractive", "a test", (), "")
    change = dream_journal.Change(path, before, before + b"More.\n")
    dream_journal._write(place / dream_journal.NAME, run, [(change,)])
    dead = {**processes.own().as_dict(), "pid": 2**22 - 3}
    (folder.folder / NAME).write_text(str(2**22 - 3))
    write_json(place / "owner.json", {"owner": dead, "before": 1_000_000_000_000})
    assert after_a_turn(dreaming(project, clock), clock, settings) is None
    assert path.read_bytes() == before + b"More.\n"
    assert (folder.folder / NAME).read_bytes() == b""
    assert (folder.folder / NAME).stat().st_mtime == 1000
    assert not dream.left_behind(project, folder)


@pytest.mark.worker
@pytest.mark.spec("D1", "D6")
def test_the_worker_dreams_by_itself_at_rest_and_tells_counts(tmp_path: Path, home: Path) -> None:
    recorded = Recorded(home, tmp_path / "work")
    project = project_in(tmp_path, 5)
    assert project.folder == recorded.project.folder
    dream_set.fill(opened(project, Settings()).folder, project.root, 50)
    with Piped(recorded) as worker:
        worker.hello(Engine={"idle_seconds": 0.1}, SessionNotes={"wait_seconds": 0.0})
        recorded.cell("x = 1")
        worker.say(type="turn")
        told: list[dict[str, object]] = []
        while not told or told[-1]["kind"] != "finished":
            event = worker.hear("event")["event"]
            # What is shown as it comes, and kept nowhere, has words.
            if event["job"] == "dream" and event["kind"] != "dream_file":
                told.append(event)
        phases = [each["details"].get("phase") for each in told]  # type: ignore[attr-defined]
        assert phases[0] == "starting" and "updating" in phases
        assert told[-1]["details"]["counts"]["merged"] == 10  # type: ignore[index]
        assert "town" not in str(told)
        # The event comes a moment before the one who waits for the dream has noted its end.
        eventually(
            lambda: worker.ask("status")["value"]["services"]["dream"]["success"], "its success"
        )
        assert "next dream in" in worker.ask("status")["value"]["gates"]["dream"]
        worker.say(type="bye")
        assert worker.ends() == 0
