"""A dream: what it merges, dates, marks and asks, what it leaves alone, and how it is undone."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import dream_set
import pytest

from ipymemory import dream_state, places, processes
from ipymemory.config import Settings
from ipymemory.dream_lock import NAME, HeldLock
from ipymemory.events import Bus, Event
from ipymemory.files import write_json
from ipymemory.history import History
from ipymemory.jobs import dream
from ipymemory.jobs.dream import Context
from ipymemory.memory_files import Memory, MemoryFolder, opened, proposals
from ipymemory.places import Project

pytestmark = pytest.mark.usefixtures("home")


def project_in(tmp_path: Path) -> Project:
    root = tmp_path / "work"
    root.mkdir(exist_ok=True)
    return places.project_of(root, places.home(""))


def filled(tmp_path: Path, size: int = 100) -> tuple[Project, MemoryFolder]:
    project = project_in(tmp_path)
    folder = opened(project, Settings())
    dream_set.fill(folder.folder, project.root, size)
    folder.rebuild_index()
    return project, folder


def held(folder: Path) -> dict[str, bytes]:
    return {
        each.name: each.read_bytes()
        for each in folder.iterdir()
        if each.name[0] != "." and not each.name.startswith("MEMORY")
    }


def check(
    project: Project, before: dict[str, bytes], size: int, settings: Settings | None = None
) -> None:
    """Assert that all that was planted was found, and nothing else touched."""
    share = size / 1000
    folder = opened(project, settings or Settings())
    after = held(folder.folder)
    twins = round(200 * share)
    assert len(before) - len(after) == twins
    for n in range(twins):
        kept = [each for each in ("first", "again") if f"twin-{n}-{each}.md" in after]
        assert len(kept) == 1
        memory = folder.read(f"twin-{n}-{kept[0]}")
        sources = (memory.source, *memory.source.also)
        assert {each.session for each in sources} == {
            f"session-twin-{n}-first",
            f"session-twin-{n}-again",
        }
        assert memory.modified == dream_set.TIME
    for n in range(round(50 * share)):
        assert b"this Friday (2026-11-27)" in after[f"dated-{n}.md"]
    for n in range(round(30 * share)):
        assert f"`src/gone_{n}.py` is no longer in this project".encode() in after[f"dead-{n}.md"]
    for name, data in before.items():
        if name.startswith(("alike-", "plain-", "port-")):
            assert after[name] == data, name
    assert not folder.drift()
    assert not [each for page in folder.pages() for each in page.split("\n") if len(each) > 150]


@pytest.mark.spec("D4", "D5", "D7")
def test_a_dream_finds_what_was_planted_and_touches_nothing_else(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    before = held(folder.folder)
    seen: list[Event] = []
    bus = Bus()
    bus.subscribe(seen.append)
    outcome = dream.dream(Context(project, Settings(), bus))
    assert outcome.status == "done", outcome
    assert outcome.counts["merged"] == 20
    assert outcome.counts["dated"] == 5
    assert outcome.counts["marked"] == 3
    assert outcome.counts["asked"] == 2
    check(project, before, 100)
    waiting = proposals.waiting(project.proposals)
    assert sorted(each.name for each in waiting) == ["port-0-old", "port-1-old"]
    # A second one has nothing to do, and asks nothing again.
    again = dream.dream(Context(project, Settings()))
    assert again.status == "done" and not again.run
    assert again.counts["asked"] == 0
    assert [each.kind for each in seen][-1] == "finished"
    told = [each for each in seen if each.kind == "dream_file"]
    assert len(told) == 20 + 20 + 5 + 3 and all(each.details["diff"] for each in told)
    # Words are in what is shown as it comes, and nowhere else (behaviour L12).
    said = " ".join(str(each.as_dict()) for each in seen if each not in told)
    assert "town" not in said and "report" not in said and "port-0" not in said


@pytest.mark.spec("D5", "L8")
def test_one_undo_takes_a_dream_back(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    before = held(folder.folder)
    outcome = dream.dream(Context(project, Settings()))
    History(project.history).undo(outcome.run)
    assert held(folder.folder) == before


@pytest.mark.slow
@pytest.mark.spec("D4", "D5")
def test_a_thousand_memories_are_tidied_exactly_in_ten_seconds_of_cpu(tmp_path: Path) -> None:
    project, folder = filled(tmp_path, 1000)
    before = held(folder.folder)
    assert len(before) == 1000
    # Of this process: how long a disk takes that others use too says nothing of a dream. The
    # time on the wall is measured by `python -m tests.benchmarks dreaming`.
    began = time.process_time()
    outcome = dream.dream(Context(project, Settings()))
    took = time.process_time() - began
    assert outcome.status == "done"
    check(project, before, 1000)
    assert outcome.counts["asked"] == 20
    assert took < 10, took


@pytest.mark.spec("D2", "D3")
def test_the_lock_tells_when_and_is_put_back_where_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, folder = filled(tmp_path)
    lock = folder.folder / NAME
    assert dream.dream(Context(project, Settings(), cancelled=lambda: True)).status == "killed"
    assert not lock.exists()
    assert dream.dream(Context(project, Settings())).status == "done"
    assert lock.read_bytes() == b"" and time.time() - lock.stat().st_mtime < 60
    os.utime(lock, (1000, 1000))

    def fail(*_: object) -> None:
        raise OSError("no disk")

    monkeypatch.setattr(dream, "tidied", fail)
    assert dream.dream(Context(project, Settings())).status == "failed"
    assert lock.stat().st_mtime == 1000
    assert dream_state.state(project, Settings())["status"] == "failed"


@pytest.mark.spec("D2")
def test_of_two_dreams_the_second_does_nothing(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    before = held(folder.folder)
    taken = dream.lock(project, folder).take()
    assert isinstance(taken, HeldLock)
    outcome = dream.dream(Context(project, Settings()))
    assert outcome.status == "locked" and "another process" in outcome.error
    assert held(folder.folder) == before
    taken.roll_back()


@pytest.mark.spec("D2")
def test_who_lost_the_lock_to_another_machine_changes_nothing(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    before = held(folder.folder)
    record = project.folder / "dream" / "owner.json"
    bus = Bus()

    def other(event: Event) -> None:
        if event.details.get("step") == "consolidate":
            told = {**processes.own().as_dict(), "host": "elsewhere"}
            write_json(record, {"owner": told, "before": None})

    bus.subscribe(other)
    outcome = dream.dream(Context(project, Settings(), bus))
    assert outcome.status == "locked" and "another program, took the lock" in outcome.error
    assert held(folder.folder) == before and "elsewhere" in record.read_text()


@pytest.mark.spec("D2")
@pytest.mark.skipif(os.name == "nt", reason="fcntl is of other systems")
def test_without_locks_there_is_no_dream_and_its_sentence_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    project, folder = filled(tmp_path, 20)
    before = held(folder.folder)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    outcome = dream.dream(Context(project, Settings()))
    assert outcome.status == "refused" and "none begins. Set IPYMEMORY_HOME" in outcome.error
    assert held(folder.folder) == before and not (folder.folder / NAME).exists()


@pytest.mark.spec("D6")
def test_a_kill_ends_the_dream_and_leaves_all_as_it_was(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    before = held(folder.folder)
    assert not dream_state.kill(project, Settings())
    bus = Bus()

    def at_update(event: Event) -> None:
        if event.details.get("phase") == "updating":
            assert dream_state.kill(project, Settings())

    bus.subscribe(at_update)
    assert dream.dream(Context(project, Settings(), bus)).status == "killed"
    assert held(folder.folder) == before
    assert not (folder.folder / NAME).exists()
    assert not dream_state.kill(project, Settings())
    assert dream.dream(Context(project, Settings())).status == "done"


@pytest.mark.spec("D5")
def test_a_plan_changes_nothing_and_shows_all(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    before = held(folder.folder)
    found = dream.plan(Context(project, Settings()))
    assert found.status == "planned" and found.counts["merged"] == 20
    assert "+The report of team 0 is due this Friday (" in found.diff
    assert held(folder.folder) == before and not (folder.folder / NAME).exists()
    assert "diff" not in found.as_dict()


@pytest.mark.spec("L10")
def test_where_a_write_waits_for_a_yes_a_dream_does_too(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    before = held(folder.folder)
    settings = Settings.read({"Memory": {"mode": "confirm"}})[0]
    assert dream.dream(Context(project, settings)).status == "waiting"
    assert held(folder.folder) == before and not (folder.folder / NAME).exists()
    assert dream.dream(Context(project, settings, confirmed=True)).status == "done"
    reading = Settings.read({"Memory": {"mode": "read"}})[0]
    refused = dream.dream(Context(project, reading, confirmed=True))
    assert refused.status == "refused" and "mode read" in refused.error


def test_links_lead_to_what_stands_for_a_memory_that_went(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    names = [f"twin-0-{each}" for each in ("first", "again")]
    target = folder.folder / "plain-0.md"
    text = target.read_text().rstrip("\n") + f"\nSee [[{names[0]}]] and [[{names[1]}]].\n"
    text = text.replace("description: ", f"description: As [[{names[0]}]] and [[{names[1]}]], ")
    target.write_text(
        text.replace('"title": "plain-0"', f'"title": "[[{names[1]}]] [[{names[0]}]]"')
    )
    dream.dream(Context(project, Settings()))
    kept = next(each for each in names if (folder.folder / f"{each}.md").exists())
    gone = next(each for each in names if each != kept)
    assert f"See [[{kept}]] and [[{kept}]]." in target.read_text()
    assert gone not in target.read_text() and f"[[{kept}]]" in folder.read("plain-0").description
    assert gone not in (folder.folder / "MEMORY.md").read_text()


def test_a_file_that_is_there_again_is_not_marked_any_longer(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    before = held(folder.folder)["dead-0.md"]
    dream.dream(Context(project, Settings()))
    (project.root / "src" / "gone_0.py").write_text("")
    dream.dream(Context(project, Settings()))
    assert held(folder.folder)["dead-0.md"] == before


def test_a_memory_of_an_unknown_form_is_left_alone(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    odd = folder.folder / "odd.md"
    odd.write_text("---\nname: [\n---\n\nDue next Friday.\n")
    assert dream.dream(Context(project, Settings())).status == "done"
    assert odd.read_text() == "---\nname: [\n---\n\nDue next Friday.\n"


@pytest.mark.worker
@pytest.mark.spec("D4")
def test_memories_saved_by_another_process_meanwhile_survive(tmp_path: Path) -> None:
    project, folder = filled(tmp_path, 300)
    process = Path(__file__).with_name("dreaming_process.py")
    environment = {**os.environ, "PYTHONPATH": str(process.parent.parent)}
    saver = subprocess.Popen(
        [sys.executable, str(process), "save", str(project.root)],
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert saver.stdout is not None
    saver.stdout.readline()
    outcome = dream.dream(Context(project, Settings()))
    assert saver.wait() == 0
    saver.stdout.close()
    assert outcome.status == "done" and outcome.counts["merged"] == 60
    said = b" ".join(held(folder.folder).values())
    assert all(f"said thing number {n}.".encode() in said for n in range(20))
    assert not opened(project, Settings()).drift()


@pytest.mark.spec("D4")
def test_a_memory_that_is_forgotten_while_it_reads_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, folder = filled(tmp_path, 20)
    whole, names = MemoryFolder.scan, ["plain-0", "twin-1-first", "dated-0"]

    def scan(self: MemoryFolder) -> tuple[Memory, ...]:
        found = whole(self)
        for name in names:
            (folder.folder / f"{name}.md").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(MemoryFolder, "scan", scan)
    outcome = dream.dream(Context(project, Settings()))
    assert outcome.status == "done" and outcome.counts["merged"] == 3
    assert (folder.folder / "twin-1-again.md").exists()
    assert not {f"{each}.md" for each in names} & set(held(folder.folder))


@pytest.mark.spec("D4")
def test_an_index_that_is_behind_is_rebuilt_also_where_nothing_else_is_to_do(
    tmp_path: Path,
) -> None:
    project, folder = filled(tmp_path, 20)
    dream.dream(Context(project, Settings()))
    index = folder.folder / "MEMORY.md"
    index.write_text("".join(index.read_text().splitlines(keepends=True)[:-3]))
    assert folder.drift()
    assert not dream.dream(Context(project, Settings())).run
    assert not folder.drift()
