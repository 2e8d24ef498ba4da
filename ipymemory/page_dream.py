"""A dream as the page shows it: how it stands, what it does, and the button that ends it.

What the page is told of the state are counts; words of memories go to it only while they come, to
be shown and kept nowhere (behaviour L12). The wish to end a dream goes to the disk, where the
dream looks for it, so that it counts also while the kernel and its worker are busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipymemory import dream_state
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.page_messages import Refused
from ipymemory.places import Project

JOB = "dream"

KILL = "dream-kill"
"""The command that the page's button sends."""

STANDING = "dream"
"""The command by which a page asks how the dream stands that another process may be having."""

_STATE = (
    *("id", "status", "phase", "step", "started", "memories", "sessions", "reviewed"),
    *("files", "engine", "turns", "calls", "tokens", "usd", "seconds", "run", "error", "counts"),
)
_PASSING = {"dream_turn": "turn", "dream_file": "file", "doing": "doing"}
"""What is shown while it comes, by kind of event and the field that bears it."""


def told(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the page is told of a worker's event, None where it is none of a dream."""
    details = event.get("details")
    if event.get("job") != JOB or not isinstance(details, Mapping):
        return None
    kind = str(event.get("kind"))
    if name := _PASSING.get(kind):
        return {name: dict(details)}
    if kind in ("dream", "finished", "failed"):
        return {"state": counts(details)}
    return None


def standing(project: Project, settings: Settings) -> dict[str, Any]:
    """Return how the last dream of the project stands, nothing where there was none."""
    return counts(dream_state.state(project, settings))


def end(project: Project, settings: Settings, id: str) -> dict[str, Any]:
    """Have the dream `id` end, if it runs; return the reply to the page. Raises `Refused`.

    A page may show a dream that is over: then the one that runs now is another, and goes on.
    """
    if dream_state.state(project, settings).get("id") != id:
        raise Refused("This dream is over, so there is none to end.")
    try:
        running = dream_state.kill(project, settings)
    except IpymemoryError as error:
        raise Refused(str(error)) from error
    text = "The dream ends; the memories stay as they were." if running else "No dream is running."
    return {"type": "ok", "killed": running, "text": text}


def counts(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return of how a dream stands what may be kept: no word of a memory."""
    return {name: details[name] for name in _STATE if name in details}
