"""Living documents of a project that a person here let be kept up to date, once each (M2).

A document that came with a notebook, or that lies among a project's files, is somebody's words:
nothing of it is written until the person here says so. What they said is kept in the project's
folder in our home, under the document's path, heading and instruction line, so that a copy, a
renamed file and another instruction have to be accepted anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ipymemory.documents import Document
from ipymemory.errors import IpymemoryError, PlaceError
from ipymemory.files import locked, read_json, write_json
from ipymemory.places import Project, real_path
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
    lines = [mask(" ".join(each.split())) for each in (head.heading, head.instruction)]
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


def _path(project: Project) -> Path:
    return project.folder / "documents.json"


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
    with locked(project.folder / ".documents.lock"):
        before = _read(project)
        after = change(before)
        if after != before:
            files = [str(each) for each in after.files]
            value = {"version": VERSION, "files": files, "accepted": dict(after.accepted)}
            write_json(_path(project), value)
