"""What git's own small files tell of a work tree, without starting git.

A repository's own configuration can make git run programs, and a notebook may lie in a
repository that somebody sent. The few facts wanted here are the top of the work tree, the main
one of a linked work tree, and the address of the remote.

A linked work tree has a file ``.git`` that names its folder below the main repository's
``worktrees``; there ``commondir`` leads on to the shared folder and ``gitdir`` back
(gitrepository-layout(5)). A submodule has such a file too, and no ``commondir``.

Anybody can write a ``.git`` file that names a repository. So a tree counts as linked only when
the repository, too, knows it: else a folder that was sent would be shown another's memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SMALL = 64 * 1024
"""Bytes read of a file; those wanted here are a few lines."""

_SECTION = re.compile(r"\[\s*([\w.-]+)(?:\s+\"((?:[^\"\\]|\\.)*)\")?\s*\]")
_VALUE = re.compile(r"([A-Za-z][\w-]*)\s*=\s*(\"[^\"]*\"|[^#;]*)")


@dataclass(frozen=True, slots=True)
class WorkTree:
    """A work tree: its `top` folder, and the one whose repository it shares, `top` for most.

    Linked work trees of a bare repository, which has no work tree of its own, share its folder.
    """

    top: Path
    main: Path


def work_tree(folder: Path) -> WorkTree | None:
    """Return the work tree around `folder`, a path without links, or None."""
    for each in (folder, *folder.parents):
        git = _repository(each)
        if git is not None:
            return WorkTree(each, _main(each, git))
    return None


def git_folders(top: Path) -> tuple[Path, Path] | None:
    """Return the git folder of the work tree `top`, and the one it shares with others.

    Only one that lies in `top` itself, or that knows `top` as its linked work tree; None for any
    other, since a ``.git`` file can name whatever repository it wants to have read.
    """
    mark = top / ".git"
    git = _repository(top)
    if git is None or os.path.realpath(git) != str(git):
        return None
    if git == mark:
        return git, git
    shared = _shared(git)
    if shared is None or git.parent != shared / "worktrees":
        return None
    back = _read(git / "gitdir").strip()
    known = Path(os.path.realpath(git / back)) if back else None
    return (git, shared) if known == mark else None


def remote(root: Path) -> str:
    """Return the address of the remote ``origin``, else of the first; no name or password."""
    git = _repository(root) or root
    remotes: dict[str, str] = {}
    for section, name, key, value in _config(_shared(git) or git):
        if (section, key) == ("remote", "url"):
            remotes.setdefault(name, re.sub(r"(?<=://)[^/]*@", "", value))
    return remotes.get("origin") or next(iter(remotes.values()), "")


def _repository(folder: Path) -> Path | None:
    """Return the git folder of the work tree whose top is `folder`; None when it is no top."""
    mark = folder / ".git"
    # An empty folder called .git is no repository, and any file can have that name.
    if os.path.lexists(mark / "HEAD"):
        return mark
    found = re.match(r"gitdir:[ \t]*(\S.*)", _read(mark))
    return Path(os.path.realpath(folder / found[1].strip())) if found else None


def _main(top: Path, git: Path) -> Path:
    """Return the main work tree of the one at `top`, whose git folder is `git`."""
    shared = _shared(git)
    if shared is None or git.parent != shared / "worktrees" or not _leads_back(git, top):
        return top
    if _repository(shared.parent) == shared:
        return shared.parent
    for section, _, key, value in _config(shared):
        if (section, key) == ("core", "worktree"):
            main = Path(os.path.realpath(shared / value))
            return main if _repository(main) == shared else top
    return shared


def _shared(git: Path) -> Path | None:
    """Return the folder that linked work trees share; None for one that is not linked."""
    named = _read(git / "commondir").strip()
    return Path(os.path.realpath(git / named)) if named else None


def _leads_back(git: Path, top: Path) -> bool:
    """Return whether the repository means `top`, or a tree that is gone and may have been moved.

    A copied tree names its original's folder, and is a project of its own.
    """
    back = _read(git / "gitdir").strip()
    if not back:
        return True
    known = Path(os.path.realpath(git / back))
    return known == top / ".git" or not os.path.lexists(known)


def _config(git: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield section, its name, key and value of what ``config`` sets; included files are not."""
    section = name = ""
    for line in _read(git / "config").splitlines():
        line = line.strip()
        if head := _SECTION.match(line):
            section, name = head[1].lower(), re.sub(r"\\(.)", r"\1", head[2] or "")
            line = line[head.end() :].strip()
        if found := _VALUE.match(line):
            yield section, name, found[1].lower(), found[2].strip().strip('"')


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(_SMALL))
    except (OSError, ValueError):
        return ""
