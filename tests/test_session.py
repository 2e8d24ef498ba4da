"""The owner of a session's state: what is due, what ran, one update at a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from recorded import Clock, Recorded

from ipymemory import lines, processes, sessions
from ipymemory.config import Settings
from ipymemory.events import Bus, Event
from ipymemory.extractive import ExtractiveModel
from ipymemory.history import History
from ipymemory.models import Reply, Request
from ipymemory.ran import FIRST_RETRY, LAST_RETRY
from ipymemory.session import MemorySession

NOTES_ALONE: dict[str, dict[str, Any]] = {
    "Extraction": {"enabled": False},
    "Dream": {"enabled": False},
}


class Slow(ExtractiveModel):
    """The engine of the house, which takes its time and counts how many run at once."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = self.at_once = self.most = 0
        self.go = asyncio.Event()
        self.error: BaseException | None = None

    async def complete(self, request: Request) -> Reply:
        self.runs += not any(each.results for each in request.messages)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await self.go.wait()
            if self.error is not None:
                raise self.error
            return await super().complete(request)
        finally:
            self.at_once -= 1


@pytest.fixture
def recorded(home: Path, tmp_path: Path) -> Recorded:
    return Recorded(home, tmp_path / "work")


@pytest.fixture
def clock() -> Clock:
    return Clock()


Open = Callable[..., MemorySession]


@pytest.fixture
def opened(recorded: Recorded, clock: Clock) -> Open:
    def make(model: Any = None, bus: Bus | None = None, **config: dict[str, Any]) -> MemorySession:
        # The notes alone: what is due of the extraction is told in its own tests.
        settings = Settings.read({**NOTES_ALONE, **config})[0]
        folder, project = recorded.folder, recorded.project
        return MemorySession(folder, project, settings, bus, model, clock)

    return make


async def spin(times: int = 50) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


@pytest.mark.spec("S3")
def test_an_update_is_due_a_second_after_the_kernel_comes_to_rest(
    recorded: Recorded, opened: Open, clock: Clock
) -> None:
    session = opened()
    assert session.observe() == 0
    assert session.due() is None
    assert session.gate().reason == "the notes cover every turn"
    id = recorded.begin("x = 1")
    session.observe()
    clock.now += 60
    assert session.due() is None
    assert session.gate().reason == "a cell is running"
    assert asyncio.run(session.run_due()) is None
    recorded.end(id)
    session.observe()
    assert session.due() == 1.0
    clock.now += 0.75
    assert session.due() == 0.25
    assert "less than 1 s" in session.status()["gates"]["notes"]
    assert asyncio.run(session.run_due()) is None
    clock.now += 0.25
    assert session.due() == 0.0
    outcome = asyncio.run(session.run_due())
    assert outcome is not None
    assert outcome.status == "done"
    assert "x = 1" in recorded.notes()
    assert session.due() is None
    assert sessions.read(recorded.folder).notes_through == id


@pytest.mark.spec("S4")
def test_settings_change_while_it_runs(recorded: Recorded, opened: Open, clock: Clock) -> None:
    session = opened()
    recorded.cell("x = 1")
    session.observe()
    assert session.due() == 1.0
    session.configure(Settings.read({**NOTES_ALONE, "SessionNotes": {"wait_seconds": 30.0}})[0])
    assert session.due() == 30.0
    session.configure(Settings.read({**NOTES_ALONE, "SessionNotes": {"enabled": False}})[0])
    assert session.due() is None
    assert "turned off" in session.gate().reason
    asyncio.run(session.finish())
    assert recorded.notes() == ""
    session.configure(Settings.read({**NOTES_ALONE, "SessionNotes": {"wait_seconds": 0.0}})[0])
    assert session.due() == 0.0


@pytest.mark.spec("S6")
def test_updates_never_overlap_and_later_requests_are_one(recorded: Recorded, opened: Open) -> None:
    async def main() -> None:
        model = Slow()
        session = opened(model)
        recorded.cell("first = 1")
        flying = asyncio.create_task(session.update_notes())
        await spin()
        assert (model.runs, session.running) == (1, True)
        recorded.cell("second = 2")
        later = [asyncio.create_task(session.update_notes(force=n == 3)) for n in range(100)]
        await spin()
        assert model.runs == 1
        model.go.set()
        outcomes = await asyncio.gather(flying, *later)
        assert {each.status for each in outcomes} == {"done"}
        assert len({each.run for each in outcomes}) == 2
        assert (model.runs, model.most) == (2, 1)
        assert not session.running
        assert "first = 1" in recorded.notes()
        assert "second = 2" in recorded.notes()

    asyncio.run(main())


@pytest.mark.spec("S6")
def test_one_that_gives_up_waiting_does_not_end_the_update(
    recorded: Recorded, opened: Open
) -> None:
    async def main() -> None:
        model = Slow()
        session = opened(model)
        recorded.cell("x = 1")
        asked = asyncio.create_task(session.update_notes())
        other = asyncio.create_task(session.update_notes())
        await spin()
        asked.cancel()
        await spin()
        model.go.set()
        assert (await other).status == "done"
        assert asked.cancelled()

    asyncio.run(main())


def test_what_changes_during_an_update_is_left_for_the_next(
    recorded: Recorded, opened: Open
) -> None:
    async def main() -> None:
        model = Slow()
        session = opened(model)
        id = recorded.cell("x = 1")
        flying = asyncio.create_task(session.update_notes())
        await spin()
        recorded.outputs(id, "late words")
        assert session.observe() == 1
        model.go.set()
        await flying
        assert session.due() is not None
        await session.update_notes()
        assert session.due() is None
        assert sessions.read(recorded.folder).notes_through == id

    asyncio.run(main())


@pytest.mark.spec("L2", "S6")
def test_a_failure_is_shown_and_tried_again_after_a_while(
    recorded: Recorded, opened: Open, clock: Clock
) -> None:
    """The history cannot be written, as on a full disk or in a home that is read only."""
    recorded.project.history.write_text("in the way")
    told: list[Event] = []
    bus = Bus()
    bus.subscribe(told.append)
    session = opened(bus=bus)
    recorded.cell("x = 1")
    session.observe()
    waits = []
    for _ in range(9):
        clock.now += 1000
        outcome = asyncio.run(session.run_due())
        assert outcome is not None
        assert outcome.status == "failed"
        wait = session.due()
        assert wait is not None
        waits.append(wait)
    assert waits == [min(FIRST_RETRY * 2**n, LAST_RETRY) for n in range(9)]
    assert asyncio.run(session.run_due()) is None
    assert session.gate().reason == "the last update failed; the next try is in 300 s"
    service = session.status()["services"]["notes"]
    assert service["success"] == ""
    assert str(recorded.project.history) in service["error"]
    assert {each.kind for each in told} >= {"failed"}
    assert sessions.read(recorded.folder).notes_through == ""

    # A person who asks need not wait.
    assert asyncio.run(session.update_notes(force=True)).status == "failed"
    recorded.project.history.unlink()
    clock.now += 1000
    outcome = asyncio.run(session.run_due())
    assert outcome is not None
    assert outcome.status == "done"
    assert "x = 1" in recorded.notes()
    service = session.status()["services"]["notes"]
    assert service["success"] > service["failed"]


def test_last_success_and_error_are_known_to_the_next_worker(
    recorded: Recorded, opened: Open
) -> None:
    recorded.cell("x = 1")
    assert asyncio.run(opened().update_notes()).status == "done"
    recorded.cell("y = 1")
    kept = recorded.project.history
    kept.rename(kept.with_name("kept"))
    kept.write_text("in the way")
    first = opened()
    assert asyncio.run(first.update_notes()).status == "failed"
    told = first.status()["services"]["notes"]
    with recorded.folder.worker_log.open("ab") as file:
        file.write(b'{"type": "run", "job": "session_notes", "sta')
    again = opened().status()["services"]["notes"]
    assert again["error"] == told["error"] != ""
    assert again["success"]
    assert again["failed"] > again["success"]


def test_a_transcript_that_cannot_be_read_is_a_failure_that_passes(
    recorded: Recorded, opened: Open, clock: Clock
) -> None:
    recorded.cell("x = 1")
    moved = recorded.folder.path / "moved"
    recorded.folder.transcript.rename(moved)
    recorded.folder.transcript.mkdir()
    session = opened()
    session.observe()
    assert "cannot be read" in session.status()["services"]["notes"]["error"]
    assert session.due() == FIRST_RETRY
    clock.now += FIRST_RETRY
    assert session.due() == 0.0
    assert asyncio.run(session.run_due()) is None
    assert session.due() == 2 * FIRST_RETRY
    assert "next try is in 10 s" in session.gate().reason
    recorded.folder.transcript.rmdir()
    moved.rename(recorded.folder.transcript)
    clock.now += 2 * FIRST_RETRY
    asyncio.run(session.run_due())
    clock.now += 1
    asyncio.run(session.run_due())
    assert "x = 1" in recorded.notes()
    assert session.due() is None


@pytest.mark.spec("L4")
@pytest.mark.parametrize("error", [RuntimeError("a fault in the engine"), RecursionError()])
def test_whatever_an_engine_does_the_next_update_covers_it(
    recorded: Recorded, opened: Open, error: Exception
) -> None:
    async def main() -> None:
        model = Slow()
        model.go.set()
        model.error = error
        session = opened(model)
        recorded.cell("x = 1")
        before = session.observe(), tuple(session.transcript.entries)
        assert (await session.update_notes()).status == "failed"
        assert (session.observe(), tuple(session.transcript.entries)) == before
        model.error = None
        assert (await session.update_notes()).status == "done"
        assert "x = 1" in recorded.notes()

    asyncio.run(main())


@pytest.mark.spec("L11")
def test_a_run_that_is_cancelled_leaves_its_turns_for_the_next(
    recorded: Recorded, opened: Open
) -> None:
    async def main() -> None:
        model = Slow()
        session = opened(model)
        recorded.cell("x = 1")
        flying = asyncio.create_task(session.update_notes())
        await spin()
        session.cancelled = True
        assert (await flying).status == "cancelled"
        session.cancelled = False
        assert session.observe() == 1
        model.go.set()
        await session.finish()
        assert "x = 1" in recorded.notes()

    asyncio.run(main())


def test_finish_waits_for_what_is_in_flight_and_covers_the_rest(
    recorded: Recorded, opened: Open
) -> None:
    async def main() -> None:
        model = Slow()
        session = opened(model)
        recorded.cell("x = 1")
        flying = asyncio.create_task(session.update_notes())
        await spin()
        recorded.begin("while True: pass")
        session.observe()
        ending = asyncio.create_task(session.finish())
        await spin()
        assert not ending.done()
        model.go.set()
        await ending
        assert flying.done()
        assert model.runs == 2
        assert "while True" in recorded.notes()
        await session.finish()
        assert model.runs == 2

    asyncio.run(main())


@pytest.mark.spec("L5")
def test_what_the_last_worker_left_is_due_at_the_start(
    recorded: Recorded, opened: Open, clock: Clock
) -> None:
    recorded.cell("x = 1")
    assert asyncio.run(opened().update_notes()).status == "done"
    fresh = opened()
    assert (fresh.observe(), fresh.due()) == (0, None)
    id = recorded.cell("y = 2")
    fresh = opened()
    assert (fresh.observe(), fresh.due()) == (1, 1.0)
    asyncio.run(fresh.update_notes())
    # Written into a cell that is covered: what it printed when the worker had gone.
    recorded.outputs(id, "late")
    later = recorded.folder.transcript.stat().st_mtime + 1
    os.utime(recorded.folder.transcript, (later, later))
    fresh = opened()
    assert (fresh.observe(), fresh.due()) == (1, 1.0)


@pytest.mark.spec("L5")
def test_a_broken_record_does_not_keep_the_notes_from_being_written(
    recorded: Recorded, opened: Open
) -> None:
    recorded.cell("x = 1")
    recorded.folder.worker_log.write_bytes(b"\xff\xfe not json\n[1]\n")
    session = opened()
    recorded.folder.record.write_text("{")
    assert opened().status()["services"]["notes"]["success"] == ""
    asyncio.run(session.update_notes())
    assert "x = 1" in recorded.notes()


@pytest.mark.spec("L10")
@pytest.mark.parametrize("mode", ["auto", "confirm", "read", "off"])
def test_notes_go_on_in_every_mode(
    recorded: Recorded, opened: Open, clock: Clock, mode: str
) -> None:
    recorded.project.set_property("mode", mode)
    recorded.cell("x = 1")
    session = opened()
    session.observe()
    clock.now += 1
    assert session.status()["mode"] == mode
    asyncio.run(session.run_due())
    assert "x = 1" in recorded.notes()


def old(recorded: Recorded, days: float) -> None:
    """Make the session one whose last turn is `days` ago and whose kernel is gone."""
    recorded.writer.close()
    sessions.release(recorded.folder)
    then = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    os.utime(recorded.folder.transcript, (then, then))


@pytest.mark.spec("L13")
def test_sessions_past_their_days_go_and_it_is_told(home: Path, tmp_path: Path) -> None:
    kept, gone, held, own = (
        Recorded(home, tmp_path, name) for name in ("kept", "gone", "held", "own")
    )
    for each in (kept, gone, held, own):
        each.cell("x = 1")
    session = MemorySession(gone.folder, own.project, Settings())
    assert asyncio.run(session.update_notes()).wrote
    old(kept, 399)
    old(gone, 401)
    # Its kernel lives and computes for years: it is the process that started this one.
    old(held, 500)
    sessions.update(held.folder, kernel=processes.identity(os.getppid()))
    history = History(own.project.history)
    assert [each.session for each in history.entries()] == [gone.folder.id]

    session = MemorySession(own.folder, own.project, Settings())
    now = datetime.now(UTC)
    assert session.expire(now) == [gone.folder.id]
    assert not gone.folder.path.exists()
    assert kept.folder.path.exists()
    assert held.folder.path.exists()
    assert history.entries() == []
    told = [each for each in lines.read(own.folder.worker_log)[0] if each["type"] == "expired"]
    assert [(each["sessions"], each["keep_days"]) for each in told] == [([gone.folder.id], 400)]
    assert own.project.properties()["expired"] == {"time": now.isoformat(), "sessions": 1}

    # At most once a day, and what a kill left half-done is finished.
    old(kept, 401)
    assert session.expire(now + timedelta(hours=23)) == []
    left = own.project.sessions / ".gone-0123"
    left.mkdir()
    then = (now - timedelta(days=500)).timestamp()
    os.utime(own.folder.transcript, (then, then))
    assert session.expire(now + timedelta(hours=25)) == [kept.folder.id]
    assert sorted(each.name for each in own.project.sessions.iterdir()) == sorted(
        [own.folder.id, held.folder.id]
    )


@pytest.mark.spec("L13")
def test_keep_days_is_a_setting(recorded: Recorded, opened: Open, home: Path) -> None:
    other = Recorded(home, recorded.project.root, "other")
    assert other.folder != recorded.folder
    other.cell("x = 1")
    old(other, 8)
    assert opened(Memory={"keep_days": 9}).expire() == []
    recorded.project.set_property("expired", None)
    assert opened(Memory={"keep_days": 7}).expire() == [other.folder.id]
