"""Session notes: one Markdown file a session, kept up to date by the engine (behaviour S).

The fence: Edit on exactly ``notes.md``, at most `rounds` rounds and `minutes` minutes. The file
is made from the template the first time it is needed, and again after a person deleted it.

A model works in a fork of the session's conversation, and what it writes is checked by code
(`notes_checks`). Once it has written, the extractive engine touches only Current State and Worklog.

What a person changed is told from the base (`notes_base`). When that does not belong to the run
whose notes stand, because a person undid it or a process was killed before it was written, it is
worked out again: from the turns, or, where a model wrote, from what its run left.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from ipymemory import gates, lines, markdown, notes_base, notes_checks, prompts, sessions
from ipymemory.agent import Outcome, run_agent
from ipymemory.beside import with_text
from ipymemory.config import Settings
from ipymemory.context import Conversation
from ipymemory.errors import FormatError, IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.extractive.material import ByModel, NotesMaterial
from ipymemory.files import make_folder, read_json
from ipymemory.held import Held, resolved
from ipymemory.history import History, RunEntry
from ipymemory.models import Model, Request, ToolSpec
from ipymemory.notes_base import Base
from ipymemory.permissions import OnlyFile
from ipymemory.places import Project, SessionFolder
from ipymemory.redaction import mask
from ipymemory.tools import MOST_BYTES, EditTool, carriage_returns, notes_guard
from ipymemory.turns import Entry, Message, Turn, new_id, utc_now

log = logging.getLogger(__name__)

JOB = "session_notes"

SETTLE_SECONDS = 15.0
"""Longest wait of a compaction for an update in flight (behaviour S10) ..."""
LONG_SECONDS = 60.0
"""... and how long that may have been running to be waited for at all."""

MODEL = "anthropic"
"""The engine that writes notes in its own words, so that they cannot be worked out anew."""

_END = re.compile(r"<(?=/?\s*notes\b)", re.IGNORECASE)


@runtime_checkable
class _Writes(Protocol):
    """An engine whose text is known before it is merged with what a person changed."""

    def written(self, material: NotesMaterial) -> str:
        """Return the notes as the engine alone would write them."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the job works with; made by the session that owns it."""

    folder: SessionFolder
    project: Project
    settings: Settings
    bus: Bus
    model: Model
    history: History
    config_folder: Path
    notebook: str = ""
    cells: tuple[Entry, ...] = ()
    """The cells of the notebook file: where its text stands, which no kernel is told of."""
    cancelled: Callable[[], bool] = lambda: False
    conversation: Conversation | None = None
    """Where a model writes: what it is a fork of."""
    specs: tuple[ToolSpec, ...] = ()
    """The conversation's tools, which a fork repeats; all but Edit are refused."""


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


class _Update:
    """One update: the notes and their base as they were found, and what comes of them."""

    def __init__(self, context: Context, entries: tuple[Entry, ...], changed: set[str]) -> None:
        self.context = context
        self.entries = entries
        self.path = resolved(context.folder.notes)
        self.template = prompts.notes_template(context.config_folder, self.warn)
        self.notes = self.read()
        self.standing = context.history.standing(self.path)
        self.base = self.template
        self.stored = notes_base.read(context.folder)
        self.by_model = self.find_model()
        self.base, self.through = self.find_base()
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

    def warn(self, text: str) -> None:
        """Tell of a file of the user's that was passed over."""
        log.warning("%s", text)
        self.context.bus.emit(Event("warning", JOB, details={"text": text}))

    def read(self) -> str:
        """Return the notes, with plain line feeds; make them when they are not there.

        Raises `FormatError` when what is there cannot be kept up to date.
        """
        make_folder(self.path.parent)
        with Held(self.path) as held:
            data = held.read(MOST_BYTES)
            if data is None:
                held.replace(self.template.encode())
                return self.template
        again = "delete or rename it, and it is made again from the turns"
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{self.path} is not UTF-8 text, so it is left as it is. Save it as UTF-8, or "
                f"{again}."
            ) from error
        if not markdown.sections(text):
            raise FormatError(
                f'{self.path} has no section (a "# " header) any more, so it is left as it is. '
                f"Undo that change, or {again}."
            )
        return text.replace("\r\n", "\n") if carriage_returns(text) else text

    def material_of(self, entries: tuple[Entry, ...]) -> NotesMaterial:
        """Return what the engine works from."""
        limits = self.context.settings.session_notes
        return NotesMaterial(
            entries=with_text(entries, self.context.cells),
            notebook=self.context.notebook,
            notes=self.notes,
            base=self.base,
            path=str(self.path),
            section_tokens=limits.section_tokens,
            total_tokens=limits.total_tokens,
            by_model=self.by_model,
        )

    def find_model(self) -> ByModel | None:
        """Return what of the notes is a model's: of its newest run that a person let stand."""
        history, by = self.context.history, self.stored.by_model
        run = history.last_by(MODEL, self.path)
        if run is None or (by is not None and by.run == run.id):
            return by if by is not None and not history.is_undone(by.run) else None
        left = history.left_by(run, self.path)
        log = notes_base.log_lines(left or self.stored.text or self.notes)
        return ByModel(run.id, max(run.turns, default=self.covered()), log)

    def find_base(self) -> tuple[str, str]:
        """Return the base of the notes as they stand, and the last entry they cover."""
        standing = self.standing
        if self.notes == self.template or (standing is None and self.knows()):
            return self.template, ""
        stored_run, stored = self.stored.run, self.stored.text
        if standing is None:
            through = self.covered()
            return (stored or self.pure(through) or self.notes), through
        through = max(standing.turns, default=self.covered())
        if stored and stored_run == standing.id:
            return stored, through
        before = self.context.history.held_before(standing, self.path)
        if standing.engine == MODEL:
            return self.left_by_model(standing, before), through
        pure = self.pure(through)
        if not pure:
            return stored or self.notes, through
        found = before.decode("utf-8", "replace") if before is not None else None
        # The first run of all had no base but the template.
        old = self.template if found == self.template else stored
        if old and found is not None and (not stored or stored_run < standing.id):
            # Killed after its edits, perhaps half-way through them: what it had not reached yet
            # still is what the run before it left.
            return notes_base.landed(old, pure, found, self.notes), through
        return pure, through

    def knows(self) -> bool:
        """Return whether the history has writes of the notes: none standing means undone then."""
        return self.context.history.knows(self.path)

    def covered(self) -> str:
        """Return the last entry the session's record says the notes cover, or nothing."""
        return str((read_json(self.context.folder.record) or {}).get("notes_through") or "")

    def left_by_model(self, standing: RunEntry, before: bytes | None) -> str:
        """Return the base of notes that a model wrote and whose base was not written."""
        left = self.context.history.left_by(standing, self.path) or self.notes
        if before is None or not self.stored.text or self.stored.run >= standing.id:
            return left
        by_hand = notes_base.by_hand(self.stored.text, before.decode("utf-8", "replace"))
        return notes_base.without(left, by_hand)

    def pure(self, through: str) -> str:
        """Return what the engine alone makes of the entries up to `through`, or nothing."""
        model = self.context.model
        if not isinstance(model, _Writes):
            return ""
        return model.written(self.material_of(tuple(e for e in self.entries if e.id <= through)))

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
        if not isinstance(model, _Writes):
            return None
        base = model.written(self.material)
        if outcome.status != "done" or outcome.refused:
            base = notes_base.landed(self.base, base, self.notes, self.after())
        return Base(base, by_model=self.by_model)

    def after(self) -> str:
        """Return the notes as they are now, with plain line feeds."""
        with Held(self.path) as held:
            text = (held.read(MOST_BYTES) or b"").decode("utf-8", "replace")
        return text.replace("\r\n", "\n") if carriage_returns(text) else text


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
