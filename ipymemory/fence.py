"""The fence of an engine that may look around: what it may read.

It reads inside the project and the memory folder (behaviour E6) and nowhere else. Our own home
stays closed wherever it lies, git's own folder is read with Git alone, and names in
`Privacy.files` are closed to every tool. Names are compared as the most forgiving file system
would: without case, without characters that cannot be seen, in one form of Unicode, without the
endings that Windows drops or an editor adds to a backup.

Every call is allowed with the one real path of what it names; the tools open that path without
following a link, so that a swap between the check and the use is refused there (behaviour L6).
"""

from __future__ import annotations

import fnmatch
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ipymemory.errors import PlaceError
from ipymemory.permissions import Allow, Deny
from ipymemory.places import Project, is_too_wide, real_path
from ipymemory.turns import ToolCall

READING = ("Read", "Grep", "Glob", "Find", "List", "Wc", "Git")
"""The tools that a fence lets look, each at one path."""

LONGEST_PATH = 4096
"""Linux's PATH_MAX; every other system allows less."""

_NEED_A_PATH = ("Read", "Wc")
"""Tools that look at one file; the others look at the whole project where no path is named."""

_BACKUP = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|swp|tmp|copy|gz|bz2|xz|zst|zip|\d+))$")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\.|$)")


class Fence:
    """A policy: reads in `root` and `memory`, no more."""

    def __init__(
        self,
        root: Path,
        memory: Path | None,
        private: Sequence[str],
        *,
        also: Sequence[Path] = (),
        closed: Sequence[Path] = (),
    ) -> None:
        """`private`: ``Privacy.files``. `root`, where relative paths start, may be a notebook.

        `also`: further folders that may be read. `closed`: folders that stay closed though they
        lie inside. Each may be inside another; of those around a path the innermost counts. A
        home folder, or ``/``, is nobody's project and stays closed. Raises `PlaceError` for what
        no path can be.
        """
        self.root = real_path(root)
        given = [real_path(each) for each in (root, *also)]
        self._open = [each for each in given if not is_too_wide(each)]
        if memory is not None:
            self._open.append(real_path(memory))
        self._closed = tuple(map(real_path, closed))
        self._private = _patterns(private)

    @classmethod
    def of(
        cls,
        project: Project,
        memory: Path | None,
        private: Sequence[str],
        *,
        here: Path | None = None,
    ) -> Fence:
        """Return the fence around `project`, with our home closed but for the memory folder.

        `here`: the work tree that is worked in, where that is not the project's main one;
        relative paths start there.
        """
        root = here or project.root
        return cls(root, memory, private, also=(project.root,), closed=(project.home,))

    @property
    def base(self) -> Path:
        """The folder that relative paths start from."""
        return self.root if self.root.is_dir() else self.root.parent

    @property
    def allowed(self) -> str:
        """What is allowed here, as a sentence for the engine."""
        places = " and ".join(dict.fromkeys(map(str, self._open))) or "no folder"
        return (
            f"Allowed here: {', '.join(READING)} inside {places}; nothing is written, no program "
            "is started, and private files stay closed."
        )

    def check(self, call: ToolCall) -> Allow | Deny:
        """Return `Allow` with the one real path in the call, or `Deny`. Never raises."""
        if call.name not in READING:
            return Deny(f"{shown(call.name)} was refused. {self.allowed}")
        # What an engine sends need not be what its type says.
        given: object = call.input
        if not isinstance(given, Mapping):
            return Deny(f"The call of {call.name} has no input. {self.allowed}")
        named = given.get("path")
        if named in (None, "") and call.name not in _NEED_A_PATH:
            named = "."
        if not isinstance(named, str) or not named or len(named) > LONGEST_PATH:
            return Deny(
                f'{call.name} named no path that can be one; give it as "path". {self.allowed}'
            )
        try:
            why = _odd(named, windows=os.name == "nt")
            path = self.root if why else real_path(self.base / named)
            why = why or self.why_closed(path)
        except (PlaceError, OSError, ValueError, RuntimeError):
            return Deny(f"{shown(named)} is no path that a file can have. {self.allowed}")
        if why:
            return Deny(f"{shown(named)} was refused: {why}. {self.allowed}")
        return Allow(replace(call, input={**given, "path": str(path)}))

    def why_closed(self, path: Path) -> str:
        """Return why `path`, a real path, may not be read, in a few words; nothing if it may."""
        around = _innermost(path, self._open)
        if around is None or ".." in path.parts:
            return "it lies outside the project and the memory folder"
        shut = _innermost(path, self._closed)
        if shut is not None and len(shut.parts) >= len(around.parts):
            return "it is ipymemory's own"
        parts = path.parts[len(around.parts) :] or (path.name,)
        if any(_plain(each) == ".git" for each in parts):
            return "git's own folder is read with Git alone"
        if any(map(self.is_private, parts)):
            return "its name says that it may hold secrets or people's data (Privacy.files)"
        return ""

    def is_private(self, name: str) -> bool:
        """Return whether a file or folder of this name is closed to every tool."""
        plain = _plain(name)
        names = {plain, plain.partition(":")[0]}
        while (bare := _BACKUP.sub("", plain)) != plain:
            names.add(bare)
            plain = bare
        return any(self._private.match(each) for each in names)


def shown(text: object) -> str:
    """Return `text`, as an engine gave it, short and on one line."""
    short = "".join(each if each.isprintable() else "?" for each in str(text)[:200])
    return short or "a tool without a name"


def _odd(named: str, *, windows: bool) -> str:
    """Return why `named` is not even looked up, or nothing."""
    if "\0" in named:
        return "a path holds no null character"
    if named.startswith("~"):
        return "~ is not replaced here; give a path inside the project"
    if windows:
        # Looking one of these up may open a device, or send a password's hash to another host.
        if named.startswith(("\\\\", "//", "\\/", "/\\")):
            return "network and device paths are not opened"
        parts = re.split(r"[\\/]", named)
        if any(":" in each for each in parts[1:]) or re.match(r"[^:]{2,}:|.:[^\\/]", parts[0]):
            return "a path holds no colon but behind the drive"
        if any(_DEVICE.match(_plain(each)) for each in parts):
            return "it is a device"
    return ""


def _innermost(path: Path, areas: Iterable[Path]) -> Path | None:
    around = [each for each in areas if _within(path, each)]
    return max(around, key=lambda each: len(each.parts), default=None)


def _within(path: Path, area: Path) -> bool:
    one, other = os.path.normcase(path), os.path.normcase(area)
    return one == other or one.startswith(other.rstrip(os.sep) + os.sep)


def _plain(name: str) -> str:
    """Return `name` as the most forgiving file system would compare it."""
    if name.isascii() and name.isprintable():
        return name.lower().rstrip(". ")
    seen = (
        each
        for each in unicodedata.normalize("NFKC", name)
        # Characters without a shape are dropped by HFS+ when it looks up a name.
        if unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Cn")
    )
    return "".join(seen).casefold().rstrip(". ")


def _patterns(private: Sequence[str]) -> re.Pattern[str]:
    plain = [unicodedata.normalize("NFKC", each).casefold() for each in private if each]
    return re.compile("|".join(map(fnmatch.translate, plain)) or r"(?!)")
