"""What files held, by the hash of it: stored once however often it occurs, compressed."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Set
from pathlib import Path

from ipymemory.errors import HistoryError
from ipymemory.files import make_folder, write_atomic


def digest(data: bytes) -> str:
    """Return the SHA-256 of `data`, 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


class Images:
    """A folder of images: ``<folder>/<first two digits>/<the other 62>``, zlib."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Store `data` if it is not there yet; return its hash. Raises `PlaceError`."""
        name = digest(data)
        path = self._path(name)
        if not path.exists():
            make_folder(path.parent)
            write_atomic(path, zlib.compress(data))
        return name

    def get(self, name: str) -> bytes:
        """Return what was stored as `name`; raises `HistoryError` when it is gone or damaged."""
        try:
            data = zlib.decompress(self._path(name).read_bytes())
        except FileNotFoundError as error:
            raise HistoryError("That version is no longer kept.") from error
        except (OSError, zlib.error) as error:
            raise HistoryError(
                f"The stored version {name[:12]} cannot be read: {error}."
            ) from error
        if digest(data) != name:
            raise HistoryError(f"The stored version {name[:12]} is damaged.")
        return data

    def keep_only(self, names: Set[str]) -> None:
        """Remove every image that is not in `names`. What cannot be removed stays."""
        for path in self._folder.glob("??/*"):
            if path.parent.name + path.name not in names:
                try:
                    path.unlink()
                except OSError:
                    continue

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name[2:]
