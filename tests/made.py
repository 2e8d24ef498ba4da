"""Made-up turns for tests: short to write, and shaped as recorded ones are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from ipymemory.turns import BoundName, CellError, Entry, Happening, Origin, Output, Prose, Turn
from ipymemory.turns import Status as TurnStatus

BEGIN = datetime(2026, 11, 25, 9, 0, tzinfo=UTC)


def at(seconds: float) -> str:
    """Return a moment of the session as a transcript writes it."""
    moment = BEGIN + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def traceback(name: str, value: str, line: str, count: int, number: int = 1) -> CellError:
    """Return an error with a traceback as IPython prints it."""
    text = (
        f"{'-' * 75}\n{name}          Traceback (most recent call last)\n"
        f"Cell In[{count}], line {number}\n----> {number} {line}\n\n{name}: {value}"
    )
    return CellError(name, value, text)


class Session:
    """Builds entries one after another, thirty seconds apart."""

    def __init__(self, origin: Origin = "typed") -> None:
        self.entries: list[Entry] = []
        self.kernel = 1
        self.count = 0
        self.seconds = 0.0
        self.origin: Origin = origin

    def cell(
        self,
        source: str,
        *,
        out: str = "",
        value: str = "",
        image: bool = False,
        error: tuple[str, str, str] | CellError | None = None,
        names: Sequence[BoundName] = (),
        cell_id: str | None = None,
        count: int | None = None,
        status: TurnStatus | None = None,
        pause: float = 30.0,
    ) -> Turn:
        """Add a cell; `error` is name, message and the line that raised."""
        self.count = count if count is not None else self.count + 1
        if isinstance(error, tuple):
            error = traceback(*error, self.count)
        outputs = [Output("stream", out)] if out else []
        if value:
            outputs.append(Output("result", value, ("text/plain",)))
        if image:
            outputs.append(Output("display", "<Figure size 640x480>", ("image/png",)))
        turn = Turn(
            id=f"{len(self.entries) + 1:024x}",
            time=at(self.seconds) if self.origin == "typed" else "",
            source=source,
            kernel=self.kernel,
            cell_id=cell_id,
            execution_count=self.count,
            status=status or ("error" if error else "ok"),
            duration_ms=50.0,
            error=error,
            outputs=tuple(outputs),
            names=tuple(names),
            origin=self.origin,
            complete=True,
        )
        self.entries.append(turn)
        self.seconds += pause + 0.05
        return turn

    def prose(self, source: str, cell_id: str | None = None) -> None:
        """Add a markdown cell."""
        id = f"{len(self.entries) + 1:024x}"
        self.entries.append(Prose(id, at(self.seconds), source, cell_id))

    def happening(self, name: str, **details: object) -> None:
        """Add something that befell the session."""
        id = f"{len(self.entries) + 1:024x}"
        self.entries.append(Happening(id, at(self.seconds), name, details))

    def restart(self, minutes: float = 0.0) -> None:
        """Begin another life of the kernel, `minutes` later."""
        self.kernel += 1
        self.count = 0
        self.seconds += 60 * minutes


def frame(name: str, shape: str, *columns: str) -> BoundName:
    """Return a data frame that a cell bound."""
    return BoundName(name, "DataFrame", shape, columns)
