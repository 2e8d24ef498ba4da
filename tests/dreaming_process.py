"""A process that puts files in place as one, for a test that kills it; or saves a memory."""

from __future__ import annotations

import sys
from pathlib import Path

from ipymemory import dream_journal, places
from ipymemory.config import Settings
from ipymemory.dream_journal import Change
from ipymemory.history import History
from ipymemory.memory_files import Draft, Source, opened

COUNT = 12


def before(n: int) -> bytes:
    return f"memory {n}\n".encode() * 20


def after(n: int) -> bytes:
    return f"memory {n}, tidied\n".encode() * 20


def groups(folder: Path) -> list[tuple[Change, ...]]:
    """Return pairs: one file is written anew, then the other goes."""
    return [
        (
            Change(folder / f"{n}.md", before(n), after(n)),
            Change(folder / f"{n}-again.md", before(n), None),
        )
        for n in range(COUNT)
    ]


def main(what: str, root: str) -> None:
    if what == "save":
        settings = Settings()
        project = places.project_of(Path(root), places.home(""))
        folder = opened(project, settings)
        run = History(project.history).begin("remember", "person", "a test", (), "")
        for n in range(20):
            text = f"Meanwhile somebody said thing number {n}."
            folder.save(Draft("project", text[:-1], "", text, Source(origin="person")), run)
            sys.stdout.write("saved\n")
            sys.stdout.flush()
        return
    top = Path(root)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    run = History(top / "history").begin("dream", "extractive", "a test", (), "")
    dream_journal.place(top / "dream", run, groups(top / "memory"))


if __name__ == "__main__":
    main(*sys.argv[1:])
