"""From a file of the memory folder to a `Memory`: at most its first 30 lines, whatever it holds.

A file that cannot be read or parsed becomes a memory too, with its `problem`: it is listed by its
name and never lost (behaviour E8). A link is listed and not followed.
"""

from __future__ import annotations

import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ipymemory.images import digest
from ipymemory.memory_files import frontmatter
from ipymemory.memory_files.values import Memory, Source, stamp, when

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

LINES = 30
"""Lines that a scan reads of a file (behaviour E8)."""

_BYTES = 64 * 1024
"""Bytes in which those lines must be: a line of a memory is text that somebody reads."""

MOST_BYTES = 1024 * 1024
"""A memory is a page of text; what is larger is shown by its beginning."""


def scanned(path: Path, name: str, found: os.stat_result) -> Memory:
    """Return the memory in `path` as a scan sees it. Never raises for what the file holds."""
    return _memory(path, name, found, _BYTES, LINES)


def whole(path: Path, name: str, found: os.stat_result) -> Memory:
    """Return the memory in `path` with all of its body and its digest."""
    return _memory(path, name, found, MOST_BYTES, 0)


def parsed(data: bytes, path: Path, name: str, changed: float, *, all: bool = False) -> Memory:
    """Return the memory that a file with `data` is; `changed` is its time in seconds.

    `all`: nothing of the file is missing in `data`. Raises `UnicodeDecodeError`.
    """
    front = frontmatter.read(data.decode("utf-8"))
    fields = front.fields
    told: Any = fields.get("metadata")
    nested = told if isinstance(told, dict) else {}
    of = frontmatter.text_of
    written = of(fields, "metadata", "modified") or of(fields, "modified")
    # Most stand as we write them, and need not be written anew.
    usual = _STAMP.fullmatch(written) and when(written)
    moment = None if usual else when(written)
    note: Any = nested.get("ipymemory_source", fields.get("ipymemory_source"))
    session = of(fields, "metadata", "originSessionId") or of(fields, "originSessionId")
    subject = of(nested, "ipymemory_source", "subject")
    replaced_by = of(fields, "metadata", "superseded_by") or of(fields, "superseded_by")
    return Memory(
        name,
        of(fields, "metadata", "type") or of(fields, "type"),
        of(fields, "description"),
        front.body,
        path,
        written if usual else stamp(moment if moment is not None else _moment(changed)),
        Source.from_dict(note, session),
        not replaced_by,
        subject,
        front.problem,
        of(nested, "ipymemory_source", "title") or of(fields, "name"),
        digest(data) if all else "",
    )


def _memory(path: Path, name: str, found: os.stat_result, most: int, lines: int) -> Memory:

    def unread(why: str) -> Memory:
        return Memory(name, "", "", "", path, stamp(_moment(found.st_mtime)), problem=why)

    if stat.S_ISLNK(found.st_mode):
        return unread("It is a link; it was not read.")
    if not stat.S_ISREG(found.st_mode):
        return unread("It is no file.")
    try:
        # Not `most` at once: so much memory would be got ready for every page of text.
        data = beginning(path, min(most, found.st_size + 1))
        if len(data) < found.st_size:
            data = data[: data.rfind(b"\n") + 1]
        if lines:
            data = _first_lines(data, lines)
        return parsed(data, path, name, found.st_mtime, all=len(data) == found.st_size)
    except OSError as error:
        return unread(f"It cannot be read: {error.strerror or error}.")
    except UnicodeDecodeError:
        return unread("It is no UTF-8 text.")


def beginning(path: Path, most: int) -> bytes:
    """Return at most `most` bytes; a link is not followed, a pipe not waited for.

    Raises `OSError`.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)


def _first_lines(data: bytes, count: int) -> bytes:
    at = 0
    for _ in range(count):
        at = data.find(b"\n", at) + 1
        if not at:
            return data
    return data[:at]


def _moment(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
