"""The notes of a notebook file, kept as those of a session are; a part of `ingest`.

The built-in engine writes them from the cells and outputs that the file holds, under one run of
the history. What a person changed in them stays, as in every session's notes (behaviour S13), and
cells whose notes somebody took back are left out (L8). It may be killed between any two steps: the
next call ends with the same notes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ipymemory import markdown, notes_base, prompts
from ipymemory.config import Settings
from ipymemory.errors import FormatError
from ipymemory.excerpts import privacy_filter
from ipymemory.extractive import ExtractiveModel, NotesMaterial, merge
from ipymemory.held import Held, resolved
from ipymemory.history import History
from ipymemory.history_runs import hash_of
from ipymemory.memory_files.values import one_line
from ipymemory.notebooks import NotebookFile
from ipymemory.notes_base import Base
from ipymemory.places import Project, SessionFolder, config_folder
from ipymemory.tools import MOST_BYTES, carriage_returns
from ipymemory.turns import CellError, Entry, Output, Prose, Turn

JOB = "ingest"
ENGINE = "extractive"


def write(
    folder: SessionFolder,
    notebook: NotebookFile,
    project: Project,
    settings: Settings,
    history: History,
    warn: Callable[[str], None],
) -> str:
    """Bring the notes in `folder`, which is there, up to date; return the run that wrote, or "".

    `warn` gets a sentence about a template of the user's that was passed over. Raises
    `IpymemoryError`, and the notes are as they were then.
    """
    level = settings.privacy.outputs
    undone = history.undone_turns(JOB, folder.id)
    entries = [each for each in notebook.entries if mark_of(each) not in undone]
    if not entries:
        return ""
    path = resolved(folder.notes)
    template = prompts.notes_template(config_folder(project.home), warn)
    with Held(path) as held:
        seen = held.read(MOST_BYTES)
    notes = template if seen is None else _text(path, seen)
    base = template if seen is None else _base(folder, path, seen, notes, template, history)
    limits = settings.session_notes
    material = NotesMaterial(
        entries=tuple(_kept(each, level) for each in entries),
        notebook=notebook.path.name,
        notes=notes,
        base=base,
        path=str(path),
        section_tokens=limits.section_tokens,
        total_tokens=limits.total_tokens,
    )
    own = ExtractiveModel().written(material)
    new = merge(base, notes, own)
    crlf = seen is not None and carriage_returns(seen.decode("utf-8"))
    data = (new.replace("\n", "\r\n") if crlf else new).encode("utf-8", "replace")
    if data == seen:
        standing = history.standing(path)
        notes_base.write(folder, Base(own, standing.id if standing is not None else ""))
        return ""
    turns = tuple(dict.fromkeys(map(mark_of, entries)))
    reason = f"read {one_line(notebook.path.name, 120)}"
    run = history.begin(JOB, ENGINE, reason, turns, folder.id)
    try:
        run.write(path, data, seen=seen)
    finally:
        run.close()
    notes_base.write(folder, Base(own, run.id))
    return run.id


def mark_of(entry: Entry) -> str:
    """Return what a cell is known by in the history: what it holds, wherever it stands."""
    text = entry.source if isinstance(entry, Turn | Prose) else ""
    kind = "code" if isinstance(entry, Turn) else "text"
    return hashlib.sha256(f"{kind} {text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _text(path: Path, data: bytes) -> str:
    """Return the notes with plain line feeds; raises `FormatError` for what cannot be gone on with.

    The sentences are those of a session's notes (`notes_found`).
    """
    again = "delete or rename it, and it is made again from the notebook"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{path} is not UTF-8 text, so it is left as it is. Save it as UTF-8, or {again}."
        ) from error
    if not markdown.sections(text):
        raise FormatError(
            f'{path} has no section (a "# " header) any more, so it is left as it is. Undo that '
            f"change, or {again}."
        )
    return text.replace("\r\n", "\n") if carriage_returns(text) else text


def _base(
    folder: SessionFolder, path: Path, seen: bytes, notes: str, template: str, history: History
) -> str:
    """Return what the engine alone had written, from which a person's lines are told."""
    stored = notes_base.read(folder)
    standing = history.standing(path)
    if standing is None and history.knows(path):
        return template
    if standing is None or (stored.text and stored.run == standing.id):
        return stored.text or notes
    if any(each.path == path and each.after == hash_of(seen) for each in standing.writes):
        # Killed before the base was written, or an undo put these notes back: nobody changed them.
        return notes
    return stored.text or notes


def _kept(entry: Entry, level: str) -> Entry:
    """Return a cell with what ``Privacy.outputs`` lets through of its outputs (behaviour L7)."""
    if level == "all" or not isinstance(entry, Turn):
        return entry
    outputs = tuple(
        replace(each, text=privacy_filter(each.kind, each.text, each.mime, level))
        for each in (entry.outputs if level != "none" else ())
    )
    return replace(entry, outputs=_said(outputs), error=_error(entry.error, level))


def _said(outputs: Sequence[Output]) -> tuple[Output, ...]:
    return tuple(each for each in outputs if each.text or each.mime)


def _error(error: CellError | None, level: str) -> CellError | None:
    if error is None or level == "none":
        return error and CellError(error.name)
    value, traceback = (
        privacy_filter("error", each, (), level) for each in (error.value, error.traceback)
    )
    return CellError(error.name, value, traceback)
