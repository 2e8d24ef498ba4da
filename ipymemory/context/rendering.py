"""One entry of a transcript as the text that a model is shown.

What stands in a cell or an output is data: it lies between marks that it cannot close itself.
It was masked when it was recorded and is masked again, and `Privacy.sent_outputs` says what of
outputs goes at all.
"""

from __future__ import annotations

import re

from ipymemory.excerpts import privacy_filter
from ipymemory.redaction import mask
from ipymemory.turns import Entry, Prose, Turn

_CLOSING = re.compile(r"<(?=/?\s*(?:cell|output|error|markdown|notes|memory)\b)", re.IGNORECASE)


def text_of(entry: Entry, level: str) -> str:
    """Return the entry in words, nothing for one that says nothing yet.

    `level` is ``Privacy.sent_outputs``, or what is kept where that is less.
    """
    if isinstance(entry, Prose):
        return f"A markdown cell:\n{inside('markdown', entry.source)}" if entry.source else ""
    if not isinstance(entry, Turn) or not (entry.complete or entry.status == "unknown"):
        return ""
    parts = [f"Cell {entry.label} {_ended(entry)}:", inside("cell", entry.source)]
    for each in entry.outputs:
        told = privacy_filter(each.kind, each.text, each.mime, level)
        if told:
            parts.append(inside("output", told))
    if entry.error is not None:
        shown = entry.error.traceback or f"{entry.error.name}: {entry.error.value}"
        told = privacy_filter("error", shown, (), level)
        parts.append(inside("error", told or entry.error.name))
    names = ", ".join(
        f"{each.name}: {each.type}{f' {each.shape}' if each.shape else ''}" for each in entry.names
    )
    if names and level not in ("none",):
        parts.append(f"It bound {mask(names)}.")
    return "\n".join(parts)


def inside(mark: str, text: str) -> str:
    """Return `text`, masked, between marks that nothing in it can close."""
    return f"<{mark}>\n{_CLOSING.sub('‹', mask(text))}\n</{mark}>"


def _ended(turn: Turn) -> str:
    if turn.origin == "history":
        return "ran before recording began"
    took = f" in {turn.duration_ms / 1000:.1f} s" if turn.duration_ms is not None else ""
    return {
        "ok": f"ran{took}",
        "error": f"failed{took}",
        "interrupted": f"was interrupted{took}",
    }.get(turn.status, "was running when its kernel ended")
