"""What both engines that learn from a session share: what was said since, and how it is kept.

A session is looked through by the built-in engine (`jobs.extraction`) and, where a model may work,
by that too (`jobs.extraction_by_model`). For both, only a person's words become memories by
themselves; what came with a file is at most proposed (behaviour E13). Left out are turns whose
outcome was undone (L8), turns in which somebody wrote a memory by hand (E7), a cell that was looked
at before, and what the user forgot (L12).

Every write goes through the memory folder's door, under one run of the history, so that one undo
takes back all that a run learned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from ipymemory import lines, looked_through
from ipymemory.beside import as_told, is_newer, newest
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.extractive import passages
from ipymemory.history import History, Run
from ipymemory.learning_gate import moment
from ipymemory.markdown import is_magic_doc
from ipymemory.memory_files import PERSONS, Draft, Memory, MemoryFolder, Proposal, opened
from ipymemory.memory_files.offered import Offered
from ipymemory.memory_files.values import fingerprint, one_line
from ipymemory.places import Project, SessionFolder
from ipymemory.turns import Ask, Entry, Happening, Prose, Turn, utc_now

log = logging.getLogger(__name__)

JOB = "extraction"

MOST_PROPOSED = 20
"""Proposals of this job that may wait: a notebook full of rules must not bury the others."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a run works with; made by the session that owns it.

    `held` returns what the notebook of a kernel, by its generation, held when that began.
    `cells` are the notebook file's as it is saved now, in which the text stands that no kernel
    is told of, and `saved` when that was, in ISO 8601.
    """

    folder: SessionFolder
    project: Project
    settings: Settings
    bus: Bus
    held: Callable[[int], passages.Held]
    generation: int = 1
    notebook: str = ""
    cells: tuple[Entry, ...] = ()
    saved: str = ""
    cancelled: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Extracted:
    """How a run ended: the names and words of what it saved, and what it proposed or left."""

    status: str = "done"
    run: str = ""
    error: str = ""
    saved: tuple[tuple[str, str, str], ...] = ()
    """Name, kind and words of each memory."""
    proposed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    through: str = ""
    """The last entry that was looked at."""
    wrote: bool = False
    """Whether an undo has something to take back."""

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {
            "status": self.status,
            "run": self.run,
            "error": self.error,
            "saved": [
                {"name": name, "type": kind, "words": words} for name, kind, words in self.saved
            ],
            "proposed": list(self.proposed),
            "refused": list(self.refused),
            "extracted_through": self.through,
            "wrote": self.wrote,
        }


def told(outcomes: Sequence[Extracted]) -> dict[str, Any]:
    """Return what came of runs for one look, as JSON values: the first, and beside it a model's.

    Raises `IpymemoryError` where the first failed.
    """
    first = outcomes[0]
    if first.status != "done":
        raise IpymemoryError(f"The turns were not looked through: {first.error or first.status}")
    by_model = outcomes[1].as_dict() if len(outcomes) > 1 else None
    return {**first.as_dict(), "by_model": by_model}


class Said:
    """What was said since a cursor, told once: a cell that is only run again says nothing new."""

    def __init__(
        self, context: Context, entries: Sequence[Entry], looked_at: Mapping[str, str], after: str
    ) -> None:
        """`looked_at` are fingerprints of what was looked at, by cell; `after` is the cursor."""
        self.looked_at = dict(looked_at)
        self._context = context
        self._entries = entries
        self._after = after

    def sentences(self, history: History) -> Iterator[passages.Passage]:
        """Yield it in order, and note in `looked_at` what each cell says now."""
        context = self._context
        undone = history.undone_turns(JOB, context.folder.id)
        left_out = undone | by_hand(self._entries) | _by_assistant(history, context.folder.id)
        told = newest(self._entries)
        for entry in self._entries:
            if entry.id <= self._after or entry.id in left_out:
                continue
            if isinstance(entry, Prose):
                yield from self._told_by_page(entry, told, undone)
            elif self._is_new(entry):
                kernel = entry.kernel if isinstance(entry, Turn | Ask) else context.generation
                yield from passages.of_entries((entry,), context.held(kernel))
        for entry in context.cells:
            if not isinstance(entry, Prose) or passages.markdown_id(entry) in undone:
                continue
            page = as_told(entry, told)
            if (page is not None and is_newer(page, context.saved)) or is_magic_doc(entry.source):
                continue
            if self._is_new(entry):
                text = replace(entry, time=context.saved)
                yield from passages.of_entries((text,), context.held(context.generation))

    def _told_by_page(
        self, entry: Prose, told: Mapping[str, Prose], undone: frozenset[str]
    ) -> Iterator[passages.Passage]:
        """Yield what a markdown cell says that the page told, of its last state alone.

        What came with the file by the page's word is the file's, whatever is known of that. A
        living document is written by an engine, and nobody's words.
        """
        if told.get(entry.cell_id or "", entry) is not entry or is_magic_doc(entry.source):
            return
        if not entry.source or passages.markdown_id(entry) in undone or not self._is_new(entry):
            return
        came = entry.origin == "file"
        kernel = entry.kernel or self._context.generation
        held = passages.Held(None) if came else self._context.held(kernel)
        yield from passages.of_entries((entry,), held)

    def _is_new(self, entry: Entry) -> bool:
        """Return whether a cell or text says something else than before, and note what it says.

        A cell that is only run again says nothing new, also when its memory is gone.
        """
        if not isinstance(entry, Prose | Turn):
            return True
        says = fingerprint(entry.source)
        key = entry.cell_id
        if not key and isinstance(entry, Turn) and entry.origin != "history":
            # In a terminal the same words were typed again.
            return True
        key = key or f"text {says}"
        new = self.looked_at.pop(key, None) != says
        self.looked_at[key] = says
        return new


@dataclass(slots=True)
class Keeping:
    """The memory folder as one run writes it, and what came of that so far."""

    context: Context
    memory: MemoryFolder
    offered: Offered
    saved: list[tuple[str, str, str]] = field(default_factory=list)
    """Name, kind and words of each memory."""
    proposed: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, context: Context) -> Keeping:
        """Return the folder of the context's project; raises `IpymemoryError`."""
        memory = opened(context.project, context.settings)
        return cls(context, memory, Offered(context.project, memory, JOB))

    def known(self, draft: Draft) -> bool:
        """Return whether the words of `draft` are kept or wait; a file's, ever did."""
        return self.offered.holds(draft, ever=draft.source.origin not in PERSONS)

    @property
    def full(self) -> bool:
        """Whether as much waits for a yes as may."""
        return len(self.offered.waiting) >= MOST_PROPOSED

    def keep(self, draft: Draft, run: Run, replaces: str | None = None) -> Memory | Proposal:
        """Save a person's words, propose a file's; raises `MemoryRefused`, `HistoryError`."""
        if draft.source.origin in PERSONS:
            done = self.memory.keep(draft, run, replaces=replaces)
        else:
            done = self.memory.propose(draft, run, replaces=replaces)
        self.offered.add(draft, done)
        if isinstance(done, Proposal):
            self.proposed.append(done.line)
        else:
            self.saved.append((done.name, done.kind, draft.source.quote))
        return done

    def tell_later(self, run: str, entries: Sequence[Entry]) -> None:
        """Have what was saved wait to be told, and what was told wait no more (behaviour E9)."""
        folder = self.context.folder
        told = {
            str(run)
            for each in entries
            if isinstance(each, Happening) and each.name == "told"
            for run in _list(each.details.get("runs"))
        }
        before = looked_through.untold(folder)
        untold = [each for each in before if each["run"] not in told]
        untold += [
            {"run": run, "name": name, "words": one_line(words, 120)}
            for name, _, words in self.saved
        ]
        if untold != before:
            looked_through.tell_later(folder, untold)


def record(context: Context, found: Extracted, engine: str) -> None:
    """Tell of the outcome, and note in the worker's log what is worth it. Never raises."""
    if found.status == "done":
        if found.saved:
            context.bus.emit(Event("saved", JOB, found.run, found.as_dict()))
    else:
        context.bus.emit(Event("failed", JOB, found.run, found.as_dict()))
    if not (found.saved or found.proposed or found.refused or found.status != "done"):
        # After each cell a line that says nothing would be most of the log.
        return
    line = {"type": "run", "id": found.run, "time": utc_now(), "job": JOB, "engine": engine}
    try:
        lines.append(context.folder.worker_log, {**line, **found.as_dict()})
    except IpymemoryError as error:
        log.warning("the outcome of run %s could not be noted: %s", found.run, error)


def by_hand(entries: Sequence[Entry]) -> frozenset[str]:
    """Return the turns within which a memory was written or removed by a command (E7)."""
    found: set[str] = set()
    last: Turn | None = None
    for each in entries:
        if isinstance(each, Turn):
            last = each
        elif isinstance(each, Happening) and each.name == "memory" and last is not None:
            began, now = moment(last.time), moment(each.time)
            took = timedelta(milliseconds=last.duration_ms or 0)
            still = last.status == "running" or last.duration_ms is None
            if still or (began is not None and now is not None and now <= began + took + _TICK):
                found.add(last.id)
    return frozenset(found)


_TICK = timedelta(milliseconds=1)
"""Times on record are cut to the millisecond."""


def _by_assistant(history: History, session: str) -> frozenset[str]:
    """Return the questions for which the assistant wrote something itself (behaviour E7)."""
    return frozenset(
        turn
        for each in history.log.runs()
        if each.job == "ask" and each.session == session and each.writes
        for turn in each.turns
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
