"""Find memories for a question: at most a few, the current ones, and nothing rather than noise.

With the extra ``embed`` and a model (the setting ``Memory.embeddings``), those near in meaning
come behind those that hold the words: a question may share no word with what answers it.

The index lies in ``index.sqlite`` beside the project's other files and follows the memory folder
by time, size and inode of each file. Where SQLite has no FTS5, or the index can neither be read
nor made, the files themselves are gone through: slower, with the same answers by words.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ipymemory import lines
from ipymemory.errors import IpymemoryError
from ipymemory.files import write_atomic
from ipymemory.memory_files import Memory, MemoryFolder
from ipymemory.places import Project
from ipymemory.recall import database, embedding, meaning, ranking, words
from ipymemory.recall.database import Database
from ipymemory.recall.embedding import EmbeddingError
from ipymemory.recall.ranking import Candidate
from ipymemory.turns import utc_now

__all__ = ["Found", "Recall", "forget_uses"]

log = logging.getLogger(__name__)

LOOKING = 0.01
"""Share of the time that may go into asking every file for its own: of ten thousand that takes
longer than the search. Meanwhile a folder in which no name changed is taken for what it was; so
of a thousand memories half a second passes before an edit made in place is found."""

_TAIL = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Found:
    """A memory that answers a question, with all of its text; `score` is about 0 to 1.2."""

    memory: Memory
    score: float


class Recall:
    """Recall over the memories in `memory`."""

    def __init__(self, project: Project, memory: MemoryFolder, embeddings: str = "") -> None:
        """Find in `memory`; `embeddings` is the folder of a model, empty to go by words alone."""
        self.project = project
        self.memory = memory
        self.trouble = ""
        """Why the model was not used when it was last needed, a sentence or two."""
        self._embeddings = embeddings
        self._database = Database(project.folder / "index.sqlite")
        self._synced: tuple[object, int] | None = None
        self._looked: tuple[float, int] = (0.0, 0)
        """Until when the files are taken for what they were, and the folder's time then."""

    def find(
        self, question: str, n: int = 5, without: Collection[str] = frozenset()
    ) -> tuple[Found, ...]:
        """Return at most `n` memories for `question`, the best first; often none.

        `without` are names of memories that are not wanted again. In mode ``off`` there are none.
        """
        wanted = words.asked(question)
        if self.memory.mode == "off" or not wanted or n < 1:
            return ()
        found = []
        for name, score in self._answers(question, wanted):
            if name in without:
                continue
            with contextlib.suppress(IpymemoryError):  # removed or replaced this moment
                memory = self.memory.read_exactly(name)
                if memory.current:
                    found.append(Found(memory, score))
            if len(found) == n:
                break
        return tuple(found)

    def used(self, names: Sequence[str], session: str = "") -> None:
        """Put on record that these were recalled: what is used stays in the index's first page.

        Never raises: a record that cannot be written costs only the order of the index.
        """
        if names:
            line = {"type": "recall", "time": utc_now(), "session": session}
            with contextlib.suppress(IpymemoryError):
                lines.append(self.project.folder / "usage.jsonl", {**line, "memories": [*names]})

    def sync(self) -> None:
        """Bring the index in step with the files now. Never raises."""
        self._synced, self._looked = None, (0.0, 0)
        self._ranked([])

    def _answers(self, question: str, wanted: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Yield names and scores, the best first; meaning is asked only when words are used up."""
        ranked = self._ranked(wanted, words.bare(question))
        yield from ranked
        if self._embeddings:
            held = {name for name, _ in ranked}
            for name, cosine in self._meant(question):
                if name not in held:
                    # below every answer by words
                    yield name, cosine * ranking.SHARE

    def _meant(self, question: str) -> list[tuple[str, float]]:
        """Return the memories nearest in meaning; none, and why, where that cannot be told."""
        self.trouble = ""
        try:
            model = embedding.loaded(self._embeddings)
            with self._database.opened() as db:
                return meaning.nearest(db, str(self._database.path), model, question, self._read)
        except EmbeddingError as error:
            self.trouble = str(error)
        except (sqlite3.Error, OSError, IpymemoryError) as error:
            self.trouble = f"The index of memories could not be used for meanings: {error}."
        log.info("recall went by words alone: %s", self.trouble)
        return []

    def _ranked(self, wanted: Sequence[str], bare: bool = True) -> list[tuple[str, float]]:
        for attempt in (1, 2):
            try:
                with self._database.opened() as db:
                    self._sync(db)
                    return self._answer(db, wanted, bare)
            except sqlite3.OperationalError as error:
                # No FTS5, or another process holds the file: the file itself is not at fault.
                log.info("The index of memories is not used: %s", error)
                break
            except sqlite3.DatabaseError as error:
                self._synced = None
                if attempt == 1:
                    log.info("The index of memories is made anew: %s", error)
                    with contextlib.suppress(OSError):
                        self._database.discard()
            except (OSError, IpymemoryError) as error:
                log.info("The index of memories is not used: %s", error)
                break
        return self._gone_through(wanted, bare)

    def _sync(self, db: sqlite3.Connection) -> None:
        now, changed = time.monotonic(), _changed(self.memory)
        stamp = database.stamp(db)
        until, before = self._looked
        known = self._synced is not None and self._synced[1] == stamp
        if known and changed == before and now < until:
            return
        states = self.memory.states()
        took = time.monotonic() - now
        if self._synced is None or self._synced != (states, stamp):
            database.sync(db, states, self._read)
            self._synced = (states, stamp)
        self._looked = (time.monotonic() + took / LOOKING, changed)

    def _read(self, name: str) -> Memory | None:
        try:
            return self.memory.read_exactly(name)
        except IpymemoryError:
            return None  # removed this moment

    def _answer(
        self, db: sqlite3.Connection, wanted: Sequence[str], bare: bool
    ) -> list[tuple[str, float]]:
        counts, total = database.counted(db, wanted)
        near = {each: database.near(db, each) for each in wanted if each not in counts}
        rarest = sorted((each for each in wanted if each in counts), key=counts.__getitem__)
        others = sorted({each for found in near.values() for each in found})
        asked = [*rarest[: database.MOST_ASKED], *others[: database.MOST_ASKED]]
        return self._best(database.candidates(db, asked), wanted, counts, near, total, bare)

    def _gone_through(self, wanted: Sequence[str], bare: bool) -> list[tuple[str, float]]:
        every = filter(None, map(self._read, self.memory.states()))
        found = [database.candidate(each) for each in every if each.current]
        counts = Counter(term for each in found for term in each.all)
        near = {
            each: {term: count for term, count in counts.items() if words.near(each, term)}
            for each in wanted
            if each not in counts and each.isascii()
        }
        return self._best(found, wanted, counts, near, len(found), bare)

    def _best(
        self,
        found: Sequence[Candidate],
        wanted: Sequence[str],
        counts: Mapping[str, int],
        near: Mapping[str, Mapping[str, int]],
        total: int,
        bare: bool,
    ) -> list[tuple[str, float]]:
        held = {**{each: sum(others.values()) for each, others in near.items()}, **counts}
        return ranking.ranked(
            found,
            ranking.worth(wanted, held, total),
            self._uses(),
            {each: others.keys() for each, others in near.items()},
            frozenset() if bare else words.COMMON,
            0.0 if bare else ranking.least(total),
        )

    def _uses(self) -> dict[str, int]:
        """Return how often each memory was recalled, as far back as the record is read."""
        path = self.project.folder / "usage.jsonl"
        try:
            values, _ = lines.read(path, max(0, path.stat().st_size - _TAIL))
        except (OSError, IpymemoryError):
            return {}
        told = [each.get("memories") for each in values if each.get("type") == "recall"]
        return Counter(
            name
            for names in told
            if isinstance(names, list)
            for name in names
            if isinstance(name, str)
        )


def forget_uses(project: Project) -> None:
    """Take out of the record of use which memories were recalled; raises `PlaceError`."""
    path = project.folder / "usage.jsonl"
    values, _ = lines.read(path)
    kept = [each for each in values if each.get("type") != "recall"]
    if len(kept) < len(values):
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in kept)
        write_atomic(path, text.encode("utf-8", "backslashreplace"))


def _changed(memory: MemoryFolder) -> int:
    """Return when a name in the folder last changed, in nanoseconds; 0 where there is none."""
    try:
        return memory.folder.stat().st_mtime_ns
    except OSError:
        return 0
