"""The lines of a transcript: values to bytes and back, and what each kind tells (formats.md).

A line that would be too long loses the middle of its texts, never its place. What is missing in
a line or of the wrong type has its default: one that could be read is never lost for a field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast, get_args

from ipymemory.errors import TranscriptError
from ipymemory.turns import (
    Ask,
    BoundName,
    CellError,
    Happening,
    Origin,
    Output,
    OutputKind,
    Prose,
    Status,
    Turn,
)

MOST_LINE = 64 * 1024
"""Bytes of one line, its line feed included (formats.md)."""

_CUTS = (16_000, 8_000, 4_000, 1_000, 200, 40)
"""Characters kept of a text in a line that would be too long, tried one after another."""

_KEPT = ("type", "id", "time", "kernel", "status", "execution_count", "late")
"""What of a line is never cut: by these its lines find each other."""

_ID = 200
"""Characters an id may have, so that a line can always be cut to its bound."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode

_quoted = json.encoder.encode_basestring
"""A text as JSON has it, by the encoder's own means."""


def as_object(line: bytes) -> dict[str, Any] | None:
    """Return the object in the line, None for anything else. Every text in it can be encoded."""
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return _encodable(value) if b"\\ud" in line.lower() else value


def _encodable(value: Any) -> Any:
    """Return `value` without halves of surrogate pairs, which nobody can write as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    return value


def as_line(line: Mapping[str, Any]) -> bytes:
    """Return the line in UTF-8, at most `MOST_LINE` bytes; raises `TranscriptError`."""
    try:
        data = _encode(line).encode("utf-8", "backslashreplace") + b"\n"
        return data if len(data) <= MOST_LINE else _shortened(line)
    except (ValueError, TypeError, RecursionError) as error:
        raise TranscriptError(f"A line was not recorded, since it is no JSON: {error}.") from error


def cell_line(id: str, time: str, kernel: int, cell_id: str | None, source: str) -> bytes:
    """Return the ``cell`` line as `as_line` does, for less: a cell waits for it.

    Raises `TranscriptError`.
    """
    if cell_id is None or type(cell_id) is str:
        cell = "null" if cell_id is None else _quoted(cell_id)
        data = (
            f'{{"type":"cell","id":"{id}","time":"{time}","kernel":{kernel},"cell_id":{cell},'
            f'"source":{_quoted(source)}}}\n'
        ).encode("utf-8", "backslashreplace")
        if len(data) <= MOST_LINE:
            return data
    line = {"type": "cell", "id": id, "time": time, "kernel": kernel, "cell_id": cell_id}
    return as_line({**line, "source": source})


def end_line(id: str, count: int | None, status: str, duration: float | None, error: str) -> bytes:
    """Return the ``end`` line likewise, `duration` in milliseconds."""
    if type(count) is int and type(duration) is float and not error:
        return (
            f'{{"type":"end","id":"{id}","execution_count":{count},"status":"{status}",'
            f'"duration_ms":{duration!r}}}\n'
        ).encode("ascii")
    line = {"type": "end", "id": id, "execution_count": count, "status": status}
    return as_line({**line, "duration_ms": duration, **({"error": error} if error else {})})


def _shortened(line: Mapping[str, Any]) -> bytes:
    """Return `line` with its long texts and lists cut until it fits into `MOST_LINE`."""
    kept = {name: line[name] for name in _KEPT if name in line}
    kept |= {name: each[:_ID] for name, each in kept.items() if isinstance(each, str)}
    rest = {name: each for name, each in line.items() if name not in kept}
    for most in (*_CUTS, 0):
        cut = {**kept, **_cut(rest, most)} if most else kept
        data = _encode(cut).encode("utf-8", "backslashreplace") + b"\n"
        if len(data) <= MOST_LINE:
            break
    return data


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        left = len(value) - most
        if left <= 0:
            return value
        half = most // 2
        return f"{value[:half]}\n… [{left:,} characters left out] …\n{value[-half:]}"
    if isinstance(value, Mapping):
        return {str(key)[:most]: _cut(each, most) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [_cut(each, most) for each in list(value)[:most]]
    return value


def cell(id: str, value: Mapping[str, Any]) -> Turn:
    """Return the turn that a ``cell`` line begins."""
    history = value.get("origin") == "history"
    return Turn(
        id=id,
        time=_text(value, "time"),
        source=_text(value, "source"),
        kernel=_number(value, "kernel") or 1,
        cell_id=_text(value, "cell_id") or None,
        execution_count=_number(value, "execution_count"),
        status="unknown" if history else "running",
        origin=_origin(value, "typed"),
        complete=history,
    )


def markdown(id: str, value: Mapping[str, Any]) -> Prose:
    """Return what a ``markdown`` line tells."""
    return Prose(
        id=id,
        time=_text(value, "time"),
        source=_text(value, "source"),
        cell_id=_text(value, "cell_id") or None,
        origin=_origin(value, "file"),
        position=_number(value, "position"),
        kernel=_number(value, "kernel"),
    )


def event(id: str, value: Mapping[str, Any]) -> Happening:
    """Return what an ``event`` line tells."""
    details = {k: v for k, v in value.items() if k not in ("type", "id", "time", "name")}
    return Happening(id, _text(value, "time"), _text(value, "name"), details)


def ask(id: str, value: Mapping[str, Any]) -> Ask:
    """Return the question that an ``ask`` line tells."""
    return Ask(
        id=id,
        time=_text(value, "time"),
        question=_text(value, "question"),
        kernel=_number(value, "kernel") or 1,
        cell_id=_text(value, "cell_id") or None,
        execution_count=_number(value, "execution_count"),
    )


def answered(asked: Ask, value: Mapping[str, Any]) -> Ask:
    """Return `asked` as its ``ask_end`` line leaves it."""
    calls = _number(value, "calls") or 0
    return replace(asked, status=_status(value), calls=max(0, calls))


def ended(turn: Turn, value: Mapping[str, Any]) -> Turn:
    """Return `turn` as its ``end`` line leaves it."""
    duration = value.get("duration_ms")
    name = _text(value, "error")
    count = _number(value, "execution_count")
    return replace(
        turn,
        status=_status(value),
        duration_ms=float(duration) if isinstance(duration, int | float) else None,
        execution_count=count if count is not None else turn.execution_count,
        error=turn.error or (CellError(name) if name else None),
    )


def with_outputs(turn: Turn, value: Mapping[str, Any]) -> Turn:
    """Return `turn` with what an ``outputs`` line adds; late ones come after the others."""
    outputs = tuple(
        Output(
            kind=cast(OutputKind, each["kind"]),
            text=_text(each, "text"),
            mime=tuple(str(mime) for mime in _list(each, "mime")),
            truncated=_number(each, "truncated") or 0,
        )
        for each in _list(value, "outputs")
        if isinstance(each, dict) and each.get("kind") in get_args(OutputKind)
    )
    names = tuple(
        BoundName(
            name=_text(each, "name"),
            type=_text(each, "type"),
            shape=_text(each, "shape"),
            columns=tuple(str(column) for column in _list(each, "columns")),
        )
        for each in _list(value, "names")
        if isinstance(each, dict)
    )
    error = value.get("error")
    told = turn.error
    if isinstance(error, dict):
        told = CellError(_text(error, "name"), _text(error, "value"), _text(error, "traceback"))
    return replace(
        turn,
        outputs=turn.outputs + outputs,
        names=turn.names + names,
        error=told,
        complete=True,
    )


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _status(value: Mapping[str, Any]) -> Status:
    found = value.get("status")
    return cast(Status, found) if found in get_args(Status) else "unknown"


def _number(value: Mapping[str, Any], name: str) -> int | None:
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []


def _origin(value: Mapping[str, Any], otherwise: Origin) -> Origin:
    found = value.get("origin")
    return cast(Origin, found) if found in get_args(Origin) else otherwise
