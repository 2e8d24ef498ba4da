"""A dream as the page shows it: how it stands, what it does, and what its buttons mean.

What the page is told of the state are counts; words of memories go to it only while they come, to
be shown and kept nowhere (behaviour L12). The wish to end a dream goes to the disk, where the
dream looks for it, so that it counts also while the kernel and its worker are busy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ipymemory import dream_state, dream_waiting
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.page_messages import Refused, short
from ipymemory.places import Project

JOB = "dream"

KILL = "dream-kill"
"""The command that ends the dream; its name and the others' stand in the page's `dream.ts`."""

STANDING = "dream"
"""The command by which a page asks how the dream stands that another process may be having."""

PLAN = "dream-plan"
"""The command by which a page asks what would change, where that waits for a yes."""

DISMISS = "dream-dismiss"

_BY_WORKER = {"dream-accept": "dream_accept", "dream-undo": "dream_undo"}
"""Commands that take their time, and the worker's question for each."""

COMMANDS = frozenset([KILL, STANDING, PLAN, DISMISS, *_BY_WORKER])

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


def command(
    name: str,
    body: Mapping[str, Any],
    project: Project,
    settings: Settings,
    worker: Callable[[str, str], None],
) -> dict[str, Any]:
    """Do what a button of the page means, one of `COMMANDS`; return the reply. Raises `Refused`.

    `worker` has the worker do something with the dream of an id, and does not wait for it. A page
    may show a dream that is over: then what stands there now is another one, and is left alone.
    """
    if name == STANDING:
        return {"type": "dream", "state": standing(project, settings)}
    id = short(body, "dream")
    if name in _BY_WORKER:
        worker(_BY_WORKER[name], id)
        return {"type": "ok"}
    try:
        if name == KILL:
            return _end(project, settings, id)
        place = dream_state.place_of(project, settings)
        if name == PLAN:
            plan = dream_waiting.read(place)
            files = plan.files() if plan is not None and plan.id == id else []
            return {"type": "dream", "files": files}
        return {"type": "dream", "state": counts(dream_waiting.dismiss(place, id))}
    except IpymemoryError as error:
        raise Refused(str(error)) from error


def _end(project: Project, settings: Settings, id: str) -> dict[str, Any]:
    if dream_state.state(project, settings).get("id") != id:
        raise Refused("This dream is over, so there is none to end.")
    running = dream_state.kill(project, settings)
    text = "The dream ends; the memories stay as they were." if running else "No dream is running."
    return {"type": "ok", "killed": running, "text": text}


def counts(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return of how a dream stands what may be kept: no word of a memory."""
    return {name: details[name] for name in _STATE if name in details}
