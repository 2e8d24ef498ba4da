"""What of a text in another language than Python's own counts as a step, as normalised lines.

A cell may hold a shell's words, a database's, a page's. In each of them blanks between quotes are
a value, ``#`` or ``--`` or ``//`` begins a comment or does not, and an indent means something or
nothing. Where the language is not known, only what means nothing in any is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_REST = r"|(?P<newline>\n)|(?P<space>[^\S\n]+)|(?P<word>\w+)|(?P<other>.)"
_SINGLE = r"'(?:[^'\\\n]|\\.)*'?"
_DOUBLE = r"\"(?:[^\"\\\n]|\\.)*\"?"
_BLOCK = r"/\*(?:[^*]|\*(?!/))*(?:\*/)?"

_LOOSE: Mapping[str, tuple[re.Pattern[str], bool]] = {
    name: (re.compile(f"(?P<string>{string})|(?P<comment>{comment}){_REST}", re.DOTALL), lines)
    for name, string, comment, lines in (
        ("r", r"\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|`[^`\n]*`?", r"\#[^\n]*", True),
        ("javascript", rf"`(?:[^`\\]|\\.)*`?|\\.|{_SINGLE}|{_DOUBLE}", rf"//[^\n]*|{_BLOCK}", True),
        ("sql", r"'[^']*'?|\"[^\"]*\"?", rf"--[^\n]*|{_BLOCK}", False),
        ("html", rf"{_SINGLE}|{_DOUBLE}", r"<!--(?:[^-]|-(?!->))*(?:-->)?", True),
        ("latex", r"\\.", r"%[^\n]*\n?", True),
    )
}
"""Languages in which blanks outside of strings mean little, and whether the end of a line does."""

_SHELL = re.compile(
    r"(?P<document><<-?[ \t]*(?P<quote>['\"]?)(?P<mark>[^\W\d][\w.-]*)(?P=quote))"
    r"|(?P<here><<<)|(?P<join>\\\n)"
    r"|(?P<string>\$'(?:[^'\\]|\\.)*'?|'[^']*'?|\"(?:[^\"\\]|\\.)*\"?|\\.)"
    r"|(?P<comment>(?<![^\s;&|()])\#[^\n]*)"
    r"|(?P<newline>\n)|(?P<space>[^\S\n]+)|(?P<between>;|&&?|\|\|?)|(?P<other>[^\s;&|'\"\\<#]+|.)",
    re.DOTALL,
)
_QUOTED = re.compile(r"(?P<string>\"[^\"]*\"?|'[^']*'?)|(?P<space>\s+)|(?P<other>[^\s\"']+)")
_AS_IT_IS = re.compile(r"<(?:pre|textarea|script|style)\b|xml:space", re.IGNORECASE)
_BRACKETS = frozenset("\"'`()[]{},;")
"""Beside these a blank means nothing."""

_BY_NAME: Mapping[str, str] = {
    "r": "r",
    "bash": "shell",
    "sh": "shell",
    "zsh": "shell",
    "dash": "shell",
    "ksh": "shell",
    "js": "javascript",
    "javascript": "javascript",
    "typescript": "javascript",
    "sql": "sql",
    "html": "html",
    "svg": "html",
    "xml": "html",
    "latex": "latex",
    "tex": "latex",
    "markdown": "exact",
    "md": "exact",
}


def by_name(name: str) -> str:
    """Return the language that goes by this name, ``other`` for one that is not known."""
    return _BY_NAME.get(name.casefold(), "other")


def lines(text: str, language: str) -> list[str]:
    """Return what counts in `text`, line by line; `language` as `by_name` gives it.

    ``exact`` keeps every character but blank lines around it, ``long`` all but blank lines and
    what ends a line: fast also for millions of lines.
    """
    if language == "long":
        return [each for line in text.split("\n") if (each := line.rstrip())]
    if language == "exact" or (language == "html" and _AS_IT_IS.search(text)):
        return text.strip("\n").split("\n") if text.strip() else []
    if language == "shell":
        return list(_shell(text))
    if language in _LOOSE:
        return list(_loose(text, *_LOOSE[language]))
    found = (_line(each) for each in text.split("\n"))
    return [each for each in found if each]


def _line(line: str) -> str:
    """Return a line of an unknown language: its indent, and blanks outside of quotes as one."""
    inside = line.lstrip(" \t")
    indent = line[: len(line) - len(inside)].expandtabs()
    return indent + folded(inside) if inside.strip() else ""


def folded(line: str) -> str:
    """Return `line` with each run of blanks outside of quotes as one, none at its ends."""
    if '"' not in line and "'" not in line:
        return " ".join(line.split())
    made = "".join(
        " " if match.lastgroup == "space" else match.group() for match in _QUOTED.finditer(line)
    )
    return made.strip()


def _loose(text: str, pattern: re.Pattern[str], by_line: bool) -> Iterator[str]:
    found: list[str] = []
    gap = False
    for match in pattern.finditer(text):
        kind, piece = match.lastgroup, match.group()
        if kind == "newline" and by_line:
            if found:
                yield "".join(found)
            found, gap = [], False
        elif kind in ("newline", "space", "comment"):
            gap = True
        else:
            if gap and found and _same(found[-1][-1], piece[0]):
                found.append(" ")
            found.append(piece)
            gap = False
    if found:
        yield "".join(found)


def _same(left: str, right: str) -> bool:
    """Return whether a blank between two characters may mean something: ``a b``, ``x < -1``."""
    if _is_word(left) or _is_word(right):
        return _is_word(left) and _is_word(right)
    return left not in _BRACKETS and right not in _BRACKETS


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _shell(text: str) -> Iterator[str]:
    """Yield the commands of a shell's script; what is between ``<<END`` and ``END`` as it is."""
    found: list[str] = []
    gap = False
    awaited: list[str] = []
    at = 0
    while match := _SHELL.match(text, at):
        kind, piece = match.lastgroup, match.group()
        at = match.end()
        if kind == "newline":
            if found:
                yield "".join(found)
            found, gap = [], False
            for mark in awaited:
                behind = _behind(text, at, mark)
                yield text[at:behind]
                at = behind
            awaited = []
        elif kind == "join":
            continue
        elif kind in ("space", "comment"):
            gap = True
        else:
            if match["document"]:
                awaited.append(match["mark"])
            if gap and found and kind != "between" and found[-1] not in _BETWEEN:
                found.append(" ")
            found.append(piece)
            gap = False
    if found:
        yield "".join(found)


_BETWEEN = frozenset([";", "&", "&&", "|", "||"])


def _behind(text: str, at: int, mark: str) -> int:
    """Return where the line behind the one that holds `mark` alone begins, else the end."""
    end = re.compile(rf"^\t*{re.escape(mark)}[ \t]*(?:\n|\Z)", re.MULTILINE).search(text, at)
    return end.end() if end else len(text)
