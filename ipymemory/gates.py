"""Gates: pure functions from numbers to an answer that carries its reason.

A gate never acts. `%memory status` prints the reason of the last answer, so that nobody has to
guess why nothing ran.
"""

from __future__ import annotations

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
