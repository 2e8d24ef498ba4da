"""The seam to whatever writes: one async `complete`, and the values that go through it.

An engine gets a `Request` and answers with a `Reply` that may hold tool calls; the agent asks
permission for each, carries it out and calls again. A model reads `system` and `messages`; the
extractive engine reads `material`, the same facts before they were put into words. So the
fence, the undo, the progress and the tests are the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ipymemory.turns import Message, ToolCall


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as an engine sees it: name, what it does, JSON Schema of its input."""

    name: str
    description: str
    schema: Mapping[str, Any]
    reads: bool = False
    """Whether it only looks: such a tool may take seconds, and is left behind by a run that is
    stopped meanwhile. Nothing of this is sent."""


@dataclass(frozen=True, slots=True)
class Request:
    """What an engine is asked: the conversation so far and the material it rests on."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    material: object | None = None
    breakpoints: tuple[int, ...] = ()
    """Messages (by index) up to which the provider is to cache what it read; the end of the
    system prompt is one in any case, and the last message unless `once`. At most two."""
    once: bool = False
    """Whether nobody reads the last message again, so that caching it would only cost more."""
    model: str = ""
    """The model by its provider's name; empty for the one that the engine was set up with."""
    max_tokens: int = 0
    """Longest answer; 0 for the engine's own limit."""
    job: str = ""
    """The job that asks, for the bill; nothing of it is sent."""
    hear: Callable[[str], None] | None = field(default=None, compare=False)
    """Called with each piece of text as it streams in, on the loop that runs the request."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one answer cost in tokens. `input` is what neither came from nor went to the cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    """Written to the cache for five minutes."""
    cache_write_hour: int = 0
    """Written to the cache for an hour."""

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt, whoever paid for them."""
        return self.input + self.cache_read + self.cache_write + self.cache_write_hour

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.cache_write_hour + other.cache_write_hour,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """What an engine answers: words, tool calls, or both. No calls ends the run."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    """None where the engine does not count."""
    blocks: tuple[Mapping[str, Any], ...] = ()
    """The answer as its provider wrote it, to be sent back as it came."""
    stop: str = ""
    """Why the answer ended, in the provider's word: ``end_turn``, ``tool_use``, ``refusal`` …"""
    model: str = ""
    """The model that answered."""


class Model(Protocol):
    """An engine."""

    @property
    def name(self) -> str:
        """The engine's name as people type it."""

    async def complete(self, request: Request) -> Reply:
        """Answer one request; raises `EngineError` when it cannot."""
