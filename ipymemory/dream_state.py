"""How a dream stands, on the disk, for whoever asks from another process; and the wish to end it.

Written by the dream itself (`jobs/dream`), read by pages and commands. It lies with the lock and
the journal in one folder (`place`): one folder of memories has one of them, whichever project it
is tidied from.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ipymemory import processes
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.files import read_json, write_json
from ipymemory.memory_place import memory_place
from ipymemory.places import Project, project_key
from ipymemory.processes import ProcessIdentity
from ipymemory.turns import utc_now

FOLDER = "dream"
"""In the folder of a project."""

STATE = "state.json"
KILL = "kill.json"
ASKED = "asked.jsonl"


def place(project: Project, memory: Path, *, shared: bool) -> Path:
    """Return the folder of the dreams of `memory`: their lock's record, journal, copies, state.

    Where several projects may share the memories it lies beside the projects, so that each of
    them finds what another one left; else in the project's own folder.
    """
    if not shared:
        return project.folder / FOLDER
    return project.home / "shared-dream" / project_key(memory)


def place_of(project: Project, settings: Settings) -> Path:
    """Return the folder of the dreams of a project by its settings; raises `PlaceError`."""
    found = memory_place(project, settings.memory.folder)
    return place(project, found.folder, shared=found.shared)


def state(project: Project, settings: Settings) -> dict[str, Any]:
    """Return how the last dream stands: its `status`, ``running`` among others, and counts.

    One whose process is gone is ``dead``. Empty when there was none. Raises nothing.
    """
    try:
        told = read_json(place_of(project, settings) / STATE) or {}
    except IpymemoryError:
        return {}
    if told.get("status") == "running":
        owner = ProcessIdentity.from_dict(told.get("owner"))
        if owner is None or (processes.local(owner) and not processes.alive(owner)):
            return {**told, "status": "dead"}
    return told


def kill(project: Project, settings: Settings) -> bool:
    """Have the dream that runs end; return whether one runs. Raises `PlaceError`."""
    told = state(project, settings)
    if told.get("status") != "running":
        return False
    wish = {"id": str(told.get("id")), "time": utc_now()}
    write_json(place_of(project, settings) / KILL, wish)
    return True


def ends(place: Path, id: str, status: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """Note that the dream `id` came to another end than its own; return how it stands then.

    Raises `PlaceError`.
    """
    try:
        told = read_json(place / STATE) or {}
    except IpymemoryError:
        told = {}
    if told.get("id") != id:
        return {"id": id, "status": status, **more}
    told |= {"status": status, "ended": utc_now(), **more}
    write_json(place / STATE, told)
    return told


def dismissed(place: Path) -> float:
    """Return when a person said no to what a dream would do, in seconds of the epoch; 0 for never.

    Raises nothing.
    """
    try:
        told = read_json(place / STATE) or {}
        ended = datetime.fromisoformat(told["ended"]).timestamp()
        return ended if told["status"] == "dismissed" else 0.0
    except (IpymemoryError, KeyError, TypeError, ValueError):
        return 0.0
