"""Tables in a text: found by their looks, so that their rows can be left out.

A data frame's rows may be people. `without_rows` knows what pandas, polars, numpy, SQL shells,
Spark, rich, tabulate, Markdown and HTML print, and lists of records; it keeps headers and
shapes. It cannot know what a row means, so where it errs, it leaves out too much.
"""

from __future__ import annotations

import re

from ipymemory.table_lines import LEFT_OUT, MARK, counted, without_lines


def without_rows(text: str) -> tuple[str, tuple[str, ...]]:
    """Return `text` without the rows of its tables, and a short shape of each table.

    The shape is in words: ``table: 3 rows x 2 columns``, ``series: 5 values``. What was left
    out is marked in the text, with the count. A text without tables comes back as it was.
    """
    shapes: list[str] = []
    if "<t" in text or "<T" in text:
        text = _HTML_TABLE.sub(lambda match: _html(match[0], shapes), text)
    if "[" in text:
        text = _collections(text, shapes)
    if "\n" in text:
        text = without_lines(text, shapes)
    return text, tuple(shapes)


# HTML

_HTML_TABLE = re.compile(r"<table\b.*?(?:</table\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_HTML_ROW = re.compile(r"<tr\b.*?(?:</tr\s*>|(?=<tr\b|</t(?:body|able|foot))|\Z)", re.I | re.DOTALL)
_HTML_DATA = re.compile(r"<td\b", re.IGNORECASE)
_HTML_CELL = re.compile(r"<t[dh]\b", re.IGNORECASE)


def _html(table: str, shapes: list[str]) -> str:
    kept: list[str] = []
    at = left_out = columns = 0
    heads = False
    for match in _HTML_ROW.finditer(table):
        row = match[0]
        columns = max(columns, len(_HTML_CELL.findall(row)))
        kept.append(table[at : match.start()])
        at = match.end()
        if MARK.search(row) and len(row) < 60:
            kept.append(row)  # left out before
        elif _HTML_DATA.search(row):
            left_out += 1
            if left_out == 1:
                kept.append("<tr><td>\0</td></tr>")
        elif left_out or heads:
            kept.append("")  # a row of labels below the head: an index name, or a row
        else:
            kept.append(row)
            heads = bool(_HTML_CELL.search(row))
    kept.append(table[at:])
    shapes.append(f"table: {counted(left_out, 'row')} x {counted(columns, 'column')}")
    return "".join(kept).replace("\0", LEFT_OUT.format(counted(left_out, "row")))


# Arrays and lists of records, as their repr prints them

_OPENING = re.compile(
    r"""(?<![\w\]\)"'])\[\s{0,80}(?=[\[({]|\w{1,20}\(\w+=|(?P<text>['"]))"""
    r"""|(?P<series>^Series: [^\n]*\n\[$)""",
    re.MULTILINE,
)
_ARRAY_OF_TEXT = re.compile(r"(?:array|tensor|Index|Categorical|ArrowStringArray\w*)\($|Array>\n$")
_TOKEN = re.compile(r""""(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|[\[\](){}]|[,\n]""")
_CODE = re.compile(r"\b(?:for|lambda|return|import|def)\b")
_MOST = 200_000
"""Characters within which a list must be closed; what is longer is left out up to there."""


def _collections(text: str, shapes: list[str]) -> str:
    """Leave out what stands in lists of rows: nested arrays, dicts, tuples, texts in an array."""
    kept: list[str] = []
    at = 0
    for match in _OPENING.finditer(text):
        start = match.end() - 1 if match["series"] else match.start()
        values = bool(match["text"] or match["series"])
        if start < at or (
            match["text"] and not _ARRAY_OF_TEXT.search(text[max(0, start - 30) : start])
        ):
            continue
        end, count, code = _span(text, start, "\n" if match["series"] else ",")
        if code and not values:
            continue
        shown = counted(count, "value" if values else "row")
        kept += [text[at : start + 1], LEFT_OUT.format(shown)]
        shapes.append(f"{'values' if values else 'array'}: {shown}")
        at = end
    kept.append(text[at:])
    return "".join(kept)


def _span(text: str, start: int, mark: str) -> tuple[int, int, bool]:
    """Look at the list that opens at `start`.

    Return where its closing bracket stands, how many things it holds, and whether it is code.
    What it holds are brackets, if any, else what `mark` stands between.
    """
    depth = nested = marks = 0
    outside: list[str] = []
    at = start
    for match in _TOKEN.finditer(text, start, start + _MOST):
        token = match[0]
        outside.append(text[at : match.start()])
        at = match.end()
        if token in "[({":
            depth += 1
            nested += depth == 2
        elif token in "])}":
            depth -= 1
            if not depth:
                count = nested or marks + (mark == ",") - (mark == "\n")
                return match.start(), count, bool(_CODE.search(" ".join(outside)))
        elif token == mark:
            marks += depth == 1
    return min(len(text), start + _MOST), nested or marks + 1, False
