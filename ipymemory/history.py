"""Every write of an engine: logged before it is made, shown as a diff, undone.

The history of a project is a folder: ``log.jsonl``, append-only, and ``images/`` with what the
files held. A write goes through `Run.write`, under one lock for all processes: the file must
still be what the tool read, its before-image is stored, the log line is on the disk, then the
file is replaced, then a second line says so. A process killed between any two of these leaves a
log that can be read: whether such a write came to pass is told by the hashes.

An undo is a run too, with `undoes` naming the run it took back; what it replaced is stored like
every before-image, so undoing the undo brings it back. The turns of a run that is undone are
left out of the job's next runs (behaviour L8).

Line types of version 1: ``run`` (what, by whom, why, from which turns), ``write`` (path, hash
before, hash after, size), ``wrote``, and ``left_out`` (turns of an undone run that is no longer
kept). Lines of unknown types are passed over.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ipymemory.errors import ChangedSince, HistoryError, IpymemoryError, PlaceError, Versions
from ipymemory.files import filelock, make_folder
from ipymemory.held import Held, resolved
from ipymemory.history_log import VERSION, HistoryLog, RunEntry, Write
from ipymemory.images import Images, digest
from ipymemory.turns import new_id, utc_now

__all__ = ["SHORT", "History", "Run", "RunEntry", "Write"]

SHORT = 16
"""Digits of a run's id that are shown: its time and its place within the millisecond."""

PERSON = "person"
"""The engine of an undo."""

_LOCK_SECONDS = 10.0
"""A write takes milliseconds; who waits longer than this waits for a process that hangs."""


class History:
    """The undo history in `folder`; nothing is made on disk before the first write."""

    def __init__(self, folder: Path, keep: int = 200) -> None:
        """`keep`: runs of one job whose images are kept (``Memory.history_keep``)."""
        self.folder = folder
        self.keep = keep
        self.images = Images(folder / "images")
        self.log = HistoryLog(folder)
        self._lock = filelock().FileLock(folder / ".lock", timeout=_LOCK_SECONDS, mode=0o600)

    def begin(self, job: str, engine: str, reason: str, turns: Sequence[str], session: str) -> Run:
        """Return a run under which an engine may write. It is on record from its first write on."""
        return Run(self, RunEntry(new_id(), utc_now(), job, engine, reason, tuple(turns), session))

    def resume(self, entry: RunEntry) -> Run:
        """Return the run of `entry`, to finish what a process that died began under it."""
        known = any(each.id == entry.id for each in self.log.runs())
        return Run(self, entry, recorded=known)

    def entries(self, n: int | None = None) -> list[RunEntry]:
        """Return the last `n` runs that wrote something, newest first; all of them for None."""
        found = [each for each in reversed(self.log.runs()) if each.writes or each.undoes]
        return found if n is None else found[:n]

    def find(self, run_id: str | None = None) -> RunEntry:
        """Return the run whose id is or begins with `run_id`; for None the newest.

        Raises `HistoryError` when there is no such run, or more than one.
        """
        found = self.entries()
        if run_id is not None:
            exact = [each for each in found if each.id == run_id]
            found = exact or [each for each in found if each.id.startswith(run_id)]
            if len(found) > 1:
                raise HistoryError(
                    f"{len(found)} runs begin with {run_id[:40]}; type more of the id."
                )
        if not found:
            which = f"no run {run_id[:40]}" if run_id else "nothing an engine wrote"
            raise HistoryError(
                f"There is {which} in {self.folder}. The command history lists them."
            )
        return found[0]

    def diff(self, run_id: str | None = None) -> str:
        """Return what a run changed as a unified diff; for None the newest run's.

        Raises `HistoryError` when there is no such run.
        """
        parts: list[str] = []
        for each in self.find(run_id).writes:
            name = self.log.key(each.path)
            before, left = self._text(each.before), self._text(each.after, each.path)
            if before is None or left is None:
                parts.append(
                    f"--- {name}\n+++ {name}\n(one of the two versions is no longer kept)\n"
                )
                continue
            parts += unified(before, left, f"{name} before", f"{name} after")
        return "".join(parts)

    def undo(
        self, run_id: str | None = None, *, force: bool = False, around: bool = False
    ) -> list[Path]:
        """Put back what the files of a run held before it; return the files that changed.

        For None: the newest run that is neither undone nor an undo. Raises `ChangedSince`, and
        changes nothing, when a file is no longer what the run left, unless `force`; what it
        holds then is stored first. `around`: such files are left alone, and the others put back.
        Raises `HistoryError` when there is nothing to undo.
        """
        with self.locked():
            entry = self._to_undo(run_id)
            states = [(each, self._now(each.path)) for each in entry.writes]
            changed = [
                Versions(
                    each.path,
                    self._text(each.before),
                    self._text(each.after, each.path),
                    None if now is None else _decoded(now),
                )
                for each, now in states
                if _hash(now) not in (each.after, each.before)
            ]
            if around:
                newer = {each.path for each in changed}
                states = [(each, now) for each, now in states if each.path not in newer]
            elif changed and not force:
                raise ChangedSince(
                    f"{changed[0].path} has changed since run {entry.id} wrote it, so it was left "
                    "alone.",
                    tuple(changed),
                )
            # Every image is read before the first file changes.
            back = [
                (each.path, now, None if each.before is None else self.images.get(each.before))
                for each, now in states
                if _hash(now) != each.before
            ]
            run = Run(
                self,
                RunEntry(
                    new_id(),
                    utc_now(),
                    entry.job,
                    PERSON,
                    f"undo of {entry.id}",
                    (),
                    entry.session,
                    undoes=entry.id,
                    planned=len(back),
                ),
            )
            run.record()
            for path, now, before in back:
                run.write(path, before, seen=now)
            run.close()
            return [path for path, _, _ in back]

    def is_undone(self, run_id: str) -> bool:
        """Return whether the run was undone, and the undo not undone in its turn."""
        return any(each.id == run_id and each.undone_by for each in self.log.runs())

    def undone_turns(self, job: str, session: str) -> frozenset[str]:
        """Return the turns whose outcome in `job` a person took back, in one session."""
        found = set(self.log.left_out(job, session))
        for each in self.log.runs():
            if each.undone_by and (each.job, each.session) == (job, session):
                found.update(each.turns)
        return frozenset(found)

    def standing(self, path: Path) -> RunEntry | None:
        """Return the run that left `path` as it stands now, as far as the log knows.

        After an undo that is the run before the undone one; None when no run is left.
        """
        runs = {each.id: each for each in self.log.runs()}
        return runs.get(self.log.standing(path))

    def last_by(self, engine: str, path: Path) -> RunEntry | None:
        """Return the newest run of `engine` that wrote `path` and stands, None for none."""
        real = resolved(path)
        for run in reversed(self.log.runs()):
            stands = run.engine == engine and not run.undone_by
            if stands and any(each.path == real for each in run.writes):
                return run
        return None

    def left_by(self, run: RunEntry, path: Path) -> str | None:
        """Return what `run` left in `path`; None where that version is no longer kept."""
        for each in run.writes:
            if each.path == resolved(path) and each.after is not None:
                return self._text(each.after, each.path)
        return None

    def knows(self, path: Path) -> bool:
        """Return whether any run on record, undone or not, wrote `path`."""
        real = resolved(path)
        return any(each.path == real for run in self.log.runs() for each in run.writes)

    def held_before(self, run: RunEntry, path: Path) -> bytes | None:
        """Return what `path` held before `run`, None for no file or a version no longer kept."""
        for each in run.writes:
            if each.path == resolved(path) and each.before is not None:
                with contextlib.suppress(HistoryError):
                    return self.images.get(each.before)
        return None

    def forget(self, sessions: Iterable[str]) -> None:
        """Drop all that is on record of `sessions`, images included; for ``purge``.

        Raises `HistoryError`, `PlaceError`.
        """
        if self.log.path.exists():
            with self.locked():
                self.log.forget(frozenset(sessions), self.images)

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

    def _to_undo(self, run_id: str | None) -> RunEntry:
        if run_id is None:
            for each in self.entries():
                if not each.undoes and not each.undone_by:
                    return each
            raise HistoryError("There is nothing left to undo.")
        entry = self.find(run_id)
        if entry.undone_by:
            raise HistoryError(
                f"Run {entry.id} is undone already; undo {entry.undone_by} to have it back."
            )
        return entry

    def _now(self, path: Path) -> bytes | None:
        if not path.parent.is_dir():
            return None
        with Held(path) as held:
            return held.read()

    def _text(self, image: str | None, path: Path | None = None) -> str | None:
        """Return a stored version as text; None when it is gone. No image is no file: empty."""
        if image is None:
            return ""
        try:
            return _decoded(self.images.get(image))
        except HistoryError:
            # A run that was killed stored no after-image; the file itself may still be it.
            now = self._now(path) if path is not None else None
            return _decoded(now) if now is not None and digest(now) == image else None


class Run:
    """One run of an engine, as the history sees it; made by `History.begin`."""

    def __init__(self, history: History, entry: RunEntry, *, recorded: bool = False) -> None:
        self.entry = entry
        self._history = history
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
        with self._history.locked(), Held(path) as held:
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
                self._history.images.put(now)
            self._first.setdefault(path, now)
            self.record()
            self._history.log.append(
                {
                    "type": "write",
                    "run": self.id,
                    "time": utc_now(),
                    "path": self._history.log.key(path),
                    "before": _hash(now),
                    "after": _hash(planned),
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
        key = self._history.log.key(path)
        with contextlib.suppress(IpymemoryError):
            self._history.log.append(
                {"type": "wrote", "run": self.id, "path": key, "after": _hash(data)}
            )

    def record(self) -> None:
        """Put the run itself on record, once; `before` does it. Old runs are dropped here."""
        if self._recorded:
            return
        if not self.entry.undoes:
            self._history.log.trim(self.entry.job, self._history.keep, self._history.images)
        self._history.log.append({"type": "run", "version": VERSION, **self.entry.as_line()})
        self._recorded = True

    def close(self) -> None:
        """Store what the run left, for the diff. Never raises: the diff can do without."""
        for data in self._last.values():
            if data is not None:
                with contextlib.suppress(IpymemoryError):
                    self._history.images.put(data)


def unified(before: str, after: str, before_name: str, after_name: str) -> list[str]:
    """Return the lines of a unified diff, each with its line feed."""
    found = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), before_name, after_name
    )
    return [line if line.endswith("\n") else line + "\n" for line in found]


def _hash(data: bytes | None) -> str | None:
    return None if data is None else digest(data)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
