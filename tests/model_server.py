"""A server that speaks the Anthropic Messages API on a real loopback socket, for tests.

`brain` says what a request is answered with: a text, a list of blocks, or a `Fault`. It streams
as the real one does, caches prompts by their exact beginning up to each breakpoint, and refuses
what the newest models refuse. `plain` is a server that knows the old core alone.
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
from itertools import pairwise
from typing import Any

MIN_PREFIX = 512
"""Tokens below which nothing is cached, for the models of the 5.5 family."""

REFUSED = {"temperature", "top_p", "top_k", "thread", "betas"}
OLD_CORE = {"model", "system", "messages", "tools", "max_tokens", "stream"}


@dataclass(frozen=True)
class Fault:
    """What goes wrong: a status with headers, or something that befalls the stream.

    `kind`: ``status``, ``eof`` and ``reset`` (in the middle), ``html``, ``garbage``,
    ``sse_error``, ``hang``, ``half_tool``, ``empty``, ``refusal``.
    """

    kind: str
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "made to fail"


Brain = Callable[[dict[str, Any], int], Any]


class ModelServer:
    """Serves from `with` to its end. `requests` holds every body that came, parsed."""

    def __init__(self, brain: Brain = lambda body, n: "Fine.", *, plain: bool = False) -> None:
        self.brain = brain
        self.plain = plain
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.pause = 0.0
        """Seconds between two pieces of a text."""
        self.first_piece_at = 0.0
        self.closed = threading.Event()
        """Set when a client went away in the middle of a stream."""
        self.over = threading.Event()
        self.cached: set[str] = set()
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                server.answer(self)

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

    def answer(self, http: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        body = json.loads(http.rfile.read(int(http.headers["content-length"])))
        if http.path != "/v1/messages":
            _status(http, 404, {}, "there is no such path")
            return
        with self._lock:
            self.requests.append(body)
            self.headers.append({key.lower(): value for key, value in http.headers.items()})
            number = len(self.requests)
        wrong = self._wrong(body)
        if wrong:
            _status(http, 400, {}, wrong)
            return
        said = self.brain(body, number)
        if isinstance(said, Fault) and said.kind == "status":
            _status(http, said.status, said.headers, said.message)
            return
        if isinstance(said, Fault) and said.kind in ("html", "garbage"):
            data = b"<html>hello</html>" if said.kind == "html" else b"\x00\xff{{{"
            http.send_response(200)
            http.send_header("content-type", "text/html" if said.kind == "html" else "text/plain")
            http.send_header("content-length", str(len(data)))
            http.end_headers()
            http.wfile.write(data)
            return
        self._stream(http, said, self._usage(body))

    def _stream(self, http: BaseHTTPRequestHandler, said: Any, usage: dict[str, int]) -> None:
        http.send_response(200)
        http.send_header("content-type", "text/event-stream")
        http.send_header("connection", "close")
        http.end_headers()
        http.close_connection = True
        try:
            for event in events(said, usage):
                if event == {"type": "reset"}:
                    linger = struct.pack("ii", 1, 0)
                    http.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    http.connection.close()
                    return
                if event == {"type": "hang"}:
                    self._until_gone(http)
                    return
                http.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                http.wfile.flush()
                if event["type"] == "content_block_delta":
                    self.first_piece_at = self.first_piece_at or time.time()
                    time.sleep(self.pause)
        except OSError:
            self.closed.set()

    def _until_gone(self, http: BaseHTTPRequestHandler) -> None:
        http.connection.settimeout(0.05)
        while not self.over.is_set():
            try:
                if not http.connection.recv(1):
                    self.closed.set()
                    return
            except TimeoutError:
                continue
            except OSError:
                self.closed.set()
                return

    def _wrong(self, body: dict[str, Any]) -> str:
        if odd := REFUSED & set(body):
            return f"{sorted(odd)[0]}: extra inputs are not permitted"
        if self.plain and (odd := set(body) - OLD_CORE):
            return f"{sorted(odd)[0]}: unknown"
        messages = body["messages"]
        if self.plain and "cache_control" in json.dumps(messages):
            return "cache_control: unknown"
        if not messages or messages[0]["role"] != "user" or messages[-1]["role"] != "user":
            return "messages must begin and end with the user"
        for before, after in pairwise(messages):
            if before["role"] == after["role"]:
                return "roles must alternate"
        if any(not each["content"] for each in messages):
            return "messages must not be empty"
        return ""

    def _usage(self, body: dict[str, Any]) -> dict[str, int]:
        """Count tokens as bytes / 3, and what of them the cache holds, by exact beginning."""
        blocks = [("tools", each) for each in body.get("tools", ())]
        system = body.get("system", "")
        blocks += [("system", each) for each in ([system] if isinstance(system, str) else system)]
        for each in body["messages"]:
            content = each["content"]
            parts = [content] if isinstance(content, str) else content
            blocks += [(each["role"], part) for part in parts]
        told, size, ends = "", 0, []
        for role, block in blocks:
            bare = block
            if isinstance(block, dict):
                bare = {key: value for key, value in block.items() if key != "cache_control"}
            text = role + json.dumps(bare)
            told += text
            size += -(-len(text.encode()) // 3)
            ends.append((told, size, isinstance(block, dict) and "cache_control" in block))
        if self.plain:
            return {"input_tokens": size}
        marks = [at for at, (_, _, marked) in enumerate(ends) if marked]
        with self._lock:
            read = 0
            for mark in marks:
                for at in range(mark, max(-1, mark - 20), -1):
                    if ends[at][0] in self.cached:
                        read = max(read, ends[at][1])
                        break
            written = 0
            for at in marks:
                if ends[at][1] >= MIN_PREFIX:
                    self.cached.add(ends[at][0])
                    written = max(written, ends[at][1])
        written = max(0, written - read)
        return {
            "input_tokens": size - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
        }


def tool(name: str, given: Mapping[str, Any], id: str = "call_1") -> dict[str, Any]:
    """Return a tool call as a brain gives it."""
    return {"type": "tool_use", "id": id, "name": name, "input": dict(given)}


def events(said: Any, usage: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Yield what is streamed for what a brain said."""
    fault = said.kind if isinstance(said, Fault) else ""
    blocks = [] if fault == "empty" else [{"type": "text", "text": "Half of it and the rest."}]
    if fault == "half_tool":
        blocks = [tool("Write", {"path": "a.md", "text": "all of it"})]
    elif not fault:
        blocks = [{"type": "text", "text": said}] if isinstance(said, str) else list(said)
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    message |= {"model": "made-up", "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": message | {"usage": usage | {"output_tokens": 1}}}
    if fault == "hang":
        yield {"type": "hang"}
    calls = 0
    for at, block in enumerate(blocks):
        empty = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield {"type": "content_block_start", "index": at, "content_block": block | empty}
        if block["type"] == "text":
            words = block["text"].split(" ")
            pieces = [word if not n else f" {word}" for n, word in enumerate(words)]
            name, key = "text_delta", "text"
        else:
            calls += 1
            told = json.dumps(block["input"])
            pieces, name, key = [told[:9], told[9:]], "input_json_delta", "partial_json"
        for n, piece in enumerate(pieces):
            yield {
                "type": "content_block_delta",
                "index": at,
                "delta": {"type": name, key: piece},
            }
            if n == 0 and fault in ("eof", "reset", "sse_error", "half_tool"):
                if fault == "reset":
                    yield {"type": "reset"}
                if fault == "sse_error":
                    error = {"type": "overloaded_error", "message": "Overloaded"}
                    yield {"type": "error", "error": error}
                return
        yield {"type": "content_block_stop", "index": at}
    stop = "refusal" if fault == "refusal" else "tool_use" if calls else "end_turn"
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 12}}
    yield {"type": "message_stop"}


def _status(
    http: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str], message: str
) -> None:
    error = {"type": "error", "error": {"type": "made_error", "message": message}}
    data = json.dumps(error).encode()
    http.send_response(status)
    http.send_header("content-type", "application/json")
    http.send_header("content-length", str(len(data)))
    for name, value in headers.items():
        http.send_header(name, value)
    http.end_headers()
    http.wfile.write(data)
