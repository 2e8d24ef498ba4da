"""Which session a kernel works in: its record on disk, and who owns it.

A session is the work on one notebook, or in one terminal, across kernel lives. A kernel goes on
with the session of its connection file, else of its notebook, when that has been idle under
twelve hours and no live process owns it. A second live kernel gets a session of its own. A
renamed notebook is known by its inode and goes on; a copy has another inode and starts anew.

``session.json`` has two writers, the kernel and the worker, so every change is read, made and
written under a lock. The claim itself is made under a lock of the project, so that of two
kernels that begin at once exactly one goes on with what was there.
"""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ipymemory import processes
from ipymemory.errors import FormatError, PlaceError
from ipymemory.files import locked, make_folder, read_json, write_atomic, write_json
from ipymemory.left_running import last_running
from ipymemory.places import Project, SessionFolder, folder_of_file, real_path
from ipymemory.processes import ProcessIdentity
from ipymemory.session_record import VERSION as VERSION
from ipymemory.session_record import SessionRecord as SessionRecord
from ipymemory.turns import Turn, new_id, utc_now

IDLE = timedelta(hours=12)
"""A session idle for longer is not gone on with (behaviour, "session")."""

FAR_OWNER = timedelta(hours=1)
"""How long the process of another host, which cannot be asked, counts as alive."""

MOST_LOOKED_AT = 200
"""Sessions, the newest, among which that of a notebook is looked for: at most 20 ms at load."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a kernel works for: the notebook and its inode, its connection file, or a terminal.

    `connection` is the name of the connection file, which a restart keeps; in a terminal, what
    tells that terminal from others, or nothing.
    """

    notebook: Path | None
    inode: tuple[int, int] | None
    connection: str
    terminal: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What is there of a notebook before anything is claimed.

    `continues` tells whether a kernel would go on with it; else it is the last session of this
    notebook, long idle. `died_in` is the cell that was running when its kernel died.
    """

    folder: SessionFolder | None = None
    record: SessionRecord | None = None
    continues: bool = False
    died_in: Turn | None = None

    @property
    def restarted(self) -> bool:
        """Whether the variables of this session are gone with an earlier kernel."""
        had = self.folder is None or not self.folder.of_file
        return had and self.record is not None and self.record.kernel != processes.own()


@dataclass(frozen=True, slots=True)
class Claim:
    """A session that this kernel owns now."""

    folder: SessionFolder
    record: SessionRecord
    continued: bool
    died_in: Turn | None = None

    @property
    def generation(self) -> int:
        """How many kernels the session has had, this one included."""
        return self.record.generation


def find(
    project: Project, identity: Identity, now: datetime, kernel: ProcessIdentity | None = None
) -> Found:
    """Return the session of `identity`, without changing anything; raises nothing.

    `kernel` is who asks, this process if it is not given. Of sessions that could be gone on with
    the one of the same connection file comes first, then the newest. Where no kernel had one, it
    is what was read of the notebook's file, which nobody goes on with.
    """
    kernel = kernel or processes.own()
    identity = _real(identity)
    best: Found | None = None
    for folder in _newest(project, of_files=False)[:MOST_LOOKED_AT]:
        idle = now - last_active(folder) >= IDLE
        if idle and best is not None:
            break
        record = _read_or_empty(folder)
        if not _same(record, identity) or _held(record, folder, now, kernel):
            continue
        mine = record.kernel == kernel
        # A kernel that ended as it should has let its session go.
        died = None if mine or record.kernel is None else last_running(folder.transcript)
        continues = (mine or not idle) and record.version <= VERSION
        found = Found(folder, record, continues, died)
        if continues and identity.connection and record.connection == identity.connection:
            return found
        if best is None or (continues and not best.continues):
            best = found
    if best is None and identity.notebook is not None:
        folder = folder_of_file(project, identity.notebook)
        best = Found(folder, _read_or_empty(folder)) if folder.record.exists() else None
    return best or Found()


def claim(project: Project, identity: Identity, now: datetime, kernel: ProcessIdentity) -> Claim:
    """Go on with the session of `identity`, or begin one, and own it.

    Raises `PlaceError` or `FormatError` when nothing can be written.
    """
    with locked(project.folder / ".claim.lock"):
        if not project.record.exists():
            project.set_property("root", str(project.root))
        found = find(project, identity, now, kernel)
        identity = _real(identity)
        told: dict[str, Any] = {"kernel": kernel}
        # What is not known this time was known before: a reset takes the path's name away.
        if identity.notebook is not None:
            told |= {"notebook": str(identity.notebook)}
        if identity.inode is not None:
            told |= {"inode": identity.inode}
        if identity.connection:
            told |= {"connection": identity.connection}
        if found.continues and found.folder is not None and found.record is not None:
            mine = found.record.kernel == kernel
            generation = found.record.generation + (0 if mine else 1)
            record = update(found.folder, generation=generation, **told)
            return Claim(found.folder, record, not mine, found.died_in)
        folder = SessionFolder(project.sessions / new_id())
        previous = found.folder.id if found.folder else ""
        record = SessionRecord(id=folder.id, previous=previous, started=utc_now(), **told)
        make_folder(folder.path)
        write_json(folder.record, record.as_dict())
        return Claim(folder, record, False, found.died_in)


def update(folder: SessionFolder, **changes: Any) -> SessionRecord:
    """Change the record and return it; raises `FormatError` when a newer version wrote it.

    A record of an older version is upgraded and a copy of it kept.
    """
    with locked(folder.path / ".session.lock"):
        record = read(folder)
        if record.version > VERSION:
            raise FormatError(
                f"{folder.record} was written by a newer ipymemory and is only read here. "
                "Upgrade with: pip install --upgrade ipymemory"
            )
        if record.version < VERSION and folder.record.exists():
            copy = folder.path / f"session.v{record.version}.json"
            write_atomic(copy, folder.record.read_bytes())
        record = replace(record, **{"version": VERSION, **changes})
        write_json(folder.record, record.as_dict())
        return record


def release(folder: SessionFolder) -> None:
    """Own the session no longer, if this process does. A forked child owns nothing.

    Raises `PlaceError`, and `FormatError` for a record that cannot be read.
    """
    if folder.record.exists() and read(folder).kernel == processes.own():
        update(folder, kernel=None)


def read(folder: SessionFolder) -> SessionRecord:
    """Return the record; a missing one is empty. Raises `FormatError`, `PlaceError`."""
    return SessionRecord.from_dict(read_json(folder.record) or {"version": VERSION}, folder.id)


def every(project: Project) -> list[tuple[SessionRecord, SessionFolder]]:
    """Return the sessions of the project, the newest first.

    One whose record cannot be read is there with an empty record, never lost.
    """
    return [(_read_or_empty(folder), folder) for folder in _newest(project)]


def latest_folder(project: Project) -> SessionFolder | None:
    """Return the session whose last turn is the newest, or None."""
    return next(iter(_newest(project, of_files=False)), None)


def last_active(folder: SessionFolder) -> datetime:
    """Return when the session last had a turn: when its transcript was last written to.

    Before the first turn it is the time of its record.
    """
    return datetime.fromtimestamp(_touched(folder), UTC)


def expired(project: Project, keep_days: int, now: datetime) -> list[SessionFolder]:
    """Return the sessions without a turn for `keep_days` days and without a live owner."""
    limit = timedelta(days=keep_days)
    return [
        folder
        for folder in _newest(project)
        if now - last_active(folder) > limit and not owned(_read_or_empty(folder), folder, now)
    ]


def owned(record: SessionRecord, folder: SessionFolder, now: datetime) -> bool:
    """Return whether a live process other than this one owns the session."""
    return _held(record, folder, now, processes.own())


def _held(
    record: SessionRecord, folder: SessionFolder, now: datetime, kernel: ProcessIdentity
) -> bool:
    owner = record.kernel
    if owner is None or owner == kernel:
        return False
    if processes.local(owner):
        return processes.alive(owner)
    return now - last_active(folder) < FAR_OWNER


def _newest(project: Project, *, of_files: bool = True) -> list[SessionFolder]:
    """Return the folders of the sessions, the newest first; reads none of their files.

    Without `of_files` only those that a kernel had: of the others there may be thousands.
    """
    try:
        with os.scandir(project.sessions) as entries:
            names = [each.name for each in entries if each.is_dir()]
    except OSError:
        return []
    folders = [SessionFolder(project.sessions / each) for each in names if each[0] != "."]
    found = [each for each in folders if of_files or not each.of_file]
    return sorted(found, key=lambda folder: (_touched(folder), folder.id), reverse=True)


def _touched(folder: SessionFolder) -> float:
    for path in (folder.transcript, folder.record):
        try:
            return max(path.stat().st_mtime, 0.0)
        except OSError:
            continue
    return 0.0


def _read_or_empty(folder: SessionFolder) -> SessionRecord:
    try:
        return read(folder)
    except (FormatError, PlaceError):
        return SessionRecord(folder.id)


def _real(identity: Identity) -> Identity:
    """Return the identity with the one path of its notebook, however it was reached."""
    if identity.notebook is None:
        return identity
    try:
        return replace(identity, notebook=real_path(identity.notebook))
    except PlaceError:
        return replace(identity, notebook=None, inode=None)


def _same(record: SessionRecord, identity: Identity) -> bool:
    """Return whether the record is of the same notebook, or of the same kernel before a restart."""
    if identity.connection and record.connection == identity.connection:
        return True
    if identity.notebook is None or not record.notebook:
        return False
    before = Path(record.notebook)
    known = record.inode is not None and identity.inode is not None
    if _composed(before) == _composed(identity.notebook):
        # Many programs save by putting a new file in place of the old one. But where that one
        # lives on under another name, it was renamed and this is a new notebook.
        return not (known and record.inode != identity.inode and _beside(before, record.inode))
    # Renamed: the same file, and under its old name there is none or another. A copy has left
    # the old one in place, and a hard link is a copy too as far as people are concerned.
    return known and record.inode == identity.inode and _inode_of(before) != record.inode


def _beside(path: Path, inode: tuple[int, int] | None) -> bool:
    """Return whether a notebook in the folder of `path` has `inode`."""
    try:
        with os.scandir(path.parent) as entries:
            same = [each.name for each in entries if inode and each.inode() == inode[1]]
    except OSError:
        return False
    notebooks = [each for each in same if each.endswith(".ipynb") and each[0] not in ".~"]
    return any(_inode_of(path.with_name(each)) == inode for each in notebooks)


def _inode_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _composed(path: Path) -> str:
    return unicodedata.normalize("NFC", str(path))
