"""Living documents: which text is one, and when what a cell said then is no longer what it says.

A text whose first line is a heading ``# MAGIC DOC: title`` keeps itself true (behaviour.md, M1).
What its statements rest on is recorded as the hash of each cell (formats.md); this room says what
of a cell counts in that hash, without a model, a kernel, or a folder of ours.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

MOST_LEVELS = 6
"""Levels of heading that Markdown knows; a cell may use each, a file only the first (M1)."""

MOST_PIECES = 200_000
"""Characters of a cell that are taken apart word by word; of a longer one only white space is
left out, since nobody typed it."""

_NAME = re.compile(r"[ \t]+magic[ \t]+doc[ \t]*:", re.IGNORECASE)
_PIECE = re.compile(
    r"(?P<string>\"{3}(?:[^\"\\]|\\.|\"(?!\"\"))*(?:\"{3})?|'{3}(?:[^'\\]|\\.|'(?!''))*(?:'{3})?"
    r"|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?)"
    r"|(?P<comment>\#[^\n]*)|(?P<line>\n[ \t]*)|(?P<more>\\\n)|(?P<word>\w+|[^\w\s])",
    re.DOTALL,
)
_COMMAND = re.compile(
    r"[ \t]*(?:[A-Za-z_][\w.,\[\] \t'\"]{0,200}?=[ \t]{0,9}(?:%[A-Za-z_]|!(?!=))|[%!])[^\n]*"
)
"""A line that is IPython's own, also one that keeps what it says: ``names = !ls``."""
_PREFIX = re.compile(r"[rRbBuU]{0,2}[fFtT][rR]?\Z")
_DEEP = 20
"""Strings within fields of strings: Python's own bound is about as many."""


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


def fingerprint(source: str) -> str:
    """Return the hash of what a code cell does: SHA-256, its first 16 hexadecimal digits.

    Comments, blank lines, line ends and white space between words do not count, nor how wide an
    indent is; strings, commands (``%``, ``!``) and the depth of a block do (M9). It is made
    of the text and not of Python's tree, which differs between versions of Python. Nothing for
    a cell that does nothing.
    """
    text = source.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    whole = text.lstrip().startswith("%%") or len(text) > MOST_PIECES
    pieces = _lines(text) if whole else _pieces(text)
    if not pieces:
        return ""
    joined = "\0".join(pieces).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:16]


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


def _lines(text: str) -> list[str]:
    """Return the lines of a cell magic, whose language may give ``#`` another meaning."""
    return [words for line in text.split("\n") if (words := " ".join(line.split()))]


def _pieces(text: str) -> list[str]:
    found: list[str] = []
    indents = [0]
    depth = 0
    pending = "\n"  # a line's indent, kept until something stands on that line
    text = "\n" + text
    at = 0
    fields = True  # whether strings with fields still shut as they should
    while match := _PIECE.search(text, at):
        begin, at = match.start(), match.end()
        kind = match.lastgroup
        piece = match.group()
        if kind == "string" and fields and found and _PREFIX.match(found[-1]):
            end = _end_of_fields(text, begin)
            fields = end > 0
            at = max(at, end) if fields else at
            piece = text[begin:at]
        if kind == "line" and not depth:
            pending = piece
        if kind in ("comment", "line", "more"):
            command = _COMMAND.match(text, at) if kind == "line" and not depth else None
            if command is None:
                continue
            piece, at = " ".join(command.group().split()), command.end()
        if pending:
            found.append(_depth(pending[1:].expandtabs(), indents))
            pending = ""
        if kind == "word":
            depth = max(depth + (piece in "([{") - (piece in ")]}"), 0)
        found.append(piece)
    return found


def _end_of_fields(text: str, at: int, deep: int = 0) -> int:
    """Return where the string that begins at `at` ends, its ``{fields}`` taken along; 0 if nowhere.

    Since Python 3.12 a field may hold the quote that the string began with, so that
    ``f"{a["#b"]}"`` is one string and no comment.
    """
    quote = text[at : at + 3] if text.startswith(('"""', "'''"), at) else text[at]
    at += len(quote)
    depth = 0
    while at < len(text) and deep < _DEEP:
        here = text[at]
        if not depth and text.startswith(quote, at):
            return at + len(quote)
        if here == "\\" or (not depth and text.startswith(("{{", "}}"), at)):
            at += 2
        elif depth and here in "\"'":
            at = _end_of_fields(text, at, deep + 1)
            if not at:
                return 0
        elif not depth and here == "\n" and len(quote) == 1:
            return 0
        else:
            depth = max(depth + (here == "{") - (here == "}"), 0)
            at += 1
    return 0


def _depth(indent: str, indents: list[int]) -> str:
    """Return a mark for how deep a line of this indent stands, and remember the indent."""
    while len(indents) > 1 and indents[-1] > len(indent):
        indents.pop()
    if len(indent) > indents[-1]:
        indents.append(len(indent))
    return f"\n{len(indents) - 1}"
