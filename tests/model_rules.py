"""What the Messages API refuses, and its newest models above all.

Stricter than the real one in three points, since not every server that speaks the same language is
as patient, and since nothing of ours needs it: roles take turns, a beta is refused, and an answer
that is to come in one piece.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from model_cache import MOST_MARKS, positions

OLD_CORE = {"model", "system", "messages", "tools", "max_tokens", "stream"}
"""What every server that speaks the language knows."""

KNOWN = OLD_CORE | {
    *("cache_control", "container", "diagnostics", "inference_geo", "metadata", "output_config"),
    *("service_tier", "speed", "stop_sequences", "thinking", "tool_choice", "user_profile_id"),
    "workspace_id",
}

_FABLE = ("claude-fable-", "claude-mythos-")
_OWN_THINKING = (
    *("claude-haiku-5-5", "claude-sonnet-5", "claude-opus-5", "claude-opus-4-7"),
    *("claude-opus-4-8", *_FABLE),
)
_ALWAYS_THINKING = ("claude-opus-5-5", "claude-sonnet-5-5", *_FABLE)
_NOT_FORCED = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1", "claude-fable-5-2")
_NOT_BEGUN_FOR = (*_OWN_THINKING, "claude-opus-4-6", "claude-sonnet-4-6")
_BOUND = ("claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5", *_NOT_FORCED[2:])
_ID = re.compile(r"[a-zA-Z0-9_-]{1,128}")


class Refused(Exception):
    """A request that is answered with `status` and a message."""

    def __init__(self, message: str, status: int = 400, kind: str = "invalid_request_error"):
        super().__init__(message)
        self.status, self.kind = status, kind


def check(body: Mapping[str, Any], headers: Mapping[str, str], *, plain: bool) -> None:
    """Raise `Refused` for what would be refused. `plain` for a server of the old core alone."""
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise Refused(f"{name}: Field required")
    if not body.get("stream"):
        raise Refused("stream: everything here is streamed")
    if plain:
        _old_core(body)
    else:
        _access(headers)
        _fields(body)
        _model(body)
        _marks(body)
        _thinking(body)
    _messages(body)
    _calls(body["messages"])


def _access(headers: Mapping[str, str]) -> None:
    if not headers.get("x-api-key") and not headers.get("authorization", "").startswith("Bearer "):
        raise Refused("authentication is required", 401, "authentication_error")
    if "anthropic-version" not in headers:
        raise Refused("anthropic-version: header is required")
    if headers.get("anthropic-beta"):
        raise Refused("anthropic-beta: nothing here may depend on what is not settled yet")


def _old_core(body: Mapping[str, Any]) -> None:
    odd = sorted(set(body) - OLD_CORE)
    if odd or "cache_control" in json.dumps(body):
        raise Refused(f"{odd[0] if odd else 'cache_control'}: unknown")


def _fields(body: Mapping[str, Any]) -> None:
    for name in sorted(set(body) - KNOWN):
        raise Refused(f"{name}: Extra inputs are not permitted")
    if not 0 <= body["max_tokens"] <= 128_000:
        raise Refused("max_tokens: more than the model can write")


def _model(body: Mapping[str, Any]) -> None:
    model = str(body["model"])
    if not model.startswith("claude-"):
        raise Refused(f"model: {model}", 404, "not_found_error")
    thinking = (body.get("thinking") or {}).get("type")
    if thinking == "enabled" and model.startswith(_OWN_THINKING):
        raise Refused('"thinking.type.enabled" is not supported for this model')
    if thinking == "disabled" and model.startswith(_ALWAYS_THINKING):
        raise Refused('"thinking.type.disabled" is not supported for this model')
    forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
    if forced and model.startswith(_NOT_FORCED):
        raise Refused("tool_choice: forced tool use is not supported for this model")
    last = body["messages"][-1]["role"] if body["messages"] else ""
    if last == "assistant" and model.startswith(_NOT_BEGUN_FOR):
        raise Refused("This model does not support assistant message prefill")
    if "effort" in (body.get("output_config") or {}) and "-4-5" in model:
        raise Refused("output_config.effort: not supported for this model")


def _marks(body: Mapping[str, Any]) -> None:
    places = positions(body)
    marked = [each for each in places if each.lifetime]
    automatic = body.get("cache_control")
    used = len(marked)
    if automatic and places:
        lifetime = places[-1].lifetime
        if lifetime and lifetime != automatic.get("ttl", "5m"):
            raise Refused("cache_control: the last block has another ttl")
        used += not lifetime
    if used > MOST_MARKS:
        raise Refused(f"A maximum of {MOST_MARKS} blocks with cache_control may be provided")
    lives = [each.lifetime for each in marked]
    if "5m" in lives and "1h" in lives[lives.index("5m") :]:
        raise Refused("a ttl='1h' cache_control block must not come after a ttl='5m' block")
    for each in marked:
        if "thinking" in each.kind or (each.kind == "text" and not each.block["text"]):
            raise Refused(f"cache_control cannot be set for {each.kind} blocks that are empty")


def _messages(body: Mapping[str, Any]) -> None:
    messages = body["messages"]
    if not messages or messages[0]["role"] != "user" or messages[-1]["role"] != "user":
        raise Refused("messages must begin and end with the user")
    for before, after in pairwise(messages):
        if before["role"] == after["role"]:
            raise Refused("messages: roles must alternate")
    for each in messages:
        if not each["content"]:
            raise Refused("messages: content must not be empty")
    for position in positions(body):
        if position.kind == "text" and not str(position.block["text"]).strip():
            raise Refused("text content blocks must contain non-whitespace text")


def _of(message: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    content = message["content"]
    if isinstance(content, list):
        yield from (each for each in content if each.get("type") == kind)


def _calls(messages: list[Mapping[str, Any]]) -> None:
    """Every call is answered in the message right after it, at its beginning, and nothing else."""
    before: list[str] = []
    for at, message in enumerate(messages):
        answered = [str(each["tool_use_id"]) for each in _of(message, "tool_result")]
        if set(before) - set(answered):
            raise Refused(f"messages.{at}: `tool_use` ids without `tool_result` right after them")
        if set(answered) - set(before) or len(answered) != len(set(answered)):
            raise Refused(f"messages.{at}: unexpected `tool_use_id` in `tool_result` blocks")
        if any(each["type"] != "tool_result" for each in message["content"][: len(answered)]):
            raise Refused(f"messages.{at}: `tool_result` blocks must come first")
        before = [str(each["id"]) for each in _of(message, "tool_use")]
        for each in _of(message, "tool_use"):
            if not _ID.fullmatch(str(each["id"])) or not _ID.fullmatch(str(each["name"])):
                raise Refused(f"messages.{at}: an id or a name that cannot be one")
            if not isinstance(each["input"], dict):
                raise Refused(f"messages.{at}: input: Input should be a valid dictionary")
        if len(before) != len(set(before)):
            raise Refused(f"messages.{at}: `tool_use` ids must be unique")


def signature(body: Mapping[str, Any], upto: int) -> str:
    """Return what binds a thinking block to all that stands before message `upto`."""
    told = hashlib.sha256(str(body["model"]).encode())
    for each in positions({**body, "messages": body["messages"][:upto]}):
        told.update(each.key.encode("utf-8", "surrogatepass"))
    return f"bound-{told.hexdigest()[:24]}"


def _thinking(body: Mapping[str, Any]) -> None:
    if not str(body["model"]).startswith(_BOUND):
        return
    for at, message in enumerate(body["messages"]):
        for each in _of(message, "thinking"):
            given = str(each.get("signature", ""))
            if given.startswith("bound-") and given != signature(body, at):
                raise Refused(f"messages.{at}: this `thinking` block belongs to another beginning")
