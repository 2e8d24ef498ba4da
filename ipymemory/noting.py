"""What the session notes wait for and how they fared: the one owner of that state.

Updates never overlap: a second request waits for the one in flight, and however many come
meanwhile are one (behaviour S6). What an update did not cover waits for the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ipymemory import lines, notes_found, places, sessions
from ipymemory.agent import Outcome
from ipymemory.beside import NotebookText
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.gates import Gate
from ipymemory.history import History
from ipymemory.jobs import session_notes
from ipymemory.model_notes import ModelNotes
from ipymemory.models import Model
from ipymemory.places import Project, SessionFolder
from ipymemory.ran import Ran
from ipymemory.session_model import TOOLS, SessionModel
from ipymemory.transcript import Transcript
from ipymemory.turns import Entry

log = logging.getLogger(__name__)

_LOG_TAIL = 64 * 1024
"""Bytes from the end of the worker's log in which the last runs are looked for."""


class Noting:
    """The state of one session's notes. `clock` counts seconds and never goes back.

    `follow` reads what is new in the transcript, for every part of the session; it raises
    `TranscriptError`.
    """

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        bus: Bus,
        model: Model,
        history: History,
        transcript: Transcript,
        session_model: SessionModel,
        settings: Callable[[], Settings],
        follow: Callable[[], None],
        cancelled: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._project = project
        self._bus = bus
        self._model = model
        self._history = history
        self._transcript = transcript
        self._session_model = session_model
        self._settings = settings
        self._follow = follow
        self._cancelled = cancelled
        self._clock = clock
        self._changed: dict[str, None] = {}
        self._rest_since = clock()
        self.ran = Ran(clock)
        self.by_model = ModelNotes(session_model, clock)
        self.unread = False
        """Whether the transcript could not be read when it last was to be."""
        self.lock = asyncio.Lock()
        """Held by the update in flight."""
        self.running_since = 0.0
        self._next: asyncio.Task[Outcome] | None = None
        self._forced = self._by_model = False
        self._remember()

    def look(self) -> int:
        """Read what is new in the transcript; return how many entries the notes do not cover.

        Never raises: a transcript that cannot be read is a failure of the notes, shown and tried
        again like one.
        """
        try:
            self._follow()
        except IpymemoryError as error:
            self.ran.badly(str(error))
        else:
            self.by_model.look(self._transcript, self._settings())
        return len(self._changed)

    def observe(self, new: Sequence[str], *, first: bool) -> None:
        """Take up entries that are `new` or changed; all there are, the `first` time."""
        if first:
            new = self._not_covered(new)
        if new:
            self._changed.update(dict.fromkeys(new))
            self._rest_since = self._clock()

    @property
    def waiting(self) -> int:
        """How many entries the notes do not cover."""
        return len(self._changed)

    @property
    def running(self) -> bool:
        """Whether an update is in flight or waits for one."""
        return self.lock.locked() or self._next is not None

    def gate(self) -> Gate:
        """Return whether an update of the notes may start now, and why."""
        gate = session_notes.gate(
            self._settings(),
            changed=len(self._changed),
            rest_seconds=self._rest,
            busy=self._transcript.busy,
        )
        wait = self.ran.wait
        if wait > 0 and (gate.open or self.unread):
            return Gate(False, f"the last update failed; the next try is in {wait:.0f} s")
        return gate

    def model_gate(self) -> Gate:
        """Return whether a model may bring the notes up to date now, and why."""
        return self.by_model.gate(
            self._settings(), rest_seconds=self._rest, busy=self._transcript.busy
        )

    def due(self) -> float | None:
        """Return the seconds until an update may run, None while nothing is waited for."""
        notes = self._settings().session_notes
        if not notes.enabled:
            return None
        if self.unread:
            return self.ran.wait
        if self._transcript.busy:
            return None
        model = self.by_model.due(self._settings(), rest_seconds=self._rest, busy=False)
        if not self._changed:
            return model
        own = max(0.0, notes.wait_seconds - self._rest, self.ran.wait)
        return own if model is None else min(own, model)

    async def update(self, *, force: bool, by_model: bool) -> Outcome:
        """Bring the notes up to date as `MemorySession.update_notes` says."""
        self._forced = self._forced or force
        self._by_model = self._by_model or by_model
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._after_the_one_in_flight())
        return await asyncio.shield(self._next)

    async def finish(self) -> None:
        """Wait for updates in flight, then cover what is left."""
        while self.lock.locked() or self._next is not None:
            await asyncio.sleep(0)
            async with self.lock:
                pass
        if self._changed and self._settings().session_notes.enabled and not self._cancelled():
            await self.update(force=False, by_model=False)

    async def settled(self) -> None:
        """Wait for an update in flight, a while, unless it has been running long (S10)."""
        until = self._clock() + session_notes.SETTLE_SECONDS
        while self.lock.locked() and self._clock() < until:
            if self._clock() - self.running_since > session_notes.LONG_SECONDS:
                return
            await asyncio.sleep(0.02)

    @property
    def _rest(self) -> float:
        return self._clock() - self._rest_since

    async def _after_the_one_in_flight(self) -> Outcome:
        async with self.lock:
            self._next = None
            self.running_since = self._clock()
            forced, self._forced = self._forced, False
            by_model, self._by_model = self._by_model, False
            waiting = self.look()
            if not (forced or by_model) or self.by_model.conversation is None:
                return await self._update(forced, by_model=False)
            if waiting:
                # A model may have nothing to say, or no server; these notes are there in any case.
                await self._update(False, by_model=False)
            return await self._update(forced, by_model=True)

    async def _update(self, forced: bool, by_model: bool) -> Outcome:
        """Run one update. The one finisher: whatever happens, its state is right afterwards."""
        covered: list[str] = []
        ran = self.ran
        try:
            self._follow()
            context = self._context()
            if by_model:
                context = self._of_a_model(context)
            ran = self.by_model.ran if context.conversation is not None else ran
            at = context.conversation.at if context.conversation is not None else -1
            # What changes while the update runs is not covered by it, also when its id was.
            covered, self._changed = list(self._changed), {}
            outcome = await session_notes.update(
                context, tuple[Entry, ...](self._transcript.entries), covered, force=forced
            )
            if context.conversation is not None and outcome.status == "done":
                context.conversation.noted(at)
        except asyncio.CancelledError:
            self._changed = dict.fromkeys((*covered, *self._changed))
            raise
        except Exception as error:
            known = isinstance(error, IpymemoryError)
            if not known:
                log.exception("an update of the notes failed")
            outcome = Outcome("failed", error=str(error) if known else repr(error)[:500])
            self._bus.emit(Event("failed", session_notes.JOB, details=outcome.as_dict()))
        if outcome.status == "done":
            ran.well(outcome.refusals)
        else:
            self._changed = dict.fromkeys((*covered, *self._changed))
            ran.badly(outcome.error or outcome.status)
        return outcome

    def _not_covered(self, ids: Sequence[str]) -> Sequence[str]:
        """Return those of all entries that an earlier worker left to this one.

        What was added to an entry that its last run covered cannot be told apart; so if anything
        was written since, the newest stands for it.
        """
        left = [id for id in ids if id > self._through]
        try:
            written = self._folder.transcript.stat().st_mtime
        except OSError:
            return left
        return left or (ids[-1:] if written > self._covered_at else [])

    def _context(self) -> notes_found.Context:
        self._history.keep = self._settings().memory.history_keep
        return notes_found.Context(
            folder=self._folder,
            project=self._project,
            settings=self._settings(),
            bus=self._bus,
            model=self._model,
            history=self._history,
            config_folder=places.config_folder(self._project.home),
            notebook=self._notebook,
            cells=self._text.cells(),
            cancelled=self._cancelled,
        )

    def _of_a_model(self, context: notes_found.Context) -> notes_found.Context:
        """Return `context` for a run of the model."""
        conversation = self._session_model.conversation(self._transcript, self._settings())
        model = self._session_model.model(session_notes.JOB, conversation, self._settings())
        return replace(context, model=model, conversation=conversation, specs=TOOLS)

    def _remember(self) -> None:
        """Read back what an earlier worker of this session left on record."""
        self._through, self._notebook, self._covered_at = "", "", 0.0
        self._text = NotebookText(None)
        try:
            record = sessions.read(self._folder)
            self._through, self._notebook = record.notes_through, Path(record.notebook).name
            self._text = NotebookText(Path(record.notebook))
            path = self._folder.worker_log
            size = path.stat().st_size if path.exists() else 0
            told, _ = lines.read(path, max(0, size - _LOG_TAIL))
        except (IpymemoryError, OSError) as error:
            log.warning("the session's record was passed over: %s", error)
            return
        for each in told:
            if each.get("type") == "run" and each.get("job") == session_notes.JOB:
                self._remember_run(each)

    def _remember_run(self, run: Mapping[str, Any]) -> None:
        by_model = run.get("engine") == notes_found.MODEL
        if (self.by_model.ran if by_model else self.ran).remember(run):
            with contextlib.suppress(ValueError, TypeError):
                took = float(run.get("seconds") or 0.0)
                ended = datetime.fromisoformat(str(run.get("time", "")))
                self._covered_at = ended.timestamp() - took
