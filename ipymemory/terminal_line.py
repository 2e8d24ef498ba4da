"""One line of a terminal that says how far a command is, and goes when that is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ipymemory.neutral import one_line

MOST = 300
"""Characters of a line; a terminal shows as many of them as it has columns."""


class Line:
    """The line, on standard error: the output is for whoever reads that.

    `says` makes the line of what is shown, some times a second, so that its time goes on by itself.
    Where there is no terminal nothing is shown.
    """

    def __init__(self, says: Callable[[Mapping[str, Any]], str]) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, highlight=False)
        self._says = says
        self._state: Mapping[str, Any] = {}
        self._live = (
            Live(
                get_renderable=self._text,
                console=console,
                refresh_per_second=4,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            if console.is_terminal
            else None
        )

    def show(self, state: Mapping[str, Any]) -> None:
        """Show how it stands."""
        self._state = state
        if self._live is not None and not self._live.is_started:
            self._live.start()

    def done(self) -> None:
        """Take the line away."""
        if self._live is not None and self._live.is_started:
            self._live.stop()

    def ended(self, text: str) -> None:
        """Take the line away; whatever ended it says why."""
        self.done()

    def _text(self) -> Any:
        from rich.text import Text

        said = one_line(self._says(self._state), MOST)
        return Text(said, style="dim", no_wrap=True, overflow="ellipsis")
