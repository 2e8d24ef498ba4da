"""What a dream asks a person: each thing once, as a proposal that waits (behaviour D5).

What was asked is on record in the dream's folder, so that a no is not asked again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ipymemory import dream_state, lines
from ipymemory.errors import MemoryMissing
from ipymemory.extractive.consolidating import Doubt
from ipymemory.memory_files import MemoryFolder, proposals
from ipymemory.places import Project
from ipymemory.turns import utc_now

JOB = "dream"

MOST_QUESTIONS = 20
"""Questions of dreams that wait at the same time, so that they do not bury other proposals."""


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of one dream of `project`, on behalf of `session`."""

    project: Project
    session: str = ""

    def contradictions(self, doubts: Sequence[Doubt]) -> int:
        """Put each contradiction to the user; return how many are new. Raises `PlaceError`."""
        asked = 0
        for doubt in doubts:
            newest, *older = doubt.memories
            for each in older:
                why = f"{newest.name}, which is newer, says something else of {doubt.subject}"
                asked += self._ask(f"{newest.digest} {each.digest}", each.name, why)
        return asked

    def removals(self, folder: MemoryFolder, wanted: Sequence[tuple[str, str]]) -> int:
        """Ask whether memories may go, of which name and reason are given; return how many.

        Raises `PlaceError`.
        """
        asked = 0
        for name, why in wanted:
            with suppress(MemoryMissing):  # somebody removed it meanwhile
                asked += self._ask(f"remove {folder.read_exactly(name).digest}", name, why)
        return asked

    def _ask(self, what: str, name: str, why: str) -> bool:
        """Ask whether the memory `name` may go; return whether that is a new question."""
        path = self.project.folder / dream_state.FOLDER / dream_state.ASKED
        pair = hashlib.sha256(what.encode()).hexdigest()[:32]
        before, _ = lines.read(path)
        store = self.project.proposals
        waiting = sum(each.job == JOB for each in proposals.waiting(store))
        if waiting >= MOST_QUESTIONS or any(each.get("pair") == pair for each in before):
            return False
        proposals.propose(store, JOB, self.session, None, name, why)
        lines.append(path, {"type": "asked", "time": utc_now(), "pair": pair})
        return True
