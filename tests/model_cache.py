"""The prompt cache of the Messages API, as its documentation tells it, with a clock that is given.

A prompt is a row of blocks: tools, system, messages. What is cached is found by everything from
the beginning to the end of one block, byte for byte, so a key that moved is another prompt. Only
marked blocks are written; what is read is looked for from each mark backwards.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LOOKBACK = 20
"""Positions from a mark backwards in which an entry is looked for, the mark's own among them."""

MOST_MARKS = 4

SECONDS = {"5m": 300.0, "1h": 3600.0}
"""How long an entry lives after it was written or read."""

_LEAST = (
    (("claude-opus-4-6", "claude-opus-4-5", "claude-haiku-4-5"), 4096),
    (("claude-opus-4-7", "claude-mythos-preview"), 2048),
    (("claude-opus-4-8", "claude-sonnet-4-", "claude-sonnet-5"), 1024),
)
_NEWEST = ("claude-sonnet-5-5",)


def least(model: str) -> int:
    """Return the tokens below which nothing of a prompt for `model` is cached."""
    if model.startswith(_NEWEST):
        return 512
    return next((size for names, size in _LEAST if model.startswith(names)), 512)


def tokens(block: object) -> int:
    """Return the tokens of a block: bytes of its JSON / 3, rounded up."""
    return -(-len(written(block).encode("utf-8", "surrogatepass")) // 3)


def written(value: object) -> str:
    """Return `value` as JSON in the order of its keys, without cache marks at the top of it."""
    if isinstance(value, dict):
        value = {key: each for key, each in value.items() if key != "cache_control"}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Position:
    """One block of a prompt: where it stands, what it is, and its mark if it has one."""

    tier: str
    role: str
    block: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The block's type."""
        return str(self.block.get("type", "tool"))

    @property
    def lifetime(self) -> str:
        """``5m`` or ``1h`` of a marked block, nothing of another."""
        mark = self.block.get("cache_control")
        return str(mark.get("ttl", "5m")) if isinstance(mark, dict) else ""

    @property
    def key(self) -> str:
        """What it adds to the key of a prompt."""
        return written([self.tier, self.role, written(self.block)])


def positions(body: Mapping[str, Any]) -> list[Position]:
    """Return the blocks of a prompt in the order in which a model reads them."""
    return list(_positions(body))


def _positions(body: Mapping[str, Any]) -> Iterator[Position]:
    for each in body.get("tools") or ():
        yield Position("tools", "", each)
    for each in _blocks(body.get("system") or ()):
        yield Position("system", "", each)
    for message in body.get("messages") or ():
        for each in _blocks(message["content"]):
            yield Position("messages", message["role"], each)


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def size(body: Mapping[str, Any]) -> int:
    """Return the tokens of a whole prompt."""
    return sum(tokens(dict(each.block)) for each in positions(body))


@dataclass(slots=True)
class _Entry:
    lifetime: str
    expires: float
    readable: bool = False


class PromptCache:
    """The entries of one workspace. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._entries: dict[str, _Entry] = {}

    def account(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], Callable[[], None]]:
        """Return the usage of a prompt's tokens, and what to call once its answer has begun.

        Until then nobody can read what it writes.
        """
        places = positions(body)
        keys, sums = _keys(body, places), _sums(places)
        marked = _marked(body, places)
        hit = self._hit(places, keys, marked)
        read = sums[hit] if hit >= 0 else 0
        made = {"5m": 0, "1h": 0}
        entries: list[tuple[str, _Entry]] = []
        last = read
        for at, lifetime in marked.items():
            if at <= hit or sums[at] < least(str(body["model"])):
                continue
            made[lifetime] += sums[at] - last
            last = sums[at]
            entries.append((keys[at], _Entry(lifetime, self.clock() + SECONDS[lifetime])))
        usage = {
            "input_tokens": (sums[-1] if sums else 0) - last,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": made["5m"] + made["1h"],
            "cache_creation": {
                "ephemeral_5m_input_tokens": made["5m"],
                "ephemeral_1h_input_tokens": made["1h"],
            },
        }

        def begun() -> None:
            for key, entry in entries:
                entry.readable = True
                self._entries[key] = entry

        return usage, begun

    def _hit(self, places: list[Position], keys: list[str], marked: Mapping[int, str]) -> int:
        """Return the farthest position whose prompt is cached, and refresh it; -1 for none."""
        for mark in reversed(marked):
            steps, before = 0, ""
            for at in range(mark, -1, -1):
                kind = places[at].kind
                # Calls that were made at once count as one, and so do their results.
                steps += not (kind in ("tool_use", "tool_result") and kind == before)
                before = kind
                if steps > LOOKBACK:
                    break
                entry = self._entries.get(keys[at])
                if entry is not None and entry.readable and entry.expires > self.clock():
                    entry.expires = self.clock() + SECONDS[entry.lifetime]
                    return at
        return -1


def _keys(body: Mapping[str, Any], places: list[Position]) -> list[str]:
    """Return the key of each beginning; what a request sets besides is part of its tier."""
    told = hashlib.sha256(str(body["model"]).encode())
    besides = {
        "system": written([body.get("speed")]),
        "messages": written([body.get(each) for each in ("tool_choice", "thinking")])
        + written(body.get("output_config")),
    }
    keys, tier = [], ""
    for each in places:
        if each.tier != tier:
            tier = each.tier
            told.update(besides.get(tier, "").encode())
        told.update(each.key.encode("utf-8", "surrogatepass"))
        keys.append(told.copy().hexdigest())
    return keys


def _sums(places: list[Position]) -> list[int]:
    sums, total = [], 0
    for each in places:
        total += tokens(dict(each.block))
        sums.append(total)
    return sums


def _marked(body: Mapping[str, Any], places: list[Position]) -> dict[int, str]:
    """Return the lifetime of each marked position, the automatic mark at the end among them."""
    marked = {at: each.lifetime for at, each in enumerate(places) if each.lifetime}
    automatic = body.get("cache_control")
    if isinstance(automatic, dict) and places:
        marked.setdefault(len(places) - 1, str(automatic.get("ttl", "5m")))
    return marked
