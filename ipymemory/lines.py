"""JSON Lines that several processes append to: one ``write`` a line, a torn one is skipped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ipymemory import descriptors
from ipymemory.errors import PlaceError
from ipymemory.files import make_folder


def append(path: Path, value: Mapping[str, Any], *, sync: bool = False) -> None:
    """Append `value` as one line; the folder is made if needed.

    A file whose last byte is no line feed, left by a process that was killed, gets one first.
    With `sync` the line is on the disk itself when this returns. Raises `PlaceError`.
    """
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "backslashreplace"
    )
    make_folder(path.parent)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    try:
        descriptor = descriptors.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            size = descriptors.lseek(descriptor, 0, os.SEEK_END)
            torn = False
            if size:
                descriptors.lseek(descriptor, size - 1, os.SEEK_SET)
                torn = descriptors.read(descriptor, 1) != b"\n"
            line = (b"\n" if torn else b"") + data + b"\n"
            if descriptors.write(descriptor, line) != len(line):
                raise OSError(28, "the disk is full")
            if sync:
                os.fsync(descriptor)
        finally:
            descriptors.close(descriptor)
    except OSError as error:
        raise PlaceError(
            f"Nothing could be appended to {path}: {error.strerror or error}. "
            "Free some space or mend the folder's permissions."
        ) from error


def read(path: Path, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Return the objects whose lines begin at `offset` or later, and where the next one begins.

    A line that is no JSON object is skipped; a last one without its line feed is left for the
    next call. A missing file holds nothing. Raises `PlaceError` when the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise PlaceError(f"{path} cannot be read: {error.strerror or error}.") from error
    end = data.rfind(b"\n") + 1
    values = []
    for line in data[:end].split(b"\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            values.append(value)
    return values, offset + end
