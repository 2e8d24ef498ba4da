"""The index of a project's memories: one SQLite file with FTS5, derived and disposable.

It holds terms (`words`), no text; delete it and it comes back, as it does when it is damaged or
of another version. What leaves it is overwritten (``secure_delete``): a memory that was
forgotten must not be read out of free pages.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ipymemory.files import make_folder
from ipymemory.memory_files.reading import State
from ipymemory.memory_files.values import Memory
from ipymemory.recall import words
from ipymemory.recall.ranking import Candidate
from ipymemory.recall.words import terms

VERSION = 2
"""Goes up with every change of the tables or of what a term is."""

WAIT_SECONDS = 5.0
"""How long another process is waited for that builds the index; ten thousand take two seconds."""

SECURE_DELETE = (3, 42)
"""The version of SQLite from which on FTS5 takes deleted terms out at once."""

MOST_ASKED = 12
"""Terms of a question that are looked up: its rarest."""

_CANDIDATES = 60

_TABLES = """
CREATE TABLE memories(
    id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, state TEXT NOT NULL, kind TEXT NOT NULL,
    modified TEXT NOT NULL);
CREATE VIRTUAL TABLE texts USING fts5(head, body, tokenize='ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(texts, 'row');
CREATE TABLE vectors(id INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE meanings(model TEXT NOT NULL, changes INTEGER NOT NULL, made INTEGER NOT NULL);
INSERT INTO meanings VALUES('', 0, 0);
"""


_TRIGGERS = (
    """CREATE TRIGGER gone AFTER DELETE ON memories BEGIN
    DELETE FROM vectors WHERE id = old.id; UPDATE meanings SET changes = changes + 1; END""",
    """CREATE TRIGGER come AFTER INSERT ON memories BEGIN
    UPDATE meanings SET changes = changes + 1; END""",
)
"""What a vector tells of a memory goes with it, whoever takes it out; and a count says whether
vectors are missing, since looking for them reads all there are."""


class Database:
    """The file at `path`. Every method may raise `sqlite3.Error` and `OSError`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Give a connection to the file, made with its tables where it was not there."""
        make_folder(self.path.parent)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        with contextlib.closing(
            sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
        ) as db:
            # Derived: after a power cut it may be damaged, and is then made anew.
            db.execute("PRAGMA synchronous=OFF")
            db.execute("PRAGMA secure_delete=ON")
            if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                _make(db)
            yield db

    def discard(self) -> None:
        """Remove the file and what SQLite keeps beside it."""
        for ending in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                self.path.with_name(self.path.name + ending).unlink()


def stamp(db: sqlite3.Connection) -> int:
    """Return a number that differs from one making of the index to the next."""
    return int(db.execute("PRAGMA application_id").fetchone()[0])


def sync(
    db: sqlite3.Connection,
    states: Mapping[str, State],
    read: Callable[[str], Memory | None],
) -> int:
    """Bring the index in step with the files; return how many memories were read for it.

    ``read(name)`` gives a memory with all of its text, None when it is gone; it is asked for
    those whose state in `states` is another than when they were indexed.
    """
    wanted = {_storable(name): "{}:{}:{}".format(*state) for name, state in states.items()}
    has = dict(db.execute("SELECT name, state FROM memories"))
    if has == wanted:
        return 0
    db.execute("BEGIN IMMEDIATE")
    try:
        has = dict(db.execute("SELECT name, state FROM memories"))
        _delete(db, [name for name, state in has.items() if wanted.get(name) != state])
        new = [name for name in states if has.get(_storable(name)) != wanted[_storable(name)]]
        number = _insert(db, filter(None, map(read, new)), wanted)
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    return number


def drop(path: Path, name: str) -> None:
    """Take one memory out of the index at `path`, if there is one. Never raises."""
    if not path.exists():
        return
    database = Database(path)
    try:
        with database.opened() as db:
            db.execute("BEGIN IMMEDIATE")
            _delete(db, [name])
            db.execute("COMMIT")
    except (sqlite3.Error, OSError):
        with contextlib.suppress(OSError):
            database.discard()


def counted(db: sqlite3.Connection, wanted: Sequence[str]) -> tuple[dict[str, int], int]:
    """Return how many memories hold each of the terms, and how many there are."""
    counts = {}
    for each in wanted:
        row = db.execute("SELECT doc FROM vocabulary WHERE term = ?", (each,)).fetchone()
        if row is not None:
            counts[each] = int(row[0])
    total = db.execute("SELECT count(*) FROM memories").fetchone()[0]
    return counts, int(total)


def near(db: sqlite3.Connection, term: str) -> dict[str, int]:
    """Return the terms that memories hold in place of `term`, and how many hold each.

    Asked are those that begin with the same two letters.
    """
    if not term.isascii() or len(term) < 3:
        return {}
    rows = db.execute(
        "SELECT term, doc FROM vocabulary WHERE term >= ? AND term < ? "
        "AND abs(length(term) - ?) <= 3",
        (term[:2], f"{term[:2]}\x7f", len(term)),
    )
    return {other: count for other, count in rows if words.near(term, other)}


def candidates(db: sqlite3.Connection, wanted: Sequence[str]) -> list[Candidate]:
    """Return the memories that hold any of the terms, by SQLite's own rank the best ones."""
    query = " OR ".join('"{}"'.format(each.replace('"', '""')) for each in wanted)
    if not query:
        return []
    rows = db.execute(
        "SELECT m.name, m.kind, m.modified, t.head, t.body FROM ("
        "  SELECT rowid, head, body, rank FROM texts WHERE texts MATCH ?"
        "  AND rank MATCH 'bm25(3.0, 1.0)' ORDER BY rank LIMIT ?"
        ") t JOIN memories m ON m.id = t.rowid ORDER BY t.rank",
        (query, _CANDIDATES),
    )
    found = []
    for name, kind, modified, head, body in rows:
        first = frozenset(head.split())
        found.append(Candidate(name, kind, modified, first, first.union(body.split())))
    return found


def candidate(memory: Memory) -> Candidate:
    """Return `memory` as the index knows it, without an index."""
    head, body = _head(memory), terms(memory.body)
    first = frozenset(head)
    return Candidate(memory.name, memory.kind, memory.modified, first, first.union(body))


def _head(memory: Memory) -> list[str]:
    return [*terms(memory.title), *terms(memory.name), *terms(memory.description)]


def _make(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
        for name in ("vocabulary", "texts", "memories", "vectors", "meanings"):
            db.execute(f"DROP TABLE IF EXISTS {name}")
        for statement in filter(str.strip, _TABLES.split(";")):
            db.execute(statement)
        for statement in _TRIGGERS:
            db.execute(statement)
        if sqlite3.sqlite_version_info >= SECURE_DELETE:
            db.execute("INSERT INTO texts(texts, rank) VALUES('secure-delete', 1)")
        db.execute(f"PRAGMA application_id={int.from_bytes(os.urandom(3), 'big')}")
        db.execute(f"PRAGMA user_version={VERSION}")
    db.execute("COMMIT")


def _delete(db: sqlite3.Connection, names: Iterable[str]) -> None:
    gone = False
    for name in names:
        row = db.execute("SELECT id FROM memories WHERE name = ?", (name,)).fetchone()
        if row is not None:
            db.execute("DELETE FROM texts WHERE rowid = ?", row)
            db.execute("DELETE FROM memories WHERE id = ?", row)
            gone = True
    if gone and sqlite3.sqlite_version_info < SECURE_DELETE:
        # FTS5 only marks what is deleted until it merges.
        db.execute("INSERT INTO texts(texts) VALUES('optimize')")


def _insert(db: sqlite3.Connection, new: Iterable[Memory], states: Mapping[str, str]) -> int:
    number = 0
    for each in new:
        name = _storable(each.name)
        made = db.execute(
            "INSERT INTO memories(name, state, kind, modified) VALUES(?, ?, ?, ?)",
            (name, states[name], _storable(each.kind), each.modified),
        )
        head = body = ""
        if each.current:
            head, body = " ".join(_head(each)), " ".join(terms(each.body))
        db.execute(
            "INSERT INTO texts(rowid, head, body) VALUES(?, ?, ?)", (made.lastrowid, head, body)
        )
        number += 1
    return number


def _storable(text: str) -> str:
    """Return `text` as SQLite can hold it: a file's name need not be valid Unicode."""
    return text.encode("utf-8", "replace").decode()
