"""How well recall finds: a set of questions by hand over the memories of a made-up project."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ipymemory import places
from ipymemory.memory_files import MemoryFolder
from ipymemory.recall import Recall
from tests import recall_set
from tests.benchmarks.figures import Row


def rows(runs: int) -> list[Row]:
    """Return the shares of questions that are answered; `runs` do not matter, each is the same."""
    with tempfile.TemporaryDirectory() as folder:
        project = places.project_of(Path(folder), Path(folder) / "home")
        project.memory.mkdir(parents=True)
        names = recall_set.wrote(project.memory)
        recall = Recall(project, MemoryFolder(project.memory, project))

        def find(question: str) -> list[str]:
            return [each.memory.name for each in recall.find(question, 5)]

        found = []
        for what, questions in (*recall_set.SETS.items(), ("never tuned by", recall_set.HELD)):
            there, first = recall_set.hits(find, names, questions)
            note = f"{len(questions)} questions, first {first:.0%}"
            found.append(Row(f"hit@5, {what}", "%", (100 * there,), "90 %", note))
        for what, without in (
            ("", recall_set.NOTHING),
            (", never tuned by", recall_set.HELD_NOTHING),
        ):
            share = 100 * recall_set.wrong(find, without)
            note = f"{len(without)} questions that no memory answers"
            found.append(Row(f"answered all the same{what}", "%", (share,), "15 %", note))
        return found
