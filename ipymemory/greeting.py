"""The one line that loading says: engine, project, memories, and what was here before."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from ipymemory import consent, sessions
from ipymemory.commands.amounts import counted
from ipymemory.errors import IpymemoryError
from ipymemory.messages_api import has_key
from ipymemory.places import Project, SessionFolder
from ipymemory.sessions import Identity
from ipymemory.turns import Turn

SHORT = 60
"""Characters shown of the cell in which a kernel died."""


def line(
    project: Project, identity: Identity, now: datetime, memory_folder: str = "own"
) -> tuple[str, list[str]]:
    """Return the line, and the runs of whose memories it tells; writes nothing.

    `memory_folder` is the setting ``Memory.folder``.
    """
    told: list[str] = []
    name = project.root.name or str(project.root)
    number = memories(project, memory_folder)
    known = f"{counted(number, 'memory', 'memories')}{'' if number else ' yet'}"
    parts = [
        "ipymemory: notes by the built-in extractive engine (no model, no network), "
        f"project {name}, {known}."
    ]
    if consent.chosen(project) == "anthropic":
        parts.append(
            "Questions (%%ask) and a longer session's notes go to a model; %memory status says "
            "which and where."
        )
    elif not project.folder.exists() and has_key(os.environ):
        # Said with a project's first session alone: loading writes nothing down.
        parts.append(
            "There is a key for a model in the environment; it is not used unless you type "
            "%memory engine anthropic."
        )
    found = sessions.find(project, identity, now)
    if found.folder is not None:
        what = "notebook" if identity.notebook or not identity.terminal else "terminal"
        name, still_open = title_and_open_error(found.folder)
        was = "was read before" if found.folder.of_file else "was here before"
        parts.append(f"This {what} {was}{f': {name}' if name else ''}.")
        if still_open:
            parts.append(f"Still open: {still_open}.")
        if found.restarted:
            parts.append("No variable of its last kernel is left; %memory resume brings them back.")
        if found.died_in is not None:
            parts.append(f"That kernel died while this cell was running: {_first(found.died_in)}")
        if found.folder.untold.exists():
            from ipymemory.news import news  # late: there is rarely any

            sentence, told = news(project, found.folder)
            parts += [sentence] if sentence else []
    if not _can_be_written(project.home):
        parts.append(
            f"Nothing will be recorded, since {project.home} cannot be written: mend its "
            "permissions, or set IPYMEMORY_HOME to another folder."
        )
    return one_line(" ".join(parts)), told


def one_line(text: str) -> str:
    """Return `text` on one line and without what a screen takes for a command.

    The folder, the notebook and its cells may be anybody's, and so may their names.
    """
    if text.isprintable():
        return text
    from ipymemory.neutral import plain  # late: nearly every line is as it should be

    return " ".join(plain(text).split())


def _can_be_written(home: Path) -> bool:
    """Return whether the home folder, or the nearest one above that is there, takes files."""
    nearest = next((each for each in (home, *home.parents) if each.exists()), home)
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _first(turn: Turn) -> str:
    """Return the first line of a cell that holds anything, short enough for a line."""
    lines = [each.strip() for each in turn.source.splitlines() if each.strip()]
    text = lines[0] if lines else ""
    return f"{text[:SHORT]}…" if len(text) > SHORT or len(lines) > 1 else text


def memories(project: Project, choice: str = "own") -> int:
    """Return how many memories the project has by ``Memory.folder``; lists names, reads no file."""
    from ipymemory import memory_place  # late: it is asked once

    try:
        return memory_place.count(memory_place.memory_place(project, choice).folder)
    except IpymemoryError:
        return 0


def title_and_open_error(folder: SessionFolder) -> tuple[str, str]:
    """Return the session's title and its newest open error from the notes, or nothing."""
    from ipymemory import markdown  # late: a first load needs none of it

    try:
        notes = folder.notes.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return "", ""
    titles, state = (
        [each for each in (found.body.splitlines() if found else []) if each.strip()]
        for found in (markdown.section(notes, name) for name in ("Session Title", "Current State"))
    )
    name = titles[0].strip("- ") if titles else ""
    opened = [each.removeprefix("- Open: ") for each in state if each.startswith("- Open: ")]
    return name, _cut(opened[0]) if opened else ""


def _cut(text: str) -> str:
    """Return the label and the error of a line of the notes, without where it was raised."""
    text = text.partition("` at `")[0]
    text = f"{text}`" if text.count("`") % 2 else text
    return f"{text[: 2 * SHORT]}…" if len(text) > 2 * SHORT else text
