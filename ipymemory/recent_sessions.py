"""Which sessions had a turn since a time: by one ``stat`` of a transcript each, of the newest.

A project may hold the sessions of years, and a dream's gate asks after each turn at rest. A
session that was silent for `SILENT` is over: a kernel goes on with one idle under twelve hours,
else it begins its own. So a look at all of them leaves behind, in ``.silent-sessions.json`` of
the project, up to which id they are silent and which of those are not; the next look passes the
silent ones by. Ids sort by time, see `new_id`. The file is only a short cut: without it all are
looked at.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from ipymemory.errors import FormatError, PlaceError
from ipymemory.files import read_json, write_json
from ipymemory.places import OF_FILE, Project

SILENT = 30 * 86_400.0
"""Seconds without a turn after which a session counts as over. A kernel left open for longer than
that, and gone on with, is not counted: what is counted decides when to tidy up, no more."""

WORTH_IT = 500
"""Silent sessions to look at, 2 ms, from which on they are written down."""

NAME = ".silent-sessions.json"


@dataclass(frozen=True, slots=True)
class _Silent:
    """Sessions with ids before `before` had no turn after the time `since`, but for `others`."""

    before: str = ""
    since: float = 0.0
    others: frozenset[str] = frozenset()


def count_since(project: Project, seconds: float, own: str = "", most: int = 1_000_000) -> int:
    """Return how many sessions had a turn after `seconds` of the epoch; see `since`."""
    return len(since(project, seconds, own, most))


def since(project: Project, seconds: float, own: str = "", most: int = 1_000_000) -> list[str]:
    """Return which sessions had a turn after `seconds` of the epoch, the session `own` apart.

    Reads no transcript: one `stat` each, the newest sessions first, and it stops at `most`, which
    is when there are enough. Raises nothing.
    """
    try:
        names = os.listdir(project.sessions)  # noqa: PTH208 - names only
    except OSError:
        return []
    path = project.folder / NAME
    silent = _read(path)
    if silent.since > seconds:
        # What is asked for reaches further back than what is known.
        silent = _Silent()
    names = [each for each in names if each >= silent.before or each in silent.others]
    now = time.time()
    quiet: list[str] = []
    found: list[str] = []
    limit, over = int(seconds * 1e9), int((now - SILENT) * 1e9)
    top = f"{project.sessions}{os.sep}"
    for name in sorted(names, reverse=True):
        if name == own or name[0] == "." or name.startswith(OF_FILE):
            continue
        try:
            # A path as text: made of parts it would take longer than the call itself.
            changed = os.stat(f"{top}{name}{os.sep}transcript.jsonl").st_mtime_ns  # noqa: PTH116
        except OSError:
            continue
        if changed < over:
            quiet.append(name)
        if changed > limit:
            found.append(name)
            if len(found) >= most:
                return found
    if len(quiet) >= WORTH_IT:
        _write(path, names, set(quiet), now)
    return found


def _write(path: Path, names: list[str], quiet: set[str], now: float) -> None:
    """Leave behind what was seen to be silent; where nothing can be written, nothing is."""
    newest = _id_at(now - SILENT)
    others = [each for each in names if each < newest and each not in quiet and each[0] != "."]
    try:
        write_json(path, {"before": newest, "since": now - SILENT, "others": sorted(others)})
    except PlaceError:
        return


def _read(path: Path) -> _Silent:
    try:
        told = read_json(path) or {}
    except (FormatError, PlaceError):
        return _Silent()
    before, seconds, others = told.get("before"), told.get("since"), told.get("others")
    if not isinstance(before, str) or not isinstance(seconds, float) or not isfinite(seconds):
        return _Silent()
    if not isinstance(others, list) or not all(isinstance(each, str) for each in others):
        return _Silent()
    return _Silent(before, seconds, frozenset(others))


def _id_at(seconds: float) -> str:
    """Return what sorts after every id that was made before `seconds` of the epoch."""
    return f"{int(seconds * 1000):012x}"
