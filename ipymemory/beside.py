"""The text beside the turns: markdown cells of the notebook file that a session works on.

A kernel is told of code cells only; what a person wrote between them stands in the saved file.
It is read where the notes are written, when it has changed, and put beside the turns of its
neighbours. Where a page tells the kernel of them too, of each cell the newer text holds, and is
there once. The file may be half-written at that moment, or gone: then what was read before
stands, and the next update looks again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
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
                saved = datetime.fromtimestamp(stamp[0] / 1e9, UTC).isoformat()
                self._cells = tuple(
                    replace(each, time=saved) if isinstance(each, Prose) else each for each in found
                )
                self._stamp = stamp
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
    entries, cells = _once(entries, cells)
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


def newest(entries: Iterable[Entry]) -> dict[str, Prose]:
    """Return the texts that a page told, by the cell's id, as they last were."""
    return {each.cell_id: each for each in entries if isinstance(each, Prose) and each.cell_id}


def as_told(cell: Prose, told: Mapping[str, Prose]) -> Prose | None:
    """Return what a page told of a cell of the file, None where it told nothing of it.

    Cells of an older file have no ids of their own; they are known by what they say.
    """
    if cell.cell_id:
        return told.get(cell.cell_id)
    return next((each for each in told.values() if each.source == cell.source), None)


def is_newer(told: Prose, saved: str) -> bool:
    """Return whether a page told a text at or after the notebook was saved, ISO 8601 both."""
    try:
        return datetime.fromisoformat(told.time) >= datetime.fromisoformat(saved)
    except (ValueError, TypeError):
        # Nobody knows when it was saved, or whether: the page is what somebody looks at.
        return True


def _once(
    entries: Sequence[Entry], cells: Sequence[Entry]
) -> tuple[Sequence[Entry], Sequence[Entry]]:
    """Return both without texts that are outdated, gone, or in the other too."""
    told = newest(entries)
    if not told:
        return entries, cells
    held: dict[str, Entry] = {}
    left: list[Entry] = []
    for cell in cells:
        page = as_told(cell, told) if isinstance(cell, Prose) else None
        if page is not None and isinstance(cell, Prose):
            held[page.id] = page
            now = page if is_newer(page, cell.time) else cell
            if not now.source:
                continue
            cell = replace(cell, source=now.source, origin=now.origin)
        left.append(cell)
    last = {each.id for each in told.values() if each.source and each.id not in held}
    return [
        each
        for each in entries
        if not isinstance(each, Prose) or not each.cell_id or each.id in last
    ], left


def _keys(entry: Entry) -> list[str]:
    """Return what a cell is known by: its id where the frontend told it, and its source."""
    if not isinstance(entry, Turn):
        return []
    source = entry.source.strip()
    return [*([f"id {entry.cell_id}"] if entry.cell_id else []), f"source {source}"]
