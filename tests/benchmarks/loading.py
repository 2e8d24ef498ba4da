"""What ``%load_ext ipymemory`` costs in a process that has all that a kernel has."""

from __future__ import annotations

from tests.benchmarks.figures import Row, fresh

_LOAD = """
import json, socket, sys, time
import ipykernel.ipkernel, ipykernel.kernelapp
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
calls = []
real = socket.socket.connect
socket.socket.connect = lambda *a: (calls.append(str(a[1])), real(*a))[1]
shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
before = set(sys.modules)
cpu = time.process_time()
shell.run_line_magic("load_ext", "ipymemory")
cpu = time.process_time() - cpu
heavy = [m for m in ("anthropic", "ipywidgets", "nbformat", "pydantic") if m in sys.modules]
shell.run_line_magic("unload_ext", "ipymemory")
print(json.dumps({"cpu": cpu, "heavy": heavy, "connects": calls,
                  "new": len(set(sys.modules) - before)}))
"""


def rows(runs: int) -> list[Row]:
    """Return the CPU seconds of loading in `runs` fresh processes."""
    fresh(_LOAD)  # the first one compiles
    found = [fresh(_LOAD) for _ in range(runs)]
    heavy = sorted({name for each in found for name in each["heavy"]})
    connects = sum(len(each["connects"]) for each in found)
    note = f"{found[0]['new']} new modules, {connects} connections, heavy: {heavy or 'none'}"
    return [Row("`%load_ext`, CPU", "s", tuple(e["cpu"] for e in found), "0.05 s", note)]
