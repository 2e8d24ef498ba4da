"""What a recorder puts into the transcript, and what becomes of it while the disk refuses.

The session is claimed with the first line. After a failed write the disk is left alone for a
while; the ends of cells whose beginning is on record are owed meanwhile and written first, for a
cell without an end would count as one that its kernel died of.
"""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ipymemory.config import Settings
from ipymemory.entry_lines import as_line, cell_line, end_line
from ipymemory.errors import IpymemoryError, TranscriptError
from ipymemory.excerpts import clip
from ipymemory.names import Snapshot
from ipymemory.redaction import Masker
from ipymemory.transcript import TranscriptWriter
from ipymemory.turns import new_id, utc_now

log = logging.getLogger(__name__)

RETRY_SECONDS = 10.0
"""After a failed write the disk is tried again no sooner than this."""

OWED = 50
"""Lines kept of cells that are in the transcript and whose end could not be written."""


_TYPED = r"([^\W\d]\w*)[ \t]*=[ \t]*(?:[\w.]+\.)?getpass[ \t]*\("
"""A name that holds what was typed unseen; in a terminal there is no other way to know it."""


class OnRecord:
    """The lines of a recorder's cells; `claim` gives the writer when the first is to be written."""

    def __init__(
        self, claim: Callable[[], TranscriptWriter], settings: Settings, masker: Masker
    ) -> None:
        self.generation = 1
        """Which kernel of its session this is; set by whoever claims the session."""
        self.reason = ""
        """Why nothing is recorded, as sentences, or nothing."""
        self.writer: TranscriptWriter | None = None
        """None until the session was claimed."""
        self._claim = claim
        self._masker = masker
        self._most = 0
        settings.capture.observe(self._on_setting, names=["source_bytes"])
        self._capture = settings.capture
        self._on_setting()
        self._retry_at = 0.0
        self._owed: deque[bytes] = deque(maxlen=OWED)

    def _on_setting(self, change: Any = None) -> None:
        # Kept, for each look at a setting costs more than most of what is done for a cell.
        self._most = self._capture.source_bytes

    def close(self) -> None:
        """Look at the settings no more."""
        with suppress(ValueError):
            self._capture.unobserve(self._on_setting, names=["source_bytes"])

    @property
    def waits(self) -> bool:
        """Whether a write failed so lately that the disk is not tried again yet."""
        return bool(self.reason) and time.monotonic() < self._retry_at

    def begin(self) -> TranscriptWriter:
        """Claim the session, if that is not done yet; raises `IpymemoryError` when it cannot be."""
        if self.writer is None:
            try:
                self.writer = self._claim()
            except IpymemoryError:
                raise
            except Exception as error:
                log.exception("the session could not be begun")
                raise TranscriptError(
                    f"The session could not be begun ({type(error).__name__}: {error}). Nothing "
                    "is recorded until it can; that is tried again by itself."
                ) from error
        return self.writer

    def begun(self, id: str, cell_id: str | None, source: str) -> None:
        """Write that a cell begins, its `source` masked; raises `TranscriptError`.

        What is owed follows, for the disk takes lines again.
        """
        writer = self.writer if self.writer is not None else self.begin()
        writer.write(cell_line(id, utc_now(), self.generation, cell_id, source))
        self.reason = ""
        if self._owed:
            self.write_owed()

    def earlier(self, count: int, source: str) -> None:
        """Write a cell that ran before recording began, masked; raises `TranscriptError`."""
        self.begin().append(
            {
                "type": "cell",
                "id": new_id(),
                "time": utc_now(),
                "kernel": self.generation,
                "cell_id": None,
                "source": self.source(source),
                "origin": "history",
                "execution_count": count,
            }
        )

    def ended(
        self, id: str, count: int | None, status: str, duration: float | None, error: str
    ) -> None:
        """Write how a cell ended, `duration` in milliseconds; owed if it cannot be.

        `error`: the name of what it raised.
        """
        line = end_line(
            id, count, status, duration, self._masker.mask(error[:200]) if error else ""
        )
        try:
            if self.writer is not None:
                self.writer.write(line, soon=True)
        except IpymemoryError as failure:
            self._owed.append(line)
            self.failed(failure)

    def put(self, line: dict[str, Any]) -> None:
        """Write a line of the outputs thread; raises `TranscriptError`, and then it is owed."""
        if self.writer is not None:
            data = as_line(line)
            try:
                self.writer.write(data)
            except IpymemoryError:
                self._owed.append(data)
                raise

    def write_owed(self) -> None:
        """Write what could not be written of cells that have begun; raises `TranscriptError`."""
        while self._owed and self.writer is not None:
            self.writer.write(self._owed[0])
            self._owed.popleft()

    def failed(self, error: BaseException) -> None:
        """Remember why nothing is recorded, and when the disk is tried again.

        Anything but a failed write costs one cell and no more.
        """
        told = str(error) if isinstance(error, IpymemoryError) else ""
        if told:
            self.reason = told
            self._retry_at = time.monotonic() + RETRY_SECONDS
        with suppress(BaseException):
            log.warning("a cell was not recorded", exc_info=None if told else error)

    def source(self, typed: str) -> str:
        """Return a source masked and in at most as many bytes as are kept of one."""
        most = self._most
        if len(typed) <= most and self._masker.leaves(typed):
            return typed
        # First to twice the length, so that the mask sees what the cut might halve.
        masked = self._masker.mask_source(clip(typed, 2 * most)[0])
        if len(masked) > most:
            masked = clip(masked, most)[0]
        if not masked.isascii():
            size = len(masked.encode("utf-8", "backslashreplace"))
            if size > most:
                masked = clip(masked, len(masked) * most // size)[0]
        return masked

    def learn(self, typed: str, bound: Sequence[Snapshot], namespace: Mapping[str, object]) -> None:
        """Let values of names that say they are secret be masked wherever they come up."""
        for each in bound:
            if each.type == "str" and type(value := namespace.get(each.name)) is str:
                self._masker.learn_named(each.name, value)
        if "getpass" in typed:
            for name in re.findall(_TYPED, typed):
                if type(value := namespace.get(name)) is str:
                    self._masker.learn(value)
