"""Sessions past their days: what is deleted, at most once a day, and where it is told.

What goes is first moved aside under a name that nobody takes for a session, so that no half of
one is ever met; what a kill left of that goes the next time.
"""

from __future__ import annotations

import logging
import shutil
from datetime import UTC, datetime, timedelta

from ipymemory import lines, sessions
from ipymemory.history import History
from ipymemory.places import Project, SessionFolder
from ipymemory.turns import utc_now

log = logging.getLogger(__name__)

EVERY = timedelta(days=1)
"""How often a project is looked through."""

PROPERTY = "expired"
"""Where ``project.json`` holds when the project was looked through, and how many went."""

_GONE = ".gone-"


def expire(
    project: Project, own: SessionFolder, keep_days: int, now: datetime | None = None
) -> list[str]:
    """Delete the sessions without a turn for `keep_days` days; return the ids of what went.

    Their before-images go with them; `own` stays, and so does whatever a live process owns. Does
    nothing within a day of the last time. What went stands in ``worker.jsonl`` of `own` and in
    ``project.json``. Raises `IpymemoryError` when that cannot be written.
    """
    now = now or datetime.now(UTC)
    told = project.properties().get(PROPERTY)
    if isinstance(told, dict) and not _a_day_ago(told.get("time"), now):
        return []
    gone = [
        each.id
        for each in sessions.expired(project, keep_days, now)
        if each.id != own.id and _move_aside(each)
    ]
    aside = list(project.sessions.glob(f"{_GONE}*"))
    if aside:
        History(project.history).forget(each.name.removeprefix(_GONE) for each in aside)
        for each in aside:
            shutil.rmtree(each, ignore_errors=True)
    if gone:
        said = {"type": "expired", "time": utc_now(), "keep_days": keep_days, "sessions": gone}
        lines.append(own.worker_log, said)
    project.set_property(PROPERTY, {"time": now.isoformat(), "sessions": len(gone)})
    return gone


def _move_aside(folder: SessionFolder) -> bool:
    try:
        folder.path.replace(folder.path.with_name(_GONE + folder.id))
    except OSError as error:
        # Another worker took it, or something holds it open: then it goes another day.
        log.warning("%s stays for now: %s", folder.path, error.strerror or error)
        return False
    return True


def _a_day_ago(time: object, now: datetime) -> bool:
    try:
        return not timedelta() <= now - datetime.fromisoformat(str(time)) < EVERY
    except (ValueError, TypeError):
        return True
