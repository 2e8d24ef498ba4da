"""A file held through its folder, so that nobody can swap it between the check and the use.

Where the system has directory descriptors, the folder is opened part by part without following
a link, and everything after that goes through its descriptor: a folder or file that was replaced
by a link meanwhile is refused, and a later swap changes nothing. Elsewhere (Windows) the opened
file is checked a second time.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal

from ipymemory.errors import PlaceError
from ipymemory.files import write_atomic

by_descriptor = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether this system has directory descriptors."""

_LINK = "{} is a link, or lies behind one, where a file of ours was; it was not touched."


Kind = Literal["file", "folder", "link", "other"]
_KINDS: dict[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """What a folder lists under `name`; `size` in bytes, `modified` in nanoseconds since 1970."""

    name: str
    kind: Kind
    size: int
    modified: int


def resolved(path: Path) -> Path:
    """Return `path`, absolute, with links and ``..`` resolved everywhere but in its last part.

    Raises `ValueError` for a path that can be none, and `OSError`.
    """
    # ``folder/..`` as the last part names a folder, and is resolved like one.
    if path.name in ("", "..", "."):
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent)) / path.name


class Held:
    """One regular file, or the place of one. Use as a context manager.

    `path` is absolute and resolved: a link anywhere in it is refused with `PlaceError`, and so
    is whatever is no regular file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder: int | None = None

    def __enter__(self) -> Held:
        if not by_descriptor:
            self._check()
            return self
        try:
            self._folder = _open_folder(self._path.parent)
        except FileNotFoundError as error:
            raise PlaceError(f"The folder {self._path.parent} is not there.") from error
        except OSError as error:
            raise PlaceError(_LINK.format(self._path)) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None

    def read(self, most: int = 16 * 1024 * 1024, *, alone: bool = False) -> bytes | None:
        """Return what the file holds, None when there is none.

        `alone`: a file that has a second name, which may lie anywhere, is refused. Raises
        `PlaceError` for a link, for what is no regular file, and past `most` bytes.
        """
        file = self.opened(alone=alone)
        if file is None:
            return None
        with file:
            data = file.read(most + 1)
        if len(data) > most:
            raise PlaceError(f"{self._path} is larger than {most // 1024:,} KB; it was not read.")
        return data

    def opened(self, *, alone: bool = False) -> BinaryIO | None:
        """Return the file, open for reading and the caller's to close; None when there is none.

        Raises `PlaceError` as `read` does.
        """
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        # Opening a pipe that nobody writes to would wait for ever.
        flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            descriptor = self._open(flags)
        except FileNotFoundError:
            return None
        except OSError as error:
            if self._is_link():
                raise PlaceError(_LINK.format(self._path)) from error
            raise PlaceError(f"{self._path} cannot be read: {error.strerror or error}.") from error
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise PlaceError(f"{self._path} is no regular file; it was not touched.")
            if self._folder is None:
                self._check(found)
            if alone and found.st_nlink > 1:
                raise PlaceError(
                    f"{self._path} has {found.st_nlink} names (hard links), and the others may "
                    "lie anywhere; it was not read."
                )
        except BaseException:
            os.close(descriptor)
            raise
        return os.fdopen(descriptor, "rb")

    def replace(self, data: bytes) -> None:
        """Make the file hold `data`: temporary file, fsync, atomic replace; raises `PlaceError`.

        A link in the file's place is replaced, never followed. A file that was there keeps its
        mode: a notebook that others may read stays readable to them.
        """
        if self._folder is None:
            self._check()
            write_atomic(self._path, data)
            return
        name = self._path.name
        temporary = f".{name[:100]}.{os.urandom(6).hex()}.tmp"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            mode = self._mode()
            try:
                with os.fdopen(self._open(flags, temporary), "wb") as file:
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=self._folder)
                raise
            with contextlib.suppress(OSError):  # some file systems cannot sync a folder
                os.fsync(self._folder)
        except OSError as error:
            raise PlaceError(
                f"{self._path} could not be written: {error.strerror or error}. It is as it was; "
                "free some space or mend the folder's permissions."
            ) from error

    def remove(self) -> None:
        """Remove the file if it is there; raises `PlaceError`."""
        try:
            if self._folder is None:
                self._check()
                self._path.unlink(missing_ok=True)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path.name, dir_fd=self._folder)
        except OSError as error:
            raise PlaceError(
                f"{self._path} could not be removed: {error.strerror or error}."
            ) from error

    def _open(self, flags: int, name: str = "") -> int:
        if self._folder is None:
            return os.open(self._path, flags, 0o600)
        return os.open(name or self._path.name, flags, 0o600, dir_fd=self._folder)

    def _mode(self) -> int | None:
        """Return the mode of the regular file that is there, None where there is none."""
        try:
            found = os.stat(self._path.name, dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return None
        return stat.S_IMODE(found.st_mode) & 0o777 if stat.S_ISREG(found.st_mode) else None

    def _is_link(self) -> bool:
        try:
            found = (
                os.lstat(self._path)
                if self._folder is None
                else os.stat(self._path.name, dir_fd=self._folder, follow_symlinks=False)
            )
        except OSError:
            return False
        return stat.S_ISLNK(found.st_mode)

    def _check(self, opened: os.stat_result | None = None) -> None:
        """Refuse a path that has become a link, or whose opened file is another one."""
        real = os.path.realpath(self._path)
        same = os.path.normcase(real) == os.path.normcase(self._path)
        if same and opened is not None:
            same = os.path.samestat(opened, os.lstat(self._path))
        if not same:
            raise PlaceError(_LINK.format(self._path))


def listed(folder: Path, most: int = 100_000) -> list[Listed]:
    """Return what `folder`, absolute and resolved, lists, sorted by name; links are not followed.

    Raises `PlaceError` for a link anywhere in it, for what is no folder that can be read, and
    past `most` names.
    """
    descriptor = -1
    try:
        if by_descriptor:
            descriptor = _open_folder(folder)
        elif os.path.normcase(os.path.realpath(folder)) != os.path.normcase(folder):
            raise PlaceError(_LINK.format(folder))
        found: list[Listed] = []
        with os.scandir(folder if descriptor < 0 else descriptor) as entries:
            for each in entries:
                if len(found) >= most:
                    raise PlaceError(f"{folder} holds more than {most:,} files; it was not listed.")
                with contextlib.suppress(FileNotFoundError):  # it has just been removed
                    found.append(_listed(each))
        return sorted(found, key=lambda each: each.name)
    except OSError as error:
        why = error.strerror or error
        raise PlaceError(f"{folder} is no folder that can be listed: {why}.") from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _listed(entry: os.DirEntry[str]) -> Listed:
    found = entry.stat(follow_symlinks=False)
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    return Listed(entry.name, kind, found.st_size, found.st_mtime_ns)


def _open_folder(folder: Path) -> int:
    """Return a descriptor of `folder`, reached without following a link; raises `OSError`."""
    if hasattr(os, "O_NOFOLLOW_ANY"):  # macOS: the whole path in one go
        flags = int(os.O_NOFOLLOW_ANY)
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | flags)
    # O_PATH: a folder on the way need only be passable, not readable.
    passing = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
    parts = folder.parts
    here = os.open(parts[0], passing)
    try:
        for part in parts[1:]:
            there = os.open(part, passing, dir_fd=here)
            os.close(here)
            here = there
        # A descriptor of the O_PATH kind cannot be synced.
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)
