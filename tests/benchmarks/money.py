"""What a model costs: the share its prompts read from the cache, and money against a plain loop."""

from __future__ import annotations

from tests.benchmarks.figures import TOP, Row, fresh

_RUN = f"""
import json, sys
from dataclasses import asdict
sys.path.insert(0, {str(TOP / "tests")!r})
import hundred_turns
print(json.dumps(asdict(hundred_turns.measure())))
"""


def rows(runs: int) -> list[Row]:
    """Return the figures of `runs` runs of 100 turns."""
    found = [fresh(_RUN) for _ in range(runs)]

    def row(what: str, unit: str, figure: str, by: float = 1.0, limit: str = "") -> Row:
        return Row(what, unit, tuple(each[figure] * by for each in found), limit)

    ratios = tuple(each["money"] / each["plain"] for each in found)
    return [
        row("of what a fork sent, read by the next from cache", "%", "least", 100, "at least 95"),
        Row("100 turns with a model, over a plain loop", "times", ratios, "0.2"),
        row("100 turns with a model", "cents", "money", 100),
        row("100 turns with a plain loop", "cents", "plain", 100),
        row("of them updates of the notes", "runs", "notes"),
    ]
