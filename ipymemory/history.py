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
from collections.abc import Iterable, Sequence
from pathlib import Path

from ipymemory.errors import ChangedSince, HistoryError, Versions
from ipymemory.held import Held, resolved
from ipymemory.history_log import RunEntry, Write
from ipymemory.history_runs import Ledger, Run, hash_of
from ipymemory.images import digest
from ipymemory.turns import new_id, utc_now

__all__ = ["SHORT", "History", "Run", "RunEntry", "Write"]

SHORT = 16
"""Digits of a run's id that are shown: its time and its place within the millisecond."""

PERSON = "person"
"""The engine of an undo."""


class History(Ledger):
    """The undo history in `folder`; nothing is made on disk before the first write."""

    def begin(
        self,
        job: str,
        engine: str,
        reason: str,
        turns: Sequence[str],
        session: str,
        *,
        id: str = "",
    ) -> Run:
        """Return a run under which an engine may write. It is on record from its first write on.

        `id` is a new one that somebody knows it by already.
        """
        entry = RunEntry(id or new_id(), utc_now(), job, engine, reason, tuple(turns), session)
        return Run(self, entry)

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
                if hash_of(now) not in (each.after, each.before)
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
                if hash_of(now) != each.before
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


def unified(before: str, after: str, before_name: str, after_name: str) -> list[str]:
    """Return the lines of a unified diff, each with its line feed."""
    found = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), before_name, after_name
    )
    return [line if line.endswith("\n") else line + "\n" for line in found]


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
