"""What was kept or proposed before, so that the same words are not offered again."""

from __future__ import annotations

from ipymemory import lines
from ipymemory.memory_files import proposals
from ipymemory.memory_files.folder import MemoryFolder
from ipymemory.memory_files.proposals import Proposal
from ipymemory.memory_files.values import Draft, Memory, fingerprint
from ipymemory.places import Project
from ipymemory.turns import utc_now


class Offered:
    """What is kept or waits already, and what of a file's words was ever offered in the project.

    A person may say again what was undone; a file that is opened again says nothing new.
    """

    def __init__(self, project: Project, memory: MemoryFolder, job: str) -> None:
        """`job` is the one whose proposals are looked at; raises `IpymemoryError`."""
        self._path = project.folder / "offered.jsonl"
        self._memory = memory
        self.waiting = [each for each in proposals.waiting(project.proposals) if each.job == job]
        told, _ = lines.read(self._path)
        self._ever = {str(each.get("words")) for each in told}

    def holds(self, draft: Draft, *, ever: bool) -> bool:
        """Return whether the words of `draft` are known; `ever`: also from long ago."""
        mark = fingerprint(draft.source.quote)
        if ever and mark in self._ever:
            return True
        if any(
            each.draft and fingerprint(each.draft.source.quote) == mark for each in self.waiting
        ):
            return True
        # Anew each time: the memory before may have taken the place of one.
        return any(
            mark == fingerprint(each.description)
            or any(mark == fingerprint(one.quote) for one in (each.source, *each.source.also))
            for each in self._memory.scan()
            if each.current
        )

    def add(self, draft: Draft, done: Memory | Proposal) -> None:
        """Note that `draft` was saved or proposed; raises `PlaceError`."""
        mark = fingerprint(draft.source.quote)
        lines.append(self._path, {"type": "offered", "time": utc_now(), "words": mark})
        self._ever.add(mark)
        if isinstance(done, Proposal):
            self.waiting.append(done)
