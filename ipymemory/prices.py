"""What models cost, in US dollars for a million tokens, and what one call therefore cost.

Figures: Anthropic's price pages of October and November 2026, checked against the totals of its
own command line. A model that is not in the table costs nobody knows what: no money is invented.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ipymemory.models import Usage

LONG_PROMPT = 100_000
"""Tokens of prompt above which Haiku 5.5 bills the whole request fivefold."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    read: float
    write: float
    write_hour: float


_TABLE = {
    "claude-haiku-5-5": Price(0.10, 0.50, 0.01, 0.125, 0.20),
    "claude-sonnet-5-5": Price(2, 10, 0.10, 2.5, 4),
    "claude-opus-5-5": Price(4, 20, 0.20, 5, 8),
    "claude-fable-5-2": Price(8, 40, 0.20, 10, 16),
    "claude-mythos-5-2": Price(8, 40, 0.20, 10, 16),
    "claude-fable-5-1": Price(10, 50, 0.25, 12.5, 20),
    "claude-mythos-5-1": Price(10, 50, 0.25, 12.5, 20),
    "claude-fable-5": Price(10, 50, 1, 12.5, 20),
    "claude-mythos-5": Price(10, 50, 1, 12.5, 20),
    **dict.fromkeys(
        (f"claude-opus-{each}" for each in ("5", "4-8", "4-7", "4-6", "4-5")),
        Price(5, 25, 0.50, 6.25, 10),
    ),
    "claude-sonnet-5": Price(2, 10, 0.20, 2.5, 4),
    "claude-sonnet-4-6": Price(3, 15, 0.30, 3.75, 6),
    "claude-sonnet-4-5": Price(3, 15, 0.30, 3.75, 6),
    "claude-haiku-4-5": Price(1, 5, 0.10, 1.25, 2),
}

_DATE = re.compile(r"-20\d{6}$")


def cost(model: str, usage: Usage) -> float | None:
    """Return what a call of `model` cost in US dollars, None for a model without a price."""
    price = _TABLE.get(_DATE.sub("", model))
    if price is None:
        return None
    money = (
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_read * price.read
        + usage.cache_write * price.write
        + usage.cache_write_hour * price.write_hour
    ) / 1_000_000
    return (
        money * 5 if model.startswith("claude-haiku-5-5") and usage.prompt > LONG_PROMPT else money
    )
