"""What a dream leaves on the disk, and who else knows of it: purge, export, doctor, show."""

from __future__ import annotations

import os
import time
import zipfile
from pathlib import Path

import dream_set
import pytest
from test_dream import check, filled, held
from test_dream_shared import killed_while_placing, place

from ipymemory import dream_journal
from ipymemory.commands import dream_diagnosis, table
from ipymemory.config import Settings
from ipymemory.dream_lock import NAME, put
from ipymemory.errors import CommandError
from ipymemory.events import Bus, Event
from ipymemory.jobs import dream
from ipymemory.jobs.dream import Context
from ipymemory.memory_files.rewriting import rewritten
from ipymemory.memory_files.values import Source
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


def doctor(project: Project) -> str:
    return call(project, "doctor")


@pytest.mark.worker
@pytest.mark.spec("D3")
def test_the_doctor_tells_of_a_dream_that_was_cut_short(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    dream.dream(Context(project, Settings()))
    assert "dream" not in doctor(project).replace("memories, dreams, logs", "")
    dream_set.fill(folder.folder, project.root, 100)
    killed_while_placing(project, "own")
    doctor(project)  # rebuilds the index, which is derived
    found = doctor(project)
    assert f"which held {folder.folder / NAME}, is gone." in found
    assert "some memories are as before it, some as after." in found
    assert "ipymemory dream --now to have it now" in found
    left = held(folder.folder)
    assert doctor(project) == found and held(folder.folder) == left, "it only looks"
    assert dream.recover(project, Settings())
    assert "dream --now" not in doctor(project)


@pytest.mark.spec("D3")
def test_the_doctor_tells_of_what_cannot_be_read(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    place = project.folder / "dream"
    place.mkdir()
    (place / "state.json").write_text("{")
    assert "How the last dream ended is not known." in doctor(project)
    (place / "state.json").unlink()
    (place / "journal.json").write_text('{"version": 1, "run": 3, "groups": []}')
    assert "journal.json is not what was written there." in doctor(project)
    (place / "journal.json").write_text('{"version": 9}')
    assert "was written by another version of ipymemory" in doctor(project)
    (place / "journal.json").unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    (folder.folder / NAME).symlink_to(elsewhere)
    assert f"Remove {folder.folder / NAME} if no dream runs" in doctor(project)
    assert elsewhere.read_text() == "kept"


@pytest.mark.spec("D2")
@pytest.mark.parametrize(
    ("body", "age", "said"),
    [
        ("", 90_000, ""),
        ("4194301", 60, ""),
        ("4194301", 7200, "was left by a process that is gone, or of another machine."),
        ("4194301", -7200, "and its time is one to come."),
        ("self", 60, ""),
        ("self", 7200, "is tidying the memories. If none is, remove"),
    ],
)
def test_the_doctor_tells_of_a_lock_of_another_program(
    tmp_path: Path, body: str, age: int, said: str
) -> None:
    project, folder = filled(tmp_path, 10)
    body = str(os.getpid()) if body == "self" else body
    put(folder.folder / NAME, body, time.time_ns() - age * 10**9)
    found = doctor(project)
    assert (NAME in found) == bool(said) and said in found


@pytest.mark.spec("E12")
def test_show_names_every_origin_of_what_a_dream_merged(tmp_path: Path) -> None:
    project, folder = filled(tmp_path)
    dream.dream(Context(project, Settings()))
    name = next(e.stem for e in folder.folder.glob("twin-0-*.md"))
    gone = {"twin-0-first": "twin-0-again", "twin-0-again": "twin-0-first"}[name]
    page = call(project, f"show {name}")
    assert f"session session-{name}, " in page
    merged = "Merged into it, from: asked for by hand, work.ipynb, 1 cell, session session-"
    assert f"{merged}{gone}" in page
    assert "Merged into it" not in call(project, "show plain-0")
    assert "Merged into it" not in call(project, "recall office of town 0")


def test_of_many_origins_the_first_are_named_and_the_rest_counted(tmp_path: Path) -> None:
    project, folder = filled(tmp_path, 10)
    data = (folder.folder / "plain-0.md").read_bytes()
    memory = folder.read("plain-0")
    also = tuple(
        Source(f"s{n}", "n.ipynb", ("t",), f"Said <img src=x{n}>\nso.", "markdown")
        for n in range(23)
    )
    (folder.folder / "plain-0.md").write_bytes(rewritten(data, memory, body=memory.body, also=also))
    page = table.call(place(project, Settings()), ["show", "plain-0"])
    assert page.plain.count("Merged into it") == 20
    assert "And 3 more origins, which `--json` lists." in page.plain
    assert "a markdown cell, n.ipynb, 1 cell, session s0: “Said" in page.plain
    assert "<img" not in page.markdown, "it is made harmless"


@pytest.mark.spec("D6")
def test_of_a_dream_that_runs_the_doctor_has_nothing_to_say(tmp_path: Path) -> None:
    project, _ = filled(tmp_path, 20)
    bus, found = Bus(), []

    def look(event: Event) -> None:
        if event.kind == "dream_file":
            found.extend(dream_diagnosis.findings(place(project, Settings())))
            assert dream_journal.waits(project.folder / "dream")

    bus.subscribe(look)
    assert dream.dream(Context(project, Settings(), bus)).counts["merged"] == 4
    assert found == []
