"""Writes of a memory that wait for the user: one JSON file each in the project's ``proposals/``.

In mode ``confirm``, and in a folder shared with another program, no memory is written before
somebody said yes (behaviour L10, E13).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipymemory.errors import FormatError, MemoryMissing
from ipymemory.files import read_json, write_json
from ipymemory.memory_files.values import Draft, one_line
from ipymemory.turns import new_id, utc_now

VERSION = 1


@dataclass(frozen=True, slots=True)
class Proposal:
    """One write that waits. `draft` is None where a memory is to be forgotten."""

    id: str
    time: str
    job: str
    session: str
    draft: Draft | None = None
    name: str = ""
    """The memory that it replaces or forgets, empty for a new one."""
    why: str = ""

    @property
    def line(self) -> str:
        """What it would do, in a sentence."""
        if self.draft is None:
            return f"forget {self.name}"
        what = f"[{self.draft.kind}] {one_line(self.draft.description, 200)}"
        return f"replace {self.name} by {what}" if self.name else f"save {what}"

    def as_dict(self) -> dict[str, Any]:
        """Return the proposal as JSON values."""
        return {
            "version": VERSION,
            "type": "memory",
            "id": self.id,
            "time": self.time,
            "job": self.job,
            "session": self.session,
            "name": self.name,
            "why": self.why,
            "draft": self.draft.as_dict() if self.draft else None,
        }


def propose(
    folder: Path, job: str, session: str, draft: Draft | None, name: str = "", why: str = ""
) -> Proposal:
    """Store a proposal in `folder`, and return it; the same one twice is one.

    Raises `PlaceError`.
    """
    for each in waiting(folder):
        if (each.draft, each.name) == (draft, name):
            return each
        if draft is not None and each.draft is not None and each.name == name:
            same = (each.draft.kind, each.draft.description, each.draft.body)
            if same == (draft.kind, draft.description, draft.body):
                return each
    made = Proposal(new_id(), utc_now(), job, session, draft, name, why)
    write_json(folder / f"{made.id}.json", made.as_dict())
    return made


def waiting(folder: Path) -> list[Proposal]:
    """Return the proposals of memories in `folder`, oldest first; broken ones are passed over."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            value = read_json(path)
        except FormatError:
            continue
        if value and value.get("type") == "memory" and value.get("version") == VERSION:
            found.append(_proposal(path, value))
    return found


def find(folder: Path, id: str) -> Proposal:
    """Return the proposal whose id is or begins with `id`; raises `MemoryMissing`."""
    found = [each for each in waiting(folder) if id and each.id.startswith(id)]
    if len(found) != 1:
        what = "No proposal begins" if not found else f"{len(found)} proposals begin"
        raise MemoryMissing(f"{what} with {one_line(id, 40)}; the command proposals lists them.")
    return found[0]


def settle(folder: Path, proposal: Proposal) -> None:
    """Take a proposal away: it was carried out or turned down."""
    (folder / f"{proposal.id}.json").unlink(missing_ok=True)


def _proposal(path: Path, value: Mapping[str, Any]) -> Proposal:
    told = value.get("draft")
    draft = Draft.from_dict(told) if isinstance(told, Mapping) else None
    job, session, name, why, time = (
        each if isinstance(each := value.get(key), str) else ""
        for key in ("job", "session", "name", "why", "time")
    )
    return Proposal(path.stem, time, job, session, draft, name, why)
