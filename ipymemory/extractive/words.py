"""The person's words: what their Markdown cells and comments say, each with the cell beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from ipymemory.extractive import prose, sources
from ipymemory.extractive.story import Story, label_of
from ipymemory.extractive.wording import code, quote, title
from ipymemory.turns import Entry, Prose, Turn

_told_by = lru_cache(maxsize=4000)(prose.told_by)


@dataclass(slots=True)
class Words:
    """Quotations in order: text to where it stands."""

    title: str = ""
    headings: dict[str, str] = field(default_factory=dict)
    opening: dict[str, str] = field(default_factory=dict)
    task: dict[str, str] = field(default_factory=dict)
    decided: dict[str, str] = field(default_factory=dict)
    learned: dict[str, str] = field(default_factory=dict)
    next: dict[str, str] = field(default_factory=dict)
    unchecked: dict[str, str] = field(default_factory=dict)
    told: bool = False


def gather(entries: Iterable[Entry], story: Story) -> Words:
    """Return the words in `entries`; of a cell that was edited, those that it holds now."""
    words = Words()
    all_entries = [each for each in entries if isinstance(each, Turn | Prose)]
    newest = {
        each.cell_id: each.id for each in all_entries if isinstance(each, Prose) and each.cell_id
    }
    below = ""
    places: dict[str, str] = {}
    for entry in reversed(all_entries):
        if isinstance(entry, Turn):
            below = label_of(entry)
        else:
            places[entry.id] = f"text above {below}" if below else ""
    above = ""
    levels: dict[str, int] = {}
    for entry in all_entries:
        if isinstance(entry, Turn):
            above = label_of(entry)
            continue
        if entry.cell_id and newest[entry.cell_id] != entry.id:
            continue
        where = places[entry.id] or (f"text below {above}" if above else "text")
        told = _told_by(entry.source)
        words.told = words.told or bool(told.opening)
        for level, text in told.headings:
            words.headings.setdefault(text, where)
            levels.setdefault(text, level)
        if not words.opening:
            words.opening.update((each, where) for each in told.opening)
        for kept, texts in (
            (words.task, told.task),
            (words.decided, told.decided),
            (words.learned, told.learned),
            (words.next, told.next),
            (words.unchecked, told.unchecked),
        ):
            for text in texts:
                kept.setdefault(text, where)
    _comments(words, story)
    if levels:
        words.title = min(levels, key=lambda text: (levels[text] != 1, 0))
        words.headings.pop(words.title, None)
    return words


def _comments(words: Words, story: Story) -> None:
    first = story.steps[0] if story.steps else None
    if first is not None and first.facts.doc and not words.opening:
        words.opening[first.facts.doc] = first.label
        words.told = True
    for comment, label in story.comments.items():
        for kind, sentence in _sorted(comment):
            where = f"comment in {label}"
            if kind == "decided":
                words.decided.setdefault(sentence, where)
            elif kind == "learned":
                words.learned.setdefault(sentence, where)
            elif not words.told and len(words.opening) < 6:
                words.opening[sentence] = where


@lru_cache(maxsize=8000)
def _sorted(comment: str) -> tuple[tuple[str, str], ...]:
    """Return the sentences of a comment, each with what it is: decided, learned or neither."""
    found: list[tuple[str, str]] = []
    for sentence in prose.sentences_of(comment):
        if len(sentence.split()) < 3:
            continue
        if prose.is_decision(sentence):
            found.append(("decided", sentence))
        elif prose.is_learning(sentence):
            found.append(("learned", sentence))
        elif not sources.is_mark(comment):
            found.append(("", sentence))
    return tuple(found)


def session_title(words: Words, story: Story, notebook: str) -> str:
    """Return a line that tells this session from others: the notebook's title and file name.

    Without a title, what it works on: files and names, as they stand in the cells.
    """
    file = title(re.split(r"[\\/]", notebook)[-1]) if notebook else ""
    opening = next(iter(words.opening), "") if words.told else ""
    found = title(words.title) or title(opening)
    if found:
        return f"{found} ({file})" if file and file.casefold() != found.casefold() else found
    about = [code(path, 50) for path in list(story.files)[:2]]
    about += [code(name) for name in list(story.definitions)[:2]]
    about += [code(name) for name, each in story.names.items() if each.columns or each.changed][:2]
    subject = ", ".join(about[:4])
    if file:
        return f"{file}: {subject}" if subject else file
    return subject


def quoted(texts: dict[str, str], *, prefix: str = "", limit: int = 240) -> list[str]:
    """Return a bullet for each text: quoted, with where it stands."""
    return [
        f"- {prefix}{quotation} ({where})"
        for text, where in texts.items()
        if (quotation := quote(text, limit))
    ]
