"""Updates of a running notebook's documents, in the session's folder, until somebody takes them.

The kernel never writes the notebook itself (M8): the page does where the lab extension is, else
the person, from ``%memory docs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ipymemory.errors import IpymemoryError
from ipymemory.files import read_json, write_json
from ipymemory.places import SessionFolder

VERSION = 1


@dataclass(frozen=True, slots=True)
class Proposal:
    """The text `source` for the document in `cell`, made from its text `base`; both masked."""

    cell: str
    title: str
    base: str
    source: str
    made: str


def read(folder: SessionFolder) -> list[Proposal]:
    """Return what waits, in the order of the notebook. Never raises: a broken file holds none."""
    try:
        value = read_json(folder.documents)
    except IpymemoryError:
        return []
    if not value or value.get("version") != VERSION:
        return []
    given = value.get("proposals")
    found = []
    for each in given if isinstance(given, list) else []:
        if (one := _proposal(each)) is not None:
            found.append(one)
    return found


def write(folder: SessionFolder, proposals: Sequence[Proposal]) -> None:
    """Put `proposals` in place of what waits; raises `PlaceError`."""
    if proposals or folder.documents.exists():
        values = [asdict(each) for each in proposals]
        write_json(folder.documents, {"version": VERSION, "proposals": values})


def _proposal(value: Any) -> Proposal | None:
    names = ("cell", "title", "base", "source", "made")
    if isinstance(value, dict) and all(isinstance(value.get(each), str) for each in names):
        return Proposal(*(value[each] for each in names))
    return None
