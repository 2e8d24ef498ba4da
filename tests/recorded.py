"""A session as a kernel records it, without a kernel: for tests of what reads transcripts."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ipymemory import places, processes, sessions
from ipymemory.places import Project, SessionFolder
from ipymemory.sessions import Identity
from ipymemory.transcript import TranscriptWriter
from ipymemory.turns import new_id, utc_now


class Clock:
    """A clock that stands still until `now` is set; seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Recorded:
    """One claimed session in `work` and the lines that its kernel appends."""

    def __init__(self, home: Path, work: Path, name: str = "book") -> None:
        work.mkdir(parents=True, exist_ok=True)
        self.project: Project = places.project_of(work, home)
        identity = Identity(work / f"{name}.ipynb", None, f"kernel-{name}.json", False)
        now = datetime.now(UTC)
        claim = sessions.claim(self.project, identity, now, processes.own())
        self.folder: SessionFolder = claim.folder
        self.generation = claim.generation
        self.writer = TranscriptWriter(claim.folder, claim.record.id)
        self.count = 0

    def begin(self, source: str) -> str:
        """Append the line of a cell that begins; return its id."""
        id = new_id()
        line = {"type": "cell", "id": id, "time": utc_now(), "kernel": self.generation}
        self.writer.append({**line, "cell_id": None, "source": source, "origin": "typed"})
        return id

    def end(self, id: str) -> None:
        """Append the lines of a cell that ended without a word."""
        self.count += 1
        line = {"type": "end", "id": id, "execution_count": self.count, "status": "ok"}
        self.writer.append({**line, "duration_ms": 1.0, "error": None})
        self.outputs(id)

    def outputs(self, id: str, *texts: str) -> None:
        """Append what a cell printed."""
        found = [{"kind": "stream", "text": text, "mime": [], "truncated": 0} for text in texts]
        self.writer.append(
            {"type": "outputs", "id": id, "outputs": found, "error": None, "names": []}
        )

    def cell(self, source: str) -> str:
        """Append a whole cell; return its id."""
        id = self.begin(source)
        self.end(id)
        return id

    def notes(self) -> str:
        """Return the notes as they stand, nothing when there are none."""
        path = self.folder.notes
        return path.read_text("utf-8") if path.exists() else ""


def until(true: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
    """Return what `true` returns once it is something; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"{what} within {seconds:g} s"
        time.sleep(0.01)
    return found
