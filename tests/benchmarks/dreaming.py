"""What dreams cost: the gates at every turn, and a dream over a thousand memories."""

from __future__ import annotations

from tests.benchmarks.figures import Row, fresh

_PLACES = """
import itertools, json, os, statistics, sys, time
from pathlib import Path
from ipymemory import places
from ipymemory.config import Settings
from ipymemory.dreaming import Dreaming
from ipymemory.dream_lock import NAME
from ipymemory.events import Bus
from ipymemory.jobs import dream
from ipymemory.memory_files import opened
from ipymemory.places import SessionFolder
from tests import dream_set

root = Path.cwd() / "work"
root.mkdir()
project, settings = places.project_of(root, places.home()), Settings()
folder = opened(project, settings)

def took(call):
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000
"""

_GATES = (
    _PLACES
    + """
dream_set.fill(folder.folder, root, 20)
# The sessions of two years, the last of them a little more than a day ago.
count, late = int(sys.argv[1]), time.time() - 90_000
for number in range(count):
    began = late - 3600 - 2 * 365 * 86_400 * (1 - number / count)
    session = project.sessions / f"{int(began * 1000):012x}{number:012x}"
    session.mkdir(parents=True)
    (session / "transcript.jsonl").write_text("{}")
    os.utime(session / "transcript.jsonl", (began, began))
# Each look comes ten minutes and more after the one before.
clock = itertools.count(0, 10_000).__next__
it = Dreaming(SessionFolder(project.sessions / "own"), project, Bus(), lambda: False, clock)
lock = folder.folder / NAME
lock.write_bytes(b"")
closed = [took(lambda: it.gate(settings)) for _ in range(51)]
assert "at the earliest" in it.last.reason
# A day ago, since when none of the sessions was touched: the gate waits for five.
os.utime(lock, (late, late))
first = took(lambda: it.gate(settings))
many = [took(lambda: it.gate(settings)) for _ in range(21)]
assert "5 more sessions" in it.last.reason, it.last

def bare():
    top = str(project.sessions)
    for name in os.listdir(top):
        os.stat(f"{top}/{name}/transcript.jsonl")

alone = [took(bare) for _ in range(21)]
print(json.dumps([statistics.median(each) for each in (closed, [first], many, alone)]))
"""
)

_DREAM = (
    _PLACES
    + """
dream_set.fill(folder.folder, root, int(sys.argv[1]))
folder.rebuild_index()
wall, cpu = time.perf_counter(), time.process_time()
outcome = dream.dream(dream.Context(project, settings))
spent = [time.perf_counter() - wall, time.process_time() - cpu]
assert outcome.status == "done" and outcome.counts["merged"] == 200, outcome
wall = time.perf_counter()
again = dream.dream(dream.Context(project, settings))
assert again.status == "done" and not again.run, again
print(json.dumps([*spent, time.perf_counter() - wall]))
"""
)


def rows(runs: int) -> list[Row]:
    """Return the times, each run in a fresh Python on files of its own."""
    closed, first, many, bare = zip(*(fresh(_GATES, 10_000) for _ in range(runs)), strict=True)
    wall, cpu, again = zip(*(fresh(_DREAM, 1000) for _ in range(runs)), strict=True)
    return [
        Row("gates of a dream, closed by time", "ms", closed, "1 ms"),
        Row("gates of a dream, with 10,000 sessions of two years", "ms", many, "20 ms"),
        Row("the same, the first time it looks at them", "ms", first, ""),
        Row("10,000 calls of stat alone", "ms", bare, "", "the machine's part of the first time"),
        Row("a dream over 1,000 memories, 300 of them to be tidied", "s", wall, "10 s"),
        Row("the same, CPU of its process", "s", cpu, ""),
        Row("a dream over 1,000 memories with nothing to tidy", "s", again, "10 s"),
    ]
