"""The assistant: a question of the person's, answered by a model that has read the notebook along.

The fence: tools that read, inside the project and the memory folder; at most `Engine.ask_rounds`
rounds and `Engine.ask_minutes` minutes; no code runs and nothing is written, but memories where
the person asks for that (`memory_tools`). What the model says and which tools it calls is told
piece by piece while it happens (`Hear`), and whatever ends the run, what came until then is the
answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ipymemory import assistant, doing, memory_tools
from ipymemory.agent import Outcome, run_agent
from ipymemory.agent_summary import Aside, aside_of
from ipymemory.config import Settings
from ipymemory.context import Conversation
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.history import Run
from ipymemory.models import Model, Reply, Request, ToolSpec
from ipymemory.permissions import Allow, Deny, Policy
from ipymemory.tools import Tool
from ipymemory.turns import Entry, Happening, Message, ToolCall, Turn

JOB = "ask"

RESET = "ask_reset"
"""The event of a transcript after which the assistant sees only what came since."""

MOST_TEXT = 100_000
"""Characters of an answer that its reply repeats; six bytes each at the worst, as one line."""

Hear = Callable[[Mapping[str, Any]], None]
"""Takes one piece: ``{"text"}`` words as they stream in; ``{"again"}`` all words since the last
call, in place of what was streamed of them; ``{"call", "about"}`` a tool; ``{"refused", "about"}``
a tool that was refused or failed; ``{"noted"}`` what the last tool did, where a person should know
it; ``{"doing"}`` what the assistant is doing, to be shown while it works and not kept."""


@dataclass(frozen=True, slots=True)
class AskContext:
    """What an ask works with; made by the session that owns it."""

    conversation: Conversation
    entries: Sequence[Entry]
    """What is on record, for telling whether the kernel was started anew."""
    model: Model
    tools: Mapping[str, Tool]
    policy: Policy
    run: Run
    bus: Bus
    settings: Settings
    memories: str = ""
    """What was recalled for the question, between marks."""
    specs: tuple[ToolSpec, ...] = ()
    """The tools that the request names, where these are more than it may use."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question, also of one that was stopped or failed."""

    text: str
    """All that the model said, of every round."""
    calls: int
    outcome: Outcome
    messages: tuple[Message, ...]
    """The exchange for the conversation: the question as it was sent, up to the last words."""
    stop: str = ""
    """Why the last reply ended, in the provider's word."""

    def as_dict(self) -> dict[str, Any]:
        """Return what the kernel hears as JSON values; the text up to `MOST_TEXT` characters."""
        return {
            "status": self.outcome.status,
            "text": self.text[:MOST_TEXT],
            "chars": len(self.text),
            "calls": self.calls,
            "rounds": self.outcome.rounds,
            "error": self.outcome.error,
            "stop": self.stop,
            "seconds": round(self.outcome.seconds, 3),
        }


async def ask(
    context: AskContext,
    question: str,
    *,
    last: int | None,
    hear: Hear,
    cancelled: Callable[[], bool],
) -> Answer:
    """Have the model answer `question`; `last` limits the turns it sees to the newest.

    `hear` gets each piece and must not wait. Raises nothing but `asyncio.CancelledError`: what
    goes wrong is in the answer's outcome.
    """
    sent = assistant.question(question, kernel_state(context.entries), context.memories)
    specs = context.specs or tuple(each.spec for each in context.tools.values())
    since = reset(context.entries)
    request = context.conversation.fork(sent, tools=specs, turns=last, since=since)
    heard = _Heard(context.model, request, hear)
    said = _OnLoop(hear)
    engine = context.settings.engine
    listening = context.bus.subscribe(lambda event: _tell_doing(event, context.run, said))
    try:
        outcome = await run_agent(
            heard,
            request,
            {name: _Told(tool, said) for name, tool in context.tools.items()},
            _Asked(context.policy, hear),
            context.run,
            context.bus,
            rounds=engine.ask_rounds,
            seconds=engine.ask_minutes * 60,
            cancelled=cancelled,
        )
    finally:
        listening()
    said.over = True
    messages = (Message("user", sent), *heard.exchange(outcome.status))
    return Answer("\n\n".join(heard.texts), outcome.calls, outcome, messages, heard.stop)


def _tell_doing(event: Event, run: Run, hear: Hear) -> None:
    """Hand on what this ask is doing."""
    if event.kind == doing.KIND and event.run == run.id:
        hear({"doing": event.details["text"]})


def kernel_state(entries: Sequence[Entry]) -> str:
    """Return what the model must know of variables: `RESTARTED`, `PARTLY`, or nothing."""
    kernels = [_kernel(each) for each in entries]
    newest = max(kernels, default=0)
    ran = [each.kernel for each in entries if isinstance(each, Turn)]
    if not any(kernel < newest for kernel in ran):
        return ""
    return assistant.PARTLY if newest in ran else assistant.RESTARTED


def reset(entries: Sequence[Entry]) -> str:
    """Return the id of the newest ``ask-reset``, nothing where there was none."""
    found = (each for each in reversed(entries) if isinstance(each, Happening))
    return next((each.id for each in found if each.name == RESET), "")


def _kernel(entry: Entry) -> int:
    if isinstance(entry, Turn):
        return entry.kernel
    kernel = entry.details.get("kernel") if isinstance(entry, Happening) else None
    return kernel if isinstance(kernel, int) else 0


def about(call: ToolCall) -> str:
    """Return what a call is about, in a few words: a path, a pattern and where, a fact."""
    # What a model sends need not be what its type says.
    given: object = call.input
    if not isinstance(given, Mapping):
        return ""
    if call.name in memory_tools.NAMES:
        return str(given.get("fact") or given.get("name") or "")[:500]
    words = [str(given[each]) for each in ("command", "pattern", "path") if given.get(each)]
    return " in ".join(words)[:500]


@dataclass(slots=True)
class _Heard:
    """The model, and what it has said so far; tells the words on as they come."""

    model: Model
    request: Request
    hear: Hear
    begun: int = 0
    stop: str = ""
    _said: list[str] = field(default_factory=list)
    _round: list[str] = field(default_factory=list)
    _reply: Reply | None = None

    def __post_init__(self) -> None:
        self.begun = len(self.request.messages)

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.model.name

    @property
    def aside(self) -> Aside | None:
        """Whom to ask beside it, with nobody listening."""
        return aside_of(self.model)

    async def complete(self, request: Request) -> Reply:
        """Answer, and keep what was said also when that is cut short."""
        self.request, self._reply, self._said, self._round = request, None, self.texts, []
        reply = await self.model.complete(replace(request, hear=self._word))
        self._reply, self.stop = reply, reply.stop
        if reply.text != "".join(self._round):
            # It was not streamed, or a second try said it otherwise.
            self._round = [reply.text]
            self.hear({"again": reply.text})
        return reply

    @property
    def texts(self) -> list[str]:
        """What was said so far, one text a round that had words."""
        text = "".join(self._round)
        return [*self._said, text] if text else self._said

    def exchange(self, status: str) -> tuple[Message, ...]:
        """Return what came after the question, with the last words as its end."""
        between = self.request.messages[self.begun :]
        reply = self._reply
        if status == "done" and reply is not None and reply.text:
            return (*between, Message("assistant", reply.text, blocks=reply.blocks))
        text = "".join(self._round)
        ended = assistant.ENDED.get(status, assistant.NOTHING_SAID)
        return (*between, Message("assistant", f"{text}\n\n{ended}".strip()))

    def _word(self, text: str) -> None:
        self._round.append(text)
        self.hear({"text": text})


class _OnLoop:
    """Hands pieces to `hear` on the loop that made this; a tool may tell from its own thread."""

    def __init__(self, hear: Hear) -> None:
        self.over = False
        """Set at the end of the ask: a tool that was left behind has nothing more to tell."""
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def __call__(self, piece: Mapping[str, Any]) -> None:
        """Hand on `piece`, in the order in which they come from one thread."""
        if threading.get_ident() == self._thread:
            self._tell(piece)
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._tell, piece)

    def _tell(self, piece: Mapping[str, Any]) -> None:
        if not self.over:
            self._hear(piece)


@dataclass(frozen=True, slots=True)
class _Told:
    """A tool whose failures are told on."""

    tool: Tool
    hear: Hear

    @property
    def spec(self) -> ToolSpec:
        """What an engine sees of the tool."""
        return self.tool.spec

    def run(self, call: ToolCall, run: Run) -> str:
        """Carry the call out, and tell when it fails."""
        try:
            return self.tool.run(call, run)
        except IpymemoryError as error:
            self.hear({"refused": self.spec.name, "about": str(error)[:500]})
            raise


@dataclass(frozen=True, slots=True)
class _Asked:
    """A policy that is asked aloud: each call is told on, and each refusal."""

    policy: Policy
    hear: Hear

    def check(self, call: ToolCall) -> Allow | Deny:
        """Return the policy's answer."""
        # In the model's own words: once it is allowed it names a path in full.
        self.hear({"call": str(call.name)[:100], "about": about(call)})
        verdict = self.policy.check(call)
        if isinstance(verdict, Deny):
            self.hear({"refused": str(call.name)[:100], "about": verdict.message[:500]})
        return verdict
