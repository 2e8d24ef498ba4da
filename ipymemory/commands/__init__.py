"""The commands: one definition each, for ``%memory NAME`` and for ``ipymemory NAME``.

`COMMANDS` is the list, in the order in which help shows it. `call` goes from the words that
somebody typed to a `Page`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipymemory.commands import calling, diagnosis, helping, modes, notes, removal, runs, status
from ipymemory.commands import export as exporting
from ipymemory.commands.pages import JSON, Command, Page
from ipymemory.commands.place import Place

COMMANDS: dict[str, Command] = {
    each.name: each
    for each in (
        status.STATUS,
        notes.NOTES,
        modes.MODE,
        modes.PAUSE,
        modes.RESUME,
        runs.HISTORY,
        runs.DIFF,
        runs.UNDO,
        diagnosis.DOCTOR,
        exporting.EXPORT,
        removal.PURGE,
    )
}
COMMANDS["help"] = helping.command(COMMANDS)


def call(place: Place, words: Sequence[str]) -> Page:
    """Run the command that `words` name and return what it says.

    No words at all show the status. Raises `CommandError` for a wrong call, and what the
    command itself raises of `IpymemoryError`.
    """
    words = list(words)
    if not words:
        return status.STATUS.run(place, {})
    command = calling.find(COMMANDS, words[0], place.prefix)
    return command.run(place, calling.parse(command, words[1:], place.prefix))


def overview(prefix: str) -> str:
    """Return the usage of every command, as ``%memory?`` and ``ipymemory help`` show it."""
    return helping.overview(COMMANDS, prefix)


__all__ = ["COMMANDS", "JSON", "Command", "Page", "Place", "call", "overview"]
