"""One run of an engine: history first, then the file, under one lock for all processes.

The file must still be what the tool read, its before-image is stored, the log line is on the
disk, then the file is replaced, then a second line says so. `Ledger` is what all runs of a
project share: the log, the images and the lock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ipymemory.errors import HistoryError, IpymemoryError, PlaceError
from ipymemory.files import filelock, make_folder
from ipymemory.held import Held
from ipymemory.history_log import VERSION, HistoryLog, RunEntry
from ipymemory.images import Images, digest
from ipymemory.turns import utc_now

_LOCK_SECONDS = 10.0
"""A write takes milliseconds; who waits longer than this waits for a process that hangs."""


class Ledger:
    """What runs write to in `folder`; nothing is made on disk before the first write."""

    def __init__(self, folder: Path, keep: int = 200) -> None:
        """`keep`: runs of one job whose images are kept (``Memory.history_keep``)."""
        self.folder = folder
        self.keep = keep
        self.images = Images(folder / "images")
        self.log = HistoryLog(folder)
        self._lock = filelock().FileLock(folder / ".lock", timeout=_LOCK_SECONDS, mode=0o600)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of this history; raises `HistoryError` when it cannot be had."""
        try:
            make_folder(self.folder)
            self._lock.acquire()
        except filelock().Timeout as error:
            raise HistoryError(
                f"Another process has held {self._lock.lock_file} for {_LOCK_SECONDS:g} s, so "
                "nothing was written. End that process, then try again."
            ) from error
        except (OSError, PlaceError) as error:
            raise HistoryError(
                f"The undo history in {self.folder} cannot be written, so nothing was: {error}"
            ) from error
        try:
            yield
        finally:
            self._lock.release()


class Run:
    """One run of an engine, as the history sees it; made by `History.begin`."""

    def __init__(self, ledger: Ledger, entry: RunEntry, *, recorded: bool = False) -> None:
        self.entry = entry
        self._ledger = ledger
        self.writes = 0
        """How often this run has written so far."""
        self._recorded = recorded
        self._first: dict[Path, bytes | None] = {}
        self._last: dict[Path, bytes | None] = {}

    @property
    def id(self) -> str:
        """The run's id; ids sort by time."""
        return self.entry.id

    @property
    def job(self) -> str:
        """The job this run belongs to."""
        return self.entry.job

    @property
    def written(self) -> tuple[Path, ...]:
        """The files that this run has changed so far."""
        return tuple(self._last)

    def original(self, path: Path) -> bytes | None:
        """Return what `path` held before this run's first write to it."""
        return self._first.get(path)

    def left(self, path: Path) -> bytes | None:
        """Return what this run left in `path`, None when it has not written there."""
        return self._last.get(path)

    def write(self, path: Path, data: bytes | None, *, seen: bytes | None) -> None:
        """Make `path`, absolute and resolved, hold `data`; None removes it.

        History first, then the file. Raises `HistoryError` when the file is no longer what was
        `seen`, or the write cannot be logged, and `PlaceError` when it cannot be written; the
        file is as it was then.
        """
        with self._ledger.locked(), Held(path) as held:
            now = held.read()
            if now != seen:
                raise HistoryError(
                    f"{path} was changed by somebody else meanwhile, so it was left alone. "
                    "Read it again and make the edit anew."
                )
            self.before(path, data, now)
            if data is None:
                held.remove()
            else:
                held.replace(data)
            self.after(path, data)

    def before(self, path: Path, planned: bytes | None, now: bytes | None) -> None:
        """Log a write of `planned` over `now`, its before-image stored; call it before the write.

        Raises `HistoryError` when the log or the image cannot be written.
        """
        try:
            if now is not None and path not in self._first:
                self._ledger.images.put(now)
            self._first.setdefault(path, now)
            self.record()
            self._ledger.log.append(
                {
                    "type": "write",
                    "run": self.id,
                    "time": utc_now(),
                    "path": self._ledger.log.key(path),
                    "before": hash_of(now),
                    "after": hash_of(planned),
                    "size": len(planned or b""),
                },
                sync=True,
            )
        except PlaceError as error:
            raise HistoryError(
                f"The write could not be logged, so it was not made. {error}"
            ) from error

    def after(self, path: Path, data: bytes | None) -> None:
        """Log that the write came to pass. Never raises: without the line the hashes tell."""
        self._last[path] = data
        self.writes += 1
        key = self._ledger.log.key(path)
        with contextlib.suppress(IpymemoryError):
            self._ledger.log.append(
                {"type": "wrote", "run": self.id, "path": key, "after": hash_of(data)}
            )

    def record(self) -> None:
        """Put the run itself on record, once; `before` does it. Old runs are dropped here."""
        if self._recorded:
            return
        if not self.entry.undoes:
            self._ledger.log.trim(self.entry.job, self._ledger.keep, self._ledger.images)
        self._ledger.log.append({"type": "run", "version": VERSION, **self.entry.as_line()})
        self._recorded = True

    def close(self) -> None:
        """Store what the run left, for the diff. Never raises: the diff can do without."""
        for data in self._last.values():
            if data is not None:
                with contextlib.suppress(IpymemoryError):
                    self._ledger.images.put(data)


def hash_of(data: bytes | None) -> str | None:
    """Return the name of the image that `data` has or would have; None for no file."""
    return None if data is None else digest(data)
