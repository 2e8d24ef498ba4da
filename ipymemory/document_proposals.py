"""Updates of a running notebook's documents, in the session's folder, until somebody takes them.

The kernel never writes the notebook itself (M8): the page does where the lab extension is, else
the person, from ``%memory docs``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ipymemory.errors import IpymemoryError
from ipymemory.files import read_json, write_json
from ipymemory.places import SessionFolder
from ipymemory.transcript import Transcript
from ipymemory.turns import Happening

VERSION = 1

OUTCOMES = ("applied", "accepted", "conflict", "dismissed", "undone")
"""What became of an update in the page (M7)."""

BACK = ("dismissed", "undone")
"""Those of them by which a person said no."""


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


def told(folder: SessionFolder) -> dict[str, Happening]:
    """Return what the page told last of each document's update, by its cell. Never raises."""
    transcript = Transcript(folder.transcript)
    try:
        transcript.follow()
    except IpymemoryError:
        return {}
    return {
        str(each.details.get("cell_id")): each
        for each in transcript.entries
        if isinstance(each, Happening)
        and each.name == "document"
        and each.details.get("outcome") in OUTCOMES
    }


def waiting(all: Sequence[Proposal], told: Mapping[str, Happening]) -> list[Proposal]:
    """Return those that still wait: what the page took or refused since waits no more.

    Also before the worker looks again, which drops them.
    """
    return [
        each
        for each in all
        if (last := told.get(each.cell)) is None
        or last.time < each.made
        or last.details["outcome"] == "conflict"
    ]


def _proposal(value: Any) -> Proposal | None:
    names = ("cell", "title", "base", "source", "made")
    if isinstance(value, dict) and all(isinstance(value.get(each), str) for each in names):
        return Proposal(*(value[each] for each in names))
    return None
