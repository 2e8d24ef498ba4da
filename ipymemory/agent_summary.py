"""What an agent says it is doing, asked of itself beside its work (behaviour A1, A2).

Every half minute, counted from the end of the last time, a fork of the agent's own messages asks
for three to five words. It repeats system prompt, tools, messages and every setting of the agent's
request, so that a provider reads all of it from its cache; only one user message is new. Tools are
named as ever, and a call is passed over. Whatever the model answers is looked at before it is shown
(`doing.said`). Between two answers, and where no model works, the line comes from the last call.

All of it happens in a task beside the agent's loop: nothing here is waited for, nothing raises, and
the end of the agent ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from ipymemory import doing
from ipymemory.doing import Line
from ipymemory.errors import EngineError
from ipymemory.events import Bus, Event
from ipymemory.models import Model, Reply, Request
from ipymemory.turns import Message, ToolCall, ToolResult

log = logging.getLogger(__name__)

JOB = "agent_summary"
"""The name on the bill."""

LEAST_MESSAGES = 3
"""Messages of the agent's own before anything is asked: its task, an answer, what came of it."""

MOST_SECONDS = 30.0
"""What one answer may take (behaviour L11)."""

HELD_SECONDS = 5.0
"""How long a model's line stands before a tool call's may take its place: it wants to be read."""

_FIRST_SECONDS = 1.0
"""What an agent takes before there is a line at all; the built-in engine is done by then."""

_LOOK_SECONDS = 0.2
"""How often the task looks around, in real seconds, also where a test holds the clock."""

_MOST_CHARS = 4 * doing.LONGEST
"""Characters of an answer after which it can be no line, and is broken off."""

PROMPT = """\
(This comes from the program that shows your work, not from the person. Do not go on with the work \
in this answer and call no tool: each call is refused.)

In 3 to 5 words, say what you are doing right now, for the person who waits. Begin with a present \
participle and name the file or function, as in: Reading parse() in loader.py. Only these words, \
on one line, without a full stop, quotes or markup.{previous}"""

PREVIOUS = (
    ' The line that stands there now is "{line}": say something new, about what you did since.'
)


@dataclass(frozen=True, slots=True)
class Aside:
    """Whom an agent's forks are sent to.

    `model` has them on the bill under `JOB` and tells nobody else; `seconds` lie between two, 0
    for none; `allowed` says whether one may be sent now, as far as money goes.
    """

    model: Model
    seconds: float
    allowed: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Billed:
    """A model whose calls are on the bill under `JOB`."""

    inner: Model

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.inner.name

    async def complete(self, request: Request) -> Reply:
        """Answer one request; raises `EngineError`."""
        return await self.inner.complete(replace(request, job=JOB))


@runtime_checkable
class HasAside(Protocol):
    """A model that can also be asked beside an agent's work."""

    @property
    def aside(self) -> Aside | None:
        """Whom to ask; None for nobody."""


def aside_of(model: object) -> Aside | None:
    """Return whom `model` can be asked beside its work; None for nobody."""
    return model.aside if isinstance(model, HasAside) else None


@dataclass(slots=True)
class AgentSummary:
    """The line of one run. The agent says how far it is; `start` and `stop` are its begin and end.

    `clock` counts seconds and never goes back.
    """

    aside: Aside | None
    bus: Bus
    job: str
    run: str
    clock: Callable[[], float]
    own: int = 0
    """How many messages there were before the agent's own."""
    request: Request | None = None
    reply: Reply | None = None
    results: list[ToolResult] = field(default_factory=list)
    call: ToolCall | None = None
    """The last one that was allowed and is not told yet."""
    line: str = ""
    kept: str = ""
    """What of it may be saved with a notebook."""
    said: str = ""
    """The last line in the model's own words."""
    _quiet_until: float = 0.0
    _next: float = 0.0
    _over: bool = False
    _task: asyncio.Task[None] | None = None
    _asking: asyncio.Task[None] | None = None

    # What the agent says.

    def start(self, request: Request) -> None:
        """Begin, in a task of the running loop; `request` is what the agent was started with."""
        now = self.clock()
        self.own = max(0, len(request.messages) - 1)
        self._quiet_until = now + _FIRST_SECONDS
        self._next = now + (self.aside.seconds if self.aside is not None else 0.0)
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """End, at once and without waiting: nothing is told any more."""
        self._over = True
        for each in (self._task, self._asking):
            if each is not None:
                each.cancel()

    def sent(self, request: Request) -> None:
        """Take what is sent to the model now."""
        self.request, self.reply, self.results = request, None, []

    def replied(self, reply: Reply) -> None:
        """Take what the model answered; its calls are carried out from now on."""
        self.reply = reply

    def called(self, call: ToolCall) -> None:
        """Take a call that is carried out now."""
        self.call = call

    def came(self, result: ToolResult) -> None:
        """Take what came of a call."""
        self.results.append(result)

    # Beside it.

    async def _watch(self) -> None:
        while not self._over:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                self._look(self.clock())
            except Exception:  # a line is never worth the agent's work
                log.exception("what an agent does could not be told")
                return

    def _look(self, now: float) -> None:
        if self.call is not None and now >= self._quiet_until:
            call, self.call = self.call, None
            self._tell(doing.of_call(call, self.job), "code")
        aside = self.aside
        if aside is None or not aside.seconds or self._asking is not None or now < self._next:
            return
        prompt = PROMPT.format(previous=PREVIOUS.format(line=self.said) if self.said else "")
        fork = self.fork(prompt)
        if fork is None:
            return
        if not aside.allowed():
            self._next = now + aside.seconds
            return
        work = self._ask(aside, fork, prompt)
        self._asking = asyncio.get_running_loop().create_task(work)

    def fork(self, prompt: str) -> Request | None:
        """Return the agent's messages with `prompt` behind them; None while there are too few.

        Calls whose result has not come are left out. The agent's last message is marked as it was
        when the agent sent it, so that all before the prompt is read from the cache.
        """
        request = self.request
        if request is None:
            return None
        messages = (*request.messages, *self._since())
        if len(messages) - self.own < LEAST_MESSAGES:
            return None
        marks = request.breakpoints
        if not request.once:
            marks = (*marks, len(request.messages) - 1)
        return replace(
            request,
            messages=(*messages, Message("user", prompt)),
            breakpoints=marks,
            once=True,
            hear=None,
        )

    def _since(self) -> tuple[Message, ...]:
        """Return the answer that is being carried out, as far as results have come."""
        reply, results = self.reply, tuple(self.results)
        if reply is None:
            return ()
        there = {each.id for each in results}
        calls = tuple(each for each in reply.calls if each.id in there)
        if not calls and not reply.text.strip():
            return ()
        whole = len(calls) == len(reply.calls)
        blocks = reply.blocks if whole else tuple(b for b in reply.blocks if _stays(b, there))
        answer = Message("assistant", reply.text, calls, blocks=blocks)
        return (answer, Message("user", results=results)) if results else (answer,)

    async def _ask(self, aside: Aside, fork: Request, prompt: str) -> None:
        try:
            answer = await self._answer(aside, fork)
            before = (self.said, self.line)
            if line := doing.said(answer, f"{prompt}\n{fork.system}", before):
                self.said = line
                # These words are not to be saved: what may be stays what it was.
                self._tell(Line(line, self.kept), "model")
                self._quiet_until = self.clock() + HELD_SECONDS
        except EngineError as error:
            log.info("an agent was asked what it does, without an answer: %s", error)
        except Exception:  # a line is never worth the agent's work
            log.exception("an agent could not be asked what it does")
        finally:
            self._asking = None
            self._next = self.clock() + aside.seconds

    async def _answer(self, aside: Aside, fork: Request) -> str:
        """Return the words of an answer, nothing of one that is too long or takes too long."""
        heard = 0

        def hear(text: str) -> None:
            nonlocal heard
            heard += len(text)
            if heard > _MOST_CHARS:
                call.cancel()

        until = self.clock() + MOST_SECONDS
        call = asyncio.ensure_future(aside.model.complete(replace(fork, hear=hear)))
        try:
            while not call.done():
                await asyncio.wait({call}, timeout=_LOOK_SECONDS)
                if self.clock() >= until:
                    return ""
            with contextlib.suppress(asyncio.CancelledError):
                return call.result().text
            return ""
        finally:
            # Whatever it still says is heard, so that nothing warns of it later.
            call.add_done_callback(lambda task: task.cancelled() or task.exception())
            call.cancel()

    def _tell(self, line: Line, by: str) -> None:
        if self._over or line.text == self.line:
            return
        self.line, self.kept = line.text, line.kept
        details = {"text": line.text, "kept": line.kept, "by": by}
        self.bus.emit(Event(doing.KIND, self.job, self.run, details))


def _stays(block: Mapping[str, Any], there: set[str]) -> bool:
    """Return whether a block stays where a call is left out: what was thought for it does not."""
    kind = str(block.get("type", ""))
    return "thinking" not in kind and (kind != "tool_use" or block.get("id") in there)
