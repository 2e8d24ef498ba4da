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
from typing import Any, Literal

from ipymemory.excerpts import Excerpt, clip, plain

MOST_ITEMS = 100
"""Pieces of output kept of a cell; the streams go on in their last piece, displays are counted."""

_FIRST_FRAMES, _LAST_FRAMES = 5, 35
"""Pieces of a traceback, about one a frame, that are kept: how it began and where the error is."""

_PIECE = 32 * 1024
"""Characters of a stream that are taken at once."""

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

    def mute(self) -> None:
        """Forget what came, and take nothing more: a private cell ran within this one."""
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


class KernelTap:
    """Sees every iopub message of `kernel` from `install` to `remove`.

    `find` gives the `Captured` of a request's message id, or None; `idle` is told when all of a
    request's output was sent; `secret` what was typed into ``getpass``. All are called in
    whichever thread sends, and must not raise.
    """

    def __init__(
        self,
        kernel: Any,
        find: Callable[[str], Captured | None],
        idle: Callable[[str], None],
        secret: Callable[[str], object] = lambda typed: None,
    ) -> None:
        self._kernel = kernel
        self._session = kernel.session
        socket = kernel.iopub_socket
        self._sockets = {id(socket), id(getattr(socket, "io_thread", None))}
        self._find = find
        self._idle = idle
        self._secret = secret
        self._pid = os.getpid()
        self._send: Any = None
        self._getpass: Any = None

    def install(self) -> None:
        """Put the tap into the session object, and an ear to the kernel's ``getpass``."""
        send = self._session.send
        getpass = self._kernel.getpass

        def sending(
            stream: Any, msg_or_type: Any, content: Any = None, parent: Any = None,
            *args: Any, **kwargs: Any,
        ) -> Any:  # fmt: skip
            stopped = _stopped(self._see, stream, msg_or_type, content, parent)
            sent = send(stream, msg_or_type, content, parent, *args, **kwargs)
            if stopped is not None:
                raise stopped
            return sent

        def asking(*args: Any, **kwargs: Any) -> Any:
            typed = getpass(*args, **kwargs)
            if isinstance(typed, str) and os.getpid() == self._pid:
                _stopped(self._secret, typed)
            return typed

        self._send, self._getpass = sending, asking
        self._session.send = sending
        self._kernel.getpass = asking

    def remove(self) -> None:
        """Take the tap out; one that somebody wrapped meanwhile stays and sees nothing."""
        if self._session.__dict__.get("send") is self._send:
            del self._session.send
        if self._kernel.__dict__.get("getpass") is self._getpass:
            del self._kernel.getpass
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
        if request is None:
            return
        if kind == "status":
            if content["execution_state"] == "idle":
                self._idle(request)
            return
        captured = self._find(request)
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


class TerminalTee:
    """Copies what is written to the standard streams into a `Captured`, between two calls.

    With a `shell`, a traceback is taken as it shows it, and is not among what the cell printed.
    """

    def __init__(self, shell: Any = None) -> None:
        self._shell = shell
        self._put: list[tuple[Any, str, Any, Any]] = []
        self._showing = False
        self._pid = os.getpid()

    def begin(self, captured: Captured) -> None:
        """Copy from now on."""
        self.end()
        for name in ("stdout", "stderr"):
            self._tee(name, captured)
        if self._shell is not None:
            self._take_tracebacks(captured)

    def end(self) -> None:
        """Copy no more. ``%unload_ext`` runs inside a teed cell, so unloading calls this too."""
        put, self._put = self._put, []
        for thing, name, before, ours in put:
            if thing.__dict__.get(name) is not ours:
                continue
            if before is None:
                delattr(thing, name)
            else:
                setattr(thing, name, before)

    def _take_tracebacks(self, captured: Captured) -> None:
        original = self._shell._showtraceback

        def show(kind: Any, value: Any, traceback: Any) -> Any:
            if os.getpid() != self._pid:
                return original(kind, value, traceback)
            stopped = _stopped(_take_traceback, captured, kind, traceback)
            self._showing = True
            try:
                return original(kind, value, traceback)
            finally:
                self._showing = False
                if stopped is not None:
                    raise stopped

        self._replace(self._shell, "_showtraceback", show)

    def _tee(self, name: str, captured: Captured) -> None:
        stream = getattr(sys, name)
        original = stream.write

        def write(text: str, *args: Any) -> Any:
            # The process first: a forked child writes on, and a lock may be held for ever there.
            if self._showing or os.getpid() != self._pid:
                return original(text, *args)
            stopped = _stopped(captured.stream, name, text)
            written = original(text, *args)
            if stopped is not None:
                raise stopped
            return written

        self._replace(stream, "write", write)

    def _replace(self, thing: Any, name: str, ours: Any) -> None:
        before = getattr(thing, "__dict__", {}).get(name)
        try:
            setattr(thing, name, ours)
        except AttributeError:
            # A stream that somebody made without room for it; it is not copied.
            return
        self._put.append((thing, name, before, ours))


def _stopped(step: Callable[..., object], *args: Any) -> KeyboardInterrupt | None:
    """Do `step`, whatever it raises; return the Ctrl-C that came meanwhile, the user's own."""
    try:
        step(*args)
    except KeyboardInterrupt as stopped:
        return stopped
    except BaseException:  # noqa: BLE001 - what is shown is shown, whatever we do
        return None
    return None


def _take_traceback(captured: Captured, kind: Any, traceback: Any) -> None:
    frames = [traceback] if isinstance(traceback, str) else [str(each) for each in traceback]
    name = kind.__name__
    last = plain(frames[-1]) if frames else ""
    captured.raised(name, last.partition(f"{name}: ")[2].strip(), frames)


def _display_id(content: Mapping[str, Any]) -> str | None:
    found = (content.get("transient") or {}).get("display_id")
    return found if isinstance(found, str) else None
