"""The worker's side of an answer that comes in pieces: few messages, none of them late.

A model says a word at a time, some hundred a second. The first goes out at once; what comes within
the next `GATHER_SECONDS` goes out together. Tool calls keep their place between the words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

GATHER_SECONDS = 0.03
"""How long words are gathered: a third of what a notebook shows as one change."""

MOST_TEXT = 50_000
"""Characters of one message: six bytes each at the worst, a third of the longest line."""


class Pieces:
    """Sends the pieces of answer `number` through `say`, from the loop that runs the request."""

    def __init__(self, say: Callable[[Mapping[str, Any]], None], number: object) -> None:
        self.sent = 0
        """Messages so far."""
        self._say = say
        self._number = number
        self._text: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def hear(self, piece: Mapping[str, Any]) -> None:
        """Send `piece` in its turn. Never waits."""
        if set(piece) != {"text"}:
            self._send_text()
            self._send(piece)
            return
        self._text.append(str(piece["text"]))
        if self._timer is None:
            self._send_text()
            self._timer = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._gathered)

    def close(self) -> None:
        """Send what is left; for the end of the answer, before its reply."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._send_text()

    def _gathered(self) -> None:
        self._timer = None
        if self._text:
            self._send_text()
            self._timer = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._gathered)

    def _send_text(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        for start in range(0, len(text), MOST_TEXT):
            self._send({"text": text[start : start + MOST_TEXT]})

    def _send(self, piece: Mapping[str, Any]) -> None:
        self.sent += 1
        self._say({"type": "piece", "id": self._number, "piece": dict(piece)})
