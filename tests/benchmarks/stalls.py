"""How long the main thread is held up while a job runs, less the same without the extension.

A cell spins and notes every gap between two looks at the clock; the longest gap of each
millisecond is one sample. Another kernel, without the extension, is the control.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.benchmarks.figures import Row
from tests.kernels import Kernel

_SPIN = """
import time
def spin(seconds):
    clock = time.perf_counter
    end = clock() + seconds
    gaps, last, bucket, worst = [], clock(), clock(), 0.0
    while last < end:
        now = clock()
        worst = max(worst, now - last)
        last = now
        if now - bucket >= 0.001:
            gaps.append(worst)
            bucket, worst = now, 0.0
    gaps.sort()
    return gaps[int(len(gaps) * 0.999)] * 1000
"""
_BUSY = """
import threading
def outputs():
    for i in range(200):
        print('accuracy: 0.9 of an ordinary line of output', i)
"""


def rows(runs: int) -> list[Row]:
    """Return p99.9 of the gaps in milliseconds, ours less the control's, run by run."""
    more, control = [], []
    with tempfile.TemporaryDirectory() as folder:
        ours = Kernel(Path(folder) / "ours")
        theirs = Kernel(Path(folder) / "theirs")
        try:
            ours.run("%load_ext ipymemory")
            for kernel in (ours, theirs):
                kernel.run(_SPIN)
                kernel.run(_BUSY)
            for number in range(runs):
                told = []
                for kernel in (ours, theirs):
                    # Work for the recorder's thread and the worker, begun just before.
                    for i in range(30):
                        kernel.run(f"run_{number}_{i} = {i}\noutputs()")
                    # %memory notes --now has the worker run a job whatever the gates say.
                    kernel.run("%memory notes --now" if kernel is ours else "0")
                    kernel.run("outputs()")
                    told.append(float(kernel.run("spin(3)").text))
                more.append(told[0] - told[1])
                control.append(told[1])
        finally:
            ours.close()
            theirs.close()
    note = f"control {sorted(control)[len(control) // 2]:.2g} ms"
    return [Row("main thread held up while a job runs, p99.9", "ms", tuple(more), "5 ms", note)]
