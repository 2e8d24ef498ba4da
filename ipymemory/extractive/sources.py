"""What the source of one cell says, by its syntax tree.

Nothing is run and nothing outside the source is looked at. A cell that does not parse as a whole
is read block by block, so that one slip hides only the block it is in.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise

from ipymemory.extractive import cells
from ipymemory.extractive.material import Expr, Facts, FileUse
from ipymemory.extractive.reader import Reader
from ipymemory.extractive.wording import clean, shorten

_MARK = re.compile(r"\b(?:TO-?DO|FIX-?ME|XXX|HACK)\b\s*(?:\([^)]{0,40}\))?\s*[:\-]?\s*(?P<what>.*)")
_BLOCK = re.compile(r"(?!(?:else|elif|except|finally)\b)[^\s#)\]}]")
_MOST_BLOCKS = 400
_SMALL = (
    r"(?:and|or|but|nor|of|with|about|than|that|which|who|whose|because|as|by|from|whether|until"
    r"|is|are|was|were|be|been|into|its|their|und|oder|mit|von|et|ou|de|y|con)"
)
_JOINS = re.compile(rf"(?i)\b(?:{_SMALL}|a|an|the|to|in|on|at|for|if|not|when|once|den?|die|das)$")
"""What no sentence ends with."""
_JOINED = re.compile(rf"{_SMALL}\b")
"""What a comment of its own hardly begins with."""
_ROOM = 60
"""Columns of a comment line that people fill before they break it, at the least."""
_WORD = re.compile(r"[A-Za-z_]\w+")


def facts_of(source: str) -> Facts:
    """Return what `source` says. Never raises; reads at most `cells.MOST` characters."""
    try:
        return _facts(source)
    except (RecursionError, MemoryError):
        return Facts(parsed=False, lines=code_lines(source))


def code_lines(source: str) -> tuple[str, ...]:
    """Return the lines of `source` that say something, white space collapsed, no comments."""
    lines = []
    for raw in source[: cells.MOST].splitlines():
        line = " ".join(raw[:2000].split())
        if line and not line.startswith("#"):
            lines.append(line)
    return tuple(lines)


def parse(python: str) -> ast.Module | None:
    """Return the syntax tree, or None; no warning about the source gets out."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(python)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def _facts(source: str) -> Facts:
    cell = cells.take_apart(source)
    python, commands = cell.python, cell.commands
    tree = parse(python)
    parsed = tree is not None
    if tree is None:
        python, more = cells.without_automagics(python)
        commands += more
        tree = parse(python) if more else None
        parsed = tree is not None
    reader = Reader(python)
    if tree is not None:
        reader.read(tree)
    else:
        for part in _readable(python):
            reader.read(part)
    comments = _paragraphs(cell.comments, cell.python.split("\n"))
    return Facts(
        parsed=parsed,
        imports=tuple(reader.imports),
        definitions=tuple(reader.definitions),
        built=tuple(reader.built),
        files=tuple(_command_files(commands)) + tuple(reader.files),
        commands=commands,
        comments=comments,
        marks=tuple(dict.fromkeys(mark for each in comments for mark in _marks(each))),
        titles=tuple(reader.titles),
        deleted=tuple(reader.deleted),
        reads=frozenset(reader.reads),
        binds=frozenset(reader.binds),
        words=frozenset(_WORD.findall(python)) if len(python) < 20_000 else frozenset(),
        lines=code_lines(source),
        drawn=reader.drawn,
        last=reader.last,
        doc=reader.doc,
        headline=_headline(cell, comments),
    )


def _readable(python: str) -> Iterator[ast.Module]:
    """Yield the trees of the blocks of `python` that parse, with the lines where they stand."""
    lines = python.split("\n")
    starts = [number for number, line in enumerate(lines) if _BLOCK.match(line)]
    for start, end in pairwise([*starts[:_MOST_BLOCKS], len(lines)]):
        tree = parse("\n" * start + "\n".join(lines[start:end]))
        if tree is not None:
            yield tree


def _paragraphs(comments: tuple[tuple[int, str, bool], ...], lines: list[str]) -> tuple[str, ...]:
    """Return comments, those on lines of their own that follow each other as one text.

    A mark of what is to be done goes on only where it was broken for want of room: the comment
    below it is most often about the code below that.
    """
    found: list[str] = []
    before = -1
    for line, text, alone in comments:
        joins = alone and line == before + 1 and found and not _MARK.match(text)
        if joins and is_mark(found[-1]):
            joins = _goes_on(lines[before - 1].rstrip(), lines[line - 1].rstrip())
        if joins and text and len(found[-1]) < 1000:
            found[-1] = f"{found[-1]} {text}"
        elif text:
            found.append(text)
        before = line if alone and text else -1
    return tuple(clean(text) for text in found if _WORD.search(text))


def _goes_on(above: str, below: str) -> bool:
    """Return whether the sentence in the comment line `above` goes on in the one `below` it."""
    if _indent(below) > _indent(above):
        return True
    text = below.lstrip("#! \t")
    if above.endswith((".", "!", "?", "…", ":")) or not text:
        return False
    if above.endswith((",", "(", "/", "-")) or _JOINS.search(above) or _JOINED.match(text):
        return True
    full = len(above) + 1 + len(text.split()[0]) > _ROOM
    return full and not text[0].isupper()


def _indent(line: str) -> int:
    """Return the column at which the text of a comment line begins."""
    return len(line) - len(line.lstrip("#! \t"))


def _headline(cell: cells.Cell, comments: tuple[str, ...]) -> str:
    """Return the comment that a cell begins with, where it reads as what the cell is for."""
    if not cell.comments or not comments or is_mark(comments[0]):
        return ""
    line, _, alone = cell.comments[0]
    before = "".join(cell.python.split("\n", line)[: line - 1]) if line < 5 else "x"
    return comments[0] if alone and not before.strip() and len(comments[0].split()) > 2 else ""


def is_mark(comment: str) -> bool:
    """Return whether a comment marks what is still to be done."""
    return _MARK.search(comment) is not None


def _marks(comment: str) -> Iterator[str]:
    match = _MARK.search(comment)
    if match and match["what"].strip():
        yield shorten(match["what"].strip(), 160)


def _command_files(commands: tuple[str, ...]) -> Iterator[FileUse]:
    for command in commands:
        parts = command.split()
        name = parts[0].lstrip("%")
        given = [part for part in parts[1:] if not part.startswith("-")]
        if not given or not parts[0].startswith("%"):
            continue
        path = Expr("text", given[-1].strip("\"'"))
        if name in ("writefile", "file"):
            yield FileUse("writes", path, parts[0])
        elif name in ("run", "load", "loadpy"):
            yield FileUse("reads", Expr("text", given[0].strip("\"'")), parts[0])
