"""Extraction: what a person said plainly becomes memories for the notebooks to come (behaviour E).

The built-in engine looks through markdown cells, comments and questions, never through what a
cell put out, and keeps what has one of the forms that it knows. What is looked at, and what may be
kept, both engines share (`learning`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from ipymemory import looked_through, sessions
from ipymemory.errors import HistoryError, IpymemoryError, MemoryRefused
from ipymemory.extractive import passages
from ipymemory.extractive.remembering import MemoriesMaterial, drafts, words_of
from ipymemory.history import History, Run
from ipymemory.learning import JOB, Context, Extracted, Keeping, Said, record
from ipymemory.learning_gate import turns_of
from ipymemory.looked_through import LookedThrough
from ipymemory.memory_files import PERSONS, Draft
from ipymemory.memory_files.values import one_line
from ipymemory.turns import Entry, Turn, new_id

log = logging.getLogger(__name__)

ENGINE = "extractive"

EVERY_TURNS = 1
"""Turns after which it looks, where the setting does not say (behaviour E4)."""


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
    record(context, found, ENGINE)
    return found


class _Run:
    """One run: what is looked at, and what comes of it."""

    def __init__(self, context: Context, entries: tuple[Entry, ...], size: int) -> None:
        self.context = context
        self.entries = entries
        self.size = size
        self.record = looked_through.read(context.folder) or LookedThrough()
        self.through = sessions.read(context.folder).extracted_through
        self.said = Said(context, entries, self.record.looked_at, self.through)
        self.keeping = Keeping.of(context)
        self.history = History(context.project.history, context.settings.memory.history_keep)
        self.end = time.monotonic() + context.settings.extraction.minutes * 60
        self.refused: list[str] = []

    def run(self) -> Extracted:
        """Look, write, and put on record how far it got."""
        through = max((each.id for each in self.entries), default="")
        said = tuple(self.said.sentences(self.history))
        found = () if self.keeping.memory.closed else drafts(self.material(said))
        turns = tuple(dict.fromkeys(turn for each in found for turn in each.source.turns))
        reason = f"{turns_of(len(turns))} with something to remember"
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
        self.remember(run.id, self.said.looked_at, self.size)
        if through > self.through:
            sessions.update(self.context.folder, extracted_through=through)
        return self.ended(run.id, "done", run.writes, through)

    def remember(self, run: str, looked_at: Mapping[str, str], size: int) -> None:
        """Put on record what was looked at, and what is to be told of this run."""
        self.keeping.tell_later(run, self.entries)
        found = LookedThrough(looked_at, size)
        if found != self.record:
            looked_through.write(self.context.folder, found)

    def ended(self, run: str, status: str, writes: int, through: str = "") -> Extracted:
        """Return the outcome."""
        keeping = self.keeping
        parts = (tuple(keeping.saved), tuple(keeping.proposed), tuple(self.refused[:10]))
        return Extracted(status, run, "", *parts, through=through, wrote=bool(writes))

    def material(self, said: tuple[passages.Passage, ...]) -> MemoriesMaterial:
        """Return what the engine works from."""
        code = words_of([each for each in self.entries if isinstance(each, Turn)])
        return MemoriesMaterial(said, self.context.notebook, self.context.folder.id, code)

    def keep(self, draft: Draft, run: Run) -> None:
        """Save or propose `draft`, or note why not."""
        own = draft.source.origin in PERSONS
        if self.keeping.known(draft) or (not own and self.keeping.full):
            return
        try:
            self.keeping.keep(draft, run)
        except (MemoryRefused, HistoryError) as error:
            # A file that somebody edits meanwhile is left alone; so is what may not be kept.
            self.refused.append(f"{one_line(draft.description, 80)}: {error}")
