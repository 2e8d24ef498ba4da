"""The asks of a session: what each is given beside the conversation, and its answer.

A question brings up the memories that bear on it, each once in a session.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ipymemory import assistant, gitfiles, memory_files, sessions
from ipymemory.config import Settings
from ipymemory.context.rendering import inside
from ipymemory.errors import EngineError, IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.fence import Fence
from ipymemory.finding import reading_tools
from ipymemory.history import History
from ipymemory.jobs import ask as job
from ipymemory.memory_place import memory_place
from ipymemory.memory_tools import Remembering
from ipymemory.places import Project, SessionFolder, real_path
from ipymemory.recall import Recall
from ipymemory.recall.embedding import EmbeddingError
from ipymemory.said import Said
from ipymemory.session_model import TOOLS, SessionModel
from ipymemory.transcript import Transcript
from ipymemory.turns import Ask


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the id under which it is on record, and how many turns it is asked with."""

    text: str
    id: str
    last: int | None = None


class Asks:
    """What a session needs to have questions answered."""

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        bus: Bus,
        history: History,
        model: SessionModel,
    ) -> None:
        self._folder = folder
        self._project = project
        self._bus = bus
        self._history = history
        self._model = model
        self._budget_said = ""
        """The day (UTC) on which it was said that the budget is spent."""
        self._recalled: set[str] = set()
        """Names of the memories that this session's questions were given."""

    async def ask(
        self,
        question: Question,
        transcript: Transcript,
        settings: Settings,
        hear: Callable[[Mapping[str, Any]], None],
        cancelled: Callable[[], bool],
    ) -> dict[str, Any]:
        """Return the answer as `jobs.ask.Answer.as_dict` gives it.

        Raises `EngineError` when there is no model, and `IpymemoryError`.
        """
        chosen = self._model.chosen(settings)
        if chosen.name != "anthropic":
            raise EngineError(f"{chosen.reason}\n\n{assistant.NO_MODEL}".strip())
        conversation = self._model.conversation(transcript, settings)
        model = self._model.model(job.JOB, conversation, settings)
        fence = fence_of(self._project, self._notebook(), settings)
        remembering = self._remembering(question, transcript, settings, hear)
        memories = await self._recalled_for(question.text, settings)
        over = False

        def stopped() -> bool:
            return over or cancelled()

        context = job.AskContext(
            conversation=conversation,
            entries=transcript.entries,
            model=model,
            specs=TOOLS,
            tools={
                **reading_tools(fence, conversation.level, stopped),
                **remembering.tools(),
            },
            policy=remembering.policy(fence),
            run=self._history.begin(job.JOB, model.name, "asked", (question.id,), self._folder.id),
            bus=self._bus,
            settings=settings,
            memories=memories,
        )
        try:
            answer = await job.ask(
                context, question.text, last=question.last, hear=hear, cancelled=cancelled
            )
        finally:
            # A tool that was left behind ends at its next look at this.
            over = True
        self._recalled.update(remembering.names)
        conversation.answered(question.id, answer.messages)
        return answer.as_dict() | {"budget": self._budget(settings)}

    def _remembering(
        self,
        question: Question,
        transcript: Transcript,
        settings: Settings,
        hear: Callable[[Mapping[str, Any]], None],
    ) -> Remembering:
        """Return the tools that keep and forget memories for this question."""
        asked = (each for each in transcript.entries if isinstance(each, Ask))
        before = tuple(each.question for each in asked if each.id != question.id)
        return Remembering(
            opened=lambda: memory_files.opened(self._project, settings),
            said=Said(question.text, before),
            folder=self._folder,
            ask=question.id,
            notebook=self._notebook(),
            tell=lambda text: hear({"noted": text}),
        )

    def _notebook(self) -> str:
        try:
            return sessions.read(self._folder).notebook
        except IpymemoryError:
            return ""

    async def recall(self, question: str, n: int, settings: Settings) -> dict[str, Any]:
        """Return the names and scores of at most `n` memories, and why no model was used.

        For a command in the kernel, which imports no model of meanings. Raises `IpymemoryError`.
        """
        recall = self._recall(settings)
        # Beside the loop: a model and the vectors of ten thousand memories take seconds at first.
        found = await asyncio.to_thread(recall.find, question, n)
        return {
            "found": [[each.memory.name, each.score] for each in found],
            "trouble": recall.trouble,
        }

    def _recall(self, settings: Settings) -> Recall:
        memory = memory_files.opened(self._project, settings)
        return Recall(self._project, memory, settings.memory.embeddings)

    async def _recalled_for(self, question: str, settings: Settings) -> str:
        """Return memories that bear on the question, none that an earlier one was given."""
        try:
            recall = self._recall(settings)
            found = await asyncio.to_thread(
                recall.find, question, settings.memory.recalled, self._recalled.copy()
            )
            if recall.trouble:
                self._warn(EmbeddingError(recall.trouble))
            names = [each.memory.name for each in found]
            if names:
                recall.used(names, self._folder.id)
        except IpymemoryError as error:
            self._warn(error)
            return ""
        self._recalled.update(names)
        now = datetime.now(UTC)
        return "\n".join(
            inside(
                "memory",
                f"{each.memory.title} [{each.memory.kind}], "
                f"{each.memory.age(now)}, from "
                f"{each.memory.source.notebook or 'a file in the memory folder'}\n"
                f"{each.memory.description}\n{each.memory.body.strip()}",
            )
            for each in found
        )

    def _budget(self, settings: Settings) -> str:
        """Return a word on a budget that is spent, once a day; it never keeps a question back."""
        gate, day = self._model.ledger.gate(settings), f"{datetime.now(UTC):%Y-%m-%d}"
        if gate.open or not settings.engine.budget_day or self._budget_said == day:
            return ""
        self._budget_said = day
        return f"Questions go on, but nothing by itself calls a model: {gate.reason}."

    def _warn(self, error: IpymemoryError) -> None:
        self._bus.emit(Event("warning", job.JOB, details={"text": str(error)}))


def fence_of(project: Project, notebook: str, settings: Settings) -> Fence:
    """Return the fence of what works for a notebook: its work tree, and the memories (E6).

    Raises `PlaceError`.
    """
    place = memory_place(project, settings.memory.folder)
    here = None
    with contextlib.suppress(IpymemoryError):  # a notebook that cannot be found has no work tree
        tree = gitfiles.work_tree(real_path(Path(notebook)).parent) if notebook else None
        # A linked work tree has the main one's memory, and files of its own.
        if tree is not None and tree.main == project.root:
            here = tree.top
    return Fence.of(project, place.folder, settings.privacy.closed, here=here)
