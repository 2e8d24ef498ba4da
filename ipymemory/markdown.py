"""Sections of a Markdown text: text in, text out.

The session notes are sections: a header line ``# Name``, one italic line that says what belongs
there, then the content. Lines end at ``\\n`` and at nothing else, so that every byte, a carriage
return before the line feed included, stays with its line: `join` gives back what `sections`
took apart, and `skeleton` can be compared byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ipymemory.turns import tokens

_HEADER = re.compile(r" {0,3}#[ \t]+(?P<name>.*?)(?:[ \t]+#+)?[ \t\r]*")
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)
# Begins with the line feed before the line, which a search finds much faster than a line's start.
_CANDIDATE = re.compile(r"\n {0,3}(?:#[ \t]|`{3}|~{3})")
_ITALIC = re.compile(r"(?P<mark>[_*])(?![\s_*]).*(?<![\s_*])(?P=mark)[ \t\r]*")
_MAGIC_DOC = re.compile(r"(?:[ \t\r]*\n)* {0,3}#{1,6}[ \t]*MAGIC[ \t]*DOC[ \t]*:", re.IGNORECASE)
_CUT = "_(cut here: {} more lines)_"


@dataclass(frozen=True, slots=True)
class Section:
    """One section. `name` is for people; the rest is the text as it stands.

    `header` is the header's line without its line feed; `italic` the italic line below it, with
    the blank lines between if there are any, or empty; `body` all that follows up to the next
    header, its last line feed included.
    """

    name: str
    header: str
    italic: str
    body: str


@lru_cache(maxsize=16)  # one update asks about the same few texts again and again
def sections(text: str) -> tuple[Section, ...]:
    """Return the sections of `text` in order: level-1 ``# `` headers that are in no fence."""
    return tuple(_section(text[start:end]) for start, end in _spans(text))


def preamble(text: str) -> str:
    """Return what stands before the first header; all of `text` when there is none."""
    for start, _ in _spans(text):
        return text[:start]
    return text


def is_magic_doc(text: str) -> bool:
    """Return whether `text` is a living document: it begins with such a heading (behaviour M1)."""
    return _MAGIC_DOC.match(text) is not None


def join(preamble: str, sections: Iterable[Section]) -> str:
    """Return the text that was taken apart; a last line without its line feed gets one."""
    parts = [preamble]
    for each in sections:
        parts += [each.header, "\n"]
        if each.italic:
            parts += [each.italic, "\n"]
        parts.append(each.body)
    return "".join(parts)


def skeleton(text: str) -> tuple[tuple[str, str], ...]:
    """Return ``(header, italic line)`` of every section, byte for byte: what must survive."""
    return tuple((each.header, each.italic) for each in sections(text))


def section(text: str, name: str) -> Section | None:
    """Return the section that a person means by `name`, or None.

    Case does not matter, and the beginning of a name is enough when only one begins so.
    """
    wanted = name.strip().casefold()
    found = sections(text)
    for each in found:
        if each.name.casefold() == wanted:
            return each
    begun = [each for each in found if wanted and each.name.casefold().startswith(wanted)]
    return begun[0] if len(begun) == 1 else None


def cut(text: str, limit: int) -> str:
    """Return `text` if it holds at most `limit` tokens, else its first lines and a mark.

    The cut is at a line's end, the mark says how many lines are left out, and the result with
    its mark holds at most `limit` tokens. A first line that alone is too long is cut within.
    """
    if tokens(text) <= limit:
        return text
    lines = [line + "\n" for line in text.removesuffix("\n").split("\n")]
    room = limit - tokens(_CUT.format(len(lines))) - 1
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode("utf-8", "surrogatepass"))
        if size > 3 * room:
            break
        kept.append(line)
    if not kept and room > 0:
        head = lines[0].encode("utf-8", "surrogatepass")[: 3 * room - 1]
        return head.decode("utf-8", "ignore").rstrip() + "\n" + _CUT.format(len(lines)) + "\n"
    return "".join(kept) + _CUT.format(len(lines) - len(kept)) + "\n"


def outside_fences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each line begins and ends, its line feed taken along, but for code in fences."""
    fence, at = "", 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        fence, fenced = _after(text[at:end].removesuffix("\n"), fence)
        if not fenced:
            yield at, end
        at = end


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each section begins and ends."""
    begin: int | None = None
    fence = ""
    # A byte order mark is no part of the first line's text, and stays in the preamble. Of the
    # other lines only those that may be a header or a fence are looked at.
    starts = [1 if text.startswith("\ufeff") else 0]
    starts += [match.start() + 1 for match in _CANDIDATE.finditer(text)]
    for start in starts:
        end = text.find("\n", start)
        line = text[start:] if end < 0 else text[start:end]
        fence, fenced = _after(line, fence)
        if not fenced and _HEADER.fullmatch(line):
            if begin is not None:
                yield begin, start
            begin = start
    if begin is not None:
        yield begin, len(text)


def _after(line: str, fence: str) -> tuple[str, bool]:
    """Return the fence that is open after `line`, and whether the line belongs to a fence."""
    match = _FENCE.fullmatch(line)
    if not fence:
        if match is None or (match["mark"][0] == "`" and "`" in match["info"]):
            return "", False
        return match["mark"], True
    closes = match is not None and not match["info"].strip() and match["mark"].startswith(fence)
    return ("" if closes else fence), True


def _section(text: str) -> Section:
    header, _, rest = text.partition("\n")
    match = _HEADER.fullmatch(header)
    name = match["name"].strip() if match else header.strip()
    at = 0
    while at < len(rest):
        end = rest.find("\n", at) + 1 or len(rest)
        line = rest[at:end].removesuffix("\n")
        if line.strip():
            if _ITALIC.fullmatch(line):
                return Section(name, header, rest[:at] + line, rest[end:])
            break
        at = end
    return Section(name, header, "", rest)
