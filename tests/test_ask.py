"""The assistant: what the model is asked, what is told while it answers, what is kept."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from made import Session

from ipymemory import assistant
from ipymemory.config import Settings
from ipymemory.errors import EngineError, ToolError
from ipymemory.events import Bus, Event
from ipymemory.history import History, Run
from ipymemory.jobs.ask import Answer, AskContext, about, ask, kernel_state
from ipymemory.models import Reply, Request, ToolSpec
from ipymemory.permissions import Allow, Deny
from ipymemory.turns import Entry, Message, ToolCall


@dataclass
class Model:
    """Answers with what `script` holds, one item a round, streamed by the word."""

    script: list[Any]
    requests: list[Request] = field(default_factory=list)
    name: str = "scripted"

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        item = self.script.pop(0)
        return await item(request) if callable(item) else streamed(request, item)


def streamed(request: Request, reply: Reply) -> Reply:
    assert request.hear is not None
    for word in reply.text.split(" ") if reply.text else []:
        request.hear(word if word == reply.text.split(" ")[0] else f" {word}")
    return reply


@dataclass
class Talk:
    """A conversation of one message."""

    system: str = assistant.SYSTEM
    asked: list[tuple[int | None, str]] = field(default_factory=list)

    def fork(
        self,
        last: str,
        *,
        tools: tuple[ToolSpec, ...] = (),
        turns: int | None = None,
        since: str = "",
    ) -> Request:
        self.asked.append((turns, since))
        said = (Message("user", "x = 1"), Message("assistant", "noted"), Message("user", last))
        return Request(self.system, said, tools)


@dataclass
class Read:
    """A tool that reads what is in `files`."""

    files: dict[str, str]

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("Read", "Read a file.", {"type": "object"})

    def run(self, call: ToolCall, run: Run) -> str:
        try:
            return self.files[str(call.input["path"])]
        except KeyError:
            raise ToolError("There is no such file.") from None


class Fence:
    """Allows Read on what is not hidden."""

    def check(self, call: ToolCall) -> Allow | Deny:
        if call.name != "Read" or str(call.input.get("path", "")).startswith("."):
            return Deny("Only Read inside the project is allowed here.")
        return Allow(call)


class Asking:
    """One ask, with all that was told of it."""

    def __init__(self, folder: Path, *script: Any, entries: Sequence[Entry] = ()) -> None:
        self.model = Model(list(script))
        self.talk = Talk()
        self.told: list[dict[str, Any]] = []
        self.stopped = False
        tool = Read({"a.py": "def a(): ..."})
        history = History(folder / "history")
        self.settings = Settings.read({})[0]
        self.context = AskContext(
            conversation=self.talk,
            entries=entries,
            model=self.model,
            tools={"Read": tool},
            policy=Fence(),
            run=history.begin("ask", "scripted", "asked", (), "s"),
            bus=Bus(),
            settings=self.settings,
        )

    def __call__(self, question: str = "What is x?", last: int | None = None) -> Answer:
        return asyncio.run(self.run(question, last))

    async def run(self, question: str = "What is x?", last: int | None = None) -> Answer:
        return await ask(
            self.context,
            question,
            last=last,
            hear=lambda piece: self.told.append(dict(piece)),
            cancelled=lambda: self.stopped,
        )

    @property
    def text(self) -> str:
        return "".join(each.get("text", "") for each in self.told)


def read(path: str, text: str = "") -> Reply:
    return Reply(text, (ToolCall("1", "Read", {"path": path}),), stop="tool_use")


@pytest.fixture
def new(tmp_path: Path) -> Callable[..., Asking]:
    return lambda *script, **more: Asking(tmp_path, *script, **more)


def test_an_answer_streams_and_is_whole_at_the_end(new: Callable[..., Asking]) -> None:
    asking = new(Reply("It is one.", stop="end_turn", blocks=({"type": "text"},)))
    answer = asking()
    assert [each["text"] for each in asking.told] == ["It", " is", " one."]
    assert (answer.text, answer.calls, answer.stop) == ("It is one.", 0, "end_turn")
    assert answer.outcome.status == "done"
    assert [each.role for each in answer.messages] == ["user", "assistant"]
    assert answer.messages[1].blocks == ({"type": "text"},)
    (request,) = asking.model.requests
    assert request.messages[-1].text.endswith("The person asks:\n\nWhat is x?")
    assert request.messages[-1] == answer.messages[0]
    assert request.system.startswith(assistant.SYSTEM)
    assert [each.name for each in request.tools] == ["Read"]


def test_the_system_prompt_of_the_conversation_is_left_alone(new: Callable[..., Asking]) -> None:
    asking = new(Reply("Yes."))
    asking.talk.system = assistant.SYSTEM + "\nMemories: none.\n"
    asking()
    assert asking.model.requests[0].system == asking.talk.system


def test_a_tool_call_is_told_between_the_words_and_kept_in_the_exchange(
    new: Callable[..., Asking],
) -> None:
    asking = new(read("a.py", "I look."), Reply("It is a function."))
    answer = asking(last=4)
    kinds = [next(iter(each)) for each in asking.told]
    assert kinds == ["text", "text", "call", "text", "text", "text", "text"]
    assert asking.told[2] == {"call": "Read", "about": "a.py"}
    assert asking.talk.asked == [(4, "")]
    assert answer.text == "I look.\n\nIt is a function."
    assert [each.role for each in answer.messages] == ["user", "assistant", "user", "assistant"]
    assert answer.messages[2].results[0].text == "def a(): ..."
    assert answer.as_dict()["calls"] == 1


@pytest.mark.spec("L11")
def test_refusals_and_failures_are_told_and_the_run_goes_on(new: Callable[..., Asking]) -> None:
    asking = new(read(".env"), read("b.py"), Reply("No."))
    answer = asking()
    assert [each for each in asking.told if "text" not in each] == [
        {"call": "Read", "about": ".env"},
        {"refused": "Read", "about": "Only Read inside the project is allowed here."},
        {"call": "Read", "about": "b.py"},
        {"refused": "Read", "about": "There is no such file."},
    ]
    assert answer.outcome.status == "done"
    assert answer.outcome.refused == 2


def test_words_that_a_second_try_said_otherwise_are_put_right(new: Callable[..., Asking]) -> None:
    async def twice(request: Request) -> Reply:
        assert request.hear is not None
        request.hear("It is t")
        return streamed(request, Reply("It is two."))

    asking = new(twice)
    assert asking().text == "It is two."
    assert asking.told[-1] == {"again": "It is two."}


def test_an_engine_that_does_not_stream_is_heard_too(new: Callable[..., Asking]) -> None:
    async def silent(request: Request) -> Reply:
        return Reply("At once.")

    asking = new(silent)
    assert asking().text == "At once."
    assert asking.told == [{"again": "At once."}]


async def _stops(asking: Asking) -> tuple[Answer, float]:
    task = asyncio.ensure_future(asking.run())
    while not asking.told:
        await asyncio.sleep(0.01)
    begun = time.monotonic()
    asking.stopped = True
    return await task, time.monotonic() - begun


async def hangs(request: Request) -> Reply:
    """Says two words and then nothing."""
    assert request.hear is not None
    request.hear("Half a")
    await asyncio.sleep(600)
    raise AssertionError("it was waited for")


@pytest.mark.spec("L11")
def test_a_stopped_ask_ends_within_the_time_and_keeps_what_came(
    new: Callable[..., Asking],
) -> None:
    asking = new(read("a.py"), hangs)
    answer, seconds = asyncio.run(_stops(asking))
    # It may be stopped before the second round has said anything.
    assert seconds < 0.2
    assert answer.outcome.status == "cancelled"
    assert answer.messages[-1].role == "assistant"
    assert answer.messages[-1].text.endswith(assistant.STOPPED)
    assert not answer.messages[-1].calls
    asking = new(hangs)
    answer, seconds = asyncio.run(_stops(asking))
    assert (answer.text, seconds < 0.2) == ("Half a", True)
    assert answer.messages[-1].text == f"Half a\n\n{assistant.STOPPED}"


@dataclass
class Slow:
    """A tool that looks around for as long as it is let, in a thread, and then fails."""

    over: threading.Event = field(default_factory=threading.Event)
    began: threading.Event = field(default_factory=threading.Event)
    threads: set[int] = field(default_factory=set)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("Read", "Read a file.", {"type": "object"}, reads=True)

    def run(self, call: ToolCall, run: Run) -> str:
        self.threads.add(threading.get_ident())
        self.began.set()
        self.over.wait(20)
        raise ToolError("It was too late.")


@pytest.mark.spec("L11")
def test_a_tool_that_looks_for_long_is_left_behind_by_a_stop(new: Callable[..., Asking]) -> None:
    asking, slow = new(read("a.py")), Slow()
    asking.context = replace(asking.context, tools={"Read": slow})

    async def go() -> tuple[Answer, float]:
        task = asyncio.ensure_future(asking.run())
        while not slow.began.is_set():
            await asyncio.sleep(0.01)
        begun = time.monotonic()
        asking.stopped = True
        answer = await task
        took = time.monotonic() - begun
        slow.over.set()
        await asyncio.sleep(0.1)
        return answer, took

    answer, took = asyncio.run(go())
    assert took < 0.2 and answer.outcome.status == "cancelled"
    assert asking.told == [{"call": "Read", "about": "a.py"}], "what it said later is not heard"
    assert threading.get_ident() not in slow.threads


def test_what_a_tool_tells_from_its_thread_comes_in_its_place(new: Callable[..., Asking]) -> None:
    asking, slow = new(read("a.py"), Reply("No.")), Slow()
    slow.over.set()
    asking.context = replace(asking.context, tools={"Read": slow})
    assert asking().outcome.refused == 1
    kinds = [next(iter(each)) for each in asking.told]
    assert kinds == ["call", "refused", "text"]


@pytest.mark.spec("L11")
def test_an_ask_is_bounded_in_rounds_and_minutes(new: Callable[..., Asking]) -> None:
    assert (Settings().engine.ask_rounds, Settings().engine.ask_minutes) == (50, 20.0)
    asking = new(*[read("a.py") for _ in range(60)])
    answer = asking()
    assert answer.outcome.status == "out_of_rounds"
    assert len(asking.model.requests) == 50
    asking = new(hangs)
    asking.settings.engine.ask_minutes = 0.01
    answer = asking()
    assert answer.outcome.status == "out_of_time"
    assert "time for this answer was up" in answer.messages[-1].text


def test_an_engine_that_fails_leaves_what_it_had_said(new: Callable[..., Asking]) -> None:
    async def fails(request: Request) -> Reply:
        assert request.hear is not None
        request.hear("Half")
        raise EngineError("The server is overloaded. Try again.", "overloaded")

    answer = new(fails)()
    assert answer.as_dict()["error"] == "The server is overloaded. Try again."
    assert (answer.text, answer.outcome.status) == ("Half", "failed")
    assert "broke off" in answer.messages[-1].text


def test_no_message_is_empty(new: Callable[..., Asking]) -> None:
    assert new(Reply(""))().messages[-1].text == assistant.NOTHING_SAID


@pytest.mark.spec("L4")
def test_the_conversation_is_not_changed(new: Callable[..., Asking]) -> None:
    asking = new(read("a.py"), Reply("Yes."))
    before = asking.talk.fork("q")
    asking()
    assert asking.talk.fork("q") == before


def test_after_a_restart_the_model_knows_that_no_variable_is_defined(
    new: Callable[..., Asking],
) -> None:
    session = Session()
    assert kernel_state(session.entries) == ""
    session.cell("x = 1")
    assert kernel_state(session.entries) == ""
    session.restart()
    session.happening("restarted", kernel=2)
    assert kernel_state(session.entries) == assistant.RESTARTED
    asking = new(Reply("Run it again."), entries=session.entries)
    asking("Where is x?")
    asked = asking.model.requests[0].messages[-1].text
    assert "no variable" in asked
    assert asked.endswith("\n\nWhere is x?")
    session.cell("y = 2")
    assert kernel_state(session.entries) == assistant.PARTLY


def test_after_a_reset_only_what_came_since_is_seen(new: Callable[..., Asking]) -> None:
    session = Session()
    session.cell("x = 1")
    session.happening("ask_reset")
    session.happening("ask_reset")
    newest = session.entries[-1].id
    session.cell("y = 1")
    asking = new(Reply("Yes."), entries=session.entries)
    asking()
    assert asking.talk.asked == [(None, newest)]


def test_what_a_call_is_about_is_told_in_a_few_words() -> None:
    grep = ToolCall("1", "Grep", {"pattern": "def", "path": "src"})
    assert about(grep) == "def in src"
    assert about(ToolCall("1", "Git", {"command": "log"})) == "log"
    assert about(ToolCall("1", "Read", ["what"])) == ""  # type: ignore[arg-type]


@pytest.mark.spec("A1")
def test_what_it_is_doing_is_told_and_only_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipymemory.agent_summary._LOOK_SECONDS", 0.01)
    monkeypatch.setattr("ipymemory.agent_summary._FIRST_SECONDS", 0.0)

    async def slow(request: Request) -> Reply:
        asking.context.bus.emit(Event("doing", "dream", "another", {"text": "Dreaming of tea"}))
        await asyncio.sleep(0.1)
        return streamed(request, Reply("It is that."))

    asking = Asking(tmp_path, Reply("", (ToolCall("1", "Read", {"path": "src/a.py"}),)), slow)
    assert asking().outcome.status == "done"
    assert [each["doing"] for each in asking.told if "doing" in each] == ["Reading a.py"]
    count = len(asking.told)
    asking.context.bus.emit(Event("doing", "ask", asking.context.run.id, {"text": "x"}))
    assert len(asking.told) == count, "it listens no longer"
