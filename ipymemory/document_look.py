"""One look at a running notebook: its living documents, and what there is to tell them (M3).

The cells are told as they ran in this session, in the order of the saved notebook; those that did
not run here as the file has them. Whoever writes a text hands it to the look, which keeps it as a
proposal and tells the page that shows the cell. The notebook is only read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ipymemory import document_proposals, document_records
from ipymemory.config import Settings
from ipymemory.document_acceptance import Accepting
from ipymemory.document_files import MOST_TEXT, MOST_TITLE, Living, bytes_of, of_file
from ipymemory.document_history import own_part
from ipymemory.document_proposals import Proposal
from ipymemory.document_records import MOST_CELLS, Cell, hash_of
from ipymemory.document_updates import JOB, Body, source
from ipymemory.document_writers import Asked
from ipymemory.documents import Document, find, fingerprint
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.extractive import Chapter
from ipymemory.held import resolved
from ipymemory.places import Project, SessionFolder
from ipymemory.redaction import Masker
from ipymemory.transcript import Transcript
from ipymemory.turns import Entry, Happening, Prose, Turn, new_id, utc_now

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

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "documents": self.documents,
            "proposals": [each.title for each in self.proposals],
            "refused": list(self.refused),
            "wrote": list(self.wrote),
            "waiting": list(self.waiting),
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
        turns, cells = _turns(context.notebook, data, entries) if self.documents else ((), ())
        name = context.notebook.name if context.notebook is not None else "this session"
        self.chapters = [Chapter(name, turns)]
        self.body = Body(self.chapters)
        self.cells = cells[:MOST_CELLS]
        self.record = document_records.made(utc_now(), name, self.cells)
        self._left: set[str] = set()

    def asked(self, document: Open) -> Asked:
        """Return what `document` is to be written from."""
        context, saved = self.context, self.saved.get(document.cell)
        notebook = context.notebook
        return Asked(
            document.head,
            document.text,
            self.record.file,
            tuple(self.chapters),
            self.cells,
            saved.record if saved is not None else None,
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
        old = self.before.get(document.cell)
        if old is not None and (old.base, old.source) == (document.text, text):
            same = document.cell in self._left or self.record.agrees(old.record)
            self.found.append(old if same else replace(old, record=self.record))
            return
        self.found.append(
            Proposal(
                document.cell,
                document.head.title,
                document.text,
                text,
                utc_now(),
                self.record,
                engine or self.context.engine or document_proposals.ENGINE,
            )
        )

    def leave(self, document: Open, text: str) -> None:
        """Keep `text`, what was proposed before if anything: nobody wrote it anew.

        So what the document rests on is no news either.
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
            self.count, tuple(self.found), tuple(self.refused), waiting=tuple(self.waiting)
        )

    def _tell_records(self) -> None:
        """Let documents whose text is true still name the cells that it rests on now (M9)."""
        waiting = {each.cell for each in self.found} | self._left
        still = [
            Proposal(each.cell, each.head.title, each.text, each.text, "", self.record)
            for each in self.documents
            if each.cell not in waiting and not self._recorded(each.cell)
        ]
        _tell(self.context, still)

    def _recorded(self, cell: str) -> bool:
        """Return whether the saved notebook names the cells of now for this document."""
        saved = self.saved.get(cell)
        return saved is not None and self.record.agrees(saved.record)


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


def _turns(
    notebook: Path | None, data: bytes, entries: Sequence[Entry]
) -> tuple[tuple[Turn, ...], tuple[Cell, ...]]:
    """Return the cells in the order of the notebook, as they ran here where they did.

    Beside each turn stands the cell as a record names it.
    """
    ran: dict[str, Turn] = {}
    for each in entries:
        if isinstance(each, Turn) and each.status != "running" and fingerprint(each.source):
            key = each.cell_id or fingerprint(each.source)
            ran.pop(key, None)
            ran[key] = each
    saved: tuple[Turn, ...] = ()
    hashes: dict[str, str] = {}
    if data and notebook is not None:
        try:
            found = source(notebook, data)
        except IpymemoryError:
            pass
        else:
            saved = found.turns
            # Of the whole cell, where the turn has the middle of a long one left out.
            hashes = {each.label: each.hash for each in found.cells}
    order: list[tuple[Turn, str]] = []
    for each in saved:
        live = ran.pop(each.cell_id or "", None) or ran.pop(fingerprint(each.source), None)
        order.append((each, hashes.get(f"[{each.id}]", "")) if live is None else (live, ""))
    # Cells that the file does not have: new ones, unless it was saved after they ran.
    since = _modified(notebook) if saved else None
    order += [(each, "") for each in ran.values() if since is None or _time(each) >= since]
    cells = tuple(
        Cell(each.cell_id or "", hash or hash_of(each.source), f"[code {at}]")
        for at, (each, hash) in enumerate(order, 1)
    )
    turns = (replace(each, id=f"code {at}") for at, (each, _) in enumerate(order, 1))
    return tuple(turns), cells


def _modified(notebook: Path | None) -> float | None:
    try:
        # A turn's time is cut to milliseconds.
        return notebook.stat().st_mtime_ns // 1_000_000 / 1000 if notebook is not None else None
    except OSError:
        return None


def _time(turn: Turn) -> float:
    try:
        return datetime.fromisoformat(turn.time).timestamp()
    except ValueError:
        return 0.0
