"""Living documents of a running notebook, brought up to date when the kernel is at rest (M3).

The built-in engine writes each from what a look at the notebook found (`document_look`). The
outcome is a proposal, and an event for the page that shows the cell. The notebook is only read.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipymemory import gates
from ipymemory.config import Settings
from ipymemory.document_look import Context, Look, Looked
from ipymemory.documents import find
from ipymemory.turns import Entry


def gate(settings: Settings, *, fresh: bool, rest_seconds: float, busy: bool) -> gates.Gate:
    """Return whether a run may start now, and why (behaviour M3)."""
    if not settings.magic_docs.enabled:
        return gates.Gate(False, "living documents are turned off (MagicDocs.enabled)")
    if not fresh:
        return gates.Gate(False, "there is no living document, or nothing has run since")
    if busy:
        return gates.Gate(False, "a cell is running")
    if rest_seconds < settings.engine.idle_seconds:
        wait = settings.engine.idle_seconds
        return gates.Gate(False, f"the kernel has been at rest for less than {wait:g} s")
    return gates.Gate(True, "something has run and the kernel is at rest")


def update(context: Context, entries: Sequence[Entry]) -> Looked:
    """Write every document of the notebook anew from `entries`, one after another.

    What was proposed before and not taken is made anew too. Raises `IpymemoryError` when nothing
    can be kept.
    """
    looked = Look(context, entries)
    for each in looked.documents:
        looked.without_model(each)
    return looked.keep()


def may_hold(text: str | bytes) -> bool:
    """Return whether a text, or a notebook's bytes, may hold a living document; cheap."""
    if isinstance(text, str):
        return find(text) is not None
    low = text.lower()
    return b"magic" in low
