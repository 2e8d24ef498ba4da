"""Updates of a running notebook's documents, in the session's folder, until somebody takes them.

The kernel never writes the notebook itself (M8): the page does where the lab extension is, else
the person, from ``%memory docs``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ipymemory import document_records
from ipymemory.document_records import Record
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
    """The text `source` for the document in `cell`, made from its text `base`; both masked.

    `record` names the cells that `source` rests on, `engine` who wrote it: whoever takes the text,
    however late, takes both with it.
    """

    cell: str
    title: str
    base: str
    source: str
    made: str
    record: Record | None = None
    engine: str = "extractive"


def read(folder: SessionFolder) -> list[Proposal]:
    """Return what waits, in the order of the notebook. Never raises: a broken file holds none."""
    try:
        value = read_json(folder.documents)
    except IpymemoryError:
        return []
    if not value or value.get("version") != VERSION:
        return []
    given, records = value.get("proposals"), value.get("records")
    known = [document_records.read(each) for each in records] if isinstance(records, list) else []
    found = []
    for each in given if isinstance(given, list) else []:
        if (one := _proposal(each, known)) is not None:
            found.append(one)
    return found


def write(folder: SessionFolder, proposals: Sequence[Proposal]) -> None:
    """Put `proposals` in place of what waits; raises `PlaceError`."""
    if not proposals and not folder.documents.exists():
        return
    # All that a run writes rest on the same cells, of which there may be thousands.
    records: list[Record] = []
    values = []
    for each in proposals:
        value = asdict(replace(each, record=None))
        if each.record is not None:
            if each.record not in records:
                records.append(each.record)
            value["record"] = records.index(each.record)
        values.append(value)
    told = [each.as_dict() for each in records]
    write_json(folder.documents, {"version": VERSION, "records": told, "proposals": values})


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


def _proposal(value: Any, records: Sequence[Record | None]) -> Proposal | None:
    names = ("cell", "title", "base", "source", "made")
    if not isinstance(value, dict) or not all(isinstance(value.get(each), str) for each in names):
        return None
    cell, title, base, source, made = (value[each] for each in names)
    at, engine = value.get("record"), value.get("engine")
    if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < len(records):
        at = None
    record = records[at] if at is not None else None
    engine = engine if isinstance(engine, str) else "extractive"
    return Proposal(cell, title, base, source, made, record, engine)
