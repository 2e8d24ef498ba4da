"""What a session's living documents wait for and how they fared: the one owner of that state."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ipymemory import document_acceptance, document_keeping, sessions
from ipymemory.config import Settings
from ipymemory.document_look import Context, Looked
from ipymemory.document_updates import JOB
from ipymemory.document_writers import Answer, Asked, Write
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.gates import Gate
from ipymemory.history import History
from ipymemory.jobs import documents_by_model, magic_docs
from ipymemory.jobs.documents_by_model import Writer
from ipymemory.places import Project, SessionFolder
from ipymemory.ran import Ran
from ipymemory.session_model import SessionModel
from ipymemory.transcript import Transcript
from ipymemory.turns import Entry, Prose, Turn

log = logging.getLogger(__name__)

MOST_TURNS = 500
"""Turns since the last run that are remembered."""


class Documenting:
    """The state of one session's documents. `clock` counts seconds and never goes back."""

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        bus: Bus,
        transcript: Transcript,
        model: SessionModel,
        cancelled: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._project = project
        self._bus = bus
        self._transcript = transcript
        self._model = model
        # A model's drafts are nothing to undo: what comes of them waits for a person or the page.
        self._drafts = History(folder.drafts, keep=5)
        self._cancelled = cancelled
        self._by_model: dict[str, str] = {}
        self._clock = clock
        self._fresh = False
        self._worked: tuple[str, ...] = ()
        """The turns since the last run."""
        self._told = False
        self._stamp: tuple[int, int] | None = None
        self._saved = False
        self._rest_since = clock()
        self._read: set[Path] = set()
        """Files that the assistant has read since they were last looked at."""
        bus.subscribe(self._hear)
        self._lock = asyncio.Lock()
        self.ran = Ran(clock)

    def look_around(self) -> None:
        """Find the ``.md`` documents of the project (M2), once as a worker begins. Never raises."""
        try:
            document_keeping.look_around(self._project, self._top())
        except (IpymemoryError, OSError) as error:
            log.warning("the project's documents were not looked for: %s", error)

    def observe(self, new: Sequence[str]) -> None:
        """Take in that entries are new or changed. Never raises."""
        if not new:
            return
        ids = set(new)
        newest = self._transcript.entries[-len(ids) - 50 :]
        self._told = self._told or any(
            isinstance(each, Prose) and each.id in ids and magic_docs.may_hold(each.source)
            for each in newest
        )
        ran = [each.id for each in newest if isinstance(each, Turn) and each.id in ids]
        self._worked = tuple(dict.fromkeys((*self._worked, *ran)))[-MOST_TURNS:]
        self._fresh = True
        self._rest_since = self._clock()

    @property
    def running(self) -> bool:
        """Whether a run is in flight."""
        return self._lock.locked()

    def gate(self, settings: Settings) -> Gate:
        """Return whether a run may start now, and why."""
        if (wait := self.ran.wait) and self._fresh:
            return Gate(False, f"the last run failed; the next try is in {wait:.0f} s")
        return magic_docs.gate(
            settings,
            fresh=self._fresh and self._may_hold(),
            rest_seconds=self._clock() - self._rest_since,
            busy=self._transcript.busy,
        )

    def due(self, settings: Settings) -> float | None:
        """Return the seconds until a run may start, None while nothing is waited for."""
        if not settings.magic_docs.enabled or not self._fresh or self._transcript.busy:
            return None
        if not self._may_hold():
            return None
        rest = self._clock() - self._rest_since
        return max(0.0, settings.engine.idle_seconds - rest, self.ran.wait)

    async def run_due(self, settings: Settings) -> Looked | None:
        """Run if the gate lets it; return the outcome, None when nothing ran or it failed."""
        if not self.gate(settings).open:
            return None
        try:
            return await self.update(settings)
        except IpymemoryError as error:
            log.warning("the living documents were not brought up to date: %s", error)
            return None

    async def update(self, settings: Settings, *, force: bool = False) -> Looked:
        """Bring the documents up to date, after a run in flight, beside the loop.

        By a model where one may work and the budget lets it, and only when a cell has run since
        it did, unless `force`. In the modes ``read`` and ``off`` nothing is. Raises
        `IpymemoryError`.
        """
        async with self._lock:
            fresh, self._fresh = self._fresh, False
            worked, self._worked = self._worked, ()
            try:
                await asyncio.to_thread(self._notice)
                mode = self._project.mode(settings.memory.mode)
                if mode in ("read", "off"):
                    return Looked(0, (), (f"No document is written in mode {mode}.",))
                context = Context(
                    self._folder,
                    self._project,
                    settings,
                    self._bus,
                    self._notebook(),
                    mode == "auto",
                    self._model.chosen(settings).name,
                )
                entries = tuple(self._transcript.entries)
                found = await self._write(context, settings, entries, bool(worked), by_hand=force)
                if mode == "auto" and (worked or force):
                    found = await self._with_files(found, settings, worked, force)
            except BaseException as error:
                self._fresh = self._fresh or fresh
                self._worked = tuple(dict.fromkeys((*worked, *self._worked)))[-MOST_TURNS:]
                known = isinstance(error, IpymemoryError)
                self.ran.badly(str(error) if known else repr(error)[:500])
                if isinstance(error, Exception) and not known:
                    log.exception("the living documents could not be written")
                    raise IpymemoryError(f"The documents were not written: {error!r}") from error
                raise
            self.ran.well(found.refused)
            return found

    async def _write(
        self,
        context: Context,
        settings: Settings,
        entries: tuple[Entry, ...],
        worked: bool,
        *,
        by_hand: bool,
    ) -> Looked:
        if self._model.chosen(settings).name != "anthropic":
            return await asyncio.to_thread(magic_docs.update, context, entries)
        ask = by_hand or (worked and self._may_ask(settings, by_hand=False))
        return await documents_by_model.update_by_model(
            context, self._writer(settings), entries, prune=not ask, by_hand=by_hand
        )

    def _writer(self, settings: Settings) -> Writer:
        conversation = self._model.followed(self._transcript, settings)
        return Writer(
            self._model.model(JOB, conversation, settings),
            self._project,
            settings,
            self._bus,
            self._folder.document,
            self._drafts,
            self._folder.id,
            self._cancelled,
            self._by_model,
        )

    async def _with_files(
        self, found: Looked, settings: Settings, turns: tuple[str, ...], force: bool
    ) -> Looked:
        """Bring the project's files up to date (M2); return what came of both.

        Not from the same turns again, where a person took back what came of them (L8).
        """
        if not document_acceptance.known(self._project).files:
            return found
        history = History(self._project.history, settings.memory.history_keep)
        undone = history.undone_turns(JOB, self._folder.id)
        if not force and all(each in undone for each in turns):
            return found
        write = self._write_on(asyncio.get_running_loop(), settings, by_hand=force)
        kept = await asyncio.to_thread(
            document_keeping.update_all,
            self._project,
            self._top(),
            history,
            self._folder.id,
            turns,
            write,
        )
        done = [each for each in kept.done if not each.stale]
        notes = [f'"{each.title}": {note}' for each in done for note in each.notes]
        return replace(
            found,
            documents=found.documents + len(kept.done),
            refused=(*found.refused, *notes, *kept.problems),
            wrote=tuple(each.title for each in done if not each.fresh),
            waiting=(*found.waiting, *(title for _, title in kept.waiting)),
            stale=(*found.stale, *(each.title for each in kept.done if each.stale)),
        )

    def _write_on(
        self, loop: asyncio.AbstractEventLoop, settings: Settings, *, by_hand: bool
    ) -> Write | None:
        """Return how a thread has a file written by a model on `loop`, None where none may work."""
        if not self._may_ask(settings, by_hand=by_hand):
            return None
        writer = self._writer(settings)

        def write(asked: Asked) -> Answer:
            if not asked.stale and not by_hand:
                return Answer(None)
            work = documents_by_model.written(writer, asked)
            return asyncio.run_coroutine_threadsafe(work, loop).result()

        return write

    def _may_ask(self, settings: Settings, *, by_hand: bool) -> bool:
        """Return whether a model may be asked: a budget stops what runs by itself (L9)."""
        if self._model.chosen(settings).name != "anthropic":
            return False
        return by_hand or self._model.ledger.gate(settings).open

    def _hear(self, event: Event) -> None:
        """Take in which ``.md`` files the assistant reads (M2)."""
        if (event.kind, event.job, event.details.get("tool")) == ("call", "ask", "Read"):
            path = Path(str(event.details.get("path", "")))
            if path.suffix.casefold() == ".md" and len(self._read) < MOST_TURNS:
                self._read.add(path)

    def _notice(self) -> None:
        """Remember which of the files that were read are documents. Never raises."""
        read, self._read = self._read, set()
        try:
            document_keeping.notice(self._project, self._top(), read)
        except (IpymemoryError, OSError) as error:
            log.warning("documents that the assistant read were not remembered: %s", error)

    def _top(self) -> Path:
        notebook = self._notebook()
        return document_keeping.top_of(self._project, notebook.parent if notebook else None)

    def _notebook(self) -> Path | None:
        try:
            told = sessions.read(self._folder).notebook
        except IpymemoryError:
            return None
        path = Path(told) if told else None
        return path if path is not None and path.suffix == ".ipynb" else None

    def _may_hold(self) -> bool:
        """Return whether there may be a document; the saved notebook is read when it changed."""
        if self._told or self._read or document_acceptance.known(self._project).files:
            return True
        path = self._notebook()
        with contextlib.suppress(OSError):
            found = path.stat() if path is not None else None
            stamp = (found.st_mtime_ns, found.st_size) if found is not None else None
            if path is not None and stamp != self._stamp:
                self._stamp = stamp
                self._saved = magic_docs.may_hold(path.read_bytes())
        return self._saved
