"""What of a code cell counts, as a hash: comments and white space do not, a changed step does (M9).

It is made of the text and not of Python's tree, which differs between versions of Python. A line
or a cell that a magic takes is read in the magic's language: below ``%%time`` stands Python, below
``%%bash`` a shell's words, and of a magic that is not known nothing but blanks is left out.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath

from ipymemory import cell_languages

MOST_PIECES = 200_000
"""Characters of a cell that are taken apart word by word; of a longer one only blank lines and
blanks that end a line are left out, since nobody typed it."""

_PIECE = re.compile(
    r"(?P<string>\"{3}(?:[^\"\\]|\\.|\"(?!\"\"))*(?:\"{3})?|'{3}(?:[^'\\]|\\.|'(?!''))*(?:'{3})?"
    r"|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?)"
    r"|(?P<comment>\#[^\n]*)|(?P<line>\n[ \t]*)|(?P<more>\\\n)|(?P<word>\w+|[^\w\s])",
    re.DOTALL,
)
_COMMAND = re.compile(
    r"[ \t]*(?P<kept>[A-Za-z_][\w.,\[\] \t'\"]{0,200}?=[ \t]{0,9}(?=%[A-Za-z_]|!(?!=))|(?=[%!]))"
    r"(?P<what>(?:\\\n|[^\n])*)"
)
"""A line that is IPython's own, also one that keeps what it says: ``names = !ls``."""
_MAGIC = re.compile(r"%{1,2}(?P<name>[^\s%?]*)(?P<rest>.*)", re.DOTALL)
_PREFIX = re.compile(r"[rRbBuU]{0,2}[fFtT][rR]?\Z")
_DEEP = 20
"""Strings within fields of strings: Python's own bound is about as many."""

_TIMED = frozenset(["time", "timeit", "prun", "lprun", "mprun", "memit", "scalene", "heat"])
_RUN = frozenset(["capture", "debug", "notify", "snakeviz", "pyinstrument", "profile", "wandb"])
_OTHER = frozenset(["python", "python2", "python3", "pypy", "cython", "px", "mypy", "pyspark"])
_PYTHON = _TIMED | _RUN | _OTHER
"""Magics whose line or cell is Python."""
_SHELL = frozenset(
    ["bash", "sh", "sx", "system", "!", "pip", "conda", "mamba", "micromamba", "uv", "pixi"]
)
"""Magics whose line or cell a shell reads."""
_VALUES = frozenset(["env", "set_env"])
"""Magics to which every blank is part of a value."""
_FILES = frozenset(["writefile", "file"])
"""Magics that put the cell into a file."""
_BY_ENDING = {".py": "python", ".pyx": "python", ".bash": "shell", ".htm": "html"}
_INTERPRETER = re.compile(r"(?:i?python|pypy)[\d.]*(?:\.exe)?")
_OF_SCRIPT = re.compile(r"--(?:out|err|proc)")


def fingerprint(source: str, language: str = "python") -> str:
    """Return the hash of what a code cell does: SHA-256, its first 16 hexadecimal digits.

    Comments, blank lines, line ends and white space between words do not count, nor how wide an
    indent is; strings, commands (``%``, ``!``) and the depth of a block do (M9). Nothing for a
    cell that does nothing. `language` is the notebook's, as its kernel calls it.
    """
    text = source.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    pieces = (
        _cell(text) if language.casefold() in ("", "python", "ipython") else _of(text, language)
    )
    if not pieces:
        return ""
    joined = "\0".join(pieces).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:16]


def _of(text: str, language: str) -> list[str]:
    name = "long" if len(text) > MOST_PIECES else cell_languages.by_name(language)
    return cell_languages.lines(text, name)


def _cell(text: str) -> list[str]:
    """Return the pieces of a Python notebook's cell, each magic's part in its language."""
    found: list[str] = []
    while text.lstrip().startswith("%%"):
        head, _, text = text.lstrip().partition("\n")
        match = _MAGIC.match(head)
        name, rest = (match["name"], match["rest"].strip()) if match else (head, "")
        language = _language(name, rest)
        line = _pieces(rest) if name in _PYTHON else [cell_languages.folded(rest)]
        found += [f"%%{name}", *line]
        if language != "python":
            known = language if len(text) <= MOST_PIECES else "long"
            return [*found, *cell_languages.lines(text, known)]
        text = text.strip("\n")
    if len(text) > MOST_PIECES:
        return [*found, *cell_languages.lines(text, "long")]
    return [*found, *_pieces(text)]


def _language(name: str, rest: str) -> str:
    """Return the language of the cell below ``%%name rest``."""
    if name in _PYTHON:
        return "python"
    if name in _SHELL:
        return "shell"
    words = rest.split()
    if name in _FILES:
        ending = PurePosixPath(words[-1].strip("'\"")).suffix.casefold() if words else ""
        known = _BY_ENDING.get(ending, "") or cell_languages.by_name(ending[1:])
        return "exact" if known == "other" else known
    if name == "script":
        program = PurePosixPath(_program(words)).name
        return "python" if _INTERPRETER.fullmatch(program) else cell_languages.by_name(program)
    return cell_languages.by_name(name)


def _program(words: list[str]) -> str:
    """Return the program that ``%%script`` starts."""
    value = False
    for each in words:
        if value or each.startswith("-"):
            value = not value and _OF_SCRIPT.fullmatch(each) is not None
        elif PurePosixPath(each).name != "env":
            return each
    return ""


def _command(match: re.Match[str]) -> list[str]:
    """Return the pieces of a line that is IPython's own."""
    kept, what = match["kept"], match["what"].strip()
    found = [piece for piece in _pieces(kept) if piece != "\n0"]
    if what.startswith("!"):
        mark = "!!" if what.startswith("!!") else "!"
        return [*found, mark, *cell_languages.lines(what[len(mark) :], "shell")]
    magic = _MAGIC.match(what)
    if magic is None:
        return [*found, cell_languages.folded(what)]
    name, rest = magic["name"], magic["rest"]
    found.append(what[: magic.start("rest")])
    if name in _PYTHON:
        return [*found, *_pieces(rest.strip(), commands=False)]
    if name in _SHELL:
        return [*found, *cell_languages.lines(rest, "shell")]
    return [*found, rest.strip() if name in _VALUES else cell_languages.folded(rest)]


def _pieces(text: str, *, commands: bool = True) -> list[str]:
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
        command = None
        if kind in ("comment", "line", "more"):
            if kind == "line" and not depth and commands:
                command = _COMMAND.match(text, at)
            if command is None:
                continue
            at = command.end()
        if pending:
            found.append(_depth(pending[1:].expandtabs(), indents))
            pending = ""
        if command is not None:
            found += _command(command)
            continue
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
