"""Agents that a `ModelServer` plays: one does its work, one is clumsy, one is hostile.

Each is a `brain`. What it is told of its calls stands in `told`, in the order of the calls, so a
test can look at what a fence answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from model_server import tool

Call = tuple[str, Mapping[str, Any]]
"""The name of a tool and its input."""


@dataclass
class Told:
    """What a call was answered with."""

    name: str
    given: Mapping[str, Any]
    text: str
    refused: bool


@dataclass
class Script:
    """Rounds of calls, then words. A round may be made of what was told so far."""

    rounds: Sequence[Sequence[Call] | Callable[[list[Told]], Sequence[Call]]]
    words: str = "It is done."
    raw: Mapping[int, str] = field(default_factory=dict)
    """What is sent for the input of a round's first call, as it stands, by round."""
    told: list[Told] = field(default_factory=list)
    _made: int = 0
    _round: int = 0
    _waiting: dict[str, Call] = field(default_factory=dict)

    def __call__(self, body: dict[str, Any], number: int) -> Any:
        """Answer one request."""
        self._hear(body["messages"][-1]["content"])
        if self._round >= len(self.rounds):
            return self.words
        calls = self.rounds[self._round]
        calls = calls(self.told) if callable(calls) else calls
        raw = self.raw.get(self._round)
        self._round += 1
        self._waiting = {}
        for call in calls:
            self._made += 1
            self._waiting[f"call_{self._made}"] = call
        blocks = [tool(name, given, id) for id, (name, given) in self._waiting.items()]
        if blocks and raw is not None:
            blocks[0]["raw"] = raw
        return blocks or self.words

    def _hear(self, content: Any) -> None:
        for block in content if isinstance(content, list) else ():
            if block["type"] != "tool_result" or block["tool_use_id"] not in self._waiting:
                continue
            name, given = self._waiting[block["tool_use_id"]]
            said = block["content"]
            text = said if isinstance(said, str) else "".join(each["text"] for each in said)
            self.told.append(Told(name, given, text, bool(block.get("is_error"))))


def good(*calls: Call, words: str = "It is done.") -> Script:
    """Return an agent that makes each call in a round of its own and then says `words`."""
    return Script([[each] for each in calls], words)


def clumsy(*calls: Call, words: str = "It is done.") -> Script:
    """Return an agent that gets there in the end.

    It sends input that is no object, calls a tool that is not there, leaves out what a tool needs,
    gives a number where text belongs, asks the same twice at once, and then does as `good`.
    """
    name, given = calls[0] if calls else ("Read", {"path": "a.md"})
    return Script(
        [
            [(name, given)],
            [(f"{name}er", given)],
            [(name, {})],
            [(name, dict.fromkeys(given, 7))],
            [(name, {**given, "nobody_knows": [None, {"deep": {}}]})],
            [*calls, *calls],
            *([each] for each in calls),
        ],
        words,
        raw={0: '["not", "an", "object"]'},
    )


def hostile(ways: Iterable[Call], words: str = "I could not get out.", at_once: int = 1) -> Script:
    """Return an agent that tries each way out, `at_once` in a round, and then says `words`."""
    every = list(ways)
    return Script([every[at : at + at_once] for at in range(0, len(every), at_once)], words)
