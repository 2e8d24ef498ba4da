"""A session's model: which one may work, the conversation it is shown, and what its calls cost.

One for all that a model does in a session. The conversation is the same for a question and for
the notes, so that a provider reads for the one from its cache what the other sent (behaviour S5).
It is compacted before it would be too long, from the session's notes and without a model call
(behaviour S10).
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ipymemory import engines, finding, markdown, memory_files, notes_base, prompts, sessions
from ipymemory.agent_summary import Aside, Billed
from ipymemory.config import Settings
from ipymemory.context import Conversation, Part
from ipymemory.context.compaction import size_of_tools
from ipymemory.context.memory_index import Index
from ipymemory.cost import Ledger
from ipymemory.errors import EngineError, IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.memory_tools import SPECS as MEMORY_TOOLS
from ipymemory.messages_api.engine import AnthropicModel
from ipymemory.models import Reply, Request, Usage
from ipymemory.places import Project, SessionFolder
from ipymemory.tools import EditTool
from ipymemory.transcript import Transcript

SUMMARY = "summary"
"""The job of summing up what there are no notes of, for the bill."""

MOST_FAILURES = 3
"""Compactions that fail in a row before no more are tried (behaviour S10)."""

TOOLS = (*finding.SPECS, EditTool().spec, *MEMORY_TOOLS)
"""What every request of a session names, in one order: a provider's cache goes by it. What of it
may be used, each job's fence says."""

Settled = Callable[[], Awaitable[None]]
"""Waits until no update of the notes is in flight, within bounds."""


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
        self._failures = 0

    def chosen(self, settings: Settings) -> engines.Chosen:
        """Return the engine that may work now, and why it is not the one that was asked for."""
        return engines.choose(self._project, settings, self._environment)

    def prepare(self) -> None:
        """Get the SDK ready, so that the first question does not wait for it; returns at once."""
        self._model.prepare()

    def conversation(self, transcript: Transcript, settings: Settings) -> Conversation:
        """Return the conversation as it is to be sent: all on record, and what memories there are.

        Raises `IpymemoryError`.
        """
        conversation = self.followed(transcript, settings)
        conversation.remember(self._index(settings))
        return conversation

    def followed(self, transcript: Transcript, settings: Settings) -> Conversation:
        """Return the conversation with all that is on record; raises `IpymemoryError`.

        For a look at how large it is: memories are looked for only when something is sent.
        """
        if self._conversation is None:
            self._conversation = Conversation(self._folder, settings)
        self._conversation.settings = settings
        self._conversation.follow(transcript.steps)
        return self._conversation

    def model(self, job: str, conversation: Conversation, settings: Settings) -> JobModel:
        """Return the model for `job`: its calls are on the bill under that name."""
        self._model.limits = settings.engine
        seconds = float(settings.engine.summary_seconds)
        aside = Aside(Billed(self._model), seconds, lambda: self.ledger.gate(settings).open)
        return JobModel(self._model, job, conversation, aside)

    async def make_room(
        self, conversation: Conversation, settings: Settings, settled: Settled
    ) -> None:
        """Compact a conversation that is past its limit. Never raises but for cancellation.

        After `MOST_FAILURES` in a row it is not tried again, and that is said.
        """
        if conversation.tokens <= conversation.limit or self._failures >= MOST_FAILURES:
            return
        try:
            await self.compact(conversation, settings, settled)
        except IpymemoryError as error:
            self._failures += 1
            self._warn(f"The conversation could not be compacted: {error}")
        else:
            self._failures += 1 if conversation.tokens > conversation.limit else -self._failures
        if self._failures >= MOST_FAILURES:
            self._warn(
                f"Compacting the conversation failed {MOST_FAILURES} times in a row and is not "
                "tried again by itself. %memory compact tries it, %memory ask-reset begins anew."
            )

    async def compact(
        self, conversation: Conversation, settings: Settings, settled: Settled
    ) -> bool:
        """Put the notes in the place of older turns; return whether that helped.

        Where there are no notes, or what must be kept is still too much, and a model may work, it
        is asked for a summary. `settled` waits for an update of the notes in flight. Raises
        `IpymemoryError`.
        """
        await settled()
        helped = self._from_notes(conversation)
        if helped and conversation.tokens <= conversation.limit:
            return True
        pieces = conversation.to_sum_up()
        too_long = conversation.tokens > conversation.limit
        if not pieces or (helped and not too_long):
            return helped
        if self.chosen(settings).name != "anthropic":
            return helped
        model = self.model(SUMMARY, conversation, settings)
        reply = await model.complete(conversation.fork(prompts.SUMMARY_PROMPT, tools=TOOLS))
        if not reply.text.strip():
            raise EngineError("The model was asked for a summary and answered without a word.")
        conversation.sum_up(pieces, reply.text, self._index_text(settings))
        self._failures = 0
        return True

    def _from_notes(self, conversation: Conversation) -> bool:
        """Compact without a model call; notes without content count as none."""
        try:
            notes = self._folder.notes.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return False
        if not any(each.body.strip() for each in markdown.sections(notes)):
            return False
        by_model = notes_base.read(self._folder).by_model
        # Of what a model has not covered yet, its notes hold hardly more than that it ran.
        through = (
            sessions.read(self._folder).notes_through if by_model is None else by_model.through
        )
        return conversation.compact(notes, through, self._index_text(conversation.settings))

    def _index(self, settings: Settings) -> Index | None:
        """Return the index of the project's memories, None where it cannot or may not be read."""
        try:
            memory = memory_files.opened(self._project, settings)
            if memory.mode == "off":
                return None
            files = frozenset(each.file for each in memory.scan() if each.current)
            return Index(memory.index(), files)
        except IpymemoryError as error:
            self._warn(str(error))
            return None

    def _index_text(self, settings: Settings) -> str:
        index = self._index(settings)
        return index.text if index is not None else ""

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._model.close()

    def _spent(self, request: Request, model: str, usage: Usage) -> None:
        try:
            self.ledger.record(request.job, self._model.host, model, usage, self._folder.id)
        except IpymemoryError as error:
            self._warn(str(error))

    def _warn(self, text: str) -> None:
        self._bus.emit(Event("warning", SUMMARY, details={"text": text}))


@dataclass(frozen=True, slots=True)
class JobModel:
    """A model at work for one job, whose real usage corrects the conversation's meter."""

    inner: AnthropicModel
    job: str
    conversation: Conversation
    aside: Aside | None = None
    """Whom an agent of this job asks what it is doing."""

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
    named = "\n\n".join(f"{each.name}: {each.description}" for each in TOOLS)
    size = size_of_tools(TOOLS)
    parts = [
        {"name": each.name, "tokens": each.tokens, "text": each.text}
        for each in (Part("tools", size, named), *conversation.parts())
    ]
    return {"host": chosen.host, "tokens": conversation.tokens + size, "parts": parts}
