"""A process that dreams or puts files in place as one, to be killed; or saves memories."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from ipymemory import dream_journal, places
from ipymemory.config import Settings
from ipymemory.dream_journal import Change
from ipymemory.events import Bus, Event
from ipymemory.history import History
from ipymemory.jobs import dream
from ipymemory.jobs.dream import Context
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


def dream_until_killed(root: Path, folder: str = "own") -> None:
    """Dream; after the third group say so, and wait for the end."""
    settings = Settings.read({"Memory": {"folder": folder}})[0]
    project = places.project_of(root, places.home(""))
    bus, told = Bus(), []

    def wait(event: Event) -> None:
        told.append(event.kind)
        if told.count("dream_file") == 5:
            say("placed")
            time.sleep(60)

    bus.subscribe(wait)
    dream.dream(Context(project, settings, bus, confirmed=True))


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main(what: str, root: str, *more: str) -> None:
    if what == "save":
        settings = Settings()
        project = places.project_of(Path(root), places.home(""))
        folder = opened(project, settings)
        run = History(project.history).begin("remember", "person", "a test", (), "")
        for n in range(20):
            text = f"Meanwhile somebody said thing number {n}."
            folder.save(Draft("project", text[:-1], "", text, Source(origin="person")), run)
            say("saved")
        return
    if what == "dream":
        dream_until_killed(Path(root), *more)
        return
    top = Path(root)
    say("ready")
    run = History(top / "history").begin("dream", "extractive", "a test", (), "")
    dream_journal.place(top / "dream", run, groups(top / "memory"))


if __name__ == "__main__":
    main(*sys.argv[1:])
