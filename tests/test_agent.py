"""The loop, with a scripted engine and the real permissions, tools and disk."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ipymemory.agent import MOST_CALLS, Outcome, run_agent
from ipymemory.errors import EngineError
from ipymemory.events import Bus, Event
from ipymemory.history import History, Run
from ipymemory.models import Reply, Request
from ipymemory.permissions import OnlyFile
from ipymemory.prompts import NOTES_TEMPLATE
from ipymemory.tools import EditTool, notes_guard
from ipymemory.turns import Message, ToolCall

Step = Reply | Exception | Callable[[Request], Any]


@dataclass
class Scripted:
    """An engine that says what it was told to, one step a round, then nothing more."""

    steps: list[Step]
    name: str = "scripted"
    asked: list[Request] = field(default_factory=list)

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        step = self.steps.pop(0) if self.steps else Reply("that is all")
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, Reply) else step(request)


@dataclass
class Room:
    """A file to edit and everything around it."""

    path: Path
    run: Run
    events: list[Event] = field(default_factory=list)
    clock: Callable[[], float] | None = None
    cancelled: Callable[[], bool] = lambda: False
    one_answer: bool = False

    def go(self, *steps: Step, rounds: int = 10, seconds: float = 30.0) -> Outcome:
        self.model = Scripted(list(steps))
        return asyncio.run(self.start(self.model, rounds, seconds))

    async def start(self, model: Any, rounds: int, seconds: float) -> Outcome:
        bus = Bus()
        bus.subscribe(self.events.append)
        more = {} if self.clock is None else {"clock": self.clock}
        return await run_agent(
            model,
            Request("", (Message("user", "write"),)),
            {"Edit": EditTool(notes_guard(2000, 12_000))},
            OnlyFile(self.path),
            self.run,
            bus,
            rounds=rounds,
            seconds=seconds,
            one_answer=self.one_answer,
            cancelled=self.cancelled,
            **more,
        )

    def edit(self, new: str, old: str = "one line", id: str = "c1", **more: Any) -> ToolCall:
        given = {"path": str(self.path), "old_string": old, "new_string": new, **more}
        return ToolCall(id, "Edit", given)

    @property
    def kinds(self) -> list[str]:
        return [each.kind for each in self.events]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    path = Path(os.path.realpath(tmp_path)) / "notes.md"
    path.write_text(NOTES_TEMPLATE + "one line\n")
    history = History(path.parent / "history")
    return Room(path, history.begin("notes", "scripted", "1 turn", ("t1",), "s"))


def text(room: Room) -> str:
    return room.path.read_text().removeprefix(NOTES_TEMPLATE)


def test_one_answer_is_the_last_unless_a_call_of_it_was_refused(room: Room) -> None:
    room.one_answer = True
    outcome = room.go(Reply("now", (room.edit("two lines"),)), Reply("never asked"))
    assert (outcome.status, outcome.rounds, len(room.model.asked)) == ("done", 1, 1)
    outcome = room.go(
        Reply("now", (room.edit("x", "not there"),)), Reply("", (room.edit("x", "two lines"),))
    )
    assert (outcome.status, outcome.rounds, outcome.refused) == ("done", 2, 1)
    assert text(room) == "x\n"


@pytest.mark.spec("S7")
def test_a_good_engine_edits_and_ends(room: Room) -> None:
    outcome = room.go(
        Reply("now", (room.edit("two lines"), room.edit("three lines", "two lines", "c2"))),
        Reply("done"),
    )
    assert (outcome.status, outcome.rounds, outcome.calls, outcome.refused) == ("done", 2, 2, 0)
    assert outcome.wrote == (str(room.path),)
    assert text(room) == "three lines\n"
    assert room.kinds == ["started", "call", "wrote", "call", "wrote", "finished"]
    assert all(each.run == room.run.id and each.job == "notes" for each in room.events)
    room.path.write_text("a person's\n")
    assert "+three lines" in History(room.path.parent / "history").diff(), "what it left is kept"


def test_the_engine_is_told_what_came_of_its_calls(room: Room) -> None:
    room.go(Reply("", (room.edit("x", "missing", "a"), room.edit("two", id="b"))))
    said, answers = room.model.asked[1].messages[1:]
    assert [each.id for each in said.calls] == ["a", "b"]
    refused, made = answers.results
    assert (refused.id, refused.refused) == ("a", True)
    assert "is not in the file" in refused.text
    assert (made.id, made.refused, made.text) == ("b", False, "notes.md was edited.")


@pytest.mark.spec("S7", "S8")
def test_a_clumsy_engine_gets_there_in_the_end(room: Room) -> None:
    outcome = room.go(
        Reply("", (ToolCall("1", "Write", {"path": str(room.path), "text": "all new"}),)),
        Reply("", (room.edit("# Mine\n_i_\n", "# Worklog"),)),
        Reply("", (room.edit("two", "One line"),)),
        Reply("", (room.edit("two"),)),
    )
    assert (outcome.status, outcome.rounds, outcome.refused) == ("done", 5, 3)
    assert text(room) == "two\n"
    assert "Only Edit on" in outcome.refusals[0]
    assert 'renames the header "# Worklog"' in outcome.refusals[1]
    assert room.kinds.count("refused") == 3


@pytest.mark.spec("S7", "S8", "L6")
def test_a_hostile_engine_changes_nothing(room: Room) -> None:
    outside = room.path.parent / "outside.md"
    outside.write_text("one line\n")
    before = room.path.read_bytes()
    calls = [
        ToolCall("1", "Edit", {**room.edit("x").input, "path": str(outside)}),
        ToolCall("2", "Edit", {**room.edit("x").input, "path": "../outside.md"}),
        ToolCall("3", "Edit", {**room.edit("x").input, "path": "outside.md\0"}),
        ToolCall("4", "Bash", {"command": "rm -rf /"}),
        ToolCall("5", "Edit", {}),
        ToolCall("6", "Edit", None),  # type: ignore[arg-type]
        ToolCall("7", "Edit", {"path": ["a"], "old_string": {}, "new_string": 1}),
        room.edit("", NOTES_TEMPLATE),
        room.edit("x" * 10_000_000),
        room.edit("x", "y" * 10_000_000),
        room.edit("... rest unchanged"),
        room.edit("# Worklog\n# Worklog", "# Worklog"),
        room.edit("two", extra="x"),
        room.edit("one\rline"),
        room.edit("\x00"),
    ]
    outcome = room.go(*(Reply("", (each,)) for each in calls), rounds=50)
    assert outcome.refused == len(calls)
    assert room.path.read_bytes() == before
    assert outside.read_text() == "one line\n"
    assert outcome.wrote == ()
    assert History(room.path.parent / "history").entries() == []
    assert all(len(str(each.as_dict())) < 8000 for each in room.events)


@pytest.mark.spec("L6")
def test_the_file_swapped_between_check_and_use(room: Room) -> None:
    outside = room.path.parent / "outside.md"
    outside.write_text(room.path.read_text())
    policy = OnlyFile(room.path)
    check = policy.check

    class Swapping(OnlyFile):
        def check(self, call: ToolCall) -> Any:
            verdict = check(call)
            room.path.unlink()
            room.path.symlink_to(outside)
            return verdict

    tools = {"Edit": EditTool(notes_guard(2000, 12_000))}
    outcome = asyncio.run(
        run_agent(
            Scripted([Reply("", (room.edit("mine"),))]),
            Request("", ()),
            tools,
            Swapping(room.path),
            room.run,
            Bus(),
            rounds=3,
            seconds=5,
        )
    )
    assert outcome.refused == 1
    assert "is a link" in outcome.refusals[0]
    assert outside.read_text() == NOTES_TEMPLATE + "one line\n"


def test_empty_answers_change_nothing(room: Room) -> None:
    before = room.path.read_bytes()
    assert room.go(Reply()).status == "done"
    assert room.go(Reply("", (room.edit("", NOTES_TEMPLATE + "one line\n"),))).refused == 1
    assert room.path.read_bytes() == before


@pytest.mark.spec("L11")
def test_rounds_are_bounded(room: Room) -> None:
    outcome = room.go(
        *(Reply("", (room.edit(f"line {n + 1}", f"line {n}", str(n)),)) for n in range(30)),
        rounds=4,
    )
    assert (outcome.status, outcome.rounds) == ("out_of_rounds", 4)
    assert room.kinds[-1] == "finished"


@pytest.mark.spec("L11")
def test_time_is_bounded_while_the_engine_thinks(room: Room) -> None:
    class Hanging:
        name = "hanging"
        ended = False

        async def complete(self, request: Request) -> Reply:
            try:
                await asyncio.sleep(60)
            finally:
                self.ended = True
            return Reply()

    async def start() -> tuple[Outcome, bool]:
        model = Hanging()
        outcome = await room.start(model, 10, 0.2)
        await asyncio.sleep(0)
        return outcome, model.ended

    outcome, ended = asyncio.run(start())
    assert outcome.status == "out_of_time"
    assert ended, "the engine does not go on behind our back"
    assert outcome.seconds < 5


@pytest.mark.spec("L11")
def test_time_is_bounded_between_calls(room: Room) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    room.clock = clock
    calls = tuple(room.edit("x", "missing", str(n)) for n in range(30))
    outcome = room.go(Reply("", calls), seconds=12)
    assert outcome.status == "out_of_time"
    assert 0 < outcome.calls < 15


def test_calls_of_one_answer_are_bounded(room: Room) -> None:
    calls = tuple(room.edit("x", "missing", str(n)) for n in range(MOST_CALLS + 5))
    outcome = room.go(Reply("", calls))
    assert outcome.refused == MOST_CALLS + 5
    assert "Only 64 calls" in room.model.asked[1].messages[-1].results[-1].text
    assert len(outcome.refusals) == 10


def test_a_run_can_be_cancelled_and_what_it_wrote_can_be_undone(room: Room) -> None:
    stop: list[bool] = []
    room.cancelled = lambda: bool(stop)

    def then_stop(request: Request) -> Reply:
        stop.append(True)
        return Reply("", (room.edit("three", "two"),))

    outcome = room.go(Reply("", (room.edit("two"),)), then_stop)
    assert outcome.status == "cancelled"
    assert text(room) == "two\n"
    history = History(room.path.parent / "history")
    history.undo()
    assert text(room) == "one line\n"


def test_a_cancelled_task_closes_its_run(room: Room) -> None:
    class Hanging(Scripted):
        async def complete(self, request: Request) -> Reply:
            if self.steps:
                return await super().complete(request)
            await asyncio.sleep(60)
            return Reply()

    async def cancel() -> None:
        model = Hanging([Reply("", (room.edit("two"),))])
        task = asyncio.ensure_future(room.start(model, 10, 30))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert room.kinds[-1] == "finished"
    assert room.events[-1].details["status"] == "cancelled"
    assert "+two" in History(room.path.parent / "history").diff()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (EngineError("The server is away; try again later."), "The server is away"),
        (RuntimeError("boom"), "RuntimeError: boom"),
        (TypeError("no auth"), "TypeError: no auth"),
        (lambda request: None, "gave no answer at all"),
        (lambda request: "words", "gave no answer at all"),
        (lambda request: Reply("", ("no call",)), "AttributeError"),
    ],
)
def test_an_engine_that_fails_is_an_outcome(
    room: Room, step: Step, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = room.path.read_bytes()
    with caplog.at_level(logging.CRITICAL):
        outcome = room.go(step)
    assert outcome.status == "failed"
    assert said in outcome.error
    assert room.kinds == ["started", "failed"]
    assert room.path.read_bytes() == before


def test_an_error_of_ours_in_a_tool_is_an_answer(room: Room) -> None:
    (room.path.parent / "history" / "log.jsonl").mkdir(parents=True)
    outcome = room.go(Reply("", (room.edit("two"),)))
    assert (outcome.status, outcome.refused) == ("done", 1)
    assert text(room) == "one line\n"


def test_a_tool_that_policy_allows_but_is_not_there(room: Room) -> None:
    outcome = asyncio.run(
        run_agent(
            Scripted([Reply("", (ToolCall("1", "Grep", {"path": "notes.md"}),))]),
            Request("", ()),
            {"Edit": EditTool()},
            OnlyFile(room.path, ("Edit", "Grep")),
            room.run,
            Bus(),
            rounds=3,
            seconds=5,
        )
    )
    assert outcome.refusals == ("There is no such tool; there is Edit.",)


@pytest.mark.spec("L4")
def test_each_run_has_a_conversation_of_its_own(room: Room) -> None:
    history = History(room.path.parent / "history")
    conversation = (Message("user", "hello"), Message("assistant", "good day"))
    request = Request("system", conversation)

    def one(name: str) -> tuple[Scripted, Run]:
        steps: list[Step] = [
            Reply("", (room.edit("x", "missing", f"{name}{n}"),)) for n in range(3)
        ]
        return Scripted(steps, name), history.begin("notes", name, "", (), "s")

    async def both() -> list[Scripted]:
        made = [one("a"), one("b")]
        await asyncio.gather(
            *(
                run_agent(
                    model,
                    request,
                    {"Edit": EditTool()},
                    OnlyFile(room.path),
                    run,
                    Bus(),
                    rounds=9,
                    seconds=9,
                )
                for model, run in made
            )
        )
        return [model for model, _ in made]

    for model in asyncio.run(both()):
        calls = [c.id for m in model.asked[-1].messages for c in m.calls]
        assert calls == [f"{model.name}{n}" for n in range(3)]
        assert all(each.messages[:2] == conversation for each in model.asked)
    assert request == Request("system", conversation)


def test_an_outcome_is_json(room: Room) -> None:
    found = room.go(Reply("", (room.edit("two"),))).as_dict()
    assert found["status"] == "done"
    assert found["wrote"] == [str(room.path)]
