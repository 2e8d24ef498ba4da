"""Markdown that somebody else wrote, made harmless: for the answers of a model.

A notebook trusts what its cells display: raw HTML in Markdown would run there, and an image from
another host would tell that host whatever stands in its address. A model repeats what it read, so
its words are nobody's. What comes out of `neutral` holds no HTML, no image, no link but to an
address that is plainly one, and nothing that moves a terminal's cursor.

It does not try to read Markdown as every frontend does. It writes it so that all must read it the
same: a fence always at the margin and with a blank line above, a code span always within one line,
every other backtick and every ``<`` as an entity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Control characters but tab and line feed, those that turn the direction of writing, and invisible
# ones that letters hide behind.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
_ESCAPES = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|.)?")
_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*(.*?)[ \t]*")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,30}")
_TICKS = re.compile(r"`+")
_MATH = re.compile(r"\$\$[^$]+\$\$|\$(?![\s$])[^$\n]*[^$\s\\]\$(?!\d)")
# What MathJax takes that leads out of mathematics.
_LEADS_OUT = re.compile(
    r"\\(?=(?:href|url|style|class|cssId|data|require|include|html|bbox|mmlToken|unicode|"
    r"csname|def|let|newcommand|renewcommand|newenvironment|renewenvironment|catcode)(?![a-z]))",
    re.IGNORECASE,
)
_LINK = re.compile(r"\]\((?:(?P<plain>[^\s()<>\"'\\$`]+)\))?")
_ADDRESS = re.compile(
    r"https?://[A-Za-z0-9._~:/?#@!&*+,;=%-]+"
    r"|mailto:[A-Za-z0-9._%+@-]+"
    r"|#[\w.%-]*"
    r"|(?:\.{0,2}/)?(?!/)[\w.%~-]+(?:/[\w.%~-]+)*/?(?:#[\w.%-]*)?"
)


def plain(text: str) -> str:
    """Return `text` with plain line feeds and without what a screen takes for a command."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROL.sub("", text.encode("utf-8", "replace").decode())


def neutral(text: str) -> str:
    """Return Markdown that shows what `text` says and does nothing else.

    May be called for the beginning of a text that is still growing: what is open is closed.
    """
    blocks = []
    for fence, language, lines in _blocks(plain(text)):
        body = "\n".join(lines)
        if not fence:
            blocks.append(_prose(body))
            continue
        longest = max((len(each[0]) for each in _TICKS.finditer(body)), default=0)
        ticks = "`" * max(3, longest + 1)
        blocks.append(f"\n{ticks}{language}\n{body}\n{ticks}\n")
    return "\n".join(blocks)


def one_line(text: str, most: int = 100) -> str:
    """Return `text` for a code span: one line of at most `most` characters, without a backtick."""
    shown = " ".join(plain(text).replace("`", "'").replace("|", "¦").split())
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _blocks(text: str) -> Iterator[tuple[bool, str, list[str]]]:
    """Yield the parts of `text`: whether it is fenced, its language, its lines."""
    lines: list[str] = []
    fence, language, indent = "", "", 0
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        if fence:
            closes = found is not None and not found[3] and found[2].startswith(fence)
            if not closes:
                lines.append(_without_indent(line, indent))
                continue
            yield True, language, lines
            fence, lines = "", []
        elif found is not None and not (found[2][0] == "`" and "`" in found[3]):
            if lines:
                yield False, "", lines
            fence, indent, lines = found[2], len(found[1].expandtabs(4)), []
            named = _LANGUAGE.match(found[3])
            language = named[0] if named else ""
        else:
            lines.append(line)
    if lines or fence:
        yield bool(fence), language, lines


def _without_indent(line: str, indent: int) -> str:
    if not indent:
        return line
    line = line.expandtabs(4) if line[:1] in " \t" and "\t" in line[:indent] else line
    return line[min(indent, len(line) - len(line.lstrip(" "))) :]


def _prose(text: str) -> str:
    """Return text that is not fenced, its code spans kept, all else made harmless."""
    pieces, prose = [], []
    for number, line in enumerate(text.split("\n")):
        if number:
            prose.append("\n")
        for is_code, piece in _spans(line):
            if is_code:
                pieces += [_words("".join(prose)), piece]
                prose = []
            else:
                prose.append(piece)
    pieces.append(_words("".join(prose)))
    return "".join(pieces)


def _spans(line: str) -> Iterator[tuple[bool, str]]:
    """Yield the pieces of a line and whether each is a code span; other backticks are entities."""
    at = 0
    runs = list(_TICKS.finditer(line))
    for number, run in enumerate(runs):
        if run.start() < at:
            continue
        yield False, line[at : run.start()]
        escaped = line[: run.start()].endswith("\\")
        end = next((each for each in runs[number + 1 :] if len(each[0]) == len(run[0])), None)
        span = line[run.start() : end.end()] if end is not None else ""
        # A cell of a table ends at a bar, also at one within a span.
        if end is None or escaped or ("|" in span and "<" in span):
            yield False, "&#96;" * len(run[0])
            at = run.end()
        else:
            yield True, span
            at = end.end()
    yield False, line[at:]


def _words(text: str) -> str:
    """Return prose without HTML, images, hidden addresses and commands to MathJax."""
    if not text:
        return ""
    text = _MATH.sub(lambda found: found[0].replace("<", r"\lt "), text)
    text = _LEADS_OUT.sub("&#92;", text)
    text = (
        text.replace("\\<", "<")
        .replace("<", "&lt;")
        .replace("![", "&#33;[")
        .replace("]:", "]&#58;")
    )
    return _LINK.sub(_link, text)


def _link(found: re.Match[str]) -> str:
    address = found["plain"]
    if address is not None and _ADDRESS.fullmatch(address):
        return found[0]
    return "]&#40;" + found[0][2:]
