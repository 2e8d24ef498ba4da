"""``notes``: the session notes, of this session or of a notebook file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from ipymemory import engines, markdown, notes_base, prompts
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError, PlaceError
from ipymemory.history import SHORT
from ipymemory.places import SessionFolder

ASK_SECONDS = 240.0
"""Longest wait for an update: above what one may take by `SessionNotes.minutes` (3)."""


def _notes(place: Place, arguments: Arguments) -> Page:
    section = " ".join(arguments["section"])
    if arguments["notebook"] is not None:
        if arguments["now"]:
            raise CommandError("Notes of a notebook file are always written now; leave out --now.")
        path = Path(arguments["notebook"]).expanduser()
        text, warnings = _of_file(place, path)
        page = _page(text, str(path), section)
        return replace(page, warnings=(*warnings, *_unfilled(text)))
    folder = place.shown
    if arguments["now"]:
        _update(place, folder)
        folder = place.folder or folder
    if folder is None:
        return Page("There are no notes yet: they begin with the first cell that runs.", {})
    try:
        text = folder.notes.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Page(
            "There are no notes yet: they are written when the kernel comes to rest. "
            f"{place.prefix}notes --now writes them now.",
            {},
        )
    except (OSError, UnicodeDecodeError) as error:
        raise PlaceError(
            f"The notes at {folder.notes} cannot be read ({error}). See what is there, or move "
            "the file away; new notes are written from the transcript."
        ) from error
    page = _page(text, str(folder.notes), section)
    engine = _engine(place, folder)
    not_yet = (_NOT_YET.format(place.prefix),) if engine == "extractive, for now" else ()
    return replace(
        page,
        data={**page.data, "engine": engine},
        warnings=_undone(place, folder, text)
        or not_yet
        or (_unfilled(text) if engine == "extractive" else ()),
    )


_NOT_YET = (
    "A model is set up, and these are still the built-in engine's notes: the model writes them "
    "once there is enough to read. {0}status says how much, {0}notes --now has it write now."
)


def _engine(place: Place, folder: SessionFolder) -> str:
    """Return who wrote the notes: ``anthropic``, ``extractive``, or that for now (S3)."""
    if notes_base.read(folder).by_model is not None:
        return "anthropic"
    chosen = engines.choose(place.project, place.settings, os.environ).name
    return "extractive, for now" if chosen == "anthropic" else "extractive"


def _undone(place: Place, folder: SessionFolder, text: str) -> tuple[str, ...]:
    """Return why the notes `text` are empty, where an undo has made them so."""
    from ipymemory.held import resolved
    from ipymemory.history import History

    if any(each.body.strip() for each in markdown.sections(text)):
        return ()
    history = History(place.project.history, place.settings.memory.history_keep)
    path = resolved(folder.notes)
    for entry in history.entries():
        if entry.undoes and not entry.undone_by and any(w.path == path for w in entry.writes):
            when = entry.time[:19].replace("T", " ")
            return (
                f"The notes are empty because an undo of {when} UTC took back what the engine "
                f"wrote; {place.prefix}undo {entry.id[:SHORT]} brings it back. New cells are noted "
                "as before.",
            )
    return ()


def _unfilled(text: str) -> tuple[str, ...]:
    """Return which sections of a template of the user's own stay empty, and what to do."""
    from ipymemory.extractive import fills

    names = [
        each.name
        for each in markdown.sections(text)
        if not each.body.strip() and not fills(each.name)
    ]
    if not names:
        return ()
    shown, stay = ", ".join(names), "stays" if len(names) == 1 else "stay"
    return (
        f"{shown} {stay} empty without a model: the built-in engine fills only sections named as "
        "in its own template. Write there yourself; what you write is kept.",
    )


def _update(place: Place, folder: SessionFolder | None) -> None:
    if place.live is not None:
        place.live.ask("update_notes", ASK_SECONDS, force=True)
    elif folder is not None:
        from ipymemory.project import update_notes

        update_notes(folder, place.project, place.settings)


def _of_file(place: Place, path: Path) -> tuple[str, list[str]]:
    """Return the notes of the notebook file `path`, and warnings; raises `NotebookError`."""
    from ipymemory import notebooks
    from ipymemory.extractive import write_notes
    from ipymemory.places import config_folder

    notebook = notebooks.read(path)
    warnings: list[str] = []
    template = prompts.notes_template(config_folder(place.home), warnings.append)
    settings = place.settings.session_notes
    text = write_notes(
        notebook.entries,
        path.name,
        template,
        section_tokens=settings.section_tokens,
        total_tokens=settings.total_tokens,
    )
    return text, warnings


def _page(text: str, path: str, name: str) -> Page:
    parts = markdown.sections(text)
    if name:
        found = markdown.section(text, name)
        if found is None:
            raise CommandError(
                f"The notes have no section {name!r}; they have "
                f"{', '.join(each.name for each in parts)}."
            )
        parts = (found,)
        text = "\n".join(filter(None, (found.header, found.italic, found.body)))
    data = {
        "path": path,
        "sections": [{"name": each.name, "text": each.body.strip()} for each in parts],
    }
    return Page(text, data, text=text)


NOTES = Command(
    "notes",
    "show the session notes, or those of a notebook file",
    _notes,
    (
        Argument("NOTEBOOK", "a notebook file; without it the session's own notes"),
        Argument("--section", "only this section", "NAME", words=True),
        Argument("--now", "update the notes first, whatever the gates say"),
        JSON,
    ),
    details="Notes are Markdown, written from cells and outputs by the extractive engine.",
)
