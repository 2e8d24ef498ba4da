"""The loop: an engine proposes tool calls, permission decides, tools act, until it has no more.

A refused or failed call is an answer to the engine, not an exception. Every run is bounded in
rounds and seconds, can be cancelled from outside, and has a conversation of its own: the request
it was started with is never changed (behaviour L4, L11). What it is doing is told beside it
(`agent_summary`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from ipymemory.agent_summary import AgentSummary, aside_of
from ipymemory.errors import EngineError, IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.history import Run
from ipymemory.models import Model, Reply, Request
from ipymemory.permissions import Deny, Policy
from ipymemory.tools import Tool
from ipymemory.turns import Message, ToolCall, ToolResult

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Status = Literal["done", "out_of_rounds", "out_of_time", "cancelled", "failed"]

MOST_CALLS = 64
"""Calls of one answer that are looked at: six for each of the ten sections, and some."""

_POLL_SECONDS = 0.05
"""How often a run that waits for its engine looks whether it was cancelled."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `error` is empty unless it failed; `refusals` the reasons, at most ten."""

    status: Status
    rounds: int = 0
    calls: int = 0
    refused: int = 0
    error: str = ""
    run: str = ""
    wrote: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {
            "status": self.status,
            "rounds": self.rounds,
            "calls": self.calls,
            "refused": self.refused,
            "error": self.error,
            "run": self.run,
            "wrote": list(self.wrote),
            "refusals": list(self.refusals),
            "seconds": round(self.seconds, 3),
        }


class _Stop(Exception):
    """The run ends here, with this status; never leaves this room."""

    def __init__(self, status: Status, error: str = "") -> None:
        super().__init__(status)
        self.status: Status = status
        self.error = error


async def run_agent(
    model: Model,
    request: Request,
    tools: Mapping[str, Tool],
    policy: Policy,
    run: Run,
    bus: Bus,
    *,
    rounds: int,
    seconds: float,
    one_answer: bool = False,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run `model` on `request` and return how it ended; what it wrote stays and can be undone.

    `tools` by name; a request that names tools of its own is sent as it is. With `one_answer` an
    answer that did something and whose calls were all carried out is the last: asking whether
    there is more would cost the whole prompt again. Raises nothing but `asyncio.CancelledError`,
    after the run is closed, when its own task is cancelled.
    """
    end = clock() + seconds
    summary = AgentSummary(aside_of(model), bus, run.job, run.id, clock)
    state = _State(
        model, request, tools, policy, run, bus, end, one_answer, cancelled, clock, summary
    )
    begun = clock()
    bus.emit(Event("started", run.job, run.id, {"engine": model.name, "reason": run.entry.reason}))
    status: Status = "cancelled"
    error = ""
    try:
        summary.start(request)
        await state.loop(rounds)
        status = "done"
    except _Stop as stop:
        status, error = stop.status, stop.error
    except EngineError as failure:
        status, error = "failed", str(failure)
    except Exception as failure:  # the one finisher: no fault of an engine ends the worker
        log.exception("a run of %s failed", run.job)
        status, error = "failed", f"{type(failure).__name__}: {failure}"[:500]
    finally:
        summary.stop()
        run.close()
        outcome = Outcome(
            status,
            state.rounds,
            state.calls,
            len(state.refusals),
            error,
            run.id,
            tuple(str(path) for path in run.written),
            tuple(state.refusals[:10]),
            clock() - begun,
        )
        kind = "failed" if status == "failed" else "finished"
        bus.emit(Event(kind, run.job, run.id, outcome.as_dict()))
    return outcome


@dataclass(slots=True)
class _State:
    """What one run knows; nothing of it is shared with another."""

    model: Model
    request: Request
    tools: Mapping[str, Tool]
    policy: Policy
    run: Run
    bus: Bus
    deadline: float
    one_answer: bool
    cancelled: Callable[[], bool]
    clock: Callable[[], float]
    summary: AgentSummary
    rounds: int = 0
    calls: int = 0
    refusals: list[str] = field(default_factory=list)

    async def loop(self, rounds: int) -> None:
        """Go on until the engine has no more calls; raises `_Stop` for every other end."""
        specs = self.request.tools or tuple(tool.spec for tool in self.tools.values())
        request = replace(self.request, tools=specs)
        while True:
            self.check()
            if self.rounds >= rounds:
                raise _Stop("out_of_rounds")
            self.rounds += 1
            self.summary.sent(request)
            reply = await self.complete(request)
            if not isinstance(reply, Reply):
                raise _Stop("failed", f"The engine {self.model.name} gave no answer at all.")
            if not reply.calls:
                return
            results = await self.answers(reply)
            if self.one_answer and self.all_done(reply, results):
                return
            said = Message("assistant", reply.text, reply.calls, blocks=reply.blocks)
            answers = Message("user", results=results)
            request = replace(request, messages=(*request.messages, said, answers))

    async def answers(self, reply: Reply) -> tuple[ToolResult, ...]:
        """Carry out the calls of one answer, in order; return what the engine is told of each."""
        self.summary.replied(reply)
        results: list[ToolResult] = []
        for number, call in enumerate(reply.calls):
            results.append(await self.answer(call, number))
            self.summary.came(results[-1])
        return tuple(results)

    def all_done(self, reply: Reply, results: Sequence[ToolResult]) -> bool:
        """Return whether every call was carried out, and not only to look at something."""
        tools = [self.tools.get(call.name) for call in reply.calls]
        acts = any(tool is not None and not tool.spec.reads for tool in tools)
        return acts and not any(each.refused for each in results)

    def check(self) -> None:
        """Raise `_Stop` when the run was cancelled or its time is up."""
        if self.cancelled():
            raise _Stop("cancelled")
        if self.clock() >= self.deadline:
            raise _Stop("out_of_time")

    async def complete(self, request: Request) -> Reply:
        """Ask the engine, and stop waiting when the run is cancelled or out of time."""
        return await self.watched(asyncio.ensure_future(self.model.complete(request)))

    async def carry_out(self, tool: Tool, call: ToolCall) -> str:
        """Return what the tool answers; one that only reads has a thread of its own meanwhile.

        One that writes is atomic and takes milliseconds, so that nothing is left half done.
        """
        if not tool.spec.reads:
            return tool.run(call, self.run)
        return await self.watched(
            asyncio.ensure_future(asyncio.to_thread(tool.run, call, self.run))
        )

    async def watched(self, work: asyncio.Future[Result]) -> Result:
        """Return what `work` comes to; stop waiting when the run is cancelled or out of time."""
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=_POLL_SECONDS)
                if not work.done():
                    self.check()
            return work.result()
        finally:
            # Whatever it still says is heard, so that nothing warns of it later.
            work.add_done_callback(lambda task: task.cancelled() or task.exception())
            work.cancel()

    async def answer(self, call: ToolCall, n: int) -> ToolResult:
        """Carry out one call if it may be; return what the engine is told."""
        self.check()
        self.calls += 1
        if n >= MOST_CALLS:
            return self.refuse(call, f"Only {MOST_CALLS} calls in one answer are looked at.")
        verdict = self.policy.check(call)
        if isinstance(verdict, Deny):
            return self.refuse(call, verdict.message)
        tool = self.tools.get(verdict.call.name)
        if tool is None:
            return self.refuse(call, f"There is no such tool; there is {', '.join(self.tools)}.")
        self.summary.called(verdict.call)
        path = str(verdict.call.input.get("path", ""))
        self.bus.emit(
            Event("call", self.run.job, self.run.id, {"tool": tool.spec.name, "path": path})
        )
        before = self.run.writes
        try:
            text = await self.carry_out(tool, verdict.call)
        except IpymemoryError as error:
            return self.refuse(call, str(error))
        if self.run.writes > before:
            self.bus.emit(Event("wrote", self.run.job, self.run.id, {"path": path}))
        return ToolResult(call.id, text)

    def refuse(self, call: ToolCall, reason: str) -> ToolResult:
        """Return the refusal as the engine's answer, and tell of it."""
        self.refusals.append(reason[:500])
        details = {"tool": str(call.name)[:100], "reason": reason[:500]}
        self.bus.emit(Event("refused", self.run.job, self.run.id, details))
        return ToolResult(call.id, reason, refused=True)
