"""Which cells are not recorded, and how a text is freed of what it quotes of private ones.

A cell that holds nothing but our own magics is no turn.

A cell is private that begins with ``%%private`` or with a comment ``# ipymemory: off``. What may
stand above that line changes nothing for the person who wrote it: blank lines, other comments,
another cell magic such as ``%%time``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

QUOTED = "[private]"
"""What stands in place of a line of a private cell."""

MOST = 5000
"""Lines of private cells that are remembered."""

_MARK = re.compile(r"[ \t]*(?:%%private\b|#+[ \t]*ipymemory[ \t]*:[ \t]*off\b)", re.IGNORECASE)
_ABOVE = re.compile(r"\s*(?:#.*|%%.*)?")
_OURS = re.compile(
    r"\s*(?:(?:%memory\b|%ask\b|%(?:re|un)?load_ext\s+ipymemory\b|#)[^\n]*)?\s*", re.IGNORECASE
)
_NUMBERED = re.compile(r"^(\s*(?:-+>\s*)?\d*\s*)(\S.*?)\s*$")


def is_private(source: str) -> bool:
    """Return whether a cell with this source is not to be recorded."""
    if "private" not in source and "ipymemory" not in source.casefold():
        return False
    for line in source.lstrip("\ufeff").splitlines():
        if _MARK.match(line):
            return True
        if not _ABOVE.fullmatch(line):
            return False
    return False


def is_ours(source: str) -> bool:
    """Return whether a cell holds nothing but our own magics and comments."""
    stripped = source.lstrip()
    if stripped.startswith("%%ask"):
        return True
    if not stripped.startswith(("%", "#")) or len(source) > 2000:
        return False
    lines = source.splitlines()
    return any("%" in each for each in lines) and all(_OURS.fullmatch(each) for each in lines)


class Quotes:
    """Remembers the lines of private cells, to leave them out of what quotes them later."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    def add(self, source: str) -> None:
        """Remember the lines of a private cell, the newest `MOST` in all."""
        for line in source.splitlines():
            text = line.strip()
            if len(text) > 3 and not _MARK.match(text):
                self._lines[text] = None
        while len(self._lines) > MOST:
            del self._lines[next(iter(self._lines))]

    def add_all(self, sources: Iterable[str]) -> None:
        """Remember those of `sources` that are private."""
        for source in sources:
            if is_private(source):
                self.add(source)

    def without(self, text: str) -> str:
        """Return `text`, such as a traceback, without the lines it quotes of private cells."""
        if not self._lines or not text:
            return text
        lines = text.split("\n")
        for at, line in enumerate(lines):
            found = _NUMBERED.match(line)
            if found is not None and found[2] in self._lines:
                lines[at] = found[1] + QUOTED
        return "\n".join(lines)
