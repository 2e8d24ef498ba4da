"""The one owner of a session's changing state: what was read, what is due, what ran last.

It knows no screen and no pipe. The worker drives it with `observe`, `due` and `run_due`; the
command line opens one for a single `update_notes`. What each part waits for is its own matter:
the notes (`noting`), what is learned, living documents, dreams, the assistant's answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ipymemory import expiry
from ipymemory.agent import Outcome
from ipymemory.asks import Asks, Question
from ipymemory.config import Settings
from ipymemory.document_look import Looked
from ipymemory.documenting import Documenting
from ipymemory.doing import Doing
from ipymemory.dreaming import Dreaming
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus
from ipymemory.extracting import Extracting
from ipymemory.extractive import ExtractiveModel
from ipymemory.gates import Gate
from ipymemory.history import History
from ipymemory.learning import Extracted
from ipymemory.model_extraction import ModelExtraction
from ipymemory.models import Model
from ipymemory.noting import Noting
from ipymemory.places import Project, SessionFolder
from ipymemory.session_model import SessionModel, preview
from ipymemory.transcript import Transcript


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
        self.noting = Noting(
            folder,
            project,
            self.bus,
            self.model,
            self._history,
            self.transcript,
            self.session_model,
            lambda: self.settings,
            self._follow,
            lambda: self.cancelled,
            clock,
        )

    def observe(self) -> int:
        """Read what is new in the transcript; return how many entries the notes do not cover.

        Never raises: a transcript that cannot be read is a failure of the notes, shown and tried
        again like one.
        """
        return self.noting.look()

    def configure(self, settings: Settings) -> None:
        """Use `settings` from the next gate and the next run on."""
        self.settings = settings
        self.noting.by_model.look(self.transcript, settings)

    @property
    def running(self) -> bool:
        """Whether a run is in flight or waits for one."""
        learning = self.extracting.running or self.model_extraction.running
        writing = self.noting.running or self.documenting.running
        return writing or learning or self.dreaming.running

    def gate(self) -> Gate:
        """Return whether an update of the notes may start now, and why."""
        return self.noting.gate()

    def model_gate(self) -> Gate:
        """Return whether a model may bring the notes up to date now, and why."""
        return self.noting.model_gate()

    def due(self) -> float | None:
        """Return the seconds until something may run, None while nothing is waited for."""
        dues = (
            self.noting.due(),
            self.extracting.due(self.settings),
            self.model_extraction.due(self.settings),
            self.documenting.due(self.settings),
            self.dreaming.due(self.settings, busy=self.transcript.busy),
        )
        return min((each for each in dues if each is not None), default=None)

    async def run_due(self) -> Outcome | None:
        """Run what its gate lets through; return the notes' outcome, None if not due."""
        if self.noting.unread:
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
        return await self.noting.update(force=force, by_model=by_model)

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
        done = await self.session_model.compact(conversation, self.settings, self.noting.settled)
        return {"before": before, "after": conversation.tokens, "done": done}

    async def finish(self) -> None:
        """Wait for updates in flight, then cover what is left; for the end of a kernel."""
        # First, since it takes milliseconds, and a model in flight may take all the time there is.
        await self.extracting.finish(self.settings)
        await self.noting.finish()
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
            "waiting": self.noting.waiting,
            "busy": self.transcript.busy,
            "entries": len(self.transcript.entries),
            "torn": self.transcript.torn,
            "services": {
                "notes": self.noting.ran.as_dict(),
                "notes by a model": self.noting.by_model.ran.as_dict(),
                "extraction": self.extracting.ran.as_dict(),
                "extraction by a model": self.model_extraction.ran.as_dict(),
                "documents": self.documenting.ran.as_dict(),
                "dream": self.dreaming.ran.as_dict(),
            },
        }

    def expire(self, now: datetime | None = None) -> list[str]:
        """Delete sessions past `Memory.keep_days`; return their ids. Raises `IpymemoryError`."""
        return expiry.expire(self.project, self.folder, self.settings.memory.keep_days, now)

    async def _make_room(self) -> None:
        """Compact a conversation that is too long for another question."""
        if (conversation := self.noting.by_model.conversation) is not None:
            await self.session_model.make_room(conversation, self.settings, self.noting.settled)

    def _follow(self) -> None:
        """Read what is new in the transcript, for every part; raises `TranscriptError`."""
        first = not self.transcript.offset
        self.noting.unread = True
        new = self.transcript.follow()
        self.noting.unread = False
        self.extracting.observe(new)
        self.documenting.observe(new)
        self.dreaming.observe(new)
        self.noting.observe(new, first=first)

    def _mode(self) -> str:
        """Return the mode that was chosen in the project, else the setting's.

        The notes go on in every mode (behaviour L10); it is told, not asked.
        """
        try:
            return self.project.mode(self.settings.memory.mode)
        except IpymemoryError:
            return str(self.settings.memory.mode)
