"""Notes and memories of many notebook files, without a kernel, and gone on with where it stopped.

Each notebook has one session of its own in the project it lies in (`places.folder_of_file`): the
notes go there, what it says plainly is proposed as memories, and last of all its record says what
the file held, by a fingerprint. So a process that is killed at any moment has lost nothing, the
next one goes on, and what has not changed is passed over. Two at once take turns at a notebook.

A notebook file is read, bounded and masked as everywhere, and never written.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from ipymemory import document_files, file_memories, file_notes, notebooks, places, sessions
from ipymemory.config import Settings
from ipymemory.errors import EmptyNotebook, IpymemoryError, PlaceError
from ipymemory.file_memories import Offer
from ipymemory.files import locked, make_folder
from ipymemory.history import History
from ipymemory.notebooks import NotebookFile
from ipymemory.places import Project, SessionFolder
from ipymemory.session_record import SessionRecord
from ipymemory.turns import utc_now

log = logging.getLogger(__name__)

MOST_NOTEBOOKS = 20_000
"""Notebooks below one folder."""

LOCK_SECONDS = 60.0
"""How long another process that reads the same notebook is waited for; it takes milliseconds."""

NOTES, MEMORIES = "notes", "memories"
"""What is made of a notebook, as the record of its session names it."""

Status = Literal["done", "unchanged", "empty", "failed"]


@dataclass(slots=True)
class Found:
    """The notebooks that were named or lie below folders, each once; a sentence for what is not."""

    paths: list[Path] = field(default_factory=list)
    problems: list[tuple[Path, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Read:
    """What came of one notebook. `empty`: nothing stands in it yet; `failed`: `error` says why."""

    path: Path
    status: Status
    error: str = ""
    notes: Path | None = None
    """Where its notes lie."""
    run: str = ""
    """The write of its notes in the history, where there was anything to write."""
    proposed: tuple[str, ...] = ()
    more: bool = False
    """Whether it says more than may wait for a yes at once."""
    closed: str = ""
    """Why no memory is proposed, where that is so."""
    root: Path | None = None
    """The project it belongs to."""


def find(names: Sequence[Path]) -> Found:
    """Return the notebooks in `names`: files, and folders with all below them.

    Below a folder hidden files, links, environments and the like are passed over, as living
    documents do it (`document_files`). Never raises.
    """
    found, seen = Found(), set[Path]()
    for name in names:
        try:
            # What was named may be a link; one file is one notebook, whatever leads to it.
            real = places.real_path(name.expanduser())
            for path in _below(name, real, found):
                if path not in seen:
                    seen.add(path)
                    found.paths.append(path)
        except (IpymemoryError, OSError, RuntimeError, ValueError) as error:
            known = isinstance(error, IpymemoryError)
            text = str(error) if known else f"{str(name)!r} is no path that can be read: {error}."
            found.problems.append((name, text))
    return found


def _below(name: Path, real: Path, found: Found) -> Iterator[Path]:
    """Yield the notebook `real`, else those below that folder; raises `PlaceError`, `OSError`."""
    try:
        mode = real.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PlaceError(f"There is no file or folder {name}. Check the name.") from error
    if not stat.S_ISDIR(mode):
        if not stat.S_ISREG(mode):
            # A pipe would be waited for without an end.
            raise PlaceError(f"{name} is no regular file, so it was not read. Name a notebook.")
        yield real
        return
    waiting, count = [real], 0
    while waiting:
        folder = waiting.pop()
        if not os.access(folder, os.R_OK | os.X_OK):
            text = f"The folder {folder} may not be looked into. Mend its permissions."
            found.problems.append((folder, text))
            continue
        for path in document_files.files_in(folder):
            if path.suffix.casefold() == ".ipynb":
                count += 1
                if count > MOST_NOTEBOOKS:
                    raise PlaceError(
                        f"{name} holds more than {MOST_NOTEBOOKS:,} notebooks; the rest was left "
                        "out. Name a part of it."
                    )
                yield path
        waiting += reversed(document_files.folders_in(folder))


class Ingest:
    """Reads notebooks into `home`. With `dry` it only tells what would come of it.

    `said` are sentences about files of the user's that were passed over on the way.
    """

    def __init__(self, home: Path, settings: Settings, *, dry: bool = False) -> None:
        self.said: list[str] = []
        self._home = home
        self._settings = settings
        self._dry = dry
        self._projects: dict[Path, Project] = {}
        self._histories: dict[str, History] = {}
        self._told: dict[str, set[str]] = {}
        self._keep = settings.memory.history_keep

    def read(self, paths: Sequence[Path]) -> Iterator[Read]:
        """Yield what comes of each notebook, real paths. What is wrong with one stops none."""
        # Whatever one call writes can be taken back.
        self._keep = max(self._keep, len(paths))
        for path in paths:
            try:
                read = self._read(path)
                yield replace(read, root=self._project(path).root)
            except EmptyNotebook:
                yield Read(path, "empty")
            except IpymemoryError as error:
                yield Read(path, "failed", str(error))
            except Exception as error:  # a notebook that breaks an engine must stop no other
                log.info("%s could not be read", path, exc_info=True)
                told = f"{type(error).__name__}: {error}"[:300]
                yield Read(path, "failed", f"{path} could not be read: {told}")

    def _read(self, path: Path) -> Read:
        """Read one notebook; raises `IpymemoryError`."""
        data = notebooks.bytes_of(path)
        mark = hashlib.sha256(data).hexdigest()[:32]
        project = self._project(path)
        folder = places.folder_of_file(project, path)
        closed = file_memories.closed(project, self._settings)
        if self._is_done(folder, mark, closed):
            return Read(path, "unchanged", notes=folder.notes, closed=closed)
        notebook = notebooks.parse(path, data)
        if self._dry:
            offer = Offer() if closed else self._propose(folder, notebook, project)
            return Read(path, "done", "", None, "", offer.lines, offer.more, closed)
        self._begin(project)
        make_folder(folder.path)
        with locked(folder.path / ".read.lock", LOCK_SECONDS):
            if self._is_done(folder, mark, closed):
                return Read(path, "unchanged", notes=folder.notes, closed=closed)
            _sweep(folder)
            return self._write(notebook, project, folder, mark, closed)

    def _write(
        self,
        notebook: NotebookFile,
        project: Project,
        folder: SessionFolder,
        mark: str,
        closed: str,
    ) -> Read:
        before = sessions.read(folder).read
        done = dict(before)
        run, offer = "", Offer()
        if not self._is_noted(folder, mark, before):
            if done.get(NOTES, mark) != mark:
                # Killed on the way, the notes may be of neither what it held nor what it holds.
                del done[NOTES]
                sessions.update(folder, read=done)
            history = self._history(project)
            run = file_notes.write(folder, notebook, project, self._settings, history, self._say)
            done[NOTES] = mark
        if not closed and done.get(MEMORIES) != mark:
            with locked(project.folder / ".ingest.lock", LOCK_SECONDS):
                offer = self._propose(folder, notebook, project)
            if not offer.more:
                done[MEMORIES] = mark
        if done != before:
            self._record(notebook.path, folder, done)
        notes = folder.notes if folder.notes.exists() else None
        status: Status = "done" if done != before or run or offer.lines else "unchanged"
        return Read(notebook.path, status, "", notes, run, offer.lines, offer.more, closed)

    def _propose(self, folder: SessionFolder, notebook: NotebookFile, project: Project) -> Offer:
        told = self._told.setdefault(project.key, set()) if self._dry else None
        history = self._history(project)
        return file_memories.propose(folder, notebook, project, self._settings, history, told)

    def _is_done(self, folder: SessionFolder, mark: str, closed: str) -> bool:
        """Return whether all that is made of a notebook was made of what it holds now."""
        if not folder.record.exists():
            return False
        done = sessions.read(folder).read
        if not closed and done.get(MEMORIES) != mark:
            return False
        return self._is_noted(folder, mark, done)

    def _is_noted(self, folder: SessionFolder, mark: str, done: Mapping[str, str]) -> bool:
        """Return whether the notes, where there are to be any, are of what the file holds now.

        Notes that are gone somebody wants anew, or took back: what then comes of it is nothing.
        """
        if not self._settings.session_notes.enabled:
            return True
        return done.get(NOTES) == mark and folder.notes.exists()

    def _record(self, path: Path, folder: SessionFolder, done: dict[str, str]) -> None:
        """Put on record what was made; the last step of all."""
        found = path.stat()
        before: SessionRecord = sessions.read(folder)
        sessions.update(
            folder,
            notebook=str(path),
            inode=(found.st_dev, found.st_ino),
            started=before.started or utc_now(),
            read=done,
        )

    def _begin(self, project: Project) -> None:
        if not project.record.exists():
            project.set_property("root", str(project.root))

    def _project(self, path: Path) -> Project:
        """Return the project of a notebook; all in one folder are of one, but in a home folder."""
        known = self._projects.get(path.parent)
        if known is None:
            share = self._settings.memory.share_worktrees
            known = places.project_of(path, self._home, share_worktrees=share)
            if known.root != path:
                self._projects[path.parent] = known
        return known

    def _history(self, project: Project) -> History:
        if project.key not in self._histories:
            self._histories[project.key] = History(project.history, self._keep)
        return self._histories[project.key]

    def _say(self, text: str) -> None:
        if text not in self.said:
            self.said.append(text)


def _sweep(folder: SessionFolder) -> None:
    """Remove what a process that was killed left half-written; its lock was let go with it."""
    for each in folder.path.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            each.unlink()
