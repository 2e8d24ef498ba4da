"""What a dream would do where every write waits for a yes: a plan that is kept as it was shown.

It is one file beside the dream's state, with the bytes of each memory before and after. A yes
takes it and does exactly that; what somebody changed meanwhile is left out, as in any dream. A no
drops it, and that counts as a dream: the next one is asked about a day later (behaviour D1).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipymemory import dream_journal, dream_state
from ipymemory.dream_journal import Change, Group
from ipymemory.errors import FormatError, IpymemoryError, PlaceError
from ipymemory.files import read_json, write_json
from ipymemory.history import unified
from ipymemory.redaction import mask

NAME = "waiting.json"
VERSION = 1

MOST_TOLD = 200
"""Files whose change is shown; who wants more reads the whole difference."""

DIFF_CHARS = 4000
"""Characters of what is shown of one file."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that waits. `counts` are of what it would do, by kind."""

    id: str
    time: str
    engine: str
    counts: Mapping[str, int]
    groups: tuple[Group, ...]
    asked: tuple[tuple[str, str], ...] = ()
    """Memories that a person is asked about once it is done: name and why they might go."""

    @property
    def diff(self) -> str:
        """All that would change, as a unified diff."""
        return "".join(diff(each) for group in self.groups for each in group)

    def files(self) -> list[dict[str, Any]]:
        """Return what would change, file by file, masked and bounded; to be shown and not kept."""
        every = [each for group in self.groups for each in group if each.before != each.after]
        return [told(each) for each in every[:MOST_TOLD]]


def told(change: Change) -> dict[str, Any]:
    """Return what is shown of one file's change; `gone` where the file goes."""
    shown = mask(diff(change))[:DIFF_CHARS]
    return {"file": change.path.name, "diff": shown, "gone": change.after is None}


def diff(change: Change) -> str:
    """Return one file's change as a unified diff, empty where it stays."""
    before, after = (
        "" if each is None else each.decode("utf-8", "replace")
        for each in (change.before, change.after)
    )
    return "".join(unified(before, after, change.path.name, change.path.name))


def put(place: Path, plan: Plan) -> None:
    """Have `plan` wait in a dream's folder, in place of one that did; raises `PlaceError`."""
    write_json(
        place / NAME,
        {
            "version": VERSION,
            "id": plan.id,
            "time": plan.time,
            "engine": plan.engine,
            "counts": dict(plan.counts),
            "groups": dream_journal.as_values(plan.groups),
            "asked": [list(each) for each in plan.asked],
        },
    )


def read(place: Path) -> Plan | None:
    """Return the plan that waits, None for none and for one that cannot be read."""
    try:
        value = read_json(place / NAME)
        if value is None or value.get("version") != VERSION:
            return None
        counts = {str(key): int(number) for key, number in value["counts"].items()}
        groups = dream_journal.from_values(value["groups"])
        asked = tuple((str(name), str(why)) for name, why in value["asked"])
        id, time, engine = (str(value[each]) for each in ("id", "time", "engine"))
        return Plan(id, time, engine, counts, groups, asked)
    except (IpymemoryError, KeyError, TypeError, ValueError, AttributeError):
        return None


def there(place: Path) -> bool:
    """Return whether a plan waits. One `stat`."""
    return (place / NAME).exists()


def take(place: Path, id: str) -> Plan:
    """Return the plan `id` and let it wait no longer: of two who ask, one gets it.

    Raises `FormatError` where it does not wait any more, `PlaceError`.
    """
    plan = read(place)
    if plan is None or plan.id != id or not _removed(place):
        raise FormatError("This plan waits no longer: it was done, dropped, or made anew.")
    return plan


def drop(place: Path) -> None:
    """Let no plan wait; for who has changed what it was made of. Never raises."""
    with contextlib.suppress(PlaceError):
        _removed(place)


def dismiss(place: Path, id: str) -> dict[str, Any]:
    """Drop the plan `id`, and note when; return how the dream stands then.

    Raises `FormatError` where it does not wait any more, `PlaceError`.
    """
    plan = take(place, id)
    return dream_state.ends(place, id, "dismissed", {"counts": dict(plan.counts)})


def _removed(place: Path) -> bool:
    try:
        (place / NAME).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise PlaceError(
            f"{place / NAME} cannot be removed: {error.strerror or error}. Mend the folder's "
            "permissions."
        ) from error
    return True
