"""``help``: what there is to type, and the right form of each."""

from __future__ import annotations

from collections.abc import Mapping

from ipymemory.commands import calling
from ipymemory.commands.pages import Argument, Arguments, Command, Page
from ipymemory.commands.place import Place


def command(commands: Mapping[str, Command]) -> Command:
    """Return the ``help`` of `commands`, to be added to them."""

    def run(place: Place, arguments: Arguments) -> Page:
        name = arguments["command"]
        if name is None:
            text = overview(commands, place.prefix)
        else:
            text = explain(calling.find(commands, name, place.prefix), place.prefix)
        return Page(f"```text\n{text}\n```", text=text)

    return Command(
        "help", "what each command does", run, (Argument("COMMAND", "the one to explain"),)
    )


def overview(commands: Mapping[str, Command], prefix: str) -> str:
    """Return one line for each command."""
    width = max(map(len, commands)) + len(prefix)
    lines = [f"{prefix + each.name:<{width}}  {each.summary}" for each in commands.values()]
    return "\n".join([*lines, "", f"{prefix}help COMMAND tells more of one."])


def explain(command: Command, prefix: str) -> str:
    """Return the right form of `command`, what it does, and its arguments."""
    parts = [command.usage(prefix), "", command.summary]
    if command.details:
        parts += ["", command.details]
    if command.arguments:
        names = [each.form.strip("[]") for each in command.arguments]
        width = max(map(len, names))
        parts += [""]
        parts += [
            f"  {name:<{width}}  {each.help}"
            for name, each in zip(names, command.arguments, strict=True)
        ]
    return "\n".join(parts)
