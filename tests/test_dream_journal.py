"""Many files as one: whole before or whole after, whatever ends the process in between."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dreaming_process import COUNT, after, before, groups

from ipymemory import dream_journal
from ipymemory.dream_journal import Change
from ipymemory.errors import HistoryError
from ipymemory.history import History, Run

PROCESS = Path(__file__).with_name("dreaming_process.py")


def filled(top: Path) -> Path:
    folder = top / "memory"
    folder.mkdir(parents=True)
    (top / "dream").mkdir()
    for n in range(COUNT):
        (folder / f"{n}.md").write_bytes(before(n))
        (folder / f"{n}-again.md").write_bytes(before(n))
    return folder


def started(top: Path) -> tuple[History, Run]:
    history = History(top / "history")
    return history, history.begin("dream", "extractive", "a test", (), "")


def memories(folder: Path) -> dict[str, bytes]:
    """Return all but what a write that was killed left, which the folder's next save sweeps."""
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name[0] != "."}


def is_before(folder: Path) -> bool:
    names = memories(folder)
    return len(names) == 2 * COUNT and all(
        names[f"{n}.md"] == names[f"{n}-again.md"] == before(n) for n in range(COUNT)
    )


def is_after(folder: Path) -> bool:
    names = memories(folder)
    return len(names) == COUNT and all(names[f"{n}.md"] == after(n) for n in range(COUNT))


@pytest.mark.spec("D5")
def test_all_of_it_is_put_in_place_and_one_undo_takes_it_back(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    history, run = started(tmp_path)
    placed = dream_journal.place(tmp_path / "dream", run, groups(folder))
    assert len(placed.done) == COUNT and not placed.left_out and is_after(folder)
    assert not dream_journal.waits(tmp_path / "dream")
    history.undo()
    assert is_before(folder)


@pytest.mark.spec("D5")
def test_an_undo_goes_around_the_files_that_were_edited_since(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    history, run = started(tmp_path)
    dream_journal.place(tmp_path / "dream", run, groups(folder))
    (folder / "3.md").write_bytes(b"edited since\n")
    history.undo(around=True)
    assert (folder / "3.md").read_bytes() == b"edited since\n"
    (folder / "3.md").write_bytes(before(3))
    assert is_before(folder)


def test_a_group_of_which_one_file_changed_is_left_out_whole(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    _, run = started(tmp_path)
    (folder / "5-again.md").write_bytes(b"somebody was here\n")
    placed = dream_journal.place(tmp_path / "dream", run, groups(folder))
    assert [each[0].path.name for each in placed.left_out] == ["5.md"]
    assert (folder / "5.md").read_bytes() == before(5)
    assert (folder / "5-again.md").read_bytes() == b"somebody was here\n"
    assert len(placed.done) == COUNT - 1


def test_an_editor_that_writes_in_the_middle_keeps_its_words(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    _, run = started(tmp_path)

    def edit(group: tuple[Change, ...]) -> None:
        if group[0].path.name == "2.md":
            (folder / "7-again.md").write_bytes(b"typed meanwhile\n")

    placed = dream_journal.place(tmp_path / "dream", run, groups(folder), placed=edit)
    assert [each[0].path.name for each in placed.left_out] == ["7.md"]
    assert (folder / "7.md").read_bytes() == before(7)
    assert (folder / "7-again.md").read_bytes() == b"typed meanwhile\n"


@pytest.mark.spec("D6")
def test_stopped_at_any_point_it_leaves_all_as_it_was(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    for stop in (0, 1, 2, COUNT // 2, COUNT):
        _, run = started(tmp_path)
        left = iter([False] * stop)
        placed = dream_journal.place(
            tmp_path / "dream", run, groups(folder), lambda left=left: next(left, True)
        )
        assert placed.cancelled and not placed.done
        assert is_before(folder)
        assert not dream_journal.waits(tmp_path / "dream")


def test_an_error_in_the_middle_takes_back_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = filled(tmp_path)
    _, run = started(tmp_path)
    whole, calls = Run.write, []

    def write(self: Run, path: Path, data: bytes | None, *, seen: bytes | None) -> None:
        calls.append(path)
        if len(calls) == 9:
            raise HistoryError("The write could not be logged.")
        whole(self, path, data, seen=seen)

    monkeypatch.setattr(Run, "write", write)
    with pytest.raises(HistoryError):
        dream_journal.place(tmp_path / "dream", run, groups(folder))
    assert is_before(folder)


def test_what_was_edited_after_a_kill_is_left_and_its_group_taken_back(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    history, run = started(tmp_path)
    dream_journal._write(tmp_path / "dream" / "journal.json", run, groups(folder))
    run.write(folder / "0.md", after(0), seen=before(0))
    (folder / "0-again.md").write_bytes(b"newer\n")
    assert dream_journal.recover(tmp_path / "dream", history) == run.id
    assert (folder / "0.md").read_bytes() == before(0)
    assert (folder / "0-again.md").read_bytes() == b"newer\n"
    assert (folder / "1.md").read_bytes() == after(1)
    assert dream_journal.recover(tmp_path / "dream", history) == ""


def test_what_a_person_undid_is_not_finished(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    history, run = started(tmp_path)
    dream_journal._write(tmp_path / "dream" / "journal.json", run, groups(folder))
    run.write(folder / "0.md", after(0), seen=before(0))
    history.undo()
    dream_journal.recover(tmp_path / "dream", history)
    assert is_before(folder)


def test_a_journal_that_somebody_edited_is_put_aside(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "dream" / "journal.json").write_text('{"version": 1, "run": 3, "groups": []}')
    assert dream_journal.recover(tmp_path / "dream", History(tmp_path / "history")) == ""
    assert not dream_journal.waits(tmp_path / "dream")


def killed(top: Path, seconds: float) -> bool:
    """Kill a process `seconds` after it began; return whether it had put anything in place."""
    folder = filled(top)
    environment = {**os.environ, "PYTHONPATH": str(PROCESS.parent.parent)}
    process = subprocess.Popen(
        [sys.executable, str(PROCESS), "place", str(top)], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(seconds)
    process.kill()
    process.wait()
    process.stdout.close()
    begun = dream_journal.waits(top / "dream")
    history = History(top / "history")
    if begun:
        dream_journal.recover(top / "dream", history)
        assert is_after(folder)
    assert is_before(folder) or is_after(folder)
    if is_after(folder):
        history.undo()
        assert is_before(folder)
    return begun


@pytest.mark.worker
@pytest.mark.spec("D3")
def test_killed_at_ten_moments_the_folder_is_wholly_before_or_after(tmp_path: Path) -> None:
    chance = random.Random(7)
    for n in range(10):
        killed(tmp_path / str(n), chance.uniform(0, 0.08))
