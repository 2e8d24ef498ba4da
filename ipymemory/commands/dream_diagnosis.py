"""What ``doctor`` finds of dreams: a lock, a journal or a state that one which died left behind.

It looks, and leaves to the next dream what only a dream may put right.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipymemory import dream_journal, dream_recovery, dream_state
from ipymemory.commands.place import Place
from ipymemory.errors import IpymemoryError
from ipymemory.files import read_json
from ipymemory.memory_files import opened


def findings(place: Place) -> Iterator[tuple[str, str]]:
    """Yield what was found and what to do about it, a sentence or two each."""
    folder = opened(place.project, place.settings)
    lock = dream_recovery.lock(place.project, folder)
    records = dream_recovery.place(place.project, folder)
    running = False
    try:
        running = dream_state.state(place.project, place.settings).get("status") == "running"
        if left := lock.left():
            what, _, to_do = left.rpartition(". ")
            yield (
                (f"{what}.", to_do)
                if what
                else (left, _next(place, f"or remove {lock.path} if no dream runs"))
            )
    except IpymemoryError as error:
        yield str(error), f"Remove {lock.path} if no dream runs; none begins meanwhile."
    try:
        read_json(records / dream_state.STATE)
    except IpymemoryError as error:
        yield (
            f"How the last dream ended is not known. {str(error).partition('. ')[0]}.",
            "Delete the file; it holds counts alone, and the next dream writes it anew.",
        )
    if running or not dream_journal.waits(records):
        return
    try:
        dream_journal.look(records)
    except IpymemoryError as error:
        what, _, to_do = str(error).partition(". ")
        yield f"{what}.", to_do or _next(place, "which puts the file aside")
        return
    yield (
        f"A dream was cut short while it wrote into {folder.folder}: some memories are as before "
        "it, some as after.",
        _next(place, "which finishes it; one undo then takes it back"),
    )


def _next(place: Place, what: str) -> str:
    return f"The next dream puts that right; type {place.prefix}dream --now to have it now, {what}."
