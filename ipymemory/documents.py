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

# Four spaces would make it code. What ends the line is no part of the heading.
_HEADING = re.compile(
    r" {0,3}(?P<marks>#{1,6})[ \t]+magic[ \t]+doc[ \t]*:[ \t]*(?P<title>[^\r]*?)"
    r"(?:[ \t]+#+)?[ \t]*\r?",
    re.IGNORECASE,
)
_ITALIC = re.compile(r" {0,3}(?P<mark>[_*])(?![\s_*])(?P<text>.*)(?<![\s_*])(?P=mark)[ \t]*\r?")
_PIECE = re.compile(
    r"(?P<string>\"{3}(?:[^\"\\]|\\.|\"(?!\"\"))*(?:\"{3})?|'{3}(?:[^'\\]|\\.|'(?!''))*(?:'{3})?"
    r"|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?)"
    r"|(?P<comment>\#[^\n]*)|(?P<line>\n[ \t]*)|(?P<more>\\\n)|(?P<word>\w+|[^\w\s])",
    re.DOTALL,
)
_COMMAND = re.compile(r"[ \t]*[%!][^\n]*")


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
    match = _HEADING.fullmatch(line)
    if match is None or len(match["marks"]) > levels or not match["title"].strip():
        return None
    below, behind = _line(text, end)
    if not below.strip():
        below, behind = _line(text, behind)
    if _ITALIC.fullmatch(below):
        return Document(match["title"].strip(), line, below, behind)
    return Document(match["title"].strip(), line, "", end)


def fingerprint(source: str) -> str:
    """Return the hash of what a code cell does: SHA-256, its first 16 hexadecimal digits.

    Comments, blank lines, line ends and white space between words do not count, nor how wide an
    indent is; strings, commands (``%``, ``!``) and the depth of a block do (M9). It is made
    of the text and not of Python's tree, which differs between versions of Python.
    """
    text = source.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    pieces = _lines(text) if text.lstrip().startswith("%%") else _pieces(text)
    joined = "\0".join(pieces).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:16]


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
    while match := _PIECE.search(text, at):
        at = match.end()
        kind = match.lastgroup
        piece = match.group()
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


def _depth(indent: str, indents: list[int]) -> str:
    """Return a mark for how deep a line of this indent stands, and remember the indent."""
    while len(indents) > 1 and indents[-1] > len(indent):
        indents.pop()
    if len(indent) > indents[-1]:
        indents.append(len(indent))
    return f"\n{len(indents) - 1}"
