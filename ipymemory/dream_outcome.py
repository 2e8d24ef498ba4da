"""What a dream works with, and how it ended: values, in counts, without a word of a memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ipymemory.config import Settings
from ipymemory.dream_copy import Consolidate
from ipymemory.events import Bus
from ipymemory.places import Project, SessionFolder


@dataclass(frozen=True, slots=True)
class Context:
    """What the job works with; `session` is the one in whose worker it runs, if any."""

    project: Project
    settings: Settings
    bus: Bus = field(default_factory=Bus)
    session: SessionFolder | None = None
    confirmed: bool = False
    cancelled: Callable[[], bool] = lambda: False
    model: Consolidate | None = None
    """The part of a model, where one may work."""
    note: str = ""
    """Why none may though one was chosen, as a sentence."""
    asks: bool = True
    """Whether anybody can be asked."""


@dataclass(frozen=True, slots=True)
class Dreamt:
    """How a dream ended, in counts. `status`: ``done``, ``planned``, ``waiting`` (for a yes),
    ``locked``, ``refused``, ``killed`` or ``failed``."""

    status: str
    run: str = ""
    error: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    note: str = ""
    """Why a model that was chosen took no part."""
    diff: str = ""
    """What would change, of a plan only. It never leaves in an event."""
    left: tuple[str, ...] = ()
    """Memories that would go if anybody could be asked. They never leave in an event."""

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values, without anything that a memory says."""
        return {
            "status": self.status,
            "run": self.run,
            "error": self.error,
            "note": self.note,
            "counts": dict(self.counts),
            "seconds": round(self.seconds, 2),
        }

    def as_plan(self) -> dict[str, Any]:
        """Return a plan as JSON values, with its diff; for whoever asked, and no event."""
        return {**self.as_dict(), "diff": self.diff}


def reason(counts: Mapping[str, int]) -> str:
    """Return in a phrase what a dream did."""
    words = (
        ("merged", "{} merged"),
        ("dated", "{} dated"),
        ("rewritten", "{} rewritten"),
        ("removed", "{} removed"),
        ("marked", "{} marked"),
        ("relinked", "{} relinked"),
    )
    said = [form.format(counts[key]) for key, form in words if counts.get(key)]
    return f"tidied {counts.get('memories', 0):,} memories: {', '.join(said) or 'nothing to do'}"
