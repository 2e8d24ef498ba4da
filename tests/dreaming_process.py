"""A process that dreams or puts files in place as one, to be killed; or saves memories."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from ipymemory import dream_journal, places
from ipymemory.config import Settings
from ipymemory.dream_journal import Change
from ipymemory.dream_lock import NAME, Busy, DreamLock, HeldLock
from ipymemory.events import Bus, Event
from ipymemory.history import History
from ipymemory.jobs import dream
from ipymemory.jobs.dream import Context
from ipymemory.memory_files import Draft, Source, opened

COUNT = 12
WELL, FAILED, KILLED = range(3)


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


def contest(top: Path, rounds: int = 100, many: int = 64) -> None:
    """Have `many` children try for one lock at the same moment; say of each round who got it.

    A third of the winners end well, a third fail, a third are killed; then another child takes
    the place of the killed one.
    """
    forked = multiprocessing.get_context("fork")
    barrier, how = forked.Barrier(many + 1, timeout=60), forked.RawValue("i")
    won, calm = forked.RawArray("i", many), forked.RawArray("i", many)

    def child(me: int, late: bool = False) -> Any:
        process = forked.Process(target=_contend, args=(top, me, late, barrier, how, won, calm))
        process.start()
        return process

    children = [child(n) for n in range(many)]
    file, before = top / "memory" / NAME, 0
    for n in range(rounds):
        how.value = n % 3
        barrier.wait()
        barrier.wait()
        winner = won[:].index(1)
        told = {"winners": sum(won), "winner": children[winner].pid, "body": file.read_text()}
        if how.value == KILLED:
            while not calm[winner]:
                time.sleep(0.001)
            os.kill(children[winner].pid, signal.SIGKILL)
            children[winner].join()
            # Whoever comes next puts back what a dead one left.
            held = DreamLock(top / "memory", top / "dream").take()
            assert isinstance(held, HeldLock) and held.found_dead
            held.roll_back()
            children[winner] = child(winner, late=True)
        barrier.wait()
        barrier.wait()
        after = file.stat().st_mtime_ns
        say(json.dumps({**told, "after": "old" if after == before else "new"}))
        before = after
    for each in children:
        each.kill()
        each.join()


def _contend(top: Path, me: int, late: bool, barrier: Any, how: Any, won: Any, calm: Any) -> None:
    while True:
        held: HeldLock | Busy | None = None
        if not late:
            barrier.wait()
            held = DreamLock(top / "memory", top / "dream").take()
            won[me], calm[me] = isinstance(held, HeldLock), 0
            barrier.wait()
        late = False
        if isinstance(held, HeldLock) and how.value == KILLED:
            # Not within the barrier, whose own lock would stay.
            calm[me] = 1
            signal.pause()
        barrier.wait()
        if isinstance(held, HeldLock):
            (held.done if how.value == WELL else held.roll_back)()
        barrier.wait()


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
    if what == "contest":
        contest(Path(root))
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
