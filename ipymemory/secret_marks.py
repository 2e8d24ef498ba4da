"""What was found secret in a text: put in order, masked, and told again of the text before."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cache

from ipymemory.secret_tokens import Mark

MARKER = "[masked: "
"""How what stands in place of a secret begins."""


def applied(text: str, marks: Iterable[Mark]) -> str:
    """Return `text` with each of `marks` masked."""
    parts = []
    at = 0
    for mark in marks:
        parts += [text[at : mark.start], MARKER, mark.rule, "]"]
        at = mark.end
    return "".join([*parts, text[at:]])


def back(found: Iterable[Mark], marks: tuple[Mark, ...]) -> Iterator[Mark]:
    """Yield marks that were found in the masked text as marks in the text before masking."""
    begins: list[int] = []  # where each marker begins in the masked text
    ends: list[int] = []
    shift = 0
    for mark in marks:
        begins.append(mark.start + shift)
        ends.append(begins[-1] + len(MARKER) + len(mark.rule) + 1)
        shift = ends[-1] - mark.end
    for each in found:
        # A mark that reaches into a marker takes what the marker stands for.
        first = bisect_right(ends, each.start)
        last = bisect_left(begins, each.end) - 1
        start, end = each.start, each.end
        if first < len(begins) and begins[first] <= start:
            start = marks[first].start
        elif first:
            start += marks[first - 1].end - ends[first - 1]
        if last >= 0 and ends[last] >= end:
            end = marks[last].end
        elif last >= 0:
            end += marks[last].end - ends[last]
        yield Mark(each.rule, start, end)


def merged(marks: Iterable[Mark], text: str) -> tuple[Mark, ...]:
    """Return `marks` in order without overlaps; of two that meet, the longer names the rule."""
    found: list[Mark] = []
    for mark in sorted(marks, key=lambda each: (each.start, -each.end)):
        last = found[-1] if found else None
        if last is None or mark.start >= last.end:
            found.append(mark)
        elif mark.end > last.end:
            longer = max(last, mark, key=lambda each: each.end - each.start)
            found[-1] = Mark(longer.rule, last.start, mark.end, last.named and mark.named)
    return tuple(mark for mark in found if text[mark.start : mark.end].strip())


@cache
def _marker() -> re.Pattern[str]:
    from ipymemory.secret_tokens import TOKENS

    rules = {rule for rule, _ in TOKENS} | {
        *("password", "secret", "key", "token", "cookie", "authorization", "url password"),
        *("webhook", "signature", "private key", "bearer token", "wandb key"),
    }
    return re.compile(r"\[masked: (?:" + "|".join(sorted(map(re.escape, rules))) + r")\]")


def spared(text: str, marks: Iterable[Mark]) -> list[Mark]:
    """Return `marks` without what is masked already, cut down to what lies beside it."""
    markers = [match.span() for match in _marker().finditer(text)]
    ends = [end for _, end in markers]
    left = []
    for mark in marks:
        at, index = mark.start, bisect_right(ends, mark.start)
        parts = []
        while index < len(markers) and markers[index][0] < mark.end:
            parts.append((at, markers[index][0]))
            at = ends[index]
            index += 1
        if not parts:
            left.append(mark)
            continue
        for start, end in (*parts, (at, mark.end)):
            # Less than a word beside what is masked is a bracket or a comma.
            if re.search(r"\w{3}", text[start:end]):
                left.append(Mark(mark.rule, start, end, mark.named))
    return left
