"""Which cells are not recorded, and how a text is freed of what it quotes of private ones.

A cell that holds nothing but our own magics, or ``%config`` of our own settings, is no turn.

A cell is private that begins with ``%%private`` or with a comment ``# ipymemory: off``. What may
stand above that line changes nothing for the person who wrote it: blank lines, other comments,
another cell magic such as ``%%time``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ipymemory.setting_classes import CLASSES

QUOTED = "[private]"
"""What stands in place of a line of a private cell."""

MOST = 5000
"""Lines of private cells that are remembered."""

LONG = 12
"""Characters of a line that is looked for within others too, as a repr of the cell holds it."""

_MARK = re.compile(r"[ \t]*(?:%%private\b|#+[ \t]*ipymemory[ \t]*:[ \t]*off\b)", re.IGNORECASE)
_ABOVE = re.compile(r"\s*(?:#.*|%%.*)?")
_SETTINGS = "|".join(each.__name__ for each in CLASSES)
_OURS = re.compile(
    r"\s*(?:(?:%memory\b|%ask\b|(?:memory|ask)[ \t]+(?!(?:is|in|and|or|if|not)\b)[^\W\d]"
    r"|%(?:re|un)?load_ext\s+ipymemory\b|"
    rf"%config\s+(?:{_SETTINGS})\b|#)[^\n]*)?\s*",
    re.IGNORECASE,
)
"""A line that is ours. ``memory status`` is too, for IPython reads it as a magic, and nothing else
can: two words in a row are no Python, unless the second is an operator."""

_FRAME = re.compile(
    r"[ \t]*(?:(?:Cell|Input) In ?\[(\d+)\]|File <ipython-input-(\d+)-[^>]*>)(?:,? line \d+)?"
)
"""How a traceback begins a frame that lies in a cell: IPython's words since version 7."""

_NUMBERED = re.compile(r"^(\s*(?:-+>\s*)?(?:\d+(?:/\d+)?)?:?\s*(?:>>>\s*|\.\.\.\s*)?)(\S.*?)\s*$")
"""A line of a source after its number: as a traceback has it, and as ``%history`` does."""


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
    """Return whether a cell holds nothing but our own magics, settings and comments."""
    stripped = source.lstrip()
    if stripped.startswith("%%ask"):
        return True
    if not stripped.startswith(("%", "#", "memory", "ask")) or len(source) > 2000:
        return False
    lines = source.splitlines()
    if all(not each.strip() or each.lstrip().startswith("#") for each in lines):
        return False
    return all(_OURS.fullmatch(each) for each in lines)


class Quotes:
    """Remembers the lines of private cells, to leave them out of what quotes them later."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[str, ...]] = {}
        """Each line, and the forms in which it is looked for within others."""
        self._whole: dict[str, None] = {}
        """Whole cells as a list of sources shows them, such as ``In``; their quotes bound them."""
        self._counts: set[int] = set()

    def add(self, source: str, count: int | None = None) -> None:
        """Remember the lines of a private cell, the newest `MOST` in all, and its number."""
        if count is not None:
            self._counts.add(count)
        for line in source.splitlines():
            text = line.strip()
            if len(text) > 3 and not _MARK.match(text):
                long = len(text) >= LONG
                self._lines[text] = tuple({text, repr(text)[1:-1]}) if long else ()
        if source.strip():
            self._whole[repr(source.rstrip("\n"))] = None
        while len(self._whole) > MOST:
            del self._whole[next(iter(self._whole))]
        while len(self._lines) > MOST:
            del self._lines[next(iter(self._lines))]

    def add_all(self, sources: Iterable[str]) -> None:
        """Remember those of `sources` that are private."""
        for source in sources:
            if is_private(source):
                self.add(source)

    def public(self, count: int) -> None:
        """Forget the number of a private cell: it was given to another, after ``%reset``."""
        self._counts.discard(count)

    def without(self, text: str) -> str:
        """Return `text`, such as a traceback, without the lines it quotes of private cells.

        Of a frame that lies in a private cell only the place is left, since a verbose traceback
        shows the values of its variables too.
        """
        if not (self._lines or self._counts) or not text:
            return text
        for whole in tuple(self._whole):
            if whole in text:
                text = text.replace(whole, QUOTED)
        for forms in tuple(self._lines.values()):
            for form in forms:
                if form in text:
                    text = text.replace(form, QUOTED)
        lines = []
        inside = False
        for line in text.split("\n"):
            frame = _FRAME.match(line)
            if frame is not None:
                inside = int(frame[1] or frame[2]) in self._counts
                lines += [frame[0], f"    {QUOTED}"] if inside else [line]
            elif not (inside and line[:1] in (" ", "\t", "-")):
                inside = False
                found = _NUMBERED.match(line)
                quoted = found is not None and found[2] in self._lines
                lines.append(found[1] + QUOTED if found is not None and quoted else line)
        return "\n".join(lines)
