"""A dream taken back by a button: its files as they were before it, the index and recall with them.

What somebody edited since is left alone, and the rest put back (behaviour D5).
"""

from __future__ import annotations

import contextlib
from typing import Any

from ipymemory import dream_state
from ipymemory.config import Settings
from ipymemory.errors import ChangedSince, HistoryError, IpymemoryError
from ipymemory.history import History
from ipymemory.memory_files import opened
from ipymemory.places import Project


def take_back(project: Project, settings: Settings, id: str) -> dict[str, Any]:
    """Undo the dream `id` if it is the last one; return how it stands then, in counts.

    Raises `IpymemoryError`.
    """
    state = dream_state.state(project, settings)
    run = str(state.get("run") or "")
    if state.get("id") != id or not run:
        raise HistoryError(
            "This dream is not the last one any more. %memory history lists the runs, and "
            "%memory undo RUN takes one back."
        )
    history = History(project.history, settings.memory.history_keep)
    left = 0
    try:
        back = history.undo(run)
    except ChangedSince as error:
        back, left = history.undo(run, around=True), len(error.versions)
    # Late, since recall stands on the memories.
    from ipymemory.recall import Recall

    with contextlib.suppress(IpymemoryError):
        folder = opened(project, settings)
        folder.rebuild_index()
        Recall(project, folder).sync()
    told = {"counts": {"put_back": len(back)} | ({"left_out": left} if left else {})}
    return dream_state.ends(dream_state.place_of(project, settings), id, "undone", told)
