"""Living documents as the page shows them: which are stale, and what waits for a person's word.

A record holds hashes of code whose secrets are masked, so a page cannot compare it with its cells.
The kernel compares the saved notebook, as ``docs check`` would, when a page has told its cells and
whenever it was saved. That takes longer than an answer to a page may, so a thread of its own does
it, which ends when nothing has changed since. Nothing is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipymemory import document_acceptance, document_files, document_proposals
from ipymemory.document_acceptance import Accepting
from ipymemory.errors import IpymemoryError
from ipymemory.neutral import plain
from ipymemory.places import SessionFolder
from ipymemory.turns import new_id

if TYPE_CHECKING:
    from ipymemory.live import LiveSession
    from ipymemory.page_thread import Aside

log = logging.getLogger(__name__)

STANDING = "documents"
"""The command by which a page that was saved asks how its documents stand."""

MOST_BYTES = 20 * 1024 * 1024
"""Bytes of a notebook that is compared beside the user's cells: a quarter of a second."""

MOST_REASONS = 8


class Documents:
    """What one shell's page is told of its documents. Its methods return at once, never raise.

    `push` tells the page; `update` has it put a text into a cell; both are called `aside`.
    """

    def __init__(
        self,
        session: LiveSession,
        aside: Aside,
        push: Callable[..., bool],
        update: Callable[..., str],
    ) -> None:
        self._session = session
        self._aside = aside
        self._push = push
        self._update = update
        self._asked = False
        self._last: tuple[tuple[str | int, ...], list[dict[str, Any]]] | None = None

    def look(self) -> None:
        """Compare the saved notebook, and tell the page; asked again meanwhile, once more."""
        if not self._asked:
            self._asked = True
            self._aside.do(self._tell)

    def send(self) -> None:
        """Have the page take what waits."""
        self._aside.do(self._send)

    def _tell(self) -> None:
        self._asked = False
        if found := self._found():
            self._push("doc.standing", documents=found)

    def _send(self) -> None:
        mode = self._session.project.mode(self._session.settings.memory.mode)
        if mode in ("auto", "confirm"):
            for each in waiting(self._session.folder, apply=mode == "auto"):
                self._update(**each)

    def _found(self) -> list[dict[str, Any]]:
        path = self._session.notebook
        try:
            now = path.stat() if path is not None else None
        except OSError:
            now = None
        if path is None or now is None or now.st_size > MOST_BYTES:
            return []
        project, folder = self._session.project, self._session.folder
        accepted = document_acceptance.stamp(project, folder)
        key: tuple[str | int, ...] = (str(path), now.st_mtime_ns, now.st_size, *accepted)
        if self._last is None or self._last[0] != key:
            accepting = Accepting(project, folder, path) if folder is not None else None
            self._last = (key, standing(path, accepting))
        return self._last[1]


def standing(path: Path, accepting: Accepting | None = None) -> list[dict[str, Any]]:
    """Return how each document in the notebook `path` stands that was written before, or waits.

    Of each its cell, when its record was made, and why it is stale; of one that nobody accepted
    yet first that (M2). Nothing for a file that cannot be read just now: it may be half saved.
    """
    try:
        found = document_files.of_file(path, named=False)
    except IpymemoryError as error:
        log.debug("%s was not compared: %s", path, error)
        return []
    told = []
    for each in found:
        why = [*each.stale[:MOST_REASONS]] if each.record is not None else []
        waits = False
        # The page tells its cells before the kernel has; what stands there may be newer.
        if accepting is not None and accepting.begun and not accepting.may(each.head, told=True):
            title = " ".join(plain(each.title).split())
            waits, why = True, [document_acceptance.sentence(title, "%memory ").replace("`", "")]
        updated = each.record.updated if each.record is not None else ""
        if each.cell and (updated or why):
            state = {"cell": each.cell, "updated": updated, "stale": why}
            told.append({**state, "waits": True} if waits else state)
    return told


def waiting(folder: SessionFolder | None, *, apply: bool) -> list[dict[str, Any]]:
    """Return what waits for the page, as `Updates.update` takes it.

    With `apply` the page puts it in by itself, but for what met with a person's own change.
    """
    if folder is None:
        return []
    told = document_proposals.told(folder)
    return [
        {
            "cell": each.cell,
            "base": each.base,
            "source": each.source,
            "job": new_id(),
            "record": each.record.as_dict() if each.record is not None else None,
            "propose": not apply or each.cell in told,
            "engine": each.engine,
        }
        for each in document_proposals.waiting(document_proposals.read(folder), told)
        if each.cell
    ]
