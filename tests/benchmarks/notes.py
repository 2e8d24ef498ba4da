"""How long the extractive engine takes over a transcript of 1,000 cells, and over one more turn."""

from __future__ import annotations

from tests.benchmarks.figures import Row, fresh

_NOTES = """
import asyncio, json, time
from datetime import UTC, datetime
from pathlib import Path
from ipymemory import places, processes, sessions
from ipymemory.config import Settings
from ipymemory.session import MemorySession
from ipymemory.transcript import TranscriptWriter
from ipymemory.turns import new_id, utc_now

home = places.home()
notebook = Path.cwd() / "long.ipynb"
notebook.write_text("{}")
project = places.project_of(notebook, home)
who = sessions.Identity(notebook, None, "kernel.json", False)
claim = sessions.claim(project, who, datetime.now(UTC), processes.own())
writer = TranscriptWriter(claim.folder, claim.record.id)

def cell(number):
    id = new_id()
    source = [
        f"df_{number} = pd.read_csv(DATA / 'part-{number}.csv')\\n"
        f"df_{number} = df_{number}.dropna()",
        f"def step_{number}(frame, limit={number}):\\n    \\"\\"\\"Clean part {number}.\\"\\"\\"\\n"
        f"    # TODO: check the limit\\n    return frame[frame.a > limit]",
        f"model_{number} = fit(df_{number - number % 4}, rate=0.0{number})\\n"
        f"print('loss', 0.{number})",
        f"df_{number - 3}.to_parquet('out-{number}.parquet')\\n1 / (number := 0)",
    ][number % 4]
    failed = number % 4 == 3
    writer.append({"type": "cell", "id": id, "time": utc_now(), "kernel": 1,
                   "cell_id": f"c{number}", "source": source})
    writer.append({"type": "end", "id": id, "execution_count": number + 1,
                   "status": "error" if failed else "ok", "duration_ms": 12.5,
                   **({"error": "ZeroDivisionError"} if failed else {})})
    error = {"name": "ZeroDivisionError", "value": "division by zero",
             "traceback": "Cell In[1], line 2\\n----> 2 1 / (number := 0)"} if failed else None
    writer.append({"type": "outputs", "id": id, "error": error,
                   "outputs": [{"kind": "stream", "mime": [], "truncated": 0,
                                "text": f"loss: 0.{number}\\naccuracy: 0.9{number}\\n"}],
                   "names": [{"name": f"df_{number}", "type": "DataFrame", "shape": "1,000 x 12",
                              "columns": ["a", "b", "c"]}]})

for number in range(1000):
    cell(number)
session = MemorySession(claim.folder, project, Settings())

engine = session.model.complete
working = []
async def timed(request):
    start = time.perf_counter()
    try:
        return await engine(request)
    finally:
        working[-1] += time.perf_counter() - start
session.model.complete = timed

async def update():
    working.append(0.0)
    start = time.perf_counter()
    session.observe()
    read = time.perf_counter() - start
    outcome = await session.update_notes()
    assert outcome.status == "done" and outcome.wrote, outcome
    working[-1] += read
    return time.perf_counter() - start

async def measure():
    whole = await update()
    more = []
    for number in range(1000, 1011):
        cell(number)
        more.append(await update() * 1000)
    middle = len(more) // 2
    engines = sorted(each * 1000 for each in working[1:])
    return working[0], engines[middle], whole, sorted(more)[middle]

print(json.dumps(asyncio.run(measure())))
"""


def rows(runs: int) -> list[Row]:
    """Return the times of reading and working out, and of the whole update with its writes."""
    found = [fresh(_NOTES) for _ in range(runs)]
    new, more, whole, whole_more = zip(*found, strict=True)
    return [
        Row("notes of 1,000 cells, from nothing", "s", new, "1 s"),
        Row("notes of one more turn", "ms", more, "20 ms"),
        Row("the same, written with its history, from nothing", "s", whole, ""),
        Row("the same, written with its history, one more turn", "ms", whole_more, ""),
    ]
