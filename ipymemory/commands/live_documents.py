"""``%memory docs`` in a running notebook: what waits for its documents, as a diff (M8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ipymemory import (
    document_acceptance,
    document_files,
    document_keeping,
    document_look,
    document_proposals,
    document_updates,
    sessions,
)
from ipymemory.commands.amounts import counted
from ipymemory.commands.document_pages import checked, difference
from ipymemory.commands.memories import one
from ipymemory.commands.pages import Arguments, Page
from ipymemory.commands.place import Place
from ipymemory.document_files import Found
from ipymemory.document_proposals import Proposal
from ipymemory.document_updates import STAYS, Updated
from ipymemory.documents import Document
from ipymemory.errors import CommandError, IpymemoryError
from ipymemory.history import SHORT, History
from ipymemory.turns import Happening

Named = TypeVar("Named", Proposal, Updated, "Offered")

OUTCOMES = {
    "applied": "its last update is in its cell; Ctrl+Z there, Undo update in the memory panel, or "
    "%memory undo takes it back",
    "accepted": "the text that you took is in its cell; Ctrl+Z there, Undo update in the memory "
    "panel, or %memory undo takes it back",
    "undone": "its last update was undone; the next one comes when other cells have run",
    "conflict": "its last update met with what was written meanwhile; the memory panel has it",
    "dismissed": "its last update was not wanted; the next one comes when other cells have run",
}
"""What is said of a document by what the page told of its last update (M7)."""

ASK_SECONDS = 1860.0
"""Longest wait for an update: milliseconds, or with a model up to three minutes a document."""


def run(place: Place, arguments: Arguments) -> Page | None:
    """Return the page of an action on this notebook; None for one that there is not."""
    action, title = arguments["action"] or "list", " ".join(arguments["words"])
    if action == "check":
        names = [Path(each) for each in arguments["words"]] or _here(place) or [Path()]
        return checked(document_files.look(names), arguments["format"] or "text", check=True)
    if action == "update":
        return _update(place, title)
    if action in ("list", "diff"):
        return _waiting(place, title, whole=action == "list")
    if action == "add":
        return add(place, title)
    if action == "accept":
        return _accept(place, title)
    return _apply(place, title) if action == "apply" else None


def _update(place: Place, title: str) -> Page:
    if place.live is None:
        return Page("")
    told = place.live.ask("update_documents", ASK_SECONDS)
    told = told if isinstance(told, dict) else {}
    page = _waiting(place, title, whole=False)
    said = [f"- {_line(str(each))} was written anew" for each in told.get("wrote") or ()]
    said += [f"- {one(str(each))}" for each in told.get("refused") or ()]
    said += [f"- {_line(str(each))}: {STAYS}." for each in told.get("stale") or ()]
    for each in told.get("waiting") or ():
        why = document_acceptance.sentence(one(str(each)), place.prefix)
        said.append(f"- {_line(str(each))}: {why}")
    if not said:
        return page
    return Page("\n".join([page.markdown, "", *said]), page.data)


def add(place: Place, name: str) -> Page:
    """Keep a ``.md`` file up to date from now on, and say so; raises `IpymemoryError`."""
    if not name:
        raise CommandError(f"The right form is: {place.prefix}docs add PATH")
    if place.mode in ("read", "off"):
        raise CommandError(
            f"No document is written in mode {place.mode}. {place.prefix}mode auto allows it."
        )
    path = document_keeping.add(Path(name).expanduser(), place.project, _top(place))
    return Page(
        f"{one(str(path))} is kept up to date from now on, from the saved notebooks around it: "
        f"after cells have run, and by ipymemory docs update. {place.prefix}undo takes back what "
        "is written.",
        {"path": str(path)},
    )


def _accept(place: Place, title: str) -> Page:
    """Let documents that came from elsewhere be kept up to date (M2)."""
    chosen = _chosen(_unaccepted(place), title)
    if not chosen:
        raise CommandError(f"No document waits to be accepted. {place.prefix}docs lists them.")
    if len({each.title for each in chosen}) > 1:
        titles = ", ".join(_line(each.title) for each in chosen[:8])
        raise CommandError(
            f"More than one document waits to be accepted ({titles}). Name one: {place.prefix}docs "
            "accept TITLE"
        )
    return accepted(place, chosen)


@dataclass(frozen=True, slots=True)
class Offered:
    """A document that may be accepted: where it stands and its head."""

    path: Path
    head: Document

    @property
    def title(self) -> str:
        """The title in its heading."""
        return self.head.title


def accepted(place: Place, documents: Sequence[Offered]) -> Page:
    """Let `documents` be kept up to date from now on, and say so; raises `IpymemoryError`."""
    document_acceptance.accept(place.project, [(each.path, each.head) for each in documents])
    files = [each.path for each in documents if each.path.suffix.casefold() == ".md"]
    if files:
        document_acceptance.register(place.project, files)
    names = ", ".join(dict.fromkeys(_line(each.title) for each in documents[:8]))
    more = f" and {len(documents) - 8} more" if len(documents) > 8 else ""
    return Page(
        f"Accepted: {names}{more}. After cells have run it is kept up to date from now on. With "
        "another heading or instruction line it has to be accepted again.",
        {"accepted": [{"title": each.title, "path": str(each.path)} for each in documents]},
    )


def _unaccepted(place: Place) -> list[Offered]:
    """Return the documents here that nobody accepted; those written here are, by themselves."""
    notebook = _notebook(place)
    found: list[Offered] = []
    if place.folder is not None:
        where = notebook if notebook is not None else place.folder.path
        heads = document_look.unaccepted(place.project, place.folder, notebook)
        found = [Offered(where, each) for each in heads]
    known = document_acceptance.known(place.project)
    rest = [each for each in known.files if each.exists()]
    if place.folder is None and notebook is not None:
        # Nothing has run yet, so nothing was written here either.
        rest.append(notebook)
    offered = [Offered(each.path, each.head) for each in document_files.look(rest).documents]
    return found + [
        e for e in offered if document_acceptance.key(e.path, e.head) not in known.accepted
    ]


def _waiting(place: Place, title: str, *, whole: bool) -> Page:
    told = _told(place)
    waiting = document_proposals.waiting(_chosen(_proposals(place), title), told)
    files = _chosen(_files(place), title)
    found = _saved(place) if whole else Found()
    unaccepted = _unaccepted(place) if whole else []
    offered = {document_acceptance.key(each.path, each.head) for each in unaccepted}
    data = {
        "documents": [
            {
                "title": each.title,
                "cell": each.cell,
                "reasons": list(each.stale),
                "last": _outcome(told, each.cell),
                "accepted": document_acceptance.key(each.path, each.head) not in offered,
            }
            for each in found.documents
        ],
        "waiting": [
            {"title": each.title, "cell": each.cell, "made": each.made, "source": each.source}
            for each in waiting
        ],
        "files": [{"title": each.title, "path": str(each.path)} for each in files],
    }
    lines: list[str] = []
    if whole and found.documents:
        lines += [f"{counted(len(found.documents), 'living document')} here:", ""]
        for living in found.documents:
            said = OUTCOMES.get(_outcome(told, living.cell))
            if document_acceptance.key(living.path, living.head) in offered:
                said = document_acceptance.sentence(one(living.title), place.prefix)
            lines.append(f"- {_line(living.title)}{f': {said}' if said else ''}")
        lines.append("")
    for each in waiting:
        diff = difference(each.base, each.source, _line(each.title))
        fence = _fence(diff)
        lines += [f"An update of {_line(each.title)} waits:", "", f"{fence}diff", diff, fence, ""]
    for file in files:
        diff = difference(file.before, file.after, one(file.path.name))
        fence = _fence(diff)
        name = one(file.path.name)
        lines += [f"An update of {_line(file.title)} in {name} waits:", "", f"{fence}diff", diff]
        lines += [fence, ""]
    if files:
        lines.append(f"`{place.prefix}docs apply TITLE` writes the file.")
    if waiting:
        lines.append(
            f"`{place.prefix}docs apply TITLE` puts the text into a new cell below: make that a "
            "markdown cell and remove the old one. The open notebook is not written by us."
        )
    elif files:
        pass
    elif whole and not found.documents:
        lines.append(
            "There is no living document here. A markdown cell that begins '# MAGIC DOC: title' "
            "becomes one once the notebook is saved."
        )
    elif not whole or len(offered) < len(found.documents):
        lines.append("No update waits; the documents say what is so, as far as anything has run.")
    return Page("\n".join([*lines, *(f"- {one(text)}" for _, text in found.problems)]), data)


def _apply(place: Place, title: str) -> Page:
    waiting: list[Proposal | Updated] = [*_chosen(_proposals(place), title)]
    waiting += _chosen(_files(place), title)
    if not waiting:
        raise CommandError(f"No update waits for it. {place.prefix}docs update makes them anew.")
    if len(waiting) > 1:
        titles = ", ".join(_line(each.title) for each in waiting[:8])
        raise CommandError(
            f"More than one update waits ({titles}). Name one: {place.prefix}docs apply TITLE"
        )
    one = waiting[0]
    if isinstance(one, Updated):
        return _write(place, one)
    return Page(
        f"The new text of {_line(one.title)} is in the cell below. Make it a markdown cell (Esc, "
        "then M), run it, and remove the old one.",
        {"title": one.title, "cell": one.cell, "source": one.source},
        next_input=one.source,
    )


def _write(place: Place, file: Updated) -> Page:
    """Write a ``.md`` file, as a person said that it may be; raises `IpymemoryError`."""
    session = place.folder.id if place.folder is not None else ""
    done = document_updates.update_file(file.path, _history(place), dry=False, session=session)
    runs = [each.run for each in done if each.run]
    back = f"`{place.prefix}undo {runs[0][:SHORT]}` takes it back." if runs else ""
    return Page(
        f"{_line(file.title)} is written to {one(str(file.path))}. {back}".rstrip(),
        {"title": file.title, "path": str(file.path), "run": runs[0] if runs else ""},
    )


def _told(place: Place) -> dict[str, Happening]:
    """Return what the page told last of each document's update, by its cell."""
    return document_proposals.told(place.folder) if place.folder is not None else {}


def _outcome(told: dict[str, Happening], cell: str) -> str:
    return str(told[cell].details["outcome"]) if cell in told else ""


def _proposals(place: Place) -> list[Proposal]:
    return document_proposals.read(place.folder) if place.folder is not None else []


def _chosen(proposals: Sequence[Named], title: str) -> list[Named]:
    """Return those whose title is `title`, else begins so, whatever its case."""
    wanted = title.casefold()
    exact = [each for each in proposals if each.title.casefold() == wanted]
    return exact or [each for each in proposals if each.title.casefold().startswith(wanted)]


def _saved(place: Place) -> Found:
    return document_files.look(_here(place))


def _here(place: Place) -> list[Path]:
    """Return the notebook and the ``.md`` files that were found or named, as far as they are."""
    path = _notebook(place)
    paths = [path] if path is not None else []
    paths += document_acceptance.known(place.project).files
    return [each for each in paths if each.exists()]


def _files(place: Place) -> list[Updated]:
    """Return the updates of ``.md`` files that wait for a yes, in the mode that asks for one."""
    if place.mode != "confirm":
        return []
    return document_keeping.pending(place.project, _top(place), _history(place))


def _history(place: Place) -> History:
    return History(place.project.history, place.settings.memory.history_keep)


def _top(place: Place) -> Path:
    path = _notebook(place)
    return document_keeping.top_of(place.project, path.parent if path else Path.cwd())


def _notebook(place: Place) -> Path | None:
    """Return the notebook of this session, None in a terminal."""
    if place.folder is None:
        return place.live.notebook if place.live is not None else None
    try:
        told = sessions.read(place.folder).notebook
    except IpymemoryError:
        return None
    return Path(told) if told.endswith(".ipynb") else None


def _line(title: str) -> str:
    return f'"{one(title)}"'


def _fence(text: str) -> str:
    """Return a fence that nothing in `text` closes."""
    return "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
