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
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ipymemory import expiry, lines, places, sessions
from ipymemory.agent import Outcome
from ipymemory.asks import Asks, Question
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
from ipymemory.session_model import SessionModel, preview
from ipymemory.transcript import Transcript
from ipymemory.turns import Entry, utc_now

log = logging.getLogger(__name__)

FIRST_RETRY = 5.0
LAST_RETRY = 300.0
"""Seconds until a failed update is tried again: doubled from the first to the last."""

_LOG_TAIL = 64 * 1024
"""Bytes from the end of the worker's log in which the last runs are looked for."""


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
        self.session_model = SessionModel(folder, project, self.bus)
        self._asks = Asks(folder, project, self.bus, self._history, self.session_model)
        self._clock = clock
        self._changed: dict[str, None] = {}
        self._rest_since = clock()
        self._not_before = 0.0
        self._ran = Ran()
        self._unread = False
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[Outcome] | None = None
        self._forced = False
        self._remember()

    def observe(self) -> int:
        """Read what is new in the transcript; return how many entries the notes do not cover.

        Never raises: a transcript that cannot be read is a failure of the notes, shown and tried
        again like one.
        """
        try:
            self._follow()
        except IpymemoryError as error:
            self._fail(str(error))
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
        gate = session_notes.gate(
            self.settings,
            changed=len(self._changed),
            rest_seconds=self._clock() - self._rest_since,
            busy=self.transcript.busy,
        )
        wait = self._not_before - self._clock()
        if wait > 0 and (gate.open or self._unread):
            return Gate(False, f"the last update failed; the next try is in {wait:.0f} s")
        return gate

    def due(self) -> float | None:
        """Return the seconds until something may run, None while nothing is waited for."""
        notes = self.settings.session_notes
        if not notes.enabled:
            return None
        now = self._clock()
        if self._unread:
            return max(0.0, self._not_before - now)
        if not self._changed or self.transcript.busy:
            return None
        return max(0.0, self._rest_since + notes.wait_seconds - now, self._not_before - now)

    async def run_due(self) -> Outcome | None:
        """Run what its gate lets through; return the outcome, None when nothing ran."""
        if self._unread:
            self.observe()
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
        return await self._asks.ask(
            Question(question, ask_id, last),
            self.transcript,
            self.settings,
            hear,
            lambda: cancelled() or self.cancelled,
        )

    def preview(self) -> dict[str, Any]:
        """Return what a question would send now; raises `IpymemoryError`."""
        self.observe()
        conversation = self.session_model.conversation(self.transcript, self.settings)
        return preview(conversation, self.session_model.chosen(self.settings))

    def compact(self) -> dict[str, Any]:
        """Compact the conversation now; return its tokens before and after, and if it helped."""
        self.observe()
        conversation = self.session_model.conversation(self.transcript, self.settings)
        before = conversation.tokens
        done = self.session_model.compact(conversation)
        return {"before": before, "after": conversation.tokens, "done": done}

    async def finish(self) -> None:
        """Wait for updates in flight, then cover what is left; for the end of a kernel."""
        while self.running:
            await asyncio.sleep(0)
            async with self._lock:
                pass
        if self._changed and self.settings.session_notes.enabled and not self.cancelled:
            await self.update_notes()

    def status(self) -> dict[str, Any]:
        """Return what the status page shows, as JSON values. Never raises."""
        ran = self._ran
        return {
            "mode": self._mode(),
            "gates": {"notes": self.gate().reason},
            "running": self.running,
            "waiting": len(self._changed),
            "busy": self.transcript.busy,
            "entries": len(self.transcript.entries),
            "torn": self.transcript.torn,
            "services": {
                "notes": {"success": ran.success, "failed": ran.failed, "error": ran.error}
            },
        }

    def expire(self, now: datetime | None = None) -> list[str]:
        """Delete sessions past `Memory.keep_days`; return their ids. Raises `IpymemoryError`."""
        return expiry.expire(self.project, self.folder, self.settings.memory.keep_days, now)

    async def _after_the_one_in_flight(self) -> Outcome:
        async with self._lock:
            self._next = None
            forced, self._forced = self._forced, False
            return await self._update(forced)

    async def _update(self, forced: bool) -> Outcome:
        """Run one update. The one finisher: whatever happens, its state is right afterwards."""
        covered: list[str] = []
        try:
            self._follow()
            # What changes while the update runs is not covered by it, also when its id was.
            covered, self._changed = list(self._changed), {}
            outcome = await session_notes.update(
                self._context(), tuple[Entry, ...](self.transcript.entries), covered, force=forced
            )
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
            self._succeed(outcome)
        else:
            self._changed = dict.fromkeys((*covered, *self._changed))
            self._fail(outcome.error or outcome.status)
        return outcome

    def _succeed(self, outcome: Outcome) -> None:
        ran = self._ran
        ran.success, ran.failures, self._not_before = utc_now(), 0, 0.0
        if outcome.refusals:
            ran.failed, ran.error = utc_now(), f"an edit was refused: {outcome.refusals[0]}"

    def _fail(self, error: str) -> None:
        """Remember a failure, and when the next try may be."""
        ran = self._ran
        ran.failed, ran.error = utc_now(), error
        self._not_before = self._clock() + min(FIRST_RETRY * 2.0**ran.failures, LAST_RETRY)
        ran.failures += 1

    def _follow(self) -> None:
        """Read what is new in the transcript; raises `TranscriptError`."""
        first = not self.transcript.offset
        self._unread = True
        new = self.transcript.follow()
        self._unread = False
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
        time, ran = str(run.get("time", "")), self._ran
        if run.get("status") != "done":
            ran.failed, ran.error = time, str(run.get("error") or run.get("status"))
            return
        ran.success = time
        if refusals := run.get("refusals"):
            ran.failed, ran.error = time, f"an edit was refused: {refusals[0]}"
        with contextlib.suppress(ValueError, TypeError):
            took = float(run.get("seconds") or 0.0)
            self._covered_at = datetime.fromisoformat(time).timestamp() - took
