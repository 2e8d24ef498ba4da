"""One entry of a transcript as the text that a model is shown.

What stands in a cell or an output is data: it lies between marks that it cannot close itself.
It was masked when it was recorded and is masked again, and `Privacy.sent_outputs` says what of
outputs goes at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipymemory.excerpts import privacy_filter
from ipymemory.redaction import mask
from ipymemory.turns import Entry, Prose, Turn

_CLOSING = re.compile(
    r"<(?=/?\s*(?:cell|output|error|markdown|notes|memory|memories)\b)", re.IGNORECASE
)


def text_of(entry: Entry, level: str) -> str:
    """Return the entry in words, nothing for one that is no cell and no prose.

    `level` is ``Privacy.sent_outputs``, or what is kept where that is less.
    """
    if isinstance(entry, Prose):
        return f"A markdown cell:\n{inside('markdown', entry.source)}" if entry.source else ""
    if not isinstance(entry, Turn):
        return ""
    head = (f"Cell {entry.label} {_ended(entry)}:", inside("cell", entry.source))
    return "\n".join((*head, *_outcome(entry, level)))


def later(turn: Turn, level: str) -> str:
    """Return what came of a cell after it was told of, and is all that `turn` holds."""
    came = list(_outcome(turn, level))
    return "\n".join((f"Cell {turn.label} later showed this too:", *came)) if came else ""


def _outcome(turn: Turn, level: str) -> Iterator[str]:
    for each in turn.outputs:
        if told := privacy_filter(each.kind, each.text, each.mime, level):
            yield inside("output", told)
    if turn.error is not None:
        shown = turn.error.traceback or f"{turn.error.name}: {turn.error.value}"
        yield inside("error", privacy_filter("error", shown, (), level) or turn.error.name)
    names = ", ".join(
        f"{each.name}: {each.type}{f' {each.shape}' if each.shape else ''}" for each in turn.names
    )
    if names and level != "none":
        yield f"It bound {mask(names)}."


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
