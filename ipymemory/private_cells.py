"""The private cells of one shell, in every form in which something may show them later.

Such a cell is recorded nowhere; but a traceback quotes it, ``In`` and ``%history`` show it, and
``%rerun`` runs it again without its mark. So its lines are kept, in this process alone, for what
quotes them to be left out.
"""

from __future__ import annotations

from typing import Any

from ipymemory.earlier import Earlier
from ipymemory.outputs import Outputs
from ipymemory.private import is_private
from ipymemory.shown_again import ShownAgain

MOST = 1000
"""Private cells that are known when they are run again, the newest."""


class PrivateCells:
    """What the shell's private cells said, for `outputs` to leave out."""

    def __init__(self, shell: Any, earlier: Earlier, outputs: Outputs) -> None:
        self._earlier = earlier
        self._outputs = outputs
        self._compiled: dict[str, None] = {}
        self._again = ShownAgain(shell, earlier.sources)
        self._showing = False
        self.any = False
        """Whether there was a private cell: else no cell has to be looked at for one."""

    def begun(self, info: Any) -> None:
        """Take in a private cell that begins."""
        self.any = True
        # The cell gets the next number; it is stored after this hook, in every version.
        count = len(self._earlier.sources()) if info.store_history else None
        self._outputs.keep_secret(info.raw_cell, count)
        if count is not None:
            self._again.add(info.raw_cell, count)

    def ended(self, result: Any) -> None:
        """Take in what IPython made of a cell that ended, if it was private."""
        info = getattr(result, "info", None)
        if info is None or not info.store_history:
            return
        count = getattr(result, "execution_count", None)
        if is_private(info.raw_cell):
            self._keep(count)
            self._again.add(info.raw_cell, count)
        elif self._showing:
            self._showing = False
            # What it returned may be what the private one did.
            self._again.add("", count)
            put_up = self._again.wants_next()
            if put_up:
                self._outputs.keep_secret(put_up)

    def shown_by(self, source: str) -> bool:
        """Return whether a cell about to run shows what a private one returned."""
        self._again.public(len(self._earlier.sources()))
        self._showing = self._again.shows(source)
        return self._showing

    def enter_earlier(self) -> None:
        """Take in those that ran in this process before."""
        sources = self._earlier.sources()
        self._outputs.keep_secrets(sources)
        for count, source in enumerate(sources):
            if is_private(source):
                self.any = True
                self._keep(count)
                self._again.add(source, count)

    def goes_on(self, source: str) -> bool:
        """Return whether a cell about to run is what one that showed a private cell put up."""
        return self._again.was_put_up(source)

    def is_one(self, source: str) -> bool:
        """Return whether a cell that a cell runs is private, or was before it lost its mark."""
        found = is_private(source) or source.strip() in self._compiled
        self.any = self.any or found
        return found

    def _keep(self, count: int | None) -> None:
        """Keep a private cell also as ``In`` shows it, and as ``%rerun`` runs it: unmarked."""
        source = self._earlier.compiled(count)
        if source.strip():
            self._compiled[source.strip()] = None
            self._outputs.keep_secret(source)
        while len(self._compiled) > MOST:
            del self._compiled[next(iter(self._compiled))]
