"""What a recorder puts into the transcript, and what becomes of it while the disk refuses.

The session is claimed with the first line. After a failed write the disk is left alone for a
while; the ends of cells whose beginning is on record are owed meanwhile and written first, for a
cell without an end would count as one that its kernel died of.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError, TranscriptError
from ipymemory.excerpts import clip
from ipymemory.redaction import Masker
from ipymemory.transcript import TranscriptWriter
from ipymemory.turns import utc_now

log = logging.getLogger(__name__)

RETRY_SECONDS = 10.0
"""After a failed write the disk is tried again no sooner than this."""

OWED = 50
"""Lines kept of cells that are in the transcript and whose end could not be written."""


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
        self._settings = settings
        self._masker = masker
        self._retry_at = 0.0
        self._owed: deque[dict[str, Any]] = deque(maxlen=OWED)

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

    def begun(self, id: str, cell_id: str | None, source: str, **more: Any) -> None:
        """Write that a cell begins, its `source` masked; raises `TranscriptError`."""
        line = {
            "type": "cell",
            "id": id,
            "time": utc_now(),
            "kernel": self.generation,
            "cell_id": cell_id,
            "source": source,
            **more,
        }
        self.begin().append(line)

    def ended(
        self, id: str, count: int | None, status: str, duration: float | None, error: str
    ) -> None:
        """Write how a cell ended, `duration` in milliseconds; owed if it cannot be.

        `error`: the name of what it raised.
        """
        line = {
            "type": "end",
            "id": id,
            "execution_count": count,
            "status": status,
            "duration_ms": duration,
        }
        if error:
            line["error"] = self._masker.mask(error[:200])
        try:
            if self.writer is not None:
                self.writer.append(line)
        except IpymemoryError as failure:
            self._owed.append(line)
            self.failed(failure)

    def put(self, line: dict[str, Any]) -> None:
        """Write a line of the outputs thread; raises `TranscriptError`, and then it is owed."""
        if self.writer is not None:
            try:
                self.writer.append(line)
            except IpymemoryError:
                self._owed.append(line)
                raise

    def well(self) -> None:
        """Forget the last failure and write what is owed; raises `TranscriptError`."""
        self.reason = ""
        if self._owed:
            self.write_owed()

    def write_owed(self) -> None:
        """Write what could not be written of cells that have begun; raises `TranscriptError`."""
        while self._owed and self.writer is not None:
            self.writer.append(self._owed[0])
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
        most = self._settings.capture.source_bytes
        # First to twice the length, so that the mask sees what the cut might halve.
        masked = self._masker.mask_source(clip(typed, 2 * most)[0])
        if len(masked) > most:
            masked = clip(masked, most)[0]
        if not masked.isascii():
            size = len(masked.encode("utf-8", "backslashreplace"))
            if size > most:
                masked = clip(masked, len(masked) * most // size)[0]
        return masked
