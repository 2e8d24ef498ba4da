"""What a server streams, gathered into a reply; half a stream is never taken for a whole one.

The SDK would let a stream that just ends pass for an answer, and parse half of a tool's input as
if it were all. So the events are put together here: without ``message_stop`` there is no reply,
and a tool's input is parsed once, whole, and must be an object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ipymemory.errors import EngineError
from ipymemory.messages_api.failures import ANOTHER, LATER, NO_SERVER_OF_ITS_KIND, NOT_OF_THE_API
from ipymemory.models import Reply, Usage
from ipymemory.turns import ToolCall

MOST_CHARACTERS = 4_000_000
"""Of one reply: more than any model writes in one answer (128,000 tokens)."""

_CUT_OFF = ("max_tokens", "model_context_window_exceeded")
"""Why an answer ended that was not at its end."""


def told(event: Any) -> Mapping[str, Any]:
    """Return an event of a stream as JSON values; raises `EngineError` where it is none.

    The SDK checks nothing of what it reads; what is no object it hands on as it is.
    """
    if not hasattr(event, "model_dump"):
        raise EngineError(NOT_OF_THE_API, "protocol")
    found: Mapping[str, Any] = event.model_dump(exclude_none=True, warnings=False)
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Halves of characters can be neither shown, written nor sent back.
        return _object(_whole_characters(found))
    return found


class Gathered:
    """One reply as it comes. `hear` gets each piece of text."""

    def __init__(self, hear: Callable[[str], None] | None = None) -> None:
        self._hear = hear
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, list[str]] = {}
        self._usage: dict[str, Any] = {}
        self._model = ""
        self._stop = ""
        self._begun = self._ended = False
        self._size = 0

    def take(self, event: Mapping[str, Any]) -> None:
        """Take one event; raises `EngineError` for what cannot be part of a reply."""
        kind = event.get("type")
        if kind == "message_start":
            message = _object(event.get("message"))
            self._begun = True
            self._model = str(message.get("model") or "")
            self._count(message.get("usage"))
        elif kind == "content_block_start":
            block = dict(_object(event.get("content_block")))
            self._blocks[_index(event)] = block
            self._grow(len(str(block)))
        elif kind == "content_block_delta":
            self._add(_index(event), _object(event.get("delta")))
        elif kind == "message_delta":
            self._stop = str(_object(event.get("delta")).get("stop_reason") or "")
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self._ended = True
        elif kind == "error":
            error = _object(event.get("error"))
            told = str(error.get("message") or "it did not say why").rstrip(".")
            raise EngineError(f"The server broke off: {told}. {LATER}", "overloaded")

    def reply(self) -> Reply:
        """Return the whole reply; raises `EngineError` when it is none."""
        if not self._begun:
            raise EngineError(NOT_OF_THE_API, "protocol")
        if not self._ended:
            said = "The server's answer broke off in the middle."
            raise EngineError(f"{said} {LATER}", "network")
        if self._stop == "refusal":
            raise EngineError(
                "The model refused to answer. Ask in other words, or set another Engine.model.",
                "refusal",
            )
        if not self._stop:
            said = "The server did not say why its answer in the Messages API ended."
            raise EngineError(f"{said} {NO_SERVER_OF_ITS_KIND}", "protocol")
        every = [self._whole(at) for at in sorted(self._blocks)]
        # A server refuses to be told of words that are none.
        blocks = [each for each in every if each["type"] != "text" or each["text"].strip()]
        text = "".join(each["text"] for each in blocks if each["type"] == "text")
        calls = tuple(
            ToolCall(each["id"], each["name"], each["input"])
            for each in blocks
            if each["type"] == "tool_use"
        )
        if not text.strip() and not calls:
            if self._stop in _CUT_OFF:
                raise EngineError(
                    "The answer's room was used up before a word. Raise Engine.answer_tokens.",
                    "too_long",
                )
            said = "The server answered without a word."
            raise EngineError(f"{said} {ANOTHER}", "protocol")
        return Reply(text, calls, self.usage, tuple(blocks), self._stop, self._model)

    @property
    def usage(self) -> Usage | None:
        """What was counted so far, also of a reply that broke off; None where nothing was."""
        told = self._usage
        if not told:
            return None
        written = told.get("cache_creation")
        hour = _number(_object(written).get("ephemeral_1h_input_tokens")) if written else 0
        return Usage(
            _number(told.get("input_tokens")),
            _number(told.get("output_tokens")),
            _number(told.get("cache_read_input_tokens")),
            max(0, _number(told.get("cache_creation_input_tokens")) - hour),
            hour,
        )

    def _add(self, at: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks.setdefault(at, {"type": "text", "text": ""})
        kind = delta.get("type")
        name = {"text_delta": "text", "thinking_delta": "thinking"}.get(str(kind))
        if kind == "input_json_delta":
            piece = str(delta.get("partial_json") or "")
            self._inputs.setdefault(at, []).append(piece)
        elif kind == "signature_delta":
            piece = str(delta.get("signature") or "")
            block["signature"] = str(block.get("signature") or "") + piece
        elif name:
            piece = str(delta.get(name) or "")
            block[name] = str(block.get(name) or "") + piece
            if name == "text" and piece and self._hear is not None:
                self._hear(piece)
        else:
            return
        self._grow(len(piece))

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MOST_CHARACTERS:
            raise EngineError(f"The server's answer does not come to an end. {ANOTHER}", "protocol")

    def _whole(self, at: int) -> dict[str, Any]:
        block = self._blocks[at]
        block["type"] = str(block.get("type"))
        if block["type"] == "text":
            block["text"] = str(block.get("text") or "")
        if block["type"] != "tool_use":
            return block
        if not (isinstance(block.get("id"), str) and isinstance(block.get("name"), str)):
            raise EngineError(
                f"A tool call of the model had no id or no name. {ANOTHER}", "protocol"
            )
        told = "".join(self._inputs.get(at, ()))
        cut_off = self._stop in _CUT_OFF and at == max(self._blocks)
        try:
            if cut_off and not told.strip():
                raise ValueError("nothing of the input came")
            value = json.loads(told) if told.strip() else block.get("input") or {}
            json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            what = "A tool call of the model came incomplete."
            if cut_off:
                raise EngineError(f"{what} Raise Engine.answer_tokens.", "too_long") from error
            raise EngineError(f"{what} {ANOTHER}", "protocol") from error
        if not isinstance(value, dict):
            said = "A tool call of the model had no input that is one."
            raise EngineError(f"{said} {ANOTHER}", "protocol")
        block["input"] = value
        return block

    def _count(self, usage: object) -> None:
        if isinstance(usage, Mapping):
            self._usage.update({key: each for key, each in usage.items() if each is not None})


def _whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole_characters(each) for each in value]
    if isinstance(value, Mapping):
        return {_whole_characters(key): _whole_characters(each) for key, each in value.items()}
    return value


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _index(event: Mapping[str, Any]) -> int:
    """Return the place of a block; the first where none is named."""
    at = event.get("index", 0)
    if not isinstance(at, int) or at < 0:
        raise EngineError(NOT_OF_THE_API, "protocol")
    return at


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
