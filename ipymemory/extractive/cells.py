"""A cell as IPython reads it: what is Python, what is a command, what is a comment.

IPython's own syntax is taken out line by line, with a statement that does nothing in its place,
so that the rest parses and every line keeps its number. A line counts as IPython's only where a
statement can begin: within brackets or a string, ``% b`` and ``!x`` are something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

MOST = 100_000
"""Characters of a source that are looked at: three times what a transcript keeps of a cell."""

_TOKEN = re.compile(
    r"""(?P<quote>\"{3}|'{3}|"|')|(?P<comment>#[^\n]*)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<more>\\\n)|(?P<line>\n)"""
)
_ENDS = {
    '"': re.compile(r'(?:[^"\\\n]+|\\.)*"?', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\n]+|\\.)*'?", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]+|\\.|"(?!""))*(?:""")?', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]+|\\.|'(?!''))*(?:''')?", re.DOTALL),
}
_MAGIC = re.compile(
    r"(?P<indent>[ \t]*)(?:"
    r"(?P<command>%{1,2}[A-Za-z_][^\n]*|!{1,2}(?!=)[^\n]+|\?{1,2}[\w.%*][^\n]*)"
    r"|(?P<target>[A-Za-z_][\w.,\[\] \t'\"]{0,200}?)[ \t]{0,9}=[ \t]{0,9}"
    r"(?P<value>%[A-Za-z_][^\n]*|!{1,2}(?!=)[^\n]+)"
    r"|(?P<help>%{0,2}[A-Za-z_][\w.*]*\?{1,2}[ \t]*(?=\n|\Z)))"
)
_AUTOMAGIC = re.compile(
    r"(?m)^(?:(?:pip|conda|mamba|cd|cat|mkdir|rm|cp|mv|run|reset|matplotlib|load_ext|env|time)"
    r"[ \t]+[^=(\s][^=\n]*|(?:ls|ll|whos|history)[ \t]+-?\w[^=\n]*)$"
)
_CELL_MAGIC = re.compile(r"\s*(?P<head>%%(?P<name>[\w.!]+)[^\n]*)(?:\n|\Z)")
_FOREIGN = re.compile(
    r"(?:bash|sh|zsh|script|cmd|powershell|system|sx|!|html|HTML|javascript|js|latex|svg|markdown"
    r"|perl|ruby|R|sql|bigquery|writefile|file|cypher|spark|graphql|mermaid)\Z"
)
_SHELLS = re.compile(r"(?:bash|sh|zsh|script|cmd|powershell|system|sx|!)\Z")


@dataclass(frozen=True, slots=True)
class Cell:
    """A source taken apart: `python` with the same lines, commands in order, comments.

    `comments` are ``(line, text, alone)``: whether nothing else stands on that line.
    """

    python: str
    commands: tuple[str, ...] = ()
    comments: tuple[tuple[int, str, bool], ...] = ()


@lru_cache(maxsize=128)
def take_apart(source: str) -> Cell:
    """Return `source` taken apart. Never raises; time grows with the source's length alone."""
    source = _bounded(source).replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")
    if not ("%" in source or "!" in source or "?" in source):
        return Cell(source, (), _comments(source) if "#" in source else ())
    commands: list[str] = []
    head = _CELL_MAGIC.match(source)
    body = source
    if head:
        name = head["name"]
        commands.append(head["head"].strip())
        body = "\n" * source[: head.end()].count("\n") + source[head.end() :]
        if _SHELLS.match(name):
            commands += [f"! {line.strip()}" for line in body.splitlines() if _is_command(line)]
        if _FOREIGN.match(name):
            return Cell("", tuple(commands))
    python, found = _without_magics(body)
    commands += found
    return Cell(python, tuple(commands), _comments(python) if "#" in python else ())


def without_automagics(python: str) -> tuple[str, tuple[str, ...]]:
    """Return `python` without lines such as ``pip install x``, and those lines as commands.

    Only for what does not parse: ``cd data`` is one, ``cd = data`` is none.
    """
    found: list[str] = []

    def replace(match: re.Match[str]) -> str:
        found.append("%" + match.group().strip())
        return "pass"

    return _AUTOMAGIC.sub(replace, python), tuple(found)


def _bounded(source: str) -> str:
    if len(source) <= MOST:
        return source
    return source[: source.rfind("\n", 0, MOST) + 1 or MOST]


def _is_command(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _without_magics(source: str) -> tuple[str, list[str]]:
    """Return the Python of `source` and the commands in it."""
    kept: list[str] = []
    commands: list[str] = []
    at = 0
    for start in _statement_lines(source):
        if start < at:
            continue
        match = _MAGIC.match(source, start)
        if match is None:
            continue
        end = match.end()
        while source[end - 1 : end + 1] == "\\\n":
            stop = source.find("\n", end + 1)
            end = len(source) if stop < 0 else stop
        command = match["command"] or match["help"]
        line = source[start:end]
        if command:
            commands.append(" ".join(line.replace("\\\n", " ").split()))
            instead = "pass"
        else:
            commands.append(" ".join(line[match.start("value") - start :].split()))
            instead = f"{match['target']} = None"
        kept += [source[at:start], match["indent"], instead, "\n" * line.count("\n")]
        at = end
    kept.append(source[at:])
    return "".join(kept), commands


def _statement_lines(source: str) -> list[int]:
    """Return where the lines begin on which a statement can begin."""
    starts = [0]
    depth = 0
    at = 0
    if _MAGIC.match(source):
        at = max(source.find("\n"), 0)
    while match := _TOKEN.search(source, at):
        at = match.end()
        kind = match.lastgroup
        if kind == "quote":
            end = _ENDS[match.group()].match(source, at)
            at = end.end() if end else at
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
        elif kind == "line" and not depth:
            starts.append(at)
            if _MAGIC.match(source, at):
                # What a shell line quotes is no Python: an apostrophe in it opens nothing.
                stop = source.find("\n", at)
                at = len(source) if stop < 0 else stop
    return starts


def _comments(python: str) -> tuple[tuple[int, str, bool], ...]:
    """Return the comments of `python` as ``(line number, text, alone on its line)``."""
    found: list[tuple[int, str, bool]] = []
    at = 0
    seen = 0
    number = 1
    while match := _TOKEN.search(python, at):
        at = match.end()
        if match.lastgroup == "quote":
            end = _ENDS[match.group()].match(python, at)
            at = end.end() if end else at
        elif match.lastgroup == "comment":
            number += python.count("\n", seen, match.start())
            seen = match.start()
            begin = python.rfind("\n", 0, match.start()) + 1
            alone = not python[begin : match.start()].strip()
            found.append((number, match.group().lstrip("#!").strip(), alone))
    return tuple(found)
