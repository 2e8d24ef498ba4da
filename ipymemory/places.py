"""The one resolver of places: home, project, session, for reader, writer, prompt and screen.

A project is the git work tree that holds a notebook; linked work trees share the main one's
memory, a submodule is a project of its own. Without git it is the notebook's folder. ``/`` and
the home folder are never a project by accident: there the notebook's own path is the key.

Git is never started, and its variables such as ``GIT_DIR`` are not heard (see `gitfiles`).
Resolving makes nothing; only writers make folders.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipymemory import gitfiles
from ipymemory.errors import FormatError, PlaceError
from ipymemory.files import locked, read_json, write_json
from ipymemory.turns import utc_now

HOME_VARIABLE = "IPYMEMORY_HOME"

VERSION = 1
"""The version of ``project.json``."""

OF_FILE = "file-"
"""How the id begins of a session that no kernel had: a notebook file was read (`file_sessions`)."""

_UNSAFE = re.compile(r"[^\w.-]+")
_KEY_NAME = 40
"""Characters of the readable part of a key: file names may have 255 bytes on common systems."""


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

    def mode(self, default: str) -> str:
        """Return the mode chosen in this project, else `default`.

        Raises `FormatError` or `PlaceError` when the record cannot be read.
        """
        chosen = self.properties().get("mode")
        return chosen if isinstance(chosen, str) else default

    def set_property(self, name: str, value: object) -> None:
        """Put one value into ``project.json``, and what is known of the project with it.

        Raises `PlaceError`, and `FormatError` for a record that is broken or that a newer
        version wrote.
        """
        with locked(self.folder / ".project.lock"):
            known = self.properties()
            version = known.get("version")
            if isinstance(version, int) and version > VERSION:
                raise FormatError(
                    f"{self.record} was written by a newer ipymemory and is only read here. "
                    "Upgrade with: pip install --upgrade ipymemory"
                )
            first = {"version": VERSION, "root": str(self.root), "first_seen": utc_now()}
            # A project may get its remote, or another one, long after it was first seen.
            remote = gitfiles.remote(self.root) or known.get("remote", "")
            write_json(self.record, first | known | {"remote": remote, name: value})


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """The folder of one session."""

    path: Path

    @property
    def id(self) -> str:
        """The session's id."""
        return self.path.name

    @property
    def of_file(self) -> bool:
        """Whether no kernel had this session: a notebook file was read."""
        return self.id.startswith(OF_FILE)

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
    def opened(self) -> Path:
        """What the saved notebook held when each kernel began, to tell whose words are whose."""
        return self.path / "opened.json"

    @property
    def extraction(self) -> Path:
        """What was looked through for memories."""
        return self.path / "extraction.json"

    @property
    def shown(self) -> Path:
        """What a model that looks for memories was shown."""
        return self.path / "shown.json"

    @property
    def documents(self) -> Path:
        """Updates of living documents that wait for the user."""
        return self.path / "documents.json"

    @property
    def document(self) -> Path:
        """The one document that a model works on just now."""
        return self.path / "document.md"

    @property
    def drafts(self) -> Path:
        """The history of that document: what a model wrote on the way."""
        return self.path / "drafts"

    @property
    def untold(self) -> Path:
        """What was learned and not told yet."""
        return self.path / "untold.json"

    @property
    def worker_log(self) -> Path:
        """The worker's record of what it did, JSON Lines."""
        return self.path / "worker.jsonl"

    @property
    def log(self) -> Path:
        """The worker's log file, plain text."""
        return self.path / "worker.log"


def folder_of_file(project: Project, notebook: Path) -> SessionFolder:
    """Return the folder of the session that reading the file `notebook` makes, by its real path.

    Of one notebook it is always the same one, so that whoever reads it again finds what was done.
    """
    return SessionFolder(project.sessions / f"{OF_FILE}{_digest(notebook)[:20]}")


def home(configured: str = "") -> Path:
    """Return the home folder: `configured`, else ``IPYMEMORY_HOME``, else ``~/.ipymemory``.

    Raises `PlaceError` where the user has no home folder and none of them is given in full. A
    path from the current folder is refused: it would be another in every notebook's folder.
    """
    chosen = configured or os.environ.get(HOME_VARIABLE) or "~/.ipymemory"
    try:
        found = _expanded(chosen)
        if not found.is_absolute():
            told = "The setting Memory.home" if configured else HOME_VARIABLE
            raise PlaceError(
                f"{told} is {chosen}, which is another folder wherever a notebook lies, so nothing "
                "is kept. Give the folder by its full path, or with ~ for your own."
            )
        return found.absolute()
    except (RuntimeError, OSError) as error:
        raise PlaceError(
            f"It is not known where {chosen} is: {error} Set IPYMEMORY_HOME to a folder by its "
            "full path."
        ) from error


def _expanded(chosen: str) -> Path:
    """Return the path with ``~`` as the user's own folder.

    A ``HOME`` that is empty or no full path would make it ``/.ipymemory``, or another in every
    notebook's folder; then the system knows better. Raises `RuntimeError` where nobody does.
    """
    told = os.environ.get("HOME")
    if sys.platform == "win32" or told is None or os.path.isabs(told):  # noqa: PTH117 - a text
        return Path(chosen).expanduser()
    if chosen != "~" and not chosen.startswith("~/"):
        return Path(chosen).expanduser()
    import pwd

    try:
        own = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError as error:
        raise RuntimeError("HOME is empty and the system knows no folder of yours.") from error
    return Path(own) / chosen[2:]


def config_folder(home: Path) -> Path:
    """Return the folder of the user's own templates and prompts."""
    return home / "config"


def project_of(path: Path, home: Path, *, share_worktrees: bool = True) -> Project:
    """Return the project that `path`, a notebook or a folder, belongs to.

    `path` need not exist. With `share_worktrees` a linked work tree is the main one's project.
    Raises `PlaceError` for a path that no file can have.
    """
    real = real_path(path)
    folder = real if _is_folder(real) else real.parent
    tree = gitfiles.work_tree(folder)
    wanted = (
        tree.main if tree and share_worktrees else None,
        tree.top if tree else None,
        folder,
    )
    root = next((each for each in wanted if each and not is_too_wide(each)), real)
    return Project(root, project_key(root), home / "projects" / project_key(root))


def project_key(root: Path) -> str:
    """Return a key that people can read and that differs for different roots.

    It is the last part of the path, made safe, and ten hex digits of the SHA-256 of the whole,
    NFC-normalised (formats.md): a rule that only replaces odd characters would make one folder
    of ``spec-rl`` and ``spec/rl``.
    """
    name = _UNSAFE.sub("-", unicodedata.normalize("NFC", root.name)).strip("-.")[:_KEY_NAME]
    return f"{name or 'root'}-{_digest(root)[:10]}"


def _digest(path: Path) -> str:
    text = unicodedata.normalize("NFC", str(path))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def real_path(path: Path) -> Path:
    """Return the one path of what `path` names: links followed, in the case the disk has it in.

    What does not exist, or may not be looked into, stays as it is written. Raises `PlaceError`
    for a path that no file can have.
    """
    try:
        try:
            real = Path(os.path.realpath(path))
        except OSError:
            real = path.absolute()
        found = Path(real.anchor)
        for part in real.parts[1:]:
            found /= _listed(found, part)
    except (OSError, ValueError) as error:
        raise PlaceError(f"{str(path)!r} is no path that a file can have: {error}.") from error
    return found


def as_listed(name: str, names: Iterable[str]) -> str:
    """Return that of `names` which a file system without case takes for `name`, else `name`."""
    folded = unicodedata.normalize("NFC", name).casefold()
    same = [each for each in names if unicodedata.normalize("NFC", each).casefold() == folded]
    return name if name in same or not same else same[0]


def _listed(folder: Path, name: str) -> str:
    """Return `name` as `folder` lists it.

    On a file system that knows case, this costs one `stat` that finds nothing.
    """
    swapped = name.swapcase()
    if swapped == name:
        return name
    try:
        same = (folder / swapped).samefile(folder / name)
        return as_listed(name, os.listdir(folder)) if same else name  # noqa: PTH208 - names only
    except OSError:
        return name


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        # A missing path with an ending is a notebook that was not saved yet.
        return not path.suffix


def is_too_wide(root: Path) -> bool:
    """Return whether `root` is a folder nobody means as one project: ``/`` or a home folder."""
    try:
        return root == root.parent or root == real_path(Path.home())
    except (PlaceError, RuntimeError):
        return False
