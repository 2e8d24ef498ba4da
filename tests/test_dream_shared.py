"""Two projects with one memory folder: what a dream of one left, the other puts right."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import dream_set
import pytest
from test_dream import check, held

from ipymemory import dream_journal, dream_state, places
from ipymemory.commands import table
from ipymemory.commands.place import Place
from ipymemory.config import Settings
from ipymemory.dream_lock import NAME
from ipymemory.history import History
from ipymemory.jobs import dream
from ipymemory.jobs.dream import Context
from ipymemory.memory_files import opened
from ipymemory.places import Project

PROCESS = Path(__file__).with_name("dreaming_process.py")
SETTINGS = Settings.read({"Memory": {"folder": "claude"}})[0]


@pytest.fixture
def shared(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Project, Project]:
    """Two projects whose memories lie in one folder of Claude Code's."""
    config = tmp_path / "claude"
    config.mkdir()
    (config / "settings.json").write_text(
        f'{{"autoMemoryDirectory": "{(tmp_path / "m").as_posix()}"}}'
    )
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    found = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        found.append(places.project_of(tmp_path / name, home))
    dream_set.fill(tmp_path / "m", found[0].root, 100)
    return found[0], found[1]


def killed_while_placing(project: Project, folder: str = "claude") -> None:
    """Kill a dream of `project` between its first file and its last."""
    process = subprocess.Popen(
        [sys.executable, str(PROCESS), "dream", str(project.root), folder],
        env={**os.environ, "PYTHONPATH": str(PROCESS.parent.parent)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    # It says so after its third group, and waits.
    assert process.stdout.readline() == b"placed\n"
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.worker
@pytest.mark.spec("D3")
def test_the_other_project_finishes_what_a_killed_dream_began(
    shared: tuple[Project, Project],
) -> None:
    first, second = shared
    folder = opened(second, SETTINGS)
    os.utime(folder.folder, (1000, 1000))
    before = held(folder.folder)
    killed_while_placing(first)
    assert dream.left_behind(second, folder)
    assert dream_state.state(second, SETTINGS)["status"] == "dead"
    assert (folder.folder / NAME).read_bytes() != b""
    assert before != held(folder.folder)
    # The folder is the first one's, so the second may not dream; what died it does put right.
    assert dream.dream(Context(second, SETTINGS, confirmed=True)).status == "refused"
    assert dream.recover(second, SETTINGS)
    assert not dream.left_behind(second, folder)
    assert not (folder.folder / NAME).exists()
    check(first, before, 100, SETTINGS)
    # One undo takes all of it back, in the project where it began.
    assert not History(second.history).entries()
    History(first.history).undo()
    assert held(folder.folder) == before
    assert dream.dream(Context(first, SETTINGS, confirmed=True)).status == "done"


@pytest.mark.worker
@pytest.mark.spec("D3")
def test_where_the_project_that_began_is_gone_its_dream_is_finished_too(
    shared: tuple[Project, Project],
) -> None:
    first, second = shared
    folder = opened(second, SETTINGS)
    before = held(folder.folder)
    killed_while_placing(first)
    shutil.rmtree(first.folder)
    shutil.copytree(first.root, second.root, dirs_exist_ok=True)
    outcome = dream.dream(Context(second, SETTINGS, confirmed=True))
    assert outcome.status == "done" and outcome.counts["merged"] == 0
    assert not dream.left_behind(second, folder)
    check(second, before, 100, SETTINGS)


@pytest.mark.spec("D2", "D6")
def test_both_projects_see_one_lock_and_one_state(shared: tuple[Project, Project]) -> None:
    first, second = shared
    one, other = (opened(each, SETTINGS) for each in shared)
    taken = dream.lock(first, one).take()
    assert isinstance(taken, dream.HeldLock)
    assert isinstance(dream.lock(second, other).take(), dream.Busy)
    assert not dream.recover(second, SETTINGS), "it runs"
    taken.done()
    assert dream.dream(Context(first, SETTINGS, confirmed=True)).status == "done"
    told = dream_state.state(second, SETTINGS)
    assert told["status"] == "done" and told == dream_state.state(first, SETTINGS)
    assert not (first.folder / "dream" / "state.json").exists()


@pytest.mark.spec("D2")
def test_folders_that_are_not_the_same_have_locks_of_their_own(
    shared: tuple[Project, Project], tmp_path: Path
) -> None:
    """A record of one owner for all would be taken for the other's, and put its time back."""
    first, second = shared
    taken = dream.lock(first, opened(first, SETTINGS)).take()
    assert isinstance(taken, dream.HeldLock)
    settings = tmp_path / "claude" / "settings.json"
    settings.write_text(settings.read_text().replace('/m"', '/other"'))
    (tmp_path / "other").mkdir()
    other = dream.lock(second, opened(second, SETTINGS)).take()
    assert isinstance(other, dream.HeldLock) and not other.found_dead
    other.done()
    taken.done()
    assert (tmp_path / "m" / NAME).read_bytes() == (tmp_path / "other" / NAME).read_bytes() == b""


@pytest.mark.spec("D3", "L10")
@pytest.mark.worker
def test_where_no_memory_may_be_written_what_died_waits(
    shared: tuple[Project, Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = shared
    killed_while_placing(first)
    folder = opened(first, SETTINGS).folder
    left = held(folder)
    body = (folder / NAME).read_bytes()
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1")
    assert not dream.recover(first, SETTINGS) and not dream.recover(second, SETTINGS)
    assert held(folder) == left and (folder / NAME).read_bytes() == body
    monkeypatch.delenv("CLAUDE_CODE_DISABLE_AUTO_MEMORY")
    first.set_property("mode", "read")
    assert not dream.recover(second, SETTINGS)
    first.set_property("mode", "auto")
    assert dream.recover(first, SETTINGS)
    assert not dream_journal.waits(dream_state.place_of(first, SETTINGS))
    assert time.time() - dream_state.place_of(first, SETTINGS).stat().st_mtime < 60


@pytest.mark.worker
@pytest.mark.spec("D3")
def test_a_purge_puts_right_what_died_in_a_shared_folder_first(
    shared: tuple[Project, Project], home: Path
) -> None:
    first, second = shared
    before = held(opened(first, SETTINGS).folder)
    killed_while_placing(first)
    journals = dream_state.place_of(first, SETTINGS)
    table.call(place(second, SETTINGS), ["purge", "project", "--memories", "--yes"])
    assert dream_journal.waits(journals), "it is the first one's"
    table.call(place(first, SETTINGS), ["purge", "project", "--memories", "--yes"])
    assert not journals.exists()
    check(first, before, 100, SETTINGS)


def place(project: Project, settings: Settings) -> Place:
    return Place(settings, project.home, project, lambda _: None, "ipymemory ")
