"""The markdown cells of the open notebook, on record: what the page tells becomes transcript lines.

The page sends all of them once and then those that change. What a kernel recorded of a cell is not
recorded again while it stands so, also after the page was reloaded. Nothing is on disk before the
first turn, as ever: until then the newest text of each cell waits.

Masking takes longer than a hook of a cell may. So a thread of its own writes, which ends when there
is nothing to write. A cell marked private is left out, and all is while recording is paused.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ipymemory import excerpts
from ipymemory.errors import IpymemoryError
from ipymemory.page_messages import MOST_CELLS, Cells, PageCell
from ipymemory.private import is_private
from ipymemory.redaction import Masker
from ipymemory.transcript import Transcript, TranscriptWriter
from ipymemory.turns import Prose, new_id, utc_now

log = logging.getLogger(__name__)

MOST_TEXT = 16 * 1024 * 1024
"""Characters kept of all cells: so that a page cannot fill the kernel's memory."""

CLOSE_SECONDS = 0.3
"""What the end of a session waits for texts that are being written."""


@dataclass(slots=True)
class _Told:
    """A cell as the page last told it. `recorded` is what went on record of it, masked."""

    cell: PageCell
    recorded: str | None = None


class PageText:
    """The texts of one shell's page. Its methods return at once and may be called by any thread.

    `notify` is told that something was written. In a child that was forked nothing is done.
    """

    def __init__(self, masker: Masker, most_bytes: Callable[[], int], notify: Callable[[], None]):
        self._masker = masker
        self._most = most_bytes
        self._notify = notify
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._told: dict[str, _Told] = {}
        self._seen: set[str] = set()
        self._waiting: deque[str] = deque()
        self._writer: TranscriptWriter | None = None
        self._generation = 1
        self._before: Transcript | None = None
        self._complete = False
        self._thread: threading.Thread | None = None

    def take(self, cells: Cells, *, paused: bool = False) -> tuple[tuple[str, str], ...]:
        """Take in what the page told; return the ids of cells that had no room, and why."""
        refused: list[tuple[str, str]] = []
        with self._lock:
            size = sum(len(each.cell.source) for each in self._told.values())
            for cell in cells.cells:
                before = self._told.get(cell.id)
                size += len(cell.source) - (len(before.cell.source) if before else 0)
                if size > MOST_TEXT or (before is None and len(self._told) >= MOST_CELLS):
                    size -= len(cell.source)
                    refused.append((cell.id, "There is no room for more text. Split the notebook."))
                    continue
                self._put(cell, before, paused)
            gone = list(cells.removed)
            if cells.full:
                self._seen.update(each.id for each in cells.cells)
                self._seen.update(id for id, _ in cells.refused)
                if not cells.more:
                    gone += [id for id in self._told if id not in self._seen]
                    self._seen.clear()
                    self._complete = True
            for id in gone:
                if (known := self._told.get(id)) is not None:
                    self._put(PageCell(id, ""), known, paused)
        self._write()
        return tuple(refused)

    def afresh(self) -> None:
        """Expect all cells anew: a page said hello."""
        with self._lock:
            self._seen.clear()

    def find(self, id: str) -> PageCell | None:
        """Return the cell as the page last told it, None for one that is not there."""
        with self._lock:
            found = self._told.get(id)
            return found.cell if found is not None and found.cell.source else None

    def as_recorded(self, id: str) -> str | None:
        """Return what is on record of a cell, None where nothing is."""
        with self._lock:
            found = self._told.get(id)
            return found.recorded if found is not None else None

    def begun(
        self, writer: TranscriptWriter, generation: int, before: Transcript | None = None
    ) -> None:
        """Write what waits, and all that comes; `before` is what earlier kernels recorded."""
        with self._lock:
            self._writer, self._generation, self._before = writer, generation, before
        self._write()

    def ended(self) -> None:
        """Write what is in hand and no more; a session that begins later gets every cell anew."""
        if os.getpid() != self._pid:
            return
        if (thread := self._thread) is not None and thread is not threading.current_thread():
            thread.join(CLOSE_SECONDS)
        with self._lock:
            self._writer = None
            self._waiting = deque(self._told)
            for each in self._told.values():
                each.recorded = None

    def _put(self, cell: PageCell, before: _Told | None, paused: bool) -> None:
        if before is not None and before.cell.source == cell.source:
            # The same text: where it came from was said the first time.
            before.cell = PageCell(
                cell.id, cell.source, cell.stamp, cell.position, before.cell.came
            )
            return
        self._told[cell.id] = _Told(cell, before.recorded if before is not None else None)
        if not paused:
            self._waiting.append(cell.id)

    def _write(self) -> None:
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._writer is None or not self._waiting or self._thread is not None:
                return
            try:
                self._thread = threading.Thread(
                    target=self._write_all, name="ipymemory-page", daemon=True
                )
                self._thread.start()
            except RuntimeError:
                # No more threads, or the interpreter is about to end.
                self._thread = None

    def _write_all(self) -> None:
        """Write until nothing waits. Runs on a thread of its own."""
        wrote = False
        try:
            self._look_at_earlier()
            while (next := self._next()) is not None:
                wrote = self._write_one(*next) or wrote
        except IpymemoryError as error:
            # The next change tries again; the text stands in the notebook meanwhile.
            log.warning("markdown cells were not recorded: %s", error)
        except Exception:  # a thread of ours must not print its end into a cell
            log.exception("markdown cells were not recorded")
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None
        if wrote:
            self._notify()

    def _next(self) -> tuple[TranscriptWriter, PageCell] | None:
        with self._lock:
            while self._waiting and self._writer is not None:
                found = self._told.get(self._waiting.popleft())
                if found is not None:
                    return self._writer, found.cell
            # Under the same lock as what is put there: nothing is left behind.
            self._thread = None
            return None

    def _write_one(self, writer: TranscriptWriter, cell: PageCell) -> bool:
        from ipymemory.markdown import is_magic_doc  # late: loading needs none of it

        text = "" if is_private(cell.source) else self._masked(cell.source)
        with self._lock:
            known = self._told[cell.id]
            same = known.recorded == text or (not text and not known.recorded)
            if same:
                known.recorded = text
                return False
        line = {
            "type": "markdown",
            "id": new_id(),
            "time": utc_now(),
            "kernel": self._generation,
            "cell_id": cell.id,
            "source": text,
            "origin": "file" if cell.came or is_magic_doc(cell.source) else "typed",
        }
        if cell.position is not None:
            line["position"] = cell.position
        writer.append(line)
        with self._lock:
            known.recorded = text
            if not text and not known.cell.source:
                self._told.pop(cell.id, None)
        return True

    def _masked(self, source: str) -> str:
        most = self._most()
        # First to twice the length, so that the mask sees what the cut might halve.
        text = self._masker.mask_source(self._masker.mask(excerpts.clip(source, 2 * most)[0]))
        return excerpts.clip(text, most)[0]

    def _look_at_earlier(self) -> None:
        """Note what earlier kernels of the session put on record, once: it is not told again."""
        with self._lock:
            before, self._before = self._before, None
        if before is None:
            return
        before.follow()
        newest = _newest(before.entries)
        with self._lock:
            for id, source in list(newest.items())[-MOST_CELLS:]:
                if (known := self._told.get(id)) is not None:
                    known.recorded = source if known.recorded is None else known.recorded
                elif source:
                    # Removed while no kernel looked, or not told yet.
                    cell = PageCell(id, "" if self._complete else source)
                    self._told[id] = _Told(cell, source)
                    if self._complete:
                        self._waiting.append(id)


def _newest(entries: Iterable[object]) -> dict[str, str]:
    return {
        each.cell_id: each.source for each in entries if isinstance(each, Prose) and each.cell_id
    }
