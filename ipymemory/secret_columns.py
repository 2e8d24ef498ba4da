"""Values that stand under a name: the column of a printed table whose head says password.

It knows tables between bars, separated values, what pandas prints as text and HTML, and a series.
A cell that is a number, a type's name or empty stays; of a column of keys or tokens, so does what
does not look like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipymemory.secret_names import Name, secret
from ipymemory.secret_places import Place, Span

_PASSES = 5
"""How many times a text's length may be read for the columns of its tables."""

_LEAST = 20_000
"""Characters that may be read of a short text, which may be a list of small tables."""

_WIDEST = 2000
_BARS = re.compile("[|│┃║┆]")
_RULE = re.compile(r"[\s|│┃║┆+\-=─━═:╞╪╡├┼┤┌┬┐└┴┘┏┳┓┡╇┩╭╮╰╯]*")
_SEPARATORS = ("\t", ",", ";", "&")
_HEADS = re.compile(r"""["']?[\w .:/#-]{0,40}["']?(?:\\\\)?""")
_CHUNK = re.compile(r"\S+(?: \S+)*")
_WORD = re.compile(r"\S+")
_PLAIN = re.compile(
    r"[\W\d_]*|(?:[-+]?[\d.,]+(?:e[-+]?\d+)?%?)|\W*(?:none|nan|nat|null|na|true|false|object|str"
    r"|string|bool|category|u?int\d+|float\d+|datetime64.*|varchar.*|text|char.*|not null|required"
    r"|optional|unique|password|token|secret|\[masked: [\w ]+\])\W*",
    re.IGNORECASE,
)
_HTML_CELL = re.compile(
    r"<t(?P<kind>[hd])\b(?P<at>[^>]{0,300})>(?:\s{0,40}<(?!/|t[rhd]\b)[^<>]{1,200}>){0,5}"
    r"(?P<inner>[^<]*)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"colspan=[\"']?(\d{1,3})")
_DTYPE = re.compile(r"Name: .{0,200}?, (?:Length: \d+, )?dtype: (?:object|str|string)\b")


class Columns:
    """Reads the tables of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = _PASSES * len(text) + _LEAST

    def under(self, place: Place, name: Name) -> Iterator[Span]:
        """Yield the cells that `name` at `place` is the head, the label or the name of."""
        text = self._text
        if self._left <= 0:
            return
        if text[place.end : place.end + 2].lstrip(":")[:1] == "<" and place.previous in (
            ">",
            " ",
            "\n",
        ):
            found = self._html(place)
        else:
            found = self._printed(place)
        for start, end in found:
            value = text[start:end]
            if _PLAIN.fullmatch(value):
                continue
            if name.rule == "password" or secret(name, value, quoted=True):
                yield start, end

    def _printed(self, place: Place) -> Iterator[Span]:
        text = self._text
        low = text.rfind("\n", max(0, place.start - _WIDEST), place.start) + 1
        high = text.find("\n", place.end, place.end + _WIDEST)
        if high < 0:
            high = min(len(text), place.end + _WIDEST)
        head = text[low:high]
        self._left -= high - low
        if _DTYPE.match(head) and place.start == low + len("Name: "):
            yield from self._series(low)
        elif _BARS.search(head):
            yield from self._barred(place, low, high)
        else:
            yield from self._separated(place, head, low, high)
            yield from self._aligned(place, head, low, high)

    def _lines(self, at: int) -> Iterator[tuple[int, str]]:
        """Yield where each line behind the one that ends at `at` begins, and the line."""
        text = self._text
        while 0 <= at < len(text) and self._left > 0:
            start = at + 1
            at = text.find("\n", start)
            end = len(text) if at < 0 else at
            self._left -= end - start + 1
            yield start, text[start:end]

    def _above(self, low: int) -> Iterator[tuple[int, str]]:
        text = self._text
        while low > 0 and self._left > 0:
            start = text.rfind("\n", 0, low - 1) + 1
            line = text[start : low - 1]
            self._left -= len(line) + 1
            yield start, line
            low = start

    def _series(self, low: int) -> Iterator[Span]:
        for start, line in self._above(low):
            chunks = list(_CHUNK.finditer(line))
            if not line.strip():
                return
            if len(chunks) > 1:
                yield start + chunks[-1].start(), start + chunks[-1].end()

    def _barred(self, place: Place, low: int, high: int) -> Iterator[Span]:
        text = self._text
        bars = [low - 1, *(low + each.start() for each in _BARS.finditer(text[low:high])), high]
        column = sum(bar < place.start for bar in bars) - 1
        cell = text[bars[column] + 1 : bars[column + 1]].strip(" *`_\"'")
        above = [line for _, line in self._first(low)]
        if cell != place.word or any(_BARS.search(x) and not _RULE.fullmatch(x) for x in above):
            return
        for start, line in self._lines(high):
            if _RULE.fullmatch(line) and line.strip():
                continue
            own = [-1, *(each.start() for each in _BARS.finditer(line)), len(line)]
            if len(own) != len(bars):
                return
            yield _trimmed(line, own[column] + 1, own[column + 1], start)

    def _first(self, low: int) -> list[tuple[int, str]]:
        found = []
        for each in self._above(low):
            found.append(each)
            if len(found) == 2:
                break
        return found

    def _separated(self, place: Place, head: str, low: int, high: int) -> Iterator[Span]:
        if place.reading.is_code(place.start):
            return
        for mark in _SEPARATORS:
            if mark not in head or (mark in ",;" and mark + " " in head):
                continue
            cells = head.split(mark)
            if not all(_HEADS.fullmatch(each.strip()) for each in cells):
                continue
            column = head.count(mark, 0, place.start - low)
            if cells[column].strip(" \"'\\") != place.word:
                continue
            cell = re.compile(rf'"(?:[^"]|"")*+"|[^{mark}]*+')
            for start, line in self._lines(high):
                found, at = [], 0
                while at <= len(line) and (match := cell.match(line, at)):
                    found.append(match.span())
                    at = match.end() + 1
                if len(found) != len(cells):
                    return
                yield _trimmed(line, *found[column], start, " \"'\\")
            return

    def _aligned(self, place: Place, head: str, low: int, high: int) -> Iterator[Span]:
        """Look below a head that ends where its cells end, or begins where they begin."""
        if place.close or place.reading.is_code(place.start):
            return
        left, right = place.start - low, place.end - low
        if head[left - 1 : left].strip() or head[right : right + 1].strip():
            return
        heads = [each.span() for each in _WORD.finditer(head)]
        if not left:
            yield from self._labelled(place, head, low, high)
        below = self._lines(high)
        ruled = rectangle = False
        for number, (start, line) in enumerate(below):
            if not line.strip():
                return
            if not number:
                ruled = _RULE.fullmatch(line) is not None and "--" in line
                words = _WORD.findall(line)
                rectangle = len(line) == len(head) and len(words) == len(heads)
                rectangle = rectangle and not any(_PLAIN.fullmatch(h) for h in words)
                pandas = head[:1].isspace() and not line[:1].isspace()
                pandas = pandas or _flush(head, heads, line)
                if not (ruled or pandas or (rectangle and left) or head.isupper()):
                    return
            if ruled and not number:
                continue
            cell = _under(line, left, right, heads)
            if cell is None:
                continue
            if cell[0] != left and cell[1] != right:
                return
            yield start + cell[0], start + cell[1]

    def _labelled(self, place: Place, head: str, low: int, high: int) -> Iterator[Span]:
        """Look at what stands behind the label of a row, or of one value of a record."""
        chunks = list(_CHUNK.finditer(head))
        if len(chunks) < 2 or chunks[0].end() != place.end - low:
            return
        record = False
        for _, line in self._lines(high):
            if not line.strip() or _DTYPE.match(line):
                record = bool(line.strip())
                break
        if not record:
            for _, line in self._above(low):
                if not line.strip() or line[:1].isspace():
                    record = line[:1].isspace() and bool(line.strip())
                    break
        if record:
            yield from ((low + each.start(), low + each.end()) for each in chunks[1:])

    def _html(self, place: Place) -> Iterator[Span]:
        text = self._text
        low = text.rfind("<tr", max(0, place.start - 2 * _WIDEST), place.start)
        high = text.find("</tr", place.end, place.end + 2 * _WIDEST)
        if low < 0 or high < 0:
            return
        self._left -= high - low
        if self._left < 0:
            return
        cells = list(_HTML_CELL.finditer(text, low, high))
        own = [i for i, each in enumerate(cells) if each.start() < place.start < each.end("inner")]
        if not own or cells[own[0]]["inner"].strip(" \t\n:") != place.word:
            return
        after = cells[own[0] + 1 :]
        if any(each["kind"] in "dD" for each in after):
            yield from (_inner(text, each) for each in after if each["kind"] in "dD")
            return
        behind = sum(int(span[1]) if (span := _SPAN.search(x["at"])) else 1 for x in after)
        end = text.find("</table", high)
        end = len(text) if end < 0 else end
        row = text.find("<tr", high, end)
        while row >= 0 and self._left > 0:
            stop = text.find("<tr", row + 3, end)
            self._left -= (stop if stop >= 0 else end) - row
            found = list(_HTML_CELL.finditer(text, row, stop if stop >= 0 else end))
            if len(found) > behind and found[-1 - behind]["kind"] in "dD":
                yield _inner(text, found[-1 - behind])
            row = stop


def _flush(head: str, heads: list[Span], line: str) -> bool:
    """Tell whether all of `heads` end where a word of `line` ends: a frame without an index."""
    ends = {each.end() for each in _WORD.finditer(line)}
    return len(heads) > 1 and len(line) == len(head) and all(end in ends for _, end in heads)


def _under(line: str, left: int, right: int, heads: list[Span]) -> Span | None:
    """Return the cell of `line` that lies under `left` to `right`, its single blanks in it."""
    for chunk in _CHUNK.finditer(line):
        start, end = chunk.span()
        if end <= left or start >= right:
            continue
        others = [h for h in heads if h != (left, right) and h[0] < end and h[1] > start]
        if not others:
            return start, end
        words = [w.span() for w in _WORD.finditer(line, start, end)]
        words = [w for w in words if w[0] < right and w[1] > left]
        return (words[0][0], words[-1][1]) if words else None
    return None


def _trimmed(line: str, start: int, end: int, offset: int, also: str = " ") -> Span:
    while start < end and line[start] in also:
        start += 1
    while end > start and line[end - 1] in also:
        end -= 1
    return offset + start, offset + end


def _inner(text: str, cell: re.Match[str]) -> Span:
    return _trimmed(text, *cell.span("inner"), 0, " \t\n")
