"""The text of a living document as the built-in engine leaves it (M5).

What it tells stands between its own two lines and is written anew there. A model writes the
document itself, without them. Where its cells have changed since and no model is at hand, a second
account below the first would leave a reader with two; so then one line between ours says that the
text above is older than its cells, and the record stays, by which it counts as stale.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ipymemory import document_records
from ipymemory.document_records import BEGIN, Record
from ipymemory.documents import Document, find
from ipymemory.errors import FormatError
from ipymemory.extractive import Chapter, write_document

ENGINE = "extractive"
MODEL = "anthropic"

MOST_NAMED = 3
"""Cells that a line names which says that a text is stale."""

_CHANGE = re.compile(r"\[code \d+\] (?:has changed|is new)")
"""What is said of a cell without a word of whoever sent the file."""


@dataclass(frozen=True, slots=True)
class Written:
    """A document's new text; `stale`: a model's own, which now says that it is stale."""

    text: str
    stale: bool = False


class Body:
    """What the built-in engine tells of notebooks, made once for each level of heading.

    The same for all documents of a notebook, of which there may be a hundred.
    """

    def __init__(self, chapters: Sequence[Chapter]) -> None:
        self.chapters = tuple(chapters)
        self._made: dict[int, str] = {}

    def at(self, level: int) -> str:
        """Return the text below a heading of `level`."""
        if level not in self._made:
            self._made[level] = write_document(self.chapters, level)
        return self._made[level]


def written(
    head: Document, text: str, body: Body, record: Record | None, reasons: Sequence[str]
) -> Written:
    """Return the document `text` as it should be, all that is not the engine's as it was.

    `record` is the one of its last update, `reasons` why it is stale, nothing where it is true.
    Raises `FormatError` where it is not known what in it is ours.
    """
    bare = document_records.emptied(document_records.in_text(text)[1], head.end)
    if record is None or not record.by or not bare[head.end :].strip():
        marks = head.heading.lstrip(" ")
        level = len(marks) - len(marks.lstrip("#"))
        after = document_records.filled(text, head.end, body.at(level))
        return Written(_kept(head, text, after))
    if not reasons:
        return Written(_kept(head, text, document_records.emptied(text, head.end)))
    after = document_records.filled(text, head.end, older(reasons))
    return Written(_kept(head, text, after), stale=True)


def older(reasons: Sequence[str]) -> str:
    """Return the line which says that a text is older than its cells, and by which of them."""
    named = [each for each in reasons if _CHANGE.fullmatch(each)][:MOST_NAMED]
    more = ["and more"] if named and len(named) < len(reasons) else []
    said = f": {'; '.join([*named, *more])}" if named else ""
    return f"_The text above is older than its cells{said}._"


def hand(text: str, engine: str, record: Record | None) -> str:
    """Return whose own text a document is: what its record says of that (`Record.by`).

    `engine` wrote it last, `record` is the one it had before.
    """
    if BEGIN in text:
        return ""
    return MODEL if engine == MODEL else (record.by if record is not None else "")


def _kept(head: Document, text: str, after: str) -> str:
    again = find(after)
    kept = again is not None and (again.heading, again.instruction) == (
        head.heading,
        head.instruction,
    )
    if not kept or not after.startswith(text[: head.end].rstrip("\r\n")):
        raise FormatError("Its heading or instruction line would have changed. It was left as is.")
    return after
