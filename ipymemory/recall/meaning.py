"""Memories by what they mean: a vector for each in the index, and those nearest to a question.

The vectors are float32 of length 1, in the file that holds the terms, under the memory's row and
for one model; they go with the row (a trigger), are made anew for another model, and come back
like the rest of the index. The table of all of them is kept in this process until one changes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ipymemory.memory_files import Memory
from ipymemory.recall import words
from ipymemory.recall.embedding import Embedding, library

LEAST = 0.4
"""The cosine between a question and a memory from which on that memory is an answer. Chosen on
`tests/recall_set.py` with two static models, of the package wordllama and distilled from
all-MiniLM-L6-v2: from here on 3 and 6 of its 35 questions without an answer get one (3 by words
alone), 2 and 4 of the 22 that were held back, which were looked at before this was fixed. At 0.3
the second finds 8 of 24 that share no word instead of 3, and answers 11 wrongly."""

MOST = 3
"""Memories that are found by meaning alone, at most: a guess may not fill the page."""

_BATCH = 500


@dataclass(frozen=True, slots=True)
class _Vectors:
    """All vectors as one array, and the names of the memories in the same order."""

    names: list[str]
    array: Any


_kept: dict[str, tuple[tuple[int, int], _Vectors]] = {}
"""The vectors of the index that was asked last, by its path: ten thousand are 10 MB and take a
question's whole time to be read."""


def nearest(
    db: sqlite3.Connection,
    path: str,
    embedding: Embedding,
    question: str,
    read: Callable[[str], Memory | None],
) -> list[tuple[str, float]]:
    """Return name and cosine of the memories nearest to `question`, at most `MOST`.

    `read` gives a memory of which there is no vector yet. Raises `sqlite3.Error` and
    `EmbeddingError`.
    """
    text = words.telling(question)
    if not text:
        return []
    _sync(db, embedding, read)
    vectors = _all(db, path, embedding.dimensions)
    if not vectors.names:
        return []
    cosines = vectors.array @ embedding.vectors([text])[0]
    numpy = library("numpy")
    best = numpy.argsort(-cosines, kind="stable")[:MOST] if len(cosines) <= MOST else _top(cosines)
    return [
        (vectors.names[place], float(cosines[place]))
        for place in best.tolist()
        if cosines[place] >= LEAST
    ]


def _top(cosines: Any) -> Any:
    numpy = library("numpy")
    some = numpy.argpartition(-cosines, MOST)[:MOST]
    return some[numpy.argsort(-cosines[some], kind="stable")]


def _sync(
    db: sqlite3.Connection, embedding: Embedding, read: Callable[[str], Memory | None]
) -> None:
    """Make the vectors that are missing, or all of them for another model."""
    model, changes, made = db.execute("SELECT model, changes, made FROM meanings").fetchone()
    if model == embedding.fingerprint and changes == made:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        if db.execute("SELECT model FROM meanings").fetchone()[0] != embedding.fingerprint:
            db.execute("DELETE FROM vectors")
        for rows in _batches(db.execute(_MISSING).fetchall()):
            found = [read(name) for _, name in rows]
            # Without a vector that says there is none, each question would look again.
            texts = [_text(each) if each is not None and each.current else "" for each in found]
            db.executemany(
                "INSERT INTO vectors(id, vector) VALUES(?, ?)",
                [
                    (id, vector.astype("<f4").tobytes() if vector.any() else b"")
                    for (id, _), vector in zip(rows, embedding.vectors(texts), strict=True)
                ],
            )
        db.execute(
            "UPDATE meanings SET model = ?, changes = changes + 1, made = changes + 1",
            (embedding.fingerprint,),
        )
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


_MISSING = "SELECT id, name FROM memories WHERE id NOT IN (SELECT id FROM vectors)"


def _batches(rows: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    for at in range(0, len(rows), _BATCH):
        yield rows[at : at + _BATCH]


def _text(memory: Memory) -> str:
    """Return what of a memory is embedded: what it says of itself counts as much as its body."""
    parts = dict.fromkeys((memory.title, memory.description, memory.body.strip()))
    return words.telling("\n".join(parts))


def _all(db: sqlite3.Connection, path: str, dimensions: int) -> _Vectors:
    stamp = db.execute("PRAGMA application_id").fetchone()[0]
    changes = db.execute("SELECT changes FROM meanings").fetchone()[0]
    kept = _kept.get(path)
    if kept is not None and kept[0] == (stamp, changes):
        return kept[1]
    rows = db.execute(
        "SELECT m.name, v.vector FROM vectors v JOIN memories m ON m.id = v.id "
        "WHERE length(v.vector) = ?",
        (4 * dimensions,),
    ).fetchall()
    array = library("numpy").frombuffer(b"".join(row[1] for row in rows), "<f4")
    vectors = _Vectors([row[0] for row in rows], array.reshape(len(rows), dimensions))
    _kept.clear()
    _kept[path] = (stamp, changes), vectors
    return vectors
