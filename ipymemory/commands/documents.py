"""``docs``: living documents, what they rest on, and whether that is still so."""

from __future__ import annotations

from pathlib import Path

from ipymemory import document_files
from ipymemory.commands import live_documents
from ipymemory.commands.amounts import counted
from ipymemory.commands.document_pages import checked, difference, name_of, plain
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError
from ipymemory.history import SHORT

FORMATS = ("text", "json", "github")
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
    return live_documents.accepted(place, found.documents)


def _update(place: Place, arguments: Arguments) -> Page:
    """Write closed files anew; of a running notebook nothing (M8)."""
    from ipymemory import document_updates

    if arguments["engine"] not in (None, "extractive"):
        raise CommandError(
            "Documents are written by the built-in engine; --engine extractive names it."
        )
    if place.mode in ("read", "off"):
        raise CommandError(
            f"No document is written in mode {place.mode}. {place.prefix}mode auto allows it."
        )
    dry = bool(arguments["dry_run"])
    memory = place.settings.memory
    holders = document_updates.Holders(place.home, share_worktrees=memory.share_worktrees)
    names = [Path(each) for each in arguments["words"]] or [Path()]
    done, problems = document_updates.update(names, holders, memory.history_keep, dry=dry)
    changed = [each for each in done if not each.fresh]
    data = {
        "documents": [
            {
                "path": name_of(each.path),
                "title": each.title,
                "changed": not each.fresh,
                "run": each.run,
                "diff": difference(each.before, each.after, name_of(each.path)),
            }
            for each in done
        ],
        "problems": [{"path": name_of(path), "error": text} for path, text in problems],
        "dry_run": dry,
    }
    lines: list[str] = []
    for each in changed:
        if dry:
            lines.append(difference(each.before, each.after, name_of(each.path)))
        else:
            undo = f"{place.prefix}undo {each.run[:SHORT]}"
            title = plain(each.title)
            lines.append(f'- {name_of(each.path)}: "{title}" is up to date; `{undo}` takes it back')
    lines += [f"- {plain(text)}" for _, text in problems]
    what = "would be written anew" if dry else "written anew"
    same = len(done) - len(changed)
    count = counted(len(changed), "living document")
    said = f"{count} {what}, {same} up to date already."
    lines += [*([""] if lines else []), said[0].upper() + said[1:]]
    return Page("", data, 2 if problems else 0, text="\n".join(lines))


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
        Argument("--engine", "with update: who writes (extractive)", "NAME"),
        JSON,
    ),
    details=(
        "A markdown cell or a .md file that begins with a heading '# MAGIC DOC: title' is one. "
        "check needs no model and no home folder; it ends with 0 when all are up to date, 1 when "
        "one is stale, 2 when a file cannot be read. update writes closed files, only between its "
        "own two comment lines, with the way back in the history. In a running notebook an update "
        "waits: diff shows it, apply puts it into a new cell below. A .md file of the project that "
        "was found is left as it is until accept lets it be kept up to date; add PATH names one."
    ),
    anywhere=_without_place,
)
