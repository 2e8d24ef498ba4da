"""Whole files, private folders and short locks: a write is there as a whole or not at all.

A file is written beside its place under a name that begins with a dot, flushed to the disk and
moved over the old one. Files are 0600 and folders 0700, as far as the system knows such modes.
What is read, changed and written back by several processes is held by a lock meanwhile.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from ipymemory.errors import FormatError, PlaceError

_REPLACE_TRIES = 20
_REPLACE_WAIT = 0.05
"""Seconds between tries: on Windows a virus scanner or an editor may hold the file for a moment."""

LOCK_SECONDS = 3.0
"""How long a lock is waited for. What is done under one takes some hundredths of a second."""


def make_folder(path: Path) -> Path:
    """Return `path`, a folder that is there now; what was missing of it is made with mode 0700.

    Raises `PlaceError`.
    """
    try:
        if not path.is_dir():
            # `parents=True` would make the folders above with the mode of the user's umask.
            missing = [each for each in (path, *path.parents) if not each.exists()]
            for each in reversed(missing):
                each.mkdir(mode=0o700, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        if (link := lost_link(path)) is not None:
            raise PlaceError(
                f"The folder {path} cannot be made: {link} is a link to {os.readlink(link)}, "  # noqa: PTH115 - the words of it
                "which is not there. Make that folder, or remove the link."
            ) from error
        raise PlaceError(
            f"The folder {path} cannot be made: {error.strerror or error}. {_mend(error)}, "
            "or set IPYMEMORY_HOME to a folder that can be written."
        ) from error
    return path


def lost_link(path: Path) -> Path | None:
    """Return what of `path` is a link to nothing, if any part of it is."""
    parts = (path, *path.parents)
    return next((each for each in parts if each.is_symlink() and not each.exists()), None)


def write_atomic(path: Path, data: bytes) -> None:
    """Put `data` at `path`, whole or not at all; the folder is made if needed.

    Nothing temporary stays behind, also when it fails. Raises `PlaceError`.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise PlaceError(
            f"{path} cannot be written: {error.strerror or error}. Free some space or mend the "
            "permissions; what was there before is untouched."
        ) from error


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in the file, or None where there is no file.

    Raises `FormatError` when it holds something else, `PlaceError` when it cannot be read.
    """
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise PlaceError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{path} is not valid JSON ({error}). It is left as it is; mend it or move it away."
        ) from error
    if not isinstance(value, dict):
        raise FormatError(f"{path} holds no JSON object. Mend it or move it away.")
    return value


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Put `value` at `path` as indented JSON; raises `PlaceError`."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    write_atomic(path, text.encode("utf-8", "backslashreplace") + b"\n")


@contextlib.contextmanager
def locked(path: Path, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock file `path`, which stays there, while the block runs.

    Of any number of processes and threads one at a time is let in; the system lets the lock of
    a process go that was killed. Raises `PlaceError` after `seconds` of waiting.
    """
    locks = filelock()
    make_folder(path.parent)
    lock = locks.FileLock(path, timeout=seconds, mode=0o600)
    try:
        # Where the system has no such locks a marker is used instead, and a warning of it would
        # be printed into the cell that runs.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lock.acquire()
    except locks.Timeout as error:
        raise PlaceError(
            f"{path} has been held by another process for {seconds:g} s. Try again; if it is "
            "still held then, end that process."
        ) from error
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PlaceError(f"{path} cannot be locked: {reason}. Mend its permissions.") from error
    try:
        yield
    finally:
        lock.release()


@cache
def filelock() -> Any:
    """Return the package filelock as it is installed.

    Late, since it takes 15 ms and a kernel needs it at its first cell only; and never from the
    working folder, where a notebook may lie beside somebody's own ``filelock.py``.
    """
    installed = [each for each in sys.path if each and not _is_working_folder(each)]
    spec = PathFinder.find_spec("filelock", installed)
    found = PathFinder.find_spec("filelock", sys.path)
    loaded = sys.modules.get("filelock")
    origin = getattr(loaded, "__file__", None) if loaded else getattr(found, "origin", None)
    if spec is None or spec.loader is None or origin == spec.origin:
        return importlib.import_module("filelock")
    # Imported under its name, since it asks for its own parts by it, and then taken out again:
    # the name belongs to the user's own module.
    kept = _taken_out("filelock")
    finder = _Installed(installed)
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module("filelock")
    finally:
        sys.meta_path.remove(finder)
        _taken_out("filelock")
        sys.modules.update(kept)


class _Installed(MetaPathFinder):
    """Finds filelock in certain folders only."""

    def __init__(self, folders: list[str]) -> None:
        self._folders = folders

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the top of filelock is; all else is others' to find."""
        return PathFinder.find_spec(name, self._folders) if name == "filelock" else None


def _taken_out(name: str) -> dict[str, ModuleType]:
    """Take a package and its parts out of the loaded modules; return them."""
    found = [each for each in tuple(sys.modules) if each == name or each.startswith(f"{name}.")]
    return {each: sys.modules.pop(each) for each in found}


def _is_working_folder(path: str) -> bool:
    try:
        return Path(path).samefile(Path.cwd())
    except OSError:
        return False


def sync_folder(folder: Path) -> None:
    """Put the names in `folder` on the disk itself, where the system lets one."""
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _mend(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "Move away the file that stands in its place"
    return "Mend its permissions"


def _replace(source: Path, target: Path) -> None:
    for _ in range(_REPLACE_TRIES if os.name == "nt" else 0):
        try:
            source.replace(target)
        except PermissionError:
            time.sleep(_REPLACE_WAIT)
        else:
            return
    source.replace(target)
