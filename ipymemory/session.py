"""The one owner of a session's changing state: what was read, what is due, what ran last.

It knows no screen and no pipe. The worker drives it with `observe`, `due` and `run_due`; the
command line opens one for a single `update_notes`. Updates never overlap: a second request waits
for the one in flight, and however many come meanwhile are one (behaviour S6).
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ipymemory import lines, places, sessions
from ipymemory.agent import Outcome
from ipymemory.beside import NotebookText
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.extractive import ExtractiveModel
from ipymemory.gates import Gate
from ipymemory.history import History
from ipymemory.jobs import session_notes
from ipymemory.models import Model
from ipymemory.places import Project, SessionFolder
from ipymemory.transcript import Transcript
from ipymemory.turns import Entry, utc_now

log = logging.getLogger(__name__)

FIRST_RETRY = 5.0
LAST_RETRY = 300.0
"""Seconds until a failed update is tried again: doubled from the first to the last."""

EXPIRY = timedelta(days=1)
"""How often a project is looked through for sessions that are older than `Memory.keep_days`."""


@dataclass(slots=True)
class Ran:
    """How a job fared: when it last succeeded, when and how it last failed, in a row."""

    success: str = ""
    failed: str = ""
    error: str = ""
    failures: int = 0


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
        self.model = model if model is not None else ExtractiveModel()
        self.transcript = Transcript(folder.transcript)
        self.cancelled = False
        # One for the session's life: it reads its log only as far as that has grown.
        self._history = History(project.history)
        self._clock = clock
        self._changed: dict[str, None] = {}
        self._rest_since = clock()
        self._not_before = 0.0
        self._ran = Ran()
        self._gate = Gate(False, "nothing was looked at yet")
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[Outcome] | None = None
        self._forced = False
        self._remember()

    def observe(self) -> int:
        """Read what is new in the transcript; return how many entries the notes do not cover.

        Raises `TranscriptError` when the transcript cannot be read.
        """
        first = not self.transcript.entries
        new = self.transcript.follow()
        if first:
            new = [id for id in new if id > self._through]
        if new:
            self._changed.update(dict.fromkeys(new))
            self._rest_since = self._clock()
        return len(self._changed)

    def configure(self, settings: Settings) -> None:
        """Use `settings` from the next gate and the next run on."""
        self.settings = settings

    @property
    def running(self) -> bool:
        """Whether an update is in flight or waits for one."""
        return self._lock.locked() or self._next is not None

    def gate(self) -> Gate:
        """Return whether an update of the notes may start now, and why."""
        rest = self._clock() - self._rest_since
        gate = session_notes.gate(
            self.settings,
            changed=len(self._changed),
            rest_seconds=rest,
            busy=self.transcript.busy,
        )
        wait = self._not_before - self._clock()
        if gate.open and wait > 0:
            gate = Gate(False, f"the last update failed; the next try is in {wait:.0f} s")
        self._gate = gate
        return gate

    def due(self) -> float | None:
        """Return the seconds until something may run, None while nothing is waited for."""
        notes = self.settings.session_notes
        if not self._changed or not notes.enabled or self.transcript.busy:
            return None
        now = self._clock()
        return max(0.0, self._rest_since + notes.wait_seconds - now, self._not_before - now)

    async def run_due(self) -> Outcome | None:
        """Run what its gate lets through; return the outcome, None when nothing ran."""
        return await self.update_notes() if self.gate().open else None

    async def update_notes(self, *, force: bool = False) -> Outcome:
        """Bring the notes up to date, after an update in flight; `force` also when they are.

        However many ask meanwhile, one update answers them all. Never raises but for
        cancellation.
        """
        self._forced = self._forced or force
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._after_the_one_in_flight())
        return await asyncio.shield(self._next)

    async def finish(self) -> None:
        """Wait for updates in flight, then cover what is left; for the end of a kernel."""
        if self.running or self._changed:
            await self.update_notes()

    def status(self) -> dict[str, Any]:
        """Return what the status page shows, as JSON values."""
        return {
            "gates": {"notes": self.gate().reason},
            "waiting": len(self._changed),
            "busy": self.transcript.busy,
            "entries": len(self.transcript.entries),
            "torn": self.transcript.torn,
            "services": {
                "notes": {
                    "success": self._ran.success,
                    "failed": self._ran.failed,
                    "error": self._ran.error,
                }
            },
        }

    def expire(self, now: datetime | None = None) -> list[str]:
        """Delete sessions past `Memory.keep_days`, at most once in `EXPIRY`; return their ids.

        What went stands in the worker's log and in ``project.json``. Raises `IpymemoryError`
        when the project's record cannot be written.
        """
        now = now or datetime.now(UTC)
        told = self.project.properties().get("expired")
        if isinstance(told, dict) and not _older(told.get("time"), EXPIRY, now):
            return []
        keep = self.settings.memory.keep_days
        gone = []
        for each in sessions.expired(self.project, keep, now):
            if each.id != self.folder.id:
                shutil.rmtree(each.path, ignore_errors=True)
                gone.append(each.id)
        said = {"time": now.isoformat(), "sessions": len(gone)}
        self.project.set_property("expired", said)
        if gone:
            lines.append(
                self.folder.worker_log,
                {"type": "expired", "time": utc_now(), "keep_days": keep, "sessions": gone},
            )
        return gone

    async def _after_the_one_in_flight(self) -> Outcome:
        async with self._lock:
            self._next = None
            forced, self._forced = self._forced, False
            return await self._update(forced)

    async def _update(self, forced: bool) -> Outcome:
        try:
            self.observe()
        except IpymemoryError as error:
            outcome = Outcome("failed", error=str(error))
            self.bus.emit(Event("failed", session_notes.JOB, details=outcome.as_dict()))
        else:
            covered = list(self._changed)
            # What changes while the update runs is not covered by it, also when its id was.
            self._changed = {}
            outcome = await session_notes.update(
                self._context(), tuple[Entry, ...](self.transcript.entries), covered, force=forced
            )
            if outcome.status != "done":
                self._changed = dict.fromkeys((*covered, *self._changed))
        self._took(outcome)
        return outcome

    def _took(self, outcome: Outcome) -> None:
        """Remember how an update ended, and when the next one may be tried."""
        ran = self._ran
        if outcome.status == "done":
            ran.success, ran.failures, self._not_before = utc_now(), 0, 0.0
            if outcome.refusals:
                ran.failed, ran.error = utc_now(), f"an edit was refused: {outcome.refusals[0]}"
            return
        ran.failed, ran.error = utc_now(), outcome.error or outcome.status
        wait = min(FIRST_RETRY * 2**ran.failures, LAST_RETRY)
        ran.failures += 1
        self._not_before = self._clock() + wait

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

    def _remember(self) -> None:
        """Read back what an earlier worker of this session left on record."""
        self._through, self._notebook = "", ""
        self._text = NotebookText(None)
        try:
            record = sessions.read(self.folder)
            self._through, self._notebook = record.notes_through, Path(record.notebook).name
            self._text = NotebookText(Path(record.notebook))
            told, _ = lines.read(self.folder.worker_log)
        except IpymemoryError as error:
            log.warning("the session's record was passed over: %s", error)
            return
        for each in told:
            if each.get("type") != "run" or each.get("job") != session_notes.JOB:
                continue
            if each.get("status") == "done":
                self._ran.success = str(each.get("time", ""))
                if refusals := each.get("refusals"):
                    self._ran.failed = self._ran.success
                    self._ran.error = f"an edit was refused: {refusals[0]}"
            else:
                self._ran.failed = str(each.get("time", ""))
                self._ran.error = str(each.get("error") or each.get("status"))


def _older(time: object, than: timedelta, now: datetime) -> bool:
    try:
        return now - datetime.fromisoformat(str(time)) > than
    except (ValueError, TypeError):
        return True
