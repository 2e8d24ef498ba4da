"""Dates in a sentence, made absolute: "next Friday", said on a Wednesday, is a day with a number.

Only what names one day is a date; "soon" and "next month" are none, and neither is "next Friday"
on a Monday, which is this week's to some and the week after's to others. A day without a year is
the next one to come.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

# Not of `calendar`, whose names follow the machine's language.
_MONTHS = {
    name: n
    for n, name in enumerate(
        ("january", "february", "march", "april", "may", "june", "july", "august", "september",
         "october", "november", "december"), 1)
}  # fmt: skip
_SHORT = {name[:3]: n for name, n in _MONTHS.items()} | {"sept": 9}
_WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAYS = {name.lower(): n for n, name in enumerate(_WEEK)}
_SHORT_DAYS = {name[:3]: n for name, n in _DAYS.items()} | {"tues": 1, "thur": 3, "thurs": 3}
_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: n for n, word in enumerate(_COUNTS, 1)}

_MONTH = "|".join(sorted((*_MONTHS, *_SHORT), key=len, reverse=True))
_DAY = "|".join(sorted((*_DAYS, *_SHORT_DAYS), key=len, reverse=True))
_FORMS = re.compile(
    r"\b(?:"
    r"(?P<iso>\d{4}-\d{2}-\d{2})"
    rf"|(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?(?P<m1>{_MONTH})\b\.?,?"
    r"(?:\s+(?P<y1>\d{4}))?"
    rf"|(?P<m2>{_MONTH})\.?\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(?P<y2>\d{{4}}))?"
    r"|(?P<d3>\d{1,2})\.(?P<m3>\d{1,2})\.(?P<y3>\d{4})"
    r"|(?P<word>today|tonight|the day after tomorrow|tomorrow"
    r"|end of (?:the|this) (?:week|month|year)"
    r"|heute|morgen|demain|mañana)"
    r"|in\s+(?:exactly\s+)?(?P<n>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten)\s+"
    r"(?P<unit>days?|weeks?)(?:'?\s+time)?"
    rf"|(?P<which>next|this|coming|by|on|before|until|due)\s+(?P<day>{_DAY})"
    r")\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Day:
    """A day that a text names, and the words in which it does."""

    date: date
    words: str

    @property
    def said_absolutely(self) -> bool:
        """Whether the words name the day by its full date."""
        return self.date.isoformat() == self.words

    def __str__(self) -> str:
        return f"{self.date.isoformat()} ({_WEEK[self.date.weekday()]})"


def day_of(time: str) -> date | None:
    """Return the day, on this machine's calendar, of a moment in ISO 8601; None for none."""
    try:
        return datetime.fromisoformat(time).astimezone().date()
    except (ValueError, OverflowError, OSError):
        return None


def named(text: str, said: date | None) -> Day | None:
    """Return the day that `text` names, said on `said`; None for none, and for more than one.

    Without `said` only a full date is one.
    """
    found: dict[date, Day] = {}
    for match in _FORMS.finditer(text):
        try:
            day = _day(match, said)
        except ValueError:
            continue
        if day is not None:
            found.setdefault(day, Day(day, match[0]))
    return next(iter(found.values())) if len(found) == 1 else None


def _day(match: re.Match[str], said: date | None) -> date | None:
    if match["iso"]:
        return date.fromisoformat(match["iso"])
    if match["y3"]:
        return date(int(match["y3"]), int(match["m3"]), int(match["d3"]))
    for n in "12":
        if match[f"m{n}"]:
            month = _month(match[f"m{n}"])
            return _in_year(month, int(match[f"d{n}"]), match[f"y{n}"], said)
    if said is None:
        return None
    if match["word"]:
        return _of_word(match["word"].lower(), said)
    if match["unit"]:
        count = match["n"].lower()
        number = int(count) if count.isdecimal() else _NUMBERS.get(count, 1)
        return said + timedelta(days=number * (7 if match["unit"].lower().startswith("w") else 1))
    return _weekday(match["which"].lower(), match["day"].lower(), said)


def _month(word: str) -> int:
    return _MONTHS.get(word.lower()) or _SHORT[word.lower()]


def _in_year(month: int, day: int, year: str | None, said: date | None) -> date | None:
    if year:
        return date(int(year), month, day)
    if said is None:
        return None
    found = date(said.year, month, day)
    return found if found >= said else date(said.year + 1, month, day)


def _of_word(word: str, said: date) -> date:
    if "after" in word:
        return said + timedelta(days=2)
    if word in ("tomorrow", "morgen", "demain", "mañana"):
        return said + timedelta(days=1)
    if "week" in word:
        return said + timedelta(days=(4 - said.weekday()) % 7)
    if "month" in word:
        return said.replace(day=calendar.monthrange(said.year, said.month)[1])
    return date(said.year, 12, 31) if "year" in word else said


def _weekday(which: str, name: str, said: date) -> date | None:
    wanted = _DAYS[name] if name in _DAYS else _SHORT_DAYS[name]
    ahead = (wanted - said.weekday()) % 7 or 7
    if which == "next" and said.weekday() < wanted:
        return None
    return said + timedelta(days=ahead)
