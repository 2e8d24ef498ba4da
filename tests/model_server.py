"""A server that speaks the Anthropic Messages API on a real loopback socket, for tests.

`brain` says what a request is answered with: a text, a list of blocks, or a `Fault`. It streams
as the real one does, caches prompts by their exact beginning (`model_cache`), and refuses what
the newest models refuse (`model_rules`). `plain` is a server that knows the old core alone:
neither caching nor count_tokens.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import model_rules
from model_cache import PromptCache, size, tokens
from model_rules import Refused

MIDDLE = {"eof", "torn", "reset", "sse_error", "hang_mid", "half_tool", "odd"}
"""Faults that come after the first piece of an answer."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong: a status with headers, or something that befalls the connection.

    Before a word: ``status``, ``silent`` (not even headers), ``refused`` (reset at once), ``html``,
    ``garbage`` (both with status 200), ``hang`` (right after the message began).
    After the first piece: ``eof`` (a clean end without ``message_stop``), ``torn`` (an end within
    the transfer), ``reset``, ``sse_error``, ``hang_mid``, ``half_tool`` (``eof`` within a tool's
    input), ``odd`` (`events` come in between).
    To its end, but wrong: ``answer`` (of `said`), ``empty``, ``refusal``, ``cut`` (max_tokens),
    ``no_stop_reason``.
    """

    kind: str
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "made to fail"
    said: Any = "Half of it and the rest."
    """What would have been answered."""
    events: tuple[Any, ...] = ()


Brain = Callable[[dict[str, Any], int], Any]


class ModelServer:
    """Serves from `with` to its end; what is named here may be looked at and set meanwhile.

    `clock` is what the prompt cache lives by, in seconds.
    """

    def __init__(
        self,
        brain: Brain = lambda body, n: "Fine.",
        *,
        plain: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.brain = brain
        self.plain = plain
        self.faults: list[Fault] = []
        """Befall the next requests, one each; only then the brain is asked."""
        self.requests: list[dict[str, Any]] = []
        """Every body that came, parsed."""
        self.headers: list[dict[str, str]] = []
        self.usages: list[dict[str, Any]] = []
        """The usage of every answer that began."""
        self.refusals: list[str] = []
        """Why requests were refused as none of the API's."""
        self.paths: list[str] = []
        """The path of every request."""
        self.pause = 0.0
        """Seconds between two pieces of a text."""
        self.first_piece_at = 0.0
        self.closed = threading.Event()
        """Set when a client went away in the middle of a stream."""
        self.over = threading.Event()
        self.cache = PromptCache(clock)
        self.lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                _Exchange(server, self).run()

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *args: None  # type: ignore[method-assign]
        self.host = f"127.0.0.1:{self._http.server_port}"
        self.url = f"http://{self.host}"

    def __enter__(self) -> ModelServer:
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *args: Any) -> None:
        self.over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def environment(self) -> dict[str, str]:
        """Return the environment that leads here."""
        return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "key-of-a-test"}


class _Exchange:
    """One request and what it is answered with."""

    def __init__(self, server: ModelServer, http: BaseHTTPRequestHandler) -> None:
        self.server = server
        self.http = http
        self.body: dict[str, Any] = {}

    def run(self) -> None:
        """Answer the request."""
        http, server = self.http, self.server
        self.body = json.loads(http.rfile.read(int(http.headers["content-length"])))
        headers = {key.lower(): value for key, value in http.headers.items()}
        path = http.path.partition("?")[0]
        server.paths.append(path)
        if path == "/v1/messages/count_tokens" and not server.plain:
            self.send(200, {"input_tokens": size(self.body)})
            return
        if path != "/v1/messages":
            self.fail(404, "not_found_error", "there is no such path")
            return
        with server.lock:
            server.requests.append(self.body)
            server.headers.append(headers)
            number = len(server.requests)
            fault = server.faults.pop(0) if server.faults else None
        try:
            model_rules.check(self.body, headers, plain=server.plain)
        except Refused as refused:
            server.refusals.append(str(refused))
            self.fail(refused.status, refused.kind, str(refused))
            return
        said = fault or server.brain(self.body, number)
        if not isinstance(said, Fault) or not self.failed(said):
            self.answer(said)

    def failed(self, fault: Fault) -> bool:
        """Return whether `fault` befell the request before an answer began."""
        match fault.kind:
            case "status":
                self.fail(fault.status, "made_error", fault.message, fault.headers)
            case "html":
                self.send(200, b"<html>hello</html>", {"content-type": "text/html"})
            case "garbage":
                self.send(200, b"\x00\xff{{{", {"content-type": "text/plain"})
            case "silent":
                self.wait_until_gone()
            case "refused":
                self.reset()
            case _:
                return False
        return True

    def answer(self, said: Any) -> None:
        """Stream what was said, and account for it."""
        server = self.server
        if server.plain:
            usage, begun = {"input_tokens": size(self.body)}, lambda: None
        else:
            with server.lock:
                usage, begun = server.cache.account(self.body)
        server.usages.append(usage)
        begun()
        self.http.send_response(200)
        self.http.send_header("content-type", "text/event-stream; charset=utf-8")
        self.http.send_header("transfer-encoding", "chunked")
        self.http.end_headers()
        try:
            for event in answered(self.body, said, usage):
                if not self.streamed(event):
                    return
            self.http.wfile.write(b"0\r\n\r\n")
        except OSError:
            server.closed.set()
            self.http.close_connection = True

    def streamed(self, event: Any) -> bool:
        """Send one event; return False when it was the connection's end."""
        kind = event.get("type") if isinstance(event, dict) else "message_delta"
        if kind == "torn":
            self.http.close_connection = True
            return False
        if kind in ("reset", "hang"):
            self.reset() if kind == "reset" else self.wait_until_gone()
            return False
        data = f"event: {kind}\ndata: {json.dumps(event)}\n\n".encode()
        self.http.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.http.wfile.flush()
        if kind == "content_block_delta":
            self.server.first_piece_at = self.server.first_piece_at or time.time()
            time.sleep(self.server.pause)
        return True

    def reset(self) -> None:
        """End the connection with a reset."""
        linger = struct.pack("ii", 1, 0)
        self.http.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.http.close_connection = True
        self.http.connection.close()

    def wait_until_gone(self) -> None:
        """Say nothing more until the client has gone, or the server."""
        self.http.close_connection = True
        self.http.connection.settimeout(0.05)
        while not self.server.over.is_set():
            try:
                if not self.http.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            return
        self.server.closed.set()

    def fail(
        self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer with an error of the API's."""
        error = {"type": "error", "error": {"type": kind, "message": message}}
        self.send(status, error | {"request_id": "req_1"}, headers or {})

    def send(self, status: int, said: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer with bytes, or with anything else as JSON."""
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.http.send_response(status)
        for name, value in ({"content-type": "application/json"} | dict(headers or {})).items():
            self.http.send_header(name, value)
        self.http.send_header("content-length", str(len(data)))
        self.http.end_headers()
        self.http.wfile.write(data)


def tool(
    name: str, given: Mapping[str, Any], id: str = "call_1", *, raw: str | None = None
) -> dict[str, Any]:
    """Return a tool call as a brain gives it; `raw` is sent for its input as it stands."""
    block = {"type": "tool_use", "id": id, "name": name, "input": dict(given)}
    return block if raw is None else block | {"raw": raw}


def thinking(text: str = "") -> dict[str, Any]:
    """Return a thinking block; the server binds it to all that stands before it."""
    return {"type": "thinking", "thinking": text}


def answered(
    body: Mapping[str, Any], said: Any, usage: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield what is streamed for what a brain said; ends of the connection are events too."""
    fault = said if isinstance(said, Fault) else Fault("")
    said = fault.said if isinstance(said, Fault) else said
    if fault.kind == "half_tool":
        said = [tool("Write", {"path": "a.md", "text": "all of it"})]
    blocks = [{"type": "text", "text": said}] if isinstance(said, str) else list(said)
    blocks = [] if fault.kind == "empty" else blocks
    counted = sum(tokens(each) for each in blocks)
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    message |= {"model": body["model"], "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": message | {"usage": {**usage, "output_tokens": 1}}}
    yield {"type": "ping"}
    if fault.kind == "hang":
        yield {"type": "hang"}
        return
    for at, block in enumerate(blocks):
        begun, pieces = _pieces(body, block)
        yield {"type": "content_block_start", "index": at, "content_block": begun}
        for n, piece in enumerate(pieces):
            yield {"type": "content_block_delta", "index": at, "delta": piece}
            if n == (fault.kind == "half_tool") and fault.kind in MIDDLE:
                yield from _broken(fault)
                if fault.kind != "odd":
                    return
        yield {"type": "content_block_stop", "index": at}
    called = any(each["type"] == "tool_use" for each in blocks)
    stops = {"refusal": "refusal", "cut": "max_tokens", "no_stop_reason": None}
    stop = stops.get(fault.kind, "tool_use" if called else "end_turn")
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": counted}}
    yield {"type": "message_stop"}


def _broken(fault: Fault) -> Iterator[Any]:
    match fault.kind:
        case "reset" | "torn":
            yield {"type": fault.kind}
        case "hang_mid":
            yield {"type": "hang"}
        case "sse_error":
            error = {"type": "overloaded_error", "message": "Overloaded"}
            yield {"type": "error", "error": error}
        case "odd":
            yield from fault.events


def _pieces(
    body: Mapping[str, Any], block: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return how a block begins, and the pieces that follow: words, or halves of an input."""
    if block["type"] == "thinking":
        bound = block.get("signature") or model_rules.signature(body, len(body["messages"]))
        pieces = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        signed = {"type": "signature_delta", "signature": bound}
        return {**block, "thinking": "", "signature": ""}, [*pieces, signed]
    if block["type"] == "text":
        words = block["text"].split(" ")
        told = [word if not n else f" {word}" for n, word in enumerate(words)]
        return {**block, "text": ""}, [{"type": "text_delta", "text": each} for each in told]
    raw = block.get("raw", json.dumps(block["input"]))
    begun = {key: each for key, each in block.items() if key != "raw"} | {"input": {}}
    halves = ["", raw[: len(raw) // 2], raw[len(raw) // 2 :]]
    return begun, [{"type": "input_json_delta", "partial_json": each} for each in halves]
