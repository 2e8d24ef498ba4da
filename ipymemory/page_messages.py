"""What the page may say to the kernel, read and bounded: an untrusted message in, values out.

Whoever can write into the notebook's page can send anything. Nothing of a message is run, formatted
or used as a path; what does not fit is refused with a sentence, and the rest of it is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST_CELLS = 5_000
"""Markdown cells of one message, and of one notebook."""

MOST_CELL = 256 * 1024
"""Characters of one markdown cell: a long chapter; what is longer holds a picture."""

MOST_ALL = 4 * 1024 * 1024
"""Characters of all cells of one message."""

_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_SHORT = 500


class Refused(Exception):
    """A message, or a cell of it, that is not used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class PageCell:
    """A markdown cell as the page shows it now.

    `stamp` is what the page calls this state of its text; `came` whether it stood so when the
    notebook was opened, by the page's word.
    """

    id: str
    source: str
    stamp: str = ""
    position: int | None = None
    came: bool = False


@dataclass(frozen=True, slots=True)
class Cells:
    """Markdown cells that are new or changed, ids of those that are gone, and what was refused.

    With `full` they are all there are; with `more` another message with the rest follows.
    """

    cells: tuple[PageCell, ...] = ()
    removed: tuple[str, ...] = ()
    full: bool = False
    more: bool = False
    refused: tuple[tuple[str, str], ...] = ()


def head(data: object) -> tuple[str, Mapping[str, Any]]:
    """Return the type of a message, and itself; raises `Refused`."""
    if not isinstance(data, Mapping):
        raise Refused("The message is no object. Reload the page.")
    kind = data.get("type")
    if not isinstance(kind, str) or len(kind) > _SHORT:
        raise Refused("The message has no type. Reload the page.")
    return kind, data


def answer_id(data: object) -> str | int | None:
    """Return the id that a reply to this message bears, None where there is none to use."""
    id = data.get("id") if isinstance(data, Mapping) else None
    if isinstance(id, str):
        return id if len(id) <= _SHORT else None
    return id if isinstance(id, int) and not isinstance(id, bool) and abs(id) < 2**53 else None


def short(data: Mapping[str, Any], name: str) -> str:
    """Return a short text of the message, nothing where it has none; raises `Refused`."""
    value = data.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _SHORT:
        raise Refused(f"“{name}” is no text of at most {_SHORT} characters. Reload the page.")
    return value


def cell_id(data: Mapping[str, Any], name: str = "cell") -> str:
    """Return the cell that the message names, nothing for none; raises `Refused`."""
    value = data.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise Refused(f"“{name}” is no id of a cell. Reload the page.")
    return value


def cells(data: Mapping[str, Any]) -> Cells:
    """Return the cells of a ``cells`` message; raises `Refused` where it is none as a whole."""
    told = data.get("cells", [])
    gone = data.get("removed", [])
    if not isinstance(told, list) or not isinstance(gone, list):
        raise Refused("“cells” and “removed” are lists. Reload the page.")
    if len(told) > MOST_CELLS or len(gone) > MOST_CELLS:
        raise Refused(
            f"More than {MOST_CELLS:,} markdown cells came at once, and none was read. Split the "
            "notebook if it has so many."
        )
    found: list[PageCell] = []
    refused: list[tuple[str, str]] = []
    size = 0
    for each in told:
        try:
            cell = _cell(each)
            size += len(cell.source)
            if size > MOST_ALL:
                raise Refused("One message holds too much text; send the rest in another.")
            found.append(cell)
        except Refused as error:
            id = each.get("id") if isinstance(each, Mapping) else None
            refused.append((id if isinstance(id, str) and _ID.fullmatch(id) else "", str(error)))
    return Cells(
        tuple(found),
        tuple(each for each in gone if isinstance(each, str) and _ID.fullmatch(each)),
        full=data.get("full") is True,
        more=data.get("more") is True,
        refused=tuple(refused),
    )


def _cell(value: object) -> PageCell:
    if not isinstance(value, Mapping):
        raise Refused("A cell is an object with an id and a source. Reload the page.")
    id, source = cell_id(value, "id"), value.get("source")
    if not id or not isinstance(source, str):
        raise Refused("A cell is an object with an id and a source. Reload the page.")
    if len(source) > MOST_CELL:
        raise Refused(
            f"This cell holds {len(source):,} characters, more than the {MOST_CELL:,} that are "
            "read. Split it, or move its pictures into files."
        )
    position = value.get("position")
    placed = isinstance(position, int) and not isinstance(position, bool)
    return PageCell(
        id,
        source,
        short(value, "hash"),
        position if placed and 0 <= position < 10**6 else None,  # type: ignore[operator]
        value.get("origin") == "file",
    )
