"""The output of one cell as it comes, in bounded memory; who brings it is told in `taps`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Literal

from ipymemory.excerpts import Excerpt, clip, plain

MOST_ITEMS = 100
"""Pieces of output kept of a cell; the streams go on in their last piece, displays are counted."""

_FIRST_FRAMES, _LAST_FRAMES = 5, 35
"""Pieces of a traceback, about one a frame, that are kept: how it began and where the error is."""

_PIECE = 32 * 1024
"""Characters of a stream that are taken at once."""


class _Item:
    """One piece: a stream that grows, or a bundle that an update may replace."""

    __slots__ = ("display_id", "excerpt", "kind", "mime", "text")

    def __init__(self, kind: str, text: str = "", mime: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.text = text
        self.mime = mime
        self.excerpt: Excerpt | None = None
        self.display_id: str | None = None


class Captured:
    """The output of one cell, as it comes. Any thread may add to it."""

    __slots__ = (
        "_chars", "_clear", "_items", "_left_out", "_lock", "_muted", "_streams", "aside", "error",
    )  # fmt: skip

    def __init__(self, chars: int) -> None:
        self.error: tuple[str, str, str] | None = None
        """Name, message and traceback of an error that was shown."""
        self._chars = chars
        self._items: list[_Item] = []
        self._streams: dict[str, _Item] = {}
        self._clear = False
        self._muted = False
        self.aside: Literal["", "streams", "displays"] = ""
        """What of that which comes just now is ours, shown by a magic, and not to be taken."""
        self._left_out = 0
        # Reentrant: a collection of garbage in here may run a `__del__` that prints.
        self._lock = threading.RLock()

    def __bool__(self) -> bool:
        return bool(self._items or self.error)

    @property
    def muted(self) -> bool:
        """Whether nothing is taken: what would come is a private cell's."""
        return self._muted

    def mute(self) -> None:
        """Forget what came, and take nothing more: it is a private cell's, run or shown here."""
        with self._lock:
            self._muted = True
            self._items, self._streams, self.error = [], {}, None

    def stream(self, name: str, text: str) -> None:
        """Take what was written to ``stdout`` or ``stderr``."""
        with self._lock:
            if self._muted or self.aside == "streams":
                return
            self._clear_if_asked()
            last = self._items[-1] if self._items else None
            item = self._streams.get(name)
            if item is None or (item is not last and len(self._items) < MOST_ITEMS):
                item = _Item("stream")
                item.excerpt = Excerpt(self._chars)
                self._items.append(item)
                self._streams[name] = item
            assert item.excerpt is not None
            # In pieces: joining many megabytes would hold them once more.
            for start in range(0, len(text), _PIECE):
                item.excerpt.add(text[start : start + _PIECE])

    def bundle(self, kind: str, data: Mapping[str, Any], display_id: str | None) -> None:
        """Take a result or a display: its text, and of everything else the type and size."""
        text, mime = self._told(data)
        with self._lock:
            if self._muted or self.aside == "displays":
                return
            self._clear_if_asked()
            if len(self._items) >= MOST_ITEMS:
                self._left_out += 1
                if kind != "result":
                    return
                # What the cell came to goes before one of its many displays.
                displays = [at for at, each in enumerate(self._items) if each.excerpt is None]
                del self._items[displays[-1] if displays else 0]
            item = _Item(kind, text, mime)
            item.display_id = display_id
            self._items.append(item)

    def update(self, data: Mapping[str, Any], display_id: str | None) -> None:
        """Put new content into the display of this cell that has the id, if there is one."""
        text, mime = self._told(data)
        with self._lock:
            for item in self._items:
                if display_id is not None and item.display_id == display_id:
                    item.text, item.mime = text, mime

    def raised(self, name: str, value: str, traceback: list[str]) -> None:
        """Take an error as it was shown."""
        if len(traceback) > _FIRST_FRAMES + _LAST_FRAMES:
            traceback = [*traceback[:_FIRST_FRAMES], "...", *traceback[-_LAST_FRAMES:]]
        text = plain("\n".join(traceback))
        with self._lock:
            if self._muted:
                return
            self.error = (name, clip(value, self._chars)[0], clip(text, self._chars)[0])

    def clear(self, wait: bool) -> None:
        """Drop what came so far, as ``clear_output`` does; with `wait` when the next comes."""
        with self._lock:
            self._clear = True
            if not wait:
                self._clear_if_asked()

    def pieces(self) -> list[dict[str, Any]]:
        """Return what was captured, unmasked: kind, text, mime, truncated."""
        with self._lock:
            items, self._items, self._streams = self._items, [], {}
            left_out, self._left_out = self._left_out, 0
        found: list[dict[str, Any]] = []
        for item in items:
            if item.excerpt is not None:
                text, cut = item.excerpt.text(), item.excerpt.truncated
            else:
                text, cut = clip(plain(item.text), self._chars)
            if text or item.mime:
                found.append(
                    {"kind": item.kind, "text": text, "mime": list(item.mime), "truncated": cut}
                )
        if left_out:
            text = f"[… {left_out:,} more outputs left out …]"
            found.append({"kind": "display", "text": text, "mime": [], "truncated": 0})
        return found

    def _clear_if_asked(self) -> None:
        if self._clear:
            self._clear = False
            self._items, self._streams = [], {}

    def _told(self, data: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        """Return a bundle's text, not longer than it is going to be clipped, and its types."""
        text = data.get("text/plain") or ""
        if not isinstance(text, str):
            text = ""
        # What IPython's own display objects say of themselves is nothing.
        if not text or text.startswith("<IPython.core.display."):
            told = data.get("text/markdown") or data.get("text/latex")
            text = told if isinstance(told, str) else text
        if not text:
            sizes = (f"{kind}, {len(each):,} characters" for kind, each in data.items()
                     if isinstance(each, str))  # fmt: skip
            text = "; ".join(sizes)
        most = 16 * self._chars
        if len(text) > most:
            text = text[: most // 2] + text[-most // 2 :]
        return text, tuple(str(kind)[:100] for kind in list(data)[:10])
