"""A cell on its way to a turn: what is held of it meanwhile, and how it ended."""

from __future__ import annotations

from time import perf_counter
from types import FunctionType, NoneType
from typing import Any

from ipymemory.capture import Captured
from ipymemory.names import Snapshot
from ipymemory.turns import new_id


class Turning:
    """A cell from its beginning to its last output."""

    __slots__ = (
        "captured",
        "count",
        "ended",
        "id",
        "key",
        "late_until",
        "names",
        "nested",
        "prompt",
        "source",
        "started",
        "typed",
    )  # fmt: skip

    def __init__(self, key: str | None, typed: str, chars: int) -> None:
        self.id = new_id()
        self.key = key
        self.typed = typed
        """The source as typed, for telling a nested cell from this one; dropped at the end."""
        self.source = ""
        self.captured = Captured(chars)
        self.names: list[Snapshot] = []
        self.nested = 0
        """Cells that this one runs and that are not over."""
        self.ended = False
        self.late_until = 0.0
        self.count: int | None = None
        self.prompt: int | None = None
        self.started = perf_counter()

    def lasted(self) -> float:
        """Return the milliseconds since it began, also where user code took the clock away."""
        return round((perf_counter() - self.started) * 1000, 3)


def outcome(result: Any, captured: Captured) -> tuple[str, str]:
    """Return how a cell ended, and the name of what it raised."""
    if result is None:
        return "unknown", ""
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        # A display that failed is shown as an error though the cell counts as a success.
        return ("error", captured.error[0]) if captured.error else ("ok", "")
    # Of the class itself: its metaclass may answer with code of its own.
    name = str(type.__dict__["__name__"].__get__(type(error)))
    if captured.error is None:
        captured.raised(name, _message(error), [])
    return ("interrupted" if name in ("KeyboardInterrupt", "CancelledError") else "error"), name


def _message(error: BaseException) -> str:
    """Return the message of an error if telling it runs no code of the user's."""
    if isinstance(type(error).__str__, FunctionType):
        return ""
    plain = all(type(each) in (str, int, float, NoneType) for each in error.args)
    return str(error) if plain or isinstance(error, SyntaxError | BaseExceptionGroup) else ""
