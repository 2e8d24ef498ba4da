"""How a dream stands, on the disk, for whoever asks from another process; and the wish to end it.

Written by the dream itself (`jobs/dream`), read by pages and commands.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ipymemory import processes
from ipymemory.errors import IpymemoryError
from ipymemory.files import read_json, write_json
from ipymemory.places import Project
from ipymemory.processes import ProcessIdentity
from ipymemory.turns import utc_now


def state(project: Project) -> dict[str, Any]:
    """Return how the last dream stands: its `status`, ``running`` among others, and counts.

    One whose process is gone is ``dead``. Empty when there was none. Raises nothing.
    """
    try:
        told = read_json(project.folder / "dream" / "state.json") or {}
    except IpymemoryError:
        return {}
    if told.get("status") == "running":
        owner = ProcessIdentity.from_dict(told.get("owner"))
        if owner is None or (processes.local(owner) and not processes.alive(owner)):
            return {**told, "status": "dead"}
    return told


def kill(project: Project) -> bool:
    """Have the dream that runs end; return whether one runs. Raises `PlaceError`."""
    told = state(project)
    if told.get("status") != "running":
        return False
    write_json(killed(project), {"id": str(told.get("id")), "time": utc_now()})
    return True


def killed(project: Project) -> Path:
    """Return where it stands which dream is to end."""
    return project.folder / "dream" / "kill.json"
