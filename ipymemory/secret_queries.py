"""Passwords in SQL: what is inserted into their column, and what a user is identified by."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipymemory.secret_names import Name, secret
from ipymemory.secret_places import WINDOW, Place, Span, string_at

_INSERT = re.compile(
    r"\b(?:insert|replace)\s+(?:or\s+\w+\s+)?into\s+[^\s()]{1,100}\s{0,20}\((?P<columns>[^()]*)$",
    re.I,
)
_BREAK = r"(?:\s|\\+[nt]|\\+(?=\n)|[\"'](?=\s*(?:\\?\n|[+\"'])))"
_VALUES = re.compile(rf"\){_BREAK}{{0,40}}[\"']?values{_BREAK}{{0,40}}[\"']?(?=\()", re.I)
_NEXT = re.compile(r"\)\s{0,40},\s{0,40}(?=\()")

IDENTIFIED = re.compile(
    r"identified\s+(?:with\s+[\"'\w]{1,60}\s+)?(?:by|as)\s+(?:values\s+|password\s+)?"
    r"\\?(?P<q>[\"'])(?P<value>[^\"'\n\\]+)\\?(?P=q)",
    re.I,
)
"""What a user is identified by, in quotes."""

IDENTIFIED_BARE = re.compile(r"identified\s+by\s+(?P<value>[^\s\"'`;,()\\]+)", re.I)
"""The same without quotes, as Oracle takes it."""

OF_USERS = re.compile(r"\b(?:create|alter)\s+user\s+\S{1,100}\s+$", re.I)
"""What stands before `IDENTIFIED_BARE`, which in prose says nothing."""


def inserted(place: Place, name: Name) -> Iterator[Span]:
    """Yield the values that an ``INSERT`` gives to the column that is named at `place`."""
    text = place.text
    insert = _INSERT.search(text, max(0, place.start - 400), place.start)
    close = text.find(")", place.end, place.end + 600) if insert else -1
    values = _VALUES.match(text, close) if close >= 0 else None
    if insert is None or values is None:
        return
    column, at = insert["columns"].count(","), values.end()
    stop = min(len(text), at + WINDOW)
    while at < stop and place.reading.spend(400):
        cells, close = _cells(text, at + 1, stop)
        if len(cells) > column:
            start, end = cells[column]
            if end > start and secret(name, text[start:end], quoted=True):
                yield start, end
        follows = _NEXT.match(text, close, stop)
        if follows is None:
            return
        at = follows.end()


def _cells(text: str, at: int, stop: int) -> tuple[list[Span], int]:
    """Return the insides of a row's values, its parenthesis before `at`, and where it closes."""
    found: list[Span] = []
    stop = min(stop, at + 400)  # what `inserted` pays for
    start, inside = at, None
    while at < stop:
        character = text[at]
        if character in ",)":
            found.append(inside or (start, start))
            if character == ")":
                return found, at
            start, inside = at + 1, None
        elif character in "'\"":
            literal = string_at(text, at)
            if literal is not None and literal.after > at:
                inside = inside or literal.span
                at = literal.after
                continue
        at += 1
    return found, at
