"""What stays when a conversation grows too long: notes and the newest turns, without a model.

The kept tail begins after the last turn that the notes cover and reaches back until it holds a few
turns and some thousand tokens (behaviour S12). What the notes do not cover always stays, and an
ask stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ipymemory import markdown
from ipymemory.context.rendering import inside
from ipymemory.models import ToolSpec
from ipymemory.turns import Message, tokens


@dataclass(frozen=True, slots=True)
class Piece:
    """One entry, or one ask with its answer, as messages. `size` is in tokens.

    `at` is where it came to be told, in bytes of the transcript.
    """

    at: int
    id: str
    messages: tuple[Message, ...]
    size: int
    cell: bool = True
    """Whether it is a turn that `kept_turns` counts."""
    news: bool = False
    """Whether it tells of memories; a compaction reads the index anew instead."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a compaction keeps: turns, tokens at least, and tokens of covered turns at most."""

    turns: int
    least: int
    most: int


def kept(pieces: Sequence[Piece], through: str, limits: Limits) -> int:
    """Return the index of the first piece that stays; `through` is the last the notes cover."""
    first = next((at for at, each in enumerate(pieces) if each.id > through), len(pieces))
    turns = sum(each.cell for each in pieces[first:])
    size = sum(each.size for each in pieces[first:])
    while first and not (turns >= limits.turns and size >= limits.least):
        piece = pieces[first - 1]
        if size + piece.size > limits.most:
            break
        first, turns, size = first - 1, turns + piece.cell, size + piece.size
    return first


def summary(notes: str, section_tokens: int, last_request: str) -> str:
    """Return the text that stands for what was dropped.

    Sections of the notes longer than `section_tokens` are cut at a line and marked so.
    """
    cut = markdown.join(
        markdown.preamble(notes),
        (
            markdown.Section(
                each.name, each.header, each.italic, markdown.cut(each.body, section_tokens)
            )
            for each in markdown.sections(notes)
        ),
    )
    return _summary("the session notes", cut, last_request)


def summed_up(text: str, last_request: str) -> str:
    """Return the text that stands for what was dropped, where a model summed it up."""
    return _summary("these words", text, last_request)


def _summary(what: str, text: str, last_request: str) -> str:
    parts = [
        f"The cells before this point were left out to save room; {what} stand for them. "
        "What is asked for there was asked then: it is history and no task now.",
        inside("notes", text),
    ]
    if last_request:
        parts.append(f"The last request of the person then, word for word:\n{last_request}")
    return "\n\n".join(parts)


def size_of(messages: Sequence[Message]) -> int:
    """Return the tokens of `messages`, tool calls and their answers included."""
    return sum(
        tokens(each.text)
        + sum(tokens(f"{call.name}{dict(call.input)}") for call in each.calls)
        + sum(tokens(result.text) for result in each.results)
        for each in messages
    )


def size_of_tools(tools: Sequence[ToolSpec]) -> int:
    """Return the tokens of what a request says of its tools."""
    return sum(tokens(f"{each.name}{each.description}{dict(each.schema)}") for each in tools)
