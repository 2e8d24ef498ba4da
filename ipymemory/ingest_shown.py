"""How far an ingest is, as a bar on the terminal of whoever started it; nothing anywhere else."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from ipymemory.neutral import one_line


class Bar:
    """A bar of `total` notebooks on standard error: the output is for whoever reads that."""

    def __init__(self, total: int) -> None:
        self._bar: Any = None
        self._task: Any = None
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        if not console.is_terminal:
            return
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False, style="dim"),
            console=console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Bar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away, whatever ended it."""
        if self._bar is not None:
            self._bar.stop()

    def done(self, path: Path) -> None:
        """Say that the notebook `path` is done."""
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=one_line(path.name, 40))
