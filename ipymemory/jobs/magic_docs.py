"""Living documents of a running notebook, brought up to date when the kernel is at rest (M3).

What is told comes from the cells as they ran in this session, with the names they bound and
their shapes, in the order of the saved notebook; cells that did not run here from the file. The
outcome is a proposal, and an event for the page that shows the cell. The notebook is only read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ipymemory import document_proposals, gates
from ipymemory.config import Settings
from ipymemory.document_files import MOST_TEXT, MOST_TITLE, bytes_of, of_file
from ipymemory.document_proposals import Proposal
from ipymemory.document_updates import JOB, source, text_of
from ipymemory.documents import find, fingerprint
from ipymemory.errors import FormatError, IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.extractive import Chapter
from ipymemory.held import resolved
from ipymemory.places import SessionFolder
from ipymemory.redaction import Masker
from ipymemory.turns import Entry, Prose, Turn, new_id, utc_now

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

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "documents": self.documents,
            "proposals": [each.title for each in self.proposals],
            "refused": list(self.refused),
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
    data = _saved(context.notebook)
    documents = _documents(context, entries, data)
    if not documents:
        document_proposals.write(context.folder, [])
        return Looked(0, ())
    turns = _turns(context.notebook, data, entries)
    name = context.notebook.name if context.notebook is not None else "this session"
    before = {each.cell: each for each in document_proposals.read(context.folder)}
    found: list[Proposal] = []
    refused: list[str] = []
    for cell, text in documents.items():
        head = find(text)
        if head is None:
            continue
        if why := _refusal(context.settings, text, len(head.title)):
            refused.append(f'"{head.title[:MOST_TITLE]}": {why}')
            continue
        try:
            new = text_of(head, text, [Chapter(name, turns)])
        except FormatError as error:
            refused.append(f'"{head.title}": {error}')
            continue
        if new == text:
            continue
        old = before.get(cell)
        if old is not None and (old.base, old.source) == (text, new):
            found.append(old)
            continue
        found.append(Proposal(cell, head.title, text, new, utc_now()))
    document_proposals.write(context.folder, found)
    _tell(context, [each for each in found if before.get(each.cell) != each])
    return Looked(len(documents), tuple(found), tuple(refused))


def _tell(context: Context, proposals: Sequence[Proposal]) -> None:
    for each in proposals if context.apply else ():
        if each.cell:
            details = {"cell_id": each.cell, "base": each.base, "source": each.source}
            context.bus.emit(Event("document", JOB, new_id(), details))


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


def _documents(context: Context, entries: Sequence[Entry], data: bytes) -> dict[str, str]:
    """Return the text of each document by its cell: as the page told it last, else as saved."""
    told = {
        each.cell_id: each.source for each in entries if isinstance(each, Prose) and each.cell_id
    }
    found: dict[str, str] = {}
    masker = Masker()
    if data and context.notebook is not None:
        try:
            for each in of_file(context.notebook, data, named=False):
                if len(each.text) <= MOST_TEXT:
                    key = each.cell or f"#{each.index}"
                    found[key] = masker.mask(each.text)
        except IpymemoryError:
            # Half-written or hostile; what the page told is still there.
            found.clear()
    for cell, text in told.items():
        found.pop(cell, None)
        if find(text) is not None:
            found[cell] = text
    return found


def _turns(notebook: Path | None, data: bytes, entries: Sequence[Entry]) -> tuple[Turn, ...]:
    """Return the cells in the order of the notebook, as they ran here where they did."""
    ran: dict[str, Turn] = {}
    for each in entries:
        if isinstance(each, Turn) and each.status != "running" and fingerprint(each.source):
            key = each.cell_id or fingerprint(each.source)
            ran.pop(key, None)
            ran[key] = each
    saved: tuple[Turn, ...] = ()
    if data and notebook is not None:
        try:
            saved = source(notebook, data).turns
        except IpymemoryError:
            saved = ()
    order: list[Turn] = []
    for each in saved:
        live = ran.pop(each.cell_id or "", None) or ran.pop(fingerprint(each.source), None)
        order.append(each if live is None else live)
    # Cells that the file does not have: new ones, unless it was saved after they ran.
    since = _modified(notebook) if saved else None
    order += [each for each in ran.values() if since is None or _time(each) > since]
    return tuple(
        replace(each, id=f"code {at}", cell_id=each.cell_id) for at, each in enumerate(order, 1)
    )


def _modified(notebook: Path | None) -> float | None:
    try:
        return notebook.stat().st_mtime if notebook is not None else None
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
