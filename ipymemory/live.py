"""A session that is being recorded in this process: recorder, worker and settings together.

Loading makes one `LiveSession` a shell. Nothing is on disk until the first turn: then the
session is claimed, the transcript begun, and the worker hears of it. What goes wrong here is
kept for ``%memory status`` and logged beside the transcript; nothing of it reaches a cell.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipymemory import processes, questions, sessions
from ipymemory.client import Client
from ipymemory.config import Settings
from ipymemory.config_watch import ConfigWatch
from ipymemory.errors import CommandError, IpymemoryError, WorkerError
from ipymemory.open_page import OpenPage
from ipymemory.places import Project, SessionFolder
from ipymemory.problems import Problems
from ipymemory.recorder import Recorder
from ipymemory.redaction import Masker
from ipymemory.sessions import Identity
from ipymemory.streaming import Stream
from ipymemory.transcript import TranscriptWriter
from ipymemory.turns import new_id, utc_now

if TYPE_CHECKING:
    from ipymemory.asking import Asked
    from ipymemory.commands.place import ShownPage
    from ipymemory.page_text import PageText

log = logging.getLogger(__name__)

CLOSE_SECONDS = 1.0
"""What closing may take: a kernel that shuts down is killed after 2.5 s."""


class LiveSession:
    """Records `shell` from `open` to `close`; is what commands know as ``Live``."""

    def __init__(
        self,
        shell: Any,
        settings: Settings,
        project: Project,
        identity: Callable[[], Identity],
        watch: ConfigWatch,
    ) -> None:
        self.settings = settings
        self.project = project
        self.watch = watch
        self.folder: SessionFolder | None = None
        self._shell = shell
        self._identity = identity
        self._problems = Problems()
        self._masker = Masker()
        self._writer: TranscriptWriter | None = None
        self._client: Client | None = None
        self._pid = os.getpid()
        self.greeted: Sequence[str] = ()
        """The runs of which the line of loading told, which writes nothing."""
        self._told: set[str] = set()
        self._page = OpenPage(
            self._masker,
            lambda: self.settings.capture.source_bytes,
            lambda: self._notify("text"),
        )
        self.frontend: ShownPage | None = None
        """The page's end here, where there is one."""
        self.on_event: Callable[[Mapping[str, Any]], None] | None = None
        """Told of each event of a job, on a thread of the worker's client."""
        self._recorder = self._new_recorder()

    def open(self) -> None:
        """Begin to record, from the next cell on."""
        self._problems.install()
        self._recorder.install()
        for each in self.settings.objects:
            each.observe(self._on_setting, names=list(each.trait_names(config=True)))

    def close(self) -> None:
        """Stop recording and end the worker, within `CLOSE_SECONDS` or so. Never raises.

        In a child that user code forked it does nothing: all of it belongs to the parent.
        """
        if os.getpid() != self._pid:
            return
        for each in self.settings.objects:
            each.unobserve_all()
        self._quietly("the recorder was not taken out", self._recorder.remove)
        self._quietly("the config files were not let go", self.watch.close)
        self._quietly("the session was not closed", self._end)
        self._problems.remove()

    def at_exit(self) -> None:
        """Close, and own the session no longer: for the end of the kernel, not for unloading.

        A kernel that unloads goes on with its session when it loads again.
        """
        folder = self.folder
        self.close()
        if folder is not None and os.getpid() == self._pid:
            self._quietly("the session was not released", lambda: sessions.release(folder))

    # What commands see.

    @property
    def before(self) -> SessionFolder | None:
        """What this notebook left, as long as nothing is recorded here."""
        if self.folder is not None:
            return None
        return sessions.find(self.project, self._identity(), datetime.now(UTC)).folder

    @property
    def paused(self) -> bool:
        """Whether the user paused the recording."""
        return self._recorder.paused

    @property
    def reason(self) -> str:
        """Why nothing is recorded, or nothing."""
        if not self._recorder.hooked:
            return (
                "Something took the callbacks out of this shell, so no cell is seen any more. "
                "%reload_ext ipymemory puts ours back."
            )
        return self.settings.held or self._recorder.lines.reason

    @property
    def worker(self) -> str:
        """The state of the worker process."""
        return self._client.state if self._client is not None else "not started"

    @property
    def problems(self) -> tuple[str, ...]:
        """What went wrong in this process, the newest last."""
        said = [*self._problems.sentences]
        if self._client is not None:
            warnings = [e["details"]["text"] for e in self._client.events if e["kind"] == "warning"]
            said += dict.fromkeys(warnings)
            if self._client.last_error:
                said.append(f"The worker: {self._client.last_error}.")
        return tuple(said)

    @property
    def page(self) -> PageText:
        """The markdown cells that the page tells of."""
        return self._page.text

    @property
    def notebook(self) -> Path | None:
        """The saved notebook that this shell works for, None where none is known."""
        found = self._identity().notebook
        return found if found is not None and found.suffix == ".ipynb" else None

    def news(self, shown: str = "") -> str:
        """Return a sentence about what was learned and not told yet, or nothing; it is told then.

        What the text `shown` names needs none. Never raises.
        """
        if self.folder is None or not self.folder.untold.exists():
            return ""
        from ipymemory.news import news  # late: there is rarely any

        sentence, runs = news(self.project, self.folder, self._told, shown)
        self._tell(runs)
        return sentence

    def _tell(self, runs: Sequence[str]) -> None:
        """Put on record that somebody was told of `runs`."""
        if runs:
            self._told.update(runs)
            self.happened("told", runs=list(runs))

    def pause(self) -> None:
        """Record nothing from now on."""
        self._recorder.pause()
        self.happened("paused")

    def resume(self) -> None:
        """Record again."""
        self._recorder.resume()
        self.happened("resumed")

    def ask(
        self,
        name: str,
        timeout: float,
        meanwhile: Callable[[], None] | None = None,
        **arguments: Any,
    ) -> Any:
        """Ask the worker, which is started if need be; raises `WorkerError`."""
        if (
            self._client is None
            and sessions.find(self.project, self._identity(), datetime.now(UTC)).continues
        ):
            self._recorder.begin()
        if self._client is None:
            raise WorkerError(
                "Nothing is recorded yet, so there is no worker to ask. Run a cell first."
            )
        # A command that follows a cell at once is about that cell too.
        self._recorder.settle()
        return self._client.ask(name, timeout, meanwhile, **arguments)

    @contextlib.contextmanager
    def asking(self, question: str, last: int | None, cell: Asked) -> Iterator[Stream]:
        """Put `question` on record, masked, and to the worker; give the stream of the answer.

        Whatever ends the block ends the ask, and its end is put on record. Raises
        `IpymemoryError` when nothing can be recorded or the worker cannot be asked.
        """
        writer, client = self._for_asking()
        masked = self._masker.mask_source(self._masker.mask(question))
        begun = {"kernel": self._recorder.lines.generation, **dataclasses.asdict(cell)}
        with questions.asking(masked, last, begun, writer, client, self._question_ended) as stream:
            yield stream

    def _question_ended(self, line: Mapping[str, Any]) -> None:
        self._append(line)
        self._notify("end")

    def aside(self) -> AbstractContextManager[None]:
        """Return a block within which what is shown is ours, and is left out of the record."""
        return self._recorder.aside()

    def _for_asking(self) -> tuple[TranscriptWriter, Client]:
        """Return what an ask needs, the session begun if it is not; raises `IpymemoryError`."""
        if self.paused:
            raise CommandError(
                "Nothing was asked: recording is paused, and a question is part of the record. "
                "Type %memory resume-recording first."
            )
        if self.settings.held:
            raise CommandError(f"Nothing was asked. {self.settings.held}")
        if self._recorder.private:
            raise CommandError(
                "Nothing was asked: this cell is private, and a question goes on record and to "
                "the model. Ask it in a cell of its own."
            )
        writer = self._recorder.begin()
        # The question is most likely about the cell before it.
        self._recorder.settle()
        if self._client is None:
            raise WorkerError("This session has no worker. Load the extension again.")
        return writer, self._client

    @property
    def bound(self) -> frozenset[str]:
        """The names that the person's code has bound in this process."""
        namespace = self._shell.user_ns
        hidden = getattr(self._shell, "user_ns_hidden", {})
        return frozenset(
            name for name in tuple(namespace) if isinstance(name, str) and name not in hidden
        )

    def ran_again(self, turns: Sequence[str]) -> None:
        """Put on record which turns of an earlier kernel were run again in this one."""
        if self._recorder.paused or self.settings.held:
            return
        try:
            self._recorder.begin()
        except IpymemoryError as error:
            log.warning("that cells were run again was not recorded: %s", error)
            return
        kernel = self._recorder.lines.generation
        self.happened("resumed", kernel=kernel, turns=list(turns))

    def happened(self, name: str, **details: Any) -> None:
        """Put an event into the transcript, if one has begun."""
        self._append({**details, "type": "event", "id": new_id(), "time": utc_now(), "name": name})

    def _append(self, line: Mapping[str, Any]) -> None:
        """Append a line that nothing depends on, if the transcript has begun."""
        if self._writer is None:
            return
        try:
            self._writer.append(line)
        except IpymemoryError as error:
            log.warning("a line of type %s was not recorded: %s", line["type"], error)

    def let_go(self) -> None:
        """Close the session's files and end its worker; the next turn begins a new session."""
        paused = self.paused
        self._recorder.remove()
        self._end(drain=False)
        self._recorder = self._new_recorder()
        self._recorder.install()
        if paused:
            self._recorder.pause()

    # What the recorder calls.

    def _new_recorder(self) -> Recorder:
        return Recorder(self._shell, self._begin, self.settings, self._notify, self._masker)

    def _begin(self) -> TranscriptWriter:
        """Claim the session for the first turn; raises what the recorder shows as its reason."""
        identity = self._identity()
        now = datetime.now(UTC)
        claim = sessions.claim(self.project, identity, now, processes.own())
        self.folder = claim.folder
        self._problems.file = claim.folder.path / "kernel.log"
        self._writer = TranscriptWriter(claim.folder, claim.record.id)
        self._recorder.lines.generation = claim.generation
        unseen = self._recorder.unseen
        self._client = Client(claim.folder, self.project, self.settings, unseen=unseen)
        if self.on_event is not None:
            self._client.hear(self.on_event)
        self._tell(self.greeted)
        self.happened("restarted" if claim.continued else "loaded", kernel=claim.generation)
        before = claim.folder if claim.continued else None
        self._page.begun(self._writer, claim.generation, before)
        return self._writer

    def _notify(self, what: str) -> None:
        """Hand on that something was recorded; must not block and does not raise."""
        if self._client is not None:
            self._client.hint()
        if what in ("end", "held"):
            self.watch.nudge()

    def _on_setting(self, change: Any) -> None:
        if self._client is not None:
            self._client.configure(self.settings)

    def _end(self, *, drain: bool = True) -> None:
        self._page.ended()
        client, writer = self._client, self._writer
        self._client = self._writer = self.folder = self._problems.file = None
        if client is not None:
            client.close(CLOSE_SECONDS, drain=drain)
        if writer is not None:
            writer.close()

    def _quietly(self, what: str, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:
            log.exception("%s", what)
