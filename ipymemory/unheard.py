"""What a worker was told and has not said it heard: so little that it never fills a pipe."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

MOST_UNHEARD = 4096
"""Bytes that may be in a pipe unheard: the smallest one, on Windows, holds as many."""


@dataclass(frozen=True, slots=True)
class _Message:
    """A message that the worker has not said it heard."""

    since: float
    size: int
    kind: str


class Unheard:
    """The messages in the order they were sent; one thread sends, another one hears."""

    def __init__(self) -> None:
        self._messages: deque[_Message] = deque()

    def __bool__(self) -> bool:
        return bool(self._messages)

    def sent(self, kind: str, size: int) -> None:
        """Note a message of `size` bytes that goes into the pipe now."""
        self._messages.append(_Message(time.monotonic(), size, kind))

    def heard(self) -> None:
        """Note that the worker heard the oldest of them."""
        if self._messages:
            self._messages.popleft()

    def clear(self) -> None:
        """Forget them: the worker ended."""
        self._messages.clear()

    def has(self, kind: str) -> bool:
        """Return whether a message of that kind is among them."""
        return any(each.kind == kind for each in tuple(self._messages))

    @property
    def room(self) -> bool:
        """Whether another message may be sent."""
        return sum(each.size for each in tuple(self._messages)) < MOST_UNHEARD

    @property
    def since(self) -> float | None:
        """When the oldest was sent, by the monotonic clock; None for none."""
        try:
            return self._messages[0].since
        except IndexError:  # the reader takes them away
            return None
