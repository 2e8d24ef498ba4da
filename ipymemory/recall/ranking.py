"""Which memories answer a question, given what each holds: pure, for every kind of index.

A term is worth the more the fewer memories hold it. A memory is an answer when what it holds of
the question is worth a fair share of all that was asked; else nothing is (peers fill three slots
always, one of them relevant). Kind, age and use only order what is equally good.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

SHARE = 0.35
"""Of the worth of a question's terms, what a memory must hold to be an answer. With a third, one
common word of three would do."""

UNKNOWN = 0.5
"""A term that no memory holds is worth half of a rare one: it may be nothing but another word."""

HEAD = 0.15
"""What it adds that a term stands in the title or the description, at most."""

_KIND = {"feedback": 1.0, "user": 0.8, "project": 0.6, "reference": 0.4}
_TIE = 0.02
"""What kind, age and use add each, at most: less than one more term in all but long questions."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory as an index knows it; `head` and `all` are sets of terms."""

    name: str
    kind: str
    modified: str
    head: frozenset[str]
    all: frozenset[str]


def worth(terms: Iterable[str], counts: Mapping[str, int], total: int) -> dict[str, float]:
    """Return what each term is worth; `counts` says how many of `total` memories hold it."""
    found = {}
    for each in terms:
        count = counts.get(each, 0)
        value = math.log((total + 1) / (count + 0.5)) + 1
        found[each] = value if count else value * UNKNOWN
    return found


def ranked(
    candidates: Sequence[Candidate], worths: Mapping[str, float], uses: Mapping[str, int]
) -> list[tuple[str, float]]:
    """Return name and score of those that are an answer, the best first; scores are about 0 to 1.2.

    `uses` says how often each was recalled before.
    """
    whole = sum(worths.values())
    if not whole:
        return []
    newest = sorted({each.modified for each in candidates})
    age = {time: place / len(newest) for place, time in enumerate(newest, 1)}
    most = max(uses.values(), default=0) or 1
    found = []
    for each in candidates:
        share = sum(value for term, value in worths.items() if term in each.all) / whole
        if share < SHARE:
            continue
        head = sum(value for term, value in worths.items() if term in each.head) / whole
        tie = _KIND.get(each.kind, 0.0) + age[each.modified] + uses.get(each.name, 0) / most
        found.append((each.name, share + HEAD * head + _TIE * tie))
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))
