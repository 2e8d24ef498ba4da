"""Rows of the table, medians, and a fresh Python to measure in."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Row:
    """One figure: the median, the lowest and highest run, and what it should not pass."""

    what: str
    unit: str
    runs: tuple[float, ...]
    limit: str
    note: str = ""

    @property
    def median(self) -> float:
        """The median of the runs."""
        return statistics.median(self.runs)

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {**asdict(self), "median": self.median}


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| what | median | lowest to highest | limit |", "| --- | --- | --- | --- |"]
    for row in rows:
        low, high = min(row.runs), max(row.runs)
        note = f" ({row.note})" if row.note else ""
        lines.append(
            f"| {row.what}{note} | {row.median:,.3g} {row.unit} | {low:,.3g} to {high:,.3g} "
            f"| {row.limit} |"
        )
    return "\n".join(lines)


def fresh(code: str, *arguments: object) -> Any:
    """Run `code` in a fresh Python with a home of its own; return the JSON it prints last."""
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **os.environ,
            "HOME": folder,
            "IPYTHONDIR": str(Path(folder) / "ipython"),
            "IPYMEMORY_HOME": str(Path(folder) / "home"),
            "PYTHONPATH": str(TOP),
        }
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env=env,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])
