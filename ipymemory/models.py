"""The seam to whatever writes: one async `complete`, and the values that go through it.

An engine gets a `Request` and answers with a `Reply` that may hold tool calls; the agent asks
permission for each, carries it out and calls again. A model reads `system` and `messages`; the
extractive engine reads `material`, the same facts before they were put into words. So the
fence, the undo, the progress and the tests are the same for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ipymemory.turns import Message, ToolCall


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as an engine sees it: name, what it does, JSON Schema of its input."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """What an engine is asked: the conversation so far and the material it rests on."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    material: object | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What an engine answers: words, tool calls, or both. No calls ends the run."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)


class Model(Protocol):
    """An engine."""

    @property
    def name(self) -> str:
        """The engine's name as people type it."""

    async def complete(self, request: Request) -> Reply:
        """Answer one request; raises `EngineError` when it cannot."""
