"""What people wrote in words: markdown cells, comments and questions, a sentence at a time.

Outputs, tracebacks, strings, names of files and columns are nobody's words and are not looked
at. Whose words a passage is is told by where it stood when the session began: a text that the
saved notebook already held came with the file, from whoever wrote that (behaviour E13).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ipymemory.extractive import cells, prose
from ipymemory.extractive.material import FileUse
from ipymemory.extractive.telling import told
from ipymemory.memory_files.values import fingerprint, normal
from ipymemory.turns import Ask, Entry, Prose, Turn

Kind = Literal["markdown", "comment", "ask"]

MOST = 20_000
"""Characters of one markdown cell or question that are looked at."""

_RUN = 3
"""Words in a row that are compared: fewer are anybody's."""

_LOADED = re.compile(r"\s*#\s*%load(?:py)?\b")
_MARKUP = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1|(?<!\w)[*_](?=\S)([^*_]+?)(?<=\S)[*_](?!\w)")


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence that somebody wrote. `id` is its turn, `time` when it was said, or nothing."""

    text: str
    kind: Kind
    typed: bool
    """Whether a person wrote it in this session; else it came with the file."""
    id: str = ""
    time: str = ""
    cell: str = ""
    """How a person knows the cell, ``[7]``, or nothing."""
    files: tuple[str, ...] = ()
    """Files that the same cell names."""

    @property
    def origin(self) -> str:
        """The origin of a memory made of it: its kind, or ``file``."""
        return self.kind if self.typed else "file"


class Held:
    """What a saved notebook held; None where nobody knows what it held, so that all of it may."""

    def __init__(self, text: str | None) -> None:
        self._known = text is not None
        words = normal(text or "").split()
        # A space at either end, so that words are found as whole words.
        self._words = f" {' '.join(words)} "
        self._runs = set(zip(words, words[1:], words[2:], strict=False))

    def holds(self, text: str) -> bool:
        """Return whether `text` came with the file, or most of it did.

        A word that somebody changed does not make a sentence theirs.
        """
        words = normal(text).split()
        if not self._known or len(words) < _RUN:
            return not self._known or (bool(words) and f" {' '.join(words)} " in self._words)
        known = [False] * len(words)
        for at in range(len(words) - _RUN + 1):
            if tuple(words[at : at + _RUN]) in self._runs:
                known[at : at + _RUN] = [True] * _RUN
        return 2 * sum(known) > len(words)

    @classmethod
    def nothing(cls) -> Held:
        """Return what a terminal holds: all that is said there was typed."""
        return cls("")


def of_entries(entries: Iterable[Entry], held: Held) -> Iterator[Passage]:
    """Yield the sentences of `entries` that are comments, markdown or questions, in order."""
    for entry in entries:
        if isinstance(entry, Prose):
            yield from of_markdown(entry, held)
        elif isinstance(entry, Turn):
            yield from of_cell(entry, held)
        elif isinstance(entry, Ask):
            yield from of_ask(entry, held)


def of_markdown(entry: Prose, held: Held) -> Iterator[Passage]:
    """Yield the sentences of a markdown cell, those that came with the file first.

    No sentence is put together of lines of both: what a person adds below somebody's rule must not
    make that rule theirs.
    """
    source, id = "\n".join(entry.source[:MOST].splitlines()), markdown_id(entry)
    sides = {line: _side(line, held) for line in source.split("\n")}
    for typed in (False, True):
        others = {line for line, side in sides.items() if side is not typed and side is not None}
        for sentence in prose.said_in(source, others):
            theirs = typed and not held.holds(sentence)
            yield Passage(plain(sentence), "markdown", theirs, id, entry.time)


def of_cell(turn: Turn, held: Held) -> Iterator[Passage]:
    """Yield the sentences of a cell's comments; what ``%load`` put there is the file's."""
    if "#" not in turn.source:
        return
    if _LOADED.match(turn.source):
        held = Held(None)
    files: tuple[str, ...] | None = None
    for comment, typed in _comments(turn.source, held):
        for sentence in prose.sentences_of(comment):
            if files is None:
                files = tuple(
                    use.path.value
                    # What the notes tell of the same cell is worked out once.
                    for use in told(turn)[0].files
                    if isinstance(use, FileUse) and use.path.kind == "text"
                )
            theirs = typed and not held.holds(sentence)
            yield Passage(plain(sentence), "comment", theirs, turn.id, turn.time, turn.label, files)


def _comments(source: str, held: Held) -> Iterator[tuple[str, bool]]:
    """Yield comments, those on lines of their own that follow each other as one, and whether typed.

    Here too, lines of both sides are never one text.
    """
    text, before, side = "", -1, True
    for line, comment, alone in cells.take_apart(source).comments:
        found = _side(comment, held)
        if text and alone and line == before + 1 and comment and found in (None, side):
            text, before = f"{text} {comment}", line
            continue
        if text:
            yield text, side
        text, before, side = comment, line if alone else -1, found is not False
    if text:
        yield text, side


def _side(line: str, held: Held) -> bool | None:
    """Return whether a line was typed, None for one of too few words to tell."""
    return None if len(normal(line).split()) < _RUN else not held.holds(line)


def of_ask(ask: Ask, held: Held) -> Iterator[Passage]:
    """Yield the sentences of a question; what it quotes is left out, like a markdown cell's.

    A notebook that somebody sent may hold questions too.
    """
    for sentence in prose.said_in(ask.question[:MOST]):
        yield Passage(plain(sentence), "ask", not held.holds(sentence), ask.id, ask.time)


def markdown_id(entry: Prose) -> str:
    """Return what stands for a markdown cell among a run's turns: one text is one turn."""
    return f"markdown {fingerprint(entry.source)[:16]}"


def plain(text: str) -> str:
    """Return a sentence without the marks of bold and italic text, on one line."""
    return " ".join(_MARKUP.sub(lambda match: match[2] or match[3], text).split())
