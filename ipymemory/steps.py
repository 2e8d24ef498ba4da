"""The order in which a transcript's entries came to be told: the same whenever it is read.

Entries stand in the order in which they began, and change: a cell ends, its outputs follow, some
come late. Whoever may not take back what was said once, as a conversation with a model, goes by
steps instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ipymemory.turns import Ask, Entry, Turn


@dataclass(frozen=True, slots=True)
class Step:
    """What one line came to: an entry as it now is, or what was added to a turn told before.

    A turn is told once it has ended and its outputs are on record. `added` marks what came later,
    and then the entry holds nothing but that. `at` is where the line ends, in bytes.
    """

    at: int
    entry: Entry
    added: bool = False


def is_open(entry: Entry) -> bool:
    """Return whether something is still to come: an end, or a turn's outputs."""
    if isinstance(entry, Turn):
        return entry.status == "running" or not entry.complete
    return isinstance(entry, Ask) and entry.status == "running"


def step_of(at: int, before: Entry | None, now: Entry) -> Step | None:
    """Return the step from `before` to `now`; None where `now` is not to be told yet."""
    if not isinstance(now, Turn):
        return Step(at, now)
    if is_open(now):
        return None
    if not isinstance(before, Turn) or is_open(before):
        return Step(at, now)
    # Only what is new: a turn with a thousand late outputs would else be held a thousand times.
    later = replace(
        now,
        outputs=now.outputs[len(before.outputs) :],
        names=now.names[len(before.names) :],
        error=None if now.error == before.error else now.error,
    )
    return Step(at, later, added=True)
