"""What a session's extraction waits for and how it fared: the one owner of that state.

The worker drives it through the session: `opened` once when a kernel begins, `observe` with what
is new, `due` and `run_due`. The run itself goes on beside the loop, since it waits for locks; what
comes meanwhile waits for one run that follows (behaviour E4).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from ipymemory import learning_gate, looked_through, sessions
from ipymemory.beside import NotebookText
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus
from ipymemory.extractive.passages import Held
from ipymemory.gates import Gate
from ipymemory.jobs import extraction
from ipymemory.learning import Context, Extracted
from ipymemory.places import Project, SessionFolder
from ipymemory.ran import Ran
from ipymemory.transcript import Transcript
from ipymemory.turns import Ask, Entry, Turn

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Extracting:
    """The state of one session's extraction. `clock` counts seconds and never goes back."""

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        bus: Bus,
        transcript: Transcript,
        cancelled: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._project = project
        self._bus = bus
        self._transcript = transcript
        self._cancelled = cancelled
        self._clock = clock
        self._fresh: list[str] = []
        self._through: str | None = None
        self._rest_since = clock()
        self._generation = 0
        self._looked_back = False
        self._held: dict[int, Held] = {}
        self._text: NotebookText | None = None
        self._lock = asyncio.Lock()
        self._waiting: asyncio.Task[Extracted] | None = None
        self.ran = Ran(clock)

    def opened(self) -> None:
        """Keep what the saved notebook holds as the kernel begins. Never raises."""
        try:
            record = sessions.read(self._folder)
            self._generation = record.generation
            looked_through.open_kernel(self._folder, record)
        except IpymemoryError as error:
            # Then nobody's words are taken for a person's.
            log.warning("what the notebook held could not be kept: %s", error)

    def observe(self, new: Sequence[str]) -> None:
        """Take in the ids of entries that are new or changed. Never raises."""
        if not new:
            return
        self._rest_since = self._clock()
        through = self._passed()
        known = set(self._fresh)
        self._fresh += [id for id in new if id > through and id not in known]

    @property
    def running(self) -> bool:
        """Whether a run is in flight or waits for one."""
        return self._lock.locked() or self._waiting is not None

    def gate(self, settings: Settings) -> Gate:
        """Return whether a run may start now, and why."""
        if (wait := self.ran.wait) and self._fresh:
            return Gate(False, f"the last run failed; the next try is in {wait:.0f} s")
        return learning_gate.gate(
            settings,
            fresh=self._entries(),
            rest_seconds=self.rest_seconds,
            busy=self._transcript.busy,
            every=extraction.EVERY_TURNS,
        )

    def due(self, settings: Settings) -> float | None:
        """Return the seconds until a run may start, None while nothing is waited for."""
        if not self._fresh or self._transcript.busy:
            return None
        wait = learning_gate.wait_seconds(settings, self._entries(), extraction.EVERY_TURNS)
        if wait is None:
            return None
        return max(0.0, self._rest_since + wait - self._clock(), self.ran.wait)

    async def run_due(self, settings: Settings) -> Extracted | None:
        """Run if the gate lets it; return the outcome, None when nothing ran."""
        return await self.extract(settings) if self.gate(settings).open else None

    async def extract(self, settings: Settings) -> Extracted:
        """Look through all that is new, after a run in flight.

        However many ask meanwhile, one run answers them all. Never raises but for cancellation.
        """
        if self._waiting is None:
            run = self._after_the_one_in_flight(settings)
            self._waiting = asyncio.get_running_loop().create_task(run)
        return await asyncio.shield(self._waiting)

    async def finish(self, settings: Settings) -> None:
        """Wait for what is in flight, then look through what is left; for a kernel's end.

        A text that was saved last is not told by any turn, so this looks for it too.
        """
        while self.running:
            await asyncio.sleep(0)
            async with self._lock:
                pass
        begun = self._folder.transcript.exists()
        if begun and settings.extraction.enabled and not self._cancelled():
            await self.extract(settings)

    async def _after_the_one_in_flight(self, settings: Settings) -> Extracted:
        async with self._lock:
            self._waiting = None
            fresh, self._fresh = self._fresh, []
            done = False
            try:
                outcome = await asyncio.to_thread(self._run, settings)
                done = outcome.status == "done"
            finally:
                if not done:
                    self._fresh = [*fresh, *(each for each in self._fresh if each not in fresh)]
            if done:
                self._through = max(self._passed(), outcome.through)
                self.ran.well()
                # What ran when this began is not covered by it.
                self._fresh += [
                    each for each in fresh if each > outcome.through and each not in self._fresh
                ]
            else:
                self.ran.badly(outcome.error or outcome.status)
            return outcome

    def _run(self, settings: Settings) -> Extracted:
        self._look_back(settings)
        transcript = self._transcript
        entries = list(transcript.entries)
        if transcript.busy:
            last = max(n for n, each in enumerate(entries) if isinstance(each, Turn))
            entries = entries[:last]
        return extraction.extract(self.context(settings), entries, transcript.offset)

    def _look_back(self, settings: Settings) -> None:
        """Look through what earlier sessions left, once; of their turns alone (behaviour E11)."""
        if not self._generation or self._looked_back:
            return
        self._looked_back = True
        try:
            for folder in looked_through.left_behind(self._project, self._folder):
                if self._cancelled():
                    return
                transcript = Transcript(folder.transcript)
                transcript.follow()
                path = _notebook(folder)
                context = Context(
                    folder=folder,
                    project=self._project,
                    settings=settings,
                    bus=self._bus,
                    held=lambda kernel, folder=folder: _held(folder, kernel),  # type: ignore[misc]
                    notebook=path.name if path is not None else "",
                    cancelled=self._cancelled,
                )
                # A last line that is torn is not read, and not waited for either.
                size = max(transcript.offset, folder.transcript.stat().st_size)
                extraction.extract(context, transcript.entries, size)
        except (IpymemoryError, OSError) as error:
            log.warning("what earlier sessions left was not looked through: %s", error)

    @property
    def rest_seconds(self) -> float:
        """The seconds since something was new."""
        return self._clock() - self._rest_since

    async def alone(self, work: Callable[[], Result]) -> Result:
        """Return what `work` comes to, in a thread; the built-in engine rests meanwhile."""
        async with self._lock:
            return await asyncio.to_thread(work)

    def context(self, settings: Settings) -> Context:
        """Return what a run works with; reads the notebook as it is saved now."""
        path = _notebook(self._folder)
        if self._text is None:
            self._text = NotebookText(path)
        cells = self._text.cells()
        return Context(
            folder=self._folder,
            project=self._project,
            settings=settings,
            bus=self._bus,
            held=self._what_was_held,
            # Of the kernel that this worker serves, also when the next one writes already.
            generation=self._generation or self._transcript.generation or 1,
            notebook=path.name if path is not None else "",
            cells=cells,
            saved=_saved(path),
            cancelled=self._cancelled,
        )

    def _what_was_held(self, kernel: int) -> Held:
        """Return what the notebook held when that kernel began; made once, it takes a while."""
        if kernel not in self._held:
            self._held[kernel] = _held(self._folder, kernel)
        return self._held[kernel]

    def _entries(self) -> list[Entry]:
        """Return the turns and questions that were not looked through."""
        fresh = set(self._fresh)
        if not fresh:
            return []
        newest = reversed(self._transcript.entries)
        found: list[Entry] = []
        for each in newest:
            if each.id in fresh and isinstance(each, Turn | Ask):
                found.append(each)
            if len(found) == len(fresh):
                break
        return found[::-1]

    def _passed(self) -> str:
        if self._through is None:
            try:
                self._through = sessions.read(self._folder).extracted_through
            except IpymemoryError:
                self._through = ""
        return self._through


def _held(folder: SessionFolder, kernel: int) -> Held:
    """Return what the notebook held when that kernel began; nobody knows where none is kept."""
    return Held(looked_through.opened(folder).get(kernel))


def _notebook(folder: SessionFolder) -> Path | None:
    try:
        told = sessions.read(folder).notebook
    except IpymemoryError:
        return None
    return Path(told) if told else None


def _saved(path: Path | None) -> str:
    """Return when the notebook was last saved, ISO 8601 in UTC, or nothing."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat() if path else ""
    except (OSError, ValueError):
        return ""
