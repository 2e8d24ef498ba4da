"""When a process that died may be started again: pure, from the times at which it failed."""

from __future__ import annotations

from collections import deque

FIRST_WAIT = 1.0
LAST_WAIT = 300.0
"""Seconds until a worker that died is started again: doubled from the first to the last."""

HEALTHY_SECONDS = 60.0
"""A worker that lived so long before it died is waited for as after a first death."""

DEATHS_AN_HOUR = 20
"""So many are a fault that starting again does not mend; then the next try is after the hour."""

_HOUR = 3600.0


class Restarts:
    """Counts failures. Times are seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self.not_before = 0.0
        """When the next start may be."""
        self.in_a_row = 0
        """Failures since it last ran as it should."""
        self._deaths: deque[float] = deque(maxlen=DEATHS_AN_HOUR)

    def failed(self, now: float, lived: float = 0.0) -> bool:
        """Note a failure after `lived` seconds; return whether there were too many in an hour."""
        if lived >= HEALTHY_SECONDS:
            self.in_a_row = 0
        self._deaths.append(now)
        self.not_before = now + min(FIRST_WAIT * 2.0**self.in_a_row, LAST_WAIT)
        self.in_a_row += 1
        too_many = len(self._deaths) == DEATHS_AN_HOUR and now - self._deaths[0] < _HOUR
        if too_many:
            self.not_before = max(self.not_before, self._deaths[0] + _HOUR)
        return too_many

    def went_well(self) -> None:
        """Note that it ended as it should."""
        self.in_a_row, self.not_before = 0, 0.0
