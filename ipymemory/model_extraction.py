"""When a model looks for memories in what was said, and how its last looks fared.

The built-in engine looks after each turn and costs nothing. A model looks every few turns, or once
the kernel has been at rest for a while (behaviour E4), where one may work, its budget lasts, and
something was said that could be kept. Turns that come while it looks wait for one look after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ipymemory import learning_gate, looked_through, sessions
from ipymemory.asks import fence_of
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.extracting import Extracting
from ipymemory.finding import reading_tools
from ipymemory.gates import Gate
from ipymemory.jobs import extraction_by_model as job
from ipymemory.learning import JOB, Extracted
from ipymemory.places import Project, SessionFolder
from ipymemory.ran import Ran
from ipymemory.session_model import TOOLS, SessionModel
from ipymemory.transcript import Transcript
from ipymemory.turns import Ask, Entry, Turn

log = logging.getLogger(__name__)


class ModelExtraction:
    """The state of one session's looks by a model. `clock` counts seconds and never goes back."""

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        transcript: Transcript,
        extracting: Extracting,
        model: SessionModel,
        clock: Callable[[], float],
    ) -> None:
        self.ran = Ran(clock)
        self._folder = folder
        self._project = project
        self._transcript = transcript
        self._extracting = extracting
        self._model = model
        self._through: str | None = None
        self._lock = asyncio.Lock()
        self._again = False
        """Whether turns came while the last look was in flight."""

    @property
    def running(self) -> bool:
        """Whether a look is in flight."""
        return self._lock.locked()

    def gate(self, settings: Settings) -> Gate:
        """Return whether a look may start now, and why. Never raises."""
        if closed := self._closed(settings):
            return Gate(False, closed)
        fresh = self._fresh()
        rest = self._extracting.rest_seconds
        busy = self._transcript.busy
        every = job.EVERY_TURNS
        gate = learning_gate.gate(settings, fresh=fresh, rest_seconds=rest, busy=busy, every=every)
        if (
            not gate.open
            and self._again
            and fresh
            and not busy
            and rest >= learning_gate.REST_SECONDS
        ):
            gate = Gate(True, "turns came while the last look was in flight")
        if not gate.open:
            return gate
        if self.ran.wait:
            return Gate(False, f"the last try failed; the next is in {self.ran.wait:.0f} s")
        budget = self._model.ledger.gate(settings)
        return gate if budget.open else budget

    def due(self, settings: Settings) -> float | None:
        """Return the seconds until the gate opens by itself, None where something must happen."""
        if self._transcript.busy or self._closed(settings):
            return None
        fresh = self._fresh()
        wait = learning_gate.wait_seconds(settings, fresh, job.EVERY_TURNS)
        if wait is None or not self._model.ledger.gate(settings).open:
            return None
        wait = min(wait, learning_gate.REST_SECONDS) if self._again else wait
        return max(0.0, wait - self._extracting.rest_seconds, self.ran.wait)

    async def look(self, settings: Settings) -> Extracted:
        """Have a model look now, after a look in flight. Never raises but for cancellation.

        Without anything new to look at, no model is asked.
        """
        async with self._lock:
            try:
                found = await self._look(settings)
            except IpymemoryError as error:
                found = Extracted("failed", error=str(error))
            except Exception as error:  # a run that fails must not end the worker
                log.exception("a model's look for memories failed")
                found = Extracted("failed", error=repr(error)[:500])
        if found.status == "done":
            self.ran.well()
            self._through = max(self._passed(), found.through)
        else:
            self.ran.badly(found.error or found.status)
        self._again = found.status == "done" and bool(self._fresh())
        return found

    async def settled(self) -> None:
        """Wait for a look in flight, for a kernel's end; what comes after it the next one does."""
        async with self._lock:
            pass

    async def _look(self, settings: Settings) -> Extracted:
        entries = self._entries()
        context = await asyncio.to_thread(self._extracting.context, settings)
        look = await asyncio.to_thread(job.Look, context, entries)
        if not look.candidates:
            return await self._extracting.alone(look.skip)
        conversation = self._model.conversation(self._transcript, settings)
        notebook = sessions.read(self._folder).notebook
        reading = reading_tools(
            fence := fence_of(self._project, notebook, settings),
            conversation.level,
            context.cancelled,
        )
        model = self._model.model(JOB, conversation, settings)
        found = await look.run(job.ByModel(model, conversation, TOOLS, reading, fence))
        await self._extracting.alone(lambda: look.settle(found))
        return found

    def _entries(self) -> list[Entry]:
        """Return what is on record, without a cell that still runs."""
        entries = list(self._transcript.entries)
        if self._transcript.busy:
            last = max(n for n, each in enumerate(entries) if isinstance(each, Turn))
            entries = entries[:last]
        return entries

    def _closed(self, settings: Settings) -> str:
        """Return why no model may look, nothing where one may."""
        try:
            chosen = self._model.chosen(settings)
        except IpymemoryError as error:
            return str(error)
        if chosen.name == job.ENGINE:
            return ""
        return chosen.reason or "the built-in engine looks for memories"

    def _fresh(self) -> list[Entry]:
        """Return the turns and questions that no model was shown."""
        through = self._passed()
        found: list[Entry] = []
        for each in reversed(self._transcript.entries):
            if each.id <= through:
                break
            if isinstance(each, Turn | Ask):
                found.append(each)
        return found[::-1]

    def _passed(self) -> str:
        if self._through is None:
            try:
                self._through = looked_through.shown(self._folder).through
            except IpymemoryError:
                self._through = ""
        return self._through
