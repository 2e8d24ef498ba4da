"""``docs``: living documents, what they rest on, and whether that is still so."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipymemory import document_files
from ipymemory.commands import live_documents
from ipymemory.commands.amounts import counted
from ipymemory.commands.document_pages import checked, difference, name_of, plain, working
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError
from ipymemory.history import SHORT

if TYPE_CHECKING:
    from ipymemory.cost import Spent
    from ipymemory.document_files import Living
    from ipymemory.document_model import ClosedDocuments
    from ipymemory.document_updates import Updated

FORMATS = ("text", "json", "github")
ENGINES = ("extractive", "anthropic")
ACTIONS = ("list", "check", "update", "accept", "add", "diff", "apply")
IN_NOTEBOOKS = ("diff", "apply")
"""What only a running notebook has: its updates wait until somebody takes them."""


def _docs(place: Place, arguments: Arguments) -> Page:
    page = live_documents.run(place, arguments) if place.live else _without_place(arguments)
    if page is not None:
        return page
    if arguments["action"] in IN_NOTEBOOKS:
        raise CommandError(
            f"docs {arguments['action']} is for a running notebook: type %memory docs "
            f"{arguments['action']} there."
        )
    if arguments["action"] == "add":
        return live_documents.add(place, " ".join(arguments["words"]))
    if arguments["action"] == "accept":
        return _accept(place, arguments)
    if arguments["action"] == "update":
        return _update(place, arguments)
    raise CommandError(
        f"There is no {place.prefix}docs {arguments['action']}. It has {', '.join(ACTIONS)}."
    )


def _without_place(arguments: Arguments) -> Page | None:
    """Return the page of what needs no home, no session and no engine; None for the rest."""
    action = arguments["action"] or "list"
    if action not in ("list", "check"):
        return None
    format = arguments["format"] or "text"
    if format not in FORMATS:
        raise CommandError(f"--format takes {', '.join(FORMATS)}, not {format!r}.")
    found = document_files.look([Path(each) for each in arguments["words"]] or [Path()])
    return checked(found, format, check=action == "check")


def _accept(place: Place, arguments: Arguments) -> Page:
    """Accept all documents in the files that are named (M2)."""
    if not arguments["words"]:
        raise CommandError(f"The right form is: {place.prefix}docs accept PATHS")
    found = document_files.look([Path(each) for each in arguments["words"]])
    for _, text in found.problems:
        raise CommandError(text)
    if not found.documents:
        raise CommandError("There is no living document in what was named.")
    offered = [live_documents.Offered(each.path, each.head) for each in found.documents]
    return live_documents.accepted(place, offered)


def _update(place: Place, arguments: Arguments) -> Page:
    """Write closed files anew; of a running notebook nothing (M8)."""
    from ipymemory import document_updates
    from ipymemory.document_model import ClosedDocuments

    wanted = arguments["engine"] or ""
    if wanted not in ("", *ENGINES):
        raise CommandError(f"--engine takes {' or '.join(ENGINES)}, not {wanted!r}.")
    if place.mode in ("read", "off"):
        raise CommandError(
            f"No document is written in mode {place.mode}. {place.prefix}mode auto allows it."
        )
    dry = bool(arguments["dry_run"])
    memory = place.settings.memory
    holders = document_updates.Holders(place.home, share_worktrees=memory.share_worktrees)
    names = [Path(each) for each in arguments["words"]] or [Path()]
    with _watched(place, quiet=bool(arguments[JSON.key])) as watch:
        by_model = ClosedDocuments(place.settings, wanted, prefix=place.prefix, does=watch.does)
        try:
            done, problems = document_updates.update(
                names,
                holders,
                memory.history_keep,
                dry=dry,
                writer=by_model.writer,
                begins=watch.begins,
            )
        finally:
            by_model.close()
    return _updated(place, done, problems, by_model, dry=dry)


class _Watch:
    """Shows on a screen which document is being written, and what a model does."""

    def __init__(self, show: Callable[[Mapping[str, Any]], None]) -> None:
        self._show = show
        self._state: dict[str, Any] = {"since": time.monotonic()}
        show(self._state)

    def begins(self, document: Living, all: int) -> None:
        """Take in which document is next, of how many."""
        at = self._state.get("at", 0) + 1
        told = {"title": document.title, "file": name_of(document.path), "at": at, "all": all}
        self._state = {"since": self._state["since"], **told}
        self._show(self._state)

    def does(self, line: str) -> None:
        """Take in what the model does."""
        self._state = {**self._state, "doing": line}
        self._show(self._state)


@contextlib.contextmanager
def _watched(place: Place, *, quiet: bool) -> Iterator[_Watch]:
    """Yield what shows the person how far an update is, as long as the block runs."""
    if place.screen is None or quiet:
        yield _Watch(lambda state: None)
        return
    screen = place.screen(working)
    try:
        yield _Watch(screen.show)
    finally:
        screen.done()


def _updated(
    place: Place,
    done: Sequence[Updated],
    problems: Sequence[tuple[Path, str]],
    by_model: ClosedDocuments,
    *,
    dry: bool,
) -> Page:
    data = {
        "documents": [
            {
                "path": name_of(each.path),
                "title": each.title,
                "changed": not each.fresh,
                "stale": each.stale,
                "engine": "anthropic" if each.by_model else "extractive",
                "notes": list(each.notes),
                "run": each.run,
                "diff": difference(each.before, each.after, name_of(each.path)),
            }
            for each in done
        ],
        "problems": [{"path": name_of(path), "error": text} for path, text in problems],
        "dry_run": dry,
        "calls": by_model.spent.calls,
        "usd": by_model.spent.money,
    }
    lines: list[str] = []
    for each in done:
        if not each.fresh and dry:
            lines.append(difference(each.before, each.after, name_of(each.path)))
        elif not each.fresh:
            undo = f"{place.prefix}undo {each.run[:SHORT]}"
            said = "says now that it is stale" if each.stale else "is up to date"
            lines.append(
                f'- {name_of(each.path)}: "{plain(each.title)}" {said}; `{undo}` takes it back'
            )
        kept = each.by_model or each.fresh or each.stale
        instead = "" if kept else " The built-in engine wrote instead."
        lines += [
            f'- {name_of(each.path)}: "{plain(each.title)}": {plain(note).rstrip(".")}.{instead}'
            for note in each.notes
        ]
    lines += [f"- {plain(text)}" for text in (*(text for _, text in problems), *by_model.said)]
    if by_model.spent.calls:
        lines.append(f"- {_cost(by_model.spent)}")
    lines += [*([""] if lines else []), _ending(done, dry=dry)]
    return Page("", data, 2 if problems else 0, text="\n".join(lines))


def _ending(done: Sequence[Updated], *, dry: bool) -> str:
    """Return the sentence below an update."""
    if not done:
        return "There is no living document that could be written here."
    stale = sum(each.stale for each in done)
    changed = sum(not each.fresh for each in done if not each.stale)
    same = len(done) - stale - changed
    left = f"{counted(stale, 'living document')} {'is' if stale == 1 else 'are'} left to a model."
    if stale:
        return (
            f"{_ending([e for e in done if not e.stale], dry=dry)} {left}"
            if same + changed
            else left
        )
    if not changed:
        rest = "is up to date" if same == 1 else "are up to date"
        return f"Nothing to write: {counted(same, 'living document')} {rest}."
    what = "would be written anew" if dry else "written anew"
    also = f", {same} {'was' if same == 1 else 'were'} up to date already" if same else ""
    return f"{counted(changed, 'living document')} {what}{also}."


def _cost(spent: Spent) -> str:
    money = f", {spent.money:.4f} USD" if not spent.unpriced else ""
    tokens = spent.usage.prompt + spent.usage.output
    return f"The model took {counted(spent.calls, 'call')}, {tokens:,} tokens{money}."


DOCS = Command(
    "docs",
    "list living documents, check them, write them anew",
    _docs,
    (
        Argument(
            "ACTION", "list, check, update, accept, add; in a notebook also diff, apply", "ACTION"
        ),
        Argument(
            "WORDS", "files or folders; in a notebook a document's title", "PATHS", words=True
        ),
        Argument("--format", "text, json or github (annotations)", "FORMAT"),
        Argument("--dry-run", "with update: show what would be written"),
        Argument("--engine", "with update: who writes, extractive or anthropic", "NAME"),
        JSON,
    ),
    details=(
        "A markdown cell or a .md file that begins with a heading '# MAGIC DOC: title' is one. "
        "check needs no model and no home folder; it ends with 0 when all are up to date, 1 when "
        "one is stale, 2 when a file cannot be read. update writes closed files, only between its "
        "own two comment lines, with the way back in the history; a model, where one was agreed to "
        "(engine), edits the document itself. In a running notebook an update waits: diff shows "
        "it, apply puts it into a new cell below. What came with a notebook, and a .md file that "
        "was found in the project, is left as it is until accept lets it be kept up to date, once; "
        "add PATH names a file."
    ),
    anywhere=_without_place,
)
