"""A session's model: which one may work, the conversation it is shown, and what its calls cost.

One for all that a model does in a session. The conversation is the same for a question and for
the notes, so that a provider reads for the one from its cache what the other sent (behaviour S5).
It is compacted before it would be too long, from the session's notes and without a model call
(behaviour S10).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ipymemory import engines, markdown, sessions
from ipymemory.config import Settings
from ipymemory.context import Conversation
from ipymemory.cost import Ledger
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.messages_api.engine import AnthropicModel
from ipymemory.models import Reply, Request, Usage
from ipymemory.places import Project, SessionFolder
from ipymemory.transcript import Transcript


class SessionModel:
    """The model of one session; nothing is read and nobody is called before it is needed."""

    def __init__(
        self,
        folder: SessionFolder,
        project: Project,
        bus: Bus,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.ledger = Ledger(project)
        self._folder = folder
        self._project = project
        self._bus = bus
        self._environment = environment
        self._model = AnthropicModel(Settings().engine, environment, self._spent)
        """One for the session: it keeps its connections, and what it found out of its server."""
        self._conversation: Conversation | None = None

    def chosen(self, settings: Settings) -> engines.Chosen:
        """Return the engine that may work now, and why it is not the one that was asked for."""
        return engines.choose(self._project, settings, self._environment)

    def conversation(self, transcript: Transcript, settings: Settings) -> Conversation:
        """Return the conversation with all that is on record; raises `IpymemoryError`."""
        if self._conversation is None:
            self._conversation = Conversation(self._folder, settings)
        self._conversation.settings = settings
        self._conversation.follow(transcript.steps)
        return self._conversation

    def model(self, job: str, conversation: Conversation, settings: Settings) -> JobModel:
        """Return the model for `job`: its calls are on the bill under that name."""
        self._model.limits = settings.engine
        return JobModel(self._model, job, conversation)

    def compact(self, conversation: Conversation) -> bool:
        """Put the notes in the place of older turns; notes without content count as none.

        Returns whether that helped. Raises `IpymemoryError` when it cannot be kept on record.
        """
        try:
            notes = self._folder.notes.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return False
        if not any(each.body.strip() for each in markdown.sections(notes)):
            return False
        return conversation.compact(notes, sessions.read(self._folder).notes_through)

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._model.close()

    def _spent(self, request: Request, model: str, usage: Usage) -> None:
        job = request.job
        try:
            self.ledger.record(job, self._model.host, model, usage, self._folder.id)
        except IpymemoryError as error:
            self._bus.emit(Event("warning", job, details={"text": str(error)}))


@dataclass(frozen=True, slots=True)
class JobModel:
    """A model at work for one job, whose real usage corrects the conversation's meter."""

    inner: AnthropicModel
    job: str
    conversation: Conversation

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.inner.name

    async def complete(self, request: Request) -> Reply:
        """Answer, and correct the meter by what was counted; raises `EngineError`."""
        reply = await self.inner.complete(replace(request, job=self.job))
        if reply.usage is not None:
            self.conversation.metered(request, reply.usage)
        return reply


def preview(conversation: Conversation, chosen: engines.Chosen) -> dict[str, Any]:
    """Return the parts that would be sent now, with their tokens and where they go."""
    parts = [
        {"name": each.name, "tokens": each.tokens, "text": each.text}
        for each in conversation.parts()
    ]
    return {"host": chosen.host, "tokens": conversation.tokens, "parts": parts}
