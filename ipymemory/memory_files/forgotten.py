"""What the user forgot, by hash and subject, so that it is not learned again (behaviour L12).

``forgotten.jsonl`` holds no text of a memory, only hashes of its words. A line of type
``wanted`` takes earlier ones back: the user asked for the same thing by hand. So does undoing
the run that forgot it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ipymemory import lines
from ipymemory.memory_files.values import Draft, Memory, fingerprint, normal
from ipymemory.turns import utc_now


class Forgotten:
    """The record at `path`; ``undone(run)`` tells whether a run was taken back."""

    def __init__(self, path: Path, undone: Callable[[str], bool]) -> None:
        self._path = path
        self._undone = undone

    def add(self, memory: Memory, run: str) -> None:
        """Put `memory` on record, before its file goes; raises `PlaceError`."""
        lines.append(
            self._path,
            {
                "type": "forgotten",
                "version": 1,
                "time": utc_now(),
                "run": run,
                "kind": memory.kind,
                "hashes": sorted(_hashes(memory)),
                "subject": normal(memory.subject),
            },
            sync=True,
        )

    def lift(self, draft: Draft) -> None:
        """Take back what is on record of `draft`, if anything is; raises `PlaceError`."""
        if self.holds(draft):
            lines.append(
                self._path,
                {
                    "type": "wanted",
                    "time": utc_now(),
                    "hashes": sorted(_hashes(draft)),
                    "subject": normal(draft.subject),
                },
            )

    def holds(self, draft: Draft) -> bool:
        """Return whether what `draft` says was forgotten; raises `PlaceError`."""
        found, _ = lines.read(self._path)
        hashes, subject = _hashes(draft), normal(draft.subject)
        standing: list[Mapping[str, Any]] = []
        for each in found:
            if each.get("type") == "wanted":
                standing = [one for one in standing if not _meets(each, one)]
            elif each.get("type") == "forgotten":
                standing.append(each)
        wanted = {"hashes": list(hashes), "subject": subject}
        return any(
            _meets(wanted, each) and not self._undone(str(each.get("run", ""))) for each in standing
        )


def _hashes(said: Draft | Memory) -> set[str]:
    texts = (said.description, said.body, said.source.quote)
    return {fingerprint(each) for each in texts} - {""}


def _meets(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    hashes, others = (each.get("hashes") for each in (one, other))
    if isinstance(hashes, list) and isinstance(others, list) and set(hashes) & set(others):
        return True
    return bool(one.get("subject")) and one.get("subject") == other.get("subject")
