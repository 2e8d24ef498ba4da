"""Which session a kernel works in: its record on disk, and who owns it.

A session is the work on one notebook, or in one terminal, across kernel lives. A kernel goes on
with the session of its connection file or its notebook when that has been idle under twelve
hours and no live process owns it. A second live kernel gets a session of its own. A renamed
notebook is known by its inode and goes on; a copy has another inode and starts anew.

``session.json`` has two writers, the kernel and the worker, so every change is read, made and
written under a lock. The claim itself is made under a lock of the project, so that of two
kernels that begin at once exactly one goes on with what was there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ipymemory import processes
from ipymemory.errors import FormatError, PlaceError
from ipymemory.files import make_folder, read_json, write_atomic, write_json
from ipymemory.places import Project, SessionFolder
from ipymemory.processes import ProcessIdentity
from ipymemory.transcript import last_running
from ipymemory.turns import Turn, new_id, utc_now

VERSION = 1
IDLE = timedelta(hours=12)
"""A session idle for longer is not gone on with (behaviour, "session")."""

FAR_OWNER = timedelta(hours=1)
"""How long the process of another host, which cannot be asked, counts as alive."""

LOCK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a kernel works for: the notebook and its inode, its connection file, or a terminal."""

    notebook: Path | None
    inode: tuple[int, int] | None
    connection: str
    terminal: bool


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What ``session.json`` holds. `unknown` are keys of a newer version, kept as they are."""

    id: str
    version: int = VERSION
    notebook: str = ""
    inode: tuple[int, int] | None = None
    connection: str = ""
    previous: str = ""
    generation: int = 1
    started: str = ""
    last_turn: str = ""
    kernel: ProcessIdentity | None = None
    worker: ProcessIdentity | None = None
    notes_through: str = ""
    extracted_through: str = ""
    pending: tuple[str, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        value = {each.name: getattr(self, each.name) for each in fields(self)}
        unknown = value.pop("unknown")
        for name in ("kernel", "worker"):
            value[name] = value[name].as_dict() if value[name] is not None else None
        return {**unknown, **value}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], id: str) -> SessionRecord:
        """Return the record that `as_dict` described; what is of the wrong type is its default."""
        version, generation = value.get("version"), value.get("generation")
        inode, pending = value.get("inode"), value.get("pending")
        known = {each.name for each in fields(cls)}
        texts = ("notebook", "connection", "previous", "started", "last_turn", "notes_through",
                 "extracted_through")  # fmt: skip
        return cls(
            id=id,
            version=version if isinstance(version, int) else 0,
            inode=_inode(inode),
            generation=generation if isinstance(generation, int) else 1,
            kernel=ProcessIdentity.from_dict(value.get("kernel")),
            worker=ProcessIdentity.from_dict(value.get("worker")),
            pending=tuple(map(str, pending)) if isinstance(pending, list) else (),
            unknown={name: each for name, each in value.items() if name not in known},
            **{name: str(value[name]) for name in texts if isinstance(value.get(name), str)},
        )


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
        return self.record is not None and self.record.kernel != processes.own()


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


def find(project: Project, identity: Identity, now: datetime) -> Found:
    """Return the session of `identity`, without changing anything; raises nothing."""
    last: Found | None = None
    for record, folder in every(project):
        if not _same(record, identity):
            continue
        if owned(record, folder, now):
            continue
        mine = record.kernel == processes.own()
        died = None if mine else last_running(folder.transcript)
        fresh = mine or now - last_active(record, folder) < IDLE
        found = Found(folder, record, fresh and record.version <= VERSION, died)
        if found.continues:
            return found
        last = last or found
    return last or Found()


def claim(project: Project, identity: Identity, now: datetime, kernel: ProcessIdentity) -> Claim:
    """Go on with the session of `identity`, or begin one, and own it.

    Raises `PlaceError` or `FormatError` when nothing can be written.
    """
    with _locked(project.folder / ".claim.lock"):
        if not project.record.exists():
            project.set_property("root", str(project.root))
        found = find(project, identity, now)
        told = {
            "notebook": str(identity.notebook or ""),
            "inode": identity.inode,
            "connection": identity.connection,
            "kernel": kernel,
        }
        if found.continues and found.folder is not None and found.record is not None:
            mine = found.record.kernel == kernel
            generation = found.record.generation + (0 if mine else 1)
            record = update(found.folder, generation=generation, **told)
            return Claim(found.folder, record, not mine, found.died_in)
        folder = SessionFolder(project.sessions / new_id())
        record = SessionRecord(
            id=folder.id,
            previous=found.folder.id if found.folder else "",
            started=utc_now(),
            **told,  # type: ignore[arg-type]
        )
        make_folder(folder.path)
        write_json(folder.record, record.as_dict())
        return Claim(folder, record, False, found.died_in)


def update(folder: SessionFolder, **changes: Any) -> SessionRecord:
    """Change the record and return it; raises `FormatError` when a newer version wrote it.

    A record of an older version is upgraded and a copy of it kept.
    """
    with _locked(folder.path / ".session.lock"):
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
    """Own the session no longer, if this process does. A forked child owns nothing."""
    if folder.record.exists() and read(folder).kernel == processes.own():
        update(folder, kernel=None)


def read(folder: SessionFolder) -> SessionRecord:
    """Return the record; a missing one is empty. Raises `FormatError`, `PlaceError`."""
    return SessionRecord.from_dict(read_json(folder.record) or {"version": VERSION}, folder.id)


def every(project: Project) -> list[tuple[SessionRecord, SessionFolder]]:
    """Return the sessions of the project, the newest first.

    One whose record cannot be read is there with an empty record, never lost.
    """
    try:
        folders = [SessionFolder(each) for each in project.sessions.iterdir() if each.is_dir()]
    except OSError:
        return []
    found = []
    for folder in folders:
        if folder.id.startswith("."):
            continue
        try:
            record = read(folder)
        except (FormatError, PlaceError):
            record = SessionRecord(folder.id)
        found.append((last_active(record, folder), record, folder))
    found.sort(key=lambda each: (each[0], each[2].id), reverse=True)
    return [(record, folder) for _, record, folder in found]


def latest_folder(project: Project) -> SessionFolder | None:
    """Return the session whose last turn is the newest, or None."""
    return next((folder for _, folder in every(project)), None)


def last_active(record: SessionRecord, folder: SessionFolder) -> datetime:
    """Return when the session last had a turn: the newest of its transcript and its start."""
    try:
        return datetime.fromtimestamp(folder.transcript.stat().st_mtime, UTC)
    except (OSError, OverflowError, ValueError):
        pass
    try:
        return datetime.fromisoformat(record.last_turn or record.started)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def expired(project: Project, keep_days: int, now: datetime) -> list[SessionFolder]:
    """Return the sessions without a turn for `keep_days` days and without a live owner."""
    limit = timedelta(days=keep_days)
    return [
        folder
        for record, folder in every(project)
        if now - last_active(record, folder) > limit and not owned(record, folder, now)
    ]


def _same(record: SessionRecord, identity: Identity) -> bool:
    """Return whether the record is of the same notebook, or of the same kernel before a restart."""
    if identity.notebook is None:
        return bool(identity.connection) and record.connection == identity.connection
    if record.notebook == str(identity.notebook):
        return True
    # Renamed: the same file under a new name, and nothing under the old one. A copy left the
    # old one in place, and a hard link is a copy too as far as people are concerned.
    return (
        bool(record.notebook)
        and record.inode is not None
        and record.inode == identity.inode
        and not Path(record.notebook).exists()
    )


def owned(record: SessionRecord, folder: SessionFolder, now: datetime) -> bool:
    """Return whether a live process other than this one owns the session."""
    owner = record.kernel
    if owner is None or owner == processes.own():
        return False
    if processes.local(owner):
        return processes.alive(owner)
    return now - last_active(record, folder) < FAR_OWNER


def _inode(value: object) -> tuple[int, int] | None:
    if isinstance(value, list) and len(value) == 2 and all(isinstance(n, int) for n in value):
        return (value[0], value[1])
    return None


class _locked:
    """Holds the lock file `path` for a few statements; raises `PlaceError` when it cannot."""

    def __init__(self, path: Path) -> None:
        from filelock import FileLock  # late: most loads never claim

        self._path = path
        make_folder(path.parent)
        self._lock = FileLock(path, timeout=LOCK_SECONDS, mode=0o600)

    def __enter__(self) -> None:
        from filelock import Timeout

        try:
            self._lock.acquire()
        except Timeout as error:
            raise PlaceError(
                f"{self._path} has been locked for {LOCK_SECONDS:g} s by another process. Try "
                "again, or end that process."
            ) from error
        except OSError as error:
            raise PlaceError(
                f"{self._path} cannot be locked: {error.strerror or error}. Mend the folder's "
                "permissions."
            ) from error

    def __exit__(self, *exc: object) -> None:
        self._lock.release()
