"""Living documents of a running notebook: when, from what, and that the file is only read."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, eventually
from recorded import Clock, Recorded
from test_document_files import notebook, written

from ipymemory import (
    document_acceptance,
    document_files,
    document_proposals,
    document_records,
    redaction,
)
from ipymemory.commands import table
from ipymemory.commands.place import Place
from ipymemory.config import Settings
from ipymemory.documents import find
from ipymemory.errors import CommandError, IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.session import MemorySession
from ipymemory.turns import new_id, utc_now

DOC = "# MAGIC DOC: Tides\n_Short._\n"
CODE = ["import pandas as pd", "raw = pd.read_csv('raw.csv')", "tidy = raw.dropna()"]


class Book(Recorded):
    """A recorded session of a saved notebook with a document in it."""

    def __init__(self, home: Path, work: Path, doc: str = DOC, name: str = "book") -> None:
        super().__init__(home, work, name)
        self.path = written(work / f"{name}.ipynb", notebook(doc, CODE))
        if head := find(doc):
            document_acceptance.accept(self.project, [(self.path, head)])

    def ran(self, source: str, cell: str, *names: dict[str, Any]) -> None:
        """Append a cell that ran, with the names it bound."""
        id = new_id()
        line = {"type": "cell", "id": id, "time": utc_now(), "kernel": self.generation}
        self.writer.append({**line, "cell_id": cell, "source": source, "origin": "typed"})
        self.count += 1
        line = {"type": "end", "id": id, "execution_count": self.count, "status": "ok"}
        self.writer.append({**line, "duration_ms": 1.0, "error": None})
        line = {"type": "outputs", "id": id, "outputs": [], "error": None}
        self.writer.append({**line, "names": list(names)})

    def prose(self, source: str, cell: str = "c0") -> None:
        """Append a markdown cell as the page tells it."""
        line = {"type": "markdown", "id": new_id(), "time": utc_now(), "cell_id": cell}
        self.writer.append({**line, "source": source, "origin": "typed"})

    def waiting(self) -> list[document_proposals.Proposal]:
        return document_proposals.read(self.folder)


RAW = {"name": "raw", "type": "DataFrame", "shape": "90 x 2", "columns": ["time", "level"]}


@pytest.fixture
def book(home: Path, tmp_path: Path) -> Book:
    return Book(home, tmp_path / "work")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def session(book: Book, clock: Clock, bus: Bus | None = None, **config: Any) -> MemorySession:
    found = {"Extraction": {"enabled": False}, "SessionNotes": {"enabled": False}, **config}
    settings = Settings.read({"Dream": {"enabled": False}, **found})[0]
    one = MemorySession(book.folder, book.project, settings, bus, None, clock)
    one.extracting.opened()
    return one


@pytest.mark.spec("M3")
def test_it_runs_when_idle_and_only_after_a_turn(book: Book, clock: Clock) -> None:
    one = session(book, clock)
    one.observe()
    assert one.documenting.due(one.settings) is None
    id = book.begin("raw = 1")
    one.observe()
    assert one.documenting.gate(one.settings).reason == "a cell is running"
    book.end(id)
    one.observe()
    assert one.due() == 5.0
    assert "less than 5 s" in one.documenting.gate(one.settings).reason
    clock.now += 5
    assert one.documenting.gate(one.settings).open
    asyncio.run(one.run_due())
    assert [each.title for each in book.waiting()] == ["Tides"]
    assert one.due() is None
    off = session(book, clock, MagicDocs={"enabled": False})
    off.observe()
    assert off.due() is None


@pytest.mark.spec("M2", "M3")
def test_a_session_without_a_document_waits_for_nothing(home: Path, tmp_path: Path) -> None:
    book = Book(home, tmp_path / "work", "# Tides\n")
    book.cell("x = 1")
    one = session(book, Clock())
    one.observe()
    assert one.due() is None
    assert not book.folder.documents.exists()


@pytest.mark.spec("M3", "M8")
def test_the_text_tells_what_ran_here_and_the_file_is_only_read(book: Book, clock: Clock) -> None:
    told: list[Event] = []
    bus = Bus()
    bus.subscribe(told.append)
    before = book.path.read_bytes()
    book.ran("raw = pd.read_csv('new.csv')", "c2", RAW)
    book.ran("last = tidy.tail()", "c9")
    one = session(book, clock, bus)
    looked = asyncio.run(one.update_documents())
    assert looked.documents == 1
    (proposal,) = book.waiting()
    assert proposal.base == DOC
    assert proposal.source.startswith(DOC + "\n<!-- ipymemory:begin -->\n## Overview\n")
    assert "- `book.ipynb`: 4 steps; reads `new.csv`" in proposal.source
    assert "`raw` [code 2] DataFrame 90 x 2" in proposal.source
    assert "raw.csv" not in proposal.source
    assert book.path.read_bytes() == before
    events = [each for each in told if each.kind == "document"]
    assert [each.details["cell_id"] for each in events] == ["c0"]
    assert events[0].details["source"] == proposal.source
    asyncio.run(one.update_documents())
    assert len([each for each in told if each.kind == "document"]) == 1, "told once"
    assert book.waiting() == [proposal]


@pytest.mark.spec("M9", "L8")
def test_what_waits_keeps_what_it_rests_on_and_who_wrote_it(book: Book, clock: Clock) -> None:
    told: list[Event] = []
    bus = Bus()
    bus.subscribe(told.append)
    book.ran("raw = pd.read_csv('raw.csv')", "c2", RAW)
    one = session(book, clock, bus)
    asyncio.run(one.update_documents())
    (proposal,) = book.waiting()
    assert proposal.engine == "extractive" and proposal.record is not None
    assert told[-1].details["record"] == proposal.record.as_dict()
    # other code that says the same: the text stays, and rests on the cells of now
    book.ran("raw = (pd.read_csv('raw.csv'))", "c2", RAW)
    asyncio.run(one.update_documents())
    (later,) = book.waiting()
    assert later.record is not None and later.record.rests_on != proposal.record.rests_on
    assert replace(later, record=proposal.record) == proposal
    assert told[-1].details["record"] == later.record.as_dict()
    # the file is anybody's: what is no record is none, and what waits stays
    data = json.loads(book.folder.documents.read_text())
    for records, at in (([], 0), ([{"version": 1}], 0), (data["records"], True), ("x", "y")):
        odd = {**data, "records": records, "proposals": [{**data["proposals"][0], "record": at}]}
        book.folder.documents.write_text(json.dumps(odd))
        assert book.waiting() == [replace(later, record=None)]


@pytest.mark.spec("M3", "M5")
def test_a_cell_that_was_removed_is_told_no_more(book: Book, clock: Clock) -> None:
    book.ran("gone = raw.tail()", "c9")
    later = time.time() + 5
    os.utime(book.path, (later, later))
    asyncio.run(session(book, clock).update_documents())
    (proposal,) = book.waiting()
    assert "`book.ipynb`: 3 steps" in proposal.source
    assert "gone" not in proposal.source


@pytest.mark.spec("M4", "M3")
def test_what_the_page_told_last_is_the_document(book: Book, clock: Clock) -> None:
    book.cell("x = 1")
    book.prose("# MAGIC DOC: Renamed\nmine\n")
    one = session(book, clock)
    asyncio.run(one.update_documents())
    (proposal,) = book.waiting()
    assert (proposal.title, proposal.base) == ("Renamed", "# MAGIC DOC: Renamed\nmine\n")
    book.prose(proposal.source)
    asyncio.run(one.update_documents())
    assert book.waiting() == [], "it was taken"
    book.prose("# MAGIC DOC: Renamed\nmine\n")
    asyncio.run(one.update_documents())
    assert len(book.waiting()) == 1
    book.prose("# No document any more\n")
    asyncio.run(one.update_documents())
    assert book.waiting() == []


@pytest.mark.spec("L10")
def test_modes(book: Book, clock: Clock) -> None:
    told: list[Event] = []
    bus = Bus()
    bus.subscribe(told.append)
    book.cell("x = 1")
    one = session(book, clock, bus)
    for mode in ("read", "off"):
        book.project.set_property("mode", mode)
        assert "No document is written" in asyncio.run(one.update_documents()).refused[0]
        assert book.waiting() == []
    book.project.set_property("mode", "confirm")
    asyncio.run(one.update_documents())
    assert len(book.waiting()) == 1
    # the page shows it, and puts nothing in by itself
    (event,) = [each for each in told if each.kind == "document"]
    assert event.details["propose"] is True
    book.prose(book.waiting()[0].source)
    asyncio.run(one.update_documents())
    assert len([each for each in told if each.kind == "document"]) == 1
    book.project.set_property("mode", "auto")
    asyncio.run(one.update_documents())
    assert "propose" not in [each for each in told if each.kind == "document"][-1].details


@pytest.mark.spec("M1", "L7")
def test_hostile_documents_are_refused_or_masked(home: Path, tmp_path: Path, clock: Clock) -> None:
    key = "sk-ant-api03-" + "abcdEFGH1234" * 4
    book = Book(home, tmp_path / "work", f"# MAGIC DOC: Tides\n{key}\n")
    book.cell("x = 1")
    book.prose("# MAGIC DOC: Long\n" + "x" * 40_000, "c7")
    book.prose("# MAGIC DOC: " + "t " * 500, "c8")
    book.prose("# MAGIC DOC: Broken\n<!-- ipymemory:end -->\n", "c6")
    looked = asyncio.run(session(book, clock).update_documents())
    assert len(looked.refused) == 3
    assert [each.title for each in looked.proposals] == ["Tides"]
    assert key not in book.folder.documents.read_text()
    book.path.write_text('{"magic')
    assert asyncio.run(session(book, clock).update_documents()).documents == 3


def place(book: Book, live: Any = True) -> Place:
    settings = Settings.read({})[0]
    home = book.project.home
    return Place(settings, home, book.project, lambda _: None, "%memory ", book.folder, live)


@pytest.mark.spec("M8")
def test_the_magic_shows_a_diff_and_gives_the_text(book: Book, clock: Clock) -> None:
    here = place(book)
    assert "1 living document here" in table.call(here, ["docs"]).markdown
    with pytest.raises(CommandError, match="No update waits"):
        table.call(here, ["docs", "apply"])
    book.cell("x = 1")
    asyncio.run(session(book, clock).update_documents())
    page = table.call(here, ["docs"])
    assert 'An update of "Tides" waits:\n\n```diff\n' in page.markdown
    assert "+## Overview" in page.markdown
    assert not page.next_input
    applied = table.call(here, ["docs", "apply", "tid"])
    assert applied.next_input == book.waiting()[0].source
    with pytest.raises(CommandError, match="No update waits"):
        table.call(here, ["docs", "apply", "else"])
    book.prose("# MAGIC DOC: Second\n", "c5")
    asyncio.run(session(book, clock).update_documents())
    with pytest.raises(CommandError, match="More than one update waits"):
        table.call(here, ["docs", "apply"])
    assert table.call(here, ["docs", "check"]).exit == 1
    with pytest.raises(CommandError, match="There is no %memory docs nothing"):
        table.call(here, ["docs", "nothing"])
    with pytest.raises(CommandError, match="is for a running notebook"):
        table.call(replace(here, live=None, folder=None), ["docs", "apply"])
    book.folder.documents.write_text("[")
    assert book.waiting() == []


@pytest.mark.spec("M7")
def test_the_magic_says_what_the_page_did_with_an_update(book: Book, clock: Clock) -> None:
    book.cell("x = 1")
    asyncio.run(session(book, clock).update_documents())

    def told(outcome: str) -> str:
        line = {"type": "event", "id": new_id(), "time": utc_now(), "name": "document"}
        book.writer.append({**line, "cell_id": "c0", "outcome": outcome})
        return table.call(place(book), ["docs"]).markdown

    assert "last update" not in table.call(place(book), ["docs"]).markdown
    said = told("conflict")
    assert "met with what was written meanwhile" in said and "An update of" in said
    said = told("applied")
    assert "takes it back" in said and "An update of" not in said
    assert "was not wanted" in told("dismissed")
    # what nobody knows the meaning of says nothing, and hides nothing
    assert "was not wanted" in told("eaten")


@pytest.mark.spec("M2", "M4", "L8")
def test_a_file_that_was_named_is_written_after_a_cell_and_can_be_undone(
    book: Book, clock: Clock
) -> None:
    here = place(book)
    path = book.path.parent / "ALL.md"
    path.write_text("# MAGIC DOC: All\n")
    outside = book.path.parent.parent / "other.md"
    outside.write_text("# MAGIC DOC: Other\n")
    (book.path.parent / "plain.md").write_text("# Plain\n")
    (book.path.parent / "link.md").symlink_to(outside)
    for name in (outside, book.path.parent / "plain.md", book.path, book.path.parent / "link.md"):
        with pytest.raises(IpymemoryError):
            table.call(here, ["docs", "add", str(name)])
    assert "is kept up to date from now on" in table.call(here, ["docs", "add", str(path)]).plain
    assert '"All"' in table.call(here, ["docs"]).plain
    one = session(book, clock)
    book.cell("x = 1")
    one.observe()
    clock.now += 10
    asyncio.run(one.run_due())
    assert "reads `raw.csv`" in path.read_text()
    assert outside.read_text() == "# MAGIC DOC: Other\n"
    assert "Undone: magic_docs" in table.call(here, ["undo"]).plain
    assert path.read_text() == "# MAGIC DOC: All\n"
    again = session(book, clock)
    again.observe()
    clock.now += 10
    asyncio.run(again.run_due())
    assert path.read_text() == "# MAGIC DOC: All\n", "not from the same turns again"
    book.project.set_property("mode", "confirm")
    asyncio.run(one.update_documents())
    assert path.read_text() == "# MAGIC DOC: All\n"
    book.project.set_property("mode", "auto")
    path.write_text("# Mine now\n")
    asyncio.run(one.update_documents())
    assert path.read_text() == "# Mine now\n"
    assert document_acceptance.known(book.project).files == ()


@pytest.mark.kernel
@pytest.mark.spec("M8")
def test_in_a_kernel_without_the_lab_extension(new_kernel: Any, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    path = written(work / "clean.ipynb", notebook(DOC, ["x = 1"]))
    before = path.read_bytes()
    kernel: Kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    assert "Accepted" in kernel.run("%memory docs accept").markdown
    kernel.run("x = 1", cell_id="c1")
    ran = kernel.run("%memory docs update")
    assert "+## Overview" in ran.markdown, ran.messages
    ran = kernel.run("%memory docs apply")
    (payload,) = ran.reply["payload"]
    assert payload["source"] == "set_next_input"
    assert payload["text"].startswith(DOC)
    assert path.read_bytes() == before


@pytest.mark.kernel
@pytest.mark.spec("M3")
def test_in_a_kernel_it_comes_by_itself(new_kernel: Any, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    written(work / "clean.ipynb", notebook(DOC, ["x = 1"]))
    kernel: Kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    kernel.run("%config Engine.idle_seconds = 0.1")
    kernel.run("x = 1", cell_id="c1")
    assert "docs accept Tides" in kernel.run("%memory docs").markdown
    kernel.run("%memory docs accept Tides")
    kernel.run("y = 1", cell_id="c2")

    def waits() -> bool:
        return any(json.loads(p.read_text())["proposals"] for p in tmp_path.rglob("documents.json"))

    eventually(waits, "an update waits")
    assert 'An update of "Tides" waits' in kernel.run("%memory docs").markdown


@pytest.mark.spec("M9")
def test_the_page_is_told_what_the_text_rests_on_as_a_check_of_the_file_sees_it(
    book: Book, clock: Clock
) -> None:
    told: list[Event] = []
    bus = Bus()
    bus.subscribe(told.append)
    for at, source in enumerate(CODE):
        book.ran(source, f"c{at + 1}")
    asyncio.run(session(book, clock, bus).update_documents())
    record = document_records.read(told[-1].details["record"])
    (living,) = document_files.of_file(book.path)
    assert not document_records.reasons(record, "book.ipynb", living.cells)
    book.ran("tidy = raw.dropna(how='all')", "c3")
    asyncio.run(session(book, clock, bus).update_documents())
    record = document_records.read(told[-1].details["record"])
    assert document_records.reasons(record, "book.ipynb", living.cells) == ("[code 3] has changed",)


@pytest.mark.spec("M9", "L7")
def test_a_cell_with_a_secret_makes_no_document_stale(home: Path, tmp_path: Path) -> None:
    book = Book(home, tmp_path / "work")
    code = ["db_password = 'Tr0ub4dor&3x'", "tidy = raw.dropna()"]
    book.path = written(book.path, notebook(DOC, code))
    told: list[Event] = []
    bus = Bus()
    bus.subscribe(told.append)
    for at, source in enumerate(code):
        book.ran(redaction.mask_source(source), f"c{at + 1}")
    asyncio.run(session(book, Clock(), bus).update_documents())
    record = document_records.read(told[-1].details["record"])
    (living,) = document_files.of_file(book.path)
    assert not document_records.reasons(record, "book.ipynb", living.cells)


@pytest.mark.spec("M9")
def test_a_text_that_stays_true_still_gets_the_cells_that_it_rests_on(
    book: Book, clock: Clock
) -> None:
    told: list[Event] = []
    bus = Bus()
    bus.subscribe(told.append)
    one = session(book, clock, bus)
    book.ran("tidy = raw.dropna()", "c3")
    asyncio.run(one.update_documents())
    new = told[-1].details["source"]
    book.prose(new)
    told.clear()
    book.ran("tidy = raw.dropna()  # rows without a level", "c3")
    asyncio.run(one.update_documents())
    (event,) = [each for each in told if each.kind == "document"]
    assert event.details["base"] == event.details["source"] == new
    assert document_records.read(event.details["record"])
    # Saved with its record there is nothing more to tell.
    record = event.details["record"]
    written(book.path, notebook(new, CODE))
    value = json.loads(book.path.read_text("utf-8"))
    value["cells"][0]["metadata"] = {"ipymemory": {"doc": record}}
    book.path.write_text(json.dumps(value), "utf-8")
    told.clear()
    asyncio.run(one.update_documents())
    assert not [each for each in told if each.kind == "document"]
