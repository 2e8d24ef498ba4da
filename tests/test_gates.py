"""Gates answer with their reason."""

from __future__ import annotations

import pytest

from ipymemory.gates import extractive_notes


@pytest.mark.spec("S3")
@pytest.mark.parametrize(
    ("changed", "rest", "busy", "open_", "reason"),
    [
        (0, 100.0, False, False, "the notes cover every turn"),
        (2, 100.0, True, False, "a cell is running"),
        (2, 0.4, False, False, "the kernel has been at rest for less than 1.5 s"),
        (1, 1.5, False, True, "1 turn since the last update and the kernel is at rest"),
        (1200, 2.0, False, True, "1,200 turns since the last update and the kernel is at rest"),
    ],
)
def test_extractive_notes_start_when_the_kernel_rests(
    changed: int, rest: float, busy: bool, open_: bool, reason: str
) -> None:
    gate = extractive_notes(changed=changed, rest_seconds=rest, wait_seconds=1.5, busy=busy)
    assert (gate.open, gate.reason) == (open_, reason)
