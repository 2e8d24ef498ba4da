"""Session notes: one Markdown file a session, kept up to date by the engine (behaviour S).

The fence: Edit on exactly ``notes.md``, at most `rounds` rounds and `minutes` minutes. The file
is made from the template the first time it is needed, and again after a person deleted it.

A model works in a fork of the session's conversation, and what it writes is checked by code
(`notes_checks`). Once it has written, the extractive engine touches only Current State and Worklog.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace

from ipymemory import gates, lines, notes_base, notes_checks, notes_found, prompts, sessions
from ipymemory.agent import Outcome, run_agent
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.events import Event
from ipymemory.extractive.material import ByModel
from ipymemory.models import Request
from ipymemory.notes_base import Base
from ipymemory.notes_found import Context, Found, Writes
from ipymemory.permissions import OnlyFile
from ipymemory.redaction import mask
from ipymemory.tools import EditTool, notes_guard
from ipymemory.turns import Entry, Message, Turn, new_id, utc_now

log = logging.getLogger(__name__)

JOB = notes_found.JOB

SETTLE_SECONDS = 15.0
"""Longest wait of a compaction for an update in flight (behaviour S10) ..."""
LONG_SECONDS = 60.0
"""... and how long that may have been running to be waited for at all."""

_END = re.compile(r"<(?=/?\s*notes\b)", re.IGNORECASE)


def gate(settings: Settings, *, changed: int, rest_seconds: float, busy: bool) -> gates.Gate:
    """Return whether an update may start now, and why.

    `changed` counts entries that the notes do not cover. Notes go on in every mode (behaviour
    L10), so none is asked for here.
    """
    own = settings.session_notes
    if not own.enabled:
        return gates.Gate(False, "session notes are turned off (SessionNotes.enabled)")
    return gates.extractive_notes(
        changed=changed, rest_seconds=rest_seconds, wait_seconds=own.wait_seconds, busy=busy
    )


async def update(
    context: Context, entries: Sequence[Entry], changed: Sequence[str], *, force: bool = False
) -> Outcome:
    """Bring the notes up to date with `entries`; `changed` are the ids that are new or other.

    With nothing changed it does nothing, unless `force`. May be called again at any time, also
    after it failed half-way. Never raises but for `asyncio.CancelledError`: what went wrong is in
    the outcome, in the log of the worker and in the events.
    """
    try:
        left_out = context.history.undone_turns(JOB, context.folder.id)
        kept = tuple(each for each in entries if each.id not in left_out)
        fresh = {each for each in changed if each not in left_out}
        if not fresh and not force and context.conversation is None:
            return Outcome("done")
        update = _Update(context, kept, fresh)
    except IpymemoryError as error:
        outcome = _failed(context, str(error))
    except Exception as error:  # an engine may be asked for the base here, and fail as it likes
        log.exception("an update of %s could not begin", context.folder.notes)
        outcome = _failed(context, f"{type(error).__name__}: {error}"[:500])
    else:
        outcome = await update.run(force)
    _record(context, outcome, entries)
    return outcome


class _Update(Found):
    """One update: the notes and their base as they were found, and what comes of them."""

    def __init__(self, context: Context, entries: tuple[Entry, ...], changed: set[str]) -> None:
        super().__init__(context, entries)
        # One object for the request and for the base: an engine works it out once.
        self.material = self.material_of(entries)
        self.turns = [each.id for each in entries if each.id > self.through or each.id in changed]

    async def run(self, force: bool) -> Outcome:
        """Run the agent in its fence, then write the base."""
        context, limits = self.context, self.context.settings.session_notes
        sizes = prompts.oversized(
            self.notes, section_tokens=limits.section_tokens, total_tokens=limits.total_tokens
        )
        request, edit = self.request(sizes)
        turns = {each.id for each in self.entries if isinstance(each, Turn)}
        count = sum(1 for each in self.turns if each in turns)
        reason = ("asked for, " if force else "") + ("1 turn" if count == 1 else f"{count:,} turns")
        run = context.history.begin(JOB, context.model.name, reason, self.turns, context.folder.id)
        outcome = await run_agent(
            context.model,
            request,
            {edit.spec.name: edit},
            OnlyFile(self.path),
            run,
            context.bus,
            rounds=limits.rounds,
            seconds=limits.minutes * 60,
            one_answer=context.conversation is not None,
            cancelled=context.cancelled,
        )
        if outcome.status == "done" or outcome.wrote:
            try:
                self.write_base(outcome)
            except Exception:  # the notes are written; the next update works the base out anew
                log.exception("the base of %s was not written", self.path)
        return outcome

    def request(self, sizes: str) -> tuple[Request, EditTool]:
        """Return what the engine is asked, and the tool it may edit the notes with."""
        context, limits = self.context, self.context.settings.session_notes
        guard = notes_guard(limits.section_tokens, limits.total_tokens)
        conversation = context.conversation
        prompt = prompts.notes_prompt(
            context.config_folder,
            notes=self.notes if conversation is None else shown(self.notes),
            # A model need not know the folders of this machine.
            path=str(self.path) if conversation is None else self.path.name,
            sizes=sizes,
            warn=self.warn,
        )
        if conversation is None:
            edit = EditTool(guard)
            messages = (Message("user", prompt),)
            return Request("", messages, (edit.spec,), self.material), edit
        by_hand = notes_base.by_hand(self.base, self.notes)
        checks = notes_checks.guard(by_hand, guard)
        request = conversation.fork(prompt, tools=context.specs)
        return replace(request, once=True), EditTool(checks)

    def write_base(self, outcome: Outcome) -> None:
        """Write the base that belongs to the notes as they are now."""
        standing = self.standing.id if self.standing is not None else ""
        run = outcome.run if outcome.wrote else standing
        base = self.model_base(outcome) or self.engine_base(outcome)
        if base is not None:
            notes_base.write(self.context.folder, replace(base, run=run))

    def model_base(self, outcome: Outcome) -> Base | None:
        """Return the base after a model's run: its notes without the lines of a person."""
        if self.context.conversation is None:
            return None
        by_hand = notes_base.by_hand(self.base, self.notes)
        text = notes_base.without(self.after(), by_hand)
        by, through = self.by_model, max((each.id for each in self.entries), default="")
        if outcome.wrote and outcome.status == "done":
            by = ByModel(outcome.run, through, notes_base.log_lines(text))
        elif by is not None and outcome.status == "done" and not outcome.refused:
            # It looked, and there was nothing to add.
            by = replace(by, through=through)
        return Base(text, by_model=by)

    def engine_base(self, outcome: Outcome) -> Base | None:
        """Return the base after a run of an engine whose own text is known."""
        model = self.context.model
        if not isinstance(model, Writes):
            return None
        base = model.written(self.material)
        if outcome.status != "done" or outcome.refused:
            base = notes_base.landed(self.base, base, self.notes, self.after())
        return Base(base, by_model=self.by_model)


def shown(notes: str) -> str:
    """Return the notes as a model sees them: masked, and unable to end where they stand."""
    return _END.sub("‹", mask(notes))


def _failed(context: Context, error: str) -> Outcome:
    """Return the outcome of a run that could not begin, after telling of it."""
    outcome = Outcome("failed", error=error, run=new_id())
    context.bus.emit(Event("failed", JOB, outcome.run, outcome.as_dict()))
    return outcome


def _record(context: Context, outcome: Outcome, entries: Sequence[Entry]) -> None:
    """Note the outcome in the worker's log, and how far the notes go in the session's record."""
    through = max((each.id for each in entries), default="")
    line = {"type": "run", "id": outcome.run, "time": utc_now(), "job": JOB}
    try:
        lines.append(
            context.folder.worker_log,
            {**line, "engine": context.model.name, **outcome.as_dict(), "notes_through": through},
        )
        if outcome.status == "done" and through:
            sessions.update(context.folder, notes_through=through)
    except IpymemoryError as error:
        log.warning("the outcome of run %s could not be noted: %s", outcome.run, error)
