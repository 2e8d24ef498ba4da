"""The engine behind the Messages API: the real SDK against a server on a real socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from model_server import Fault, ModelServer, tool

from ipymemory.config import Settings
from ipymemory.errors import EngineError
from ipymemory.messages_api import destination, is_anthropic, is_this_machine
from ipymemory.messages_api.engine import AnthropicModel
from ipymemory.models import Reply, Request, ToolSpec, Usage
from ipymemory.turns import Message, ToolCall, ToolResult

READ = ToolSpec("Read", "Read a file.", {"type": "object", "properties": {}})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def asked(
    server: ModelServer,
    request: Request | None = None,
    metered: Callable[[str, Usage], None] = lambda model, usage: None,
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
    reply = asked(server, request, lambda model, usage: counted.append((model, usage)))
    assert heard == ["It", " is", " done."]
    assert (reply.text, reply.stop, reply.calls) == ("It is done.", "end_turn", ())
    assert reply.usage is not None and reply.usage.output == 12
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
        (Fault("html"), "protocol", 2),
        (Fault("garbage"), "protocol", 2),
        (Fault("eof"), "network", 2),
        (Fault("reset"), "network", 2),
        (Fault("sse_error"), "overloaded", 2),
        (Fault("half_tool"), "network", 2),
        (Fault("empty"), "protocol", 2),
        (Fault("refusal"), "refusal", 1),
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
    assert str(raised.value).endswith(".")


def test_an_absurd_wait_is_handed_on_and_not_waited_for(server: ModelServer) -> None:
    server.brain = lambda body, n: Fault("status", 429, {"retry-after": "4233600"})
    began = time.monotonic()
    with pytest.raises(EngineError) as raised:
        asked(server)
    assert raised.value.wait == 4233600
    assert time.monotonic() - began < 5


def test_a_passing_failure_is_overcome(server: ModelServer) -> None:
    server.brain = lambda body, n: Fault("reset") if n == 1 else "There."
    assert asked(server, wait_most=1.0).text == "There."


def test_a_server_that_says_nothing_is_given_up(server: ModelServer) -> None:
    server.brain = lambda body, n: Fault("hang")
    with pytest.raises(EngineError) as raised:
        asked(server, tries=1, answer_seconds=1.0)
    assert raised.value.kind == "time"
    assert "Engine.answer_seconds" in str(raised.value)


def test_a_call_that_is_cancelled_closes_its_connection_at_once(server: ModelServer) -> None:
    server.brain = lambda body, n: Fault("hang")

    async def run() -> float:
        model = AnthropicModel(Settings().engine, server.environment())
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


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("", "api.anthropic.com"),
        ("http://localhost:11434", "localhost:11434"),
        ("localhost:8080/v1", "localhost:8080"),
        ("https://Gateway.Example.com/v1/", "gateway.example.com"),
        ("http://[", ""),
    ],
)
def test_where_it_goes_is_told_from_the_environment(url: str, host: str) -> None:
    assert destination({"ANTHROPIC_BASE_URL": url}) == host


def test_hosts_are_told_apart() -> None:
    assert is_anthropic("api.anthropic.com") and not is_anthropic("api.anthropic.com.evil.org")
    assert is_this_machine("127.0.0.1:80") and is_this_machine("localhost")
    assert not is_this_machine("localhost.evil.org:80")
