"""The model that writes closed documents, by hand on the command line: one for each project.

Which engine may work is the choice of the project that a file lies in, and the consent that was
given there; naming ``anthropic`` for this once agrees to nothing new. All models live on one loop
of their own, which runs only while one of them works.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ipymemory import doing, engines, prices
from ipymemory.config import Settings
from ipymemory.cost import Ledger, Spent
from ipymemory.document_updates import JOB
from ipymemory.document_writers import Answer, Asked, Write
from ipymemory.errors import EngineError, IpymemoryError, PlaceError
from ipymemory.events import Bus, Event
from ipymemory.files import make_folder
from ipymemory.history import History
from ipymemory.jobs.documents_by_model import Writer, written
from ipymemory.messages_api.engine import AnthropicModel
from ipymemory.models import Request, Usage
from ipymemory.places import Project

MOST_FAILURES = 3
"""Documents in a row that a model may fail in before it is not asked any more."""


@dataclass(slots=True)
class ClosedDocuments:
    """Who writes the documents of closed files; close it in any case."""

    settings: Settings
    wanted: str = ""
    """The engine that was named for this once."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    prefix: str = "ipymemory "
    does: Callable[[str], None] = lambda line: None
    """Told what the model is doing, as a line, whenever that changes."""
    spent: Spent = field(default_factory=Spent)
    """What the calls so far came to."""
    said: list[str] = field(default_factory=list)
    """What there is to tell beside the documents: warnings, a sentence each."""
    _failed: int = 0
    """Documents in a row that came to nothing."""
    _loop: asyncio.AbstractEventLoop | None = None
    _writers: dict[str, Writer] = field(default_factory=dict)
    _models: list[AnthropicModel] = field(default_factory=list)
    _folders: list[Path] = field(default_factory=list)

    def writer(self, project: Project) -> Write | None:
        """Return who writes in `project`, None for the built-in engine.

        Raises `EngineError` where a model was named and may not work there.
        """
        if self.wanted == "extractive":
            return None
        chosen = engines.choose(project, self.settings, self.environment, self.wanted)
        if chosen.name != "anthropic":
            if self.wanted:
                raise EngineError(self._why(chosen.reason))
            if chosen.reason:
                self._say(self._why(chosen.reason))
            return None
        writer = self._writers.get(project.key)
        if writer is None:
            writer = self._writers[project.key] = self._made(project)
        return self._writing(writer)

    def close(self) -> None:
        """Close connections, and remove what models worked on. Never raises."""
        loop, self._loop = self._loop, None
        if loop is not None:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            for each in self._models:
                loop.run_until_complete(each.close())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)

    def _writing(self, writer: Writer) -> Callable[[Asked], Answer]:
        def write(asked: Asked) -> Answer:
            if self._failed >= MOST_FAILURES:
                note = f"the model was not asked: it failed in {MOST_FAILURES} documents in a row"
                return Answer(None, (note,))
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
            answer = self._loop.run_until_complete(written(writer, asked))
            if answer.tried:
                self._failed = 0 if answer.text is not None else self._failed + 1
            return answer

        return write

    def _made(self, project: Project) -> Writer:
        ledger, bus = Ledger(project), Bus()
        bus.subscribe(self._heard)

        def spent(request: Request, name: str, usage: Usage) -> None:
            self.spent = self.spent.plus(usage, prices.cost(name, usage))
            try:
                ledger.record(request.job or JOB, model.host, name, usage)
            except IpymemoryError as error:
                self._say(f"What the model cost could not be noted: {error}")

        model = AnthropicModel(self.settings.engine, self.environment, spent)
        self._models.append(model)
        try:
            make_folder(project.folder)
            folder = Path(tempfile.mkdtemp(prefix="document-", dir=project.folder))
        except OSError as error:
            raise PlaceError(f"{project.folder} cannot be written: {error}") from error
        self._folders.append(folder)
        draft, history = folder / "document.md", History(folder / "drafts", 5)
        return Writer(model, project, self.settings, bus, draft, history)

    def _heard(self, event: Event) -> None:
        if event.kind == "warning":
            self._say(str(event.details.get("text", "")))
        elif event.kind == doing.KIND:
            self.does(str(event.details.get("text", "")))

    def _say(self, text: str) -> None:
        if text and text not in self.said:
            self.said.append(text)

    def _why(self, reason: str) -> str:
        return reason.replace("%memory ", self.prefix)
