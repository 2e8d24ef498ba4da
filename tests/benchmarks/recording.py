"""What recording costs a cell, over a shell that only appends one JSON line a cell.

Short blocks take turns in one process: bare, one that appends a line with source and status to a
file, and ours; the median cell of each block counts. What the cell pays is the time of the main
thread, and that is what is compared. The outputs are masked in a thread beside it; where cells
follow each other without a pause it wants the interpreter too, and the last row of each size says
what the wall clock then shows.
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
def bare(on): pass
def append(on):
    change = shell.events.register if on else shell.events.unregister
    change("pre_run_cell", pre); change("post_run_cell", post)
def ours(on):
    getattr(shell.extension_manager, "load_extension" if on else "unload_extension")("ipymemory")
def block(turn_on):
    turn_on(True)
    shell.run_cell("warm = 1", store_history=True)
    shell.run_cell(source, store_history=True)
    time.sleep(0.3)
    times, walls = [], []
    for _ in range(cells):
        start, wall = time.thread_time(), time.perf_counter()
        shell.run_cell(source, store_history=True)
        times.append(time.thread_time() - start)
        walls.append(time.perf_counter() - wall)
    turn_on(False)
    return sorted(times)[len(times) // 2] * 1e6, sorted(walls)[len(walls) // 2] * 1e6
found = {"bare": [], "append": [], "ours": []}
for _ in range(blocks):
    for name, turn_on in (("bare", bare), ("append", append), ("ours", ours)):
        found[name].append(block(turn_on))
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
    for kind, cells, limit, what in (
        ("x", 200, "the line's own cost + 10 µs", "`x = 1`"),
        ("2k", 100, "the line's own cost + 100 µs", "2 KB of source and output"),
        ("60k", 15, "the line's own cost + 2 ms", "60 KB of source and output"),
    ):
        told: dict[str, Any] = fresh(_RECORD, kind, cells, 2 * runs)
        for clock, where in ((0, ""), (1, ", cells without a pause, wall clock")):
            bare, line, ours = (
                [block[clock] for block in told[name]] for name in ("bare", "append", "ours")
            )
            own = statistics.median(line) - statistics.median(bare)
            more = tuple(o - a for o, a in zip(ours, line, strict=True))
            note = f"the line {own:,.0f} µs, the bare cell {statistics.median(bare):,.0f} µs"
            name = f"recording {what}, beyond one line{where}"
            found.append(Row(name, "µs", more, "" if clock else limit, note))
    ratios = tuple(fresh(_LONG) for _ in range(max(1, runs // 3)))
    found.append(Row("the 10,000th cell over the 10th", "times", ratios, "as fast"))
    return found
