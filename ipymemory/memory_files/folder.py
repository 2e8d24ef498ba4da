"""The memory folder: one door for every process and person that writes there.

A write takes the lock of the folder (outside of it, since nothing of ours but memories may lie
inside), looks at what is there now, writes through the undo history, which refuses a file that
changed since it was read, and brings the index in step. A process killed between two of these
leaves whole files and at most an index that is behind; the next write, and `mend`, catch up.

The index is derived from the files and a person's own lines, so it is no part of a run's undo:
else no save could be taken back once another followed. After an undo the index is rebuilt.

What mode a project is in, and whether the folder is shared, is enforced here, so that no engine
and no face can get round it: `save`, `supersede` and `forget` raise `MemoryRefused` where a write
may only be proposed or not be made. `keep` and `drop` propose there instead.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ipymemory.config import Settings
from ipymemory.errors import FormatError, HistoryError, MemoryMissing, MemoryRefused
from ipymemory.files import locked, make_folder
from ipymemory.held import Held
from ipymemory.history import History, Run
from ipymemory.images import digest
from ipymemory.memory_files import drafts, editing, proposals
from ipymemory.memory_files.forgotten import Forgotten
from ipymemory.memory_files.proposals import Proposal
from ipymemory.memory_files.reading import ReadFolder
from ipymemory.memory_files.values import Draft, Memory
from ipymemory.memory_place import MemoryPlace, claim, memory_place
from ipymemory.places import Project
from ipymemory.turns import utc_now

LOCK_SECONDS = 15.0
"""A save takes some hundredths of a second; sixteen processes that save at once wait in line."""

PERSONS = frozenset({"person", "markdown", "comment", "ask"})
"""Origins that are a person's own words (behaviour E13)."""

_LEFT = re.compile(r"\..+\.(?:[0-9a-f]{12}|\d+\.[0-9a-f]{8})\.tmp")
"""Temporary names of `held` and `files`."""


class MemoryFolder(ReadFolder):
    """The memories in `folder` of `project`. Making one touches nothing on disk."""

    def __init__(
        self,
        folder: Path,
        project: Project,
        *,
        shared: bool = False,
        mode: str = "auto",
        refusal: str = "",
    ) -> None:
        """`shared`: another program writes there too; `refusal`: why nothing may be written."""
        super().__init__(folder, project)
        self.shared = shared
        self.mode = mode
        self.refusal = refusal
        # Who shares a folder with another program may share it with another project of ours.
        place = project.home if shared else project.folder
        self._lock = place / (".shared-memory.lock" if shared else ".memory.lock")

    @property
    def proposes(self) -> bool:
        """Whether a write waits for the user's yes."""
        return self.shared or self.mode == "confirm"

    @property
    def closed(self) -> str:
        """Why no memory may be written at all, as a sentence; empty where it may."""
        if self.mode in ("read", "off"):
            return (
                f"No memory is written in mode {self.mode}. The command mode auto (or confirm) "
                "allows it again."
            )
        return self.refusal

    def save(
        self,
        draft: Draft,
        run: Run,
        *,
        replaces: str | None = None,
        confirmed: bool = False,
        asked: bool = False,
    ) -> Memory:
        """Keep `draft` and return its memory; what is kept already is not kept twice.

        It takes the place of the memory called `replaces`, or of the current one with the same
        subject. `confirmed`: the user said yes to this write; `asked`: the user asked for it by
        hand, so that it counts although it was once forgotten. Raises `MemoryRefused`,
        `MemoryMissing`, `HistoryError`, `PlaceError`.
        """
        self._may_write(confirmed)
        draft = drafts.checked(draft)
        with self._locked():
            if asked:
                self._forgotten().lift(draft)
            elif self.forgotten(draft):
                raise MemoryRefused(
                    "The user forgot this before, so it was not kept. It is kept again when the "
                    "user asks for it by hand."
                )
            if (same := self.saying(draft)) is not None:
                return same
            old = self.find(replaces) if replaces else self._of_subject(draft)
            if old is not None:
                return self._supersede(old, draft, run)
            make_folder(self.folder)
            name = drafts.free_name(draft.title, draft.kind, os.listdir(self.folder))  # noqa: PTH208 - names only
            data = drafts.file_text(name, draft, utc_now()).encode()
            run.write(self.folder / f"{name}.md", data, seen=None)
            return self._listed(name)

    def supersede(
        self, name: str, draft: Draft, run: Run, *, seen: str = "", confirmed: bool = False
    ) -> Memory:
        """Put `draft` in the place of the memory called `name`, whose old text is in the history.

        Its name and whatever else its frontmatter holds stay. `seen` is the digest of the file
        as the caller read it: when it is another now, `HistoryError` is raised.
        """
        self._may_write(confirmed)
        draft = drafts.checked(draft)
        with self._locked():
            return self._supersede(self.find(name), draft, run, seen)

    def forget(self, name: str, run: Run, *, seen: str = "", confirmed: bool = False) -> Memory:
        """Remove the memory called `name`, so that it is not learned again; return what it was.

        Raises `MemoryMissing`, `MemoryRefused`, `HistoryError`, `PlaceError`.
        """
        self._may_write(confirmed)
        with self._locked():
            memory = self.read(name)
            data = _bytes(memory, seen)
            self._forgotten().add(memory, run.id)
            run.write(memory.path, None, seen=data)
            # Late, since recall stands on this room: what is forgotten leaves its index too.
            from ipymemory.recall.database import drop

            drop(self.project.folder / "index.sqlite", memory.name)
            self._listing.write(self._look_again(memory.name))
            return memory

    def keep(
        self, draft: Draft, run: Run, *, replaces: str | None = None, asked: bool = False
    ) -> Memory | Proposal:
        """Save `draft`, or propose it where a write waits for the user."""
        if not self.proposes or self.closed:
            return self.save(draft, run, replaces=replaces, asked=asked)
        return self.propose(draft, run, replaces=replaces, asked=asked)

    def propose(
        self, draft: Draft, run: Run, *, replaces: str | None = None, asked: bool = False
    ) -> Proposal:
        """Have `draft` wait for the user's yes, whatever the mode; writes no memory.

        Raises `MemoryRefused`, `PlaceError`.
        """
        if self.closed:
            raise MemoryRefused(self.closed)
        draft = drafts.checked(draft)
        if not asked and self.forgotten(draft):
            raise MemoryRefused("The user forgot this before, so it was not proposed.")
        old = self.find(replaces) if replaces else self._of_subject(draft)
        name = old.name if old is not None else ""
        entry = run.entry
        return proposals.propose(self.project.proposals, entry.job, entry.session, draft, name)

    def drop(self, name: str, run: Run) -> Memory | Proposal:
        """Forget the memory called `name`, or propose that where it waits for the user."""
        if not self.proposes or self.closed:
            return self.forget(name, run)
        found, entry = self.find(name), run.entry
        return proposals.propose(self.project.proposals, entry.job, entry.session, None, found.name)

    def accept(self, proposal: Proposal, run: Run) -> Memory:
        """Carry out what the user said yes to, and take the proposal away."""
        if proposal.draft is None:
            memory = self.forget(proposal.name, run, confirmed=True)
        else:
            memory = self.save(
                proposal.draft, run, replaces=proposal.name or None, confirmed=True, asked=True
            )
        proposals.settle(self.project.proposals, proposal)
        return memory

    @contextmanager
    def held_still(self, *, confirmed: bool = False, run: Run | None = None) -> Iterator[None]:
        """Let nobody else save while the block writes several files; then the index follows.

        With a `run` the index goes back with the rest where somebody undoes it. Raises
        `MemoryRefused` where no memory may be written, `PlaceError`.
        """
        self._may_write(confirmed)
        with self._locked():
            try:
                yield
            finally:
                self._listing.write(self.scan(), run=run)

    def forgotten(self, draft: Draft) -> bool:
        """Return whether the user forgot what `draft` says (behaviour L12)."""
        return self._forgotten().holds(draft)

    def rebuild_index(self, run: Run | None = None) -> None:
        """Bring the index in step with the files, whoever changed them; raises `PlaceError`.

        `run` is not needed: the index is derived, and a person's lines stay.
        """
        if self.folder.is_dir() and not self.refusal:
            with self._locked():
                self._listing.write(self.scan())

    def mend(self) -> bool:
        """Rebuild the index if it is not in step; return whether it was not."""
        behind = bool(self.drift()) and not self.refusal
        if behind:
            self.rebuild_index()
        return behind

    def _may_write(self, confirmed: bool) -> None:
        if self.closed:
            raise MemoryRefused(self.closed)
        if self.proposes and not confirmed:
            where = "in a folder that is shared" if self.shared else "in mode confirm"
            raise MemoryRefused(f"A memory is only proposed {where}; the user has to say yes.")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(self._lock, LOCK_SECONDS):
            claim(self.project, MemoryPlace(self.folder, self.shared, self.refusal))
            self._sweep()
            yield

    def _sweep(self) -> None:
        """Remove temporary files: who holds the lock knows that nobody is writing them."""
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self.folder):  # noqa: PTH208 - names only
                if name[0] == "." and _LEFT.fullmatch(name):
                    with contextlib.suppress(OSError):
                        (self.folder / name).unlink()

    def _of_subject(self, draft: Draft) -> Memory | None:
        """Return the current memory of the same kind and subject."""
        if not draft.subject:
            return None
        wanted = (draft.kind, draft.subject.casefold())
        for each in self.scan():
            if each.current and not each.problem and (each.kind, each.subject.casefold()) == wanted:
                return each
        return None

    def _supersede(self, old: Memory, draft: Draft, run: Run, seen: str = "") -> Memory:
        if old.source.origin in PERSONS and draft.source.origin not in PERSONS:
            raise MemoryRefused(
                f"{old.name} holds a person's own words; only a person's words take their place."
            )
        if drafts.said(draft) == drafts.said(old):
            return old
        data = _bytes(old, seen)
        try:
            text = editing.edited(
                data.decode(), draft.description, drafts.metadata(draft, utc_now()), draft.body
            )
        except (FormatError, UnicodeDecodeError) as error:
            raise MemoryRefused(
                f"{old.path} was left as it is. {error} Edit it by hand, or forget it first."
            ) from error
        run.write(old.path, text.encode(), seen=data)
        return self._listed(old.name)

    def _listed(self, name: str) -> Memory:
        """Bring the index in step after `name` was written; return its memory."""
        every = self._look_again(name)
        self._listing.write(every, {f"{name}.md"})
        return next(each for each in every if each.name == name)

    def _forgotten(self) -> Forgotten:
        history = History(self.project.history)
        return Forgotten(self.project.folder / "forgotten.jsonl", history.is_undone)


def opened(project: Project, settings: Settings) -> MemoryFolder:
    """Return the memory folder of `project` by its settings, and by the mode chosen in it."""
    place = memory_place(project, settings.memory.folder)
    mode = project.mode(settings.memory.mode)
    return MemoryFolder(
        place.folder, project, shared=place.shared, mode=mode, refusal=place.refusal
    )


def _bytes(memory: Memory, seen: str) -> bytes:
    """Return what the file holds now; raises `HistoryError` when it is not what was `seen`."""
    with Held(memory.path) as held:
        data = held.read()
    if data is None:
        raise MemoryMissing(f"The memory {memory.name} has just been removed.")
    if seen and digest(data) != seen:
        raise HistoryError(
            f"{memory.path} was changed by somebody else meanwhile, so it was left alone. Read "
            "it again."
        )
    return data
