"""Cells of an earlier kernel run again in this one, for ``%memory resume --run``.

As ``%rerun`` does, through the shell itself: what a cell prints and shows comes below the command,
one that fails shows its traceback, and then nothing more is run. Nothing of it is recorded as
cells, for they are on record; which of them ran is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipymemory.commands.amounts import counted

Cells = Sequence[tuple[str, str, str]]
"""What each cell is called, its turn's id, and its source."""


def run(shell: Any, cells: Cells) -> tuple[list[str], str]:
    """Run `cells` one after another until one fails.

    Returns the ids of those that ran to their end, and a sentence for the person.
    """
    done: list[str] = []
    for label, id, source in cells:
        result = shell.run_cell(source, store_history=False)
        if not result.success:
            left = len(cells) - len(done) - 1
            after = f", so the {counted(left, 'cell')} after it did not run" if left else ""
            return done, (
                f"Stopped at {label}, which failed this time{after}. Mend it in its cell and run "
                "that, then type %memory resume --run again: what is here already is left out."
            )
        done.append(id)
    return done, f"{counted(len(done), 'cell')} ran again." if done else ""
