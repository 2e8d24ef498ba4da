"""Living documents of a project that a person here let be kept up to date, once each (M2).

A document that came with a notebook, or that lies among a project's files, is somebody's words:
nothing of it is written until the person here says so. What they said is kept in the project's
folder in our home, under the document's path, heading and instruction line, so that a copy, a
renamed file and another instruction have to be accepted anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ipymemory import looked_through, sessions
from ipymemory.documents import Document
from ipymemory.errors import IpymemoryError, PlaceError
from ipymemory.files import locked, read_json, write_json
from ipymemory.places import Project, SessionFolder, real_path
from ipymemory.redaction import mask
from ipymemory.turns import utc_now

VERSION = 1
MOST_FILES = 200
"""Files that a project keeps up to date or has found."""
MOST_ACCEPTED = 2000
"""Documents that were accepted, the newest."""


@dataclass(frozen=True, slots=True)
class Known:
    """The ``.md`` files that were found or named, and when each document was accepted, by key."""

    files: tuple[Path, ...] = ()
    accepted: Mapping[str, str] = field(default_factory=dict)


def key(path: Path, head: Document) -> str:
    """Return what a document in the file `path` is remembered by, 32 hexadecimal digits.

    Of the lines with their secrets masked: so a session's record gives the same as the file.
    """
    lines = [_flat(mask(each)) for each in (head.heading, head.instruction)]
    made = json.dumps([str(real_path(path)), *lines]).encode("utf-8", "surrogatepass")
    return hashlib.sha256(made).hexdigest()[:32]


def known(project: Project) -> Known:
    """Return what is on record. Never raises: a broken record holds nothing."""
    try:
        return _read(project)
    except IpymemoryError:
        return Known()


def is_accepted(project: Project, path: Path, head: Document) -> bool:
    """Return whether a person let this document be kept up to date. Never raises."""
    return key(path, head) in known(project).accepted


def accept(project: Project, documents: Iterable[tuple[Path, Document]]) -> None:
    """Remember that these documents are to be kept up to date; raises `IpymemoryError`."""
    now = utc_now()
    new = {key(path, head): now for path, head in documents}

    def change(found: Known) -> Known:
        kept = {name: time for name, time in found.accepted.items() if name not in new}
        return replace(found, accepted=dict([*kept.items(), *new.items()][-MOST_ACCEPTED:]))

    _change(project, change)


def register(project: Project, paths: Iterable[Path]) -> None:
    """Remember ``.md`` files that hold a document, once each; raises `IpymemoryError`."""

    def change(found: Known) -> Known:
        files = tuple(dict.fromkeys([*found.files, *paths]))
        if len(files) > MOST_FILES:
            files = tuple(each for each in files if each.exists())
        if len(files) > MOST_FILES:
            raise PlaceError(
                f"More than {MOST_FILES} .md files of {project.root} are living documents. Take "
                "the words MAGIC DOC from the headings of those that nobody needs."
            )
        return replace(found, files=files)

    _change(project, change)


def forget(project: Project, paths: Iterable[Path]) -> None:
    """Let files go that hold no document any more (M4); raises `IpymemoryError`."""
    gone = set(paths)
    _change(
        project,
        lambda found: replace(found, files=tuple(e for e in found.files if e not in gone)),
    )


class Accepting:
    """Tells which documents of a session's notebook may be written: accepted, or written here."""

    def __init__(self, project: Project, folder: SessionFolder, notebook: Path | None) -> None:
        self._project = project
        self.path = notebook if notebook is not None else folder.path
        """Where they stand: the notebook, else the session itself."""
        self._known = known(project).accepted
        self.begun = False
        """Whether it was looked at what the notebook held as this kernel began."""
        self._held: str | None = None
        with contextlib.suppress(IpymemoryError):
            kernel = sessions.read(folder).generation
            opened = looked_through.opened(folder)
            self.begun, self._held = kernel in opened, opened.get(kernel)
        self._new: list[tuple[Path, Document]] = []

    def may(self, head: Document, *, told: bool) -> bool:
        """Return whether a document may be written; `told` when a page shows it."""
        if key(self.path, head) in self._known:
            return True
        if came_with(self._held, head, told=told) and not (told and self._was_accepted(head)):
            return False
        self._new.append((self.path, head))
        return True

    def _was_accepted(self, head: Document) -> bool:
        """Return whether it was accepted with the instruction that it had as the kernel began."""
        lines = (self._held or "").splitlines()
        heading = _flat(mask(head.heading))
        return any(
            key(self.path, replace(head, instruction=instruction)) in self._known
            for at, line in enumerate(lines)
            if _flat(line) == heading
            for instruction in ("", *lines[at + 1 : at + 3])
        )

    def keep(self) -> None:
        """Remember what was written here, for the next session; raises `IpymemoryError`."""
        if self._new:
            accept(self._project, self._new)


def came_with(held: str | None, head: Document, *, told: bool) -> bool:
    """Return whether a document was there when the kernel began, and so is somebody else's words.

    `held` are the words of the saved notebook at that moment, masked, None where nobody knows.
    One that a page `told` with another instruction since was changed there by a person; in a file
    alone nobody knows who changed it.
    """
    if held is None:
        return True
    lines = [_flat(each) for each in held.splitlines()]
    heading, instruction = _flat(mask(head.heading)), _flat(mask(head.instruction))
    for at, line in enumerate(lines):
        # Where none is left the words below may be the next cell's, so that it counts as the same.
        if line == heading and (
            not told or not instruction or instruction in lines[at + 1 : at + 3]
        ):
            return True
    return False


def _flat(line: str) -> str:
    return " ".join(line.split())


def sentence(title: str, prefix: str) -> str:
    """Return what is said of a document that waits: a clause without its full stop."""
    return (
        "it came from elsewhere and is left as it is; "
        f"`{prefix}docs accept {title}` lets it be kept up to date"
    )


def stamp(project: Project, folder: SessionFolder | None) -> tuple[int, ...]:
    """Return what changes when a document was accepted, or a kernel's beginning looked at."""
    found = []
    for path in (_path(project), *([folder.opened] if folder is not None else ())):
        try:
            found.append(path.stat().st_mtime_ns)
        except OSError:
            found.append(0)
    return tuple(found)


def _path(project: Project) -> Path:
    return project.folder / "magic-docs.json"


def _read(project: Project) -> Known:
    value = read_json(_path(project)) or {}
    files, accepted = value.get("files"), value.get("accepted")
    return Known(
        tuple(Path(each) for each in files if isinstance(each, str))
        if isinstance(files, list)
        else (),
        {name: time for name, time in accepted.items() if isinstance(time, str)}
        if isinstance(accepted, dict)
        else {},
    )


def _change(project: Project, change: Callable[[Known], Known]) -> None:
    """Put `change` of what is on record in its place, one process at a time."""
    with locked(project.folder / ".magic-docs.lock"):
        before = _read(project)
        after = change(before)
        if after != before:
            files = [str(each) for each in after.files]
            value = {"version": VERSION, "files": files, "accepted": dict(after.accepted)}
            write_json(_path(project), value)
