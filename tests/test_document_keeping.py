"""The project's own ``.md`` documents: found, read, accepted once, kept, let go."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from recorded import Clock, until
from test_document_files import notebook, written
from test_live_documents import Book, place, session
from workers import Piped

from ipymemory import document_acceptance, document_keeping
from ipymemory.commands import table
from ipymemory.document_files import of_file
from ipymemory.errors import CommandError, IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.session import MemorySession

ALL = "# MAGIC DOC: All\n_Short._\n\nMine.\n"


@pytest.fixture
def book(home: Path, tmp_path: Path) -> Book:
    return Book(home, tmp_path / "work", "# Tides\n")


def known(book: Book) -> list[str]:
    root = book.project.root
    files = document_acceptance.known(book.project).files
    return sorted(each.relative_to(root).as_posix() for each in files)


def put(book: Book, name: str, text: str = ALL) -> Path:
    path = book.project.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def update(one: MemorySession) -> Any:
    return asyncio.run(one.update_documents())


@pytest.mark.spec("M2")
def test_they_are_found_in_the_root_and_one_folder_down(book: Book, home: Path) -> None:
    found = ["ALL.md", "docs/Deep.MD"]
    for name in (
        *found,
        "docs/more/too_deep.md",
        ".git/x.md",
        ".hidden/x.md",
        ".hidden.md",
        "node_modules/x.md",
        "site-packages/x.md",
        "env/x.md",
        "conda/x.md",
        "notes.txt",
    ):
        put(book, name)
    put(book, "env/pyvenv.cfg")
    put(book, "conda/conda-meta/history")
    put(book, "level.md", "## MAGIC DOC: Two\n")
    put(book, "plain.md", "# Plain\n")
    put(book, "late.md", "\n" * 5000 + ALL)
    outside = home.parent / "outside"
    outside.mkdir()
    (outside / "x.md").write_text(ALL)
    (book.project.root / "link.md").symlink_to(outside / "x.md")
    (book.project.root / "linked").symlink_to(outside)
    if hasattr(os, "mkfifo"):
        os.mkfifo(book.project.root / "pipe.md")
    one = session(book, Clock())
    one.documenting.look_around()
    assert known(book) == found
    one.documenting.look_around()
    assert known(book) == found, "registered once"


@pytest.mark.spec("M2")
def test_our_own_home_is_none_of_the_projects_folders(tmp_path: Path) -> None:
    work = tmp_path / "work"
    book = Book(work / "memories", work, "# Tides\n")
    put(book, "memories/x.md")
    put(book, "ALL.md")
    session(book, Clock()).documenting.look_around()
    assert known(book) == ["ALL.md"]


@pytest.mark.spec("M2")
def test_looking_around_is_bounded(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_keeping, "MOST_FILES", 3)
    monkeypatch.setattr(document_keeping, "MOST_FOLDERS", 1)
    for number in range(3):
        put(book, f"a{number}.md", "# Plain\n")
    put(book, "b.md")
    one = session(book, Clock())
    one.documenting.look_around()
    assert known(book) == []
    (book.project.root / "a0.md").unlink()
    (book.project.root / "a1.md").unlink()
    put(book, "f1/c.md")
    put(book, "f2/d.md")
    one.documenting.look_around()
    assert known(book) == ["b.md", "f1/c.md"]
    monkeypatch.setattr(document_acceptance, "MOST_FILES", 2)
    put(book, "e.md")
    monkeypatch.setattr(document_keeping, "MOST_FILES", 30)
    one.documenting.look_around()  # it says so in the log, and raises nothing
    assert known(book) == ["b.md", "f1/c.md"]
    (book.project.root / "b.md").unlink()
    one.documenting.look_around()
    assert known(book) == ["e.md", "f1/c.md"], "what is gone makes room"


@pytest.mark.spec("M2")
def test_one_that_the_assistant_reads_is_noticed(book: Book, tmp_path: Path) -> None:
    bus = Bus()
    one = session(book, Clock(), bus)
    deep = put(book, "a/b/c/Deep.md")
    others = [
        put(book, "a/b/plain.md", "# Plain\n"),
        put(book, "a/node_modules/x.md"),
        put(book, ".git/x.md"),
        tmp_path / "outside.md",
        book.project.root / "a" / ".." / ".." / "outside.md",
        book.project.root / "gone.md",
    ]
    (tmp_path / "outside.md").write_text(ALL)
    for path in (deep, *others):
        bus.emit(Event("call", "ask", "r", {"tool": "Read", "path": str(path)}))
    bus.emit(Event("call", "extraction", "r", {"tool": "Read", "path": str(put(book, "x/y/z.md"))}))
    # Nothing ran but the question, and the mode writes nothing: it is remembered all the same.
    book.project.set_property("mode", "read")
    assert one.documenting._may_hold()
    update(one)
    assert known(book) == ["a/b/c/Deep.md"]
    assert deep.read_text() == ALL, "it waits to be accepted"


@pytest.mark.spec("M2", "M5", "M9")
def test_what_was_found_is_written_once_it_was_accepted(book: Book) -> None:
    path, other = put(book, "ALL.md"), put(book, "docs/Other.md", "# MAGIC DOC: Other\n")
    one = session(book, Clock())
    one.documenting.look_around()
    book.cell("x = 1")
    assert update(one).wrote == ()
    assert path.read_text() == ALL
    here = place(book)
    page = table.call(here, ["docs"])
    assert "`%memory docs accept All` lets it be kept up to date" in page.plain
    assert not any(each["accepted"] for each in page.data["documents"])
    with pytest.raises(CommandError, match="More than one document waits to be accepted"):
        table.call(here, ["docs", "accept"])
    with pytest.raises(CommandError, match="No document waits to be accepted"):
        table.call(here, ["docs", "accept", "nothing"])
    said = table.call(here, ["docs", "accept", "all"]).plain
    assert said.startswith('Accepted: "All". After cells have run it is kept up to date')
    assert update(one).wrote == ("All",)
    assert path.read_text().startswith(ALL + "\n<!-- ipymemory:begin -->\n## Overview\n")
    assert "`raw.csv`" in path.read_text()
    assert of_file(path)[0].stale == ()
    assert other.read_text() == "# MAGIC DOC: Other\n"
    assert "Undone: magic_docs" in table.call(here, ["undo"]).plain
    assert path.read_text() == ALL


@pytest.mark.spec("M2")
@pytest.mark.parametrize(
    "changed",
    [
        ALL.replace("All", "Everything"),
        ALL.replace("_Short._", "_Say what the owner wants._"),
        ALL.replace("_Short._\n", ""),
        ALL.replace("_Short._\n", "\n*Short.*\n"),
    ],
)
def test_another_heading_or_instruction_is_accepted_anew(book: Book, changed: str) -> None:
    path = put(book, "ALL.md")
    here = place(book)
    table.call(here, ["docs", "add", str(path)])
    one = session(book, Clock())
    book.cell("x = 1")
    path.write_text(changed)
    assert update(one).wrote == ()
    assert path.read_text() == changed
    assert "docs accept" in table.call(here, ["docs"]).plain
    table.call(here, ["docs", "accept"])
    assert len(update(one).wrote) == 1


@pytest.mark.spec("M2")
def test_a_copy_and_a_renamed_file_are_accepted_anew(book: Book) -> None:
    path = put(book, "ALL.md")
    table.call(place(book), ["docs", "add", str(path)])
    copy = put(book, "COPY.md")
    one = session(book, Clock())
    one.documenting.look_around()
    book.cell("x = 1")
    assert update(one).wrote == ("All",)
    assert copy.read_text() == ALL
    renamed = path.rename(book.project.root / "RENAMED.md")
    before = renamed.read_text()
    one.documenting.look_around()
    book.cell("y = 1")
    assert update(one).wrote == ()
    assert renamed.read_text() == before
    # An old name with a new text below the same lines is what was accepted.
    path.write_text(ALL.replace("Mine.", "Ours."))
    assert update(one).wrote == ("All",)


@pytest.mark.spec("M4")
def test_one_that_is_away_for_a_moment_is_waited_for(book: Book) -> None:
    path = put(book, "ALL.md")
    table.call(place(book), ["docs", "add", str(path)])
    one = session(book, Clock())
    for gone in (path.unlink, lambda: path.write_text(""), lambda: path.write_text(" \n\n")):
        gone()
        book.cell("x = 1")
        assert update(one).wrote == ()
        assert known(book) == ["ALL.md"]
        path.write_text(ALL)
        assert update(one).wrote == ("All",)
    path.write_text("# Mine now\n")
    update(one)
    assert known(book) == []
    assert path.read_text() == "# Mine now\n"
    path.write_text(ALL)
    assert update(one).wrote == (), "no longer tracked"


@pytest.mark.spec("M9", "M2")
def test_one_cell_id_in_two_notebooks_is_no_mix_up(book: Book) -> None:
    root = book.project.root
    written(root / "other.ipynb", notebook("# Other\n", ["tail = 1", "b = tail", "c = b"]))
    one, two = put(book, "ALL.md"), put(book, "docs/Sub.md", "# MAGIC DOC: Sub\n")
    written(root / "docs" / "book.ipynb", notebook("# Sub\n", ["deep = 1", "d = deep", "e = d"]))
    for each in (one, two):
        table.call(place(book), ["docs", "add", str(each)])
    book.cell("x = 1")
    update(session(book, Clock()))
    assert "`deep`" in two.read_text() and "`tail`" not in two.read_text()
    (found,) = of_file(one)
    assert len(found.cells) == 9 and len({each.key for each in found.cells}) == 9
    written(root / "other.ipynb", notebook("# Other\n", ["tail = 2", "b = tail", "c = b"]))
    assert of_file(one)[0].stale == ("[code 1] of other.ipynb has changed",)
    assert of_file(two)[0].stale == ()


@pytest.mark.spec("L10", "M2")
def test_in_the_mode_that_asks_a_file_waits_for_a_yes(book: Book) -> None:
    path, other = put(book, "ALL.md"), put(book, "OTHER.md", "# MAGIC DOC: Other\n")
    here = place(book)
    table.call(here, ["docs", "add", str(path)])
    book.project.set_property("mode", "confirm")
    one = session(book, Clock())
    one.documenting.look_around()
    book.cell("x = 1")
    assert update(one).wrote == ()
    page = table.call(here, ["docs"])
    assert 'An update of "All" in ALL.md waits:\n\n```diff\n' in page.markdown
    assert "docs apply TITLE` writes the file" in page.markdown
    assert [each["title"] for each in page.data["files"]] == ["All"]
    assert path.read_text() == ALL
    page = table.call(here, ["docs", "apply", "all"])
    assert page.next_input == "" and page.plain.startswith('"All" is written to ')
    assert path.read_text().startswith(ALL + "\n<!-- ipymemory:begin -->")
    assert of_file(path)[0].stale == ()
    assert other.read_text() == "# MAGIC DOC: Other\n", "nobody accepted it"
    assert table.call(here, ["docs"]).data["files"] == []
    with pytest.raises(CommandError, match="No update waits"):
        table.call(here, ["docs", "apply", "all"])
    assert table.call(here, ["docs", "check"]).data["files"] == 3, "notebook and both files"
    assert "Undone: magic_docs" in table.call(here, ["undo"]).plain
    assert path.read_text() == ALL


def test_on_the_command_line_files_are_accepted(
    book: Book, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipymemory import cli

    monkeypatch.chdir(book.project.root)
    path = put(book, "ALL.md")
    assert cli.main(["docs", "accept"]) == 2
    assert "docs accept PATHS" in capsys.readouterr().err
    assert cli.main(["docs", "accept", "gone.md"]) == 2
    assert cli.main(["docs", "accept", "."]) == 0
    assert 'Accepted: "All"' in capsys.readouterr().out
    book.cell("x = 1")
    assert update(session(book, Clock())).wrote == ("All",)
    assert path.read_text() != ALL


def test_a_broken_record_holds_nothing_and_is_left_alone(book: Book) -> None:
    path = put(book, "ALL.md")
    record = book.project.folder / "magic-docs.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("[")
    assert document_acceptance.known(book.project).files == ()
    with pytest.raises(IpymemoryError):
        table.call(place(book), ["docs", "add", str(path)])
    session(book, Clock()).documenting.look_around()
    assert record.read_text() == "["


@pytest.mark.worker
@pytest.mark.spec("M2")
def test_the_worker_looks_around_as_it_begins(book: Book) -> None:
    put(book, "ALL.md")
    with Piped(book) as worker:
        worker.hello()
        until(lambda: known(book) == ["ALL.md"], "the file is found")
        worker.say(type="bye")
        assert worker.ends() == 0
