"""Every exception that ipymemory raises, one tree.

::

    IpymemoryError
    ├── PlaceError        a folder cannot be found, made or written
    ├── TranscriptError   a transcript cannot be read or appended to
    ├── FormatError       a file on disk is not what it should be
    │   └── NotebookError     a file that is no notebook
    ├── SettingError      a setting has a value it cannot have
    ├── HistoryError      a write cannot be logged, shown or undone
    │   └── ChangedSince      the file is no longer what the job left
    ├── ToolError         a tool call cannot be carried out; its text is the answer to the engine
    ├── EngineError       an engine cannot answer
    └── WorkerError       the worker process does not answer

The message of each is a sentence or two for the person at the keyboard: what happened, why,
and what to do next. Foreign exceptions are translated at the boundary where they are met.
"""

from __future__ import annotations


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


class SettingError(IpymemoryError):
    """A setting has a value it cannot have; the message names the allowed range."""


class HistoryError(IpymemoryError):
    """A write of an engine cannot be logged, shown or undone."""


class ChangedSince(HistoryError):
    """The file is no longer what the job left, so that undoing would lose somebody's work."""


class ToolError(IpymemoryError):
    """A tool call cannot be carried out; the text is the answer that the engine gets."""


class EngineError(IpymemoryError):
    """An engine cannot answer."""


class WorkerError(IpymemoryError):
    """The worker process does not answer."""
