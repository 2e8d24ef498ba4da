"""Updates that the page put into cells of the open notebook, in the history like any write (L8).

The notebook is the page's: the kernel never writes it. So what the history keeps of a cell is a
file in the session's folder that holds the document's text: before the update, then after it. An
undo puts that file back, and whoever undid it has the page do the same in the cell, where what a
person wrote since is merged. An update that the page undid by itself is undone here too.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from ipymemory.document_records import BEGIN, END
from ipymemory.errors import ChangedSince, HistoryError
from ipymemory.files import make_folder, write_atomic
from ipymemory.held import resolved
from ipymemory.history import History, RunEntry
from ipymemory.places import SessionFolder

JOB = "magic_docs"

_PLACE = "cells"
_NAME = re.compile(r"cell-([A-Za-z0-9_-]{1,64})\.md")
"""Of ids as notebooks have them; an update of a cell with another is not in the history."""


@dataclass(frozen=True, slots=True)
class Applied:
    """An update that is in its cell: made from `base` by `engine` under the run's id `job`."""

    cell: str
    title: str
    base: str
    source: str
    engine: str
    job: str


def own_part(source: str) -> str:
    """Return a short name of what is ours in a document: between our two lines, else all of it.

    What a person took back is known by it, whatever they write around it since.
    """
    begin = source.find(BEGIN)
    end = source.find(END, begin)
    part = source[begin:end] if begin >= 0 and end >= 0 else source
    return hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def note(history: History, folder: SessionFolder, update: Applied) -> None:
    """Put an update on record that the page has applied; one that is there is not put twice.

    Raises `HistoryError`, `PlaceError`.
    """
    name = f"cell-{update.cell}.md"
    if not _NAME.fullmatch(name) or _found(history, update.job) is not None:
        return
    make_folder(folder.path / _PLACE)
    path = resolved(folder.path / _PLACE / name)
    before = update.base.encode("utf-8", "replace")
    # What a person wrote since the last update is theirs and no write of an engine.
    write_atomic(path, before)
    reason = f'update of "{update.title[:80]}" in its cell'
    run = history.begin(JOB, update.engine, reason, (), folder.id, id=update.job)
    try:
        run.write(path, update.source.encode("utf-8", "replace"), seen=before)
    finally:
        run.close()


def undone(history: History, job: str) -> None:
    """Take in that a person took the update `job` back in the page; raises `HistoryError`."""
    entry = _found(history, job)
    if entry is not None and not entry.undone_by:
        history.undo(entry.id, force=True)


def redone(history: History, job: str) -> None:
    """Take in that a person has the update `job` again; raises `HistoryError`."""
    entry = _found(history, job)
    if entry is not None and entry.undone_by:
        history.undo(entry.undone_by, force=True)


def cell_of(entry: RunEntry) -> str:
    """Return the cell that a run is about, nothing for one that wrote files."""
    for each in entry.writes:
        match = _NAME.fullmatch(each.path.name)
        if match is not None and each.path.parent.name == _PLACE:
            return match[1]
    return ""


def root(history: History, entry: RunEntry) -> str:
    """Return the update's own run, where `entry` may be an undo of it, or an undo of that."""
    runs = {each.id: each for each in history.entries()}
    while entry.undoes in runs:
        entry = runs[entry.undoes]
    return entry.id


def undo(history: History, entry: RunEntry) -> tuple[str, str]:
    """Undo a run that is about a cell; return the text before that and after it.

    A person's own words in the cell are the page's to keep, so nothing is asked here. Raises
    `HistoryError`.
    """
    path = entry.writes[0].path
    was = _text(path)
    try:
        history.undo(entry.id, force=True)
    except ChangedSince as error:
        raise HistoryError(str(error)) from error
    return was, _text(path)


def _found(history: History, job: str) -> RunEntry | None:
    return next((each for each in history.entries() if each.id == job), None) if job else None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
