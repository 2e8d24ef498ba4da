"""What code holds of a living document that a model writes: rules, no judgement (behaviour M5).

A model may have read a file that wants something of it. So what it writes is looked at before it
is anywhere: the head stays, nothing of ours is forged, nothing in it acts or fetches when it is
shown, and an address stands in it only where the document or a cell had it already.
"""

from __future__ import annotations

import html
import re
import unicodedata

from ipymemory import document_records
from ipymemory.document_files import MOST_WRITTEN
from ipymemory.document_records import BEGIN, END
from ipymemory.documents import Document, find
from ipymemory.errors import FormatError
from ipymemory.redaction import mask
from ipymemory.tools import Guard, elision
from ipymemory.turns import tokens

_SMALL = 200
"""Tokens that a document may lose without a question."""

_OURS = re.compile(r"<!--[\s/]*ipymemory[^\n]*", re.IGNORECASE)
_DESTINATION = re.compile(r"\]\s*\(\s*(<[^>\n]*>?|[^\s)]*)|\]:\s*(<[^>\n]*>?|\S+)")
_LEAVES = re.compile(r"(?i)[a-z][a-z0-9+.-]*:|[/\\]{2}")
"""How a destination begins that leads out of the project."""
_ADDRESS = re.compile(
    r"(?i)(?:\b[a-z][a-z0-9+.-]{1,30}:[/\\]{2}|\b(?:java|vb)script:|(?<![\w:/\\])//(?=[\w-]+\.)"
    r"|\bwww\.|(?<=<)[a-z][a-z0-9+.-]{1,30}:(?=[^\s<>]+>))[^\s<>\"'`)\]}]*"
)
_PICTURE = re.compile(r"!\[")
_TAG = re.compile(r"<[a-zA-Z][\w-]*(?:\s[^<>]*=|/[^<>]*=)|<!--|<[!?]")
_ACTS = re.compile(
    r"(?i)<[\s/]*(?:script|iframe|frame|object|embed|applet|link|meta|style|base|form|input|button"
    r"|textarea|select|svg|math|img|image|video|audio|source|template|noscript|dialog|portal)\b"
    r"|\\(?:href|require|class|cssid|style|includegraphics)\b"
)
"""Tags that fetch, ask or run something, and what formulas can do of that kind."""
_UNSEEN = frozenset("\u200c\u200d\ufe0e\ufe0f")
"""Characters without a shape that words in some languages, and pictures, are made with."""
_LABEL = re.compile(r"\[code (\d{1,6})\]")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def document_guard(
    head: Document, material: str = "", most: int = MOST_WRITTEN, cells: int | None = None
) -> Guard:
    """Return the guard of a document that a model writes.

    `material` is what it was shown of the cells, whose addresses it may name; `most` is how many
    bytes the document may come to, unless it had more; `cells` how many there are to name.
    """
    known = _addresses(material)

    def check(before: str, after: str) -> str:
        return (
            _head(head, before, after)
            or _mass(head, before, after, most)
            or _marks(head, before, after)
            or _shown(before, after, known)
            or _named(before, after, cells)
        )

    return check


def fault(guard: Guard, before: str, after: str) -> str:
    """Return what is wrong with a document as a run left it, or nothing; the last look."""
    if wrong := guard(before, after):
        return wrong
    if mark := elision(before, after):
        return f"It stands for other text instead of holding it ({mark!r})."
    return ""


def _head(head: Document, before: str, after: str) -> str:
    again = find(after)
    kept = after[: head.end].rstrip("\r\n") == before[: head.end].rstrip("\r\n")
    if again is None or not kept or again.heading.rstrip() != head.heading.rstrip():
        return "The heading and the instruction line below it stay exactly as they are."
    if again.instruction.rstrip() != head.instruction.rstrip():
        # It would be read as the person's own words from the next update on.
        return "The first line below the heading is no italic one: that is the person's to set."
    return ""


def _mass(head: Document, before: str, after: str, most: int) -> str:
    # What the built-in engine wrote may go: the model writes in its place.
    was = tokens(without_ours(before)[head.end :].strip())
    now = tokens(after[head.end :].strip())
    if not now:
        return "The edit leaves the document empty."
    if was > _SMALL and now < was // 2:
        return f"The edit drops most of the document: {was:,} tokens would become {now:,}."
    size = len(after.encode("utf-8", "replace"))
    if size > most and size > len(before.encode("utf-8", "replace")):
        return f"The document would grow past {most // 1024} KB. Write less."
    return ""


def _marks(head: Document, before: str, after: str) -> str:
    """Hold the lines that mark what is ours, and the record in a file: both or none, none new."""
    had, has = _OURS.findall(before), _OURS.findall(after)
    if [each for each in has if each not in had] or len(has) > len(had):
        return "Comments that name ipymemory are the program's own. Write none."
    try:
        document_records.filled(before, head.end, "")
        document_records.filled(after, head.end, "")
    except FormatError:
        if has != had:
            return f"The lines {BEGIN} and {END} stay both, or both go with all between them."
    return ""


def _shown(before: str, after: str, known: frozenset[str]) -> str:
    if mask(after) != mask(before) and mask(after) != after:
        return "An edit holds what looks like a password, key or token. Leave it out."
    if odd := next((each for each in _odd(after) if each not in before), ""):
        return f"The edit holds the character {odd!a}, which nobody sees. Leave it out."
    for pattern in (_ACTS, _TAG):
        for each in pattern.findall(after):
            if after.count(each) > before.count(each):
                return f"The edit holds {each[:40]!r}. Write Markdown, and no HTML."
    for each in sorted(_addresses(after) - known - _addresses(before)):
        return (
            f"The address {each[:80]!r} stands neither in the document nor in a cell. Leave it out."
        )
    # An address that a cell reads from is still nothing to fetch whenever somebody looks.
    if len(_PICTURE.findall(after)) > len(_PICTURE.findall(before)):
        return "The edit adds a picture. Describe in words what it would show."
    return ""


def _named(before: str, after: str, cells: int | None) -> str:
    had = no_cells(before, cells)
    for each in no_cells(after, cells):
        if each not in had:
            return f"There is no cell {each}: they go from [code 1] to [code {cells}]."
    return ""


def no_cells(text: str, cells: int | None) -> list[str]:
    """Return the labels in `text` that no cell has, where there are `cells`; None: all have."""
    if cells is None:
        return []
    numbers = dict.fromkeys(_LABEL.findall(text))
    return [f"[code {each}]" for each in numbers if not 1 <= int(each) <= cells]


def _odd(text: str) -> list[str]:
    return [
        each
        for each in set(text)
        if not each.isascii()
        and unicodedata.category(each) in ("Cf", "Cs", "Co", "Cc", "Zl", "Zp")
        and each not in _UNSEEN
    ]


def _addresses(text: str) -> frozenset[str]:
    """Return what in `text` leads out of the project once it is shown, as far as patterns see.

    Markdown reads entities and backslashes before it follows a link, and so does this.
    """
    found = {match[0] for match in _ADDRESS.finditer(text)}
    for match in _DESTINATION.finditer(text):
        place = _ESCAPED.sub(r"\1", html.unescape((match[1] or match[2] or "").strip("<>")))
        # A browser drops what nobody sees before it looks for the scheme.
        place = "".join(each for each in place if each > " " and each != "\x7f")
        if _LEAVES.match(place):
            found.add(place)
    return frozenset(each.rstrip(".,;:!?") for each in found)


def without_ours(text: str) -> str:
    """Return `text` without what the built-in engine wrote, where that is marked as it should."""
    begin, end = text.find(BEGIN), text.find(END)
    return text[:begin] + text[end + len(END) :] if 0 <= begin < end else text
