"""What a living document is to be written from, and what whoever writes it answers.

A writer is a function from the one to the other, so that those who read and write the files know
no model, and a model knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ipymemory.document_records import Cell, Record
from ipymemory.documents import Document
from ipymemory.extractive import Chapter
from ipymemory.turns import Turn


@dataclass(frozen=True, slots=True)
class Asked:
    """A document that is to be written: its text, and all that is true of its cells now.

    `file` is what its record calls the file that it stands in, `cells` are labelled, `record` is
    the one of its last update. A file of its own (`prose`) rests on several notebooks.
    """

    head: Document
    text: str
    file: str
    chapters: tuple[Chapter, ...]
    cells: tuple[Cell, ...]
    record: Record | None
    root: Path
    """Where the paths that its cells name begin."""
    most: int
    """Bytes that it may come to."""
    prose: bool = False
    stale: bool = True
    """Whether its cells have changed since; else only its text may be without a model's hand."""

    def label(self, chapter: Chapter, turn: Turn) -> str:
        """Return what a cell is called."""
        return f"[{turn.id}] of {chapter.file}" if self.prose else f"[{turn.id}]"


@dataclass(frozen=True, slots=True)
class Answer:
    """The whole new text, None where the built-in engine is to write, and what there is to say."""

    text: str | None
    notes: tuple[str, ...] = ()
    tried: bool = True
    """Whether anybody was asked at all; not for a text that may not be sent."""


Write = Callable[[Asked], Answer]
"""Writes one document. Never raises `IpymemoryError`."""
