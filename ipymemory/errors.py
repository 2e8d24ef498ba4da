"""Every exception that ipymemory raises, one tree.

::

    IpymemoryError
    ├── PlaceError        a folder cannot be found, made or written
    ├── TranscriptError   a transcript cannot be read or appended to
    ├── FormatError       a file on disk is not what it should be
    │   └── NotebookError     a file that is no notebook
    │       └── EmptyNotebook     a notebook in which nothing stands yet
    ├── SettingError      a setting has a value it cannot have
    ├── HistoryError      a write cannot be logged, shown or undone
    │   └── ChangedSince      the file is no longer what the job left
    ├── MemoryMissing     there is no memory of that name
    ├── MemoryRefused     a memory is not kept or changed as it was asked
    ├── ToolError         a tool call cannot be carried out; its text is the answer to the engine
    ├── CommandError      a command was called in a form that it does not have
    ├── EngineError       an engine cannot answer
    └── WorkerError       the worker process does not answer

The message of each is a sentence or two for the person at the keyboard: what happened, why,
and what to do next. Foreign exceptions are translated at the boundary where they are met.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class IpymemoryError(Exception):
    """The root: catching it catches all that this package raises on purpose."""


class PlaceError(IpymemoryError):
    """A folder of ours cannot be found, made or written."""


class TranscriptError(IpymemoryError):
    """A transcript cannot be read or appended to."""


class FormatError(IpymemoryError):
    """A file on disk is not what it should be; the file is left as it was."""


class NotebookError(FormatError):
    """A file that was named as a notebook is none."""


class EmptyNotebook(NotebookError):
    """A notebook in which nothing stands yet, so that there is nothing to tell of it."""


class SettingError(IpymemoryError):
    """A setting has a value it cannot have; the message names the allowed range."""


class HistoryError(IpymemoryError):
    """A write of an engine cannot be logged, shown or undone."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Three states of one file; None where there was no file, or its text is no longer kept."""

    path: Path
    before: str | None
    """What it held before the job wrote."""
    left: str | None
    """What the job left."""
    now: str | None
    """What it holds now."""


class ChangedSince(HistoryError):
    """The file is no longer what the job left, so that undoing would lose somebody's work.

    `versions` holds the three states of every such file, at least one.
    """

    def __init__(self, message: str, versions: tuple[Versions, ...]) -> None:
        super().__init__(message)
        self.versions = versions


class MemoryMissing(IpymemoryError):
    """There is no memory of that name; the message names the nearest."""


class MemoryRefused(IpymemoryError):
    """A memory is not kept or changed as it was asked; the message says why."""


class ToolError(IpymemoryError):
    """A tool call cannot be carried out; the text is the answer that the engine gets."""


class CommandError(IpymemoryError):
    """A command was called in a form that it does not have; the message shows the right one."""


class EngineError(IpymemoryError):
    """An engine cannot answer.

    `kind` is one word a program can go by: ``credentials``, ``limit``, ``overloaded``,
    ``network``, ``time``, ``request``, ``too_long``, ``refusal``, ``protocol`` or ``failed``.
    `wait` are the seconds after which another try makes sense, None where nobody said.
    """

    def __init__(self, message: str, kind: str = "failed", wait: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.wait = wait


class WorkerError(IpymemoryError):
    """The worker process does not answer."""
