"""What recording costs a cell, over a shell that only appends one JSON line a cell.

Short blocks take turns in one process: bare, one that appends a line with source and status to a
file, and ours. A block counts by its median cell, without its first quarter, in which caches are
still another's; it is compared with the blocks beside it, and a process counts by the median of
those differences. So a machine that is busy for seconds shifts both sides, and one that stops for
a moment loses a block. What the cell pays is the time of the main thread, and that is what is
compared. The outputs are masked in a thread beside it; where cells follow each other without a
pause it wants the interpreter too, and the last row of each size says what the wall clock then
shows.
"""

from __future__ import annotations

import statistics
from typing import Any

from tests.benchmarks.figures import Row, fresh

_RECORD = """
import json, os, sys, time
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
kind, cells, blocks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
line = "value = sum(range(10))  # " + "ordinary words of a comment " * 1
source = {
    "x": "x = 1",
    "2k": "\\n".join(f"name_{i} = {i}  # an ordinary comment here" for i in range(24)) +
          "\\nprint('row of output ' * 70)",
    "60k": "\\n".join(f"name_{i} = {i}  # an ordinary comment here" for i in range(700)) +
           "\\nprint('row of output ' * 2200)",
}[kind]
real = sys.stdout
sys.stdout = open(os.devnull, "w")
file = os.open("baseline.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
began = {}
def pre(info):
    began["at"] = time.perf_counter()
def post(result):
    told = {"source": result.info.raw_cell, "ok": result.success,
            "duration": time.perf_counter() - began["at"], "time": time.time()}
    os.write(file, json.dumps(told).encode() + b"\\n")
events = shell.events.callbacks
hooks = {name: list(events[name]) for name in ("pre_run_cell", "post_run_cell")}
shell.extension_manager.load_extension("ipymemory")
recording = {name: [each for each in events[name] if each not in hooks[name]] for name in hooks}
assert all(len(each) == 1 for each in recording.values())
appending = {"pre_run_cell": [pre], "post_run_cell": [post]}
def block(added):
    for name in hooks:
        events[name][:] = hooks[name] + added.get(name, [])
    # The thread that writes outputs is done with the last block, and the cells of this one begin.
    time.sleep(0.1)
    times, walls = [], []
    for _ in range(cells):
        start, wall = time.thread_time(), time.perf_counter()
        shell.run_cell(source, store_history=True)
        times.append(time.thread_time() - start)
        walls.append(time.perf_counter() - wall)
    return [sorted(each[cells // 4:])[cells * 3 // 8] * 1e6 for each in (times, walls)]
ways = {"bare": {}, "append": appending, "ours": recording}
for each in ways.values():
    block(each)
found = {name: [] for name in ways}
for _ in range(blocks):
    for name, added in ways.items():
        found[name].append(block(added))
for name in hooks:
    events[name][:] = hooks[name] + recording[name]
shell.extension_manager.unload_extension("ipymemory")
sys.stdout = real
print(json.dumps(found))
"""

_LONG = """
import json, os, sys, time
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
real = sys.stdout
sys.stdout = open(os.devnull, "w")
shell.extension_manager.load_extension("ipymemory")
times = []
for number in range(10_000):
    start = time.perf_counter()
    shell.run_cell("x = 1", store_history=True)
    times.append(time.perf_counter() - start)
shell.extension_manager.unload_extension("ipymemory")
sys.stdout = real
early, late = sorted(times[10:510]), sorted(times[-500:])
print(json.dumps(late[250] / early[250]))
"""


def rows(runs: int) -> list[Row]:
    """Return, for three sizes of cells, what ours costs beyond a shell that appends a line."""
    found = []
    for kind, cells, blocks, limit, what in (
        ("x", 60, 25, "the line's own cost + 10 µs", "`x = 1`"),
        ("2k", 40, 25, "the line's own cost + 100 µs", "2 KB of source and output"),
        ("60k", 12, 10, "the line's own cost + 2 ms", "60 KB of source and output"),
    ):
        told = [fresh(_RECORD, kind, cells, blocks) for _ in range(runs)]
        for clock, where in ((0, ""), (1, ", cells without a pause, wall clock")):
            own = statistics.median(_over(each, "append", "bare", clock) for each in told)
            more = tuple(_over(each, "ours", "append", clock) for each in told)
            bare = statistics.median(block[clock] for each in told for block in each["bare"])
            note = f"the line {own:,.0f} µs, the bare cell {bare:,.0f} µs"
            name = f"recording {what}, beyond one line{where}"
            found.append(Row(name, "µs", more, "" if clock else limit, note))
    ratios = tuple(fresh(_LONG) for _ in range(max(1, runs // 3)))
    found.append(Row("the 10,000th cell over the 10th", "times", ratios, "as fast"))
    return found


def _over(told: dict[str, Any], one: str, other: str, clock: int) -> float:
    """Return by how much the blocks of `one` passed those of `other` beside them, in µs."""
    pairs = zip(told[one], told[other], strict=True)
    return statistics.median(a[clock] - b[clock] for a, b in pairs)
