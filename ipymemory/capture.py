"""Where a cell's output is picked up, without standing in its way.

In a kernel everything a client sees goes through ``kernel.session.send`` to the iopub socket, so
one tap there sees all of it: streams of subprocesses and threads, displays, tracebacks, what
comes late. A message names the request it belongs to. In a terminal there is no such place, and
the two standard streams are teed while the cell runs; what a subprocess writes goes straight to
the terminal and is missed. (Measured over 36 cases on three stacks.)

`Captured` takes what belongs to one cell and holds it in bounded memory.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ipymemory.excerpts import Excerpt, clip, plain

MOST_ITEMS = 100
"""Pieces of output kept of a cell; the streams go on in their last piece, displays are counted."""

_FRAMES = 40
"""Lines of a traceback that are kept, from its end, where the error is."""

_KINDS = {"display_data": "display", "execute_result": "result"}


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

    def __init__(self, chars: int) -> None:
        self.error: tuple[str, str, str] | None = None
        """Name, message and traceback of an error that was shown."""
        self._chars = chars
        self._items: list[_Item] = []
        self._streams: dict[str, _Item] = {}
        self._clear = False
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._items or self.error)

    def stream(self, name: str, text: str) -> None:
        """Take what was written to ``stdout`` or ``stderr``."""
        with self._lock:
            self._clear_if_asked()
            last = self._items[-1] if self._items else None
            item = self._streams.get(name)
            if item is None or (item is not last and len(self._items) < MOST_ITEMS):
                item = _Item("stream")
                item.excerpt = Excerpt(self._chars)
                self._items.append(item)
                self._streams[name] = item
            assert item.excerpt is not None
            item.excerpt.add(text)

    def bundle(self, kind: str, data: Mapping[str, Any], display_id: str | None) -> None:
        """Take a result or a display: its text, and of everything else the type and size."""
        text, mime = self._told(data)
        with self._lock:
            self._clear_if_asked()
            if len(self._items) >= MOST_ITEMS:
                return
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
        text = plain("\n".join(traceback[-_FRAMES:]))
        with self._lock:
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
        found = []
        for item in items:
            if item.excerpt is not None:
                text, left_out = item.excerpt.text(), item.excerpt.truncated
            else:
                text, left_out = clip(plain(item.text), self._chars)
            if text or item.mime:
                found.append(
                    {
                        "kind": item.kind,
                        "text": text,
                        "mime": list(item.mime),
                        "truncated": left_out,
                    }
                )
        return found

    def _clear_if_asked(self) -> None:
        if self._clear:
            self._clear = False
            self._items, self._streams = [], {}

    def _told(self, data: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        """Return a bundle's text, not longer than it is going to be clipped, and its types."""
        text = data.get("text/plain") or data.get("text/markdown") or ""
        if not isinstance(text, str):
            text = ""
        if not text:
            sizes = (f"{kind}, {len(each):,} characters" for kind, each in data.items()
                     if isinstance(each, str))  # fmt: skip
            text = "; ".join(sizes)
        most = 16 * self._chars
        if len(text) > most:
            text = text[: most // 2] + text[-most // 2 :]
        return text, tuple(str(kind)[:100] for kind in list(data)[:10])


class KernelTap:
    """Sees every iopub message of `kernel` from `install` to `remove`.

    `find` gives the `Captured` of a request's message id, or None; `idle` is told when all of a
    request's output was sent. Both are called in whichever thread sends, and must not raise.
    """

    def __init__(
        self, kernel: Any, find: Callable[[str], Captured | None], idle: Callable[[str], None]
    ) -> None:
        self._session = kernel.session
        socket = kernel.iopub_socket
        self._sockets = {id(socket), id(getattr(socket, "io_thread", None))}
        self._find = find
        self._idle = idle
        self._pid = os.getpid()
        self._send: Any = None

    def install(self) -> None:
        """Put the tap into the session object."""
        original = self._session.send

        def send(stream: Any, kind: Any, content: Any = None, parent: Any = None,
                 *args: Any, **kwargs: Any) -> Any:  # fmt: skip
            # The message goes out whatever we do.
            with suppress(BaseException):
                self._see(stream, kind, content, parent)
            return original(stream, kind, content, parent, *args, **kwargs)

        self._send = send
        self._session.send = send

    def remove(self) -> None:
        """Take the tap out; one that somebody wrapped meanwhile stays and sees nothing."""
        if self._session.__dict__.get("send") is self._send:
            del self._session.send
        self._pid = -1

    def _see(self, stream: Any, kind: Any, content: Any, parent: Any) -> None:
        # The process first: a forked child inherits the tap and must touch nothing.
        if os.getpid() != self._pid or id(stream) not in self._sockets:
            return
        if type(kind) is dict:
            message = kind
            kind, content = message["header"]["msg_type"], message["content"]
            parent = message.get("parent_header")
        parent = parent or {}
        request = (parent.get("header") or parent).get("msg_id")
        captured = self._find(request) if request is not None else None
        if captured is None:
            return
        if kind == "stream":
            captured.stream(content["name"], content["text"])
        elif kind in _KINDS:
            captured.bundle(_KINDS[kind], content["data"], _display_id(content))
        elif kind == "update_display_data":
            captured.update(content["data"], _display_id(content))
        elif kind == "error":
            captured.raised(content["ename"], content["evalue"], content["traceback"])
        elif kind == "clear_output":
            captured.clear(bool(content.get("wait")))
        elif kind == "status" and content["execution_state"] == "idle":
            self._idle(request)


class TerminalTee:
    """Copies what is written to the standard streams into a `Captured`, between two calls."""

    def __init__(self) -> None:
        self._put: list[tuple[Any, Any, Any]] = []

    def begin(self, captured: Captured) -> None:
        """Copy from now on."""
        self.end()
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            original = stream.write
            before = getattr(stream, "__dict__", {}).get("write")

            def write(text: str, *args: Any, _to: Any = original, _name: str = name) -> Any:
                # What is printed is printed.
                with suppress(BaseException):
                    captured.stream(_name, text)
                return _to(text, *args)

            try:
                stream.write = write
            except AttributeError:
                # A stream that somebody made without room for it; it is not copied.
                continue
            self._put.append((stream, before, write))

    def end(self) -> None:
        """Copy no more. ``%unload_ext`` runs inside a teed cell, so unloading calls this too."""
        put, self._put = self._put, []
        for stream, before, write in put:
            if stream.__dict__.get("write") is not write:
                continue
            if before is None:
                del stream.write
            else:
                stream.write = before


def _display_id(content: Mapping[str, Any]) -> str | None:
    found = (content.get("transient") or {}).get("display_id")
    return found if isinstance(found, str) else None
