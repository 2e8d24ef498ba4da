"""The quiet word about what was learned: told once, where somebody asks something of us (E9).

What a session learned and nobody was told of waits in its folder. The kernel tells it below the
page of the next command, or in the line of the next loading, and says so in the transcript, which
the worker reads: then it waits no more. Never in a cell that asked nothing of us.
"""

from __future__ import annotations

from collections.abc import Collection

from ipymemory import looked_through
from ipymemory.commands.amounts import counted
from ipymemory.errors import IpymemoryError
from ipymemory.history import SHORT, History
from ipymemory.neutral import neutral
from ipymemory.places import Project, SessionFolder

PREFIX = "%memory "


def news(
    project: Project, folder: SessionFolder, told: Collection[str] = (), shown: str = ""
) -> tuple[str, list[str]]:
    """Return a sentence about what was learned in a session, or nothing, and the runs it tells of.

    Those of `told`, those whose id stands in the text `shown`, and those undone are left out.
    Never raises: what cannot be read is no news.
    """
    try:
        waiting = [each for each in looked_through.untold(folder) if each["run"] not in told]
        runs = list(dict.fromkeys(each["run"] for each in waiting))
        history = History(project.history) if runs else None
        undone = {run for run in runs if history is not None and history.is_undone(run)}
    except IpymemoryError:
        return "", []
    new = [
        each for each in waiting if each["run"] not in undone and each["run"][:SHORT] not in shown
    ]
    if not new:
        return "", runs
    last = new[-1]
    words = f"“{neutral(last['words'])}”"
    if len(new) == 1:
        back = f"`{PREFIX}undo {last['run'][:SHORT]}` takes it back"
        return f"Kept from what you said: {words}; {back}.", runs
    number = counted(len(new), "memory", "memories")
    alone = len({each["run"] for each in new}) == 1
    back = f"`{PREFIX}undo {last['run'][:SHORT]}` takes {'them' if alone else 'the last'} back"
    return f"Kept from what you said: {number}, the last {words}; {back}.", runs
