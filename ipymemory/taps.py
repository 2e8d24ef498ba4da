"""Where a cell's output is picked up, without standing in its way.

In a kernel everything a client sees goes through ``kernel.session.send`` to the iopub socket, so
one tap there sees all of it: streams of subprocesses and threads, displays, tracebacks, what
comes late. A message names the request it belongs to. In a terminal there is no such place, and
the two standard streams are teed while the cell runs; what a subprocess writes goes straight to
the terminal and is missed. (Measured over 36 cases on three stacks.)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ipymemory.capture import Captured
from ipymemory.excerpts import plain

_KINDS = {"display_data": "display", "execute_result": "result"}


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
    What is put in place for that stays there from cell to cell and lets all pass in between.
    """

    def __init__(self, shell: Any = None) -> None:
        self._shell = shell
        self._put: list[_Put] = []
        self._streams: tuple[Any, Any] | None = None
        """Those that are copied, as far as they can be."""
        self._showing = False
        self._pid = os.getpid()

    def begin(self, captured: Captured) -> None:
        """Copy from now on."""
        streams = self._streams
        out, errors = _standard()
        if streams is not None and streams[0] is out and streams[1] is errors:
            for each in self._put:
                if not each.stands():
                    break
                each.captured = captured
            else:
                return
        self._put_anew(captured)

    def end(self) -> None:
        """Copy no more, until `begin`."""
        for each in self._put:
            each.captured = None

    def remove(self) -> None:
        """Take out what is in place; what somebody wrapped meanwhile stays and copies nothing."""
        put, self._put, self._streams = self._put, [], None
        for each in reversed(put):
            each.take_out()

    def _put_anew(self, captured: Captured) -> None:
        """Put in place what somebody else took out, or put theirs over."""
        self.remove()
        self._streams = out, errors = _standard()
        self._tee(out, "stdout", captured)
        if errors is not out:
            self._tee(errors, "stderr", captured)
        if self._shell is not None:
            self._take_tracebacks(captured)

    def _take_tracebacks(self, captured: Captured) -> None:
        original = self._shell._showtraceback
        put = _Put(self._shell, "_showtraceback", captured)

        def show(kind: Any, value: Any, traceback: Any) -> Any:
            if put.captured is None or os.getpid() != self._pid:
                return original(kind, value, traceback)
            stopped = _stopped(_take_traceback, put.captured, kind, traceback)
            self._showing = True
            try:
                return original(kind, value, traceback)
            finally:
                self._showing = False
                if stopped is not None:
                    raise stopped

        put.in_place(show, self._put)

    def _tee(self, stream: Any, name: str, captured: Captured) -> None:
        try:
            original = stream.write
        except Exception:  # noqa: BLE001 - whatever stands there; it is not copied
            return
        put = _Put(stream, "write", captured)

        def write(text: str, *args: Any) -> Any:
            taking = put.captured
            # The process first: a forked child writes on, and a lock may be held for ever there.
            if taking is None or self._showing or os.getpid() != self._pid:
                return original(text, *args)
            stopped = _stopped(taking.stream, name, text)
            written = original(text, *args)
            if stopped is not None:
                raise stopped
            return written

        put.in_place(write, self._put)


class _Put:
    """What was put in place of an attribute of `thing`, and what it copies to at the moment."""

    __slots__ = ("before", "captured", "name", "original", "ours", "thing")

    def __init__(self, thing: Any, name: str, captured: Captured | None) -> None:
        self.thing = thing
        self.name = name
        self.captured = captured
        self.before = _own(thing).get(name)
        self.original = getattr(thing, name)
        self.ours: Any = None

    def stands(self) -> bool:
        """Return whether what was put there is there, wherever `thing` holds it."""
        return self.ours is not None and _got(self.thing, self.name) is self.ours

    def in_place(self, ours: Any, put: list[_Put]) -> None:
        """Put `ours` there and this among `put`, if `thing` has room for it."""
        self.ours = ours
        try:
            setattr(self.thing, self.name, ours)
        except Exception:  # noqa: BLE001 - user code may raise what it likes
            # A stream that somebody made without room for it; it is not copied.
            return
        put.append(self)

    def take_out(self) -> None:
        """Put back what was there, unless somebody put theirs over it; copy nothing more."""
        self.captured = None
        if not self.stands():
            return
        # What stands in the way stays, and copies nothing.
        with suppress(Exception):
            if self.before is None:
                with suppress(Exception):
                    delattr(self.thing, self.name)
                if not self.stands() and _got(self.thing, self.name) is not None:
                    return
                # It had a slot, or the stand-in does not pass on what is to be taken out.
            setattr(self.thing, self.name, self.before or self.original)


def _standard() -> tuple[Any, Any]:
    """Return the two standard streams, None for one that user code took away."""
    return getattr(sys, "stdout", None), getattr(sys, "stderr", None)


def _own(thing: Any) -> Mapping[str, Any]:
    try:
        found = thing.__dict__
    except Exception:  # noqa: BLE001 - a stream of user code's
        return {}
    return found if isinstance(found, Mapping) else {}


def _got(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name)
    except Exception:  # noqa: BLE001 - as above
        return None


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
