"""Tools that search: names of files (Glob, Find), and what files hold (Grep).

A search is bounded in files, bytes, lines and seconds, says when it was cut short, and ends at
once when the run is stopped. Each file is masked as a whole before a pattern sees it, else a
pattern could guess a secret letter by letter.
"""

from __future__ import annotations

import fnmatch
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ipymemory import reading
from ipymemory.errors import IpymemoryError, ToolError
from ipymemory.fence import Fence
from ipymemory.git_reading import GIT, git
from ipymemory.patterns import Pattern, compiled
from ipymemory.reading import Look, LookTool, bounded, tool_spec
from ipymemory.tools import Tool

MOST_MATCHES = 200
"""Lines of one answer of Grep."""

MOST_NAMES = 500
"""Names of one answer of Glob and Find."""

MOST_SEARCHED = 64 * 1024 * 1024
"""Bytes of files that one Grep reads."""

MATCH_CHARS = 300
"""Characters that are shown of a line that matches."""

_TEXT = {"type": "string"}

GREP = tool_spec(
    "Grep",
    "Search the project's text files and notebooks, line by line, for a pattern: the words of a "
    r"regular expression, . \d \w \s \b ^ $ [a-z] * + ? {2,5} | and groups that do not repeat. "
    "path: a file or folder; glob: only files of such names, as *.py or src/**/*.py.",
    ("pattern",),
    pattern=_TEXT,
    glob=_TEXT,
    ignore_case={"type": "boolean"},
)

GLOB = tool_spec(
    "Glob",
    "Name the files that fit a pattern: *.py anywhere below path, src/*.py in src, src/**/*.py "
    "below src.",
    ("pattern",),
    pattern=_TEXT,
)

FIND = tool_spec(
    "Find",
    "Find files or folders below path by name (as *.log), kind, least size in bytes, and days "
    "since they changed at most; with sizes and dates.",
    name=_TEXT,
    kind={"type": "string", "enum": ["file", "folder"]},
    larger={"type": "integer", "minimum": 0},
    days={"type": "integer", "minimum": 0},
)


SPECS = (reading.READ, GREP, GLOB, FIND, reading.LIST, reading.WC, GIT)
"""The tools that read, as an engine sees them; in the order of `reading_tools`."""


def reading_tools(
    fence: Fence, level: str, stopped: Callable[[], bool] = lambda: False
) -> dict[str, Tool]:
    """Return every tool that reads, by name.

    `level` is what may be sent of outputs; `stopped` tells that the run is over, from any thread.
    """

    def look() -> Look:
        return Look(fence, level, stopped)

    acts = (reading.read, grep, glob, find, reading.list_folder, reading.count, git)
    return {spec.name: LookTool(spec, act, look) for spec, act in zip(SPECS, acts, strict=True)}


def grep(look: Look, path: Path, given: Mapping[str, Any]) -> str:
    """Return the lines that match, each with its file and number."""
    pattern = compiled(given["pattern"], fold=given.get("ignore_case", False))
    fits = _fits(given["glob"]) if "glob" in given else lambda below: True
    told: list[str] = []
    searched = passed = 0
    for each, size in _files(look, path, fits):
        if searched + size > MOST_SEARCHED:
            look.cut = f"{MOST_SEARCHED // 2**20} MB were searched; name a smaller folder"
            break
        try:
            text = look.text(each)
        except IpymemoryError:
            if each == path:
                raise
            passed += 1
            continue
        searched += len(text)
        told += _matches(look, each, text, pattern, MOST_MATCHES + 1 - len(told))
        if len(told) > MOST_MATCHES or look.over():
            break
    ends = []
    if len(told) > MOST_MATCHES:
        ends.append(f"[More than {MOST_MATCHES}; ask for less at once.]")
    if passed:
        ends.append(f"[{passed:,} files were passed over: no text, a link, or too large.]")
    return bounded([*(told[:MOST_MATCHES] or ["No line matches."]), *ends])


def glob(look: Look, path: Path, given: Mapping[str, Any]) -> str:
    """Return the names of the files that fit."""
    fits = _fits(given["pattern"])
    names = [
        look.name(each.path)
        for each in look.walk(path)
        if each.entry.kind == "file" and fits(each.below)
    ]
    return _names(names)


def find(look: Look, path: Path, given: Mapping[str, Any]) -> str:
    """Return the files and folders that fit, each with size and date."""
    fits = _fits(given["name"]) if "name" in given else lambda below: True
    kind, larger = given.get("kind"), given.get("larger", 0)
    since = time.time_ns() - given["days"] * 86_400 * 10**9 if "days" in given else None
    found = []
    for each in look.walk(path):
        entry = each.entry
        if kind not in (None, entry.kind) or (larger and entry.kind != "file"):
            continue
        fresh = since is None or entry.modified >= since
        if fresh and entry.size >= larger and fits(each.below):
            found.append(reading.line(look.name(each.path), entry))
    return _names(found)


def _names(names: list[str]) -> str:
    if len(names) > MOST_NAMES:
        names = [*names[:MOST_NAMES], f"[{len(names) - MOST_NAMES:,} more; ask for fewer.]"]
    return bounded(names or ["Nothing fits."])


def _files(look: Look, path: Path, fits: Callable[[str], bool]) -> Iterator[tuple[Path, int]]:
    """Yield the files to search with their sizes; a path that is no folder is the one file."""
    if not _is_folder(path):
        yield path, 0
        return
    for each in look.walk(path):
        if each.entry.kind == "file" and fits(each.below):
            yield each.path, each.entry.size


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _matches(look: Look, path: Path, text: str, pattern: Pattern, most: int) -> Iterator[str]:
    if not pattern.may_occur(text):
        return
    name = look.name(path)
    for number, line in enumerate(text.split("\n"), start=1):
        # A clock is asked some hundred times a second, not for every line.
        if number % 256 == 0 and look.over():
            return
        end = pattern.search(line)
        if end < 0:
            continue
        begin = max(0, min(end - MATCH_CHARS // 2, len(line) - MATCH_CHARS))
        yield f"{name}:{number}: {'… ' if begin else ''}{line[begin : begin + MATCH_CHARS]}"
        most -= 1
        if most <= 0:
            return


@lru_cache(maxsize=64)
def _fits(pattern: str) -> Callable[[str], bool]:
    """Return whether a path below the folder fits `pattern`; raises `ToolError`.

    A pattern without a slash is a name at any depth; ``**`` stands for any folders. `fnmatch`
    makes no expression that could take long, and between folders each pair is asked once.
    """
    if len(pattern) > 500:
        raise ToolError("The name pattern is longer than 500 characters. Give a shorter one.")
    parts = pattern.replace("\\", "/").removeprefix("./").split("/")
    if "" in parts or ".." in parts or ":" in parts[0]:
        raise ToolError("A name pattern begins below path and holds no .., as in src/**/*.py.")
    if len(parts) == 1:
        parts = ["**", *parts]
    tests = [None if each == "**" else re.compile(fnmatch.translate(each)) for each in parts]

    def passed(places: set[int]) -> set[int]:
        """Return `places` in the pattern, and those behind a ``**`` that stands for nothing."""
        found = set(places)
        for at in places:
            while at < len(tests) and tests[at] is None:
                at += 1
                found.add(at)
        return found

    def fits(below: str) -> bool:
        places = {0}
        for name in below.split("/"):
            after = set()
            for at in passed(places):
                test = tests[at] if at < len(tests) else _NOTHING
                if test is None:
                    after.add(at)
                elif test.match(name):
                    after.add(at + 1)
            places = after
        return len(tests) in passed(places)

    return fits


_NOTHING = re.compile(r"(?!)")
