"""Extraction: what a person said plainly becomes memories for the notebooks to come (behaviour E).

The built-in engine looks through markdown cells, comments and questions, never through what a
cell put out. Only a person's words become memories by themselves; what came with a file is at
most proposed (E13). Left out are turns whose outcome was undone (L8), turns in which somebody
wrote a memory by hand (E7), a cell that was looked at before, and what the user forgot (L12).

Every write goes through the memory folder's door, under one run of the history, so that one undo
takes back all that a run learned.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ipymemory import gates, lines, looked_through, sessions
from ipymemory.config import Extraction, Settings
from ipymemory.errors import HistoryError, IpymemoryError, MemoryRefused
from ipymemory.events import Bus, Event
from ipymemory.extractive import cells, passages
from ipymemory.extractive.remembering import MemoriesMaterial, drafts
from ipymemory.history import History
from ipymemory.looked_through import LookedThrough
from ipymemory.memory_files import PERSONS, Draft, Proposal, opened
from ipymemory.memory_files.offered import Offered
from ipymemory.memory_files.values import fingerprint, normal, one_line
from ipymemory.places import Project, SessionFolder
from ipymemory.turns import Ask, Entry, Happening, Prose, Turn, new_id, utc_now

log = logging.getLogger(__name__)

JOB = "extraction"

ENGINE = "extractive"

REST_SECONDS = 1.0
"""Seconds of rest before turns are looked through: as for the notes (behaviour S3)."""

BURST_SECONDS = 0.1
"""Cells that follow each other within so many are one Run All, which counts once (behaviour)."""

MOST_PROPOSED = 20
"""Proposals of this job that may wait: a notebook full of rules must not bury the others."""

MOST_CODE = 500
"""Cells, the newest, whose code is compared with what is said of it."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the job works with; made by the session that owns it.

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


def gate(
    settings: Settings, *, fresh: Sequence[Entry], rest_seconds: float, busy: bool
) -> gates.Gate:
    """Return whether a run may start now, and why; `fresh` are the turns not looked through."""
    own = settings.extraction
    if not own.enabled:
        return gates.Gate(False, "extraction is turned off (Extraction.enabled)")
    count = eligible(fresh)
    if not count:
        return gates.Gate(False, "every turn has been looked through")
    if busy:
        return gates.Gate(False, "a cell is running")
    wait = _wait(own, count)
    if rest_seconds < wait:
        return gates.Gate(
            False,
            f"{_turns(count)} since the last run, of {own.every_turns or 1}, and the kernel has "
            f"been at rest for less than {wait:g} s",
        )
    return gates.Gate(True, f"{_turns(count)} since the last run and the kernel is at rest")


def wait_seconds(settings: Settings, fresh: Sequence[Entry]) -> float | None:
    """Return the seconds of rest after which the gate opens, None where it will not by itself."""
    own = settings.extraction
    count = eligible(fresh)
    if not own.enabled or not count:
        return None
    return _wait(own, count)


def _wait(own: Extraction, count: int) -> float:
    return REST_SECONDS if count >= (own.every_turns or 1) else float(own.rest_seconds)


def eligible(entries: Sequence[Entry]) -> int:
    """Return how many turns and questions there are; a Run All counts once."""
    count, before = 0, None
    for each in entries:
        if not isinstance(each, Turn | Ask):
            continue
        began = _moment(each.time)
        burst = before is not None and began is not None and began - before < _BURST
        count += not burst
        took = timedelta(milliseconds=(each.duration_ms or 0) if isinstance(each, Turn) else 0)
        before = began + took if began is not None else None
    return count


_BURST = timedelta(seconds=BURST_SECONDS)


def extract(context: Context, entries: Sequence[Entry], size: int = 0) -> Extracted:
    """Look through what of `entries` the cursor has not passed; return what came of it.

    `entries` are the whole session's; `size` the bytes of its transcript that they were read
    from. May be called again at any time, also after it was killed half-way: what is kept is not
    kept twice. Never raises: what went wrong is in the outcome, the worker's log and the events.
    """
    try:
        found = _Run(context, tuple(entries), size).run()
    except Exception as error:  # a run that fails must not end the worker
        known = isinstance(error, IpymemoryError)
        if not known:
            log.exception("memories of %s could not be looked for", context.folder.id)
        found = Extracted("failed", new_id(), str(error) if known else repr(error)[:500])
    _record(context, found)
    return found


class _Run:
    """One run: what is looked at, and what comes of it."""

    def __init__(self, context: Context, entries: tuple[Entry, ...], size: int) -> None:
        self.context = context
        self.entries = entries
        self.size = size
        self.record = looked_through.read(context.folder) or LookedThrough()
        self.looked_at = dict(self.record.looked_at)
        self.through = sessions.read(context.folder).extracted_through
        self.memory = opened(context.project, context.settings)
        self.history = History(context.project.history, context.settings.memory.history_keep)
        self.offered = Offered(context.project, self.memory, JOB)
        self.end = time.monotonic() + context.settings.extraction.minutes * 60
        self.saved: list[tuple[str, str, str]] = []
        self.proposed: list[str] = []
        self.refused: list[str] = []

    def run(self) -> Extracted:
        """Look, write, and put on record how far it got."""
        through = max((each.id for each in self.entries), default="")
        said = tuple(self.said())
        found = () if self.memory.closed else drafts(self.material(said))
        turns = tuple(dict.fromkeys(turn for each in found for turn in each.source.turns))
        reason = f"{_turns(len(turns))} with something to remember"
        run = self.history.begin(JOB, ENGINE, reason, turns, self.context.folder.id)
        try:
            for each in found:
                if time.monotonic() > self.end or self.context.cancelled():
                    # What it did not come to is looked at again.
                    self.remember(run.id, self.record.looked_at, self.record.read)
                    return self.ended(run.id, "cancelled", run.writes)
                self.keep(each, run)
        finally:
            run.close()
        self.remember(run.id, self.looked_at, self.size)
        if through > self.through:
            sessions.update(self.context.folder, extracted_through=through)
        return self.ended(run.id, "done", run.writes, through)

    def remember(self, run: str, looked_at: Mapping[str, str], size: int) -> None:
        """Put on record what was looked at, and what is to be told of this run."""
        told = {
            str(run)
            for each in self.entries
            if isinstance(each, Happening) and each.name == "told"
            for run in _list(each.details.get("runs"))
        }
        before = looked_through.untold(self.context.folder)
        untold = [each for each in before if each["run"] not in told]
        untold += [
            {"run": run, "name": name, "words": one_line(words, 120)}
            for name, _, words in self.saved
        ]
        if untold != before:
            looked_through.tell_later(self.context.folder, untold)
        found = LookedThrough(looked_at, size)
        if found != self.record:
            looked_through.write(self.context.folder, found)

    def ended(self, run: str, status: str, writes: int, through: str = "") -> Extracted:
        """Return the outcome."""
        parts = (tuple(self.saved), tuple(self.proposed), tuple(self.refused[:10]))
        return Extracted(status, run, "", *parts, through=through, wrote=bool(writes))

    def said(self) -> Iterator[passages.Passage]:
        """Yield what was said since the last run, in order."""
        context = self.context
        undone = self.history.undone_turns(JOB, context.folder.id)
        left_out = undone | by_hand(self.entries) | self.by_assistant()
        for entry in self.entries:
            if entry.id > self.through and entry.id not in left_out and self.is_new(entry):
                kernel = entry.kernel if isinstance(entry, Turn | Ask) else context.generation
                yield from passages.of_entries((entry,), context.held(kernel))
        for entry in context.cells:
            if not isinstance(entry, Prose) or passages.markdown_id(entry) in undone:
                continue
            if self.is_new(entry):
                text = replace(entry, time=context.saved)
                yield from passages.of_entries((text,), context.held(context.generation))

    def is_new(self, entry: Entry) -> bool:
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

    def by_assistant(self) -> frozenset[str]:
        """Return the questions for which the assistant wrote something itself (behaviour E7)."""
        session = self.context.folder.id
        runs = self.history.log.runs()
        return frozenset(
            turn
            for each in runs
            if each.job == "ask" and each.session == session and each.writes
            for turn in each.turns
        )

    def material(self, said: tuple[passages.Passage, ...]) -> MemoriesMaterial:
        """Return what the engine works from."""
        turns = [each for each in self.entries if isinstance(each, Turn)][-MOST_CODE:]
        code = {
            word
            for each in turns
            for word in normal(re.sub(r"#.*", " ", cells.take_apart(each.source).python)).split()
        }
        return MemoriesMaterial(
            said, self.context.notebook, self.context.folder.id, frozenset(code)
        )

    def keep(self, draft: Draft, run: Any) -> None:
        """Save or propose `draft`, or note why not."""
        own = draft.source.origin in PERSONS
        if self.offered.holds(draft, ever=not own):
            return
        try:
            if own:
                done = self.memory.keep(draft, run)
            elif len(self.offered.waiting) < MOST_PROPOSED:
                done = self.memory.propose(draft, run)
            else:
                return
        except (MemoryRefused, HistoryError) as error:
            # A file that somebody edits meanwhile is left alone; so is what may not be kept.
            self.refused.append(f"{one_line(draft.description, 80)}: {error}")
            return
        self.offered.add(draft, done)
        if isinstance(done, Proposal):
            self.proposed.append(done.line)
        else:
            self.saved.append((done.name, done.kind, draft.source.quote))


def by_hand(entries: Sequence[Entry]) -> frozenset[str]:
    """Return the turns within which a memory was written or removed by a command (E7)."""
    found: set[str] = set()
    last: Turn | None = None
    for each in entries:
        if isinstance(each, Turn):
            last = each
        elif isinstance(each, Happening) and each.name == "memory" and last is not None:
            began, now = _moment(last.time), _moment(each.time)
            took = timedelta(milliseconds=last.duration_ms or 0)
            still = last.status == "running" or last.duration_ms is None
            if still or (began is not None and now is not None and now <= began + took + _TICK):
                found.add(last.id)
    return frozenset(found)


_TICK = timedelta(milliseconds=1)
"""Times on record are cut to the millisecond."""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _moment(time: str) -> datetime | None:
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        return None


def _turns(count: int) -> str:
    return "1 turn" if count == 1 else f"{count:,} turns"


def _record(context: Context, found: Extracted) -> None:
    """Tell of the outcome, and note in the worker's log what is worth it."""
    if found.status == "done":
        if found.saved:
            context.bus.emit(Event("saved", JOB, found.run, found.as_dict()))
    else:
        context.bus.emit(Event("failed", JOB, found.run, found.as_dict()))
    if not (found.saved or found.proposed or found.refused or found.status != "done"):
        # After each cell a line that says nothing would be most of the log.
        return
    line = {"type": "run", "id": found.run, "time": utc_now(), "job": JOB, "engine": ENGINE}
    try:
        lines.append(context.folder.worker_log, {**line, **found.as_dict()})
    except IpymemoryError as error:
        log.warning("the outcome of run %s could not be noted: %s", found.run, error)
