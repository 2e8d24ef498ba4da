"""A dream by a model: what the built-in engine cannot see, as proposed changes to a copy.

It begins where the built-in engine ended, in a conversation of its own without the session's
prefix. It looks around (`dream_reading`) and changes a copy through tools that lose no sentence
and no origin (`dream_tools`). What comes of it is checked as a whole and given back to the dream,
which puts it in place with the rest as one run. If the model fails, the rest alone is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from ipymemory import dream_prompt, dream_reading, dream_tools, prices
from ipymemory.agent import Outcome, run_agent
from ipymemory.agent_summary import Aside
from ipymemory.config import Settings
from ipymemory.dream_copy import Consolidated, Copy, Given
from ipymemory.dream_tools import Consolidating
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.history import History
from ipymemory.models import Model, Reply, Request, Usage
from ipymemory.places import Project, config_folder
from ipymemory.redaction import mask
from ipymemory.turns import Message

log = logging.getLogger(__name__)

JOB = "dream"

ROUNDS = 40
"""Rounds of a run: a look and a change for each of twenty things that are found."""

MOST_TEXT = 2000
"""Characters that are told of one turn."""

_OWN_EVENTS = ("started", "finished", "failed", "call", "refused", "wrote")
"""What an agent tells of itself; a dream tells it in its own way, or not, since it has words."""

_Result = TypeVar("_Result")


class ClosingModel(Model, Protocol):
    """A model of one event loop, with connections to close."""

    async def close(self) -> None:
        """Close them."""


@dataclass(frozen=True, slots=True)
class ByModel:
    """What the model's part works with; called on a thread that may wait (`Consolidate`)."""

    model: ClosingModel
    """Made for this dream: it lives on the dream's own loop."""
    project: Project
    settings: Settings
    aside: Aside | None = None
    """Whom its agent asks what it is doing."""

    def __call__(self, given: Given) -> Consolidated:
        """Return what is to be done, the built-in engine's part included. Never raises."""
        try:
            return _on_a_loop(self._consolidated(given))
        except IpymemoryError as error:
            return Consolidated(given.found.groups, error=str(error))
        except Exception as error:  # a model's part that fails must not take the rest along
            log.exception("the model's part of a dream failed")
            return Consolidated(given.found.groups, error=repr(error)[:500])

    async def _consolidated(self, given: Given) -> Consolidated:
        copy = Copy(given.folder, given.found.groups, given.place / f"copy-{given.id}")
        try:
            work = Consolidating(copy)
            outcome = await self._run(given, copy, work)
            if outcome.status in ("failed", "out_of_time", "cancelled"):
                # What it began may be half of what it meant.
                why = outcome.error or _WHY[outcome.status]
                return Consolidated(given.found.groups, error=why)
            relinked = work.settle()
            groups = copy.groups()
            if why := fault(copy, work):
                return Consolidated(given.found.groups, error=why)
        finally:
            copy.close()
            await self.model.close()
        counts = {
            "merged": work.merged,
            "rewritten": work.rewritten,
            "removed": len(work.removed),
            "relinked": relinked,
        }
        return Consolidated(groups, counts, tuple(work.asked.items()))

    async def _run(self, given: Given, copy: Copy, work: Consolidating) -> Outcome:
        bus = Bus()
        bus.subscribe(lambda event: _pass_on(event, given))
        settings = self.settings.privacy
        around = dream_reading.fence(self.project, copy.place, tuple(settings.files))
        level = dream_reading.level_of(str(settings.sent_outputs), str(settings.outputs))
        transcripts = dream_reading.Transcripts(self.project, given.over)
        looks = dream_reading.tools(transcripts, around, level, given.over)
        text = dream_prompt.prompt(
            config_folder(self.project.home),
            copy,
            given.found.doubts,
            self.project.root,
            lambda said: bus.emit(Event("warning", JOB, details={"text": said})),
        )
        every = {**looks, **work.tools()}
        run = History(given.place / "drafts").begin(JOB, self.model.name, "a dream", (), "")
        return await run_agent(
            _Told(self.model, given, transcripts, self.aside),
            Request(
                dream_prompt.SYSTEM,
                (Message("user", text),),
                tuple(each.spec for each in every.values()),
                job=JOB,
            ),
            every,
            dream_reading.DreamFence(around, dream_tools.NAMES),
            run,
            bus,
            rounds=ROUNDS,
            seconds=given.seconds,
            cancelled=given.over,
        )


_WHY = {
    "out_of_time": "The model took longer than Dream.minutes allows.",
    "cancelled": "The dream was ended while the model worked.",
}


def fault(copy: Copy, work: Consolidating) -> str:
    """Return what is wrong with the outcome as a whole, as a sentence, or nothing.

    Every call was looked at by itself; this counts what they come to together.
    """
    for each in copy.files.values():
        if each.after is None or each.after == each.before:
            continue
        memory = copy.memory(each)
        was = copy.original(each)
        if memory.problem or memory.kind != was.kind or not memory.current:
            return f"The model's changes would leave {each.name} broken, so none was made."
        lost = set(was.source.also) - set(memory.source.also)
        if lost or memory.source.alone != was.source.alone:
            return f"The model's changes would lose where {each.name} came from; none was made."
    if sum(1 for _ in copy.there()) + work.merged + len(work.removed) < copy.stood:
        return "The model's changes would lose memories that nothing stands for; none was made."
    return ""


@dataclass(slots=True)
class _Told:
    """The model, whose turns are told as they come, and counted."""

    inner: Model
    given: Given
    transcripts: dream_reading.Transcripts
    aside: Aside | None = None
    turns: int = 0
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    money: float | None = 0.0

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.inner.name

    async def complete(self, request: Request) -> Reply:
        """Answer, and tell of it; raises `EngineError`."""
        reply = await self.inner.complete(replace(request, job=JOB))
        self.turns += 1
        self.calls += len(reply.calls)
        if reply.usage is not None:
            self.usage += reply.usage
            cost = prices.cost(reply.model, reply.usage)
            self.money = None if cost is None or self.money is None else self.money + cost
        words = {
            "turn": self.turns,
            "calls": len(reply.calls),
            "text": mask(reply.text)[:MOST_TEXT],
        }
        self.given.say("dream_turn", words)
        spent = self.usage.prompt + self.usage.output
        reviewed = len(self.transcripts.looked_through & self.given.sessions)
        counts = {"turns": self.turns, "calls": self.calls, "tokens": spent, "usd": self.money}
        counts["reviewed"] = reviewed
        self.given.tell(counts)
        return reply


def _pass_on(event: Event, given: Given) -> None:
    if event.kind not in _OWN_EVENTS:
        given.say(event.kind, dict(event.details))


def _on_a_loop(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Return what `work` comes to, on a loop of its own that waits for no thread at its end.

    `asyncio.run` would: a library that is being imported takes longer than a kill may.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(loop)
        for each in left:
            each.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
