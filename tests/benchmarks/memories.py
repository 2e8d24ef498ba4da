"""What memories cost: a scan of 1,000, a save among them, recall over 10,000."""

from __future__ import annotations

from tests.benchmarks.figures import Row, fresh

_FILES = """
import json, random, statistics, sys, time
from pathlib import Path
from ipymemory import places
from ipymemory.history import History
from ipymemory.memory_files import KINDS, Draft, MemoryFolder, Source, drafts

chance = random.Random(7)
syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
vocabulary = ["".join(chance.choices(syllables, k=3)) for _ in range(6000)]

def words(count):
    return " ".join(chance.choices(vocabulary, k=count))

home = places.home()
root = Path.cwd() / "work"
root.mkdir()
project = places.project_of(root, home)
project.memory.mkdir(parents=True)
count = int(sys.argv[1])
for number in range(count):
    source = Source("0193", "clean.ipynb", ("0193aa",), words(8), "markdown")
    body = f"{words(25)}.\\n\\n**Why:** {words(10)}.\\n**How to apply:** {words(10)}."
    draft = Draft(chance.choice(KINDS), f"m {number}", f"About {words(8)}", body, source)
    time_of = f"2026-11-{1 + number % 28:02}T05:10:{number % 60:02}.123Z"
    (project.memory / f"m{number}.md").write_text(drafts.file_text(f"m{number}", draft, time_of))
(project.memory / "dates.md").write_text(drafts.file_text("dates", Draft(
    "project", "Dates", "Dates in this source are day-first, from the data team",
    "\\u65e5\\u671f come from load_csv."), "2026-11-30T00:00:00.000Z"))

def took(call):
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000
"""

_SCAN = (
    _FILES
    + """
folder = MemoryFolder(project.memory, project)
cold = took(folder.scan)
again = statistics.median(took(folder.scan) for _ in range(9))
assert len(folder.manifest().splitlines()) == 201
folder.rebuild_index()
history = History(project.history)
saves = []
for number in range(31):
    run = history.begin("extraction", "extractive", "benchmark", (), "s")
    text = f"Fact {number}: {words(8)}"
    saves.append(took(lambda: folder.save(Draft("project", text, text, words(20)), run)))
    run.close()
assert folder.drift() == []
print(json.dumps([cold, again, statistics.median(saves)]))
"""
)

_RECALL = (
    _FILES
    + """
from ipymemory.recall import Recall
recall = Recall(project, MemoryFolder(project.memory, project))
build = took(lambda: recall.find("how are dates parsed")) / 1000
questions = ["how are dates parsed", "loadCsv", "\\u65e5\\u671f", "why is the sky blue"]
questions += [f"what about {words(6)} and {words(3)}" for _ in range(40)]
# Misspelt words are looked for among all that there are.
questions += [" ".join(f"{each[:-2]}x" for each in words(6).split()) for _ in range(20)]
times = sorted(took(lambda: recall.find(each)) for each in questions)
assert [each.memory.name for each in recall.find("day first dates")] == ["dates"]
other = Recall(project, MemoryFolder(project.memory, project))
first = took(lambda: other.find("how are dates parsed"))
print(json.dumps([build, statistics.median(times), times[int(len(times) * 0.95)], first]))
"""
)


def rows(runs: int) -> list[Row]:
    """Return the times, each run in a fresh Python on files of its own."""
    cold, again, save = zip(*(fresh(_SCAN, 1000) for _ in range(runs)), strict=True)
    build, query, slow, first = zip(*(fresh(_RECALL, 10_000) for _ in range(runs)), strict=True)
    return [
        Row("scan of 1,000 memories, cold", "ms", cold, "150 ms"),
        Row("scan of 1,000 memories, unchanged", "ms", again, "20 ms"),
        Row("save among 1,000, with lock, history and index", "ms", save, "20 ms"),
        Row("recall over 10,000, index built from nothing", "s", build, "2 s"),
        Row("recall over 10,000, a question", "ms", query, "20 ms"),
        Row("the same, the slowest in twenty", "ms", slow, "20 ms"),
        Row("the first question of another process", "ms", first, "", "looks at every file once"),
    ]
