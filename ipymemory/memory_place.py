"""Where a project's memories lie: in our home, or in the folder that Claude Code keeps for it.

Sharing is a setting and off by default (formats.md). Claude Code names its folder after the real
path, with every odd character turned into ``-``, so that different roots can have one name: who
writes there first is put on record in our own home, and another root is refused. Its settings
are read and never touched, and only the user's own: a repository that came by mail has settings
too, and must not choose where we write.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ipymemory.errors import FormatError, IpymemoryError, PlaceError
from ipymemory.files import read_json
from ipymemory.places import Project, real_path

OTHERS = frozenset({"team", "logs", ".git", "agents"})
"""Folders inside a memory folder that are not ours."""

CLAIM = "claude_folder"
"""The property of a project that says which of Claude Code's folders it writes to."""

_INDEX = re.compile(r"MEMORY(?:-\d+)?\.md")
_SLUG_MOST = 200
_DEPTH = 8
"""Folders below each other that are looked into: a link that leads up must not go on for ever."""


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """The folder of memories. `shared` with another program; `refusal` says why not to write."""

    folder: Path
    shared: bool = False
    refusal: str = ""


def memory_place(
    project: Project, choice: str = "own", environment: Mapping[str, str] = os.environ
) -> MemoryPlace:
    """Return where the memories of `project` lie by ``Memory.folder``; makes nothing on disk."""
    if choice != "claude":
        return MemoryPlace(project.memory)
    config = claude_config(environment)
    folder, refusal = _claude_folder(project.root, config)
    if environment.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "") not in ("", "0", "false"):
        refusal = (
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY is set, so nothing is written to Claude Code's "
            'memory. Unset it, or set c.Memory.folder = "own".'
        )
    return MemoryPlace(folder, True, refusal or _owned_by_another(project, folder))


def claude_config(environment: Mapping[str, str]) -> Path:
    """Return Claude Code's folder of settings: ``CLAUDE_CONFIG_DIR``, else ``~/.claude``."""
    chosen = environment.get("CLAUDE_CONFIG_DIR") or "~/.claude"
    try:
        return Path(chosen).expanduser().absolute()
    except RuntimeError as error:
        raise PlaceError(
            f"It is not known where {chosen} is: {error} Set CLAUDE_CONFIG_DIR to a full path."
        ) from error


def slug(root: str) -> str:
    """Return Claude Code's name for the folder of `root`, a real path (formats.md)."""
    return re.sub(r"[^A-Za-z0-9]", "-", unicodedata.normalize("NFC", root))


def claim(project: Project, place: MemoryPlace) -> None:
    """Put on record that `project` writes to a shared folder; raises `PlaceError` for another's.

    Call it under the folder's lock.
    """
    if not place.shared:
        return
    if refusal := place.refusal or _owned_by_another(project, place.folder):
        raise PlaceError(refusal)
    if project.properties().get(CLAIM) != str(place.folder):
        project.set_property(CLAIM, str(place.folder))


def is_index(name: str) -> bool:
    """Return whether a file of that name is the index or one of its pages."""
    return _INDEX.fullmatch(name) is not None


def memory_files(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield an entry for each ``*.md`` in `folder` and below that is not of the index.

    Links are yielded as they are and never followed; names that begin with a dot, and what is
    another program's, are passed over. A folder that is not there, or may not be read, holds
    nothing.
    """
    waiting = [(str(folder), 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as found:
                entries = list(found)
        except OSError:
            continue
        for each in entries:
            name = each.name
            if name[0] == ".":
                continue
            if name.endswith(".md"):
                if not is_index(name) and not each.is_dir(follow_symlinks=False):
                    yield each
            elif depth < _DEPTH and name not in OTHERS and each.is_dir(follow_symlinks=False):
                waiting.append((each.path, depth + 1))


def count(folder: Path) -> int:
    """Return how many memories lie in `folder`; lists names and reads no file."""
    return sum(1 for _ in memory_files(folder))


def _claude_folder(root: Path, config: Path) -> tuple[Path, str]:
    projects = config / "projects"
    name = slug(str(root))
    try:
        told = (read_json(config / "settings.json") or {}).get("autoMemoryDirectory")
    except IpymemoryError as error:
        return projects / name / "memory", f"Claude Code's settings cannot be read. {error}"
    if isinstance(told, str) and told:
        chosen = Path(told).expanduser() if told.startswith("~/") else Path(told)
        if not chosen.is_absolute():
            return projects / name / "memory", (
                f"autoMemoryDirectory in {config / 'settings.json'} is no full path: {told[:200]}. "
                'Mend it, or set c.Memory.folder = "own".'
            )
        return real_path(chosen), ""
    if len(name) <= _SLUG_MOST:
        return real_path(projects / name / "memory"), ""
    start = name[:_SLUG_MOST] + "-"
    try:
        names = os.listdir(projects)  # noqa: PTH208 - names only
        found = sorted(each for each in names if each.startswith(start))
    except OSError:
        found = []
    if len(found) == 1:
        return real_path(projects / found[0] / "memory"), ""
    what = "no folder" if not found else f"{len(found)} folders that may be the one"
    return projects / name[:_SLUG_MOST] / "memory", (
        f'Claude Code has {what} for {root}. Start it there once, or set c.Memory.folder = "own".'
    )


def _owned_by_another(project: Project, folder: Path) -> str:
    """Return a sentence when another root writes to `folder`, else nothing."""
    try:
        keys = os.listdir(project.folder.parent)  # noqa: PTH208 - names only
    except OSError:
        return ""
    for key in keys:
        other = Project(Path(), key, project.folder.parent / key)
        if key == project.key:
            continue
        try:
            known = other.properties()
        except (FormatError, PlaceError):
            continue
        if known.get(CLAIM) == str(folder):
            return (
                f"{folder} belongs to {known.get('root')}, whose path gets the same name from "
                f'Claude Code as {project.root}. Set c.Memory.folder = "own" for one of them.'
            )
    return ""
