"""From the words that somebody typed to a command and its arguments, or to the right form.

A word that no command has is met with the nearest one; nothing is guessed and run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ipymemory.commands.pages import Argument, Command
from ipymemory.errors import CommandError


def sentence(commands: Mapping[str, Command], line: str) -> list[str] | None:
    """Return the words of a `line` whose command takes somebody's own sentence, else None.

    They stay as they were typed, apostrophes and all; only quotes around the whole of it go.
    """
    name, _, rest = line.strip().partition(" ")
    if name not in commands or not any(each.free for each in commands[name].arguments):
        return None
    rest = rest.strip()
    quote = rest[:1]
    if quote in ("'", '"') and len(rest) > 1 and rest[-1] == quote and rest.count(quote) == 2:
        rest = rest[1:-1]
    return [name, *rest.split()]


def find(commands: Mapping[str, Command], name: str, prefix: str) -> Command:
    """Return the command called `name`; raises `CommandError` that names the nearest."""
    if name in commands:
        return commands[name]
    near = nearest(name, commands)
    if near:
        raise CommandError(f"There is no {prefix}{name}. Did you mean {prefix}{near}?")
    raise CommandError(
        f"There is no {prefix}{name}. The commands are {', '.join(commands)}; "
        f"{prefix}help tells what each does."
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the one of `known` that `name` most likely stands for, or nothing."""
    import difflib

    names = list(known)
    whole = [each for each in names if name and each.startswith(f"{name.lower()}-")]
    if len(whole) == 1:
        return whole[0]  # `ask` is `ask-reset`
    matches = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return matches[0] if matches else next((n for n in names if name and n.startswith(name)), "")


def parse(
    command: Command, words: Sequence[str], prefix: str, extra: tuple[Argument, ...] = ()
) -> dict[str, Any]:
    """Return the value of every argument of `command` (and `extra`) in `words`.

    A switch is True or False; what was not given is None, and an empty list for `words`.
    Raises `CommandError` with the right form.
    """
    known = (*command.arguments, *extra)
    options = {each.name: each for each in known if each.option}
    places = [each for each in known if not each.option]
    values: dict[str, Any] = {
        each.key: ([] if each.words else False if each.option and not each.value else None)
        for each in known
    }

    def wrong(what: str) -> CommandError:
        return CommandError(f"{what} The right form is: {command.usage(prefix)}")

    def number(text: str, name: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise wrong(f"{name} takes a whole number of at least 1, not {text!r}.")
        return int(text)

    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("-") and word != "-":
            name, joined, value = word.partition("=")
            if name not in options and not name.startswith("--") and name[:2] in options:
                name, joined, value = name[:2], "=", name[2:]
            if name not in options and places and places[0].free:
                values[places[0].key].append(word)
                continue
            if name not in options:
                near = nearest(name, options)
                raise wrong(f"{name} is unknown here{f'; did you mean {near}?' if near else '.'}")
            option = options[name]
            if not option.value:
                if joined:
                    raise wrong(f"{name} takes no value.")
                values[option.key] = True
                continue
            taken = [value] if joined else []
            while rest and not rest[0].startswith("-") and (option.words or not taken):
                taken.append(rest.pop(0))
            if not taken:
                raise wrong(f"{name} wants {option.value}.")
            if option.words:
                values[option.key] = taken
            else:
                values[option.key] = number(taken[0], name) if option.number else taken[0]
        elif not places:
            raise wrong(f"There is one word too many: {word!r}.")
        elif places[0].words:
            values[places[0].key].append(word)
        else:
            place = places.pop(0)
            values[place.key] = number(word, place.name) if place.number else word
    for each in known:
        if each.required and not values[each.key]:
            raise wrong(f"{each.name} is missing.")
    return values
