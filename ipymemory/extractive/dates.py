"""Dates in a sentence, made absolute: "next Friday", said on a Wednesday, is a day with a number.

What names one day is a `Day`; a weekend, a week, a month or a year is a `Span` of several. "Soon"
is neither, and neither is "next Friday" on a Monday, which is this week's to some and the week
after's to others, or "last Friday" on a Saturday. A day without a year is the next one to come.
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
    r"|(?P<word>today|tonight|(?:the )?day after tomorrow|tomorrow"
    r"|(?:the )?day before yesterday|yesterday"
    r"|end of (?:the|this|next) (?:week|month|year)"
    r"|heute|morgen|demain|mañana)"
    r"|(?P<turn>this|this coming|next|last) (?P<span>weekend)"
    r"|(?<!the )(?<!the past )(?P<turn2>next|last) (?P<span2>week|month|year)"
    r"|in\s+(?:exactly\s+)?(?P<n>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten)\s+"
    r"(?P<unit>days?|weeks?)(?:['’]?s?['’]?\s+time|\s+from\s+(?:now|today))?(?!\s+or\b)"
    r"|(?P<ago>\d{1,2}|a|one|two|three|four|five|six)\s+days?\s+ago"
    r"|(?P<which>next|this|this coming|coming|last|by|on|before|until|due)\s+"
    rf"(?P<day>{_DAY})"
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


@dataclass(frozen=True, slots=True)
class Span:
    """Where a text names a time: from `start` to `end`, in `words`.

    `absolute` is the time in numbers; `day` is None where it is longer than a day. `form` is what
    the words are: ``weekday`` for one with a word that says which, ``word``, ``in``, ``ago``,
    ``preposition``, ``weekend``, ``several``, ``date`` for what is absolute by itself.
    """

    start: int
    end: int
    words: str
    absolute: str
    day: date | None
    form: str
    past: bool = False


def day_of(time: str) -> date | None:
    """Return the day, on this machine's calendar, of a moment in ISO 8601; None for none."""
    try:
        return datetime.fromisoformat(time).astimezone().date()
    except (ValueError, OverflowError, OSError):
        return None


def named(text: str, said: date | None) -> Day | None:
    """Return the day that `text` names, said on `said`; None for none, and for more than one.

    Without `said` only a full date is one. What lies back and is said so ("yesterday") is none.
    """
    found: dict[date, Day] = {}
    for each in spans(text, said):
        if each.day is not None and not each.past:
            found.setdefault(each.day, Day(each.day, each.words))
    return next(iter(found.values())) if len(found) == 1 else None


def spans(text: str, said: date | None) -> list[Span]:
    """Return the times that `text`, said on `said`, surely names, in order.

    Without `said` only full dates.
    """
    found: list[Span] = []
    for match in _FORMS.finditer(text):
        try:
            span = _span(match, said)
        except (ValueError, OverflowError):
            continue
        if span is not None:
            found.append(span)
    return found


def _span(match: re.Match[str], said: date | None) -> Span | None:
    several = match["span"] or match["span2"]
    if several and said is not None:
        turn = (match["turn"] or match["turn2"]).lower()
        absolute = _several(turn, several.lower(), said)
        if not absolute:
            return None
        form = "weekend" if match["span"] else "several"
        return Span(*match.span(), match[0], absolute, None, form, turn == "last")
    day = _day(match, said)
    if day is None:
        return None
    which = (match["which"] or "").lower()
    form = (
        ("weekday" if which in _SAYS_WHICH else "preposition")
        if which
        else next((form for form, group in _GROUPS if match[group]), "date")
    )
    past = which == "last" or form == "ago" or "yesterday" in (match["word"] or "").lower()
    return Span(*match.span(), match[0], day.isoformat(), day, form, past)


_SAYS_WHICH = ("next", "this", "this coming", "coming", "last")
_GROUPS = (("word", "word"), ("in", "unit"), ("ago", "ago"))


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
        weeks = match["unit"].lower().startswith("w")
        return said + timedelta(days=_number(match["n"]) * (7 if weeks else 1))
    if match["ago"]:
        return said - timedelta(days=_number(match["ago"]))
    return _weekday(match["which"].lower(), match["day"].lower(), said) if match["day"] else None


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else _NUMBERS.get(word.lower(), 1)


def _month(word: str) -> int:
    return _MONTHS.get(word.lower()) or _SHORT[word.lower()]


def _in_year(month: int, day: int, year: str | None, said: date | None) -> date | None:
    if year:
        return date(int(year), month, day)
    if said is None:
        return None
    found = date(said.year, month, day)
    return found if found >= said else date(said.year + 1, month, day)


def _of_word(word: str, said: date) -> date | None:
    if "after" in word:
        return said + timedelta(days=2)
    if "yesterday" in word:
        return said - timedelta(days=2 if "before" in word else 1)
    if word in ("tomorrow", "morgen", "demain", "mañana"):
        return said + timedelta(days=1)
    ahead = 1 if "next" in word else 0
    if "week" in word:
        if said.weekday() > _FRIDAY:
            # Of the week that ends now, or of the one that is about to begin.
            return None
        return said + timedelta(days=_FRIDAY - said.weekday() + 7 * ahead)
    if "month" in word:
        year, month = _months_on(said, ahead)
        return date(year, month, calendar.monthrange(year, month)[1])
    return date(said.year + ahead, 12, 31) if "year" in word else said


_FRIDAY, _SATURDAY, _SUNDAY = 4, 5, 6


def _months_on(said: date, months: int) -> tuple[int, int]:
    count = said.year * 12 + said.month - 1 + months
    return count // 12, count % 12 + 1


def _several(turn: str, what: str, said: date) -> str:
    """Return a weekend, week, month or year in numbers, nothing where it is not sure which."""
    ahead = {"next": 1, "last": -1}.get(turn, 0)
    if what == "year":
        return str(said.year + ahead)
    if what == "month":
        year, month = _months_on(said, ahead)
        return f"{year}-{month:02}"
    monday = said - timedelta(days=said.weekday())
    if what == "week":
        # To some a week begins on Sunday.
        return "" if said.weekday() == _SUNDAY else f"week of {monday + timedelta(7 * ahead)}"
    if ahead and (said.weekday() < _SATURDAY) == (ahead > 0):
        return ""
    saturday = monday + timedelta(days=_SATURDAY + 7 * ahead)
    return f"{saturday} to {saturday + timedelta(days=1)}"


def _weekday(which: str, name: str, said: date) -> date | None:
    """Return the day that a weekday stands for, None where people would disagree."""
    wanted = _DAYS[name] if name in _DAYS else _SHORT_DAYS[name]
    ahead = (wanted - said.weekday()) % 7 or 7
    # Whether the day comes later or came before in the same week, which begins on Monday or Sunday.
    places = [((wanted - first) % 7, (said.weekday() - first) % 7) for first in (0, _SUNDAY)]
    if which == "next" and any(its > now for its, now in places):
        return None
    if which == "last":
        back = (said.weekday() - wanted) % 7 or 7
        return None if any(its < now for its, now in places) else said - timedelta(days=back)
    if which == "this" and wanted <= said.weekday():
        return None
    return said + timedelta(days=ahead)
