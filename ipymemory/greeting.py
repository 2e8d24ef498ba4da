"""The one line that loading says: engine, project, memories, and what was here before."""

from __future__ import annotations

from datetime import datetime

from ipymemory import markdown, processes, sessions
from ipymemory.commands.pages import counted
from ipymemory.places import Project, SessionFolder
from ipymemory.sessions import Identity


def line(project: Project, identity: Identity, now: datetime) -> str:
    """Return the line; reads the project's folder and writes nothing."""
    name = project.root.name or str(project.root)
    parts = [
        "ipymemory: notes by the built-in extractive engine (no model, no network), "
        f"project {name}, {counted(memories(project), 'memory', 'memories')} yet."
    ]
    found = sessions.find(project, identity, now)
    if found.folder is not None and found.record is not None:
        same = found.record.kernel == processes.own()
        parts.append(f"This notebook was here before: {title(found.folder) or 'no title yet'}.")
        if same:
            parts.append("Its session goes on.")
        else:
            parts.append("The variables of its last kernel are gone.")
        if found.died_in is not None:
            parts.append(f"Cell {found.died_in.label} was running when that kernel died.")
    return " ".join(parts)


def memories(project: Project) -> int:
    """Return how many memories the project has: its Markdown files but for the index's."""
    if not project.memory.is_dir():
        return 0
    return sum(
        1 for path in project.memory.rglob("*.md") if not path.name.startswith((".", "MEMORY"))
    )


def title(folder: SessionFolder) -> str:
    """Return the session's title from its notes, or nothing."""
    try:
        found = markdown.section(folder.notes.read_text(encoding="utf-8"), "Session Title")
    except (OSError, UnicodeDecodeError):
        return ""
    lines = [each.strip("- ") for each in found.body.splitlines() if each.strip()] if found else []
    return lines[0] if lines else ""
