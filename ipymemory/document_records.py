"""What a living document rests on, kept out of its visible text, and what has become stale.

In a notebook the record stands in the cell's metadata, in a ``.md`` file in an HTML comment at
its end (formats.md). It is data of whoever sent the file: it is compared with what is there, and
nothing in it is run or followed as a path.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ipymemory.errors import FormatError
from ipymemory.fingerprints import fingerprint
from ipymemory.markdown import outside_fences
from ipymemory.redaction import mask_source

VERSION = 1
"""The version of a record."""

MOST_CELLS = 20_000
"""Cells that a record may name; one that names more is no record."""

MOST_NAME = 50
"""Characters of an engine's name in a record."""

BEGIN = "<!-- ipymemory:begin -->"
END = "<!-- ipymemory:end -->"
"""The lines around what is ours in a document; no browser shows them."""

_COMMENT = re.compile(r"(?m)^<!-- ipymemory (?P<json>\{[^\n]*\}) -->[ \t]*\r?$")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that says something: its id, or nothing for an old notebook; its hash; its label.

    `file` is the notebook's name for a document that rests on several, else nothing.
    """

    id: str
    hash: str
    label: str = ""
    file: str = ""

    @property
    def key(self) -> str:
        """The cell as a record names it: ``b1``, or ``clean.ipynb#b1``."""
        return f"{self.file}#{self.id}" if self.file else self.id


@dataclass(frozen=True, slots=True)
class Record:
    """What a document rested on when it was written; `file` is the name it had.

    `by` is the engine whose own text it is, nothing for one that writes between our two lines.
    """

    updated: str
    file: str
    rests_on: tuple[tuple[str, str], ...]
    by: str = ""

    def agrees(self, other: Record | None) -> bool:
        """Return whether `other`, if any, names the same cells in a file of the same name."""
        return other is not None and (self.file, self.rests_on) == (other.file, other.rests_on)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, its keys in the order in which Jupyter writes them."""
        return {
            **({"by": self.by} if self.by else {}),
            "file": self.file,
            "rests_on": [{"cell": cell, "hash": hash} for cell, hash in self.rests_on],
            "updated": self.updated,
            "version": VERSION,
        }


def hash_of(source: str, language: str = "python") -> str:
    """Return the hash by which a record knows a cell; nothing for one that does nothing.

    Of the source with its secrets masked: so the transcript, which holds no other, gives the same
    hash as the notebook, and a guess at a password cannot be tried against it.
    """
    return fingerprint(mask_source(source), language)


def made(updated: str, file: str, cells: Sequence[Cell], by: str = "") -> Record:
    """Return the record of a document written from `cells`; `by` is for an engine's own text."""
    return Record(updated, file, tuple((each.key, each.hash) for each in cells), by)


def read(value: Any) -> Record | None:
    """Return the record in `value`, JSON of anybody; None when it is none that can be used."""
    rests = value.get("rests_on") if isinstance(value, dict) else None
    if not isinstance(rests, list) or value.get("version") != VERSION or len(rests) > MOST_CELLS:
        return None
    pairs = []
    for each in rests:
        cell, hash = (each.get("cell"), each.get("hash")) if isinstance(each, dict) else (0, 0)
        if not isinstance(cell, str) or not isinstance(hash, str):
            return None
        pairs.append((cell, hash))
    updated, file, by = (value.get(each) for each in ("updated", "file", "by"))
    return Record(
        updated if isinstance(updated, str) else "",
        file if isinstance(file, str) else "",
        tuple(pairs),
        by if isinstance(by, str) and len(by) <= MOST_NAME else "",
    )


def reasons(record: Record | None, file: str, cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return why a document with this record is stale in `file` with these cells; none if fresh.

    Each reason is a clause without its full stop.
    """
    if record is None:
        return ("it has not been written yet",)
    found: list[str] = []
    if record.file and record.file != file:
        found.append(f"the file was called {_shown(record.file)} when it was written")
    now = [(each.file, each.hash) for each in cells]
    then = [(_file(cell), hash) for cell, hash in record.rests_on]
    if now == then:
        return tuple(found)
    found += _files(record, cells)
    known = {each.file for each in cells} & {_file(cell) for cell, _ in record.rests_on}
    found += _cells(
        [each for each in record.rests_on if _file(each[0]) in known],
        [each for each in cells if each.file in known],
    )
    if not found:
        found.append("its cells stand in another order")
    more = len(found) - _SHOWN
    return (*found[:_SHOWN], f"and {more} more changes") if more > 0 else tuple(found)


def _files(record: Record, cells: Sequence[Cell]) -> list[str]:
    then = dict.fromkeys(_file(cell) for cell, _ in record.rests_on)
    now = dict.fromkeys(each.file for each in cells)
    found = [
        f"{_shown(each)} is gone or was renamed" if each else "all of its cells are gone"
        for each in then
        if each not in now
    ]
    return found + [f"{_shown(each)} is new" for each in now if each and each not in then]


def _cells(then: Sequence[tuple[str, str]], now: Sequence[Cell]) -> list[str]:
    known = {cell for cell, _ in then}
    old = Counter((_file(cell), hash) for cell, hash in then)
    new = Counter((each.file, each.hash) for each in now)
    ids = {each.key for each in now if each.id}
    found: list[str] = []
    for each in now:
        if old[each.file, each.hash]:
            old[each.file, each.hash] -= 1
        elif each.id and each.key in known:
            found.append(f"{each.label} has changed")
        else:
            found.append(f"{each.label} is new")
    for cell, hash in then:
        if new[_file(cell), hash]:
            new[_file(cell), hash] -= 1
        elif cell not in ids or not cell:
            found.append(f"the cell {_shown(cell)} is gone" if cell else "a cell is gone")
    return found


def _file(cell: str) -> str:
    return cell.rpartition("#")[0]


def _shown(text: str) -> str:
    flat = "".join(each if each.isprintable() else "?" for each in text[:80])
    return f"{flat}…" if len(text) > 80 else flat


def in_text(text: str) -> tuple[Record | None, str]:
    """Return the record in the text of a file, and the text without it."""
    found = list(_COMMENT.finditer(text))
    if not found:
        return None, text
    last = found[-1]
    try:
        value = json.loads(last["json"])
    except (ValueError, RecursionError):
        value = None
    record = read(value.get("doc")) if isinstance(value, dict) else None
    return record, text[: last.start()] + text[last.end() :]


def put_in_text(text: str, record: Record) -> str:
    """Return the text of a file with `record` in place of the one it has, else at its end."""
    value = json.dumps({"doc": record.as_dict()}, separators=(",", ":"))
    # Nothing in it may end the comment.
    value = value.replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")
    line = f"<!-- ipymemory {value} -->"
    found = list(_COMMENT.finditer(text))
    if found:
        end = "\r" if found[-1].group().endswith("\r") else ""
        return text[: found[-1].start()] + line + end + text[found[-1].end() :]
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if text.endswith("\n") else newline
    return f"{text}{gap}{newline}{line}{newline}"


def filled(text: str, end: int, body: str) -> str:
    """Return the document `text` with `body`, whole lines, between the lines that mark it ours.

    `end` is where its head ends. Every other byte stays; where there are no such lines yet they
    are put below what the author wrote. Raises `FormatError` when they are damaged.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    body = body.strip("\n").replace("\n", newline)
    marks = _marks(text, end)
    if not marks:
        # A line that were put below would be part of a block that is open.
        tail = f"{text}{newline}{END}"
        if not any(begin > len(text) for begin, _ in outside_fences(tail)):
            raise FormatError(
                "A code block in it is opened and never closed, so what is put below would be part "
                "of it. Close it with a line of as many ` or ~ as open it."
            )
        block = f"{BEGIN}{newline}{body}{newline}{END}"
        if text.endswith("\n" * 2) or text.endswith("\r\n\r\n"):
            return f"{text}{block}{newline}"
        if text.endswith("\n"):
            return f"{text}{newline}{block}{newline}"
        return f"{text}{newline}{newline}{block}"
    return text[: marks[0][1]] + body + newline + text[marks[1][0] :]


def emptied(text: str, end: int) -> str:
    """Return the document `text` without what `filled` put there, all else as it was.

    Raises `FormatError` when the lines that mark it are damaged.
    """
    marks = _marks(text, end)
    if not marks:
        return text
    above, below = text[: marks[0][0]], text[marks[1][1] :]
    newline = "\r\n" if "\r\n" in text else "\n"
    # The blank line above it, and where it ended the text the line feed too.
    for _ in range(1 if text[marks[1][0] : marks[1][1]].endswith("\n") else 2):
        if above[end:].endswith(newline):
            above = above.removesuffix(newline)
    return above + below


def _marks(text: str, end: int) -> list[tuple[int, int]]:
    """Return where the two lines around what is ours begin and end, nothing without them.

    Raises `FormatError` for others than these two in their order, below the head.
    """
    found = [
        (start, stop, text[start:stop].rstrip("\r\n"))
        for start, stop in outside_fences(text)
        if text[start:stop].rstrip("\r\n") in (BEGIN, END)
    ]
    if found and ([each[2] for each in found] != [BEGIN, END] or found[0][0] < end):
        raise FormatError(
            f"The lines {BEGIN} and {END} do not stand in it once each and in this order, so it "
            "is not known what in it may be written. Mend them, or remove both."
        )
    return [(start, stop) for start, stop, _ in found]
