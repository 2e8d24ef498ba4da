"""What a command sees of the world: a `Place`, made by the magic or by the command line.

Commands know no IPython. What they need of a running session stands in `Live`, which the
extension fulfils; on the command line there is none, and a command works on the files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ipymemory import sessions
from ipymemory.config import Settings
from ipymemory.places import Project, SessionFolder


class ShownPage(Protocol):
    """The page of the open notebook."""

    @property
    def page_version(self) -> str | None:
        """The version of the lab extension in the page, None as long as no page speaks."""

    @property
    def unknown(self) -> bool:
        """Whether a page answered that it has no lab extension of ours."""

    def shows(self, cell: str) -> bool:
        """Return whether a page is there that shows this markdown cell."""

    def take_back(self, cell: str, now: str, then: str, job: str, *, again: bool) -> None:
        """Have it make `then` of a document that says `now`, since the run `job` was undone.

        `again`: the undo was undone.
        """


class Live(Protocol):
    """A session that is being recorded in this process."""

    @property
    def paused(self) -> bool:
        """Whether the user paused the recording."""

    @property
    def notebook(self) -> Path | None:
        """The saved notebook that this shell works for, None where none is known."""

    @property
    def reason(self) -> str:
        """Why nothing is recorded, as a sentence, or nothing."""

    @property
    def bound(self) -> frozenset[str]:
        """The names that the person's code has bound in this process."""

    @property
    def worker(self) -> str:
        """The state of the worker process: ``not started``, ``running`` …"""

    @property
    def problems(self) -> tuple[str, ...]:
        """What went wrong in this process, the newest last, a sentence each."""

    def pause(self) -> None:
        """Record nothing from now on."""

    def resume(self) -> None:
        """Record again."""

    def ask(
        self,
        name: str,
        timeout: float,
        meanwhile: Callable[[], None] | None = None,
        **arguments: Any,
    ) -> Any:
        """Ask the worker and wait at most `timeout` seconds; raises `WorkerError`.

        `meanwhile` is called some times a second while it waits.
        """

    def happened(self, name: str, **details: Any) -> None:
        """Put an event into the transcript, if there is one."""

    def ran_again(self, turns: Sequence[str]) -> None:
        """Put on record which turns of an earlier kernel were run again in this one."""

    @property
    def frontend(self) -> ShownPage | None:
        """The page's end in this process, None where there is none."""

    def let_go(self) -> None:
        """Close the session's files and end its worker; the next turn begins a new session."""


class Screen(Protocol):
    """Where a command that waits shows how far it is."""

    def show(self, state: Mapping[str, Any]) -> None:
        """Show how it stands."""

    def done(self) -> None:
        """Make room for the page that the command returns."""

    def ended(self, text: str) -> None:
        """Put `text` in place of what is there: the command returns no page."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command is called: whose settings, which project, which session.

    `ask` puts a question to the person and returns the answer, or None where nobody can be
    asked. `prefix` is how this face writes a command, ``%memory `` or ``ipymemory ``.
    """

    settings: Settings
    home: Path
    project: Project
    ask: Callable[[str], str | None]
    prefix: str
    folder: SessionFolder | None = None
    live: Live | None = None
    problems: tuple[str, ...] = ()
    screen: Callable[[Callable[[Mapping[str, Any]], str]], Screen] | None = None
    """Makes what shows the person how far a command is, of what says that in a line of a terminal;
    None where nobody looks."""
    saved: bool = False
    """Whether what is shown is saved, with a notebook: then it holds counts."""
    before: SessionFolder | None = None
    """What this notebook left, as long as this kernel has recorded nothing."""

    @property
    def shown(self) -> SessionFolder | None:
        """The session that pages are about, if there is one.

        In a notebook its own: what a cell prints is saved with it and goes where it goes. On the
        command line the newest of the project.
        """
        if self.live is not None:
            return self.folder or self.before
        return self.folder or sessions.latest_folder(self.project)

    @property
    def mode(self) -> str:
        """The mode that holds here: what was chosen in the project, else the setting."""
        return self.project.mode(self.settings.memory.mode)
