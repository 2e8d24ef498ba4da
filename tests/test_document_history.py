"""Updates that stand in cells of the open notebook: listed, shown and undone like any write."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recorded import Clock
from test_live_documents import DOC, Book, place, session

from ipymemory import document_history
from ipymemory.commands import table
from ipymemory.document_history import Applied, own_part
from ipymemory.errors import CommandError
from ipymemory.held import resolved
from ipymemory.history import History
from ipymemory.turns import new_id, utc_now

NEW = DOC + "\n<!-- ipymemory:begin -->\nnew\n<!-- ipymemory:end -->\n"


@pytest.fixture
def book(home: Path, tmp_path: Path) -> Book:
    return Book(home, tmp_path / "work")


class Shown:
    """A page that shows one cell, and what it was asked."""

    def __init__(self, cell: str = "c0") -> None:
        self.cell = cell
        self.asked: list[tuple[Any, ...]] = []

    def shows(self, cell: str) -> bool:
        return cell == self.cell

    def take_back(self, *asked: Any, again: bool) -> None:
        self.asked.append((*asked, again))


def noted(book: Book, job: str = "", **fields: str) -> History:
    history = History(book.project.history)
    made = Applied("c0", "Tides", DOC, NEW, "extractive", job or new_id())
    document_history.note(history, book.folder, replace(made, **fields))
    return history


@pytest.mark.spec("L8", "M7")
def test_an_update_in_a_cell_is_listed_shown_and_undone(book: Book) -> None:
    book.cell("x = 1")
    job = new_id()
    history = noted(book, job)
    noted(book, job)
    assert [each.id for each in history.entries()] == [job], "twice told is once written"
    page = Shown()
    here = place(book, SimpleNamespace(frontend=page))
    assert 'update of "Tides" in its cell' in table.call(here, ["history"]).plain
    assert "+new" in table.call(here, ["diff"]).plain
    said = table.call(here, ["undo"]).plain
    assert "The page puts the text back" in said
    assert page.asked == [("c0", NEW, DOC, job, False)]
    assert history.is_undone(job)
    # notes that wrote themselves meanwhile are nothing that a person sees
    document_history.redone(history, job)
    run = history.begin("session_notes", "extractive", "1 turn", (), book.folder.id)
    run.write(resolved(book.folder.notes), b"# Notes\n", seen=None)
    table.call(here, ["undo"])
    assert history.is_undone(job) and len(page.asked) == 2
    # the undo is undone, by a command and by the page
    table.call(here, ["undo", history.find().id])
    assert len(page.asked) == 3
    assert page.asked[-1] == ("c0", DOC, NEW, job, True) and not history.is_undone(job)
    document_history.undone(history, job)
    assert history.is_undone(job)
    document_history.undone(history, job)
    document_history.redone(history, job)
    assert not history.is_undone(job)
    # what they wrote since is no reason to refuse: the page keeps it
    noted(book, base=NEW + "mine\n", source=NEW + "mine\n" + "newer\n")
    table.call(here, ["undo", job])
    assert page.asked[-1][3] == job


@pytest.mark.spec("L8")
def test_where_no_page_shows_the_cell_nothing_is_undone(book: Book) -> None:
    book.cell("x = 1")
    history = noted(book)
    for live in (SimpleNamespace(frontend=None), SimpleNamespace(frontend=Shown("c9"))):
        with pytest.raises(CommandError, match="Open the notebook there"):
            table.call(place(book, live), ["undo"])
    # a terminal means the newest that it can take back
    closed = replace(place(book), live=None)
    assert "nothing left to undo" in table.call(closed, ["undo"]).plain
    with pytest.raises(CommandError, match="Open the notebook there"):
        table.call(closed, ["undo", history.find().id])
    assert not history.is_undone(history.find().id)


@pytest.mark.parametrize("cell", ["", "..", "../x", "a/b", "a:b", "x" * 65, "a\n", "é"])
def test_a_cell_with_an_id_that_no_notebook_has_names_no_file(book: Book, cell: str) -> None:
    history = noted(book, cell=cell)
    assert history.entries() == []
    assert not (book.folder.path / "cells").exists()


def test_a_link_in_place_of_the_folder_is_not_followed_out(book: Book, tmp_path: Path) -> None:
    if os.name == "nt":
        return
    outside = tmp_path / "outside"
    outside.mkdir()
    history = noted(book)
    path = history.find().writes[0].path
    path.unlink()
    path.symlink_to(outside / "target")
    noted(book, source=NEW + "more\n")
    assert list(outside.iterdir()) == []


def told(book: Book, outcome: str, source: str, cell: str = "c0") -> None:
    line = {"type": "event", "id": new_id(), "time": utc_now(), "name": "document"}
    book.writer.append({**line, "cell_id": cell, "outcome": outcome, "text": own_part(source)})


@pytest.mark.spec("L8", "M3")
@pytest.mark.parametrize("outcome", ["dismissed", "undone"])
def test_what_was_taken_back_comes_again_only_from_other_cells(book: Book, outcome: str) -> None:
    clock = Clock()
    book.cell("x = 1")
    one = session(book, clock)
    asyncio.run(one.update_documents())
    (proposal,) = book.waiting()
    told(book, "applied", proposal.source)
    told(book, outcome, proposal.source)
    # with what they write around it, too; and in a session that knows of it only by the record
    book.prose(DOC + "\nMine.\n")
    for again in (one, session(book, clock)):
        asyncio.run(again.update_documents())
        assert book.waiting() == []
    told(book, "undone", proposal.source, cell="another")
    book.ran("tidy = raw.dropna(how='all')", "c3")
    asyncio.run(one.update_documents())
    (other,) = book.waiting()
    assert "Mine." in other.source
    # who takes it again wants it
    told(book, "accepted", other.source)
    told(book, outcome, other.source)
    told(book, "accepted", other.source)
    asyncio.run(one.update_documents())
    assert len(book.waiting()) == 1


@pytest.mark.spec("L8", "M9")
def test_a_text_whose_update_was_taken_back_rests_on_no_cell_as_it_is(book: Book) -> None:
    from ipymemory.events import Bus, Event

    events: list[Event] = []
    bus = Bus()
    bus.subscribe(events.append)
    book.cell("x = 1")
    one = session(book, Clock(), bus)
    asyncio.run(one.update_documents())
    (proposal,) = book.waiting()
    told(book, "dismissed", proposal.source)
    events.clear()
    asyncio.run(one.update_documents())
    assert not [each for each in events if each.kind == "document"]
