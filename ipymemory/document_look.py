"""One look at a running notebook: its living documents, and what there is to tell them (M3).

The cells are told as they ran in this session, in the order of the saved notebook; those that did
not run here as the file has them. Whoever writes a text hands it to the look, which keeps it as a
proposal and tells the page that shows the cell. The notebook is only read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ipymemory import document_proposals, document_records
from ipymemory.config import Settings
from ipymemory.document_acceptance import Accepting
from ipymemory.document_files import MOST_TEXT, MOST_TITLE, Living, bytes_of, of_file
from ipymemory.document_history import own_part
from ipymemory.document_proposals import Proposal
from ipymemory.document_ran import cells_of
from ipymemory.document_records import MOST_CELLS, Record
from ipymemory.document_text import ENGINE, Body, Written, hand, written
from ipymemory.document_updates import JOB
from ipymemory.document_writers import Asked
from ipymemory.documents import Document, find
from ipymemory.errors import FormatError, IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.extractive import Chapter
from ipymemory.held import resolved
from ipymemory.places import Project, SessionFolder
from ipymemory.redaction import Masker
from ipymemory.transcript import Transcript
from ipymemory.turns import Entry, Happening, Prose, new_id, utc_now

_ROOM = 512
"""Bytes below the bound of a recorded text from which on it may have been cut."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a run needs; `apply` tells whether the page may put updates in without asking."""

    folder: SessionFolder
    project: Project
    settings: Settings
    bus: Bus
    notebook: Path | None
    apply: bool
    engine: str = ""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a run came to: how many documents there are, what waits, what was left alone and why."""

    documents: int
    proposals: tuple[Proposal, ...]
    refused: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()
    """Titles of the files that were written."""
    waiting: tuple[str, ...] = ()
    """Titles of those that nobody accepted yet (M2)."""
    stale: tuple[str, ...] = ()
    """Titles of a model's own texts that stay stale until a model writes them."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "documents": self.documents,
            "proposals": [each.title for each in self.proposals],
            "refused": list(self.refused),
            "wrote": list(self.wrote),
            "waiting": list(self.waiting),
            "stale": list(self.stale),
        }


@dataclass(frozen=True, slots=True)
class Open:
    """A document of the notebook: its cell, its text as it is on record, its head."""

    cell: str
    text: str
    head: Document


class Look:
    """One look at a notebook: its documents, what there is to tell, and what comes of it."""

    def __init__(self, context: Context, entries: Sequence[Entry]) -> None:
        self.context = context
        self.refused: list[str] = []
        self.waiting: list[str] = []
        self.stale: list[str] = []
        self.found: list[Proposal] = []
        self.before = {each.cell: each for each in document_proposals.read(context.folder)}
        data = _saved(context.notebook)
        self.saved = _saved_documents(context.notebook, data)
        self.documents: list[Open] = []
        self._unwanted = _unwanted(entries)
        told = _told(entries)
        texts = _documents(self.saved, told)
        self.count = len(texts)
        accepting = Accepting(context.project, context.folder, context.notebook)
        for cell, text in texts.items():
            head = find(text)
            if head is None:
                continue
            if not accepting.may(head, told=cell in told):
                self.waiting.append(head.title[:MOST_TITLE])
                continue
            if why := _refusal(context.settings, text, len(head.title)):
                self.refused.append(f'"{head.title[:MOST_TITLE]}": {why}')
                continue
            self.documents.append(Open(cell, text, head))
        accepting.keep()
        turns, cells = cells_of(context.notebook, data, entries) if self.documents else ((), ())
        name = context.notebook.name if context.notebook is not None else "this session"
        self.chapters = [Chapter(name, turns)]
        self.body = Body(self.chapters)
        self.cells = cells[:MOST_CELLS]
        self.record = document_records.made(utc_now(), name, self.cells)
        self._left: set[str] = set()

    def recorded(self, document: Open) -> Record | None:
        """Return what a document rests on by the saved notebook, None where that does not say."""
        saved = self.saved.get(document.cell)
        return saved.record if saved is not None else None

    def without_model(self, document: Open) -> None:
        """Have the built-in engine write a document; what stands in its way is told."""
        record = self.recorded(document)
        stale = document_records.reasons(record, self.record.file, self.cells)
        try:
            made = written(document.head, document.text, self.body, record, stale)
        except FormatError as error:
            self.refused.append(f'"{document.head.title}": {error}')
            made = Written(document.text, stale=True)
        else:
            if made.stale:
                self.stale.append(document.head.title)
        if made.stale:
            self.leave(document, made.text)
        else:
            self.propose(document, made.text, ENGINE)

    def asked(self, document: Open) -> Asked:
        """Return what `document` is to be written from."""
        context, notebook = self.context, self.context.notebook
        return Asked(
            document.head,
            document.text,
            self.record.file,
            tuple(self.chapters),
            self.cells,
            self.recorded(document),
            notebook.parent if notebook is not None else context.folder.path,
            int(context.settings.capture.source_bytes) - _ROOM,
        )

    def propose(self, document: Open, text: str, engine: str = "") -> None:
        """Take up the new `text` of a document; the same as it has is none.

        It rests on the cells as they are now. `engine` is who wrote it, where that is not the one
        that was chosen.
        """
        if text == document.text:
            return
        if (document.cell, own_part(text)) in self._unwanted:
            # What a person took back does not come again from the same cells (L8).
            self._left.add(document.cell)
            return
        old, anew = self.before.get(document.cell), document.cell not in self._left
        wrote = engine or self.context.engine or ENGINE
        if old is not None and (old.base, old.source) == (document.text, text):
            same = not anew or self.record.agrees(old.record)
            record = self._record_of(document, text, old.engine)
            self.found.append(old if same else replace(old, record=record))
            return
        self.found.append(
            Proposal(
                document.cell,
                document.head.title,
                document.text,
                text,
                utc_now(),
                self._record_of(document, text, wrote) if anew else None,
                wrote,
            )
        )

    def leave(self, document: Open, text: str) -> None:
        """Keep `text`, what was proposed before or says of itself that it is stale.

        Nobody wrote it anew, so what the document rests on is no news either.
        """
        self._left.add(document.cell)
        self.propose(document, text)

    def keep(self) -> Looked:
        """Put on disk what waits, and tell the page what is new; raises `PlaceError`."""
        document_proposals.write(self.context.folder, self.found)
        _tell(self.context, [e for e in self.found if self.before.get(e.cell) != e])
        self._tell_records()
        if self.waiting:
            self.context.bus.emit(Event("documents_wait", JOB))
        return Looked(
            self.count,
            tuple(self.found),
            tuple(self.refused),
            waiting=tuple(self.waiting),
            stale=tuple(self.stale),
        )

    def _tell_records(self) -> None:
        """Let documents whose text is true still name the cells that it rests on now (M9)."""
        waiting = {each.cell for each in self.found} | self._left
        still = [
            Proposal(
                each.cell,
                each.head.title,
                each.text,
                each.text,
                "",
                self._record_of(each, each.text, self.context.engine),
            )
            for each in self.documents
            if each.cell not in waiting and not self.record.agrees(self.recorded(each))
        ]
        _tell(self.context, still)

    def _record_of(self, document: Open, text: str, engine: str) -> Record:
        """Return the record of the cells as they are now, of a `text` that `engine` wrote last."""
        return replace(self.record, by=hand(text, engine, self.recorded(document)))


def unaccepted(project: Project, folder: SessionFolder, notebook: Path | None) -> list[Document]:
    """Return the heads of a notebook's documents that wait to be accepted (M2).

    As the page told them last, else as they were saved. Raises `IpymemoryError`.
    """
    transcript = Transcript(folder.transcript)
    transcript.follow()
    told = _told(transcript.entries)
    texts = _documents(_saved_documents(notebook, _saved(notebook)), told)
    accepting = Accepting(project, folder, notebook)
    heads = ((find(text), cell in told) for cell, text in texts.items())
    return [head for head, shown in heads if head and not accepting.may(head, told=shown)]


def _tell(context: Context, proposals: Sequence[Proposal]) -> None:
    for each in proposals:
        # That a text is still true is nothing to be asked about, and changes a notebook all the
        # same: in the mode confirm it is not told.
        if each.cell and (context.apply or each.base != each.source):
            details: dict[str, Any] = {"cell_id": each.cell, "base": each.base}
            details |= {"source": each.source, "engine": each.engine}
            if each.record is not None:
                details["record"] = each.record.as_dict()
            if not context.apply:
                details["propose"] = True
            context.bus.emit(Event("document", JOB, new_id(), details))


def _unwanted(entries: Sequence[Entry]) -> frozenset[tuple[str, str]]:
    """Return what a person took back or dismissed: of each cell the names of such texts."""
    found: dict[tuple[str, str], bool] = {}
    for each in entries:
        if isinstance(each, Happening) and each.name == "document":
            outcome, text = each.details.get("outcome"), each.details.get("text")
            back = outcome in document_proposals.BACK
            if text and (back or outcome in ("applied", "accepted")):
                found[str(each.details.get("cell_id")), str(text)] = back
    return frozenset(key for key, back in found.items() if back)


def _refusal(settings: Settings, text: str, title: int) -> str:
    """Return why a document is not written, nothing where it is."""
    if title > MOST_TITLE:
        return f"its title is longer than {MOST_TITLE} characters. Shorten its heading."
    if len(text.encode("utf-8", "replace")) > settings.capture.source_bytes - _ROOM:
        return (
            "it is longer than what is recorded of a cell (Capture.source_bytes). Shorten it, or "
            "close the notebook and run ipymemory docs update."
        )
    return ""


def _saved(notebook: Path | None) -> bytes:
    """Return the notebook as it was saved; nothing where none was, or it cannot be read now."""
    try:
        return bytes_of(resolved(notebook)) if notebook is not None else b""
    except (IpymemoryError, OSError, ValueError):
        return b""


def _told(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the markdown cells that a page told, as it told them last."""
    return {
        each.cell_id: each.source for each in entries if isinstance(each, Prose) and each.cell_id
    }


def _documents(saved: Mapping[str, Living], told: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each document by its cell: as the page told it last, else as saved."""
    masker = Masker()
    found = {
        cell: masker.mask(each.text) for cell, each in saved.items() if len(each.text) <= MOST_TEXT
    }
    for cell, text in told.items():
        found.pop(cell, None)
        if find(text) is not None:
            found[cell] = text
    return found


def _saved_documents(notebook: Path | None, data: bytes) -> dict[str, Living]:
    """Return the documents of the notebook as it was saved, by cell; by place without an id."""
    try:
        found = of_file(notebook, data, named=False) if notebook is not None and data else []
    except IpymemoryError:
        # Half-written or hostile; what the page told is still there.
        return {}
    # Of two cells with one id, as a hand that copies makes them, the first has it.
    by_cell: dict[str, Living] = {}
    for each in found:
        own = each.cell and each.cell not in by_cell
        by_cell[each.cell if own else f"#{each.index}"] = each
    return by_cell
