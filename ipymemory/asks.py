"""The asks of a session: its conversation, the model that answers, and what that costs.

Made with the first question. The conversation is compacted before a question that it would be too
long for, from the session's notes and without a model call (behaviour S10).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ipymemory import assistant, engines, markdown, memory_files, sessions
from ipymemory.config import Settings
from ipymemory.context import Conversation
from ipymemory.context.rendering import inside
from ipymemory.cost import Ledger
from ipymemory.errors import EngineError, IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.history import History
from ipymemory.jobs import ask as job
from ipymemory.messages_api.engine import AnthropicModel
from ipymemory.models import Model, Reply, Request, Usage
from ipymemory.permissions import NoTools
from ipymemory.places import Project, SessionFolder
from ipymemory.recall import Recall
from ipymemory.transcript import Transcript


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
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._folder = folder
        self._project = project
        self._bus = bus
        self._history = history
        self._environment = environment
        self._model = AnthropicModel(Settings().engine, environment, self._spent)
        """One for the session: it keeps its connections, and what it found out of its server."""
        self._conversation: Conversation | None = None
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
        chosen = engines.choose(self._project, settings, self._environment)
        if chosen.name != "anthropic":
            raise EngineError(f"{chosen.reason}\n\n{assistant.NO_MODEL}".strip())
        conversation = self._followed(transcript, settings)
        if conversation.tokens > conversation.limit:
            self._compact(conversation)
        self._model.limits = settings.engine
        context = job.AskContext(
            conversation=conversation,
            entries=transcript.entries,
            model=_Metered(self._model, conversation),
            tools={},
            policy=NoTools(),
            run=self._history.begin(
                job.JOB, self._model.name, "asked", (question.id,), self._folder.id
            ),
            bus=self._bus,
            settings=settings,
            memories=self._recalled_for(question.text, settings),
        )
        answer = await job.ask(
            context, question.text, last=question.last, hear=hear, cancelled=cancelled
        )
        conversation.answered(question.id, answer.messages)
        return answer.as_dict()

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._model.close()

    def preview(self, transcript: Transcript, settings: Settings) -> dict[str, Any]:
        """Return the parts that a question would send now, with their tokens and where they go."""
        conversation = self._followed(transcript, settings)
        chosen = engines.choose(self._project, settings, self._environment)
        parts = [
            {"name": each.name, "tokens": each.tokens, "text": each.text}
            for each in conversation.parts()
        ]
        return {"host": chosen.host, "tokens": conversation.tokens, "parts": parts}

    def compact(self, transcript: Transcript, settings: Settings) -> dict[str, Any]:
        """Compact now; return tokens before and after, and whether anything was left out."""
        conversation = self._followed(transcript, settings)
        before = conversation.tokens
        done = self._compact(conversation)
        return {"before": before, "after": conversation.tokens, "done": done}

    def _recalled_for(self, question: str, settings: Settings) -> str:
        """Return memories that bear on the question, none that an earlier one was given."""
        try:
            memory = memory_files.opened(self._project, settings)
            recall = Recall(self._project, memory)
            found = recall.find(question, settings.memory.recalled, self._recalled)
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

    def _followed(self, transcript: Transcript, settings: Settings) -> Conversation:
        if self._conversation is None:
            self._conversation = Conversation(self._folder, settings)
        self._conversation.settings = settings
        self._conversation.follow(transcript.steps)
        return self._conversation

    def _compact(self, conversation: Conversation) -> bool:
        """Put the notes in the place of older turns; notes without content count as none."""
        try:
            notes = self._folder.notes.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return False
        if not any(each.body.strip() for each in markdown.sections(notes)):
            return False
        return conversation.compact(notes, sessions.read(self._folder).notes_through)

    def _spent(self, model: str, usage: Usage) -> None:
        try:
            Ledger(self._project).record(job.JOB, self._model.host, model, usage, self._folder.id)
        except IpymemoryError as error:
            self._warn(error)

    def _warn(self, error: IpymemoryError) -> None:
        self._bus.emit(Event("warning", job.JOB, details={"text": str(error)}))


@dataclass(frozen=True, slots=True)
class _Metered:
    """A model whose real usage corrects the conversation's meter."""

    model: Model
    conversation: Conversation

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.model.name

    async def complete(self, request: Request) -> Reply:
        """Answer, and correct the meter by what was counted."""
        reply = await self.model.complete(request)
        if reply.usage is not None:
            self.conversation.metered(request, reply.usage)
        return reply
