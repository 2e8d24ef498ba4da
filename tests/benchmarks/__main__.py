"""Prints the table of costs, then the same as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence

from tests.benchmarks import (
    documents,
    dreaming,
    loading,
    memories,
    memory,
    model,
    notes,
    recalling,
    recording,
    stalls,
)
from tests.benchmarks.figures import Row, table

PARTS = {
    "loading": loading,
    "recording": recording,
    "stalls": stalls,
    "memory": memory,
    "notes": notes,
    "memories": memories,
    "dreaming": dreaming,
    "recalling": recalling,
    "documents": documents,
    "model": model,
}


def noise() -> Row:
    """Return how much one fixed piece of work varies on this machine, just now."""

    def work() -> float:
        start = time.perf_counter()
        sum(range(2_000_000))
        return time.perf_counter() - start

    times = [work() for _ in range(21)]
    middle = statistics.median(times)
    ratios = tuple(each / middle for each in times)
    return Row("noise: one fixed piece of work over its median", "times", ratios, "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is named, or everything."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="what to measure")
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args(arguments)
    rows = [noise()]
    for name in chosen.parts or PARTS:
        sys.stderr.write(f"measuring {name} …\n")
        rows += PARTS[name].rows(chosen.runs)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python "
    print(f"{machine}{platform.python_version()}, medians of {chosen.runs} runs\n")
    print(table(rows))
    print()
    print(json.dumps({"rows": [row.as_dict() for row in rows]}))


if __name__ == "__main__":
    main()
