"""What a model costs, in money against a plain loop, and in time that a person waits."""

from __future__ import annotations

from statistics import median as middle

from tests.benchmarks.figures import TOP, Row, fresh

_RUN = f"""
import json, sys
from dataclasses import asdict
sys.path.insert(0, {str(TOP / "tests")!r})
import hundred_turns, timed_asks
print(json.dumps(asdict({{}}.measure())))
"""


def rows(runs: int) -> list[Row]:
    """Return the figures of `runs` runs of 100 turns, and of as many kernels."""
    return [*_money(runs), *_waits(runs)]


def _waits(runs: int) -> list[Row]:
    found = [fresh(_RUN.format("timed_asks")) for _ in range(runs)]
    words = tuple(middle(each["words"]) for each in found)
    stops = tuple(middle(each["stops"]) for each in found)
    return [
        Row("first words of an answer after the server sent them", "ms", words, "100"),
        Row("the same, a kernel's first", "ms", tuple(each["cold"] for each in found), "100"),
        Row("from the stop button to idle", "ms", stops, "200"),
        Row("compacting 90,000 tokens", "ms", tuple(each["compaction"] for each in found), "50"),
    ]


def _money(runs: int) -> list[Row]:
    found = [fresh(_RUN.format("hundred_turns")) for _ in range(runs)]

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
