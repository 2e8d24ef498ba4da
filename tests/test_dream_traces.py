"""What a dream leaves on the disk, and who else knows of it: purge, export, doctor, show."""

from __future__ import annotations

import zipfile
from pathlib import Path

import dream_set
import pytest
from test_dream import check, filled, held
from test_dream_shared import killed_while_placing, place

from ipymemory import dream_journal
from ipymemory.commands import table
from ipymemory.config import Settings
from ipymemory.dream_lock import NAME
from ipymemory.errors import CommandError
from ipymemory.jobs import dream
from ipymemory.jobs.dream import Context
from ipymemory.places import Project

pytestmark = pytest.mark.usefixtures("home")


def call(project: Project, line: str, settings: Settings | None = None) -> str:
    return table.call(place(project, settings or Settings()), line.split()).plain


def words_in(folder: Path) -> list[Path]:
    """Return the files that hold words of a memory."""
    return [e for e in folder.rglob("*") if e.is_file() and b"town 0 in" in e.read_bytes()]


def test_purge_lists_what_dreams_left_and_takes_it(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    dream.dream(Context(project, Settings()))
    asked: list[str] = []
    where = place(project, Settings())
    no = table.call(
        type(where)(
            where.settings, where.home, project, lambda each: asked.append(each) or "n", ""
        ),
        ["purge", "project"],
    )
    assert no.plain == "Nothing was removed."
    assert f"What is on record of dreams goes too: {project.folder / 'dream'}." in asked[0]
    last = (folder.folder / NAME).stat().st_mtime_ns
    after = held(folder.folder)
    call(project, "purge project --yes")
    assert not (project.folder / "dream").exists()
    assert held(folder.folder) == after
    assert (folder.folder / NAME).stat().st_mtime_ns == last
    assert call(project, "purge project --yes").startswith("Nothing to remove")
    assert dream.dream(Context(project, Settings())).status == "done"


@pytest.mark.worker
@pytest.mark.spec("D3")
@pytest.mark.parametrize("mode", ["auto", "read", "off"])
def test_purge_finishes_what_a_dream_began_and_its_journal_goes(tmp_path: Path, mode: str) -> None:
    project, folder = filled(tmp_path)
    before = held(folder.folder)
    killed_while_placing(project, "own")
    project.set_property("mode", mode)
    assert words_in(project.folder / "dream")
    call(project, "purge project --yes")
    assert not words_in(project.folder / "dream") and not (project.folder / "history").exists()
    assert not (folder.folder / NAME).exists()
    check(project, before, 100)


@pytest.mark.worker
def test_purge_with_the_memories_leaves_no_word_of_them(tmp_path: Path) -> None:
    project, _ = filled(tmp_path)
    killed_while_placing(project, "own")
    call(project, "purge project --memories --yes")
    assert not words_in(project.folder)
    assert not (project.folder / "dream").exists() and not project.memory.exists()


@pytest.mark.spec("D2")
@pytest.mark.parametrize("words", ["project", "project --memories", "older than 0 days"])
def test_while_a_dream_runs_nothing_is_removed_and_that_is_said(tmp_path: Path, words: str) -> None:
    project, folder = filled(tmp_path)
    session = project.sessions / "0193" / "transcript.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text("{}\n")
    before = held(folder.folder)
    taken = dream.lock(project, folder).take()
    assert isinstance(taken, dream.HeldLock)
    with pytest.raises(CommandError, match=r"Nothing was removed\. A dream is running.*--kill"):
        call(project, f"purge {words} --yes")
    assert session.exists() and held(folder.folder) == before
    taken.done()
    call(project, f"purge {words} --yes")
    assert not session.exists()


@pytest.mark.worker
@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_an_export_leaves_a_dreams_journal_and_copies_out(tmp_path: Path, name: str) -> None:
    project, _ = filled(tmp_path)
    dream.dream(Context(project, Settings()))
    dream_set.fill(project.memory, project.root, 50)
    killed_while_placing(project, "own")
    copies = (project.folder / "dream/copy-1", project.folder / "dream/plans/copy-2")
    for each in copies:
        each.mkdir(parents=True)
        (each / "one.md").write_text("Source 0 is delivered by the office of town 0 in UTF-8.")
    page = call(project, f"export {tmp_path / name}")
    if name.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / name) as archive:
            archive.extractall(tmp_path / "out")
    files = [each for each in (tmp_path / "out").rglob("dream/**/*") if each.is_file()]
    assert sorted(each.name for each in files) == ["asked.jsonl", "state.json"]
    assert "dream --now puts that right" in page
    dream.recover(project, Settings())
    assert not dream_journal.waits(project.folder / "dream")
    assert "dream --now" not in call(project, f"export {tmp_path / 'again'}")
