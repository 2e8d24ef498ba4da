"""What has changed since a living document was written, for whoever writes it anew.

The record of a document names its cells in their order, and a label such as ``[code 3]`` counts
them. So this room can tell which cell changed, which is new or gone, and which is called by
another number now, without a word of what they held then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ipymemory.document_records import Cell, Record

MOST = 60
"""Lines that are told; a document of which more has changed is looked at as a whole."""

NEVER = "It has not been written from these cells yet: look at all of it."


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed: a line each, and the labels of the cells that are new or changed."""

    lines: tuple[str, ...] = ()
    labels: frozenset[str] = frozenset()


def changes(
    record: Record | None,
    file: str,
    cells: Sequence[Cell],
    names: Mapping[str, Sequence[str]],
) -> Changes:
    """Return what has changed since `record` in `cells`, labelled, of the document in `file`.

    `names`: what each cell binds, by its label.
    """
    if record is None:
        return Changes((NEVER,), frozenset(each.label for each in cells))
    found: list[str] = []
    labels: set[str] = set()
    if record.file and record.file != file:
        found.append(f"the file has another name now: {file}")
    then = _labelled(record)
    was = _matched(then, cells)
    for at, cell in enumerate(cells):
        old = was.get(at)
        if old is None:
            found.append(f"{cell.label} is new{_binds(names.get(cell.label, ()))}")
        elif then[old].hash != cell.hash:
            called = "" if then[old].label == cell.label else f", and was {then[old].label}"
            found.append(f"{cell.label} has changed{called}{_binds(names.get(cell.label, ()))}")
        else:
            continue
        labels.add(cell.label)
    kept = set(was.values())
    found += [
        f"what was {cell.label} is gone, and with it what only that cell said"
        for at, cell in enumerate(then)
        if at not in kept
    ]
    moved = [
        f"{then[old].label} is called {cells[at].label} now"
        for at, old in sorted(was.items())
        if then[old].label != cells[at].label and cells[at].label not in labels
    ]
    found += moved
    if not found:
        found.append("no cell has changed; what they gave may have")
    more = len(found) - MOST
    lines = (*found[:MOST], *([f"and {more:,} more changes"] if more > 0 else ()))
    return Changes(lines, frozenset(labels))


def _labelled(record: Record) -> list[Cell]:
    """Return the cells that a record names, called as the document called them then."""
    counts: dict[str, int] = {}
    found = []
    for key, hash in record.rests_on:
        file, _, id = key.rpartition("#")
        counts[file] = counts.get(file, 0) + 1
        where = f" of {_flat(file)}" if file else ""
        found.append(Cell(id, hash, f"[code {counts[file]}]{where}", file))
    return found


def _matched(then: Sequence[Cell], now: Sequence[Cell]) -> dict[int, int]:
    """Return the place then of each cell of now, by its place: the same cell, else the same text.

    Of several with the same text the first that is left.
    """
    found: dict[int, int] = {}
    by_key = {each.key: at for at, each in enumerate(then) if each.id}
    for at, cell in enumerate(now):
        if cell.id and cell.key in by_key:
            found[at] = by_key.pop(cell.key)
    left = [at for at in range(len(then)) if at not in set(found.values())]
    by_text: dict[tuple[str, str], list[int]] = {}
    for at in reversed(left):
        by_text.setdefault((then[at].file, then[at].hash), []).append(at)
    for at, cell in enumerate(now):
        if at not in found and (waiting := by_text.get((cell.file, cell.hash))):
            found[at] = waiting.pop()
    return found


def _binds(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"; it binds {shown}{' and more' if len(names) > 8 else ''}" if shown else ""


def _flat(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text[:80])
