"""Gates: pure functions from numbers to an answer that carries its reason.

A gate never acts. `%memory status` prints the reason of the last answer, so that nobody has to
guess why nothing ran.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a job may start now, and why, as a sentence without its full stop."""

    open: bool
    reason: str


def extractive_notes(*, changed: int, rest_seconds: float, wait_seconds: float, busy: bool) -> Gate:
    """Return the gate of the extractive session notes (behaviour S3, last sentence).

    `changed` counts entries that the notes do not cover yet. The engine costs nothing, so it
    runs `wait_seconds` after the kernel came to rest, from the first cell on.
    """
    if not changed:
        return Gate(False, "the notes cover every turn")
    if busy:
        return Gate(False, "a cell is running")
    if rest_seconds < wait_seconds:
        return Gate(False, f"the kernel has been at rest for less than {wait_seconds:g} s")
    turns = "1 turn" if changed == 1 else f"{changed:,} turns"
    return Gate(True, f"{turns} since the last update and the kernel is at rest")


@dataclass(frozen=True, slots=True)
class Context:
    """How a conversation stands, in tokens of what would be sent now (behaviour S3)."""

    tokens: int
    grown: int
    """Since the last update of the notes by a model; all of it before the first."""
    calls: int
    """Tool calls since then: cells that ran, and tools that the assistant used."""
    updated: bool
    """Whether a model has written the notes in this session."""


def model_notes(
    context: Context, *, first: int, growth: int, calls: int, idle: bool, busy: bool
) -> Gate:
    """Return the gate of the session notes that a model writes (behaviour S3).

    `first` and `growth` in tokens: nothing before the context holds `first`, which passes once;
    then an update after every `growth`, with `calls` tool calls since or when the session is idle.
    """
    if not context.updated and context.tokens < first:
        return Gate(False, f"the conversation holds {context.tokens:,} of {first:,} tokens")
    if context.grown < growth:
        return Gate(False, f"the conversation has grown by {context.grown:,} of {growth:,} tokens")
    if busy:
        return Gate(False, "a cell is running")
    if context.calls < calls and not idle:
        done = (
            "1 cell or tool call" if context.calls == 1 else f"{context.calls} cells or tool calls"
        )
        return Gate(False, f"only {done} of {calls} since the last update, and no idle moment yet")
    return Gate(True, f"the conversation has grown by {context.grown:,} tokens")


_SKEW_HOURS = 1.0
"""By how much the clock of another machine that shares the folder may usually be ahead."""


def dream(
    *,
    enabled: bool,
    waits: str,
    hours_since: float | None,
    hours: float,
    sessions: Callable[[], int | None],
    wanted: int,
) -> Gate:
    """Return the gate of a dream but for its lock, the cheapest part first (behaviour D1).

    `waits` is why no memory may be written now. `hours_since` the last dream, None for never.
    `sessions` is asked last: how many other sessions there were since, None where it was looked
    at too short a time ago.
    """
    if not enabled:
        return Gate(False, "dreams are turned off (Dream.enabled)")
    if hours_since is not None and hours_since < -_SKEW_HOURS:
        return Gate(False, "the last dream has a time to come: dream --now sets that clock right")
    if hours_since is not None and hours_since < hours:
        return Gate(False, f"next dream in {_hours(hours - hours_since)} at the earliest")
    if waits:
        return Gate(False, waits)
    found = sessions()
    if found is None:
        return Gate(False, "the sessions were looked at a short while ago")
    if found < wanted:
        more = wanted - found
        return Gate(False, f"next dream: {more} more session{'' if more == 1 else 's'}")
    return Gate(True, f"{found:,} sessions since the last dream")


def _hours(hours: float) -> str:
    return f"{hours * 60:.0f} minutes" if hours < 1 else f"{hours:.0f} h"
