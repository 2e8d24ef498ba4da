"""What a command is and what it gives back: values that the magic and the command line share.

A `Command` names its arguments once; both faces parse, explain and refuse by them. It returns a
`Page`, which says the same three times: as Markdown for a notebook, as plain text for a
terminal, and as JSON values for a program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipymemory.commands.place import Place

Arguments = Mapping[str, Any]

_EMPHASIS = re.compile(r"\*\*(.+?)\*\*")


@dataclass(frozen=True, slots=True)
class Page:
    """What a command says. `exit` is the command line's exit code; `data` are JSON values.

    `text` is for a terminal; empty where the Markdown without its bold marks reads well enough.
    `warnings` are sentences about what was passed over on the way. `pure` tells that the text is
    for a program, so that no sentence may stand in it.
    """

    markdown: str
    data: Any = None
    exit: int = 0
    text: str = ""
    warnings: tuple[str, ...] = ()
    pure: bool = False
    next_input: str = ""
    """What the next cell is to hold, for the person to look at and keep."""
    run: tuple[tuple[str, str, str], ...] = ()
    """Cells to run when the page was shown: what each is called, its turn's id, its source."""
    dream: Mapping[str, Any] | None = None
    """How a dream stands, in counts, where the page is about one that can be watched."""

    def as_json(self) -> Page:
        """Return the page that shows its `data` as JSON, fenced in Markdown so that it stays so."""
        text = json.dumps(self.data, indent=2, ensure_ascii=False)
        if not text.isprintable():
            # The same value for a program, and nothing for a terminal to act upon.
            text = "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)
        markdown = f"```json\n{text}\n```"
        return replace(self, markdown=markdown, text=text, pure=True, dream=None)

    @property
    def plain(self) -> str:
        """The page for a terminal."""
        return self.text or _EMPHASIS.sub(r"\1", self.markdown)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: ``PATH`` by its place, ``--now`` a switch, ``-n`` with a `value` an option.

    For one that is known by its place, `value` shows in the right form in place of its name.

    `words` takes every word up to the next option, so that ``--section Current State`` needs no
    quotes. `number` is a whole number of at least 1. `free` is somebody's own sentence: a word in
    it with a dash in front that is no option of the command is a word like any other.
    """

    name: str
    help: str
    value: str = ""
    number: bool = False
    words: bool = False
    required: bool = False
    free: bool = False

    @property
    def option(self) -> bool:
        """Whether the argument is known by its dashes and not by its place."""
        return self.name.startswith("-")

    @property
    def key(self) -> str:
        """The name under which its value is handed to the command."""
        return self.name.strip("-").lower().replace("-", "_")

    @property
    def form(self) -> str:
        """The argument as a usage line shows it."""
        text = f"{self.name} {self.value}".rstrip() if self.option else self.value or self.name
        return text if self.required else f"[{text}]"


JSON = Argument("--json", "print JSON instead of text")


@dataclass(frozen=True, slots=True)
class Command:
    """A command: ``%memory NAME`` in a notebook, ``ipymemory NAME`` on the command line."""

    name: str
    summary: str
    run: Callable[[Place, Arguments], Page]
    arguments: tuple[Argument, ...] = ()
    details: str = ""
    needs_session: bool = False
    """Whether it makes sense only in a notebook or terminal that has the extension loaded."""
    anywhere: Callable[[Arguments], Page | None] | None = None
    """Returns the page where no home folder and no project is needed for it, else None."""

    def usage(self, prefix: str) -> str:
        """Return the right form, ``%memory notes [--now]``, after the caller's `prefix`."""
        return " ".join([f"{prefix}{self.name}", *(each.form for each in self.arguments)])
