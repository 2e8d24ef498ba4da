"""``history``, ``diff`` and ``undo``: every write that an engine made.

In a notebook they are about that notebook's own session: what a cell prints is saved with the
notebook and goes where it goes, and another notebook's notes have no business there.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ipymemory import document_history
from ipymemory.commands.amounts import counted
from ipymemory.commands.memories import one
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.commands.remembering import index_follows
from ipymemory.errors import ChangedSince, CommandError
from ipymemory.history import SHORT, History, RunEntry

SHOWN = 20
"""Runs that ``history`` shows unless told otherwise (interface.md)."""


_FILE_BY_FILE = frozenset(["dream"])
"""Jobs whose undo goes around files that were changed since (behaviour D5)."""


_OF_THEMSELVES = frozenset(["session_notes", "magic_docs"])
"""Jobs that follow every few cells by themselves, and say nothing of it."""

_SEEN = timedelta(minutes=10)
"""How long a change that was told of goes before what wrote itself since (L8).

Somebody who reads "kept as dates" and types ``undo`` means the memory, also when notes happened
to be written in between.
"""


def _history(place: Place, arguments: Arguments) -> Page:
    entries, others = _visible(place)
    shown = entries[: arguments["n"] or SHOWN]
    lines = [_line(each) for each in shown]
    if len(shown) < len(entries):
        lines.append(f"- … and {len(entries) - len(shown)} older; -n shows more.")
    if lines:
        lines += [
            "",
            f"`{place.prefix}diff RUN` shows what one changed, `{place.prefix}undo RUN` takes it "
            "back.",
        ]
    else:
        lines.append("No engine has written anything here yet.")
    if others:
        lines += ["", _of_others(others)]
    return Page("\n".join(lines), [each.as_dict() for each in shown])


def _diff(place: Place, arguments: Arguments) -> Page:
    entry = _chosen(place, arguments["run"])
    if entry is None:
        return Page("No engine has written anything here yet.", {})
    text = _store(place).diff(entry.id).rstrip("\n")
    if not text:
        return Page(f"Run {entry.id[:SHORT]} left its files as they were.", entry.as_dict())
    title = f"{entry.job} at {_when(entry)}, {entry.reason}"
    marks = fence(text)
    return Page(
        f"{title}\n\n{marks}diff\n{text}\n{marks}",
        {**entry.as_dict(), "diff": text},
        text=f"{title}\n\n{text}",
    )


def _undo(place: Place, arguments: Arguments) -> Page:
    history = _store(place)
    entry = _chosen(place, arguments["run"], standing=True)
    if entry is None:
        return Page("There is nothing left to undo here.", {"undone": None, "files": []})
    if cell := document_history.cell_of(entry):
        return _undo_in_cell(place, history, entry, cell)
    left: tuple[str, ...] = ()
    try:
        files = history.undo(entry.id)
    except ChangedSince as error:
        if entry.job in _FILE_BY_FILE and not arguments["force"]:
            # Of many files: those that somebody changed since are no reason to keep the others.
            files = history.undo(entry.id, around=True)
            left = tuple(str(each.path) for each in error.versions)
        elif not arguments["force"] and not _agreed(place, error):
            run = entry.id[:SHORT]
            raise ChangedSince(
                f"{error} {place.prefix}diff {run} shows what the run changed; "
                f"{place.prefix}undo {run} --force puts back what was there before it.",
                error.versions,
            ) from None
        else:
            files = history.undo(entry.id, force=True)
    index_follows(place)
    stays = f" Changed since, so left as they are: {', '.join(map(one, left))}." if left else ""
    return Page(
        f"Undone: {entry.job} of {_when(entry)} ({entry.reason}). {_became(files)}{stays} The "
        f"same turns are left out from now on; `{place.prefix}undo RUN` with the newest run of "
        f"`{place.prefix}history` takes the undo back.",
        {"undone": entry.id, "files": [str(path) for path in files]}
        | ({"left": list(left)} if left else {}),
    )


def _became(files: list[Path]) -> str:
    """Return what an undo made of `files`, as sentences."""
    if not files:
        return "All files held that already."
    put_back = [one(str(path)) for path in files if path.exists()]
    removed = [one(str(path)) for path in files if not path.exists()]
    return " ".join(
        f"{what}: {', '.join(names)}."
        for what, names in (("Put back", put_back), ("Removed again", removed))
        if names
    )


def _undo_in_cell(place: Place, history: History, entry: RunEntry, cell: str) -> Page:
    """Undo what the page put into a cell: it takes that back itself, and keeps what is theirs."""
    page = place.live.frontend if place.live is not None else None
    if page is None or not page.shows(cell):
        raise CommandError(
            f"Run {entry.id[:SHORT]} wrote in a cell of a notebook, and no page of JupyterLab or "
            "Notebook that this kernel knows of shows it. Open the notebook there, run "
            f"%load_ext ipymemory, and type %memory undo {entry.id[:SHORT]}."
        )
    job = document_history.root(history, entry)
    was, now = document_history.undo(history, entry)
    page.take_back(cell, was, now, job, again=not history.is_undone(job))
    return Page(
        f"Undone: {entry.job} of {_when(entry)} ({entry.reason}). The page puts the text back into "
        "its cell; where somebody has written in the same lines, it waits in the memory panel for "
        f"a yes. The same text does not come again by itself; `{place.prefix}undo RUN` with the "
        f"newest run of `{place.prefix}history` takes the undo back.",
        {"undone": entry.id, "cell": cell, "files": []},
    )


def _agreed(place: Place, error: ChangedSince) -> bool:
    """Show the three versions and ask; False where nobody can be asked."""
    parts = [str(error)]
    for each in error.versions:
        for title, text in (
            ("before the run", each.before),
            ("as the run left it", each.left),
            ("now", each.now),
        ):
            parts += [f"--- {each.path}, {title} ---", "(not kept)" if text is None else text]
    question = "\n".join([*parts, "Replace what is there now? It is kept in the history. [y/N] "])
    answer = place.ask(question)
    return answer is not None and answer.strip().lower() in ("y", "yes")


def _store(place: Place) -> History:
    return History(place.project.history, place.settings.memory.history_keep)


def _visible(place: Place) -> tuple[list[RunEntry], int]:
    """Return the runs that may be shown here, newest first, and how many others there are."""
    entries = _store(place).entries()
    if place.live is None:
        return entries, 0
    folder = place.shown
    own = [each for each in entries if folder and each.session == folder.id]
    return own, len(entries) - len(own)


def _chosen(place: Place, name: str | None, *, standing: bool = False) -> RunEntry | None:
    """Return the run called `name`, else the newest one (that still stands), if there is one.

    Without a name, a change that was told of within the last ten minutes goes first.
    Raises `HistoryError` for a name that no run has, `CommandError` for another session's.
    """
    entries, _ = _visible(place)
    if name is None:
        usable = [e for e in entries if not standing or not (e.undoes or e.undone_by)]
        if standing and place.live is None:
            # What a page put into a cell is taken back there.
            usable = [each for each in usable if not document_history.cell_of(each)]
        told = [each for each in usable if each.job not in _OF_THEMSELVES and _lately(each)]
        # Of what writes itself a person sees the document in its cell, and not the notes.
        seen = [each for each in usable if document_history.cell_of(each) and _lately(each)]
        return next(iter([*told, *seen, *usable]), None)
    entry = _store(place).find(name)
    if entry not in entries and (entry.session or entry.engine != "person"):
        # What a person did by hand before the first cell belongs to no session, and they name it.
        raise CommandError(
            f"Run {entry.id[:SHORT]} belongs to another session, whose text would be saved with "
            f"this notebook. Use `ipymemory diff {entry.id[:SHORT]}` or `undo` in a terminal."
        )
    return entry


def _lately(entry: RunEntry) -> bool:
    """Return whether the run was made within the last ten minutes."""
    try:
        return datetime.now(UTC) - datetime.fromisoformat(entry.time) < _SEEN
    except (ValueError, TypeError):  # A line of the log that somebody edited, or without a zone.
        return False


def _of_others(count: int) -> str:
    return (
        f"Other sessions in this project: {counted(count, 'run')}; `ipymemory history` in a "
        "terminal lists them."
    )


def _line(entry: RunEntry) -> str:
    files = counted(len({each.path for each in entry.writes}), "file")
    state = " (undone)" if entry.undone_by else ""
    return f"- `{entry.id[:SHORT]}` {_when(entry)} **{entry.job}** {files}: {entry.reason}{state}"


def _when(entry: RunEntry) -> str:
    return entry.time[:19].replace("T", " ") + " UTC"


def fence(text: str) -> str:
    """Return a fence that nothing in `text` closes."""
    return "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)


RUN = Argument("RUN", "the run's id from the history, or how it begins; else the newest")
HISTORY = Command(
    "history",
    "list what engines wrote, newest first",
    _history,
    (Argument("-n", f"how many (default {SHOWN})", "N", number=True), JSON),
)
DIFF = Command("diff", "show what a run changed", _diff, (RUN, JSON))
UNDO = Command(
    "undo",
    "put back what was there before a run",
    _undo,
    (RUN, Argument("--force", "also where the file has been changed since"), JSON),
    details="Without RUN: the newest change. Notes and documents write themselves, so a memory or "
    "a dream of the last ten minutes goes before them, and what the page put into a cell goes "
    "before notes. An undo is in the history like any run, so it can be undone too.",
)
