"""The memories as a dream by a model leaves them so far: a copy, and what each change rests on.

Nothing here touches the memory folder. A model reads a copy in the project's own folder; what it
wants done is looked at by code, carried out on that copy, and becomes groups of changes that are
put in place like those of the built-in engine (`dream_journal`). What a model may do follows from
one rule: it words nothing. A memory is made of whole sentences of memories, a sentence may go only
where another holds all of its words, and a date is the one that code finds too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipymemory.dream_journal import Change, Group, now
from ipymemory.errors import FormatError, IpymemoryError, PlaceError, ToolError
from ipymemory.files import make_folder
from ipymemory.memory_files import MemoryFolder, drafts
from ipymemory.memory_files.rewriting import relinked, rewritten
from ipymemory.memory_files.scanning import parsed
from ipymemory.memory_files.values import Memory, Source, one_line
from ipymemory.tidying import Tidied

_OLD = 4 * 3600
"""Seconds after which a plan's copy is one that was left: no dream takes so long."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a dream gives to the model's part of it."""

    folder: MemoryFolder
    found: Tidied
    """What the built-in engine does in the same dream."""
    place: Path
    """The dream's own folder."""
    id: str
    seconds: float
    """How long it may take."""
    over: Callable[[], bool] = lambda: False
    tell: Callable[[dict[str, Any]], None] = lambda counts: None
    """Takes counts of how far it is."""
    say: Callable[[str, dict[str, Any]], None] = lambda kind, details: None
    """Takes an event: its kind and details."""
    sessions: frozenset[str] = frozenset()
    """Those since the last dream, which are under review."""


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What a model's part came to. `groups` are all the dream's, the built-in engine's too."""

    groups: tuple[Group, ...]
    counts: dict[str, int] = field(default_factory=dict)
    asked: tuple[tuple[str, str], ...] = ()
    """Memories that go only if a person says so: name and why."""
    error: str = ""
    """Why it did not come to its end, as a sentence; `groups` are then the built-in ones."""


Consolidate = Callable[[Given], Consolidated]


@dataclass(slots=True)
class File:
    """One memory's file: what it was, what it is now (None: gone), and what is done to it."""

    name: str
    path: Path
    changed: float
    before: bytes
    after: bytes | None
    group: int = 0


class Copy:
    """All current memories of `folder` after what the built-in engine does; in and on disk."""

    def __init__(self, folder: MemoryFolder, groups: Sequence[Group], place: Path) -> None:
        """`place` is a new folder, for the copy that is read. Raises `PlaceError`."""
        self.place = place
        self.files: dict[str, File] = {}
        due = {each.path: (each, n) for n, group in enumerate(groups, 1) for each in group}
        self._last = len(groups)
        for each in folder.scan():
            change, number = due.get(each.path, (None, 0))
            data = change.before if change is not None else _data(each.path)
            if each.problem or data is None or (not each.current and change is None):
                continue
            after = change.after if change is not None else data
            changed = _time(each.path)
            self.files[each.name] = File(each.name, each.path, changed, data, after, number)
        self.total = len(self.files)
        """Memories before the dream."""
        self.stood = sum(1 for _ in self.there())
        """Those that the built-in engine leaves."""
        make_folder(place)
        for file in self.files.values():
            self._show(file)

    def close(self) -> None:
        """Take the copy on disk away. Never raises."""
        shutil.rmtree(self.place, ignore_errors=True)

    def memory(self, file: File) -> Memory:
        """Return the memory that the file is now; raises `ToolError` for one that is gone."""
        if file.after is None:
            raise ToolError(f"{file.name} is gone already.")
        return parsed(file.after, file.path, file.name, file.changed, all=True)

    def original(self, file: File) -> Memory:
        """Return the memory that the file was before the dream."""
        return parsed(file.before, file.path, file.name, file.changed, all=True)

    def find(self, name: str) -> File:
        """Return the file of the memory that is called exactly so, whatever its case.

        Raises `ToolError`.
        """
        wanted = drafts.folded_name(name.strip().removesuffix(".md"))
        for each in self.files.values():
            if each.after is not None and drafts.folded_name(each.name) == wanted:
                return each
        raise ToolError(f"There is no memory {one_line(name, 60)}; Glob *.md names them.")

    def there(self) -> Iterator[File]:
        """Yield the files of the memories that are not gone."""
        return (each for each in self.files.values() if each.after is not None)

    def rewrite(
        self,
        file: File,
        body: str,
        also: tuple[Source, ...] = (),
        description: str = "",
        label: str = "",
    ) -> None:
        """Give a memory other words and further sources; raises `ToolError`."""
        memory = self.memory(file)
        words = {"description": description, "body": body, "label": label}
        try:
            file.after = rewritten(file.after or b"", memory, **words, also=also)
        except FormatError as error:
            raise ToolError(f"{file.name} was left as it is. {error}") from error
        self._show(file)

    def remove(self, file: File) -> None:
        """Have a memory go."""
        file.after = None
        self._show(file)

    def join(self, files: Iterable[File]) -> None:
        """Have `files`, and all that each stands with, stand or fall together."""
        every = list(files)
        numbers = {each.group for each in every if each.group}
        self._last += 1
        for each in self.files.values():
            if each in every or each.group in numbers:
                each.group = self._last

    def relink(self, names: dict[str, str]) -> int:
        """Let links to memories that went lead to what stands for them; return in how many."""
        folded = {drafts.folded_name(old): new for old, new in names.items()}
        count = 0
        for each in self.there():
            memory = self.memory(each)
            # The description and the title are what the index and the lists show.
            texts = (memory.description, memory.body, memory.label)
            description, body, label = (relinked(text, folded) for text in texts)
            if (description, body, label) != texts:
                title = label if label != memory.label else ""
                try:
                    self.rewrite(each, body, description=description, label=title)
                except ToolError:
                    continue
                count += 1
        return count

    def groups(self) -> tuple[Group, ...]:
        """Return all that is to be done; what is kept comes before what goes."""
        by_number: dict[int, list[File]] = {}
        for each in self.files.values():
            if each.group == 0 and each.after != each.before:
                self._last += 1
                each.group = self._last
            if each.group:
                by_number.setdefault(each.group, []).append(each)
        return tuple(
            tuple(
                Change(each.path, each.before, each.after)
                for each in sorted(files, key=lambda each: each.after is None)
            )
            for files in by_number.values()
            if any(each.after != each.before for each in files)
        )

    def _show(self, file: File) -> None:
        """Bring what a model reads of the file in step; the truth is in memory alone."""
        path = self.place / f"{file.name}.md"
        try:
            if file.after is None:
                path.unlink(missing_ok=True)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.after)
            os.utime(path, (file.changed, file.changed))
        except OSError as error:
            raise PlaceError(f"{path} cannot be written: {error.strerror or error}.") from error


def sweep(place: Path) -> None:
    """Remove copies in a dream's folder that nobody works on any more. Never raises.

    The caller holds the dream's lock; a plan holds none, and takes no hour.
    """
    for each in place.glob("copy-*"):
        shutil.rmtree(each, ignore_errors=True)
    for each in (place / "plans").glob("copy-*"):
        with contextlib.suppress(OSError):
            if time.time() - each.stat().st_mtime > _OLD:
                shutil.rmtree(each, ignore_errors=True)


def _time(path: Path) -> float:
    try:
        return path.stat(follow_symlinks=False).st_mtime
    except OSError:  # removed this moment
        return 0.0


def _data(path: Path) -> bytes | None:
    try:
        return now(path)
    except IpymemoryError:
        return None
