"""Cells that ran in this process and were not recorded: before loading, or while paused.

The shell keeps the source of every cell by its count. What ran before recording began is entered
from there when it begins; what ran while it was paused never is, and neither is what an earlier
recorder of the same shell knew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ipymemory.private import is_ours, is_private

MOST = 200
"""Cells run before loading that are entered, the newest."""

_SEEN = "_ipymemory_history"
"""Where the shell keeps how many of its cells an earlier recorder knew: what it recorded is on
record, and what it did not, while it was paused, must not be."""


class Earlier:
    """The cells that `shell` ran, and which of them nobody recorded."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._paused_at: int | None = None
        self._paused: set[int] = set()

    def sources(self) -> list[str]:
        """Return the cells that ran in this process as they were typed, by their count."""
        return list(getattr(self._shell.history_manager, "input_hist_raw", ()))

    def compiled(self, count: int | None) -> str:
        """Return what IPython made of the cell with this number, which ``In`` and ``_ih`` show."""
        found = getattr(self._shell.history_manager, "input_hist_parsed", ())
        return str(found[count]) if count is not None and 0 < count < len(found) else ""

    def pause(self) -> None:
        """Leave out the cells from the next one on."""
        self._paused_at = len(self.sources())

    def resume(self) -> None:
        """Leave out no more than those that ran since `pause`."""
        if self._paused_at is not None:
            self._paused.update(range(self._paused_at, len(self.sources())))
        self._paused_at = None

    def leave_out(self) -> None:
        """Leave out the cell that begins now."""
        self._paused.add(len(getattr(self._shell.history_manager, "input_hist_raw", ())))

    def leave(self, *, recorded: bool) -> None:
        """Note in the shell what is known, for the next recorder; `recorded` if anything was."""
        if recorded or self._paused or self._paused_at is not None:
            setattr(self._shell, _SEEN, len(self.sources()))

    def unseen(self, current: str) -> Iterator[tuple[int, str]]:
        """Yield count and source of the newest `MOST` that are to be entered, the oldest first.

        `current` is the cell about to run: newer versions of IPython have stored it by now, older
        ones have not. Private cells and those that hold our own magics alone are left out.
        """
        found = self.sources()
        last = len(found) - (1 if found and found[-1] == current else 0)
        for count in range(max(getattr(self._shell, _SEEN, 1), last - MOST, 1), last):
            source = found[count]
            if count in self._paused or not source.strip():
                continue
            if not is_private(source) and not is_ours(source):
                yield count, source
