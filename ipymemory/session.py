"""The one owner of a session's changing state: what was read, what is due, what ran last.

It knows no screen and no pipe. The worker drives it with `observe`, `due` and `run_due`; the
command line opens one for a single `update_notes`. Updates never overlap: a second request waits
for the one in flight, and however many come meanwhile are one (behaviour S6).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ipymemory import expiry, lines, places, sessions
from ipymemory.agent import Outcome
from ipymemory.asks import Asks, Question
from ipymemory.beside import NotebookText
from ipymemory.config import Settings
from ipymemory.document_look import Looked
from ipymemory.documenting import Documenting
from ipymemory.doing import Doing
from ipymemory.dreaming import Dreaming
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.extracting import Extracting
from ipymemory.extractive import ExtractiveModel
from ipymemory.gates import Gate
from ipymemory.history import History
from ipymemory.jobs import session_notes
from ipymemory.learning import Extracted
from ipymemory.model_extraction import ModelExtraction
from ipymemory.model_notes import ModelNotes
from ipymemory.models import Model
from ipymemory.places import Project, SessionFolder
from ipymemory.ran import Ran
from ipymemory.session_model import TOOLS, SessionModel, preview
from ipymemory.transcript import Transcript
from ipymemory.turns import Entry

log = logging.getLogger(__name__)

_LOG_TAIL = 64 * 1024
"""Bytes from the end of the worker's log in which the last runs are looked for."""


class MemorySession:
    """The state of one session. `clock` counts seconds and never goes back."""

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        settings: Settings,
        bus: Bus | None = None,
        model: Model | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self.project = project
        self.settings = settings
        self.bus = bus if bus is not None else Bus()
        self._doing = Doing()
        self.bus.subscribe(self._doing)
        self.model = model if model is not None else ExtractiveModel()
        self.transcript = Transcript(folder.transcript)
        self.cancelled = False
        # One for the session's life: it reads its log only as far as that has grown.
        self._history = History(project.history)
        self.session_model = SessionModel(folder, project, self.bus)
        self.extracting = Extracting(
            folder, project, self.bus, self.transcript, lambda: self.cancelled, clock
        )
        self.model_extraction = ModelExtraction(
            folder, project, self.transcript, self.extracting, self.session_model, clock
        )
        self.documenting = Documenting(
            folder,
            project,
            self.bus,
            self.transcript,
            self.session_model,
            lambda: self.cancelled,
            clock,
        )
        self.dreaming = Dreaming(folder, project, self.bus, lambda: self.cancelled, clock)
        self._asks = Asks(folder, project, self.bus, self._history, self.session_model)
        self._clock = clock
        self._changed: dict[str, None] = {}
        self._rest_since = clock()
        self._ran = Ran(clock)
        self._model_notes = ModelNotes(self.session_model, clock)
        self._unread = False
        self._lock = asyncio.Lock()
        self._running_since = 0.0
        self._next: asyncio.Task[Outcome] | None = None
        self._forced = self._by_model = False
        self._remember()

    def observe(self) -> int:
        """Read what is new in the transcript; return how many entries the notes do not cover.

        Never raises: a transcript that cannot be read is a failure of the notes, shown and tried
        again like one.
        """
        try:
            self._follow()
        except IpymemoryError as error:
            self._ran.badly(str(error))
        else:
            self._model_notes.look(self.transcript, self.settings)
        return len(self._changed)

    def configure(self, settings: Settings) -> None:
        """Use `settings` from the next gate and the next run on."""
        self.settings = settings
        self._model_notes.look(self.transcript, settings)

    @property
    def running(self) -> bool:
        """Whether a run is in flight or waits for one."""
        learning = self.extracting.running or self.model_extraction.running
        writing = self._lock.locked() or self._next is not None or self.documenting.running
        return writing or learning or self.dreaming.running

    def gate(self) -> Gate:
        """Return whether an update of the notes may start now, and why."""
        gate = session_notes.gate(
            self.settings,
            changed=len(self._changed),
            rest_seconds=self._rest,
            busy=self.transcript.busy,
        )
        wait = self._ran.wait
        if wait > 0 and (gate.open or self._unread):
            return Gate(False, f"the last update failed; the next try is in {wait:.0f} s")
        return gate

    def model_gate(self) -> Gate:
        """Return whether a model may bring the notes up to date now, and why."""
        return self._model_notes.gate(
            self.settings, rest_seconds=self._rest, busy=self.transcript.busy
        )

    def due(self) -> float | None:
        """Return the seconds until something may run, None while nothing is waited for."""
        dues = (
            self._notes_due(),
            self.extracting.due(self.settings),
            self.model_extraction.due(self.settings),
            self.documenting.due(self.settings),
            self.dreaming.due(self.settings, busy=self.transcript.busy),
        )
        return min((each for each in dues if each is not None), default=None)

    def _notes_due(self) -> float | None:
        notes = self.settings.session_notes
        if not notes.enabled:
            return None
        if self._unread:
            return self._ran.wait
        if self.transcript.busy:
            return None
        model = self._model_notes.due(self.settings, rest_seconds=self._rest, busy=False)
        if not self._changed:
            return model
        own = max(0.0, notes.wait_seconds - self._rest, self._ran.wait)
        return own if model is None else min(own, model)

    async def run_due(self) -> Outcome | None:
        """Run what its gate lets through; return the notes' outcome, None if not due."""
        if self._unread:
            self.observe()
        # It takes milliseconds; a model may take minutes.
        await self.extracting.run_due(self.settings)
        notes = None
        if self.gate().open:
            notes = await self.update_notes()
        elif self.model_gate().open:
            notes = await self.update_notes(by_model=True)
        if self.model_extraction.gate(self.settings).open:
            await self.model_extraction.look(self.settings)
        await self.documenting.run_due(self.settings)
        # Last of all, since it may take seconds.
        await self.dreaming.run_due(self.settings, busy=self.transcript.busy)
        return notes

    async def update_documents(self) -> Looked:
        """Bring the notebook's living documents up to date now; raises `IpymemoryError`."""
        self.observe()
        return await self.documenting.update(self.settings, force=True)

    async def extract(self) -> list[Extracted]:
        """Look for memories now, also with a model where one may work; return each outcome."""
        self.observe()
        found = [await self.extracting.extract(self.settings)]
        if self.session_model.chosen(self.settings).name == "anthropic":
            found.append(await self.model_extraction.look(self.settings))
        return found

    async def update_notes(self, *, force: bool = False, by_model: bool = False) -> Outcome:
        """Bring the notes up to date, after an update in flight; `force` also when they are.

        A model writes them with `by_model`, or where one may work and they are forced. However
        many ask meanwhile, one update answers them all. Never raises but for cancellation.
        """
        self._forced = self._forced or force
        self._by_model = self._by_model or by_model
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._after_the_one_in_flight())
        return await asyncio.shield(self._next)

    async def ask(
        self,
        question: str,
        ask_id: str,
        last: int | None,
        hear: Callable[[Mapping[str, Any]], None],
        cancelled: Callable[[], bool],
    ) -> dict[str, Any]:
        """Have the assistant answer the question on record as `ask_id`; return the answer.

        `hear` gets each piece as it comes. Raises `EngineError` when there is no model.
        """
        self.observe()
        await self._make_room()
        return await self._asks.ask(
            Question(question, ask_id, last),
            self.transcript,
            self.settings,
            hear,
            lambda: cancelled() or self.cancelled,
        )

    async def recall(self, question: str, n: int) -> dict[str, Any]:
        """Return memories for a question as `Asks.recall` does; raises `IpymemoryError`."""
        return await self._asks.recall(question, n, self.settings)

    def preview(self) -> dict[str, Any]:
        """Return what a question would send now; raises `IpymemoryError`."""
        self.observe()
        conversation = self.session_model.conversation(self.transcript, self.settings)
        return preview(conversation, self.session_model.chosen(self.settings))

    async def compact(self) -> dict[str, Any]:
        """Compact the conversation now; return its tokens before and after, and if it helped."""
        self.observe()
        conversation = self.session_model.conversation(self.transcript, self.settings)
        before = conversation.tokens
        done = await self.session_model.compact(conversation, self.settings, self._settled)
        return {"before": before, "after": conversation.tokens, "done": done}

    async def finish(self) -> None:
        """Wait for updates in flight, then cover what is left; for the end of a kernel."""
        # First, since it takes milliseconds, and a model in flight may take all the time there is.
        await self.extracting.finish(self.settings)
        while self._lock.locked() or self._next is not None:
            await asyncio.sleep(0)
            async with self._lock:
                pass
        if self._changed and self.settings.session_notes.enabled and not self.cancelled:
            await self.update_notes()
        await self.model_extraction.settled()

    def status(self) -> dict[str, Any]:
        """Return what the status page shows, as JSON values. Never raises."""
        return {
            "mode": self._mode(),
            "gates": {
                "notes": self.gate().reason,
                "notes by a model": self.model_gate().reason,
                "extraction": self.extracting.gate(self.settings).reason,
                "extraction by a model": self.model_extraction.gate(self.settings).reason,
                "documents": self.documenting.gate(self.settings).reason,
                "dream": self.dreaming.gate(self.settings).reason,
            },
            "running": self.running,
            "doing": self._doing.as_dict(),
            "waiting": len(self._changed),
            "busy": self.transcript.busy,
            "entries": len(self.transcript.entries),
            "torn": self.transcript.torn,
            "services": {
                "notes": self._ran.as_dict(),
                "notes by a model": self._model_notes.ran.as_dict(),
                "extraction": self.extracting.ran.as_dict(),
                "extraction by a model": self.model_extraction.ran.as_dict(),
                "documents": self.documenting.ran.as_dict(),
                "dream": self.dreaming.ran.as_dict(),
            },
        }

    def expire(self, now: datetime | None = None) -> list[str]:
        """Delete sessions past `Memory.keep_days`; return their ids. Raises `IpymemoryError`."""
        return expiry.expire(self.project, self.folder, self.settings.memory.keep_days, now)

    @property
    def _rest(self) -> float:
        return self._clock() - self._rest_since

    async def _make_room(self) -> None:
        """Compact a conversation that is too long for another question."""
        if (conversation := self._model_notes.conversation) is not None:
            await self.session_model.make_room(conversation, self.settings, self._settled)

    async def _settled(self) -> None:
        """Wait for an update in flight, a while, unless it has been running long (S10)."""
        until = self._clock() + session_notes.SETTLE_SECONDS
        while self._lock.locked() and self._clock() < until:
            if self._clock() - self._running_since > session_notes.LONG_SECONDS:
                return
            await asyncio.sleep(0.02)

    async def _after_the_one_in_flight(self) -> Outcome:
        async with self._lock:
            self._next = None
            self._running_since = self._clock()
            forced, self._forced = self._forced, False
            by_model, self._by_model = self._by_model, False
            waiting = self.observe()
            if not (forced or by_model) or self._model_notes.conversation is None:
                return await self._update(forced, by_model=False)
            if waiting:
                # A model may have nothing to say, or no server; these notes are there in any case.
                await self._update(False, by_model=False)
            return await self._update(forced, by_model=True)

    async def _update(self, forced: bool, by_model: bool) -> Outcome:
        """Run one update. The one finisher: whatever happens, its state is right afterwards."""
        covered: list[str] = []
        ran = self._ran
        try:
            self._follow()
            context = self._context()
            if by_model:
                context = self._of_a_model(context)
            ran = self._model_notes.ran if context.conversation is not None else ran
            at = context.conversation.at if context.conversation is not None else -1
            # What changes while the update runs is not covered by it, also when its id was.
            covered, self._changed = list(self._changed), {}
            outcome = await session_notes.update(
                context, tuple[Entry, ...](self.transcript.entries), covered, force=forced
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
            self.bus.emit(Event("failed", session_notes.JOB, details=outcome.as_dict()))
        if outcome.status == "done":
            ran.well(outcome.refusals)
        else:
            self._changed = dict.fromkeys((*covered, *self._changed))
            ran.badly(outcome.error or outcome.status)
        return outcome

    def _follow(self) -> None:
        """Read what is new in the transcript; raises `TranscriptError`."""
        first = not self.transcript.offset
        self._unread = True
        new = self.transcript.follow()
        self._unread = False
        self.extracting.observe(new)
        self.documenting.observe(new)
        self.dreaming.observe(new)
        if first:
            new = self._not_covered(new)
        if new:
            self._changed.update(dict.fromkeys(new))
            self._rest_since = self._clock()

    def _not_covered(self, ids: list[str]) -> list[str]:
        """Return those of all entries that an earlier worker left to this one.

        What was added to an entry that its last run covered cannot be told apart; so if anything
        was written since, the newest stands for it.
        """
        left = [id for id in ids if id > self._through]
        try:
            written = self.folder.transcript.stat().st_mtime
        except OSError:
            return left
        return left or (ids[-1:] if written > self._covered_at else [])

    def _mode(self) -> str:
        """Return the mode that was chosen in the project, else the setting's.

        The notes go on in every mode (behaviour L10); it is told, not asked.
        """
        try:
            return self.project.mode(self.settings.memory.mode)
        except IpymemoryError:
            return str(self.settings.memory.mode)

    def _context(self) -> session_notes.Context:
        self._history.keep = self.settings.memory.history_keep
        return session_notes.Context(
            folder=self.folder,
            project=self.project,
            settings=self.settings,
            bus=self.bus,
            model=self.model,
            history=self._history,
            config_folder=places.config_folder(self.project.home),
            notebook=self._notebook,
            cells=self._text.cells(),
            cancelled=lambda: self.cancelled,
        )

    def _of_a_model(self, context: session_notes.Context) -> session_notes.Context:
        """Return `context` for a run of the model."""
        conversation = self.session_model.conversation(self.transcript, self.settings)
        model = self.session_model.model(session_notes.JOB, conversation, self.settings)
        return replace(context, model=model, conversation=conversation, specs=TOOLS)

    def _remember(self) -> None:
        """Read back what an earlier worker of this session left on record."""
        self._through, self._notebook, self._covered_at = "", "", 0.0
        self._text = NotebookText(None)
        try:
            record = sessions.read(self.folder)
            self._through, self._notebook = record.notes_through, Path(record.notebook).name
            self._text = NotebookText(Path(record.notebook))
            path = self.folder.worker_log
            size = path.stat().st_size if path.exists() else 0
            told, _ = lines.read(path, max(0, size - _LOG_TAIL))
        except (IpymemoryError, OSError) as error:
            log.warning("the session's record was passed over: %s", error)
            return
        for each in told:
            if each.get("type") == "run" and each.get("job") == session_notes.JOB:
                self._remember_run(each)

    def _remember_run(self, run: Mapping[str, Any]) -> None:
        by_model = run.get("engine") == session_notes.MODEL
        if (self._model_notes.ran if by_model else self._ran).remember(run):
            with contextlib.suppress(ValueError, TypeError):
                took = float(run.get("seconds") or 0.0)
                ended = datetime.fromisoformat(str(run.get("time", "")))
                self._covered_at = ended.timestamp() - took
