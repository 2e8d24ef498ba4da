"""The index on disk: its pages read, arranged anew and replaced, with a person's lines kept.

Which lines are ours is told by ``listed.json`` in the project's folder, hashes of the lines as
we last wrote them. It is derived: without it a line that leads nowhere is taken for a person's,
and stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path

from ipymemory import lines
from ipymemory.errors import HistoryError, IpymemoryError, PlaceError
from ipymemory.files import make_folder, read_json
from ipymemory.held import Held, resolved
from ipymemory.history import Run
from ipymemory.memory_files import index, scanning
from ipymemory.memory_files.values import Memory
from ipymemory.places import Project

_MOST_PAGES = 1000
_TAIL = 1024 * 1024
"""Bytes of ``usage.jsonl`` that are asked when lines must move: some thousands of recalls."""

_MOST_BYTES = 16 * 1024 * 1024
"""Bytes of a page, as many as `held` reads; ours have 25,000."""

_TRIES = 5
"""How often an index that somebody edits meanwhile is arranged anew."""


class Listing:
    """The index of the memories in `folder`. Write it under the folder's lock."""

    def __init__(self, folder: Path, project: Project) -> None:
        self._folder = folder
        self._record = project.folder / "listed.json"
        self._usage = project.folder / "usage.jsonl"
        self._lines: dict[str, tuple[Memory, str, str]] = {}
        """Memory, line and hash of the line, by file."""

    def pages(self) -> list[str]:
        """Return the texts of the index's pages, none where there is no index."""
        return [_decoded(each) for each in self._bytes()]

    def due(self, memories: Sequence[Memory], fresh: Set[str] = frozenset()) -> list[str]:
        """Return the pages as they should read for `memories`; writes nothing."""
        return self._arranged(self.pages(), memories, fresh)

    def write(
        self, memories: Sequence[Memory], fresh: Set[str] = frozenset(), run: Run | None = None
    ) -> None:
        """Bring the index on disk in step with `memories`; raises `PlaceError`.

        A page that somebody changed between the reading and the writing is read again. With a
        `run` the pages stand in the history with what else it wrote, and go back with that: made
        anew they would name the same memories in another order.
        """
        for _ in range(_TRIES):
            before = self._bytes()
            pages = self._arranged([_decoded(each) for each in before], memories, fresh)
            if self._replaced(before, [_encoded(each) for each in pages], run):
                break
        self._remember(memories)

    def _bytes(self) -> list[bytes]:
        found: list[bytes] = []
        if not self._folder.is_dir():
            return found
        for number in range(1, _MOST_PAGES):
            data = _read(self._folder / index.page_name(number))
            if data is None:
                # A first page that was deleted must not hide the others.
                if number == 1 and (self._folder / index.page_name(2)).exists():
                    found.append(b"")
                    continue
                break
            found.append(data)
        return found

    def _arranged(
        self, pages: Sequence[str], memories: Sequence[Memory], fresh: Set[str]
    ) -> list[str]:
        written = self._written()
        return index.arranged(
            pages,
            {file: line for file, (_, line, _) in self._known(memories).items()},
            lambda file, text: written.get(file) == _hash(text),
            fresh=fresh,
            recency=lambda: self._recency(memories),
        )

    def _known(self, memories: Iterable[Memory]) -> dict[str, tuple[Memory, str, str]]:
        """Return the line of each current memory; of those that did not change, as before."""
        known, self._lines = self._lines, {}
        for each in memories:
            if each.current:
                file = each.file
                before = known.get(file)
                if before is None or before[0] is not each:
                    line = index.line(each)
                    before = each, line, _hash(line)
                self._lines[file] = before
        return self._lines

    def _replaced(self, before: Sequence[bytes], pages: Sequence[bytes], run: Run | None) -> bool:
        """Write what differs, the last page first: a line is there twice before it is nowhere."""
        make_folder(self._folder)
        count = max(len(before), len(pages))
        for number in range(count, 0, -1):
            old = before[number - 1] if number <= len(before) else None
            new = pages[number - 1] if number <= len(pages) else None
            if new == old or (not new and not old):
                continue
            path = resolved(self._folder / index.page_name(number))
            with Held(path) as held:
                now = held.read()
                if now != old and not (now is None and old == b""):
                    return False
                if run is not None:
                    # The index is derived: it can do without the history.
                    with contextlib.suppress(HistoryError):
                        run.before(path, new, now)
                if new is None:
                    held.remove()
                else:
                    held.replace(new)
            if run is not None:
                run.after(path, new)
        return True

    def _written(self) -> Mapping[str, str]:
        try:
            told = (read_json(self._record) or {}).get("lines")
        except IpymemoryError:
            return {}
        return told if isinstance(told, dict) else {}

    def _remember(self, memories: Iterable[Memory]) -> None:
        """Record the lines. Not synced to the disk: the record is derived, and asked each save."""
        known = {file: hash for file, (_, _, hash) in self._known(memories).items()}
        value = json.dumps({"version": 1, "lines": known}).encode()
        temporary = self._record.with_name(f".{self._record.name}.tmp")
        with contextlib.suppress(OSError):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(value)
            temporary.replace(self._record)

    def _recency(self, memories: Iterable[Memory]) -> dict[str, str]:
        """Return when each memory was last recalled or changed, by its file."""
        found = {each.file: each.modified for each in memories}
        for name, time in recalled(self._usage).items():
            file = f"{name}.md"
            if time > found.get(file, "~"):
                found[file] = time
        return found


def _read(path: Path) -> bytes | None:
    """Return what a page holds; the write that may follow looks again, with more care."""
    try:
        return scanning.beginning(path, _MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PlaceError(
            f"The index {path} cannot be read: {error.strerror or error}. Move it away; it is "
            "made again from the memories."
        ) from error


def recalled(usage: Path) -> dict[str, str]:
    """Return when each memory was last recalled, by its name, from a project's ``usage.jsonl``."""
    found: dict[str, str] = {}
    try:
        start = max(0, usage.stat().st_size - _TAIL)
        values, _ = lines.read(usage, start)
    except (OSError, IpymemoryError):
        return found
    for each in values:
        names, time = each.get("memories"), each.get("time")
        if each.get("type") == "recall" and isinstance(names, list) and isinstance(time, str):
            found.update((name, time) for name in names if isinstance(name, str))
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
