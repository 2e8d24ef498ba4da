"""The text beside the turns: markdown cells of the notebook file that a session works on.

A kernel is told of code cells only; what a person wrote between them stands in the saved file.
It is read where the notes are written, when it has changed, and put beside the turns of its
neighbours. The file may be half-written at that moment, or gone: then what was read before
stands, and the next update looks again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from ipymemory import notebooks
from ipymemory.errors import NotebookError
from ipymemory.turns import Entry, Prose, Turn

log = logging.getLogger(__name__)


class NotebookText:
    """The cells of one notebook file as it was last read; `path` may be of no notebook at all."""

    def __init__(self, path: Path | None) -> None:
        self._path = path if path is not None and path.suffix == ".ipynb" else None
        self._cells: tuple[Entry, ...] = ()
        self._stamp: tuple[int, int] | None = None

    def cells(self) -> tuple[Entry, ...]:
        """Return the file's cells in order, read anew if it has changed. Never raises."""
        stamp = self._look()
        if self._path is not None and stamp is not None and stamp != self._stamp:
            try:
                found = notebooks.read(self._path).entries
            except NotebookError as error:
                # A server saves in place: who reads meanwhile sees a part of it.
                log.info("the notebook's text was not read: %s", error)
                return self._cells
            if self._look() == stamp:
                self._cells, self._stamp = found, stamp
        return self._cells

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat() if self._path is not None else None
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size) if found is not None else None


def with_text(entries: Sequence[Entry], cells: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return `entries` with the text of `cells` put where it stands in the notebook.

    A text goes above the newest run of the first cell below it that ran; where none did, below
    the last one above it that ran; else to the end.
    """
    if not any(isinstance(each, Prose) for each in cells):
        return tuple(entries)
    ran: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if isinstance(entry, Turn):
            ran.update(dict.fromkeys(_keys(entry), index))
    above: dict[int, list[Entry]] = {}
    below: dict[int, list[Entry]] = {}
    rest: list[Entry] = []
    waiting: list[Entry] = []
    last: int | None = None
    for cell in cells:
        if isinstance(cell, Prose):
            waiting.append(cell)
            continue
        found: int | None = next((ran[key] for key in _keys(cell) if key in ran), None)
        if found is not None:
            above.setdefault(found, []).extend(waiting)
            waiting, last = [], found
    (rest if last is None else below.setdefault(last, [])).extend(waiting)
    merged: list[Entry] = []
    for index, entry in enumerate(entries):
        merged += [*above.get(index, ()), entry, *below.get(index, ())]
    return (*merged, *rest)


def _keys(entry: Entry) -> list[str]:
    """Return what a cell is known by: its id where the frontend told it, and its source."""
    if not isinstance(entry, Turn):
        return []
    source = entry.source.strip()
    return [*([f"id {entry.cell_id}"] if entry.cell_id else []), f"source {source}"]
