"""Living documents brought up to date: closed files on disk, by the command line alone (M8).

The extractive engine writes what is true from the notebook itself, between its own two lines;
code holds that the heading and the instruction line stay byte for byte (M5) and that nothing else
changes. History first, then the file, and only if it still is what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ipymemory import document_files, document_records, document_text, notebooks, places, sessions
from ipymemory.document_files import Living
from ipymemory.document_records import BEGIN, Cell
from ipymemory.document_text import ENGINE, MODEL, Body
from ipymemory.document_writers import Asked, Write
from ipymemory.errors import FormatError, IpymemoryError, NotebookError, PlaceError
from ipymemory.extractive import Chapter
from ipymemory.history import History
from ipymemory.notebook_spans import with_cell
from ipymemory.places import Project
from ipymemory.turns import Turn, utc_now

JOB = "magic_docs"

STAYS = (
    "a model wrote it, and its cells have changed since. It says so itself now, and a model writes "
    "it anew; without its text the built-in engine does"
)
"""What is said of a document that is left to a model (M5)."""


@dataclass(frozen=True, slots=True)
class Updated:
    """A document with the text it had and the one it gets; `run` is its write in the history.

    `fresh` tells that there was nothing to do, `by_model` who wrote, and `notes` what a model was
    refused or failed in. `stale`: it is a model's own text and stays stale until a model comes.
    """

    path: Path
    title: str
    before: str
    after: str
    fresh: bool
    run: str = ""
    by_model: bool = False
    notes: tuple[str, ...] = ()
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A notebook as it was read once, so that text and record come from the same bytes."""

    path: Path
    content: Mapping[str, Any]
    turns: tuple[Turn, ...]
    cells: tuple[Cell, ...]


def source(path: Path, data: bytes) -> Source:
    """Return the notebook `path` in `data`, its turns labelled as a document names cells.

    Raises `NotebookError`.
    """
    content = document_files.content(path, data)
    found = document_files.code_cells(content)
    # `notebooks` counts what is a cell at all, from 1.
    places_of = [at for at, each in enumerate(content["cells"]) if isinstance(each, dict)]
    labels = {f"cell {places_of.index(at) + 1}": cell.label[1:-1] for at, cell in found}
    turns: tuple[Turn, ...] = ()
    if found:
        turns = tuple(
            replace(each, id=labels[each.id])
            for each in notebooks.parse(path, data).entries
            if isinstance(each, Turn) and each.id in labels
        )
    return Source(path, content, turns, tuple(cell for _, cell in found))


def update_file(
    path: Path,
    history: History,
    *,
    dry: bool,
    title: str = "",
    session: str = "",
    turns: Sequence[str] = (),
    write: Write | None = None,
    begins: Callable[[Living], None] = lambda document: None,
) -> list[Updated]:
    """Bring the documents in the file `path` up to date; return each, in order.

    With `dry` nothing is written; `title` picks those that begin with it. `write` is asked for
    each that is stale, or stands there without its text; where it has none, and without it, the
    built-in engine writes. `begins` is told of each as it is looked at. Raises `IpymemoryError`,
    and nothing of the file is written then.
    """
    data = document_files.bytes_of(path)
    documents = document_files.of_file(path, data)
    documents = [each for each in documents if each.title.casefold().startswith(title.casefold())]
    if not documents:
        return []
    new, found = data, []
    told: tuple[Body, list[Cell]] | None = None
    for each in documents:
        begins(each)
        try:
            # What is told of a notebook does not change with the text of its documents.
            told = told or _told(each, data)
            new, one = _with(each, new, told, write)
        except FormatError as error:
            if isinstance(error, NotebookError):
                raise
            raise FormatError(f'{path}, "{each.title}": {error}') from error
        found.append(one)
    if dry or new == data:
        return found
    titles = ", ".join(each.title for each in found if not each.fresh)
    engine = MODEL if any(each.by_model for each in found) else ENGINE
    run = history.begin(JOB, engine, f"docs update of {path.name}: {titles[:200]}", turns, session)
    try:
        run.write(path, new, seen=data)
    finally:
        run.close()
    return [replace(each, run=run.id) if not each.fresh else each for each in found]


def _told(document: Living, data: bytes) -> tuple[Body, list[Cell]]:
    """Return what is told of the notebooks that a document rests on, and their cells."""
    path = document.path
    if document.index >= 0:
        one = source(path, data)
        return Body([Chapter(path.name, one.turns)]), list(one.cells)
    sources = [source(each, document_files.bytes_of(each)) for each in document.around]
    names = [each.path.relative_to(path.parent).as_posix() for each in sources]
    named = list(zip(names, sources, strict=True))
    cells = [cell for name, each in named for cell in document_files.called(each.cells, name)]
    return Body([Chapter(name, each.turns) for name, each in named]), cells


def _with(
    document: Living, data: bytes, told: tuple[Body, list[Cell]], write: Write | None
) -> tuple[bytes, Updated]:
    """Return the file's `data` with `document` up to date in it, and what came of it."""
    path, prose = document.path, document.index < 0
    body, cells = told
    stale = document_records.reasons(document.record, path.name, cells)
    after, by_model, left = document.text, False, False
    notes: tuple[str, ...] = ()
    # What a model wrote has none of our lines in it, and stays while it is true.
    ours = BEGIN in document.text or not document.text[document.head.end :].strip()
    if write is not None and (stale or ours):
        answer = write(
            Asked(
                document.head,
                _without_record(document.text) if prose else document.text,
                path.name,
                body.chapters,
                tuple(cells),
                document.record,
                path.parent,
                document_files.MOST_WRITTEN,
                prose,
                bool(stale),
            )
        )
        notes, by_model = answer.notes, answer.text is not None
        after = document.text if answer.text is None else answer.text
    if not by_model and (stale or (write is None and ours)):
        known = document.record
        # Below a model's own text the record stays the last line of a file.
        whole = _without_record(document.text) if prose and known and known.by else document.text
        made = document_text.written(document.head, whole, body, known, stale)
        after, left = made.text, made.stale
        if known is not None and whole != document.text:
            after = document_records.put_in_text(after, known)
        notes = (*notes, STAYS) if left else notes
    if after == document.text and (left or not stale):
        return data, Updated(path, document.title, after, after, True, "", False, notes, left)
    engine = MODEL if by_model else ENGINE
    by = document_text.hand(after, engine, document.record)
    record = document_records.made(utc_now(), path.name, cells, by)
    if left and document.record is not None:
        # It rests on what it rested on before.
        record = document.record
    if prose:
        after = document_records.put_in_text(after, record)
        new = after.encode("utf-8")
    else:
        new = with_cell(path, data, document.index, after, "doc", record.as_dict())
    updated = Updated(path, document.title, document.text, after, False, "", by_model, notes, left)
    return new, updated


def _without_record(text: str) -> str:
    """Return the text of a file without its record, which is ours and no text."""
    _, bare = document_records.in_text(text)
    if bare == text:
        return text
    return bare.rstrip("\r\n") + ("\r\n" if "\r\n" in bare else "\n")


class Holders:
    """Tells which notebooks a live session holds; each project's sessions are read once."""

    def __init__(self, home: Path, *, share_worktrees: bool) -> None:
        self._home = home
        self._share = share_worktrees
        self._held: dict[str, frozenset[Path]] = {}

    def project(self, path: Path) -> Project:
        """Return the project that `path` belongs to; raises `PlaceError`."""
        return places.project_of(path, self._home, share_worktrees=self._share)

    def check(self, path: Path, project: Project) -> None:
        """Raise `PlaceError` when a kernel that lives works in the notebook `path`."""
        if project.key not in self._held:
            self._held[project.key] = frozenset(_held(project))
        if places.real_path(path) in self._held[project.key]:
            raise PlaceError(
                f"{path} is open: a kernel with ipymemory works in it, and would lose or overwrite "
                "what is written now. Shut that kernel down, or type %memory docs update there."
            )


def _held(project: Project) -> list[Path]:
    now = datetime.now(UTC)
    return [
        places.real_path(Path(record.notebook))
        for record, folder in sessions.every(project)
        if record.notebook and sessions.owned(record, folder, now)
    ]


def update(
    names: Sequence[Path],
    holders: Holders,
    keep: int,
    *,
    dry: bool = False,
    writer: Callable[[Project], Write | None] = lambda project: None,
    begins: Callable[[Living, int], None] = lambda document, all: None,
) -> tuple[list[Updated], list[tuple[Path, str]]]:
    """Bring all documents in files and below folders up to date.

    `writer` says who writes in a project, None for the built-in engine; it may raise
    `IpymemoryError`. `begins` is told of each document as it is looked at, and how many there are.
    Returns the documents, and a sentence for each file that could not be done.
    """
    looked = document_files.look(names)
    done: list[Updated] = []
    problems = list(looked.problems)
    for path in dict.fromkeys(each.path for each in looked.documents):
        try:
            project = holders.project(path)
            if not dry:
                holders.check(path, project)
            history = History(project.history, keep)
            write = writer(project)
            done += update_file(
                path,
                history,
                dry=dry,
                write=write,
                begins=lambda document: begins(document, len(looked.documents)),
            )
        except IpymemoryError as error:
            problems.append((path, str(error)))
    return done, problems
