r"""Excerpts: what is kept of an output, as a person would have seen it on the screen.

A progress bar rewrites its line hundreds of times; what counts is the last state. `progress`
therefore plays a text into a small screen that knows carriage returns, backspaces and the codes
with which tqdm, rich and pip move the cursor and erase, and reads off what stands there in the
end. `Excerpt` does the same piece by piece while a stream runs, in a memory that its limit
bounds, so that 100 MB of printing is never held whole. Both keep the last 64 lines changeable;
what has scrolled above them stays as it is, as in a terminal.

A secret may arrive in two pieces of a stream. So pieces are joined here first, and `redaction`
masks what `Excerpt.text` returns, never a piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ipymemory.screen import CODE, Screen, compiled, moves
from ipymemory.turns import OutputKind

_BATCH = 32 * 1024
"""Characters that wait before they are played, so that `Excerpt.add` costs next to nothing."""

_PIECE_COST = 64
"""What a waiting piece counts besides its characters: about what a small string weighs in bytes."""

_EDGE = 200
"""Characters that a cut gives up to end at a line or a word, and so not amid a secret."""


def plain(text: str) -> str:
    """Return `text` without ANSI codes: colours, cursor movements, titles, links."""
    if "\x1b" not in text and "\x9b" not in text:
        return text
    return compiled(CODE).sub("", text)


def progress(text: str) -> str:
    r"""Return what a screen shows after `text`: ``\r``, ``\b`` and cursor codes carried out.

    Colours are dropped with the other codes. A line that was rewritten loses the blanks at its
    end, with which progress bars wipe what stood there before.
    """
    if not moves(text):
        return text
    done: list[str] = []
    screen = Screen(done.append)
    screen.feed(text)
    return "".join(done) + screen.rest()


def clip(text: str, limit: int) -> tuple[str, int]:
    """Return `text` in at most `limit` characters, and how many were left out of its middle.

    Head and tail are kept, with a line between them that tells the count. The cuts are at the
    end of a line or a word if one is near, so that no half of a secret survives the masking.
    """
    if len(text) <= limit:
        return text, 0
    return _joined(text[:limit], text[-limit:] if limit > 0 else "", len(text), limit)


class Excerpt:
    """Head and tail of a stream that comes in pieces: `clip` of the `progress` of them all.

    Memory is bounded by a small multiple of `limit` plus 32 KiB, whatever is added. Not for two
    threads at once. A line of more than four times `limit` loses its beginning to what has
    scrolled away, so that a carriage return comes back to a later point of it.
    """

    __slots__ = ("_head", "_limit", "_screen", "_size", "_tail", "_total", "_waiting")

    def __init__(self, limit: int) -> None:
        """Keep at most `limit` characters, and one at least."""
        self._limit = limit = max(1, limit)
        self._waiting: list[str] = []
        self._size = 0
        self._head = ""
        self._tail = ""
        self._total = 0
        self._screen = Screen(self._keep, widest=max(2 * limit, 4096))

    def add(self, text: str) -> None:
        """Add the next piece; costs about as much as appending to a list."""
        self._waiting.append(text)
        self._size += len(text) + _PIECE_COST
        if self._size > _BATCH:
            self._settle()

    def text(self) -> str:
        """Return head and tail of what the screen shows, in at most `limit` characters."""
        return self._excerpt()[0]

    @property
    def truncated(self) -> int:
        """Characters left out of the middle of `text`."""
        return self._excerpt()[1]

    def _excerpt(self) -> tuple[str, int]:
        self._settle()
        rest = self._screen.rest()
        total = self._total + len(rest)
        kept = self._head + self._tail + rest
        if total <= self._limit:
            return kept, 0
        return _joined(kept[: self._limit], kept[-self._limit :], total, self._limit)

    def _settle(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        text = "".join(waiting)
        for start in range(0, len(text), _BATCH):
            self._screen.feed(text[start : start + _BATCH])

    def _keep(self, text: str) -> None:
        self._total += len(text)
        room = self._limit - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if text:
            self._tail = (self._tail + text[-self._limit :])[-self._limit :]


def privacy_filter(kind: OutputKind, text: str, mime: str | Sequence[str], level: str) -> str:
    """Return what `level` of ``Privacy.outputs`` lets through of an output's `text`.

    `mime` is the type of `text`, or all the types in which the output came. ``all`` lets
    everything through; ``no-tables`` leaves the rows of tables out (data frames, arrays of rows,
    Markdown, HTML, lists of records) and keeps headers and shapes; ``shapes`` says only what it
    was and how large; ``none`` lets nothing through. Of an error, the last two keep the
    exception's name. A level that is none of the four counts as ``none``.
    """
    if level == "all" or not text:
        return text
    # Here, since most people keep everything and the patterns take milliseconds to compile.
    from ipymemory.tables import without_rows

    types = (mime,) if isinstance(mime, str) else tuple(mime)
    if level == "no-tables":
        return without_rows(text)[0]
    if kind == "error":
        return _error_name(text)
    if level != "shapes":
        return ""
    shapes = without_rows(text)[1]
    return "\n".join(f"[{shape}]" for shape in shapes) or _size(kind, text, types)


_ERROR_NAME = (
    r"(?m)^(?:[A-Za-z_]\w*\.)*"
    r"([A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit|Iteration|Group))\b"
)


def _error_name(text: str) -> str:
    names = re.findall(_ERROR_NAME, text)
    return str(names[-1]) if names else ""


def _size(kind: str, text: str, types: Sequence[str]) -> str:
    what = "text" if kind == "stream" or not types else types[0]
    lines = text.count("\n") + (not text.endswith("\n"))
    return f"[{what}: {lines:,} {'line' if lines == 1 else 'lines'}, {len(text):,} characters]"


def _joined(first: str, last: str, total: int, limit: int) -> tuple[str, int]:
    """Return head and tail out of the first and the last `limit` characters of a longer text."""
    mark = "\n[… {:,} characters left out …]\n"
    room = limit - len(mark.format(total))
    if room < 2:
        head = first[: max(0, limit)]
        return head, total - len(head)
    head, tail = first[: (room + 1) // 2], last[-(room // 2) :]
    if not first[len(head)].isspace():
        head = head[: _last_break(head)]
    if not last[-len(tail) - 1].isspace():
        tail = tail[_first_break(tail) :]
    left_out = total - len(head) - len(tail)
    return head + mark.format(left_out) + tail, left_out


def _last_break(text: str) -> int:
    """Return where `text` is best cut from its end: a line's end, a word's, else its own."""
    low = max(len(text) - _EDGE, len(text) // 2)
    at = max(text.rfind("\n", low), -1)
    if at < 0:
        at = max(text.rfind(" ", low), text.rfind("\t", low))
    return at if at >= 0 else len(text)


def _first_break(text: str) -> int:
    high = min(_EDGE, (len(text) + 1) // 2)
    at = text.find("\n", 0, high)
    if at < 0:
        found = [i for i in (text.find(" ", 0, high), text.find("\t", 0, high)) if i >= 0]
        at = min(found, default=-1)
    return at + 1
