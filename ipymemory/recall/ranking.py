"""Which memories answer a question, given what each holds: pure, for every kind of index.

A term is worth the more the fewer memories hold it. A memory is an answer when what it holds of
the question is worth a fair share of all that was asked; else nothing is (peers fill three slots
always, one of them relevant). Kind, age and use only order what is equally good.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

SHARE = 0.4
"""Of the worth of a question's terms, what a memory must hold to be an answer. This number, and
those below, are where the questions of `tests/recall_set.py` have the fewest wrong answers while
none that is found with less is lost."""

LEAST = 0.5
"""Of the worth of a word that one memory holds, what a memory must hold of a sentence at least:
"what time is it" asks for no memory in which there is a time."""

COMMON, COMMON_ASKED = 0.35, 0.8
"""Of its worth that a word of every notebook, such as *column*, has in a sentence where a memory
holds it, and in what was asked: that it is held says less than that it is not."""

NEAR = 0.7
"""Of its worth that a word has where a memory holds another form of it, or it is misspelt."""

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


def least(total: int) -> float:
    """Return what a memory must hold of a sentence at least, among `total` memories."""
    return LEAST * (math.log((total + 1) / 1.5) + 1)


def ranked(
    candidates: Sequence[Candidate],
    worths: Mapping[str, float],
    uses: Mapping[str, int],
    near: Mapping[str, Set[str]] = MappingProxyType({}),
    common: Set[str] = frozenset(),
    least: float = 0.0,
) -> list[tuple[str, float]]:
    """Return name and score of those that are an answer, the best first; scores are about 0 to 1.2.

    `uses` says how often each was recalled before; `near` are other forms of a term, and terms in
    `common` are worth little. `least` is the worth that each must hold of what is asked.
    """
    values = {term: value * (COMMON if term in common else 1.0) for term, value in worths.items()}

    def held(terms: Set[str]) -> float:
        return sum(
            value if term in terms else value * NEAR if near.get(term, frozenset()) & terms else 0.0
            for term, value in values.items()
        )

    whole = sum(value * (COMMON_ASKED if term in common else 1.0) for term, value in worths.items())
    if not whole:
        return []
    newest = sorted({each.modified for each in candidates})
    age = {time: place / len(newest) for place, time in enumerate(newest, 1)}
    most = max(uses.values(), default=0) or 1
    found = []
    for each in candidates:
        holds = held(each.all)
        if holds / whole < SHARE or holds < least:
            continue
        share, head = holds / whole, held(each.head) / whole
        tie = _KIND.get(each.kind, 0.0) + age[each.modified] + uses.get(each.name, 0) / most
        found.append((each.name, share + HEAD * head + _TIE * tie))
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))
