"""Living documents of a running notebook, brought up to date when the kernel is at rest (M3).

What is told comes from the cells as they ran in this session, with the names they bound and
their shapes, in the order of the saved notebook; cells that did not run here from the file. The
outcome is a proposal, and an event for the page that shows the cell. The notebook is only read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ipymemory import document_proposals, document_records, gates, prompts
from ipymemory.agent import Outcome, run_agent
from ipymemory.config import Settings
from ipymemory.document_files import MOST_TEXT, MOST_TITLE, Living, bytes_of, of_file
from ipymemory.document_proposals import Proposal
from ipymemory.document_records import MOST_CELLS, Cell, Record, hash_of
from ipymemory.document_updates import JOB, source, text_of
from ipymemory.documents import Document, find, fingerprint
from ipymemory.errors import FormatError, IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.extractive import Chapter, write_document
from ipymemory.files import write_atomic
from ipymemory.held import resolved
from ipymemory.history import History
from ipymemory.models import Model, Request
from ipymemory.permissions import OnlyFile
from ipymemory.places import SessionFolder
from ipymemory.redaction import Masker, mask
from ipymemory.tools import EditTool, Guard
from ipymemory.turns import CellError, Entry, Message, Prose, Turn, new_id, tokens, utc_now

ROUNDS = 10
MINUTES = 3.0
"""Bounds of one document's run (behaviour L11)."""
_SMALL = 200
"""Tokens that a document may lose without a question."""
_ROOM = 512
"""Bytes below the bound of a recorded text from which on it may have been cut."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a run needs; `apply` tells whether the page may put updates into its cells."""

    folder: SessionFolder
    settings: Settings
    bus: Bus
    notebook: Path | None
    apply: bool


@dataclass(frozen=True, slots=True)
class Looked:
    """What a run came to: how many documents there are, what waits, what was left alone and why."""

    documents: int
    proposals: tuple[Proposal, ...]
    refused: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()
    """Titles of the files that were written."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "documents": self.documents,
            "proposals": [each.title for each in self.proposals],
            "refused": list(self.refused),
            "wrote": list(self.wrote),
        }


def gate(settings: Settings, *, fresh: bool, rest_seconds: float, busy: bool) -> gates.Gate:
    """Return whether a run may start now, and why (behaviour M3)."""
    if not settings.magic_docs.enabled:
        return gates.Gate(False, "living documents are turned off (MagicDocs.enabled)")
    if not fresh:
        return gates.Gate(False, "there is no living document, or nothing has run since")
    if busy:
        return gates.Gate(False, "a cell is running")
    if rest_seconds < settings.engine.idle_seconds:
        wait = settings.engine.idle_seconds
        return gates.Gate(False, f"the kernel has been at rest for less than {wait:g} s")
    return gates.Gate(True, "something has run and the kernel is at rest")


def update(context: Context, entries: Sequence[Entry]) -> Looked:
    """Write every document of the notebook anew from `entries`, one after another.

    What was proposed before and not taken is made anew too. Raises `IpymemoryError` when nothing
    can be kept.
    """
    looked = _Look(context, entries)
    for each in looked.documents:
        try:
            looked.propose(each, text_of(each.head, each.text, looked.chapters))
        except FormatError as error:
            looked.refused.append(f'"{each.head.title}": {error}')
    return looked.keep()


async def update_by_model(
    context: Context, writer: Writer, entries: Sequence[Entry], *, prune: bool = False
) -> Looked:
    """Have a model bring each document up to date, one after another, each in a run of its own.

    It may Edit a copy of that one document in the session's folder and nothing else; what comes of
    it is a proposal. With `prune` nobody is asked, and only what was taken meanwhile is dropped.
    Raises `IpymemoryError` when nothing can be kept.
    """
    looked = await asyncio.to_thread(_Look, context, entries)
    for each in looked.documents:
        old = looked.before.get(each.cell)
        if prune:
            looked.propose(each, old.source if old and old.base == each.text else each.text)
            continue
        outcome, text = await _written(context, writer, each, looked.chapters)
        if outcome.status == "done":
            looked.propose(each, text)
            continue
        why = outcome.error or outcome.status
        looked.refused.append(f'"{each.head.title}": {why}')
        if old is not None and old.base == each.text:
            looked.propose(each, old.source)
    return looked.keep()


@dataclass(frozen=True, slots=True)
class Writer:
    """What a run of a model needs beside its `Context`."""

    model: Model
    history: History
    config_folder: Path
    cancelled: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class _Open:
    """A document of the notebook: its cell, its text as it is on record, its head."""

    cell: str
    text: str
    head: Document


class _Look:
    """One look at a notebook: its documents, what there is to tell, and what comes of it."""

    def __init__(self, context: Context, entries: Sequence[Entry]) -> None:
        self.context = context
        self.refused: list[str] = []
        self.found: list[Proposal] = []
        self.before = {each.cell: each for each in document_proposals.read(context.folder)}
        data = _saved(context.notebook)
        self.saved = _saved_documents(context.notebook, data)
        self.documents: list[_Open] = []
        texts = _documents(self.saved, entries)
        self.count = len(texts)
        for cell, text in texts.items():
            head = find(text)
            if head is None:
                continue
            if why := _refusal(context.settings, text, len(head.title)):
                self.refused.append(f'"{head.title[:MOST_TITLE]}": {why}')
                continue
            self.documents.append(_Open(cell, text, head))
        turns, cells = _turns(context.notebook, data, entries) if self.documents else ((), ())
        name = context.notebook.name if context.notebook is not None else "this session"
        self.chapters = [Chapter(name, turns)]
        self.record = document_records.made(utc_now(), name, cells[:MOST_CELLS])

    def propose(self, document: _Open, text: str) -> None:
        """Take up the new `text` of a document; the same as it has is none."""
        if text == document.text:
            return
        old = self.before.get(document.cell)
        if old is not None and (old.base, old.source) == (document.text, text):
            self.found.append(old)
            return
        title = document.head.title
        self.found.append(Proposal(document.cell, title, document.text, text, utc_now()))

    def keep(self) -> Looked:
        """Put on disk what waits, and tell the page what is new; raises `PlaceError`."""
        document_proposals.write(self.context.folder, self.found)
        _tell(self.context, [e for e in self.found if self.before.get(e.cell) != e], self.record)
        self._tell_records()
        return Looked(self.count, tuple(self.found), tuple(self.refused))

    def _tell_records(self) -> None:
        """Let documents whose text is true still name the cells that it rests on now (M9)."""
        waiting = {each.cell for each in self.found}
        still = [
            Proposal(each.cell, each.head.title, each.text, each.text, "")
            for each in self.documents
            if each.cell not in waiting and not self._recorded(each.cell)
        ]
        _tell(self.context, still, self.record)

    def _recorded(self, cell: str) -> bool:
        """Return whether the saved notebook names the cells of now for this document."""
        saved = self.saved.get(cell)
        return saved is not None and self.record.agrees(saved.record)


async def _written(
    context: Context, writer: Writer, document: _Open, chapters: Sequence[Chapter]
) -> tuple[Outcome, str]:
    """Return how a model's run on one document ended, and the text that it left."""
    path = resolved(context.folder.document)
    write_atomic(path, document.text.encode("utf-8", "replace"))
    shown = [Chapter(each.file, sendable(each.turns, context.settings)) for each in chapters]
    prompt = prompts.document_prompt(
        writer.config_folder,
        document=document.text,
        path=path.name,
        title=document.head.title,
        instructions=document.head.instruction.strip(),
        facts=write_document(shown),
        cells="\n\n".join(f"[{turn.id}]\n{turn.source}" for e in shown for turn in e.turns),
        warn=lambda text: context.bus.emit(Event("warning", JOB, details={"text": text})),
    )
    edit = EditTool(document_guard(document.head))
    request = Request(prompts.DOCUMENT_SYSTEM, (Message("user", prompt),), (edit.spec,))
    reason = f'update of "{document.head.title[:80]}"'
    run = writer.history.begin(JOB, writer.model.name, reason, (), context.folder.id)
    outcome = await run_agent(
        writer.model,
        request,
        {edit.spec.name: edit},
        OnlyFile(path),
        run,
        context.bus,
        rounds=ROUNDS,
        seconds=MINUTES * 60,
        one_answer=True,
        cancelled=writer.cancelled,
    )
    return outcome, bytes_of(path).decode("utf-8", "replace")


def sendable(turns: Sequence[Turn], settings: Settings) -> tuple[Turn, ...]:
    """Return `turns` with what of their outputs may be sent (`Privacy`); masked they are."""
    levels = {str(settings.privacy.sent_outputs), str(settings.privacy.outputs)}
    if not levels & {"shapes", "none"}:
        return tuple(turns)
    return tuple(
        replace(
            each,
            outputs=(),
            error=CellError(each.error.name) if each.error is not None else None,
            names=() if "none" in levels else each.names,
        )
        for each in turns
    )


def document_guard(head: Document) -> Guard:
    """Return the guard of a document that a model writes (behaviour M5)."""

    def check(before: str, after: str) -> str:
        again = find(after)
        kept = after[: head.end].rstrip("\n") == before[: head.end].rstrip("\n")
        if again is None or not kept:
            return "The heading and the instruction line below it stay exactly as they are."
        if again.instruction != head.instruction:
            # It would be read as the person's own words from the next update on.
            return "The first line below the heading is no italic one: that is the person's to set."
        was, now = (tokens(each[head.end :].strip()) for each in (before, after))
        if not now:
            return "The edit leaves the document empty."
        if was > _SMALL and now < was // 2:
            return f"The edit drops most of the document: {was:,} tokens would become {now:,}."
        if mask(after) != mask(before) and mask(after) != after:
            return "An edit holds what looks like a password, key or token. Leave it out."
        return ""

    return check


def _tell(context: Context, proposals: Sequence[Proposal], record: Record) -> None:
    for each in proposals if context.apply else ():
        if each.cell:
            details = {"cell_id": each.cell, "base": each.base, "source": each.source}
            context.bus.emit(
                Event("document", JOB, new_id(), {**details, "record": record.as_dict()})
            )


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


def _documents(saved: Mapping[str, Living], entries: Sequence[Entry]) -> dict[str, str]:
    """Return the text of each document by its cell: as the page told it last, else as saved."""
    masker = Masker()
    found = {
        cell: masker.mask(each.text) for cell, each in saved.items() if len(each.text) <= MOST_TEXT
    }
    told = {
        each.cell_id: each.source for each in entries if isinstance(each, Prose) and each.cell_id
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
    return {each.cell or f"#{each.index}": each for each in found}


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
    cells = tuple(Cell(each.cell_id or "", hash or hash_of(each.source)) for each, hash in order)
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


def may_hold(text: str | bytes) -> bool:
    """Return whether a text, or a notebook's bytes, may hold a living document; cheap."""
    if isinstance(text, str):
        return find(text) is not None
    low = text.lower()
    return b"magic" in low
