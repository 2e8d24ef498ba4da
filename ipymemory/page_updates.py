"""New text for living documents, to the page and back: sent, and what became of it (M7, L8).

What the page put in goes into the history; what a person took back there is undone here, and what
was undone here the page takes back. That touches the disk, so it is done aside.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ipymemory import document_history
from ipymemory.document_history import Applied, own_part
from ipymemory.documents import find
from ipymemory.history import History
from ipymemory.page_documents import Documents
from ipymemory.page_messages import Refused
from ipymemory.page_thread import Aside

if TYPE_CHECKING:
    from ipymemory.live import LiveSession

MOST_UPDATE = 256 * 1024
"""Characters of one update of a cell."""

MOST_SENT = 500
"""Updates that are remembered until the page says what became of them, the newest."""

MOST_WORK = 240.0
"""Seconds after which a document is no longer being written: its worker died (behaviour L11)."""

ABSENT = "No page with the lab extension shows this cell, so the update is a proposal."

_OUTCOMES = ("applied", "accepted", "conflict", "dismissed")


class Updates:
    """What one shell's page is told of its documents, and tells. Any thread may call it.

    `push` tells the page something and returns whether there is one.
    """

    def __init__(self, session: LiveSession, push: Callable[..., bool]) -> None:
        self._session = session
        self._push = push
        self._lock = threading.Lock()
        self._sent: dict[str, Applied] = {}
        self._writing = ("", 0.0)
        """The document that a model writes, by its cell, and since when by the monotonic clock."""
        self._aside = Aside()
        self.saved = Documents(session, self._aside, push, self.update)
        """How the documents of the saved notebook stand, and what waits for them."""

    @property
    def writing(self) -> str:
        """The document that a model writes just now, by its cell, or nothing."""
        cell, since = self._writing
        return cell if time.monotonic() - since < MOST_WORK else ""

    def began(self, details: Mapping[str, Any]) -> None:
        """Take in that a model begins to write a document, or is through."""
        cell = details.get("cell_id")
        self._writing = (cell if isinstance(cell, str) else "", time.monotonic())
        self._push("doc.updating", cell=self._writing[0])

    def does(self, text: str) -> None:
        """Take in what a model does just now. Of a file of the project there is no cell."""
        self._push("doc.updating", cell=self._writing[0], doing=text)

    def made(self, details: Mapping[str, Any], job: str) -> None:
        """Take in new text that a job made."""
        cell, base, source = (details.get(name) for name in ("cell_id", "base", "source"))
        if not (isinstance(cell, str) and isinstance(base, str) and isinstance(source, str)):
            return
        record, engine = details.get("record"), details.get("engine")
        why = self.update(
            cell,
            base,
            source,
            job,
            record if isinstance(record, Mapping) else None,
            propose=details.get("propose") is True,
            engine=engine if isinstance(engine, str) else "extractive",
        )
        # Where only the record is new and no page shows the cell, nobody misses it.
        if why and base != source:
            self._session.happened("document", cell_id=cell, outcome="proposal", reason=why)

    def update(
        self,
        cell: str,
        base: str,
        source: str,
        job: str,
        record: Mapping[str, Any] | None = None,
        *,
        propose: bool = False,
        engine: str = "extractive",
    ) -> str:
        """Have the page put `source`, made from `base`, into a living document.

        `base` is the cell's text as it is on record; the `record` of the cells that `source` rests
        on goes into the cell's metadata. With `propose` the page asks first. Return why that cannot
        be, as a sentence, or nothing. Whether it was applied, the page answers later: an event
        ``document``.
        """
        found = self._session.page.find(cell)
        if found is None:
            return ABSENT
        if len(source) > MOST_UPDATE:
            return f"The update is longer than {MOST_UPDATE:,} characters, so it is a proposal."
        recorded = self._session.page.as_recorded(cell)
        if base != found.source and recorded != found.source and recorded is not None:
            return (
                "Part of this cell is masked or left out on record, and an update would lose it. "
                "It stays a proposal."
            )
        message: dict[str, Any] = {"cell": cell, "base": base, "source": source, "job": job}
        if base == found.source:
            message["hash"] = found.stamp
        if record is not None:
            message["record"] = dict(record)
        if propose:
            message["propose"] = True
        self._remember(cell, base, source, engine, job)
        return "" if self._push("doc.update", **message) else ABSENT

    def told(self, cell: str, job: str, outcome: str) -> None:
        """Take in what became of an update by the page's word; raises `Refused`."""
        if outcome not in _OUTCOMES or self._session.page.find(cell) is None:
            raise Refused("No such markdown cell is known here. Reload the page.")
        with self._lock:
            update = self._sent.get(job)
        if update is not None and update.cell != cell:
            raise Refused("This update was for another cell. Reload the page.")
        if update is not None and update.base == update.source:
            # Only the record was new, and the text is as it was.
            return
        text = own_part(update.source) if update is not None else ""
        self._session.happened("document", cell_id=cell, outcome=outcome, job=job, text=text)
        folder = self._session.folder
        if folder is None or not job:
            return
        history = self._history()
        if outcome == "dismissed":
            self._aside.do(lambda: document_history.undone(history, job))
        elif outcome in ("applied", "accepted") and update is not None:
            self._aside.do(lambda: document_history.note(history, folder, update))
            self._aside.do(lambda: document_history.redone(history, job))

    def take_back(self, cell: str, now: str, then: str, job: str, *, again: bool) -> None:
        """Have the page make `then` of a document that says `now`, since a person undid it here.

        `job` is the update's run; with `again` they undid the undo.
        """
        outcome, text = ("applied", then) if again else ("undone", now)
        self._session.happened(
            "document", cell_id=cell, outcome=outcome, job=job, text=own_part(text)
        )
        asked = "again" if again else "back"
        self._push("doc.update", cell=cell, base=now, source=then, job=job, asked=asked)

    def _remember(self, cell: str, base: str, source: str, engine: str, job: str) -> None:
        head = find(source)
        title = head.title if head is not None else "a living document"
        with self._lock:
            self._sent[job] = Applied(cell, title, base, source, engine, job)
            for each in list(self._sent)[:-MOST_SENT]:
                del self._sent[each]

    def _history(self) -> History:
        keep = self._session.settings.memory.history_keep
        return History(self._session.project.history, keep)
