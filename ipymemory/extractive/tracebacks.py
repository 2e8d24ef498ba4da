"""What a traceback says to its user: the error, and the line that they wrote.

A traceback is mostly other people's files. What the user wants to find again is the line of the
cell they ran, and, when the fault lies in a function from an earlier cell, the line there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ipymemory.extractive.material import Failure
from ipymemory.extractive.wording import clean
from ipymemory.turns import CellError

_MOST = 20_000
_FRAME = re.compile(
    r"^[ \t]*(?:Cell |Input )?In ?\[(?P<count>\d+|\*)\], (?:line (?P<line>\d+)|in )(?P<rest>.*)$"
    r"|^[ \t]*(?:File )?(?P<file><ipython-input-(?P<old>\d+)-|\S*ipykernel_\d+"
    r"|[^\s:]+:\d+|[^\s]+ in )(?P<tail>.*)$"
)
_FUNCTION = re.compile(r"\bin (?P<name>[A-Za-z_<][\w.<>]*)\(")
_WITHIN = re.compile(r"<(?:\w+comp|genexpr)>\Z")
_ARROW = re.compile(r"^-{2,}> ?(?P<line>\d+) (?P<text>.*)$")
_SYNTAX = frozenset(["SyntaxError", "IndentationError", "TabError"])
_WHERE = re.compile(r" ?\([^()]{0,200}, line \d+\)$")
_CARET = re.compile(r"^\s*[\^~]+\s*$")


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame in a cell: its execution count, the line, the function's name."""

    count: int | None
    text: str
    function: str


def read(error: CellError, source: str, count: int | None) -> Failure:
    """Return what `error` of the cell with this `source` and execution `count` says.

    Knows IPython's forms since 7.x, and a line number where the code is not quoted.
    """
    name = clean(error.name) or "Error"
    value = _WHERE.sub("", clean(error.value)) if name in _SYNTAX else clean(error.value)
    traceback = error.traceback[:_MOST]
    if len(error.traceback) > 2 * _MOST:
        traceback += "\n" + error.traceback[-_MOST:]
    frames = _frames(traceback)
    if not frames:
        return Failure(name, value, _syntax_line(traceback) or _only_line(source))
    own = [each for each in frames if each.count is None or each.count == count]
    at = (own or frames)[0].text if not own else _outermost(own).text
    inner = frames[-1]
    if inner.text == at or not inner.function:
        return Failure(name, value, at)
    where = inner.count if inner.count != count else None
    return Failure(name, value, at, inner.text, inner.function, where)


def _outermost(own: list[_Frame]) -> _Frame:
    """Return the frame of the cell itself; the last, since a chain tells its causes first."""
    outer = [each for each in own if not each.function]
    return (outer or own)[-1]


def _frames(traceback: str) -> list[_Frame]:
    """Return the frames that lie in cells, outermost first."""
    found: list[_Frame] = []
    inside = False
    count: int | None = None
    function = ""
    for line in traceback.splitlines():
        frame = _FRAME.match(line)
        if frame:
            inside = frame["file"] is None or frame["old"] is not None or "ipykernel_" in line
            number = frame["count"] or frame["old"]
            count = int(number) if number and number.isdigit() and len(number) < 10 else None
            name = _FUNCTION.search(line)
            parts = name["name"].split(".") if name else []
            function = ".".join(part for part in parts if part.isidentifier())
            # The line that is shown for a comprehension is another one in Python 3.11.
            inside = inside and not (parts and _WITHIN.match(parts[-1]))
            continue
        arrow = _ARROW.match(line)
        if arrow and inside and arrow["text"].strip():
            found.append(_Frame(count, clean(arrow["text"]), function))
    return found


def _syntax_line(traceback: str) -> str:
    """Return the line that a syntax error points at: the one above the caret."""
    before = ""
    for line in traceback.splitlines():
        if _CARET.match(line):
            return clean(before)
        before = line
    return ""


def _only_line(source: str) -> str:
    lines = [line for line in source[:4000].splitlines() if line.strip()]
    return clean(lines[0]) if len(lines) == 1 else ""
