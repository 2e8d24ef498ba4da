"""``docs``: living documents, what they rest on, and whether that is still so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ipymemory import document_files
from ipymemory.commands.amounts import counted
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.commands.runs import SHORT
from ipymemory.document_files import Found, Living
from ipymemory.errors import CommandError

FORMATS = ("text", "json", "github")
ACTIONS = ("list", "check", "update")

_UPDATE = "`ipymemory docs update` writes them anew."


def _docs(place: Place, arguments: Arguments) -> Page:
    page = _without_place(arguments)
    if page is not None:
        return page
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
    return _checked(found, format, check=action == "check")


def _update(place: Place, arguments: Arguments) -> Page:
    """Write closed files anew; of a running notebook nothing (M8)."""
    from ipymemory.jobs import magic_docs

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
    holders = magic_docs.Holders(place.home, share_worktrees=memory.share_worktrees)
    names = [Path(each) for each in arguments["words"]] or [Path()]
    done, problems = magic_docs.update(names, holders, memory.history_keep, dry=dry)
    changed = [each for each in done if not each.fresh]
    data = {
        "documents": [
            {
                "path": _name(each.path),
                "title": each.title,
                "changed": not each.fresh,
                "run": each.run,
                "diff": _diff(each.before, each.after, _name(each.path)),
            }
            for each in done
        ],
        "problems": [{"path": _name(path), "error": text} for path, text in problems],
        "dry_run": dry,
    }
    lines: list[str] = []
    for each in changed:
        if dry:
            lines.append(_diff(each.before, each.after, _name(each.path)))
        else:
            undo = f"{place.prefix}undo {each.run[:SHORT]}"
            title = _plain(each.title)
            lines.append(f'- {_name(each.path)}: "{title}" is up to date; `{undo}` takes it back')
    lines += [f"- {_plain(text)}" for _, text in problems]
    what = "would be written anew" if dry else "written anew"
    same = len(done) - len(changed)
    count = counted(len(changed), "living document")
    said = f"{count} {what}, {same} up to date already."
    lines += [*([""] if lines else []), said[0].upper() + said[1:]]
    return Page("", data, 2 if problems else 0, text="\n".join(lines))


def _diff(before: str, after: str, name: str) -> str:
    from ipymemory.history import unified

    return "".join(unified(before, after, f"{name} now", f"{name} new")).rstrip("\n")


def _checked(found: Found, format: str, *, check: bool) -> Page:
    stale = [each for each in found.documents if each.stale]
    code = (2 if found.problems else 1 if stale else 0) if check else 2 if found.problems else 0
    data = {
        "documents": [_as_dict(each) for each in found.documents],
        "problems": [{"path": _name(path), "error": text} for path, text in found.problems],
        "files": found.files,
    }
    if format == "json":
        return Page("", data, code).as_json()
    if format == "github":
        lines = [_annotation("error", path, text) for path, text in found.problems]
        lines += [_annotation("warning", each.path, _why(each)) for each in stale]
        return Page("\n".join(lines), data, code, pure=True)
    shown = stale if check else found.documents
    lines = [f"- {_name(each.path)}: {_plain(_why(each))}" for each in shown]
    lines += [f"- {_plain(text)}" for _, text in found.problems]
    count = counted(len(found.documents), "living document")
    fresh = len(found.documents) - len(stale)
    said = f"{count} in {counted(found.files, 'file')}: {fresh} up to date, {len(stale)} stale."
    if stale and check:
        said = f"{said} {_UPDATE}"
    return Page(
        "\n".join([*lines, *([""] if lines else []), said[0].upper() + said[1:]]), data, code
    )


def _why(document: Living) -> str:
    stale = document.stale
    title = f'"{document.title}"'
    if not stale:
        return f"{title} is up to date"
    return f"{title} is stale: {'; '.join(stale)}"


def _as_dict(document: Living) -> dict[str, Any]:
    return {
        "path": _name(document.path),
        "title": document.title,
        "cell": document.cell,
        "stale": bool(document.stale),
        "reasons": list(document.stale),
        "updated": document.record.updated if document.record else "",
    }


def _name(path: Path) -> str:
    """Return `path` as people here would write it: below the current folder, else in full."""
    try:
        return path.relative_to(Path.cwd().resolve()).as_posix()
    except (ValueError, OSError):
        return str(path)


def _annotation(kind: str, path: Path, text: str) -> str:
    """Return a line that GitHub shows beside the file; what could begin another one is escaped."""
    name = _escaped(_name(path)).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} file={name},title=living document::{_escaped(text)}"


def _escaped(text: str) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", "?", text)


def _plain(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)


DOCS = Command(
    "docs",
    "list living documents, check them, write them anew",
    _docs,
    (
        Argument("ACTION", "list (by itself), check or update", "list|check|update"),
        Argument(
            "WORDS", "notebooks, .md files or folders; else the current folder", "PATHS", words=True
        ),
        Argument("--format", "text, json or github (annotations)", "FORMAT"),
        Argument("--dry-run", "with update: show what would be written"),
        Argument("--engine", "with update: who writes (extractive)", "NAME"),
        JSON,
    ),
    details=(
        "A markdown cell or a .md file that begins with a heading '# MAGIC DOC: title' is one. "
        "check needs no model and no home folder; it ends with 0 when all are up to date, 1 when "
        "one is stale, 2 when a file cannot be read. update writes closed files, only "
        "between its own two comment lines, with the way back in the history."
    ),
    anywhere=_without_place,
)
