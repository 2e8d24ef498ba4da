"""What the extension adds to a kernel's memory, and what a worker at rest holds."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import psutil

from tests.benchmarks.figures import Row
from tests.kernels import Kernel, eventually

_CELLS = 100
_MB = 1_000_000


def rows(runs: int) -> list[Row]:
    """Return megabytes: a kernel with the extension less one without, and the worker."""
    added, worker = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            sizes = []
            for name in ("ours", "theirs"):
                kernel = Kernel(Path(folder) / name)
                try:
                    if name == "ours":
                        kernel.run("%load_ext ipymemory")
                    for number in range(_CELLS):
                        kernel.run(f"x_{number} = {number}\nprint('value', x_{number})")
                    process = psutil.Process(kernel.pid)
                    if name == "ours":
                        eventually(lambda k=kernel: k.notes(), "the notes are there")
                        time.sleep(4.0)
                        worker.append(sum(w.memory_info().rss for w in kernel.workers()) / _MB)
                    sizes.append(process.memory_info().rss / _MB)
                finally:
                    kernel.close()
            added.append(sizes[0] - sizes[1])
    return [
        Row(f"kernel memory added, after {_CELLS} cells", "MB", tuple(added), "10 MB"),
        Row("worker at rest", "MB", tuple(worker), "40 MB"),
    ]
