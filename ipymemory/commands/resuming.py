"""``resume``: where the last session stopped, and the cells that bring its variables back."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

from ipymemory import markdown, sessions
from ipymemory.commands.amounts import counted
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.commands.runs import fence
from ipymemory.errors import CommandError, IpymemoryError
from ipymemory.extractive.replay import Replay, replay
from ipymemory.extractive.story import label_of
from ipymemory.places import SessionFolder
from ipymemory.transcript import Transcript
from ipymemory.turns import Entry, Happening, Turn

RESUMED = "resumed"
"""The event that tells which cells were run again."""

MOST = 60_000
"""Characters of code that a page shows and the next cell is given."""

_PAUSED = "Recording is still paused; {}resume-recording goes on with it."

_MASKED = "[masked: "
_CUT = re.compile(r"\[… [\d,]+ (?:more )?characters")


def _resume(place: Place, arguments: Arguments) -> Page:
    wanted = arguments["names"]
    odd = [each for each in wanted if not each.isidentifier()]
    if odd:
        raise CommandError(
            f"{odd[0][:40]} is no name. The right form: {COMMAND.usage(place.prefix)}"
        )
    paused = place.live is not None and place.live.paused
    warnings = (_PAUSED.format(place.prefix),) if paused else ()
    left = _left(place)
    if left is None:
        said = "There is nothing to go back to: no earlier kernel of this project is kept."
        return Page(said, {}, warnings=warnings)
    folder, turns, there = left
    found = replay(turns, wanted, there)
    run = bool(arguments["run"])
    if run and place.live is None:
        raise CommandError("--run needs a notebook or a terminal with %load_ext ipymemory.")
    again, by_hand = _until_by_hand(found, run=run)
    first, name = _head(place, folder)
    lines = [first, "", *_state(folder)]
    if found.names:
        lines += [*_what(found, turns), ""]
    elif not wanted:
        lines += ["It left no variable that is on record and not here already.", ""]
    lines += _notices(found, by_hand)
    code = "\n\n".join(f"# {label_of(each)}\n{each.source.strip()}" for each in again)
    shown = "" if run or len(code) > MOST else code
    text = list(lines)
    if shown:
        marks = fence(shown)
        lines += [f"{marks}python", shown, marks, ""]
        text += [shown, ""]
        told = f"`{place.prefix}resume --run` runs them here."
        if place.live is not None:
            told = f"The next cell holds them, to look at and run; {told}"
        lines.append(told)
        text.append(told)
    elif not run and code:
        lines.append(f"They are too long to show; `{place.prefix}resume --run` runs them here.")
        text.append(lines[-1])
    data = {
        "session": folder.id,
        "notebook": name,
        "names": list(found.names),
        "cells": [{"label": label_of(each), "source": each.source} for each in again],
        "lost": [{"name": name, "cell": cell} for name, cell in found.lost],
        "by_hand": [label_of(each) for each in by_hand],
    }
    return Page(
        "\n".join(lines).rstrip(),
        data,
        warnings=warnings,
        exit=0 if found.names or not wanted else 1,
        text="\n".join(text).rstrip(),
        next_input=shown if place.live is not None and not arguments["json"] else "",
        run=tuple((label_of(each), each.id, each.source) for each in again) if run else (),
    )


def _left(place: Place) -> tuple[SessionFolder, list[Turn], frozenset[str]] | None:
    """Return what the last kernel left: its session, its cells, and names that are here already.

    This notebook's own last kernel goes first, then the project's newest other session; None where
    there is neither.
    """
    own = place.shown
    there = place.live.bound if place.live is not None else frozenset()
    if own is not None:
        record = _record(own)
        # Where this kernel has recorded, its own cells are not those to go back to.
        now = record.generation if place.live is not None and place.folder is not None else 0
        if turns := _last(record, now):
            return own, turns, there
    for _, folder in sessions.every(place.project):
        if (own is None or folder.id != own.id) and (turns := _last(_record(folder), 0)):
            return folder, turns, there
    return None


def _record(folder: SessionFolder) -> Transcript:
    transcript = Transcript(folder.transcript)
    with contextlib.suppress(IpymemoryError):
        transcript.follow()
    return transcript


def _last(record: Transcript, now: int) -> list[Turn]:
    """Return the cells whose names the last kernel held that is not the kernel of `now`."""
    kernels = {each.kernel for each in record.entries if isinstance(each, Turn)}
    kernels |= {each.details.get("kernel", 0) for each in record.entries if _is_resumed(each)}
    before = [each for each in kernels if each != now]
    return _of_kernel(record.entries, max(before)) if before else []


def _is_resumed(entry: Entry) -> TypeGuard[Happening]:
    return (
        isinstance(entry, Happening)
        and entry.name == RESUMED
        and isinstance(entry.details.get("kernel"), int)
    )


def _of_kernel(entries: Sequence[Entry], kernel: int) -> list[Turn]:
    """Return the cells whose names one kernel held: its own, and those run again in it."""
    by_id = {each.id: each for each in entries if isinstance(each, Turn)}
    found: list[Turn] = []
    for each in entries:
        if isinstance(each, Turn) and each.kernel == kernel:
            found.append(each)
        elif _is_resumed(each) and each.details["kernel"] == kernel:
            told = each.details.get("turns")
            ids = told if isinstance(told, list) else []
            found += (by_id[id] for id in ids if isinstance(id, str) and id in by_id)
    return found


def _head(place: Place, folder: SessionFolder) -> tuple[str, str]:
    """Return the first line of the page, and the notebook's name."""
    try:
        notebook = sessions.read(folder).notebook
    except IpymemoryError:
        notebook = ""
    name = Path(notebook).name
    title = _section(folder, "Session Title")
    what = (title[0].strip("- ") if title else "") or name or "a session without a notebook file"
    where = f" ({name})" if name and name not in what else ""
    when = sessions.last_active(folder).astimezone().strftime("%Y-%m-%d %H:%M")
    other = "" if place.shown is None or folder.id == place.shown.id else ", another session"
    return f"**{what}**{where}{other}, last worked on {when}.", name


def _state(folder: SessionFolder) -> list[str]:
    found = [each for each in _section(folder, "Current State") if each.strip()]
    # What is in memory is what this page is about.
    found = [each for each in found if not each.startswith("- In memory")]
    return [*found, ""] if found else []


def _section(folder: SessionFolder, name: str) -> list[str]:
    try:
        notes = folder.notes.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    found = markdown.section(notes, name)
    return found.body.strip("\n").splitlines() if found else []


def _what(found: Replay, turns: Sequence[Turn]) -> list[str]:
    names = ", ".join(f"`{name}`" for name in found.names[:12])
    more = f" and {len(found.names) - 12} more" if len(found.names) > 12 else ""
    took = sum(each.duration_ms or 0 for each in found.again) / 1000
    time = f", which took {_seconds(took)} then" if took >= 0.1 else ""
    return [
        f"{counted(len(found.again), 'cell')} of {len(turns)}, in this order{time}, "
        f"{'brings' if len(found.again) == 1 else 'bring'} back {names}{more}."
    ]


def _seconds(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _until_by_hand(found: Replay, *, run: bool) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """Return the cells before the first that a person has to run, and all such.

    Those are not on record whole, or, for ``--run``, have ``await`` at their top: a cell that runs
    within another one cannot wait.
    """
    by_hand = tuple(
        each
        for each in found.again
        if _MASKED in each.source or _CUT.search(each.source) or (run and each.id in found.waits)
    )
    if not by_hand:
        return found.again, ()
    return found.again[: found.again.index(by_hand[0])], by_hand


def _notices(found: Replay, by_hand: Sequence[Turn]) -> list[str]:
    lines: list[str] = []
    if by_hand:
        first = label_of(by_hand[0])
        lines.append(
            f"- {first} is yours to run in the notebook itself, after the cells before it: it is "
            "not on record whole, for it held a secret or was very long, or it has await at its "
            "top. Then resume again, and what is here already is left out."
        )
    asks = [label_of(each) for each in found.again if each.id in found.asks]
    if asks:
        lines.append(f"- {', '.join(asks)} will ask you for something.")
    for name, cell in found.lost[:8]:
        why = f"only {cell} bound it, which failed" if cell else "no cell on record binds it"
        lines.append(f"- `{name}` cannot be had back: {why}.")
    if len(found.lost) > 8:
        lines.append(f"- So it is with {len(found.lost) - 8} more names.")
    return [*lines, ""] if lines else []


COMMAND = Command(
    "resume",
    "say where the last kernel stopped; bring its variables back",
    _resume,
    (
        Argument("NAMES", "only what these variables need", "NAMES", words=True),
        Argument("--run", "run the cells now, one after another, until one fails"),
        JSON,
    ),
    details=(
        "Which cells are needed is worked out from what each binds, changes and reads. Cells that "
        "failed are left out; a variable that only they bound is named. Nothing is run without "
        "--run: the cells stand in the next cell, to look at first."
    ),
)
