"""What an agent says beside its work: a real loop and SDK, a model server, a clock that is held."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from model_cache import positions, size
from model_server import Fault, ModelServer, thinking, tool
from recorded import Clock, Recorded
from test_dream_by_model import Dreams

from ipymemory import agent_summary, consent
from ipymemory.agent import Outcome, run_agent
from ipymemory.agent_summary import Aside, Billed
from ipymemory.config import Settings
from ipymemory.cost import Ledger
from ipymemory.doing import Doing
from ipymemory.events import Bus, Event
from ipymemory.history import History, Run
from ipymemory.jobs import dream
from ipymemory.messages_api.engine import AnthropicModel
from ipymemory.models import Reply, Request, ToolSpec, Usage
from ipymemory.permissions import Allow
from ipymemory.session import MemorySession
from ipymemory.tools import EditTool
from ipymemory.transcript import Transcript
from ipymemory.turns import Message, ToolCall

Body = dict[str, Any]
LOOK = tool("Look", {"path": "src/clean.py"})
SYSTEM = "You tidy a file. " * 200
"""More than the least that a provider caches."""


def last_text(body: Body) -> str:
    return str(body["messages"][-1]["content"][-1].get("text", ""))


def is_summary(body: Body) -> bool:
    return "what you are doing right now" in last_text(body)


@dataclass
class Allowing:
    """Lets all through; Edit in one folder."""

    folder: Path

    def check(self, call: ToolCall) -> Allow:
        if call.name != "Edit":
            return Allow(call)
        path = str(self.folder / str(call.input.get("path")))
        return Allow(ToolCall(call.id, call.name, {**call.input, "path": path}))


@dataclass
class Look:
    """A tool that takes as long as `meanwhile` does, on a thread of its own."""

    meanwhile: Callable[[], None]
    spec: ToolSpec = field(
        default_factory=lambda: ToolSpec("Look", "Look at it.", {"type": "object"}, reads=True)
    )

    def run(self, call: ToolCall, run: Run) -> str:
        self.meanwhile()
        return "what is there"


@dataclass
class Beside:
    """A model at work whose forks go to the same server."""

    inner: AnthropicModel
    aside: Aside | None
    name: str = "anthropic"

    async def complete(self, request: Request) -> Reply:
        return await self.inner.complete(request)


class Play:
    """One agent, what the server says to it and to its forks, and all that came of it.

    `steps` are what the agent is answered, one each, a callable's outcome where it is one; `lines`
    what its forks are; `during` is what happens while its tool Look works.
    """

    def __init__(self, server: ModelServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.clock = Clock()
        self.steps: list[Any] = []
        self.lines: list[Any] = []
        self.during: list[Callable[[], None]] = []
        self.events: list[Event] = []
        self.sent: list[Body] = []
        self.asked: list[Body] = []
        self.usages: list[tuple[str, Usage]] = []
        self.allowed = True
        self.seconds = 30.0
        self.stop = False
        server.brain = self.brain
        (folder / "notes.md").write_text("one\n")

    def brain(self, body: Body, number: int) -> Any:
        if is_summary(body):
            self.asked.append(body)
            said = self.lines.pop(0) if self.lines else "Naming nothing new"
        else:
            self.sent.append(body)
            said = self.steps.pop(0) if self.steps else "All done."
        return said() if callable(said) else said

    def run(self, request: Request | None = None, seconds: float = 1e6) -> Outcome:
        return asyncio.run(self.go(request, seconds))

    async def go(self, request: Request | None = None, seconds: float = 1e6) -> Outcome:
        settings = Settings()
        settings.engine.tries = 1

        def metered(asked: Request, model: str, usage: Usage) -> None:
            self.usages.append((asked.job, usage))

        model = AnthropicModel(settings.engine, self.server.environment(), metered)
        aside = Aside(Billed(model), self.seconds, lambda: self.allowed)
        bus = Bus()
        bus.subscribe(self.events.append)
        tools = {"Look": Look(self.meanwhile), "Edit": EditTool()}
        try:
            return await run_agent(
                Beside(model, aside),
                request or Request(SYSTEM, (Message("user", "tidy it"),)),
                tools,
                Allowing(self.folder),
                History(self.folder / "history").begin("tidy", "anthropic", "asked", (), "s"),
                bus,
                rounds=40,
                seconds=seconds,
                cancelled=lambda: self.stop,
                clock=self.clock,
            )
        finally:
            await model.close()

    def meanwhile(self) -> None:
        if self.during:
            self.during.pop(0)()

    def told(self, by: str = "model") -> list[str]:
        found = [each for each in self.events if each.kind == "doing"]
        return [each.details["text"] for each in found if each.details["by"] == by]

    def passes(self, seconds: float) -> None:
        """Let time pass, and the task beside the agent notice it."""
        self.clock.now += seconds
        time.sleep(0.1)

    def until(self, there: Callable[[], object], what: str) -> None:
        end = time.monotonic() + 10
        while not there():
            assert time.monotonic() < end, f"waited in vain: {what}"
            time.sleep(0.01)

    def asks(self, seconds: float = 30.0) -> Callable[[], None]:
        """Return what lets `seconds` pass until one more fork came, and its answer was heard."""

        def wait() -> None:
            before = len(self.usages)
            asked = len(self.asked)
            self.clock.now += seconds
            self.until(lambda: len(self.asked) > asked, "a fork")
            self.until(lambda: len(self.usages) > before, "its answer")
            time.sleep(0.1)

        return wait


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    # Marks go to Anthropic's own host alone; here the server stands for it.
    monkeypatch.setattr("ipymemory.messages_api.address.is_anthropic", lambda host: True)
    monkeypatch.setattr(agent_summary, "_LOOK_SECONDS", 0.01)
    with ModelServer() as server:
        yield server


@pytest.fixture
def play(server: ModelServer, tmp_path: Path) -> Play:
    return Play(server, tmp_path)


def edit(old: str, new: str, id: str = "call_2") -> Body:
    return tool("Edit", {"path": "notes.md", "old_string": old, "new_string": new}, id)


# A2


@pytest.mark.spec("A2", "S5")
def test_a_fork_repeats_the_agents_request_and_reads_it_from_the_cache(play: Play) -> None:
    play.steps = [[thinking("hm"), tool("Look", {"path": "a.py"}, "c1")], [LOOK], "All done."]
    play.during = [lambda: None, play.asks()]
    play.lines = ["Comparing clean.py with a.py"]
    assert play.run().status == "done"
    (fork,), sent = play.asked, play.sent[1]
    assert not play.server.refusals
    differs = {key for key in {*fork, *sent} if fork.get(key) != sent.get(key)}
    assert differs == {"messages"}
    assert fork["tools"] and "tool_choice" not in fork
    before, after = positions(sent), positions(fork)
    # Byte for byte, and behind it one user message of its own.
    assert [each.key for each in after[: len(before)]] == [each.key for each in before]
    (new,) = after[len(before) :]
    assert (new.role, new.lifetime) == ("user", "") and "Look" not in new.block["text"]
    (usage,) = (usage for job, usage in play.usages if job == "agent_summary")
    assert usage.cache_read == size(sent) and usage.cache_write == 0
    assert 0 < usage.input < 250
    assert play.told() == ["Comparing clean.py with a.py"]


@pytest.mark.spec("A2")
def test_calls_whose_result_has_not_come_are_left_out(play: Play) -> None:
    play.steps = [[tool("Look", {}, "c1")]]
    play.steps += [[thinking("so"), {"type": "text", "text": "I edit, then look."}]]
    play.steps[1] += [edit("one", "two"), tool("Look", {}, "c3"), tool("Look", {}, "c4")]
    play.during = [lambda: None, play.asks()]
    play.run()
    assert not play.server.refusals
    *_, answer, results = play.asked[0]["messages"]
    assert [each["type"] for each in answer["content"]] == ["text", "tool_use"]
    assert answer["content"][1]["id"] == "call_2"
    assert [each["type"] for each in results["content"]] == ["tool_result", "text"]
    assert "c3" not in str(play.asked[0]) and "c4" not in str(play.asked[0])


@pytest.mark.spec("A2")
def test_a_first_answer_without_a_result_is_no_message_of_its_own(play: Play) -> None:
    asked = []

    def slow() -> None:
        play.passes(100.0)
        asked.extend(play.asked)

    play.steps = [[LOOK]]
    play.during = [slow]
    play.run()
    assert not asked, "its task and a call say nothing that its line does not"


@pytest.mark.spec("A2")
def test_nothing_is_asked_before_three_messages_however_long_the_conversation_is(
    play: Play,
) -> None:
    said = (Message("user", "x = 1"), Message("assistant", "(noted)"))
    request = Request(SYSTEM, (*said * 5, Message("user", "what is x?")))

    def slow() -> str:
        play.passes(100.0)
        return "It is 1."

    play.steps = [slow]
    assert play.run(request).status == "done"
    assert not play.asked


@pytest.mark.spec("A2", "S7")
def test_a_fork_that_calls_tools_is_denied_them(play: Play) -> None:
    play.steps = [[tool("Look", {}, "c0")], [LOOK]]
    play.during = [lambda: None, play.asks()]
    play.lines = [[edit("one", "gone", "c9")]]
    outcome = play.run()
    assert (outcome.status, outcome.calls, outcome.refused) == ("done", 2, 0)
    assert (play.folder / "notes.md").read_text() == "one\n"
    assert play.told() == []
    # The agent hears nothing of it.
    assert "c9" not in str(play.sent) and "right now" not in str(play.sent)


@pytest.mark.spec("A2")
def test_it_stops_with_the_agent_at_once(play: Play) -> None:
    play.steps = [[tool("Look", {}, "c0")], [LOOK], "All done."]
    play.lines = [Fault("hang")]

    def begin() -> None:
        play.clock.now += 30
        play.until(lambda: play.asked, "a fork")
        time.sleep(0.2)

    play.during = [lambda: None, begin]

    async def go() -> tuple[Outcome, float]:
        outcome = await play.go()
        ended = time.monotonic()
        await asyncio.sleep(0.3)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return outcome, ended

    begun = time.monotonic()
    outcome, ended = asyncio.run(go())
    assert outcome.status == "done" and ended - begun < 5
    assert play.server.closed.wait(5), "the call is broken off"
    assert play.events[-1].kind == "finished" and play.told() == []
    # What it had cost until then is on the bill.
    assert "agent_summary" in [job for job, _ in play.usages]


@pytest.mark.spec("A2", "L11")
def test_an_agent_that_is_cancelled_takes_it_along(play: Play) -> None:
    play.steps = [[tool("Look", {}, "c0")], [LOOK], lambda: Fault("hang")]
    play.lines = [Fault("hang_mid", said="Reading clean.py once more")]

    def begin() -> None:
        play.clock.now += 30
        play.until(lambda: play.asked, "a fork")
        play.stop = True
        time.sleep(0.2)

    play.during = [lambda: None, begin]
    begun = time.monotonic()
    assert play.run().status == "cancelled"
    assert time.monotonic() - begun < 5
    assert play.events[-1].kind == "finished" and play.told() == []


@pytest.mark.spec("A2")
def test_a_task_that_is_cancelled_takes_it_along(play: Play) -> None:
    play.steps = [[tool("Look", {}, "c0")], [LOOK]]
    play.lines = [Fault("hang")]
    play.during = [lambda: None, lambda: play.until(lambda: play.stop, "the end")]

    async def go() -> None:
        task = asyncio.ensure_future(play.go())
        while len(play.sent) < 2:
            await asyncio.sleep(0.01)
        play.clock.now += 30
        while not play.asked:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        play.stop = True
        await asyncio.sleep(0.2)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(go())
    assert play.events[-1].details["status"] == "cancelled"


# A1


@pytest.mark.spec("A1")
def test_every_half_minute_counted_from_the_end_it_says_something_new(play: Play) -> None:
    def slow() -> str:
        play.clock.now += 10
        return "Reading clean.py for dates"

    def early() -> None:
        play.passes(29.0)
        assert len(play.asked) == 1, "ten of those seconds it answered"
        play.asks(1.0)()

    play.steps = [[tool("Look", {}, f"c{n}")] for n in range(4)]
    play.lines = [slow, "Reading clean.py for DATES.", "Editing notes.md by hand"]
    play.during = [lambda: play.passes(29.9), lambda: play.asks(0.1)(), early, play.asks()]
    play.run()
    assert len(play.asked) == 3
    first, second, third = map(last_text, play.asked)
    assert "stands there now" not in first
    assert '"Reading clean.py for dates": say something new' in second
    assert '"Reading clean.py for dates": say something new' in third
    assert play.told() == ["Reading clean.py for dates", "Editing notes.md by hand"]
    event = next(each for each in play.events if each.details.get("by") == "model")
    assert (event.kind, event.job) == ("doing", "tidy") and event.run


@pytest.mark.spec("A1")
def test_between_two_the_line_is_the_last_calls(play: Play) -> None:
    play.steps = [[tool("Look", {}, "c0")], [LOOK]]
    play.steps += [[edit("one", "two")], [tool("Look", {}, "c3")], [tool("Look", {}, "c4")]]
    play.during = [
        lambda: play.passes(2.0),
        play.asks(),
        lambda: play.passes(1.0),
        lambda: play.passes(5.0),
    ]
    play.lines = ["Comparing clean.py with a.py"]
    play.run()
    told = [each.details for each in play.events if each.kind == "doing"]
    assert [(each["text"], each["by"]) for each in told] == [
        ("Using Look", "code"),
        ("Comparing clean.py with a.py", "model"),
        # An edit came while that stood and was wanted to be read, and then another call.
        ("Using Look", "code"),
    ]
    assert told[1]["kept"] == "Using Look", "a model's words are not saved"


@pytest.mark.spec("A1")
def test_an_agent_without_a_model_has_a_line_too(play: Play) -> None:
    class Scripted:
        name = "scripted"
        rounds = 0

        async def complete(self, request: Request) -> Reply:
            self.rounds += 1
            given = {"path": "notes.md", "old_string": "one", "new_string": "two"}
            call = ToolCall("1", "Edit", given)
            if self.rounds == 2:
                play.clock.now += 2
                await asyncio.sleep(0.1)
            return Reply("", (call,)) if self.rounds == 1 else Reply("done")

    bus = Bus()
    bus.subscribe(play.events.append)
    run = History(play.folder / "history").begin("notes", "scripted", "asked", (), "s")
    request = Request("", (Message("user", "x"),))
    work = run_agent(
        Scripted(), request, {"Edit": EditTool()}, Allowing(play.folder), run, bus,
        rounds=4, seconds=99, clock=play.clock,
    )  # fmt: skip
    asyncio.run(work)
    assert play.told("code") == ["Editing notes.md"]
    assert not play.server.requests


@pytest.mark.spec("A1")
@pytest.mark.parametrize(
    "said",
    [
        "word " * 20,
        "Using sk-ant-" + "api03-" + "k" * 24 + " for login",
        "**Reading** `clean.py` for dates",
        "Reading parse() in loader.py",
        "I am reading clean.py now",
        [LOOK],
        Fault("refusal"),
        Fault("status", 529),
        Fault("status", 400, message="no"),
        Fault("garbage"),
        Fault("reset", said="Reading clean.py for dates"),
        Fault("empty"),
    ],
)
def test_what_is_no_line_is_dropped_and_the_agent_goes_on(play: Play, said: Any) -> None:
    play.steps = [[tool("Look", {}, "c0")], [tool("Look", {}, "c1")], [LOOK], "All done."]

    def once() -> None:
        play.clock.now += 30
        play.until(lambda: play.asked, "a fork")
        time.sleep(0.1)

    play.lines = [said, "Editing notes.md by hand"]
    play.during = [lambda: None, once, play.asks(31)]
    outcome = play.run()
    assert (outcome.status, outcome.refused, outcome.error) == ("done", 0, "")
    assert play.told() == ["Editing notes.md by hand"], "and it is asked again"


@pytest.mark.spec("A1")
def test_an_answer_that_can_be_no_line_is_broken_off(play: Play) -> None:
    play.steps = [[tool("Look", {}, "c0")], [LOOK]]
    play.lines = ["word " * 20_000]
    play.during = [lambda: None, play.asks()]
    play.server.pause = 0.0002
    play.run()
    assert play.server.closed.wait(5)
    assert play.told() == []


@pytest.mark.spec("A1", "L11")
def test_a_fork_that_hangs_is_given_up_after_half_a_minute_while_the_agent_goes_on(
    play: Play,
) -> None:
    def hung() -> None:
        play.clock.now += 30
        play.until(lambda: play.asked, "a fork")

    play.steps = [[tool("Look", {}, "c0")], [tool("Look", {}, "c1")], [LOOK]]
    play.steps += [[edit("one", "two")], [tool("Look", {}, "c5")], [tool("Look", {}, "c6")]]
    play.lines = [Fault("hang"), "Editing notes.md by hand"]
    play.during = [lambda: None, hung, lambda: play.passes(29), lambda: play.passes(1), play.asks()]
    outcome = play.run()
    assert (outcome.status, outcome.calls) == ("done", 6)
    assert len(play.asked) == 2 and play.told() == ["Editing notes.md by hand"]
    assert (play.folder / "notes.md").read_text() == "two\n"


@pytest.mark.spec("A1", "L9")
@pytest.mark.parametrize("way", ["no money", "turned off"])
def test_without_money_or_when_turned_off_nothing_is_asked(play: Play, way: str) -> None:
    play.allowed = way != "no money"
    play.seconds = 0.0 if way == "turned off" else 30.0
    play.steps = [[tool("Look", {}, "c0")], [LOOK]]
    play.during = [lambda: None, lambda: play.passes(100.0)]
    assert play.run().status == "done"
    assert not play.asked
    # The line of its calls is there all the same.
    assert play.told("code") == ["Using Look"]


@pytest.mark.spec("A1", "L9")
def test_a_sessions_agents_have_it_on_the_bill_under_its_own_name(
    home: Path, tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    recorded = Recorded(home, tmp_path / "work")
    consent.choose(recorded.project, "anthropic", server.host)
    settings = Settings.read({"Engine": {"budget_day": 0.0001}})[0]
    session = MemorySession(recorded.folder, recorded.project, settings).session_model
    conversation = session.conversation(Transcript(recorded.folder.transcript), settings)
    aside = agent_summary.aside_of(session.model("extraction", conversation, settings))
    assert aside is not None and aside.seconds == 30.0 and aside.allowed()
    factor = conversation.factor

    async def ask() -> None:
        assert aside is not None
        await aside.model.complete(conversation.fork("x" * 4000))
        await session.close()

    asyncio.run(ask())
    assert list(session.ledger.by_job()) == ["agent_summary"]
    assert conversation.factor == factor
    assert not aside.allowed(), "that was the day's budget"


@pytest.mark.spec("A1", "D6", "L12")
def test_a_dream_by_a_model_tells_it_too(
    home: Path, tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(agent_summary, "_FIRST_SECONDS", 0.0)
    dreams = Dreams(home, tmp_path / "work", server)
    dreams.ready()
    consent.choose(dreams.project, "anthropic", server.host)
    lines = Doing()
    kept: list[dict[str, str]] = []

    def brain(body: Body, number: int) -> Any:
        if is_summary(body):
            return "Comparing tea with lakes"
        if number == 1:
            return [tool("Read", {"path": "tea.md"})]
        time.sleep(0.5)
        kept.append(lines.as_dict())
        return "All is well."

    server.brain = brain
    dreams.settings.engine.summary_seconds = 0.2
    context = dreams.context()
    context.bus.subscribe(lines)
    assert dream.dream(context).status == "done"
    told = [each for each in dreams.events if each.kind == "doing"]
    assert {each.job for each in told} == {"dream"}
    assert [each.details["text"] for each in told][:2] == [
        "Reading tea.md",
        "Comparing tea with lakes",
    ]
    assert kept == [{"dream": "Reading a file"}] and lines.as_dict() == {}
    assert set(Ledger(dreams.project).by_job()) == {"agent_summary", "dream"}
