"""A notebook on disk, a session that records it, and the worker's end of that session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recorded import Clock, Recorded

from ipymemory import sessions
from ipymemory.commands.place import Place
from ipymemory.config import Settings
from ipymemory.events import Bus, Event
from ipymemory.history import History
from ipymemory.learning import Extracted
from ipymemory.memory_files import Memory, MemoryFolder, opened
from ipymemory.memory_files import proposals as waiting
from ipymemory.session import MemorySession
from ipymemory.turns import new_id, utc_now


def markdown(*texts: str) -> list[dict[str, Any]]:
    return [{"cell_type": "markdown", "metadata": {}, "source": each} for each in texts]


class Work:
    """A notebook on disk, a session that records it, and the worker's end of that session."""

    def __init__(
        self, home: Path, work: Path, cells: Sequence[dict[str, Any]] = (), name: str = "book"
    ) -> None:
        work.mkdir(parents=True, exist_ok=True)
        self.notebook = work / f"{name}.ipynb"
        self.save(*cells)
        self.recorded = Recorded(home, work, name)
        self.project, self.folder = self.recorded.project, self.recorded.folder
        self.clock = Clock()
        self.events: list[Event] = []
        self.settings = Settings.read({"Dream": {"enabled": False}})[0]
        self.session = self.begin()

    def begin(self) -> MemorySession:
        """Begin a worker, as each kernel does."""
        bus = Bus()
        bus.subscribe(self.events.append)
        session = MemorySession(self.folder, self.project, self.settings, bus, clock=self.clock)
        session.extracting.opened()
        session.observe()
        self.session = session
        return session

    def restart(self) -> None:
        """Begin another kernel, with another worker."""
        generation = self.recorded.generation + 1
        self.recorded.generation = generation
        sessions.update(self.folder, generation=generation)
        self.begin()

    def save(self, *cells: dict[str, Any]) -> None:
        content = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        self.notebook.write_text(json.dumps(content))

    def cell(self, source: str, cell_id: str | None = None, minute: int | None = None) -> str:
        """Run a cell, in that minute of an hour if one is named; return its id."""
        id = new_id()
        time = utc_now() if minute is None else f"2026-12-02T10:{minute:02}:00.000Z"
        line = {"id": id, "time": time, "kernel": self.recorded.generation}
        self.recorded.writer.append({"type": "cell", "cell_id": cell_id, "source": source, **line})
        self.recorded.end(id)
        return id

    def ask(self, question: str) -> str:
        id = new_id()
        line = {"id": id, "time": utc_now(), "kernel": self.recorded.generation}
        self.recorded.writer.append({"type": "ask", "question": question, **line})
        self.recorded.writer.append(
            {"type": "ask_end", "id": id, "time": utc_now(), "status": "ok", "calls": 0}
        )
        return id

    def page(self, cell_id: str, source: str, origin: str = "typed") -> None:
        """Have the page tell a markdown cell."""
        line = {"id": new_id(), "time": utc_now(), "kernel": self.recorded.generation}
        told = {"cell_id": cell_id, "source": source, "origin": origin}
        self.recorded.writer.append({"type": "markdown", **line, **told})

    def event(self, name: str, **details: Any) -> None:
        line = {"type": "event", "id": new_id(), "time": utc_now(), "name": name}
        self.recorded.writer.append({**line, **details})

    def extract(self) -> Extracted:
        self.session.observe()
        return asyncio.run(self.session.extracting.extract(self.settings))

    @property
    def memory(self) -> MemoryFolder:
        return opened(self.project, self.settings)

    @property
    def memories(self) -> list[Memory]:
        return [each for each in self.memory.scan() if each.current]

    @property
    def said(self) -> list[str]:
        """What the memories say, the oldest first."""
        return [each.description for each in reversed(self.memories)]

    @property
    def proposed(self) -> list[str]:
        found = waiting.waiting(self.project.proposals)
        return [each.draft.description for each in found if each.draft is not None]

    def undo(self, run: str | None = None) -> None:
        History(self.project.history).undo(run)
        self.memory.rebuild_index()

    def place(self) -> Place:
        return Place(self.settings, self.project.home, self.project, lambda _: None, "ipymemory ")
