"""The engine behind the Messages API: the real SDK against a server on a real socket."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from model_server import Fault, ModelServer, thinking, tool

from ipymemory.config import Settings
from ipymemory.errors import EngineError
from ipymemory.messages_api import destination, is_anthropic, is_this_machine, sdk
from ipymemory.messages_api.engine import AnthropicModel
from ipymemory.models import Reply, Request, ToolSpec, Usage
from ipymemory.turns import Message, ToolCall, ToolResult

READ = ToolSpec("Read", "Read a file.", {"type": "object", "properties": {}})

NOWHERE = {"type": "content_block_start", "index": "x", "content_block": {"type": "text"}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setattr("ipymemory.messages_api.engine.FIRST_WAIT", 0.01)
    with ModelServer() as server:
        yield server


def asked(
    server: ModelServer,
    request: Request | None = None,
    metered: Callable[[Request, str, Usage], None] = lambda request, model, usage: None,
    **limits: Any,
) -> Reply:
    settings = Settings()
    for name, value in {"wait_most": 0.2, "answer_seconds": 3.0, **limits}.items():
        setattr(settings.engine, name, value)

    async def run() -> Reply:
        model = AnthropicModel(settings.engine, server.environment(), metered)
        try:
            return await model.complete(request or Request("Be brief.", (Message("user", "Hi?"),)))
        finally:
            await model.close()

    return asyncio.run(run())


@pytest.mark.spec("L9")
def test_an_answer_streams_in_and_is_counted(server: ModelServer) -> None:
    server.brain = lambda body, n: "It is done."
    heard: list[str] = []
    counted: list[tuple[str, Usage]] = []
    request = Request("Be brief.", (Message("user", "Hi?"),), hear=heard.append)
    reply = asked(server, request, lambda request, model, usage: counted.append((model, usage)))
    assert heard == ["It", " is", " done."]
    assert (reply.text, reply.stop, reply.calls) == ("It is done.", "end_turn", ())
    assert reply.usage is not None and reply.usage.output == 12, "its JSON's 36 bytes, a third"
    assert counted == [("claude-haiku-5-5", reply.usage)]
    assert server.headers[0]["x-api-key" if "x-api-key" in server.headers[0] else "authorization"]


def test_calls_of_tools_go_out_and_their_answers_back(server: ModelServer) -> None:
    said = [{"type": "text", "text": "Looking."}, tool("Read", {"path": "a.py"})]
    server.brain = lambda body, n: said if n == 1 else "It holds a."
    question = Message("user", "What is in a.py?")
    first = asked(server, Request("", (question,), (READ,)))
    assert first.calls == (ToolCall("call_1", "Read", {"path": "a.py"}),)
    messages = (
        question,
        Message("assistant", first.text, first.calls, blocks=first.blocks),
        Message("user", results=(ToolResult("call_1", "a = 1"),)),
    )
    assert asked(server, Request("", messages, (READ,))).text == "It holds a."
    sent = server.requests[1]["messages"]
    assert sent[1]["content"] == said
    assert sent[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "call_1", "content": "a = 1"}
    ]


def test_other_hosts_get_the_old_core_alone() -> None:
    with ModelServer(plain=True) as server:
        said = (Message("user", "a"), Message("user", "b"), Message("assistant", "c"))
        request = Request("s", (*said, Message("user", "d")), (READ,), breakpoints=(1,))
        assert asked(server, request).text == "Fine."
        assert [each["role"] for each in server.requests[0]["messages"]] == [
            *("user", "assistant", "user"),
        ]


@pytest.mark.spec("S5")
def test_anthropic_itself_gets_breakpoints_and_effort() -> None:
    from ipymemory.messages_api.wire import arguments

    said = tuple(Message("user" if n % 2 == 0 else "assistant", f"m{n}") for n in range(9))
    request = Request("s", said, (READ,), breakpoints=(1, 3, 5))
    sent = arguments(request, model="claude-haiku-5-5", max_tokens=9, effort="low", full=True)
    marked = [n for n, each in enumerate(sent["messages"]) if "cache_control" in str(each)]
    assert marked == [3, 5, 8]
    once = replace(request, once=True)
    sent = arguments(once, model="claude-haiku-5-5", max_tokens=9, effort="low", full=True)
    assert [n for n, each in enumerate(sent["messages"]) if "cache_control" in str(each)] == [3, 5]
    assert "cache_control" in sent["system"][0]
    assert sent["extra_body"] == {"output_config": {"effort": "low"}}
    old = arguments(request, model="claude-haiku-4-5", max_tokens=9, effort="low", full=True)
    assert "extra_body" not in old


@pytest.mark.parametrize(
    ("fault", "kind", "calls"),
    [
        (Fault("status", 401), "credentials", 1),
        (Fault("status", 402), "credentials", 1),
        (Fault("status", 400), "request", 1),
        (Fault("status", 413), "too_long", 1),
        (Fault("status", 429), "limit", 2),
        (Fault("status", 429, {"retry-after": "0.1"}), "limit", 2),
        (Fault("status", 429, {"retry-after": "4233600"}), "limit", 1),
        (Fault("status", 429, {"retry-after": "rubbish"}), "limit", 2),
        (Fault("status", 500), "overloaded", 2),
        (Fault("status", 529), "overloaded", 2),
        (Fault("status", 403), "credentials", 1),
        (Fault("status", 404), "request", 1),
        (Fault("status", 408), "time", 2),
        (Fault("status", 429, {"retry-after": "1e999"}), "limit", 2),
        (Fault("status", 429, {"retry-after": "Wed, 01 Jan 2200 00:00:00 GMT"}), "limit", 1),
        (Fault("status", 400, message="prompt is too long: 9 tokens"), "too_long", 1),
        (Fault("html"), "protocol", 2),
        (Fault("garbage"), "protocol", 2),
        (Fault("refused"), "network", 2),
        (Fault("torn"), "network", 2),
        (Fault("eof"), "network", 2),
        (Fault("reset"), "network", 2),
        (Fault("sse_error"), "overloaded", 2),
        (Fault("half_tool"), "network", 2),
        (Fault("empty"), "protocol", 2),
        (Fault("refusal"), "refusal", 1),
        (Fault("no_stop_reason"), "protocol", 2),
        (Fault("cut", said=[tool("Write", {}, raw='{"path": "a.m')]), "too_long", 1),
        (Fault("cut", said=[tool("Write", {}, raw="")]), "too_long", 1),
        (Fault("cut", said=[thinking("hm")]), "too_long", 1),
        *(
            (Fault("answer", said=[tool("Write", {}, raw=raw)]), "protocol", 2)
            for raw in ('{"a": 1}{"b": 2}', '{"a": "\\x"}', '["a"]', '"a"', '{"a": "\\ud800"}')
        ),
        (Fault("answer", said=[{**tool("Write", {}), "id": None}]), "protocol", 2),
        (Fault("odd", events=("text",)), "protocol", 2),
        (Fault("odd", events=([1, 2],)), "protocol", 2),
        (Fault("odd", events=(NOWHERE,)), "protocol", 2),
        (Fault("odd", events=(NOWHERE | {"index": -1},)), "protocol", 2),
    ],
    ids=lambda each: f"{each.kind}-{each.status}" if isinstance(each, Fault) else str(each),
)
@pytest.mark.spec("L2")
def test_whatever_goes_wrong_has_a_name_and_is_tried_again_if_that_helps(
    server: ModelServer, fault: Fault, kind: str, calls: int
) -> None:
    server.brain = lambda body, n: fault
    with pytest.raises(EngineError) as raised:
        asked(server, tries=2, wait_most=0.6)
    assert raised.value.kind == kind, raised.value
    assert len(server.requests) == calls
    what, _, to_do = str(raised.value).removesuffix(".").rpartition(". ")
    assert what and re.match(r"(?:Set|See|Try|Raise|Ask|It asks to wait|%memory)\b", to_do)


def test_an_absurd_wait_is_handed_on_and_not_waited_for(server: ModelServer) -> None:
    server.brain = lambda body, n: Fault("status", 429, {"retry-after": "4233600"})
    began = time.monotonic()
    with pytest.raises(EngineError) as raised:
        asked(server)
    assert raised.value.wait == 4233600
    assert time.monotonic() - began < 5


def test_a_wait_that_is_asked_for_is_told(server: ModelServer) -> None:
    server.brain = lambda body, n: Fault("status", 429, {"retry-after": "4233600"})
    with pytest.raises(EngineError, match="asks to wait 49 days"):
        asked(server)


def test_a_passing_failure_is_overcome_and_heard_once(server: ModelServer) -> None:
    server.faults += [Fault("reset")]
    server.brain = lambda body, n: "There it is."
    heard: list[str] = []
    counted: list[Usage] = []
    request = Request("", (Message("user", "Hi"),), hear=heard.append)
    reply = asked(
        server, request, lambda request, model, usage: counted.append(usage), wait_most=1.0
    )
    assert reply.text == "There it is."
    assert heard == ["Half"], "the beginning of another answer is not heard behind that of one"
    assert [each.output for each in counted] == [1, 13], "what broke off was paid for too"


def test_waits_of_our_own_grow_only_to_the_cap(server: ModelServer) -> None:
    server.faults += [Fault("status", 529)] * 5
    began = time.monotonic()
    assert asked(server, tries=6, wait_most=0.05).text == "Fine."
    assert time.monotonic() - began < 5


def test_a_reply_goes_back_as_it_came_but_for_what_is_no_word(server: ModelServer) -> None:
    said = [thinking("hm"), {"type": "text", "text": " "}, tool("Read", {"path": None})]
    server.brain = lambda body, n: said if n == 1 else "So."
    question = Message("user", "What is in a.py?")
    first = asked(server, Request("s", (question,), (READ,)))
    assert [each["type"] for each in first.blocks] == ["thinking", "tool_use"]
    answer = Message("user", results=(ToolResult("call_1", "a = 1"),))
    messages = (question, Message("assistant", "", first.calls, blocks=first.blocks), answer)
    assert asked(server, Request("s", messages, (READ,))).text == "So."
    assert server.requests[1]["messages"][1]["content"][0]["signature"].startswith("bound-")
    assert server.requests[1]["messages"][1]["content"][1]["input"] == {"path": None}
    assert not server.refusals


def test_halves_of_characters_are_heard_as_what_can_be_written(server: ModelServer) -> None:
    server.brain = lambda body, n: "one \ud800 \U0001f600 two"
    heard: list[str] = []
    reply = asked(server, Request("", (Message("user", "Hi"),), hear=heard.append))
    assert reply.text == "".join(heard) == "one \ufffd \U0001f600 two"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_start", "index": 7, "content_block": {"type": "odd", "z": None}},
        {"type": "content_block_delta", "index": 0, "delta": 7},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "odd_delta", "odd": 1}},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": None}},
        {"type": "message_delta", "delta": None, "usage": "much"},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": -1, "input_tokens": "x"}},
        {"type": "a_kind_of_next_year", "deep": [{}]},
        {"type": "ping", "extra": None},
    ],
    ids=str,
)
def test_events_that_nobody_knows_do_no_harm(server: ModelServer, event: Any) -> None:
    server.faults.append(Fault("odd", events=(event,)))
    assert asked(server, tries=1).text == "Half of it and the rest."


def test_an_answer_without_an_end_is_given_up(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipymemory.messages_api.stream.MOST_CHARACTERS", 2000)
    server.brain = lambda body, n: "word " * 5000
    server.pause = 0.0001
    settings = Settings()
    settings.engine.tries = 1

    async def run() -> bool:
        model = AnthropicModel(settings.engine, server.environment())
        with pytest.raises(EngineError, match="does not come to an end"):
            await model.complete(Request("", (Message("user", "Hi"),)))
        gone = await asyncio.to_thread(server.closed.wait, 5)
        await model.close()
        return gone

    assert asyncio.run(run()), "the connection is closed at once, and not with the client"


@pytest.mark.spec("S5", "L9")
def test_what_one_request_sent_the_next_reads_from_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Marks go to Anthropic's own host alone; here the server stands for it.
    monkeypatch.setattr("ipymemory.messages_api.address.is_anthropic", lambda host: True)
    now = [0.0]
    with ModelServer(clock=lambda: now[0]) as server:
        said: list[Message] = []
        before: Usage | None = None
        for turn in range(6):
            for n in range(15):
                said += [Message("user", f"cell {turn}.{n} " * 20), Message("assistant", "(noted)")]
            end = len(said) - 1
            marks = (end - 30, end) if turn else (end,)
            request = Request(
                "Be brief. " * 200, (*said, Message("user", "?")), (READ,), None, marks
            )
            usage = asked(server, request).usage
            assert usage is not None
            if before is not None:
                assert usage.cache_read >= 0.95 * before.prompt
            before = usage
            now[0] += 200
        assert usage.cache_write > 0 and usage.cache_write_hour == 0
        now[0] += 301
        late = asked(server, request).usage
        assert late is not None and late.cache_read == 0
        assert not server.refusals


@pytest.mark.spec("L9")
def test_what_anthropic_does_not_take_from_a_model_is_left_out_from_then_on(
    monkeypatch: pytest.MonkeyPatch, server: ModelServer
) -> None:
    monkeypatch.setattr("ipymemory.messages_api.address.is_anthropic", lambda host: True)
    server.faults.append(Fault("status", 400, message="output_config.effort: not supported"))
    settings = Settings()
    request = Request("s", (Message("user", "Hi"),))

    async def run() -> None:
        model = AnthropicModel(settings.engine, server.environment())
        await model.complete(request)
        await model.complete(request)
        await model.close()

    asyncio.run(run())
    assert ["output_config" in each for each in server.requests] == [True, False, False]


@pytest.mark.parametrize("kind", ["silent", "hang", "hang_mid"])
def test_a_server_that_says_nothing_is_given_up(server: ModelServer, kind: str) -> None:
    server.brain = lambda body, n: Fault(kind)
    with pytest.raises(EngineError) as raised:
        asked(server, tries=1, answer_seconds=1.0)
    assert raised.value.kind == "time"
    assert "Engine.answer_seconds" in str(raised.value)


@pytest.mark.parametrize("kind", ["silent", "hang", "hang_mid"])
def test_a_call_that_is_cancelled_closes_its_connection_at_once(
    server: ModelServer, kind: str
) -> None:
    server.brain = lambda body, n: Fault(kind)
    counted: list[Usage] = []

    async def run() -> float:
        model = AnthropicModel(
            Settings().engine,
            server.environment(),
            lambda request, model, usage: counted.append(usage),
        )
        task = asyncio.ensure_future(model.complete(Request("", (Message("user", "Hi"),))))
        while not server.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        took = time.monotonic() - began
        await model.close()
        return took

    assert asyncio.run(run()) < 0.2
    assert server.closed.wait(5)
    assert len(counted) == (kind != "silent"), "what had begun is paid for"


@pytest.mark.spec("L12")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_server_that_sends_us_on_is_not_followed(server: ModelServer, status: int) -> None:
    with ModelServer() as elsewhere:
        to = {"location": f"{elsewhere.url}/v1/messages"}
        server.brain = lambda body, n: Fault("status", status, to)
        with pytest.raises(EngineError) as raised:
            asked(server)
        assert not elsewhere.requests
    assert raised.value.kind == "request"


def test_no_server_at_all_is_told_with_its_address() -> None:
    environment = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "ANTHROPIC_API_KEY": "k"}
    settings = Settings()
    settings.engine.tries = 1
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:1 cannot be reached") as raised:
        asyncio.run(
            AnthropicModel(settings.engine, environment).complete(
                Request("", (Message("user", "Hi"),))
            )
        )
    assert raised.value.kind == "network"


@pytest.mark.spec("L13")
def test_a_key_that_is_set_later_counts_from_the_next_call_on(server: ModelServer) -> None:
    environment = server.environment()

    async def run() -> None:
        model = AnthropicModel(Settings().engine, environment)
        request = Request("", (Message("user", "Hi"),))
        await model.complete(request)
        environment["ANTHROPIC_API_KEY"] = "another-key"
        await model.complete(request)
        await model.close()

    asyncio.run(run())
    assert "key-of-a-test" in str(server.headers[0])
    assert "another-key" in str(server.headers[1])
    assert "key-of-a-test" not in str(server.headers[1])


@pytest.mark.parametrize("key", ["sk-\nx", "sk-\u2026", "\x00"])
def test_a_key_that_can_be_none_is_not_sent_and_not_told(server: ModelServer, key: str) -> None:
    environment = {**server.environment(), "ANTHROPIC_API_KEY": key}
    model = AnthropicModel(Settings().engine, environment)
    with pytest.raises(EngineError) as raised:
        asyncio.run(model.complete(Request("", (Message("user", "Hi"),))))
    assert raised.value.kind == "credentials" and key not in str(raised.value)
    assert not server.requests


@pytest.mark.parametrize("profile", ["", "of-nobody"])
def test_anthropic_itself_wants_a_key_and_a_server_at_home_none(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, profile: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("ANTHROPIC_CONFIG_DIR", raising=False)
    if profile:
        monkeypatch.setenv("ANTHROPIC_PROFILE", profile)
    request = Request("", (Message("user", "Hi"),))

    async def run() -> str:
        model = AnthropicModel(Settings().engine, {"ANTHROPIC_BASE_URL": server.url})
        try:
            return (await model.complete(request)).text
        finally:
            await model.close()

    assert asyncio.run(run()) == "Fine."
    monkeypatch.setattr("ipymemory.messages_api.address.is_anthropic", lambda host: True)
    with pytest.raises(EngineError, match="There is no key") as raised:
        asyncio.run(run())
    assert raised.value.kind == "credentials" and profile in str(raised.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("", "api.anthropic.com"),
        ("http://localhost:11434", "localhost:11434"),
        ("localhost:8080/v1", "localhost:8080"),
        ("https://Gateway.Example.com/v1/", "gateway.example.com"),
        ("http://[::1]:8080", "[::1]:8080"),
        ("http://evil.example#@localhost", "evil.example"),
        ("http://localhost\\@evil.example", "evil.example"),
        ("http://[", ""),
    ],
)
def test_where_it_goes_is_told_from_the_environment(url: str, host: str) -> None:
    assert destination({"ANTHROPIC_BASE_URL": url}) == host


def test_hosts_are_told_apart() -> None:
    assert is_anthropic("api.anthropic.com") and not is_anthropic("api.anthropic.com.evil.org")
    assert is_this_machine("127.0.0.1:80") and is_this_machine("localhost")
    assert is_this_machine("[::1]:80") and is_this_machine("[::1]")
    assert not is_this_machine("[") and not is_this_machine("")
    assert not is_this_machine("localhost.evil.org:80")


# Before the first question


def test_the_sdk_is_ready_before_the_first_question_and_reads_no_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.socket", None)
    thread = sdk.prepare()
    thread.join(30)
    assert not thread.is_alive() and sdk.prepare() is thread
    assert sdk.read_made_up(sdk.loaded()) == 9


def test_an_sdk_that_cannot_be_warmed_up_is_merely_slower(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(anthropic: object) -> int:
        raise RuntimeError("another SDK")

    monkeypatch.setattr(sdk, "read_made_up", fails)
    monkeypatch.setattr(sdk, "_begun", None)
    with caplog.at_level("INFO"):
        sdk.prepare().join(30)
    assert "could not be warmed up" in caplog.text
