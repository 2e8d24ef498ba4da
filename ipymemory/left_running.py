"""The cell that ran when its kernel died, read from the end of a transcript."""

from __future__ import annotations

import os
from pathlib import Path

from ipymemory.entry_lines import as_object, cell
from ipymemory.turns import Turn

_TAIL = 512 * 1024
"""Bytes from the end in which the cell that was running is looked for: eight longest lines."""


def last_running(path: Path) -> Turn | None:
    """Return the cell of the newest kernel that has no end: it ran when that kernel died.

    Of several it is the newest, as in a cell on a subshell. Reads only the end of the file,
    whatever its length. None when there is no such cell, or the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            found = file.read().split(b"\n")
    except OSError:
        return None
    over: set[str] = set()
    generation = 0
    for line in reversed(found):
        value = as_object(line)
        if not value:
            continue
        kernel = value.get("kernel")
        if isinstance(kernel, int):
            if kernel < generation:
                return None
            generation = kernel
        kind, id = value.get("type"), str(value.get("id"))
        if kind in ("end", "outputs"):
            over.add(id)
        elif kind == "cell" and value.get("origin") != "history" and id not in over:
            return cell(id, value)
    return None
