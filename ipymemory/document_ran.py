"""The cells of a running notebook that there is something to tell of: as they ran, in its order.

One that did not run in this session is told as the file has it; one that is gone from a file that
was saved since is told no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from ipymemory.document_records import Cell, hash_of
from ipymemory.document_updates import source
from ipymemory.documents import fingerprint
from ipymemory.errors import IpymemoryError
from ipymemory.turns import Entry, Turn


def cells_of(
    notebook: Path | None, data: bytes, entries: Sequence[Entry]
) -> tuple[tuple[Turn, ...], tuple[Cell, ...]]:
    """Return the cells in the order of the notebook, as they ran here where they did.

    Beside each turn stands the cell as a record names it. `data` is the notebook as it was saved,
    nothing where it cannot be read.
    """
    ran: dict[str, Turn] = {}
    for each in entries:
        if isinstance(each, Turn) and each.status != "running" and fingerprint(each.source):
            key = each.cell_id or fingerprint(each.source)
            ran.pop(key, None)
            ran[key] = each
    saved: tuple[Turn, ...] = ()
    hashes: dict[str, str] = {}
    if data and notebook is not None:
        try:
            found = source(notebook, data)
        except IpymemoryError:
            pass
        else:
            saved = found.turns
            # Of the whole cell, where the turn has the middle of a long one left out.
            hashes = {each.label: each.hash for each in found.cells}
    order: list[tuple[Turn, str]] = []
    for each in saved:
        live = ran.pop(each.cell_id or "", None) or ran.pop(fingerprint(each.source), None)
        order.append((each, hashes.get(f"[{each.id}]", "")) if live is None else (live, ""))
    # Cells that the file does not have: new ones, unless it was saved after they ran.
    since = _modified(notebook) if saved else None
    order += [(each, "") for each in ran.values() if since is None or _time(each) >= since]
    cells = tuple(
        Cell(each.cell_id or "", hash or hash_of(each.source), f"[code {at}]")
        for at, (each, hash) in enumerate(order, 1)
    )
    turns = (replace(each, id=f"code {at}") for at, (each, _) in enumerate(order, 1))
    return tuple(turns), cells


def _modified(notebook: Path | None) -> float | None:
    try:
        # A turn's time is cut to milliseconds.
        return notebook.stat().st_mtime_ns // 1_000_000 / 1000 if notebook is not None else None
    except OSError:
        return None


def _time(turn: Turn) -> float:
    try:
        return datetime.fromisoformat(turn.time).timestamp()
    except ValueError:
        return 0.0
