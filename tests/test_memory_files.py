"""The memory folder: what is kept comes back, nothing is lost, the index is in step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ipymemory import memory_place, places
from ipymemory.config import Settings
from ipymemory.errors import (
    ChangedSince,
    HistoryError,
    MemoryMissing,
    MemoryRefused,
    PlaceError,
)
from ipymemory.history import History, Run
from ipymemory.memory_files import (
    KINDS,
    Draft,
    MemoryFolder,
    Proposal,
    Source,
    age,
    opened,
    proposals,
)
from ipymemory.memory_files import index as lines
from ipymemory.places import Project

DAY_FIRST = Draft(
    "feedback",
    "Date format",
    "Dates in this source are day-first: from the data team",
    "Dates are day-first.\n\n**Why:** the data team said so.\n**How to apply:** `dayfirst=True`.",
    Source("0193", "clean.ipynb", ("0193aa",), "dates in this source are day-first", "markdown"),
    "dates: order",
)
MONTH_FIRST = Draft(
    "feedback",
    "Dates",
    "Dates are month-first since May",
    "Dates are month-first since May.",
    Source("0194", "load.ipynb", ("0194aa",), "dates are month-first since May", "markdown"),
    "dates: order",
)


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Project:
    root = tmp_path / "work"
    root.mkdir()
    return places.project_of(root, home)


@pytest.fixture
def folder(project: Project) -> MemoryFolder:
    return MemoryFolder(project.memory, project)


def begun(project: Project, job: str = "extraction") -> Run:
    return History(project.history).begin(job, "extractive", "a test", ("t1",), "s1")


def note(text: str, kind: str = "project", origin: str = "markdown", **more: Any) -> Draft:
    return Draft(kind, text, text, "", Source("s", "n.ipynb", ("t",), text, origin), **more)


def put(folder: MemoryFolder, name: str, text: str | bytes) -> Path:
    """Write a file as a person or another program would."""
    path = folder.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def in_step(folder: MemoryFolder) -> None:
    """Check that every memory has exactly one line, and that the pages keep within the limits."""
    pages = folder.pages()
    found = [lines.linked(line) for page in pages for line in page.split("\n")]
    listed = [each for each in found if each and not each.startswith("MEMORY-")]
    assert sorted(listed) == sorted(each.file for each in folder.scan())
    for number, page in enumerate(pages, 1):
        assert page.count("\n") <= 200
        assert len(page.encode()) <= 25_000
        assert all(len(line) <= 150 for line in page.split("\n"))
        assert (f"(MEMORY-{number + 1}.md)" in page) == (number < len(pages))
    assert folder.drift() == []


@pytest.mark.spec("E1", "E3", "E12")
def test_a_memory_is_written_as_the_format_says(folder: MemoryFolder, project: Project) -> None:
    memory = folder.save(DAY_FIRST, begun(project))
    text = memory.path.read_text()
    modified = memory.modified
    assert text == (
        "---\n"
        "name: date-format\n"
        'description: "Dates in this source are day-first: from the data team"\n'
        "metadata:\n"
        "  node_type: memory\n"
        "  type: feedback\n"
        "  originSessionId: 0193\n".replace("0193\n", '"0193"\n')
        + f"  modified: {modified}\n"
        '  ipymemory_source: {"notebook": "clean.ipynb", "turns": ["0193aa"], '
        '"quote": "dates in this source are day-first", "origin": "markdown", '
        '"subject": "dates: order", "title": "Date format"}\n'
        "---\n\n"
        "Dates are day-first.\n\n**Why:** the data team said so.\n"
        "**How to apply:** `dayfirst=True`.\n"
    )
    again = MemoryFolder(project.memory, project).read("date-format")
    assert again.source == DAY_FIRST.source
    assert (again.kind, again.subject, again.current) == ("feedback", "dates: order", True)
    assert again.body.strip() == DAY_FIRST.body
    assert (project.memory / "MEMORY.md").read_text() == (
        "- [Date format](date-format.md) — Dates in this source are day-first: from the data team\n"
    )
    if os.name == "posix":
        assert memory.path.stat().st_mode & 0o777 == 0o600
        assert project.memory.stat().st_mode & 0o777 == 0o700
    assert sorted(each.name for each in project.memory.iterdir()) == ["MEMORY.md", "date-format.md"]


@pytest.mark.spec("E12")
@pytest.mark.parametrize(
    ("time", "said"),
    [
        ("2026-12-02T05:00:00Z", "today"),
        ("2026-12-01T23:59:59.999Z", "yesterday"),
        ("2026-11-25T10:00:00+02:00", "7 days ago"),
        ("2026-06-02", "6 months ago"),
        ("2020-01-01", "6 years ago"),
        ("2027-01-01", "today"),
        ("last week", "of unknown age"),
    ],
)
def test_how_old_it_is(time: str, said: str) -> None:
    assert age(time, datetime(2026, 12, 2, 6, 0, tzinfo=UTC)) == said


def test_saving_the_same_twice_is_one_memory(folder: MemoryFolder, project: Project) -> None:
    first = folder.save(DAY_FIRST, begun(project))
    before = first.path.read_bytes()
    run = begun(project)
    again = MemoryFolder(project.memory, project).save(DAY_FIRST, run)
    assert again.name == first.name
    assert run.writes == 0
    assert first.path.read_bytes() == before
    assert len(folder.scan()) == 1


def test_long_bodies_are_known_again(folder: MemoryFolder, project: Project) -> None:
    draft = Draft("project", "Long", "A long one", "\n".join(f"Line {n}." for n in range(80)))
    folder.save(draft, begun(project))
    folder.save(draft, begun(project))
    assert len(folder.scan()) == 1
    assert folder.read("long").body.count("Line") == 80
    assert 15 < folder.scan()[0].body.count("Line") < 30


def test_a_change_of_mind_takes_the_old_ones_place(folder: MemoryFolder, project: Project) -> None:
    first = folder.save(DAY_FIRST, begun(project))
    run = begun(project)
    second = folder.save(MONTH_FIRST, run)
    run.close()
    assert [each.name for each in folder.scan()] == [first.name] == [second.name]
    assert "month-first since May" in second.path.read_text()
    assert "day-first" not in second.path.read_text()
    assert "day-first" not in folder.index()
    assert "-Dates are day-first." in History(project.history).diff(run.id)
    in_step(folder)


def test_other_subjects_do_not_retire_each_other(folder: MemoryFolder, project: Project) -> None:
    folder.save(DAY_FIRST, begun(project))
    folder.save(note("Amounts are in cents", "feedback", subject="amounts: unit"), begun(project))
    folder.save(note("The team meets on Mondays"), begun(project))
    folder.save(note("The team has a new lead"), begun(project))
    assert len(folder.scan()) == 4


@pytest.mark.spec("E13")
def test_a_persons_words_are_not_replaced_by_an_outputs(
    folder: MemoryFolder, project: Project
) -> None:
    folder.save(DAY_FIRST, begun(project))
    hostile = note("Dates are whatever", "feedback", "output", subject="dates: order")
    with pytest.raises(MemoryRefused, match="a person's own words"):
        folder.save(hostile, begun(project))
    with pytest.raises(MemoryRefused, match="a person's own words"):
        folder.supersede("date-format", hostile, begun(project))
    assert "day-first" in folder.index()


def test_a_superseded_file_keeps_what_is_a_persons(folder: MemoryFolder, project: Project) -> None:
    path = put(
        folder,
        "x.md",
        "---\r\nname: x\r\n# mine\r\ndescription: Old\r\ntags: [a, b]\r\ntype: project\r\n"
        "---\r\nOld.\r\n",
    )
    folder.supersede("x", note("New fact", "project"), begun(project))
    data = path.read_bytes()
    assert b"# mine\r\ndescription: New fact\r\ntags: [a, b]\r\ntype: project\r\n" in data
    assert data.endswith(b"---\r\n\r\nNew fact\r\n")
    assert data.count(b"\n") == data.count(b"\r\n")


@pytest.mark.spec("L7")
@pytest.mark.parametrize(
    "draft",
    [
        note("The token is ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
        Draft("project", "x", "x", "password = 'hunter2hunter2'"),
        Draft(
            "project", "x", "x", "y", Source(quote="Authorization: Bearer abcdefabcdef0123456789")
        ),
    ],
)
def test_secrets_are_refused(folder: MemoryFolder, project: Project, draft: Draft) -> None:
    with pytest.raises(MemoryRefused, match="looks like a secret"):
        folder.save(draft, begun(project))
    assert not project.memory.exists()


@pytest.mark.spec("L7")
def test_a_secret_that_a_person_wrote_stays_out_of_the_index(folder: MemoryFolder) -> None:
    put(
        folder,
        "x.md",
        "---\nname: my ghp_abcdefghijklmnopqrstuvwxyz0123456789\n"
        "description: use ghp_abcdefghijklmnopqrstuvwxyz0123456789\ntype: user\n---\n",
    )
    assert "ghp_" not in folder.index()
    assert folder.index().count("[masked: github token") == 2
    assert "ghp_" not in folder.manifest()
    assert "my \\[masked: github token\\]" in folder.index()


def test_hashes_and_ids_are_kept(folder: MemoryFolder, project: Project) -> None:
    text = (
        "Good since 4f2a9c1de8b7a6f5c4d3e2f1a0b9c8d7e6f5a4b3, "
        "run 550e8400-e29b-41d4-a716-446655440000"
    )
    assert folder.save(note(text), begun(project)).description == text


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (Draft("rule", "x", "x", "x"), "no kind of memory"),
        (Draft("project", "", "", "  \n"), "the text is empty"),
        (Draft("project", "x", "x", "y" * 20_000), "at most 16 KB"),
    ],
)
@pytest.mark.spec("E1")
def test_what_is_no_memory_is_refused(
    folder: MemoryFolder, project: Project, draft: Draft, said: str
) -> None:
    with pytest.raises(MemoryRefused, match=said):
        folder.save(draft, begun(project))


@pytest.mark.parametrize(
    "title",
    [
        "../../../etc/passwd", "MEMORY", "memory-2", "MEMORY.md", "con", "NUL", ".hidden", "",
        "a/b", "---", "日付の形式", "x" * 300, "é" * 200, "team/rules", "a\x00b", "-rf *", "C:\\x",
        "[a](b.md)", "\u202egnp.md", "\ud800x",
    ],
)  # fmt: skip
def test_a_name_is_a_name_in_the_folder(folder: MemoryFolder, project: Project, title: str) -> None:
    memory = folder.save(Draft("project", title, "Something", "Something."), begun(project))
    assert memory.path.parent == folder.folder
    assert memory.path.is_file()
    assert not memory.path.name.startswith(".")
    assert not memory_place.is_index(memory.path.name)
    assert not memory_place.is_index(memory.path.name.upper().replace(".MD", ".md"))
    assert len(memory.path.name.encode()) <= 255
    assert memory.path.stem.upper() not in {"CON", "NUL"}
    in_step(folder)


def test_names_that_one_file_system_takes_for_one_are_two(
    folder: MemoryFolder, project: Project
) -> None:
    put(folder, "Date-Format.md", "a person's\n")
    put(folder, "date-format-2.md", "another's\n")
    assert folder.save(DAY_FIRST, begun(project)).name == "date-format-3"
    assert (folder.folder / "Date-Format.md").read_text() == "a person's\n"


@pytest.mark.parametrize(
    "text",
    [
        "---\ntype: user\nsuperseded_by: x\n---\nyes",
        "---\nmetadata:\n  superseded_by: x\n---\n",
        "x\n---\ntype: user\n---\n",
        "- [Date format](date-format.md) — forged line\n- [MEMORY](MEMORY-9.md)",
        "# Index\n\n- [x](../../x.md)",
        "a\r\nb\rc\x0bd\x00e\u2028f",
    ],
)
def test_a_body_breaks_out_of_nothing(folder: MemoryFolder, project: Project, text: str) -> None:
    folder.save(DAY_FIRST, begun(project))
    memory = folder.save(
        Draft("project", "a\n---\ntype: user", 'x"\n---\ntype: user\n---\n- [y](y.md)', text),
        begun(project),
    )
    found = MemoryFolder(project.memory, project).read(memory.name)
    assert (found.kind, found.current, found.problem) == ("project", True, "")
    assert len(folder.scan()) == 2
    in_step(folder)
    assert (project.memory / "MEMORY.md").read_text().count("\n") == 2


@pytest.mark.spec("E8")
def test_a_scan_finds_all_and_reads_the_beginning(folder: MemoryFolder, project: Project) -> None:
    folder.save(DAY_FIRST, begun(project))
    put(folder, "sub/deep/x.md", "---\nname: x\ndescription: Deep\ntype: user\n---\nDeep.\n")
    put(folder, "broken.md", "---\nname: “a: b: c\n---\nkept\n")
    put(folder, "plain.md", "Just words.\n")
    put(folder, "latin.md", b"---\nname: \xe9\n---\n")
    put(folder, ".x.md.123.abcdef01.tmp", "half")
    put(folder, ".hidden.md", "hidden")
    put(folder, "notes.txt", "no memory")
    put(folder, "MEMORY-2.md", "")
    for other in ("team", "logs", ".git", "agents"):
        put(folder, f"{other}/y.md", "theirs")
    before = {path: path.read_bytes() for path in folder.folder.rglob("*.md")}
    found = {each.name: each for each in folder.scan()}
    assert sorted(found) == ["broken", "date-format", "latin", "plain", "sub/deep/x"]
    assert found["sub/deep/x"].description == "Deep"
    assert "no valid YAML" in found["broken"].problem
    assert "no UTF-8" in found["latin"].problem
    assert "no frontmatter" in found["plain"].problem
    manifest = folder.manifest()
    assert "- [feedback] date-format.md (20" in manifest
    assert " UTC): Dates in this source are day-first: from the data team" in manifest
    assert "- [user] sub/deep/x.md (" in manifest
    assert "- [?] broken.md (" in manifest
    assert {path: path.read_bytes() for path in folder.folder.rglob("*.md")} == before


@pytest.mark.spec("E8")
@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_links_are_listed_and_not_followed(folder: MemoryFolder, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "id.md").write_text("---\nname: id\ndescription: the key\n---\nkey\n")
    put(folder, "real.md", "---\nname: real\ndescription: d\ntype: user\n---\n")
    (folder.folder / "link.md").symlink_to(secret / "id.md")
    (folder.folder / "there").symlink_to(secret)
    (folder.folder / "loop").symlink_to(folder.folder)
    (folder.folder / "gone.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(folder.folder / "pipe.md")
    found = {each.name: each for each in folder.scan()}
    assert sorted(found) == ["gone", "link", "pipe", "real"]
    assert "link" in found["link"].problem
    assert "the key" not in folder.manifest() + folder.index()
    assert folder.read("link").body == ""


@pytest.mark.spec("E8")
def test_a_manifest_holds_two_hundred_and_the_newest_first(folder: MemoryFolder) -> None:
    for n in range(230):
        day = f"2026-{1 + n // 28:02}-{1 + n % 28:02}"
        put(
            folder,
            f"m{n}.md",
            f"---\nname: m{n}\ndescription: d\nmetadata:\n  type: user\n"
            f"  modified: {day}T00:00:00.000Z\n---\n",
        )
    manifest = folder.manifest().split("\n")
    assert len(manifest) == 201
    assert manifest[0].startswith("- [user] m229.md")
    assert manifest[199].startswith("- [user] m30.md")
    assert manifest[200] == "(30 older ones are not listed here.)"
    assert len(folder.manifest(300).split("\n")) == 230


def test_what_a_killed_save_left_goes(folder: MemoryFolder, project: Project) -> None:
    put(folder, ".x.md.0123456789ab.tmp", "half")
    put(folder, ".MEMORY.md.4711.0123abcd.tmp", "half")
    put(folder, ".mine.tmp", "a person's")
    folder.save(DAY_FIRST, begun(project))
    left = sorted(each.name for each in project.memory.iterdir())
    assert left == [".mine.tmp", "MEMORY.md", "date-format.md"]


def test_an_edit_in_an_editor_is_seen(folder: MemoryFolder, project: Project) -> None:
    memory = folder.save(DAY_FIRST, begun(project))
    text = memory.path.read_text()
    memory.path.write_text(text.replace("day-first: from", "year-first: from"))
    assert "year-first" in folder.scan()[0].description
    memory.path.unlink()
    assert folder.scan() == ()


@pytest.mark.parametrize("name", ["date-format", "date-format.md", "DATE-FORMAT", "date"])
def test_a_memory_is_found_by_what_people_type(
    folder: MemoryFolder, project: Project, name: str
) -> None:
    folder.save(DAY_FIRST, begun(project))
    assert folder.read(name).name == "date-format"


@pytest.mark.parametrize("name", ["../work/x", "/etc/passwd", "", "dote", "x\x00"])
def test_what_is_no_memory_is_not_read(folder: MemoryFolder, project: Project, name: str) -> None:
    folder.save(DAY_FIRST, begun(project))
    with pytest.raises(MemoryMissing):
        folder.read(name)
    with pytest.raises(MemoryMissing):
        folder.read_exactly(name or "..")


def test_a_file_that_changed_since_it_was_read_is_left_alone(
    folder: MemoryFolder, project: Project
) -> None:
    folder.save(DAY_FIRST, begun(project))
    read = folder.read("date-format")
    read.path.write_text(read.path.read_text().replace("said so", "said so on Monday"))
    before = read.path.read_bytes()
    with pytest.raises(HistoryError, match="changed by somebody else"):
        folder.supersede("date-format", MONTH_FIRST, begun(project), seen=read.digest)
    with pytest.raises(HistoryError, match="changed by somebody else"):
        folder.forget("date-format", begun(project), seen=read.digest)
    assert read.path.read_bytes() == before
    fresh = folder.read("date-format")
    folder.supersede("date-format", MONTH_FIRST, begun(project), seen=fresh.digest)
    assert "month-first" in folder.index()


@pytest.mark.spec("L8")
def test_a_save_is_undone_also_after_another(folder: MemoryFolder, project: Project) -> None:
    first = begun(project)
    folder.save(DAY_FIRST, first)
    folder.save(note("The team meets on Mondays"), begun(project))
    History(project.history).undo(first.id)
    folder.rebuild_index()
    assert [each.name for each in folder.scan()] == ["the-team-meets-on-mondays"]
    in_step(folder)


@pytest.mark.spec("L8")
def test_an_undo_does_not_take_a_persons_edit(folder: MemoryFolder, project: Project) -> None:
    run = begun(project)
    memory = folder.save(DAY_FIRST, run)
    memory.path.write_text(memory.path.read_text() + "Mine.\n")
    with pytest.raises(ChangedSince):
        History(project.history).undo(run.id)
    assert memory.path.read_text().endswith("Mine.\n")


@pytest.mark.spec("L12")
def test_what_was_forgotten_is_not_learned_again(folder: MemoryFolder, project: Project) -> None:
    folder.save(DAY_FIRST, begun(project))
    forgot = begun(project)
    gone = folder.forget("date-format", forgot)
    assert not gone.path.exists()
    assert folder.index() == ""
    record = (project.folder / "forgotten.jsonl").read_text()
    assert "day-first" not in record
    reworded = Draft("feedback", "x", "Day comes first", "y", subject="Dates:  Order")
    quoted = Draft("project", "x", "x", "y", Source(quote="Dates in this source are day-first!"))
    fresh = MemoryFolder(project.memory, project)
    for draft in (DAY_FIRST, reworded, quoted):
        assert fresh.forgotten(draft)
        with pytest.raises(MemoryRefused, match="forgot this before"):
            fresh.save(draft, begun(project))
    other = note("Amounts are in cents", "feedback", subject="amounts: unit")
    assert not fresh.forgotten(other)
    fresh.save(other, begun(project))
    # The user may change their mind, by hand or by undo.
    fresh.save(DAY_FIRST, begun(project), asked=True)
    assert not fresh.forgotten(DAY_FIRST)
    fresh.forget("date-format", begun(project))
    assert fresh.forgotten(DAY_FIRST)


@pytest.mark.spec("L12", "L8")
def test_an_undone_forgetting_forgets_nothing(folder: MemoryFolder, project: Project) -> None:
    folder.save(DAY_FIRST, begun(project))
    run = begun(project)
    folder.forget("date-format", run)
    History(project.history).undo(run.id)
    folder.rebuild_index()
    assert not folder.forgotten(DAY_FIRST)
    assert folder.save(DAY_FIRST, begun(project)).name == "date-format"
    in_step(folder)


@pytest.mark.spec("L10")
@pytest.mark.parametrize("mode", ["read", "off"])
def test_no_mode_but_auto_and_confirm_writes(project: Project, mode: str) -> None:
    MemoryFolder(project.memory, project).save(DAY_FIRST, begun(project))
    folder = MemoryFolder(project.memory, project, mode=mode)
    run = begun(project)
    tries: list[Callable[[], object]] = [
        lambda: folder.save(MONTH_FIRST, run, confirmed=True, asked=True),
        lambda: folder.supersede("date-format", MONTH_FIRST, run, confirmed=True),
        lambda: folder.forget("date-format", run, confirmed=True),
        lambda: folder.keep(MONTH_FIRST, run, asked=True),
        lambda: folder.drop("date-format", run),
    ]
    for each in tries:
        with pytest.raises(MemoryRefused, match=f"No memory is written in mode {mode}"):
            each()
    assert run.writes == 0
    assert not project.proposals.exists()


@pytest.mark.spec("L10", "E13")
@pytest.mark.parametrize("shared", [False, True])
def test_where_a_write_waits_it_is_a_proposal(project: Project, shared: bool) -> None:
    MemoryFolder(project.memory, project).save(DAY_FIRST, begun(project))
    folder = MemoryFolder(
        project.memory, project, shared=shared, mode="auto" if shared else "confirm"
    )
    before = {path: path.read_bytes() for path in project.memory.iterdir()}
    run = begun(project)
    for each in (
        lambda: folder.save(MONTH_FIRST, run),
        lambda: folder.supersede("date-format", MONTH_FIRST, run),
        lambda: folder.forget("date-format", run),
    ):
        with pytest.raises(MemoryRefused, match="only proposed"):
            each()
    kept = folder.keep(MONTH_FIRST, run)
    again = folder.keep(MONTH_FIRST, run)
    dropped = folder.drop("date-format", run)
    assert isinstance(kept, Proposal)
    assert isinstance(again, Proposal)
    assert isinstance(dropped, Proposal)
    assert (kept.id, kept.name, kept.draft) == (again.id, "date-format", MONTH_FIRST)
    waiting = proposals.waiting(project.proposals)
    assert [each.id for each in waiting] == [kept.id, dropped.id]
    assert {path: path.read_bytes() for path in project.memory.iterdir()} == before
    memory = folder.accept(waiting[0], begun(project))
    assert "month-first" in memory.description
    assert folder.accept(waiting[1], begun(project)).name == "date-format"
    assert folder.scan() == ()
    assert proposals.waiting(project.proposals) == []


def test_the_mode_of_the_project_goes_first(project: Project) -> None:
    assert opened(project, Settings()).mode == "auto"
    project.set_property("mode", "read")
    assert opened(project, Settings()).mode == "read"


# The index


@pytest.mark.spec("E3", "E10")
def test_a_persons_lines_stay(folder: MemoryFolder, project: Project) -> None:
    folder.save(DAY_FIRST, begun(project))
    mine = (
        "# Our memory\r\n\nRead this first.\n\n## Dates\n"
        "- [Date format](date-format.md) — "
        "Dates in this source are day-first: from the data team\n"
        "- [The wiki](wiki.md) — mine, leads nowhere\n"
        "- [Web](https://example.org/x.md)\n* a bullet\n"
        "\n## Rest\n"
    )
    (project.memory / "MEMORY.md").write_bytes(mine.encode())
    folder.save(note("The team meets on Mondays"), begun(project))
    text = (project.memory / "MEMORY.md").read_bytes().decode()
    added = (
        "- [The team meets on Mondays](the-team-meets-on-mondays.md) — The team meets on Mondays\n"
    )
    dates = "from the data team\n"
    assert text == mine.replace(dates, dates + added).rstrip("\n") + "\n"
    folder.forget("date-format", begun(project))
    text = (project.memory / "MEMORY.md").read_bytes().decode()
    assert "date-format" not in text
    for line in ("# Our memory\r\n", "- [The wiki](wiki.md) — mine, leads nowhere\n", "* a bullet"):
        assert line in text
    there = {each.file for each in folder.scan()}
    assert lines.dangling(folder.pages(), there) == ["- [The wiki](wiki.md) — mine, leads nowhere"]


def test_a_line_that_another_wrote_stays_until_its_memory_goes(
    folder: MemoryFolder, project: Project
) -> None:
    put(folder, "x.md", "---\nname: x\ndescription: d\ntype: user\n---\n")
    put(folder, "MEMORY.md", "- [My own title](x.md) — and my own hook\n")
    folder.save(DAY_FIRST, begun(project))
    assert "- [My own title](x.md) — and my own hook\n" in folder.pages()[0]
    in_step(folder)


def test_our_line_follows_an_edit_and_a_deletion_by_hand(
    folder: MemoryFolder, project: Project
) -> None:
    first = folder.save(DAY_FIRST, begun(project))
    second = folder.save(note("The team meets on Mondays"), begun(project))
    first.path.write_text(first.path.read_text().replace("data team", "finance team"))
    second.path.unlink()
    fresh = MemoryFolder(project.memory, project)
    assert fresh.drift() != []
    assert "finance team" in fresh.index()
    fresh.save(note("A third thing"), begun(project))
    text = (project.memory / "MEMORY.md").read_text()
    assert "finance team" in text
    assert "mondays" not in text
    in_step(fresh)


def test_a_missing_index_is_rebuilt(folder: MemoryFolder, project: Project) -> None:
    for n in range(3):
        folder.save(note(f"Fact number {n}"), begun(project))
    (project.memory / "MEMORY.md").unlink()
    (project.folder / "listed.json").unlink()
    assert folder.mend()
    assert not folder.mend()
    in_step(folder)


def many(folder: MemoryFolder, count: int, words: int = 10) -> None:
    for n in range(count):
        put(
            folder,
            f"m{n:04}.md",
            f"---\nname: m{n:04}\ndescription: {'about it ' * words}\nmetadata:\n  type: user\n"
            f"  modified: 2026-11-{1 + n % 28:02}T00:00:00.{n % 1000:03}Z\n---\n",
        )


@pytest.mark.spec("E3")
@pytest.mark.parametrize(("count", "words"), [(199, 1), (200, 1), (201, 1), (450, 20), (1000, 2)])
def test_past_the_limits_lines_move_to_pages(
    folder: MemoryFolder, project: Project, count: int, words: int
) -> None:
    many(folder, count, words)
    folder.rebuild_index()
    in_step(folder)
    if count == 200:
        assert len(folder.pages()) == 1
    newest = folder.save(note("The newest of all"), begun(project))
    in_step(folder)
    assert newest.file in folder.pages()[0]
    assert (len(folder.pages()) > 1) == (count >= 200)
    if count == 1000:
        oldest = folder.scan()[-1].file
        assert oldest not in folder.pages()[0]


def test_what_was_recalled_stays_on_the_first_page(folder: MemoryFolder, project: Project) -> None:
    many(folder, 300, 1)
    oldest = folder.scan()[-1]
    project.folder.mkdir(parents=True, exist_ok=True)
    with (project.folder / "usage.jsonl").open("a") as file:
        file.write('{"type":"call","job":"notes"}\n')
        file.write(
            json.dumps(
                {"type": "recall", "time": "2026-12-01T00:00:00.000Z", "memories": [oldest.name]}
            )
            + "\n"
        )
    folder.rebuild_index()
    assert oldest.file in folder.pages()[0]
    in_step(folder)


def test_a_save_rewrites_few_pages(folder: MemoryFolder, project: Project) -> None:
    many(folder, 1000, 2)
    folder.rebuild_index()
    before = folder.pages()
    folder.save(note("One more"), begun(project))
    after = folder.pages()
    assert sum(one != other for one, other in zip(before, after, strict=True)) <= 2


def test_pages_go_when_they_are_empty(folder: MemoryFolder, project: Project) -> None:
    many(folder, 400, 1)
    folder.rebuild_index()
    assert len(folder.pages()) > 1
    for path in sorted(project.memory.glob("m*.md"))[50:]:
        path.unlink()
    folder.save(note("One more"), begun(project))
    assert len(folder.pages()) == 1
    assert not (project.memory / "MEMORY-2.md").exists()
    in_step(folder)


def test_a_persons_long_index_stays_and_the_memories_are_listed(
    folder: MemoryFolder, project: Project
) -> None:
    mine = "".join(f"line {n}\n" for n in range(250))
    put(folder, "MEMORY.md", mine)
    folder.save(DAY_FIRST, begun(project))
    first, second = folder.pages()
    assert first == mine + "\n- [More memories](MEMORY-2.md)\n"
    assert "date-format.md" in second
    assert lines.too_long(first)


@pytest.mark.skipif(os.name == "nt", reason="Windows allows no such names")
@pytest.mark.parametrize(
    "name", ["a b.md", "a(b).md", "a%20b.md", "[x].md", "a\nb.md", "日付.md", "x" * 251 + ".md"]
)
def test_odd_names_of_files_have_their_line(folder: MemoryFolder, name: str) -> None:
    put(folder, name, "---\nname: '[a](b) \\ x'\ndescription: '] [c](d.md)'\ntype: user\n---\n")
    folder.rebuild_index()
    pages = folder.pages()
    assert lines.listed(pages) == {name}
    assert pages[0].count("\n") == 1
    assert folder.drift() == []


# Claude Code's folder


@pytest.mark.parametrize(
    ("root", "slug"),
    [
        ("/home/user/my_project", "-home-user-my-project"),
        ("E:\\MatLab_HomeWork", "E--MatLab-HomeWork"),
        ("/me/proj/.worktrees/2573", "-me-proj--worktrees-2573"),
        ("/home/u/日付", "-home-u---"),
        ("/home/u/e\u0301t\u00e9", "-home-u--t-"),
    ],
)
def test_claude_codes_name_of_a_folder(root: str, slug: str) -> None:
    assert memory_place.slug(root) == slug


def test_the_folder_is_claude_codes_only_when_it_is_set(project: Project, tmp_path: Path) -> None:
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    assert memory_place.memory_place(project, "own", environment).folder == project.memory
    place = memory_place.memory_place(project, "claude", environment)
    name = memory_place.slug(str(project.root))
    assert place == memory_place.MemoryPlace(
        tmp_path / "claude" / "projects" / name / "memory", True
    )


def test_its_settings_are_heard_and_not_a_repositorys(project: Project, tmp_path: Path) -> None:
    config = tmp_path / "claude"
    environment = {"CLAUDE_CONFIG_DIR": str(config)}
    theirs = project.root / ".claude"
    theirs.mkdir()
    (theirs / "settings.json").write_text(json.dumps({"autoMemoryDirectory": "/etc"}))
    place = memory_place.memory_place(project, "claude", environment)
    assert place.folder.is_relative_to(config)
    config.mkdir()
    (config / "settings.json").write_text(json.dumps({"autoMemoryDirectory": str(tmp_path / "m")}))
    assert memory_place.memory_place(project, "claude", environment).folder == tmp_path / "m"
    (config / "settings.json").write_text(json.dumps({"autoMemoryDirectory": "here"}))
    assert "no full path" in memory_place.memory_place(project, "claude", environment).refusal
    off = {**environment, "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}
    assert "CLAUDE_CODE_DISABLE" in memory_place.memory_place(project, "claude", off).refusal


def test_a_long_path_is_the_folder_that_is_there(tmp_path: Path, home: Path) -> None:
    root = tmp_path.joinpath(*["a" * 60] * 4)
    root.mkdir(parents=True)
    project = places.project_of(root, home)
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    assert "no folder" in memory_place.memory_place(project, "claude", environment).refusal
    there = tmp_path / "claude/projects" / f"{memory_place.slug(str(root))[:200]}-1a2b"
    there.mkdir(parents=True)
    place = memory_place.memory_place(project, "claude", environment)
    assert (place.folder, place.refusal) == (there / "memory", "")


@pytest.mark.spec("E13")
def test_two_roots_do_not_share_one_of_its_folders(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    settings = Settings()
    settings.memory.folder = "claude"
    (tmp_path / "spec-rl").mkdir()
    (tmp_path / "spec" / "rl").mkdir(parents=True)
    first, second = (places.project_of(tmp_path / each, home) for each in ("spec-rl", "spec/rl"))
    one = opened(first, settings)
    one.save(DAY_FIRST, begun(first), confirmed=True)
    assert one.folder == opened(second, settings).folder
    other = opened(second, settings)
    assert "belongs to" in other.refusal
    with pytest.raises(MemoryRefused, match="belongs to"):
        other.save(MONTH_FIRST, begun(second), confirmed=True)
    # Also one that was opened before the other claimed it.
    late = MemoryFolder(one.folder, second, shared=True)
    with pytest.raises(PlaceError, match="belongs to"):
        late.save(MONTH_FIRST, begun(second), confirmed=True)
    assert sorted(each.name for each in one.folder.iterdir()) == ["MEMORY.md", "date-format.md"]


# Several processes

SAVER = """
import sys, time
from pathlib import Path
from ipymemory import places
from ipymemory.history import History
from ipymemory.memory_files import Draft, MemoryFolder
root, home, who, count, forget = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:6]
project = places.project_of(root, home)
folder, history = MemoryFolder(project.memory, project), History(project.history)
for n in range(int(count)):
    run = history.begin("extraction", "extractive", "test", (), who)
    text = f"Fact {n} of process {who}"
    saved = folder.save(Draft("project", text, text, text), run)
    sys.stdout.write(saved.name + "\\n")
    sys.stdout.flush()
    if n % 10 == 9 and forget == "1":
        folder.forget(saved.name, run)
    run.close()
"""


def saver(project: Project, who: str, count: int, *, forget: bool = False) -> subprocess.Popen[str]:
    top = Path(__file__).parent.parent
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            SAVER,
            project.root,
            project.home,
            who,
            str(count),
            str(int(forget)),
        ],
        env={**os.environ, "PYTHONPATH": str(top)},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.worker
def test_two_processes_lose_no_line(folder: MemoryFolder, project: Project) -> None:
    running = [saver(project, each, 20) for each in "ab"]
    assert [each.wait(120) for each in running] == [0, 0]
    for each in running:
        each.communicate()
    assert len(folder.scan()) == 40
    in_step(folder)


@pytest.mark.worker
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL on Windows")
def test_a_killed_save_leaves_the_folder_whole(folder: MemoryFolder, project: Project) -> None:
    told = 0
    for life in range(12):
        process = saver(project, f"k{life}", 1000)
        assert process.stdout is not None
        process.stdout.readline()
        told += 1
        time.sleep(0.02 + 0.011 * life)
        process.send_signal(signal.SIGKILL)
        told += process.communicate()[0].count("\n")
    found = folder.scan()
    assert len(found) >= told
    assert not [each.problem for each in found if each.problem]
    folder.save(DAY_FIRST, begun(project))
    in_step(folder)
    assert not [each.name for each in project.memory.iterdir() if each.name.startswith(".")]
    assert len(History(project.history).entries()) > 0


@pytest.mark.worker
@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL on Windows")
def test_sixteen_processes_save_and_forget_while_one_is_killed(
    folder: MemoryFolder, project: Project
) -> None:
    running = [saver(project, f"p{n}", 50, forget=True) for n in range(16)]
    victim = running.pop()
    assert victim.stdout is not None
    for _ in range(7):
        victim.stdout.readline()
    victim.kill()
    saved = victim.communicate()[0].count("\n") + 7
    outs = [each.communicate(timeout=600)[0] for each in running]
    assert [each.returncode for each in running] == [0] * 15
    names = [name for out in outs for name in out.split()]
    assert len(names) == len(set(names)) == 15 * 50
    found = folder.scan()
    whole = [each for each in found if "of process p15" not in each.description]
    assert len(whole) == 15 * 45
    assert saved - 1 <= len(found) - len(whole) <= saved + 1
    folder.rebuild_index()
    in_step(folder)
    assert not [each.name for each in project.memory.iterdir() if each.name.startswith(".")]


def test_kinds_are_four() -> None:
    assert KINDS == ("user", "feedback", "project", "reference")
