"""A request as it goes over the line.

To Anthropic's own host cache breakpoints and the effort are sent too; to every other only the old
core: model, system, messages, tools, max_tokens, stream. No sampling parameter is ever sent, since
the newest models refuse them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ipymemory.models import Request, ToolSpec
from ipymemory.turns import Message

_CACHED = {"cache_control": {"type": "ephemeral"}}

_MOST_BREAKPOINTS = 2
"""Of a request's own: a server takes four, and the system prompt and the last message have one."""

_HAS_EFFORT = re.compile(r"claude-\w+-5(?:-\d+)?$")
"""Models that are known to take an effort."""


def arguments(
    request: Request, *, model: str, max_tokens: int, effort: str, full: bool
) -> dict[str, Any]:
    """Return the keyword arguments for the SDK's ``messages.create``.

    `full` for a server that takes more than the old core.
    """
    name = request.model or model
    sent: dict[str, Any] = {
        "model": name,
        "max_tokens": request.max_tokens or max_tokens,
        "messages": _messages(request, full),
        "stream": True,
    }
    if request.system:
        block = {"type": "text", "text": request.system}
        sent["system"] = [block | _CACHED] if full else request.system
    if request.tools:
        sent["tools"] = [_tool(each) for each in request.tools]
    if full and effort and _HAS_EFFORT.match(name):
        sent["extra_body"] = {"output_config": {"effort": effort}}
    return sent


def _messages(request: Request, full: bool) -> list[dict[str, Any]]:
    """Return the messages with neighbours of one role in one, as every server wants them."""
    marked = set()
    if full and request.messages:
        count = len(request.messages)
        chosen = [each for each in request.breakpoints if 0 <= each < count - 1]
        marked = set(chosen[-_MOST_BREAKPOINTS:])
        if not request.once:
            marked.add(count - 1)
    found: list[dict[str, Any]] = []
    for at, message in enumerate(request.messages):
        content = list(_content(message))
        if at in marked:
            _mark(content)
        if found and found[-1]["role"] == message.role:
            found[-1]["content"] += content
        elif content:
            found.append({"role": message.role, "content": content})
    return found


def _mark(content: list[dict[str, Any]]) -> None:
    """Mark the last block that may be marked; thinking may not."""
    for at in range(len(content) - 1, -1, -1):
        if "thinking" not in str(content[at].get("type")):
            content[at] = content[at] | _CACHED
            return


def _content(message: Message) -> Iterable[dict[str, Any]]:
    if message.blocks:
        yield from (dict(each) for each in message.blocks)
        return
    for result in message.results:
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": result.id,
            "content": result.text or "(nothing)",
        }
        yield block | ({"is_error": True} if result.refused else {})
    if message.text:
        yield {"type": "text", "text": message.text}
    for call in message.calls:
        given: Mapping[str, Any] = call.input
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(given)}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "input_schema": dict(spec.schema)}
