"""The table of commands, and the way from the words that somebody typed to a `Page`.

It knows every command's room, so it is imported when the first command is called and not when
the extension is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipymemory.commands import calling, helping
from ipymemory.commands.asks import ASK_RESET
from ipymemory.commands.conversation import COMPACT, PREVIEW
from ipymemory.commands.costs import COST
from ipymemory.commands.diagnosis import DOCTOR
from ipymemory.commands.documents import DOCS
from ipymemory.commands.dreams import DREAM
from ipymemory.commands.engine import ENGINE
from ipymemory.commands.exporting import EXPORT
from ipymemory.commands.extraction import EXTRACT
from ipymemory.commands.memories import LIST, RECALL, SHOW
from ipymemory.commands.modes import MODE, PAUSE, RESUME
from ipymemory.commands.notes import NOTES
from ipymemory.commands.pages import JSON, Command, Page
from ipymemory.commands.place import Place
from ipymemory.commands.remembering import FORGET, PROPOSALS, REMEMBER
from ipymemory.commands.removal import PURGE
from ipymemory.commands.resuming import COMMAND as RESUME_LAST
from ipymemory.commands.runs import DIFF, HISTORY, UNDO
from ipymemory.commands.status import STATUS

COMMANDS: dict[str, Command] = {
    each.name: each
    for each in [
        *(STATUS, NOTES, RESUME_LAST, MODE, PAUSE, RESUME),
        *(ENGINE, PREVIEW, COMPACT, COST, ASK_RESET),
        *(LIST, SHOW, RECALL, REMEMBER, FORGET, EXTRACT, PROPOSALS, DREAM),
        *(DOCS, HISTORY, DIFF, UNDO, DOCTOR, EXPORT, PURGE),
    ]
}
COMMANDS["help"] = helping.command(COMMANDS)


def call(place: Place, words: Sequence[str]) -> Page:
    """Run the command that `words` name and return what it says.

    No words at all show the status, and ``--json`` the page's data. Raises `CommandError` for a
    wrong call, and what the command itself raises of `IpymemoryError`.
    """
    words = list(words)
    if not words:
        return STATUS.run(place, {})
    command = calling.find(COMMANDS, words[0], place.prefix)
    arguments = calling.parse(command, words[1:], place.prefix)
    page = command.run(place, arguments)
    return page.as_json() if arguments.get(JSON.key) else page


def sentence(line: str) -> list[str] | None:
    """Return the words of a `line` that holds somebody's own sentence, else None."""
    return calling.sentence(COMMANDS, line)


def overview(prefix: str) -> str:
    """Return the usage of every command, as ``%memory?`` and ``ipymemory help`` show it."""
    return helping.overview(COMMANDS, prefix)
