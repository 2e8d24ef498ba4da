"""How a job fared, and when one that failed may be tried again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ipymemory.turns import utc_now

FIRST_RETRY = 5.0
LAST_RETRY = 300.0
"""Seconds until a failed job is tried again: doubled from the first to the last."""


@dataclass(slots=True)
class Ran:
    """When a job last succeeded, when and how it last failed, and how often in a row.

    `clock` counts seconds and never goes back.
    """

    clock: Callable[[], float]
    success: str = ""
    failed: str = ""
    error: str = ""
    failures: int = 0
    not_before: float = 0.0

    @property
    def wait(self) -> float:
        """The seconds until it may be tried again; 0 when it may now."""
        return max(0.0, self.not_before - self.clock())

    def well(self, refusals: Sequence[str] = ()) -> None:
        """Note that it succeeded, though some edits may have been refused."""
        self.success, self.failures, self.not_before = utc_now(), 0, 0.0
        if refusals:
            self.failed, self.error = utc_now(), _refused(refusals)

    def badly(self, error: str) -> None:
        """Note that it failed; the next try is put off, longer each time."""
        self.failed, self.error = utc_now(), error
        # The power would not fit a number after a thousand failures.
        delay = FIRST_RETRY * 2.0 ** min(self.failures, 30)
        self.not_before = self.clock() + min(delay, LAST_RETRY)
        self.failures += 1

    def remember(self, run: Mapping[str, Any]) -> bool:
        """Take in a run that an earlier worker put on record; return whether it went well."""
        time = str(run.get("time", ""))
        done = run.get("status") == "done"
        refusals = run.get("refusals")
        if done:
            self.success = time
        if not done:
            self.failed, self.error = time, str(run.get("error") or run.get("status"))
        elif refusals:
            self.failed, self.error = time, _refused(refusals)
        return done

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values; `again` in seconds."""
        return {
            "success": self.success,
            "failed": self.failed,
            "error": self.error,
            "again": round(self.wait),
        }


def _refused(refusals: Sequence[str]) -> str:
    return f"an edit was refused: {refusals[0]}"
