"""The lock of dreams: of any number of processes that want to tidy a memory folder one may.

`.consolidate-lock` lies among the memories, where other programs look for it too: its body is the
owner's process id while it is held and empty while it is free, its time that of the last dream.
A process id is given away again, so who the owner is, and the time to put back when it dies, are
kept in our own folder. There also lies the lock of the operating system that decides between our
own processes: it goes with its process, however that ends. Where the file system keeps no such
locks, or says that it does and lets a second one in, nobody dreams.

Body and time change in one step, by a file moved into place: no moment shows one without the
other. Whatever cannot be told for sure counts as held: rather no dream than two.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipymemory import processes
from ipymemory.errors import FormatError, PlaceError
from ipymemory.files import filelock, make_folder, read_json, write_json
from ipymemory.held import Held
from ipymemory.processes import ProcessIdentity

NAME = ".consolidate-lock"
OWNER = "owner.json"
"""The record of the owner, in our own folder."""

FOREIGN_SECONDS = 3600.0
"""How long an owner of another host, whose life cannot be seen from here, keeps it (D2)."""

_RETRY = "Try again when it has ended."
_NO_LOCKS = (
    "so two dreams could not be told apart and none begins. Set IPYMEMORY_HOME to a folder on a "
    "disk of this machine."
)


@dataclass(frozen=True, slots=True)
class Busy:
    """Why the lock was not to be had, as a sentence. `running`: a dream may be going on."""

    reason: str
    running: bool = True


class DreamLock:
    """The lock of the memory folder `memory`; `records` is the folder of its owner's record."""

    def __init__(self, memory: Path, records: Path) -> None:
        self.path = memory / NAME
        self._record = records / OWNER
        self._system = records / ".lock"

    def last(self) -> float | None:
        """Return when the last dream began, in seconds of the epoch; None when there was none.

        One `stat`. While a dream runs it is the beginning of that one.
        """
        found = _time(self.path)
        return None if found is None else found / 1e9

    def left(self) -> str:
        """Return what was left by an owner that is gone, as a sentence; empty where all is well.

        It only looks. Raises `PlaceError` for a link in the lock's place.
        """
        body = _body(self.path)
        if not body:
            return ""
        try:
            owner = ProcessIdentity.from_dict((read_json(self._record) or {}).get("owner"))
        except FormatError:
            owner = None
        if owner is not None and body == str(owner.pid):
            dead = processes.local(owner) and not processes.alive(owner)
            return f"Process {owner.pid}, which held {self.path}, is gone." if dead else ""
        if self._is_to_come():
            return f"{self.path} is held, and its time is one to come."
        if not self._is_old():
            return ""
        if (pid := _number(body)) and processes.identity(pid) is not None:
            return self._another(pid)
        return f"{self.path} was left by a process that is gone, or of another machine."

    def take(self) -> HeldLock | Busy:
        """Take the lock, or say why not; never waits.

        What a dead owner left is put back first (D3), also when the lock is then not taken.
        Raises `PlaceError` where the folders cannot be written.
        """
        make_folder(self._record.parent)
        locks = filelock()
        # A marker in the place of a lock would stay when its process dies, and two may make one.
        system, other = (
            locks.FileLock(self._system, mode=0o600, fallback_to_soft=False) for _ in range(2)
        )
        try:
            system.acquire(blocking=False)
        except locks.Timeout:
            return Busy(f"A dream is running in another process. {_RETRY}")
        except (OSError, RuntimeError) as error:
            return Busy(f"{self._system} cannot be locked ({error}), {_NO_LOCKS}", False)
        try:
            with contextlib.suppress(locks.Timeout):
                other.acquire(blocking=False)
            if other.is_locked:
                other.release()
                taken: HeldLock | Busy = Busy(
                    f"The file system of {self._system} lets two have one lock, {_NO_LOCKS}", False
                )
            else:
                taken = self._taken(system)
        except BaseException:
            system.release()
            raise
        if isinstance(taken, Busy):
            system.release()
        return taken

    def _taken(self, system: Any) -> HeldLock | Busy:
        refusal, died = self._settled()
        if refusal:
            return Busy(refusal)
        before, started = _time(self.path), time.time_ns()
        me = processes.own()
        write_json(self._record, {"owner": me.as_dict(), "before": before})
        put(self.path, str(me.pid), started)
        if _body(self.path) != str(me.pid):  # another program took it in between
            self._record.unlink(missing_ok=True)
            return Busy(f"Another program took {self.path} at the same moment. {_RETRY}")
        return HeldLock(self.path, self._record, system, before, started, died)

    def _settled(self) -> tuple[str, bool]:
        """Put back what a dead owner left; return why the lock is held, and whether one died."""
        body = _body(self.path)
        try:
            record = read_json(self._record)
        except FormatError:
            # Written whole or not at all, so somebody edited it: then the body alone counts.
            record = None
        owner = ProcessIdentity.from_dict((record or {}).get("owner"))
        if record is not None and owner is not None and body in ("", str(owner.pid)):
            if body and not self._is_over(owner):
                return f"Process {owner.pid} on {owner.host} is dreaming. {_RETRY}", False
            self._put_back(record.get("before"), body)
            self._record.unlink(missing_ok=True)
            return "", bool(body)
        return ("", False) if not body else (self._foreign(body), False)

    def _is_over(self, owner: ProcessIdentity) -> bool:
        if processes.local(owner):
            # Our own process holds no lock of the system here, or this would not be reached.
            return not processes.alive(owner) or owner == processes.own()
        return self._is_old_by_its_disk()

    def _is_to_come(self) -> bool:
        found = _time(self.path)
        return found is not None and found / 1e9 - time.time() > FOREIGN_SECONDS

    def _is_old(self) -> bool:
        found = _time(self.path)
        return found is None or time.time() - found / 1e9 > FOREIGN_SECONDS

    def _is_old_by_its_disk(self) -> bool:
        """Return whether an owner on another machine has had it for too long.

        Its clock may be wrong, and so may ours. When the file was put there the disk knows too,
        and what time the disk has is seen by touching a file.
        """
        os.utime(self._system)
        now = self._system.stat().st_mtime
        return self._is_old() and now - changed(self.path) > FOREIGN_SECONDS

    def _foreign(self, body: str) -> str:
        """Return why an owner without a record of ours still counts; empty when it does not."""
        if (pid := _number(body)) and processes.identity(pid) is not None:
            return self._another(pid)
        if self._is_old_by_its_disk():
            return ""
        return (
            f"A process of another machine, or one that has just died, holds {self.path}. It is "
            "free an hour after it was taken."
        )

    def _another(self, pid: int) -> str:
        return (
            f"Another program (process {pid}) is tidying the memories. If none is, remove "
            f"{self.path}."
        )

    def _put_back(self, before: object, body: str) -> None:
        if not body:  # it had not begun, or had ended: the time is right already
            return
        if isinstance(before, int) and not isinstance(before, bool):
            put(self.path, "", before)
        else:
            self.path.unlink(missing_ok=True)


class HeldLock:
    """The lock, held by this process until `done` or `roll_back`; the first of them counts."""

    def __init__(
        self, path: Path, record: Path, system: Any, before: int | None, started: int, died: bool
    ) -> None:
        self._path, self._record, self._system = path, record, system
        self._before, self._started = before, started
        self.found_dead = died
        """Whether an owner died before: its journal is to be finished or reverted first."""

    @property
    def last(self) -> float | None:
        """When the last dream before this one began, in seconds of the epoch; None for never."""
        return None if self._before is None else self._before / 1e9

    @property
    def mine(self) -> bool:
        """Whether it is still this process that holds it.

        Another machine whose locks are not seen here may have taken it at the same moment; who
        wrote last has it. Asked again before anything is written, long after that moment.
        """
        try:
            return _body(self._path) == str(processes.own().pid) and self._is_recorded()
        except PlaceError:
            return False

    def done(self) -> None:
        """Free it after a dream that came to its end: its time is the dream's beginning (D3)."""
        self._free(self._started)

    def roll_back(self) -> None:
        """Free it after a failure or a kill, with the time before; a later session tries again."""
        self._free(self._before)

    def _free(self, mtime: int | None) -> None:
        if not self._system.is_locked:
            return
        try:
            # Who else wrote its own id there since has it now, and frees it itself.
            if _body(self._path) == str(processes.own().pid):
                if mtime is None:
                    self._path.unlink(missing_ok=True)
                else:
                    put(self._path, "", mtime)
            if self._is_recorded():
                self._record.unlink(missing_ok=True)
        finally:
            self._system.release()

    def _is_recorded(self) -> bool:
        """Return whether the record is of this process, and not of one of another machine."""
        try:
            told = (read_json(self._record) or {}).get("owner")
        except FormatError:
            return True
        return ProcessIdentity.from_dict(told) == processes.own()


def put(path: Path, body: str, mtime: int) -> None:
    """Make the lock file hold `body`, with the time `mtime` in ns, in one step.

    A link in its place is replaced, never followed. Raises `PlaceError`.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        with contextlib.suppress(FileNotFoundError):
            new.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
            file.write(body.encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        os.utime(new, ns=(mtime, mtime))
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink()
        raise PlaceError(
            f"{path} could not be written: {error.strerror or error}. No memory was touched; mend "
            "the folder's permissions."
        ) from error


def _time(path: Path) -> int | None:
    try:
        return path.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return None


def changed(path: Path) -> float:
    """Return when the file was put in its place, in seconds, by the clock of its disk."""
    try:
        return path.stat(follow_symlinks=False).st_ctime
    except OSError:
        return 0.0


def _number(body: str) -> int:
    return int(body) if body.isascii() and body.isdigit() and len(body) < 12 else 0


def _body(path: Path) -> str:
    """Return who holds the file, empty for nobody; raises `PlaceError` for a link and past 1 KB."""
    if _time(path) is None:
        return ""
    with Held(path) as held:
        return (held.read(1024) or b"").decode("ascii", "replace").strip()
