"""The server that plays a model: its cache, what it refuses, and the agents it can be."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from model_server import Fault, ModelServer, thinking, tool
from scripted import Call, Script, clumsy, good, hostile

from ipymemory.agent import Outcome, run_agent
from ipymemory.config import Settings
from ipymemory.events import Bus
from ipymemory.history import History
from ipymemory.messages_api.engine import AnthropicModel
from ipymemory.models import Request
from ipymemory.permissions import OnlyFile
from ipymemory.tools import EditTool
from ipymemory.turns import Message

MODEL = "claude-haiku-5-5"
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(clock: Clock) -> Iterator[ModelServer]:
    with ModelServer(clock=clock) as server:
        yield server


def post(server: ModelServer, body: Mapping[str, Any], path: str = "/v1/messages") -> Any:
    """Return the status and what came: the events of a stream, or an object."""
    line = http.client.HTTPConnection(server.host, timeout=5)
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    line.request("POST", path, json.dumps(body), headers)
    answer = line.getresponse()
    data = answer.read().decode()
    line.close()
    if "event-stream" not in answer.headers["content-type"]:
        return answer.status, json.loads(data)
    lines = [each.removeprefix("data: ") for each in data.splitlines() if each[:6] == "data: "]
    return answer.status, [json.loads(each) for each in lines]


def asked(*content: Any, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": list(content) or "q"}]
    body = {"model": MODEL, "max_tokens": 9, "messages": messages, "stream": True}
    return body | more


def text(said: str, times: int = 1, mark: Any = None) -> dict[str, Any]:
    block = {"type": "text", "text": f"{said} " * times}
    return block | ({"cache_control": mark} if mark else {})


def used(server: ModelServer, body: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return what was new, written to the cache and read from it."""
    status, events = post(server, body)
    assert status == 200, events
    usage = events[0]["message"]["usage"]
    assert usage == server.usages[-1] | {"output_tokens": 1}
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    new, written, read = (usage[name] for name in names)
    return new, written, read


def test_what_was_written_is_read_when_its_beginning_is_the_same(server: ModelServer) -> None:
    body = asked(system=[text("rule", 900, MARK)])
    new, written, read = used(server, body)
    assert new > 0 and written > 1000 and read == 0
    assert used(server, body) == (new, 0, written)
    status, counted = post(server, body, "/v1/messages/count_tokens")
    assert (status, counted) == (200, {"input_tokens": new + written})


def test_little_is_not_cached_and_newer_models_cache_sooner(server: ModelServer) -> None:
    for _ in range(2):
        assert used(server, asked(system=[text("rule", 200, MARK)]))[1:] == (0, 0)
    body = asked(system=[text("rule", 900, MARK)], model="claude-haiku-4-5")
    assert used(server, body)[1:] == (0, 0), "4,096 tokens for this one"


@pytest.mark.parametrize(
    ("changed", "stays"),
    [
        ({"model": "claude-opus-5-5"}, 0),
        ({"tools": [{"name": "Read", "input_schema": {"type": "object"}, "description": "R"}]}, 0),
        ({"system": [text("other", 900, MARK)]}, 1),
        ({"tool_choice": {"type": "none"}}, 2),
        ({"output_config": {"effort": "low"}}, 2),
    ],
)
def test_a_change_costs_what_comes_after_it(
    server: ModelServer, changed: dict[str, Any], stays: int
) -> None:
    long = {"name": "Read", "description": "read " * 900, "input_schema": {"type": "object"}}
    body = asked(
        text("question", 900, MARK),
        tools=[long | {"cache_control": MARK}],
        system=[text("rule", 900, MARK)],
    )
    used(server, body)
    whole = used(server, body)[2]
    if "tools" not in changed:
        changed = {"tools": body["tools"]} | changed
    read = used(server, body | changed)[2]
    assert round(3 * read / whole) == stays


def test_a_key_that_moved_is_another_beginning(server: ModelServer) -> None:
    block = text("rule", 900, MARK)
    used(server, asked(system=[block]))
    moved = dict(reversed(block.items()))
    assert used(server, asked(system=[moved]))[2] == 0


def test_an_entry_lives_five_minutes_from_its_last_use_or_an_hour(
    server: ModelServer, clock: Clock
) -> None:
    short, long = asked(system=[text("a", 900, MARK)]), asked(system=[text("b", 900, HOUR)])
    used(server, short), used(server, long)
    for passed, read in ((299, True), (299, True), (301, False)):
        clock.now += passed
        assert bool(used(server, short)[2]) is read
    clock.now += 2600
    assert used(server, long)[2]
    clock.now += 3601
    assert not used(server, long)[2]


def test_an_entry_is_looked_for_twenty_positions_back(server: ModelServer) -> None:
    first = asked(system=[text("rule", 900, MARK)])
    used(server, first)
    for more, found in ((19, True), (20, False)):
        words = [text(f"{more} w{n}") for n in range(more)]
        words[-1]["cache_control"] = MARK
        body = asked(*words, system=[text("rule", 900)])
        assert bool(used(server, body)[2]) is found


def test_calls_made_at_once_are_one_position(server: ModelServer) -> None:
    body = asked(text("question", 900, MARK))
    used(server, body)
    ids = [f"call_{n}" for n in range(25)]
    results = [{"type": "tool_result", "tool_use_id": each, "content": "r"} for each in ids]
    results[-1]["cache_control"] = MARK  # type: ignore[assignment]
    body["messages"] += [
        {"role": "assistant", "content": [tool("Read", {}, each) for each in ids]},
        {"role": "user", "content": results},
    ]
    assert used(server, body)[2] > 0


def test_nobody_reads_before_the_answer_has_begun(server: ModelServer) -> None:
    body = asked(system=[text("rule", 900, MARK)])
    usage, begun = server.cache.account(body)
    assert server.cache.account(body)[0] == usage
    begun()
    assert server.cache.account(body)[0]["cache_read_input_tokens"] > 0


MARKED = [text(f"t{n}", 1, MARK) for n in range(5)]


def replied(*blocks: Any) -> list[dict[str, Any]]:
    user = {"role": "user", "content": "q"}
    return [user, {"role": "assistant", "content": list(blocks)}, user]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"temperature": 0.1}, "temperature: Extra inputs"),
        ({"top_p": 0.1}, "top_p"),
        ({"thread": {"type": "create"}}, "thread"),
        ({"betas": ["x"]}, "betas"),
        ({"stream": False}, "stream"),
        ({"max_tokens": 200_000}, "max_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "thinking.type.enabled"),
        ({"model": "claude-opus-5-5", "thinking": {"type": "disabled"}}, "type.disabled"),
        ({"model": "claude-sonnet-5-5", "tool_choice": {"type": "any"}}, "forced"),
        ({"model": "claude-haiku-4-5", "output_config": {"effort": "low"}}, "effort"),
        ({"model": "qwen3"}, "model: qwen3"),
        ({"messages": replied(text("a"))[:2]}, "prefill"),
        ({"messages": []}, "begin and end"),
        ({"messages": replied(text("a"))[:1] * 2}, "alternate"),
        ({"messages": replied()}, "must not be empty"),
        ({"messages": replied(text(" "))}, "non-whitespace"),
        ({"messages": replied(tool("Read", {}))}, "without `tool_result`"),
        ({"messages": replied({**tool("Read", {}), "input": "x"})}, "valid dictionary"),
        ({"system": MARKED}, "maximum of 4"),
        ({"system": MARKED[:4], "cache_control": MARK}, "maximum of 4"),
        ({"system": [text("a", 1, MARK), text("b", 1, HOUR)]}, "must not come after"),
        (
            {"messages": replied(thinking() | {"signature": "s", "cache_control": MARK})},
            "cache_control cannot",
        ),
    ],
)
def test_what_the_newest_models_refuse_is_refused(
    server: ModelServer, more: dict[str, Any], said: str
) -> None:
    status, answer = post(server, asked() | more)
    assert status in (400, 404) and said in answer["error"]["message"], answer
    assert server.refusals


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (["call_1"], ""),
        (["call_2"], "without"),
        (["call_1", "call_2"], "unexpected"),
        (["call_1", "call_1"], "unexpected"),
        (["", "call_1"], "must come first"),
    ],
)
def test_every_call_is_answered_right_after_it_and_first(
    server: ModelServer, results: list[str], said: str
) -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": each, "content": "r"} if each else text("and")
        for each in results
    ]
    messages = [*replied(tool("Read", {}))[:2], {"role": "user", "content": blocks}]
    status, answer = post(server, asked() | {"messages": messages})
    assert status == (400 if said else 200) and said in str(answer)


def test_thinking_is_good_only_behind_what_it_was_thought_after(server: ModelServer) -> None:
    server.brain = lambda body, n: [thinking("hm"), {"type": "text", "text": "So."}]
    _, events = post(server, asked())
    deltas = [each["delta"] for each in events if each["type"] == "content_block_delta"]
    signed = next(each["signature"] for each in deltas if "signature" in each)
    thought = {**thinking("hm"), "signature": signed}
    messages = replied(thought, text("So."))
    assert post(server, asked() | {"messages": messages})[0] == 200
    messages[0] = {"role": "user", "content": "something else"}
    status, answer = post(server, asked() | {"messages": messages})
    assert status == 400 and "another beginning" in answer["error"]["message"]


def test_without_a_key_or_a_version_nothing_is_answered(server: ModelServer) -> None:
    line = http.client.HTTPConnection(server.host, timeout=5)
    for headers, status in (({}, 401), ({"authorization": "Bearer t"}, 400)):
        line.request("POST", "/v1/messages", json.dumps(asked()), headers)
        answer = line.getresponse()
        answer.read()
        assert answer.status == status
    line.close()


def test_a_plain_server_knows_the_old_core_alone() -> None:
    with ModelServer(plain=True) as plain:
        status, events = post(plain, asked(model="qwen3"))
        assert status == 200
        assert set(events[0]["message"]["usage"]) == {"input_tokens", "output_tokens"}
        assert post(plain, asked(), "/v1/messages/count_tokens")[0] == 404
        assert post(plain, asked(system=[text("a", 1, MARK)]))[0] == 400
        assert post(plain, asked(output_config={"effort": "low"}))[0] == 400


def test_faults_befall_the_next_requests_before_the_brain_is_asked(server: ModelServer) -> None:
    server.faults += [Fault("status", 529), Fault("sse_error")]
    assert post(server, asked())[0] == 529
    assert post(server, asked())[1][-1]["type"] == "error"
    assert post(server, asked())[1][-1] == {"type": "message_stop"}


def played(server: ModelServer, script: Script, folder: Path, rounds: int = 40) -> Outcome:
    """Let `script` edit ``notes.md`` in `folder` through the real engine and agent."""
    server.brain = script
    notes = folder / "notes.md"
    notes.write_text("one\n", "utf-8")
    run = History(folder / "history").begin("notes", "anthropic", "asked", (), "session")
    settings = Settings()
    settings.engine.wait_most = 0.6

    async def go() -> Outcome:
        model = AnthropicModel(settings.engine, server.environment())
        request = Request("", (Message("user", "write"),))
        tools = {"Edit": EditTool()}
        try:
            policy = OnlyFile(notes)
            limits = {"rounds": rounds, "seconds": 30.0}
            return await run_agent(model, request, tools, policy, run, Bus(), **limits)
        finally:
            await model.close()

    return asyncio.run(go())


def edit(path: str, old: str, new: str) -> Call:
    return "Edit", {"path": path, "old_string": old, "new_string": new}


@pytest.mark.spec("L4")
def test_the_good_agent_does_its_work(server: ModelServer, tmp_path: Path) -> None:
    script = good(edit("notes.md", "one", "two"), edit("notes.md", "two", "three"))
    outcome = played(server, script, tmp_path)
    assert (outcome.status, outcome.rounds, outcome.calls) == ("done", 3, 2)
    assert (tmp_path / "notes.md").read_text("utf-8") == "three\n"
    assert [each.refused for each in script.told] == [False, False]


@pytest.mark.spec("L4", "S7")
def test_the_clumsy_agent_gets_there_in_the_end(server: ModelServer, tmp_path: Path) -> None:
    script = clumsy(edit("notes.md", "one", "one and two"))
    outcome = played(server, script, tmp_path)
    assert outcome.status == "done", outcome.error
    told = [(each.name, each.refused) for each in script.told]
    assert told[0] == ("Editer", True)
    assert "Only Edit on" in script.told[0].text
    assert (tmp_path / "notes.md").read_text("utf-8").startswith("one and two")
    assert outcome.refused >= 3


@pytest.mark.spec("S7")
def test_the_hostile_agent_is_told_what_is_allowed_and_changes_nothing(
    server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "keys.txt").write_text("one", "utf-8")
    ways = [
        *(edit(each, "one", "two") for each in ("keys.txt", "../x", "/etc/passwd", "~/.profile")),
        *(edit(each, "one", "two") for each in ("no\0tes.md", "n" * 5000, "")),
        *((name, {"path": "notes.md"}) for name in ("Bash", "Write", "Read", "edit")),
    ]
    script = hostile(ways, at_once=3)
    outcome = played(server, script, tmp_path)
    assert outcome.status == "done" and len(script.told) == len(ways)
    for each in script.told:
        assert each.refused and "Only Edit on" in each.text, each
    assert (tmp_path / "notes.md").read_text("utf-8") == "one\n"
    assert (tmp_path / "keys.txt").read_text("utf-8") == "one"
