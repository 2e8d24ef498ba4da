"""Where a name stands in a text, and what text it is there: code, a line of settings, a string."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property

WINDOW = 4000
"""Characters that are looked at from where a name or a form begins."""

_MOST = 500
"""Characters of a value without quotes by which it is judged; it may be longer."""

NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
"""Characters of a name."""

Span = tuple[int, int]

BETWEEN = re.compile(
    r"(?P<close>\\{0,7}[\"'`])?(?P<subscript>\])?"
    r"(?P<gap>[ \t]{0,80})"
    r"(?P<op>:[ \t]?[A-Za-z_][\w.]{0,40}(?:\[[^=\n]{0,60}\])?"  # an annotation
    r"(?:[ \t]{0,20}\|[ \t]{0,20}\w{1,20})?[ \t]{0,20}=(?!=)"
    r"|:[ \t]?(?:\w{1,20}\.)?Annotated\[[^\n]{0,200}\][ \t]{0,9}=(?!=)"
    r"|::[ \t]?[A-Za-z_][\w.{}]{0,40}[ \t]?=(?!=)"  # Julia
    r"|:[ \t]?&(?:'\w{1,20} )?\w{1,20} =(?!=)"  # Rust
    r"|\[\d{0,6}\][ \t]?=(?!=)|(?:string|String) :?=(?!=)"  # C, Go
    r"|<-|:=|===?|!=|\+=|=>|[=:>,|│┃()])?"
)
"""What may stand between a name and its value."""

_STRING = re.compile(r"(?P<prefix>[rRbBuUfFN]{0,2})(?P<escape>\\{0,7})(?P<quote>\"\"\"|'''|[\"'`])")
_INSIDE = {
    '"': re.compile(r'(?:[^\\"\n]|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^\\'\n]|\\.)*+", re.DOTALL),
    "`": re.compile(r"[^`\n]*+"),
}
_SHELL_SET = re.compile(r"\s*(?:export|setx?|ENV|ARG|declare)\s")


class Literal:
    """A string literal: where its inside begins and ends, where it ends, and if it is an f."""

    __slots__ = ("after", "end", "formatted", "start")

    def __init__(self, start: int, end: int, after: int, formatted: bool) -> None:
        self.start = start
        self.end = end
        self.after = after
        self.formatted = formatted

    @property
    def span(self) -> Span:
        """The inside."""
        return self.start, self.end


def string_at(text: str, at: int) -> Literal | None:
    """Return the string literal that begins at `at`, its quotes escaped or not.

    One that is not closed ends with its line; with three quotes, at the end of the window.
    """
    opening = _STRING.match(text, at)
    if opening is None:
        return None
    formatted = "f" in opening["prefix"].lower()
    quote, start = opening["escape"] + opening["quote"], opening.end()
    stop = min(len(text), start + WINDOW)
    if len(quote) == 1:
        inside = _INSIDE[quote].match(text, start, stop)
        end = inside.end() if inside else start
        return Literal(start, end, end + (text[end : end + 1] == quote), formatted)
    if len(opening["quote"]) == 1:
        stop = line_end(text, start, stop)
    end = text.find(quote, start, stop)
    if end < 0:
        return Literal(start, stop, stop, formatted)
    return Literal(start, end, end + len(quote), formatted)


def line_end(text: str, at: int, stop: int) -> int:
    """Return where the line of `at` ends, at `stop` if that comes first."""
    end = text.find("\n", at, stop)
    return stop if end < 0 else end


class Reading:
    """A text that is being read: whether it is a cell of Python, and where its strings are."""

    def __init__(self, text: str, *, code: bool) -> None:
        self.text = text
        self.code = code
        self.grouped = 0
        """Up to where lists of secrets have been looked at."""
        self._left = 5 * len(text) + 20_000

    def spend(self, characters: int) -> bool:
        """Tell whether as many `characters` may be read ahead: a text five times, in all."""
        self._left -= characters
        return self._left > 0

    def line(self, at: int) -> Span:
        """Return where the line of `at` begins, at most 400 characters before, and `at`."""
        low = max(0, at - 400)
        return max(low, self.text.rfind("\n", low, at) + 1), at

    def before(self, at: int) -> str:
        """Return the line of `at` as far as it stands before it."""
        return self.text[slice(*self.line(at))]

    def is_code(self, at: int) -> bool:
        """Tell whether `at` stands in an expression, not in a magic, a comment or a string."""
        if not self.code:
            return False
        line = self.before(at)
        if line.lstrip()[:1] in ("!", "%", "?", "#") or _SHELL_SET.match(line) or "#" in line:
            return False
        if line.count('"') % 2 or line.count("'") % 2:
            return False
        return not any(bisect_left(places, at) % 2 for places in self._quotes)

    @cached_property
    def _quotes(self) -> tuple[list[int], ...]:
        return tuple(
            [match.start() for match in re.finditer(quote, self.text)] for quote in ('"""', "'''")
        )


class Place:
    """One name in a text, and what follows it up to where a value may begin."""

    __slots__ = (
        *("after", "close", "end", "flag", "gap", "op", "reading", "start", "subscript", "text"),
    )

    def __init__(self, reading: Reading, start: int, end: int, between: re.Match[str]) -> None:
        self.reading = reading
        self.text = text = reading.text
        self.op: str = between["op"] or ""
        self.close: str = between["close"] or ""
        self.subscript = between["subscript"] is not None
        self.gap: str = between["gap"]
        self.after = between.end()
        first = start
        while start < end and text[start] == "-":
            start += 1
        before = text[first - 1 : first]
        self.flag = 0 < start - first < 3 and before in ("", *" \t\"'`\n,[(=|")
        """Whether it is a flag of a command: ``--token``."""
        if start and text[start - 1] == "\\" and text[start] in "nrt" and end - start > 2:
            start += 1  # an escaped line feed in a repr is no letter of the name
        self.start, self.end = start, end

    @property
    def word(self) -> str:
        """The name."""
        return self.text[self.start : self.end].rstrip("-")

    @property
    def previous(self) -> str:
        """The character before the name, empty at the text's beginning."""
        return self.text[self.start - 1 : self.start]

    @property
    def tight(self) -> bool:
        """Whether it is ``name=value`` without a blank."""
        blank = self.text[self.after : self.after + 1].isspace()
        return self.op == "=" and not self.gap and not blank

    def skip(self, blanks: str = " \t") -> int:
        """Return where what follows begins, without the blanks before it."""
        at, text = self.after, self.text
        while at < len(text) and text[at] in blanks:
            at += 1
        return at

    def take(self, pattern: re.Pattern[str], at: int, stop: int) -> str:
        """Return what of a value without quotes stands at `at`, or nothing.

        It is judged by its first 500 characters; `whole` tells how long it is.
        """
        match = pattern.match(self.text, at, min(stop, at + _MOST))
        return match[0] if match else ""

    def whole(self, pattern: re.Pattern[str], at: int, value: str) -> Span:
        """Return the span of a `value` that `take` gave, all of it if it was cut."""
        if len(value) < _MOST - 10:
            return at, at + len(value)
        match = pattern.match(self.text, at)
        return at, match.end() if match else at + len(value)
