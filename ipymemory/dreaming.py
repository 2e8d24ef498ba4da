"""When the memories of a project are tidied, and how the last time went: the owner of that state.

The worker drives it through the session: `observe` with what is new, `due` and `run_due`. The
gates are tested once after a turn, when the kernel has come to rest; the dream itself goes on
beside the loop. What a dream that died left is put right before anything else (behaviour D3).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from ipymemory import dream_recovery, dream_state, dream_undo, dream_waiting, recent_sessions
from ipymemory.config import Settings
from ipymemory.dream_model import model_of
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.gates import Gate
from ipymemory.gates import dream as dream_gate
from ipymemory.jobs import dream
from ipymemory.jobs.dream import Context, Dreamt
from ipymemory.memory_files import opened
from ipymemory.places import Project, SessionFolder
from ipymemory.ran import Ran

log = logging.getLogger(__name__)

MOST_COUNTED = 100
"""Sessions that are counted for a status; more say nothing more."""


class Dreaming:
    """The dreams of one session. `clock` counts seconds and never goes back."""

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        bus: Bus,
        cancelled: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._project = project
        self._bus = bus
        self._cancelled = cancelled
        self._clock = clock
        self._rest_since = clock()
        self._turned = False
        self._scanned: float | None = None
        self._sessions = 0
        self._lock = asyncio.Lock()
        self.last = Gate(False, "no turn has ended yet")
        self.ran = Ran(clock)

    def observe(self, new: Sequence[str]) -> None:
        """Take in that entries are new or changed. Never raises."""
        if new:
            self._turned = True
            self._rest_since = self._clock()

    @property
    def running(self) -> bool:
        """Whether a dream is in flight."""
        return self._lock.locked()

    def due(self, settings: Settings, *, busy: bool) -> float | None:
        """Return the seconds until the gates are to be tested, None while nothing has changed."""
        if not self._turned or busy or self.running or not settings.dream.enabled:
            return None
        rest = self._rest_since + settings.engine.idle_seconds - self._clock()
        return max(0.0, rest, self.ran.wait)

    def gate(self, settings: Settings) -> Gate:
        """Return whether a dream may start now but for its lock, and why. Never raises."""
        try:
            self.last = self._gate(settings)
        except (IpymemoryError, OSError) as error:
            self.last = Gate(False, str(error))
        return self.last

    async def run_due(self, settings: Settings, *, busy: bool) -> Dreamt | None:
        """Test the gates if that is due, and dream if they let it; None where nothing ran."""
        due = self.due(settings, busy=busy)
        if due is None or due > 0:
            return None
        self._turned = False
        await asyncio.to_thread(self._recover, settings)
        if not self.gate(settings).open:
            return None
        return await self.dream(settings, by_hand=False)

    async def dream(
        self, settings: Settings, *, confirmed: bool = False, by_hand: bool = True, plan: str = ""
    ) -> Dreamt:
        """Dream now, gates or not, after one in flight; with the id of a `plan` do what waits.

        Never raises but for cancellation.
        """
        async with self._lock:
            context = self._context(settings, confirmed=confirmed, by_hand=by_hand)
            outcome = await asyncio.to_thread(dream.dream, context, plan)
        if outcome.status == "failed":
            self.ran.badly(outcome.error)
        elif outcome.status in ("done", "waiting"):
            self.ran.well()
            self._scanned = None
        return outcome

    async def undo(self, settings: Settings, id: str) -> dict[str, Any]:
        """Take the dream `id` back; return how it stands then. Raises `IpymemoryError`."""
        async with self._lock:
            told = await asyncio.to_thread(dream_undo.take_back, self._project, settings, id)
        self._bus.emit(Event("dream", dream.JOB, id, told))
        return told

    async def plan(self, settings: Settings) -> Dreamt:
        """Return what a dream would do now, a model's part included, with its diff."""
        async with self._lock:
            return await asyncio.to_thread(dream.plan, self._context(settings))

    def _context(
        self, settings: Settings, *, confirmed: bool = False, by_hand: bool = True
    ) -> Context:
        model, note = model_of(self._project, settings, self._folder.id, by_hand=by_hand)
        return Context(
            self._project,
            settings,
            self._bus,
            self._folder,
            confirmed,
            self._cancelled,
            model,
            note,
        )

    def _gate(self, settings: Settings) -> Gate:
        own = settings.dream
        folder = opened(self._project, settings)
        last = dream.lock(self._project, folder).last()
        records = dream_recovery.place(self._project, folder)
        if folder.proposes and (no := dream_state.dismissed(records)):
            last = max(last or 0.0, no)

        def waits() -> str:
            if folder.closed:
                return folder.closed.rstrip(".")
            if not folder.folder.is_dir():
                return "there are no memories yet"
            if folder.proposes and dream_waiting.there(records):
                return "a plan waits for a yes: %memory dream --yes does it, --no drops it"
            return ""

        return dream_gate(
            enabled=own.enabled,
            waits=waits(),
            hours_since=None if last is None else (time.time() - last) / 3600,
            hours=own.hours,
            sessions=lambda: self._since(last or 0.0, settings),
            wanted=own.sessions,
        )

    def _since(self, last: float, settings: Settings) -> int | None:
        """Return how many other sessions there were since `last`; looks at most so often."""
        own = settings.dream
        fresh = self._clock() - self._scanned if self._scanned is not None else None
        if fresh is None or fresh >= own.scan_minutes * 60:
            self._scanned = self._clock()
            most = max(own.sessions, MOST_COUNTED)
            self._sessions = recent_sessions.count_since(self._project, last, self._folder.id, most)
        return self._sessions

    def _recover(self, settings: Settings) -> None:
        try:
            if dream.recover(self._project, settings):
                log.info("what a dream that died had left was put right")
        except IpymemoryError as error:
            log.warning("what a dream that died had left could not be put right: %s", error)
