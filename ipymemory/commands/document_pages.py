"""What the pages about living documents share: which are stale, as text, JSON or annotations."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ipymemory.commands.amounts import counted
from ipymemory.commands.memories import one
from ipymemory.commands.pages import Page
from ipymemory.document_files import Found, Living

_UPDATE = "`ipymemory docs update` writes them anew."


def difference(before: str, after: str, name: str) -> str:
    """Return a unified diff without its last line feed and what a terminal would act on."""
    from ipymemory.history import unified

    text = "".join(unified(before, after, f"{name} now", f"{name} new")).rstrip("\n")
    return "".join(each if each in "\n\t" or each.isprintable() else "?" for each in text)


def checked(found: Found, format: str, *, check: bool) -> Page:
    """Return the page about what was found; with `check` its exit code tells what is stale."""
    stale = [each for each in found.documents if each.stale]
    code = (2 if found.problems else 1 if stale else 0) if check else 2 if found.problems else 0
    data = {
        "documents": [_as_dict(each) for each in found.documents],
        "problems": [{"path": name_of(path), "error": text} for path, text in found.problems],
        "files": found.files,
    }
    if format == "json":
        return Page("", data, code).as_json()
    if format == "github":
        lines = [_annotation("error", path, text) for path, text in found.problems]
        lines += [_annotation("warning", each.path, _why(each)) for each in stale]
        return Page("\n".join(lines), data, code, pure=True)
    shown = stale if check else found.documents
    said = [f"{name_of(each.path)}: {_why(each)}" for each in shown]
    said += [text for _, text in found.problems]
    end = _end(found, len(stale))
    if stale and check:
        end = f"{end} {_UPDATE}"
    below = [*([""] if said else []), end]
    # For a page each is made harmless as Markdown; in a terminal brackets stay as they are.
    markdown = "\n".join([*(f"- {one(each)}" for each in said), *below])
    return Page(markdown, data, code, "\n".join([*(f"- {plain(each)}" for each in said), *below]))


def _end(found: Found, stale: int) -> str:
    """Return the sentence below: how many there are, and how they stand."""
    number, files = len(found.documents), counted(found.files, "file")
    if not found.files:
        return "There is no notebook and no .md file here that can be looked at."
    if not number and len(found.problems) == found.files:
        return f"{files} could not be read, and nothing else was named."
    if not number:
        return f"There is no living document here; {files} looked at."
    what = counted(number, "living document")
    if not stale:
        how = "it is up to date" if number == 1 else "all are up to date"
    elif stale == number:
        how = "it is stale" if number == 1 else "all are stale"
    else:
        how = f"{stale} stale, {number - stale} up to date"
    return f"{what} in {files}: {how}."


def _why(document: Living) -> str:
    stale = document.stale
    title = f'"{document.title}"'
    if not stale:
        return f"{title} is up to date"
    return f"{title} is stale: {'; '.join(stale)}"


def _as_dict(document: Living) -> dict[str, Any]:
    return {
        "path": name_of(document.path),
        "title": document.title,
        "cell": document.cell,
        "stale": bool(document.stale),
        "reasons": list(document.stale),
        "updated": document.record.updated if document.record else "",
    }


def working(state: Mapping[str, Any], now: float | None = None) -> str:
    """Return how far an update of documents is, as one line; `now` by the monotonic clock."""
    found = ["Looking for living documents"]
    if title := state.get("title"):
        found = [f'Writing "{title}" in {state.get("file")}']
    if state.get("all", 0) > 1:
        found.append(f"{state['at']:,} of {state['all']:,}")
    if doing := state.get("doing"):
        found.append(str(doing))
    if (since := state.get("since")) is not None:
        found.append(f"{int((time.monotonic() if now is None else now) - since)} s")
    return " · ".join(found)


def name_of(path: Path) -> str:
    """Return `path` as people here would write it: below the current folder, else in full."""
    try:
        return path.relative_to(Path.cwd().resolve()).as_posix()
    except (ValueError, OSError):
        return str(path)


def _annotation(kind: str, path: Path, text: str) -> str:
    """Return a line that GitHub shows beside the file; what could begin another one is escaped."""
    name = _escaped(name_of(path)).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} file={name},title=living document::{_escaped(text)}"


def _escaped(text: str) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", "?", text)


def plain(text: str) -> str:
    """Return `text` with nothing in it that a terminal would act on."""
    return "".join(each if each.isprintable() else "?" for each in text)
