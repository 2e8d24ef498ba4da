"""Living documents: which text is one, what its title is and what it says of its own update.

A text whose first line is a heading ``# MAGIC DOC: title`` keeps itself true (behaviour.md, M1).
What its statements rest on is recorded as the hash of each cell (formats.md, `fingerprints`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ipymemory.fingerprints import fingerprint

__all__ = ["MOST_LEVELS", "Document", "find", "fingerprint"]

MOST_LEVELS = 6
"""Levels of heading that Markdown knows; a cell may use each, a file only the first (M1)."""

_NAME = re.compile(r"[ \t]+magic[ \t]+doc[ \t]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """A living document's head: `heading` and `instruction` are lines as they stand.

    `instruction` is empty when there is none; `end` is the offset in the text behind both lines
    and what ends them: up to it no update may change a byte (M5).
    """

    title: str
    heading: str
    instruction: str
    end: int


def find(text: str, *, levels: int = MOST_LEVELS) -> Document | None:
    """Return the head of the living document that `text` is, or None; `levels` is 1 for files.

    The first line that is not blank decides, so that a heading within a fence is none (M1). A
    byte order mark before it is allowed; a heading without a title is none.
    """
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        line, end = _line(text, at)
        if line.strip():
            break
        at = end
    else:
        return None
    title = _title(line, levels)
    if not title:
        return None
    below, behind = _line(text, end)
    if not below.strip():
        below, behind = _line(text, behind)
    if _is_italic(below):
        return Document(title, line, below, behind)
    return Document(title, line, "", end)


def _title(line: str, levels: int) -> str:
    """Return the title in a heading of a living document, nothing for another line.

    Read by hand behind the colon: a pattern for the closing marks would go over a hostile line
    again from each of its blanks.
    """
    # Four spaces would make it code. What ends the line is no part of the heading.
    text = line.lstrip(" ")
    rest = text.lstrip("#")
    level = len(text) - len(rest)
    match = _NAME.match(rest)
    if len(line) - len(text) > 3 or not 1 <= level <= levels or match is None:
        return ""
    title = rest[match.end() :].strip()
    without = title.rstrip("#")
    return without.rstrip() if not without or without[-1].isspace() else title


def _is_italic(line: str) -> bool:
    text = line.lstrip(" ")
    shut = text.rstrip(" \t\r")
    if len(line) - len(text) > 3 or len(shut) < 3:
        return False
    inside = shut[1:-1]
    outer = shut[0] == shut[-1] and shut[0] in "_*"
    ends = inside[0] + inside[-1]
    return outer and not any(each.isspace() or each in "_*" for each in ends)


def _line(text: str, at: int) -> tuple[str, int]:
    """Return the line at `at` without its line feed, and where the next one begins."""
    end = text.find("\n", at)
    return (text[at:], len(text)) if end < 0 else (text[at:end], end + 1)
