"""``ingest``: notes and memories from many notebook files, on the command line."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipymemory.commands.amounts import counted
from ipymemory.commands.document_pages import name_of, plain
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError

if TYPE_CHECKING:
    from ipymemory.ingest import Found, Read

MOST_LISTED = 200
"""Notebooks that were read which the text names one by one; what failed is all named."""

MOST_FOLDERS = 8
"""Folders of projects that the text names."""

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes by which a shell knows that a signal ended a command."""


class _Terminated(KeyboardInterrupt):
    """Somebody asked the process to end: it says how far it is, as one that is interrupted."""


def _ingest(place: Place, arguments: Arguments) -> Page:
    from ipymemory import ingest  # late: the engine is no matter of other commands
    from ipymemory.ingest_shown import Bar

    if place.settings.held:
        raise CommandError(f"Nothing was read. {place.settings.held}")
    dry = bool(arguments["dry_run"])
    done: list[Read] = []
    reader = ingest.Ingest(place.home, place.settings, dry=dry)
    found, code = ingest.Found(), 0
    try:
        with _terminated():
            found = ingest.find([Path(each) for each in arguments["paths"]])
            with Bar(len(found.paths)) as bar:
                for each in reader.read(found.paths):
                    done.append(each)
                    bar.done(each.path)
    except KeyboardInterrupt as error:
        code = TERMINATED if isinstance(error, _Terminated) else INTERRUPTED
    failed = bool(found.problems) or any(each.status == "failed" for each in done)
    data = _data(found, done, dry=dry) | {"interrupted": bool(code)}
    text = "\n".join(_lines(found, done, place.prefix, dry=dry, interrupted=bool(code)))
    return Page("", data, code or int(failed), text, warnings=tuple(reader.said))


@contextlib.contextmanager
def _terminated() -> Iterator[None]:
    """Let a request to end come as an interrupt meanwhile."""

    def end(number: int, frame: object) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _data(found: Found, done: Sequence[Read], *, dry: bool) -> dict[str, Any]:
    return {
        "notebooks": [
            {
                "path": name_of(each.path),
                "project": str(each.root) if each.root else None,
                "status": each.status,
                "error": each.error,
                "notes": str(each.notes) if each.notes else None,
                "run": each.run,
                "proposed": list(each.proposed),
                "more": each.more,
            }
            for each in done
        ],
        "problems": [{"path": name_of(path), "error": text} for path, text in found.problems],
        "found": len(found.paths),
        "dry_run": dry,
    }


def _lines(
    found: Found, done: Sequence[Read], prefix: str, *, dry: bool, interrupted: bool
) -> list[str]:
    lines = [f"- {_said(each, dry=dry)}" for each in done if each.status == "done"]
    if len(lines) > MOST_LISTED:
        lines = [*lines[:MOST_LISTED], f"- … and {len(lines) - MOST_LISTED} more"]
    failed = [each.error for each in done if each.status == "failed"]
    failed += [text for _, text in found.problems]
    lines += [f"- Failed: {plain(each)}" for each in failed]
    lines += [*([""] if lines else []), _ending(done, len(failed), dry=dry)]
    lines += _advice(done, prefix, dry=dry)
    if interrupted:
        left = len(found.paths) - len(done)
        lines.append(f"Interrupted, {left} left. Nothing is lost; the same command goes on here.")
    return lines


def _said(read: Read, *, dry: bool) -> str:
    """Return what came of a notebook that was read."""
    parts = ["would be read" if dry else "noted" if read.run else "nothing new to note"]
    if read.proposed:
        parts.append(counted(len(read.proposed), "proposal"))
    return f"{plain(name_of(read.path))}: {', '.join(parts)}"


def _ending(done: Sequence[Read], failed: int, *, dry: bool) -> str:
    """Return the sentence below: how many there were, and how they fared."""
    count = Counter(each.status for each in done)
    if not done and not failed:
        return "There is no notebook in what was named."
    parts = [f"{counted(count['done'], 'notebook')} {'would be ' if dry else ''}read"]
    parts += [f"{count['unchanged']} unchanged since"] if count["unchanged"] else []
    parts += [f"{count['empty']} without anything in it"] if count["empty"] else []
    parts += [f"{failed} failed"] if failed else []
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _advice(done: Sequence[Read], prefix: str, *, dry: bool) -> list[str]:
    """Return what there is to do next, a sentence each."""
    lines = []
    if any(each.run for each in done):
        lines.append(f"`{prefix}history` lists each, and `{prefix}undo RUN` takes it back.")
    proposed = sum(len(each.proposed) for each in done)
    if proposed and dry:
        lines.append(f"{counted(proposed, 'memory', 'memories')} would be proposed.")
    elif proposed:
        lines.append(
            f"{counted(proposed, 'memory', 'memories')} proposed, since who wrote a file is not "
            f"known: `{prefix}proposals` shows what waits for a yes."
        )
    if more := sum(each.more for each in done):
        lines.append(
            f"{counted(more, 'notebook')} would have more to remember than may wait at once: "
            f"answer what `{prefix}proposals` shows, then give the same command again."
        )
    roots = dict.fromkeys(
        plain(name_of(each.root))
        for each in done
        if each.root and (each.run or each.proposed or each.more)
    )
    if len(roots) > 1:
        lines.append(
            f"They belong to {len(roots)} projects; give these commands in their folders: "
            f"{', '.join(list(roots)[:MOST_FOLDERS])}{', …' if len(roots) > MOST_FOLDERS else ''}"
        )
    lines += dict.fromkeys(
        f"No memory was looked for. {each.closed}" for each in done if each.closed
    )
    return lines


INGEST = Command(
    "ingest",
    "write notes of many notebook files, and propose what they say as memories",
    _ingest,
    (
        Argument(
            "PATHS", "notebooks, and folders with all below", "PATHS...", words=True, required=True
        ),
        Argument("--dry-run", "tell what would be read and proposed, and write nothing"),
        JSON,
    ),
    details=(
        "The built-in engine reads them; no model, no network, and no notebook is changed. The "
        "notes of each are kept with its project, as those of a session are: what you change in "
        "them stays. Memories are only proposed. What was read and has not changed is passed over, "
        "so the same command goes on where it was interrupted. It ends with 0, or with 1 when some "
        "could not be read."
    ),
)
