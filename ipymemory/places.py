"""The one resolver of places: home, project, session, for reader, writer, prompt and screen.

A project is the git work tree that holds a notebook; linked work trees share the main one's
memory, a submodule is a project of its own. Without git it is the notebook's folder. ``/`` and
the home folder are never a project by accident: there the notebook's own path is the key.

Git is never started. A repository's own configuration can make it run programs, and the few
facts wanted here stand in small files. Resolving makes nothing; only writers make folders.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipymemory.files import read_json, write_json
from ipymemory.turns import utc_now

HOME_VARIABLE = "IPYMEMORY_HOME"

_UNSAFE = re.compile(r"[^\w.-]+")
_KEY_NAME = 40
"""Characters of the readable part of a key: file names may have 255 bytes on common systems."""

_SMALL = 64 * 1024
"""Bytes read of a file of git's; those wanted here are a few lines."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project: `root`, its own folder (or notebook), and `folder`, where its memory lies."""

    root: Path
    key: str
    folder: Path

    @property
    def home(self) -> Path:
        """The home folder that the project's folder lies in."""
        return self.folder.parent.parent

    @property
    def record(self) -> Path:
        """``project.json``: the real root, the git remote, when first seen, what was chosen."""
        return self.folder / "project.json"

    @property
    def memory(self) -> Path:
        """The folder of long-term memories."""
        return self.folder / "memory"

    @property
    def sessions(self) -> Path:
        """The folder with one folder a session."""
        return self.folder / "sessions"

    @property
    def history(self) -> Path:
        """The folder of before-images."""
        return self.folder / "history"

    @property
    def proposals(self) -> Path:
        """The folder of updates that wait for the user."""
        return self.folder / "proposals"

    def properties(self) -> dict[str, Any]:
        """Return what stands in ``project.json``; raises `FormatError`, `PlaceError`."""
        return read_json(self.record) or {}

    def set_property(self, name: str, value: object) -> None:
        """Put one value into ``project.json``; raises `FormatError`, `PlaceError`."""
        first = {
            "root": str(self.root),
            "remote": git_remote(self.root),
            "first_seen": utc_now(),
        }
        write_json(self.record, first | self.properties() | {name: value})


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """The folder of one session."""

    path: Path

    @property
    def id(self) -> str:
        """The session's id."""
        return self.path.name

    @property
    def record(self) -> Path:
        """``session.json``."""
        return self.path / "session.json"

    @property
    def transcript(self) -> Path:
        """The kernel's record of turns."""
        return self.path / "transcript.jsonl"

    @property
    def notes(self) -> Path:
        """The session notes."""
        return self.path / "notes.md"

    @property
    def notes_base(self) -> Path:
        """What the engine last wrote, so that a person's changes can be told apart."""
        return self.path / "notes.base.md"

    @property
    def worker_log(self) -> Path:
        """The worker's record of what it did, JSON Lines."""
        return self.path / "worker.jsonl"

    @property
    def log(self) -> Path:
        """The worker's log file, plain text."""
        return self.path / "worker.log"


def home(configured: str = "") -> Path:
    """Return the home folder: `configured`, else ``IPYMEMORY_HOME``, else ``~/.ipymemory``."""
    chosen = configured or os.environ.get(HOME_VARIABLE) or "~/.ipymemory"
    return Path(chosen).expanduser().absolute()


def config_folder(home: Path) -> Path:
    """Return the folder of the user's own templates and prompts."""
    return home / "config"


def project_of(path: Path, home: Path, *, share_worktrees: bool = True) -> Project:
    """Return the project that `path`, a notebook or a folder, belongs to.

    `path` need not exist. With `share_worktrees` a linked work tree is the main one's project.
    """
    real = Path(os.path.realpath(path))
    # A missing path with an ending is a notebook that was not saved yet.
    folder = real if real.is_dir() or not (real.suffix or real.is_file()) else real.parent
    root = _work_tree(folder, share_worktrees) or folder
    if _too_wide(root):
        root = real
    return Project(root, project_key(root), home / "projects" / project_key(root))


def project_key(root: Path) -> str:
    """Return a key that people can read and that differs for different roots.

    It is the last part of the path, made safe, and ten hex digits of the SHA-256 of the whole,
    NFC-normalised (formats.md): a rule that only replaces odd characters would make one folder
    of ``spec-rl`` and ``spec/rl``.
    """
    text = unicodedata.normalize("NFC", str(root))
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:10]
    name = _UNSAFE.sub("-", unicodedata.normalize("NFC", root.name)).strip("-.")[:_KEY_NAME]
    return f"{name or 'root'}-{digest}"


def git_remote(root: Path) -> str:
    """Return the address of the remote ``origin``, else of the first, without a password."""
    config = _git_folder(root)
    text = _read(config / "config") if config else ""
    remotes: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            found = re.fullmatch(r'\[remote "(.*)"\]', line)
            section = found[1] if found else ""
        elif section and (found := re.match(r"url\s*=\s*(.*)", line)):
            remotes.setdefault(section, re.sub(r"(?<=//)[^/@]*@", "", found[1]))
    return remotes.get("origin") or next(iter(remotes.values()), "")


def _too_wide(root: Path) -> bool:
    """Return whether `root` is a folder nobody means as one project: ``/`` or a home folder."""
    return root == root.parent or root == Path(os.path.realpath(Path.home()))


def _work_tree(folder: Path, share_worktrees: bool) -> Path | None:
    """Return the top of the git work tree around `folder`, None where there is none."""
    for each in (folder, *folder.parents):
        mark = each / ".git"
        if mark.is_dir():
            # An empty folder called .git is no repository.
            return each if (mark / "HEAD").exists() else None
        if mark.is_file():
            git = _pointed(mark)
            main = _main_work_tree(git) if git is not None and share_worktrees else None
            return main or each
    return None


def _git_folder(root: Path) -> Path | None:
    mark = root / ".git"
    return mark if mark.is_dir() else _pointed(mark) if mark.is_file() else None


def _pointed(mark: Path) -> Path | None:
    """Return the git folder that a ``.git`` file names, as linked trees and submodules have."""
    found = re.match(r"gitdir:\s*(.+)", _read(mark))
    return Path(os.path.realpath(mark.parent / found[1].strip())) if found else None


def _main_work_tree(git: Path) -> Path | None:
    """Return the main work tree of a linked one; None for a submodule, whose folder has no
    ``commondir``, and for a bare repository, which has no main work tree."""
    common = _read(git / "commondir").strip()
    if not common:
        return None
    shared = Path(os.path.realpath(git / common))
    return shared.parent if shared.name == ".git" else shared


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_SMALL).decode("utf-8", "replace")
    except OSError:
        return ""
