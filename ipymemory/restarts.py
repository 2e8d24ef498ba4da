"""When a worker hangs, and when one that died may be started again: pure, from times.

Times are seconds of a clock that never goes back.
"""

from __future__ import annotations

from collections import deque

FIRST_WAIT = 1.0
LAST_WAIT = 300.0
"""Seconds until a worker that died is started again: doubled from the first to the last."""

HEALTHY_SECONDS = 60.0
"""A worker that lived so long before it died is waited for as after a first death."""

DEATHS_AN_HOUR = 20
"""So many are a fault that starting again does not mend; then the next try is after the hour."""

HEARD_SECONDS = 120.0
"""A worker that has not heard a message for so long hangs. An update of 10,000 cells holds it for
some ten seconds, more where it gets little of the machine; so the limit is doubled after each."""

GRACE_SECONDS = 5.0
"""What a worker gets beyond that. Where they took twice as long, it was this process that stood
still, in one call that held the interpreter or stopped by somebody, and they begin anew."""

_HOUR = 3600.0


class Restarts:
    """Counts failures."""

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


class Suspicion:
    """Tells a worker that hangs from one that is busy, and from a kernel that stood still."""

    def __init__(self) -> None:
        self._hung = 0
        self._since: float | None = None

    @property
    def limit(self) -> float:
        """Seconds in which a message must be heard."""
        return HEARD_SECONDS * 2.0**self._hung

    def next_look(self, unheard_since: float) -> float:
        """Return when to look next, given when the oldest unheard message was sent."""
        if self._since is not None:
            return self._since + GRACE_SECONDS
        return unheard_since + self.limit

    def confirmed(self, unheard_since: float | None, now: float) -> bool:
        """Return whether the worker hangs; `unheard_since` is None where all was heard."""
        if unheard_since is None or now - unheard_since < self.limit:
            self._since = None
            return False
        if self._since is None or now - self._since > 2 * GRACE_SECONDS:
            self._since = now
            return False
        return now - self._since >= GRACE_SECONDS

    def ended(self, *, hung: bool) -> None:
        """Note that a worker ended, by itself or because it hung."""
        self._since, self._hung = None, self._hung + 1 if hung else 0
