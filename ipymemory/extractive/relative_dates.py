"""Relative dates of a memory made absolute: behind "next Monday" its day, in brackets (D4).

The day is counted from that on which it was said. Only what surely is one gets it: a wrong date is
worse than none, and a rule has the same words ("compare yesterday with today") as an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime

from ipymemory.extractive.dates import Span, day_of, spans
from ipymemory.extractive.forms import DEADLINE, PASSED
from ipymemory.memory_files.values import Memory

_PIECES = re.compile(r"((?<=[.!?])[ \t]+|\n)")
_AGAIN = re.compile(
    r"\b(?:every|each|always|usually|never|weekly|daily|monthly|whenever|any)\b", re.IGNORECASE
)
_ABSOLUTE = re.compile(r"\b\d{4}\b|\d{4}-\d{2}-\d{2}")
_WORDS_OF_OTHERS = re.compile('[`"“”„«»|]')
_NOT_SAID_THEN = ("file", "output")
"""Origins of what may have been written on any day."""

_ID = re.compile(r"[0-9a-f]{24}")

_DAY_FULL = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day$", re.IGNORECASE)
_WHO = (
    r"(?:we|i|they|he|she|you|(?:the|our|my)\s+(?:[\w-]+\s+)?(?:team|client|customer|vendor"
    r"|supplier|boss|lab|office|bank|group|colleagues?|supervisor|people))"
)
_AHEAD = re.compile(
    rf"{DEADLINE.pattern}|\b{_WHO}\b|\b(?:expires?|until|meeting|exam|workshop|demo|review|audit"
    r"|interview|conference|visit|call|move|trip|leave|holiday|takes place|starts?|begins?|opens?"
    r"|scheduled|planned|postponed)\b",
    re.IGNORECASE,
)
"""Words of a sentence about one thing to come."""

_BACK = re.compile(
    rf"\b{_WHO}\s+(?:have\s+|has\s+)?(?:\w+ly\s+)?(?:\w{{2,}}ed|met|said|told|chose|got|had|did"
    r"|made|found|gave|took|saw|went|came|began|wrote|sent|left|lost|were|was|cut|put|set)\b"
    r"|^(?!.*\b(?:that|which|who)\b).*\b(?:was|were)\s+\w+(?:ed|en|t)\b",
    re.IGNORECASE,
)
"""Words of a sentence about one thing that was."""

_OPEN = re.compile(
    r"\b(?:if|when|than|older|newer|since|like|compar\w+|predict\w*|forecast\w*|covers?|shows?"
    r"|reads?|loads?)\b",
    re.IGNORECASE,
)
"""Words with which a day is mostly another one each time."""

_BOUND = re.compile(r"\b(?:of|for|from|with|between|and|to|per|as|minus|plus)\s+$", re.IGNORECASE)
_THE = re.compile(r"\b(?:the|a|an)\s+$", re.IGNORECASE)
_SET = re.compile(
    r"\b(?:planned|scheduled|set|booked|due|fixed|moved|postponed|shifted|extended|delayed)\s+"
    r"(?:for|to)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_COPULA = re.compile(
    r"(?:\b(?:is|are|be|meet|meets|starts?|begins?|opens?|due)|['’]s)\s+$", re.IGNORECASE
)


def said_on(memory: Memory) -> date | None:
    """Return the day on which `memory` was said; None where nobody can tell.

    That of its turns, which a memory that is learned later keeps; else of the memory. Of what was
    said on several days, and of what came with a file, it is not known.
    """
    sources = (memory.source, *memory.source.also)
    if any(each.origin in _NOT_SAID_THEN for each in sources):
        return None
    turns = {_day_of_turn(id) for each in sources for id in each.turns if _ID.fullmatch(id)}
    if turns:
        return turns.pop() if len(turns) == 1 else None
    return day_of(memory.modified) if len(sources) == 1 else None


def dated(text: str, said: date | None) -> str:
    """Return `text` with the time, in brackets, behind each relative date that surely is one."""
    if said is None:
        return text
    pieces = _PIECES.split(text)
    for n, piece in enumerate(pieces):
        # What comes again has no day, and what stands in quotes or code is not ours to word.
        if any(each.search(piece) for each in (_AGAIN, _ABSOLUTE, _WORDS_OF_OTHERS)):
            continue
        for each in reversed(spans(piece, said)):
            if each.form != "date" and _is_sure(each, piece):
                piece = f"{piece[: each.end]} ({each.absolute}){piece[each.end :]}"
        pieces[n] = piece
    return "".join(pieces)


def bare(sentence: str) -> str:
    """Return `sentence` without what `dated` puts into one."""
    return _BRACKETS.sub("", sentence)


def agrees(sentence: str, said: date | None) -> bool:
    """Return whether each time in brackets is what the words before it mean, said on `said`."""
    plain = bare(sentence)
    return sentence in _spelled(plain, spans(plain, said))


_BRACKETS = re.compile(
    r" \((?:\d{4}-\d{2}-\d{2}(?: to \d{4}-\d{2}-\d{2})?|week of \d{4}-\d{2}-\d{2}|\d{4}-\d{2})\)"
)


def _spelled(text: str, found: list[Span]) -> Iterator[str]:
    """Yield `text` with the first, the second … of the times behind their words, and with all."""
    whole = text
    for each in reversed(found):
        yield f"{text[: each.end]} ({each.absolute}){text[each.end :]}"
        whole = f"{whole[: each.end]} ({each.absolute}){whole[each.end :]}"
    yield whole


def _is_sure(span: Span, sentence: str) -> bool:
    """Tell whether the words of `span` mean one day or time in this sentence."""
    before, after = sentence[: span.start], sentence[span.end :]
    if span.words.lower() in ("today", "tonight"):
        return False
    if after.startswith(("'", "’")) or after.lower().startswith((" or ", "-")):
        return False
    if span.form in ("weekday", "weekend"):
        # Seldom said of more than one, but for "the last Friday of a month".
        one = span.form == "weekend" or _DAY_FULL.search(span.words)
        return bool(one) and not _THE.search(before) and not after.lower().startswith(" of ")
    if _OPEN.search(sentence) or (_BOUND.search(before) and not _SET.search(before)):
        return False
    if span.past:
        return bool(_BACK.search(sentence))
    if PASSED.search(sentence):
        return False
    if span.form == "in":
        sure = bool(_COPULA.search(before)) or span.words.lower().endswith(("time", "now", "today"))
        return sure or bool(DEADLINE.search(sentence))
    if span.form == "preposition":
        return bool(_DAY_FULL.search(span.words) and DEADLINE.search(sentence))
    return bool(_AHEAD.search(sentence))


def _day_of_turn(id: str) -> date | None:
    """Return the day on which a turn began: its id begins with the milliseconds."""
    try:
        return datetime.fromtimestamp(int(id[:12], 16) / 1000, UTC).astimezone().date()
    except (ValueError, OverflowError, OSError):
        return None
