"""Tables of lines: boxes, rules, data frames, separated values and series, by their looks.

Each finder looks at one line and says where the rows of a table end that begins there.
"""

from __future__ import annotations

import re
from collections.abc import Callable

LEFT_OUT = "… {} left out …"
"""What stands in place of rows ..."""
MARK = re.compile(r"… [\d,]+ (?:rows?|values?) left out …")
"""... and how it is known again."""

_BOX_ROW = re.compile(r"\s*[│┃║|].*[│┃║|]\s*")
_BOX_RULE = re.compile(
    r"\s*[+|├┣╞╠┡┢┝╟┌┏╒╔└┗╘╚╭╰:─━═╌┄-][-+|=:─━═╌┄┼╋╪╬┿╇┴┻┬┳╤╧╥╨╈┠┨┤┫╡╣┥┩┪┘┛┐┓╕╗╛╝╮╯┊┆┃│ ]*"
)
_BOX_TOP = re.compile(r"\s*[┌┏╒╔╭+]")
_BOX_END = re.compile(r"\s*[└┗╘╚╰]")
_DASHES = re.compile(r"\s*[-=─━]{2,}(?:[ +|]+[-=:─━]{2,})*\s*")
_PSQL_END = re.compile(r"\(\d+ rows?\)\s*")
_SERIES_END = re.compile(
    r"(?:(?:Name|Freq|Length): [^\n]*?, )*(?:dtype|Categories \(\d+, \w+\)): ?.*"
)
_DTYPE = re.compile(
    r"(?:u?int|float|complex)\d+|object|bool(?:ean)?|str(?:ing)?(?:\[.*\])?|category|"
    r"datetime64.*|timedelta64.*|period.*|[UI]nt\d+|Float\d+|Sparse.*|date\d*\[.*\]",
)
_INFO_HEAD = re.compile(r"\s*#\s+Column\b.*Dtype\s*")
_SHAPE = re.compile(r"\[(\d+) rows x (\d+) columns\]")
_GAP = re.compile(r"\S(?:\s{2,}|\t)\S")


def without_lines(text: str, shapes: list[str]) -> str:
    """Return `text` without the rows of tables of lines; a shape of each goes to `shapes`."""
    lines = text.split("\n")
    kept: list[str] = []
    at = 0
    finders: tuple[Callable[[list[str], int], tuple[int, int, int] | None], ...] = (
        _boxed,
        _ruled,
        _framed,
        _delimited,
    )
    again = MARK.search(text) is not None
    while at < len(lines):
        if again and (done := _left_out_before(lines, at)):
            kept += lines[at:done]
            at = done
            continue
        series = _series(lines, at)
        if series is not None:
            end, rows = series
            if not rows:
                kept += lines[at : end + 1]
                at = end + 1
                continue
            kept.append(LEFT_OUT.format(counted(rows, "value")))
            kept.append(lines[end])
            shapes.append(f"series: {counted(rows, 'value')}")
            at = end + 1
            continue
        for find in finders:
            found = find(lines, at)
            if found is not None:
                first, last, columns = found
                kept += lines[at:first]
                rows = sum(1 for line in lines[first:last] if not _BOX_RULE.fullmatch(line))
                kept.append(LEFT_OUT.format(counted(rows, "row")))
                said = _SHAPE.match(lines[last + 1]) if last + 1 < len(lines) else None
                shapes.append(
                    f"table: {said[1]} rows x {said[2]} columns"
                    if said
                    else f"table: {counted(rows, 'row')} x {counted(columns, 'column')}"
                )
                at = last
                break
        else:
            kept.append(lines[at])
            at += 1
    return "\n".join(kept)


def _left_out_before(lines: list[str], at: int) -> int:
    """Return where a table that begins at `at` ends, if its rows were left out already; or 0."""
    for index in range(at, min(at + 8, len(lines))):
        if MARK.fullmatch(lines[index].strip()):
            return index + 1
        if not lines[index].strip():
            break
    return 0


def _boxed(lines: list[str], at: int) -> tuple[int, int, int] | None:
    """Find a table whose lines stand between bars: polars, rich, Spark, Markdown, duckdb."""
    if not (_BOX_ROW.fullmatch(lines[at]) or (_BOX_TOP.match(lines[at]) and _is_rule(lines[at]))):
        return None
    end = at
    while end < len(lines) and (_BOX_ROW.fullmatch(lines[end]) or _is_rule(lines[end])):
        end += 1
    body = range(at, end)
    rows = [i for i in body if not _is_rule(lines[i])]
    if not rows:
        return None
    rules = [i for i in body if _is_rule(lines[i]) and i > rows[0]]
    inner = [i for i in rules if i + 1 < end and not _BOX_END.match(lines[i])]
    first = inner[0] + 1 if inner else rows[0]
    if not inner and len(rows) < 2:
        return None
    last = end - 1 if _is_rule(lines[end - 1]) and end - 1 >= first else end
    if last <= first or (not inner and not _BOX_TOP.match(lines[at]) and len(rows) < 3):
        return None
    columns = len(re.findall(r"[│┃║|┆]", lines[rows[0]].strip())) - 1
    return first, last, max(1, columns)


def _is_rule(line: str) -> bool:
    stripped = line.strip()
    if len(stripped) < 3 or not _BOX_RULE.fullmatch(line):
        return False
    return any(mark in stripped for mark in "-=─━═╌┄")


def _ruled(lines: list[str], at: int) -> tuple[int, int, int] | None:
    """Find a header over a line of dashes: psql, tabulate, sqlite, ``pip list``."""
    if at + 2 >= len(lines) or not lines[at].strip() or not _DASHES.fullmatch(lines[at + 1]):
        return None
    groups = re.split(r"[ +|]+", lines[at + 1].strip())
    if (len(groups) < 2 and "|" not in lines[at]) or _INFO_HEAD.fullmatch(lines[at]):
        return None
    end = at + 2
    while end < len(lines) and lines[end].strip() and not _PSQL_END.fullmatch(lines[end]):
        end += 1
    if end > at + 2 and _DASHES.fullmatch(lines[end - 1]):
        end -= 1
    return (at + 2, end, len(groups)) if end > at + 2 else None


def _framed(lines: list[str], at: int) -> tuple[int, int, int] | None:
    """Find a data frame as pandas prints it: right-aligned, so that every line is as long."""
    head = _trimmed(lines[at])
    width = len(head)
    if width < 3 or "\t" in head:
        return None
    if not head[0].isspace():
        return _aligned(lines, at)
    heads = 1
    while heads < 5 and at + heads < len(lines) and lines[at + heads][:1].isspace():
        if not lines[at + heads].strip() or len(_trimmed(lines[at + heads])) > width:
            return None
        heads += 1
    first = at + heads
    end = first
    while end < len(lines) and lines[end].strip() and len(_trimmed(lines[end])) <= width:
        if end == first and lines[end][0].isspace():
            return None
        end += 1
    if end > first + 1 and len(_trimmed(lines[first])) < width:
        first += 1  # the index's name
    rows = lines[first:end]
    if not rows or not any(len(_trimmed(row)) == width for row in rows):
        return None
    blank = len(head) - len(head.lstrip())
    full = [row for row in rows if len(_trimmed(row)) == width]
    if not any(all(row[column] == " " for row in full) for column in range(1, blank)):
        return None
    return first, end, len(re.split(r"\s{2,}", head.strip()))


def _aligned(lines: list[str], at: int) -> tuple[int, int, int] | None:
    """Find three or more lines of one length with a blank column through all of them."""
    width = len(_trimmed(lines[at]))
    if not _GAP.search(lines[at]) or any(character.isdigit() for character in lines[at][:8]):
        return None
    if _INFO_HEAD.fullmatch(lines[at]):
        return None
    first = at + 1
    named = first < len(lines) and len(lines[first]) == len(lines[at]) and lines[first] != ""
    if named and len(lines[first].split()) == 1:
        first += 1  # the index's name, below the name of the columns
    end = first
    while end < len(lines) and lines[end].strip() and len(_trimmed(lines[end])) == width:
        end += 1
    rows = [lines[at], *lines[first:end]]
    if end - at < 3 or len(rows) < 2:
        return None
    gap = any(all(row[i : i + 1] == " " for row in rows) for i in range(1, width - 1))
    return (first, end, len(re.split(r"\s{2,}", lines[at].strip()))) if gap else None


def _delimited(lines: list[str], at: int) -> tuple[int, int, int] | None:
    """Find comma or tab separated rows: a header of words, and the same count on each line."""
    for mark in ("\t", ",", ";"):
        count = lines[at].count(mark)
        if not count or mark + " " in lines[at] or not lines[at].strip(mark).strip():
            continue
        if any(character.isdigit() for character in lines[at].split(mark)[0]):
            continue
        end = at + 1
        while end < len(lines) and lines[end].count(mark) == count and mark + " " not in lines[end]:
            end += 1
        if end - at >= 3:
            return at + 1, end, count + 1
    return None


def _series(lines: list[str], at: int) -> tuple[int, int] | None:
    """Find a pandas series that begins at `at`: values down to the line that names its dtype.

    The count of values is 0 when they may stay.
    """
    if not lines[at].strip() or (at and lines[at - 1].strip() and not _loose(lines[at])):
        return None
    if not _loose(lines[at]):
        return None
    end = at
    while end < len(lines) and lines[end].strip() and not _SERIES_END.fullmatch(lines[end]):
        end += 1
    if end == at or end == len(lines) or not _SERIES_END.fullmatch(lines[end]):
        return None
    values = [line.split()[-1] for line in lines[at:end]]
    # The dtypes of a frame are no data.
    return end, 0 if all(_DTYPE.fullmatch(value) for value in values) else end - at


def _loose(line: str) -> bool:
    return bool(_GAP.search(line)) or line.strip(". ") == ""


def _trimmed(line: str) -> str:
    """Return `line` without the blanks at its end and the backslash of a wrapped frame."""
    return line.rstrip().removesuffix("\\").rstrip()


def counted(number: int, what: str) -> str:
    """Return a number of things in words: ``1 row``, ``2,000 rows``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
