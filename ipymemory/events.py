"""What happened, as values, and a bus whose handlers cannot hurt the one who tells.

Events go from the agent and its jobs to whoever shows or logs them: the worker writes them to
the pipe, the session keeps the last of each kind for the status page, a test collects them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a job. `kind` is one word; `details` are JSON values.

    Kinds and their details: ``started`` (engine, reason), ``call`` (tool, path), ``refused``
    (tool, reason), ``wrote`` (path), ``finished`` and ``failed`` (the run's outcome), ``saved``
    (what was learned), ``warning`` (text), ``gate`` (open, reason),
    ``document`` (cell_id, base, source: new text for a markdown cell, made from its text as it is
    on record; propose: whether it waits for a yes), ``document_now`` (cell_id: the one that a
    model begins to write, nothing when it is through), ``documents_wait`` (some wait to be
    accepted), ``dream``, ``dream_turn`` and ``dream_file``
    (see `jobs.dream`),
    ``doing`` (text: what an agent is doing, in a line; kept: what of that may be saved with a
    notebook; by: ``model`` or ``code``).
    """

    kind: str
    job: str
    run: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the event as JSON values."""
        return asdict(self)


Handler = Callable[[Event], None]


class Bus:
    """Handlers in the order in which they came; one that raises is logged and the rest go on."""

    def __init__(self) -> None:
        self._handlers: list[Handler] = []

    def subscribe(self, handler: Handler) -> Callable[[], None]:
        """Add `handler`; return a function that takes it away again."""
        self._handlers.append(handler)

        def unsubscribe() -> None:
            if handler in self._handlers:
                self._handlers.remove(handler)

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Tell every handler. Never raises."""
        for handler in tuple(self._handlers):
            try:
                handler(event)
            except Exception:  # the one who tells must not be hurt by a listener
                log.exception("an event handler failed on %s", event.kind)
