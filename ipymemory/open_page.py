"""The open notebook's page and the record: joined, whichever of the two is there first.

A page may speak before the first turn, when nothing is on disk yet, and mostly none speaks at all:
then what reads its words is not even imported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ipymemory.places import SessionFolder
from ipymemory.redaction import Masker
from ipymemory.transcript import Transcript, TranscriptWriter

if TYPE_CHECKING:
    from ipymemory.page_text import PageText


class OpenPage:
    """Which texts one shell's page told, and into which session's transcript they go.

    `most_bytes` is what is kept of a cell; `notify` is told that something was written.
    """

    def __init__(
        self, masker: Masker, most_bytes: Callable[[], int], notify: Callable[[], None]
    ) -> None:
        self._masker = masker
        self._most_bytes = most_bytes
        self._notify = notify
        self._text: PageText | None = None
        self._lock = threading.Lock()
        self._begun: tuple[TranscriptWriter, int, SessionFolder | None] | None = None

    @property
    def text(self) -> PageText:
        """The markdown cells that the page tells of; made when one first does, by any thread."""
        with self._lock:
            if self._text is None:
                from ipymemory.page_text import PageText  # late: there is rarely a page

                self._text = PageText(self._masker, self._most_bytes, self._notify)
                self._join()
            return self._text

    def begun(
        self, writer: TranscriptWriter, generation: int, continued: SessionFolder | None
    ) -> None:
        """Take in that a record has begun; `continued` is the session that earlier kernels left."""
        with self._lock:
            self._begun = (writer, generation, continued)
            self._join()

    def ended(self) -> None:
        """Take in that the record ends: what is in hand is written, and no more."""
        with self._lock:
            self._begun, text = None, self._text
        if text is not None:
            text.ended()

    def _join(self) -> None:
        """Let the page's texts go on record, if there are a page and a record."""
        if self._text is not None and self._begun is not None:
            writer, generation, continued = self._begun
            before = Transcript(continued.transcript) if continued is not None else None
            self._text.begun(writer, generation, before)
