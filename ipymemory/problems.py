"""What went wrong, kept for the status page and in a log file, and out of the user's cells.

Python prints a warning that no handler takes, and an application's own handler may print every
one: in a kernel both land in the cell that runs. So while the extension is loaded our loggers
end here and nowhere else.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from pathlib import Path

from ipymemory import descriptors
from ipymemory.turns import utc_now

KEPT = 20
"""Sentences kept for the status page."""

MOST_BYTES = 1_000_000
"""Size at which the log file is left as it is: a fault that repeats must not fill the disk."""


class Problems(logging.Handler):
    """Takes what our loggers say from `install` to `remove`. Never raises, never prints."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.file: Path | None = None
        """Where they are written; nowhere before the session has a folder."""
        self._kept: deque[str] = deque(maxlen=KEPT)
        self._waiting: deque[str] = deque(maxlen=KEPT)
        self._before: tuple[bool, int] | None = None
        self.setFormatter(logging.Formatter())

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was said, the newest last, with the time in UTC."""
        return tuple(self._kept)

    def install(self) -> None:
        """Take over the package's loggers."""
        logger = logging.getLogger("ipymemory")
        if self._before is None:
            self._before = (logger.propagate, logger.level)
        logger.addHandler(self)
        logger.propagate = False

    def remove(self) -> None:
        """Leave the loggers as they were."""
        logger = logging.getLogger("ipymemory")
        logger.removeHandler(self)
        if self._before is not None:
            logger.propagate, logger.level = self._before
            self._before = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record and write it, with its traceback, to the file if there is one."""
        try:
            time = utc_now()
            self._kept.append(f"{time[:19].replace('T', ' ')} UTC: {_sentence(record)}")
            self._waiting.append(
                f"{time} {record.levelname} {record.name}: {self.format(record)}\n"
            )
            if self.file is not None and self.file.parent.is_dir():
                self._write(self.file)
        except Exception:  # noqa: BLE001 - there is nowhere left to say it, and the cell must not
            return

    def _write(self, file: Path) -> None:
        text = "".join(self._waiting)
        self._waiting.clear()
        descriptor = descriptors.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if descriptors.fstat(descriptor).st_size < MOST_BYTES:
                descriptors.write(descriptor, text.encode("utf-8", "backslashreplace"))
        finally:
            descriptors.close(descriptor)


def _sentence(record: logging.LogRecord) -> str:
    """Return the message, with the exception's own words behind it."""
    text = record.getMessage()
    error = record.exc_info[1] if record.exc_info else None
    return f"{text} ({type(error).__name__}: {error})" if error is not None else text
