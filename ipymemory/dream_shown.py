"""A dream on the screen of whoever started it, while the command waits for its end.

In a notebook it is one display of the cell, which the lab extension takes for a view of its own
with the files, the differences and the buttons: those words reach the page by its comm and are
saved nowhere. What the display itself holds, and every other frontend shows, are counts. In a
terminal it is a `terminal_line` instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from ipymemory import dream_line
from ipymemory.dream_outcome import reason
from ipymemory.history import SHORT
from ipymemory.page_dream import counts

MIME = "application/vnd.ipymemory.dream+json"
"""What the lab extension renders, also in its `dream-output.ts`."""

VERSION = 1

UPDATE_SECONDS = 1.0
"""Least time between two updates of a display: each one is a change of the notebook."""

MOST_SHOWN = 20
"""Cells that are told of a button pressed later, the newest."""

_shown: dict[str, Cell] = {}
"""The cells that show a dream, by its id."""

ENDING = (
    "`%memory dream --kill` in another notebook, `ipymemory dream --kill` in a terminal or the "
    "stop button ends it."
)


def bundle(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the lab extension makes a view of; `state` is cut down to counts."""
    return {MIME: {"v": VERSION, "state": counts(state)}}


def settle(state: Mapping[str, Any]) -> None:
    """Have the cell of a dream that came to another end by a button say so."""
    cell = _shown.get(str(state.get("id")))
    if cell is not None and state.get("status") != "running":
        cell.settle(state)


def ended(state: Mapping[str, Any]) -> str:
    """Return how a dream ended, in counts and a sentence or two."""
    status, counts = state.get("status"), state.get("counts") or {}
    if status == "done":
        run = str(state.get("run") or "")[:SHORT]
        back = f" `%memory undo {run}` takes all of it back." if run else ""
        return f"The dream {reason(counts)}.{back}"
    if status == "undone":
        back, left = (counts.get(each, 0) for each in ("put_back", "left_out"))
        stays = f" Left as they are, since somebody changed them: {left}." if left else ""
        return f"The dream was taken back. Files put back: {back}.{stays}"
    if status == "dismissed":
        return "What the dream would do was dropped. The memories are as they were."
    return f"The dream ended: {status}. {state.get('error') or ''}".rstrip()


class Cell:
    """The display of the cell that runs; `aside` leaves it out of the record of that cell."""

    def __init__(self, aside: Callable[[], AbstractContextManager[None]]) -> None:
        self._aside = aside
        self._display: Any = None
        self._shown = 0.0

    def show(self, state: Mapping[str, Any]) -> None:
        """Show how the dream stands, at most once a second."""
        now = time.monotonic()
        if self._display is not None and now - self._shown < UPDATE_SECONDS:
            return
        self._shown = now
        text = dream_line.line(state)
        self.put(
            {
                **bundle({"status": "running", **state}),
                "text/markdown": f"{text}\n\n{ENDING}",
                "text/plain": text,
            }
        )

    def put(self, data: Mapping[str, Any]) -> None:
        """Show `data` in place of what is there."""
        from IPython.display import display

        state = data.get(MIME, {}).get("state", {})
        if id := state.get("id"):
            _shown.pop(id, None)
            _shown[id] = self
            for each in list(_shown)[:-MOST_SHOWN]:
                del _shown[each]
        with self._aside():
            if self._display is None:
                self._display = display(data, raw=True, display_id=True)  # type: ignore[no-untyped-call]
            else:
                self._display.update(data, raw=True)

    def settle(self, state: Mapping[str, Any]) -> None:
        """Say how the dream stands by now, long after the cell has run."""
        if self._display is not None:
            text = ended(state)
            said = {"text/markdown": text, "text/plain": text}
            self._display.update({**bundle(state), **said}, raw=True)

    def done(self) -> None:
        """Leave what is there: the page will be `put` in its place."""

    def ended(self, text: str) -> None:
        """Put `text` in place of what is there, if anything is."""
        if self._display is not None:
            self.put({"text/markdown": text, "text/plain": text})
