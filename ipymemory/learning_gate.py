"""When a session is looked through: after how many turns, and after how much rest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ipymemory import gates
from ipymemory.config import Settings
from ipymemory.setting_classes import Extraction
from ipymemory.turns import Ask, Entry, Turn

REST_SECONDS = 1.0
"""Seconds of rest before turns are looked through: as for the notes (behaviour S3)."""

BURST_SECONDS = 0.1
"""Cells that follow each other within so many are one Run All, which counts once (behaviour)."""


def gate(
    settings: Settings, *, fresh: Sequence[Entry], rest_seconds: float, busy: bool, every: int
) -> gates.Gate:
    """Return whether a run may start now, and why; `fresh` are the turns not looked through.

    `every` is after how many turns the engine looks, where the setting does not say.
    """
    own = settings.extraction
    if not own.enabled:
        return gates.Gate(False, "extraction is turned off (Extraction.enabled)")
    count = eligible(fresh)
    if not count:
        return gates.Gate(False, "every turn has been looked through")
    if busy:
        return gates.Gate(False, "a cell is running")
    wait = _wait(own, count, every)
    if rest_seconds < wait:
        return gates.Gate(
            False,
            f"{turns_of(count)} since the last run, of {own.every_turns or every}, and the kernel "
            f"has been at rest for less than {wait:g} s",
        )
    return gates.Gate(True, f"{turns_of(count)} since the last run and the kernel is at rest")


def wait_seconds(settings: Settings, fresh: Sequence[Entry], every: int) -> float | None:
    """Return the seconds of rest after which the gate opens, None where it will not by itself."""
    own = settings.extraction
    count = eligible(fresh)
    if not own.enabled or not count:
        return None
    return _wait(own, count, every)


def _wait(own: Extraction, count: int, every: int) -> float:
    return REST_SECONDS if count >= (own.every_turns or every) else float(own.rest_seconds)


def eligible(entries: Sequence[Entry]) -> int:
    """Return how many turns and questions there are; a Run All counts once."""
    count, before = 0, None
    for each in entries:
        if not isinstance(each, Turn | Ask):
            continue
        began = moment(each.time)
        burst = before is not None and began is not None and began - before < _BURST
        count += not burst
        took = timedelta(milliseconds=(each.duration_ms or 0) if isinstance(each, Turn) else 0)
        before = began + took if began is not None else None
    return count


_BURST = timedelta(seconds=BURST_SECONDS)


def turns_of(count: int) -> str:
    """Return a number of turns in words."""
    return "1 turn" if count == 1 else f"{count:,} turns"


def moment(time: str) -> datetime | None:
    """Return the time of a line of the transcript, None where it is none."""
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        return None
