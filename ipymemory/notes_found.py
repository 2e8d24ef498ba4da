"""The notes of a session as an update finds them, and the base that tells a person's lines.

What a person changed is told from the base (`notes_base`). When that does not belong to the run
whose notes stand, because a person undid it or a process was killed before it was written, it is
worked out again: from the turns, or, where a model wrote, from what its run left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from ipymemory import markdown, notes_base, prompts
from ipymemory.beside import with_text
from ipymemory.config import Settings
from ipymemory.context import Conversation
from ipymemory.errors import FormatError
from ipymemory.events import Bus, Event
from ipymemory.extractive.material import ByModel, NotesMaterial
from ipymemory.files import make_folder, read_json
from ipymemory.held import Held, resolved
from ipymemory.history import History, RunEntry
from ipymemory.models import Model, ToolSpec
from ipymemory.places import Project, SessionFolder
from ipymemory.tools import MOST_BYTES, carriage_returns
from ipymemory.turns import Entry

log = logging.getLogger(__name__)

JOB = "session_notes"

MODEL = "anthropic"
"""The engine that writes notes in its own words, so that they cannot be worked out anew."""


@runtime_checkable
class Writes(Protocol):
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


class Found:
    """The notes, the run that left them so, and their base: what the engine alone had made."""

    def __init__(self, context: Context, entries: tuple[Entry, ...]) -> None:
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
        if not isinstance(model, Writes):
            return ""
        return model.written(self.material_of(tuple(e for e in self.entries if e.id <= through)))

    def after(self) -> str:
        """Return the notes as they are now, with plain line feeds."""
        with Held(self.path) as held:
            text = (held.read(MOST_BYTES) or b"").decode("utf-8", "replace")
        return text.replace("\r\n", "\n") if carriage_returns(text) else text
