"""The one line that loading says: engine, project, memories, and what was here before."""

from __future__ import annotations

from datetime import datetime

from ipymemory import sessions
from ipymemory.commands.amounts import counted
from ipymemory.places import Project, SessionFolder
from ipymemory.sessions import Identity
from ipymemory.turns import Turn

SHORT = 60
"""Characters shown of the cell in which a kernel died."""


def line(project: Project, identity: Identity, now: datetime) -> str:
    """Return the line; reads the project's folder and writes nothing."""
    name = project.root.name or str(project.root)
    parts = [
        "ipymemory: notes by the built-in extractive engine (no model, no network), "
        f"project {name}, {counted(memories(project), 'memory', 'memories')} yet."
    ]
    found = sessions.find(project, identity, now)
    if found.folder is not None:
        what = "notebook" if identity.notebook or not identity.terminal else "terminal"
        name = title(found.folder)
        parts.append(f"This {what} was here before{f': {name}' if name else ''}.")
        if found.restarted:
            parts.append("No variable of its last kernel is left.")
        if found.died_in is not None:
            parts.append(f"That kernel died while this cell was running: {_first(found.died_in)}")
    return " ".join(parts)


def _first(turn: Turn) -> str:
    """Return the first line of a cell that holds anything, short enough for a line."""
    lines = [each.strip() for each in turn.source.splitlines() if each.strip()]
    text = lines[0] if lines else ""
    return f"{text[:SHORT]}…" if len(text) > SHORT or len(lines) > 1 else text


def memories(project: Project) -> int:
    """Return how many memories the project has: its Markdown files but for the index's."""
    if not project.memory.is_dir():
        return 0
    return sum(
        1 for path in project.memory.rglob("*.md") if not path.name.startswith((".", "MEMORY"))
    )


def title(folder: SessionFolder) -> str:
    """Return the session's title from its notes, or nothing."""
    from ipymemory import markdown  # late: a first load needs none of it

    try:
        found = markdown.section(folder.notes.read_text(encoding="utf-8"), "Session Title")
    except (OSError, UnicodeDecodeError):
        return ""
    lines = [each.strip("- ") for each in found.body.splitlines() if each.strip()] if found else []
    return lines[0] if lines else ""
