"""Turns and messages: frozen values that every other room speaks in.

A `Turn` is one executed cell with what it printed, displayed, returned or raised. `Prose` is a
markdown cell, `Ask` a question to the assistant, `Happening` something that befell the session
(loaded, restarted, packages imported). Together they are the entries of a transcript, in the
order in which they began.
`Message`, `ToolCall` and `ToolResult` are what an engine and the agent loop exchange.

Nothing here reads a clock on its own, a disk or a screen, but for `new_id` and `utc_now`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

OutputKind = Literal["stream", "result", "display", "error"]
Status = Literal["running", "ok", "error", "interrupted", "unknown"]
Origin = Literal["typed", "file", "history"]


@dataclass(frozen=True, slots=True)
class Output:
    """One piece of a cell's output, masked and bounded before it got here."""

    kind: OutputKind
    text: str = ""
    mime: tuple[str, ...] = ()
    truncated: int = 0
    """Characters left out of the middle of `text`."""


@dataclass(frozen=True, slots=True)
class CellError:
    """What a cell raised: the exception's class name, its message, its traceback without ANSI."""

    name: str
    value: str = ""
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class BoundName:
    """A name that a cell bound: its type, a short shape such as ``1,000 x 12``, its columns."""

    name: str
    type: str
    shape: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One executed cell.

    `status` is ``running`` while no end is on record and ``unknown`` when the kernel that ran it
    is gone. `complete` tells whether its outputs are on record too. `label` is how a person
    knows the cell: ``[7]`` by its execution count.
    """

    id: str
    time: str
    source: str
    kernel: int = 1
    cell_id: str | None = None
    execution_count: int | None = None
    status: Status = "running"
    duration_ms: float | None = None
    error: CellError | None = None
    outputs: tuple[Output, ...] = ()
    names: tuple[BoundName, ...] = ()
    origin: Origin = "typed"
    complete: bool = False

    @property
    def label(self) -> str:
        """``[7]``, or ``[*]`` while nobody knows the count."""
        return f"[{self.execution_count}]" if self.execution_count is not None else "[*]"


@dataclass(frozen=True, slots=True)
class Prose:
    """A markdown cell, as it stood when it was seen. `position` is its place among the cells.

    One that the page told has the generation of its `kernel`, and no text once it is gone.
    """

    id: str
    time: str
    source: str
    cell_id: str | None = None
    origin: Origin = "file"
    position: int | None = None
    kernel: int | None = None


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that befell the session: ``loaded``, ``restarted``, ``packages``, ``mode`` …"""

    id: str
    time: str
    name: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to the assistant: the person's own words, masked.

    `status` is ``running`` while no end is on record and ``unknown`` when the kernel that asked is
    gone. What was answered is the worker's to keep (`context.records`).
    """

    id: str
    time: str
    question: str
    kernel: int = 1
    cell_id: str | None = None
    execution_count: int | None = None
    status: Status = "running"
    calls: int = 0
    """Tools that the assistant used for it."""


Entry = Turn | Prose | Happening | Ask


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that an engine asks for."""

    id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a `ToolCall`; `refused` when permission was denied or the tool failed."""

    id: str
    text: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with an engine."""

    role: Literal["user", "assistant"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    blocks: tuple[Mapping[str, Any], ...] = ()
    """What its provider wrote, thinking included: valid only while all before it is unchanged."""


def tokens(text: str, factor: float = 1.0) -> int:
    """Return the estimate of tokens in `text`: UTF-8 bytes / 3, rounded up, times `factor`.

    One meter everywhere; `factor` is the correction that the last real usage showed.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    return -int(-size * factor // 3)


_last_id = 0
_id_lock = threading.Lock()
_HIGH = 1 << 64
"""Above the digits of a time and a counter, so that `hex` writes all sixteen of them."""


def _begin_ids() -> None:
    """Begin the ids of this process, also of a child that was forked, with digits of its own."""
    global _own_digits, _id_lock
    # A thread that is gone may hold the parent's.
    _id_lock = threading.Lock()
    _own_digits = os.urandom(4).hex()


_own_digits = ""
_begin_ids()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_ids)


def new_id() -> str:
    """Return a fresh id, 24 hex digits: milliseconds, a counter within them, the process's random.

    Ids sort by time, and those of one process strictly in the order in which they were asked
    for, also when the clock is set back.
    """
    global _last_id
    value = time.time_ns() // 1_000_000 << 16
    with _id_lock:
        if value <= _last_id:
            value = _last_id + 1
        _last_id = value
    return hex(_HIGH | value)[3:] + _own_digits


_second = (-1, "")
"""The last whole second that was asked for, and how it is written: most cells share one."""


def utc_now() -> str:
    """Return the present as ISO 8601 in UTC with milliseconds: ``2026-12-02T05:10:11.123Z``."""
    global _second
    second, rest = divmod(time.time_ns(), 1_000_000_000)
    known, text = _second
    if second != known:
        text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        _second = (second, text)
    return f"{text}.{rest // 1_000_000:03}Z"
