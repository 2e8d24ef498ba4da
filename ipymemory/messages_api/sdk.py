"""The SDK, imported and warmed up: a second of work that nobody should wait for with a question.

Importing it takes a second or two, and what it reads streams with is built with the first stream,
another 80 ms between the server's first word and the reader's. So a made-up stream is read once,
through a transport that leads nowhere; it runs beside a request, or before there is one.
"""

from __future__ import annotations

import importlib
import json
import logging
import threading
from typing import Any

log = logging.getLogger(__name__)

_LOCK = threading.Lock()
_begun: threading.Thread | None = None

_USAGE = {"input_tokens": 1, "output_tokens": 1}

_MADE_UP: tuple[dict[str, Any], ...] = (
    {
        "type": "message_start",
        "message": {
            **{"id": "msg_0", "type": "message", "role": "assistant", "model": "none"},
            **{"content": [], "stop_reason": None, "stop_sequence": None, "usage": _USAGE},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "toolu_0", "name": "none", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": "{}"},
    },
    {"type": "content_block_stop", "index": 1},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
)


def prepare() -> threading.Thread:
    """Import and warm up the SDK in a thread, once in a process; return that thread."""
    global _begun
    with _LOCK:
        if _begun is None:
            _begun = threading.Thread(target=_ready, name="ipymemory-sdk", daemon=True)
            _begun.start()
        return _begun


def loaded() -> Any:
    """Return the module, imported; what is still to warm up goes on beside.

    Raises `ImportError` where the SDK is not installed.
    """
    module = importlib.import_module("anthropic")
    prepare()
    return module


def read_made_up(anthropic: Any) -> int:
    """Read a made-up stream through the SDK; return how many events it had. Opens no socket."""
    # httpx, or httpx2 since version 1: what its client is made of.
    httpx = importlib.import_module(anthropic.DefaultHttpxClient.__mro__[1].__module__)
    stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in _MADE_UP)

    def answer(request: Any) -> Any:
        kind = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=kind, text=stream)

    with anthropic.Anthropic(
        api_key="none",
        base_url="http://made-up.invalid",
        http_client=anthropic.DefaultHttpxClient(transport=httpx.MockTransport(answer)),
        max_retries=0,
    ) as client:
        messages = [{"role": "user", "content": "a"}]
        events = client.messages.create(
            model="none", max_tokens=1, messages=messages, stream=True, timeout=10
        )
        return sum(bool(each.model_dump(exclude_none=True, warnings=False)) for each in events)


def _ready() -> None:
    try:
        read_made_up(importlib.import_module("anthropic"))
    except Exception:
        # What is foreign may fail in any way; then the first answer is merely later.
        log.info("the SDK could not be warmed up", exc_info=True)
