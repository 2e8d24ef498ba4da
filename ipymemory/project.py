"""What `ipymemory.open` gives: a project's sessions, notes and memories, without IPython."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ipymemory import markdown, places, sessions
from ipymemory.config import Settings
from ipymemory.config_files import config_files
from ipymemory.config_reading import read_config_files
from ipymemory.errors import CommandError, IpymemoryError
from ipymemory.markdown import Section
from ipymemory.places import Project, SessionFolder
from ipymemory.sessions import SessionRecord

if TYPE_CHECKING:
    from ipymemory.memory_files import Memory, MemoryFolder
    from ipymemory.session import MemorySession

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of one session as they stand on disk; empty when there are none yet."""

    path: Path
    text: str

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections in order."""
        return markdown.sections(self.text)

    def section(self, name: str) -> Section | None:
        """Return the section called `name`, whatever its case, or None."""
        return markdown.section(self.text, name)

    def _repr_markdown_(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Session:
    """One session: what is on record of it, and its notes."""

    folder: SessionFolder
    record: SessionRecord

    @property
    def id(self) -> str:
        """The session's id."""
        return self.record.id

    @property
    def notes(self) -> Notes:
        """The notes as they stand now."""
        path = self.folder.notes
        try:
            return Notes(path, path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Notes(path, "")


def update_notes(folder: SessionFolder, project: Project, settings: Settings) -> None:
    """Bring the notes of a session up to date, gates or not, in this process.

    Raises `CommandError` where a kernel that lives does it itself, `IpymemoryError` when it fails.
    """
    outcome = _worked(
        (folder, project, settings),
        "A running kernel keeps these notes itself. Type %memory notes --now in its notebook, or "
        "leave out --now to see them as they are.",
        lambda session: session.update_notes(force=True),
    )
    if outcome.status != "done":
        raise IpymemoryError(f"The notes were not updated: {outcome.error or outcome.status}")


def extract(folder: SessionFolder, project: Project, settings: Settings) -> dict[str, Any]:
    """Look through a session for memories, gates or not, in this process; return what came of it.

    As `learning.told` gives it.

    Raises `CommandError` where a kernel that lives does it itself, `IpymemoryError` when it fails.
    """
    from ipymemory.learning import told  # late: the kernel needs none of it

    return told(
        _worked(
            (folder, project, settings),
            "A running kernel looks through this session itself. Type %memory extract in its "
            "notebook.",
            lambda session: session.extract(),
        )
    )


def _worked(
    what: tuple[SessionFolder, Project, Settings],
    owned: str,
    work: Callable[[MemorySession], Awaitable[Result]],
) -> Result:
    """Return what `work` comes to on a session of which this process has charge meanwhile.

    Raises `CommandError` with the sentence `owned` where a kernel that lives has it.
    """
    import asyncio

    from ipymemory.session import MemorySession

    folder = what[0]
    if sessions.owned(sessions.read(folder), folder, datetime.now(UTC)):
        raise CommandError(owned)

    async def run() -> Result:
        session = MemorySession(*what)
        try:
            session.observe()
            return await work(session)
        finally:
            await session.session_model.close()

    return asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of a project, newest first; iterating reads the disk anew."""

    project: Project

    def __iter__(self) -> Iterator[Session]:
        return (Session(folder, record) for record, folder in sessions.every(self.project))

    def latest(self) -> Session | None:
        """Return the session whose last turn is the newest, or None.

        Where no kernel had one, the notebook whose file was read last.
        """
        every = list(self)
        return next((each for each in every if not each.folder.of_file), next(iter(every), None))


@dataclass(frozen=True, slots=True)
class Memories:
    """The memories of a project, newest first; iterating reads the disk anew."""

    project: Project
    settings: Settings

    def __iter__(self) -> Iterator[Memory]:
        return iter([each for each in self._folder().scan() if each.current])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def recall(self, question: str, n: int | None = None) -> list[Memory]:
        """Return at most `n` memories that answer `question`, the best first; often none.

        For None it is as many as the setting ``Memory.recalled`` says. In mode ``off`` there are
        none.
        """
        from ipymemory.recall import Recall

        most = self.settings.memory.recalled if n is None else n
        recall = Recall(self.project, self._folder(), self.settings.memory.embeddings)
        return [each.memory for each in recall.find(question, most)]

    def get(self, name: str) -> Memory:
        """Return the memory that `name` is or begins, with all of its text.

        Raises `MemoryMissing`.
        """
        return self._folder().read(name)

    def _folder(self) -> MemoryFolder:
        from ipymemory.memory_files import opened

        return opened(self.project, self.settings)


@dataclass(frozen=True, slots=True)
class OpenProject:
    """A project: `root`, the folder it is, and `folder`, where its memory lies."""

    place: Project
    settings: Settings

    @property
    def root(self) -> Path:
        """The project's own folder."""
        return self.place.root

    @property
    def folder(self) -> Path:
        """Where everything about the project is kept."""
        return self.place.folder

    @property
    def sessions(self) -> Sessions:
        """The sessions of the project."""
        return Sessions(self.place)

    @property
    def memories(self) -> Memories:
        """The memories of the project."""
        return Memories(self.place, self.settings)


def open_project(path: str | os.PathLike[str]) -> OpenProject:
    """Return the project that `path` lies in, by the settings of the command line.

    A setting that is refused has its default; ``ipymemory doctor`` tells. Writes nothing.
    """
    files = config_files()
    config, failed = read_config_files(files)
    settings, _ = Settings.read(config, files, failed)
    home = places.home(settings.memory.home)
    project = places.project_of(
        Path(path).expanduser().absolute(), home, share_worktrees=settings.memory.share_worktrees
    )
    return OpenProject(project, settings)
