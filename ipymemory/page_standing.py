"""How a session stands, as the page is told: its notes, and what is on record or is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipymemory import consent

if TYPE_CHECKING:
    from ipymemory.live import LiveSession

MOST_NOTES = 256 * 1024
"""Bytes of the notes that a page is shown: several times as many as they ever have."""


def notes(session: LiveSession) -> str:
    """Return the session's notes as they stand now, nothing where there are none."""
    try:
        text = session.folder.notes.read_bytes() if session.folder is not None else b""
    except OSError:
        return ""
    return text[:MOST_NOTES].decode("utf-8", "replace")


def state(session: LiveSession) -> dict[str, Any]:
    """Return what a panel says of the session, as JSON values."""
    return {
        "project": session.project.root.name,
        "engine": consent.chosen(session.project) or "extractive",
        "recording": not session.paused and not session.reason,
        "begun": session.folder is not None,
        "paused": session.paused,
        "reason": session.reason,
        "worker": session.worker,
    }
