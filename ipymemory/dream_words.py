"""Whether memories say the same, in other words or fewer: what a model claims, looked at by code.

It errs to one side. Two that a reader would call the same may be told apart here, and then both
sentences stay; nothing that only one of them says is ever taken for said by the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ipymemory.extractive import relative_dates
from ipymemory.memory_files.subjects import subject_of
from ipymemory.memory_files.values import Memory
from ipymemory.recall.words import asked, terms

_END = re.compile(r"(?<=[.!?。！？])\s+|\n")
_LIST = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_NUMBERED = re.compile(r"^\s*\d+[.)]\s")
_WORD = re.compile(r"[^\s\"“”‘’(),;:!?]+")

_EMPTY = frozenset(
    (
        *("a", "an", "the", "is", "are", "be", "was", "were", "that", "this", "these", "those"),
        *("please", "and", "it", "its", "we", "our", "i", "my"),
    )
)
"""Words without which a sentence says the same."""

_TURNS = frozenset(
    (
        *("not", "no", "never", "none", "nothing", "neither", "nor", "without", "cannot", "except"),
        *("unless", "only", "but", "if", "instead", "rather", "avoid", "stop", "least", "most"),
        *("more", "less", "than", "before", "after", "over", "under", "until", "in", "on", "at"),
        *("for", "from", "to", "by", "with", "when", "while", "where", "during", "per", "as", "or"),
    )
)
"""Words that, where another sentence has them beside all of this one's, make it say less."""

_SHARED = 3
"""Telling words of two memories that are about the same."""


def sentences(text: str) -> list[str]:
    """Return the sentences of `text` in order, as two of them are compared."""
    return [bare for each in _END.split(text) if (bare := _bare(each))]


def _bare(text: str) -> str:
    bare = " ".join(_LIST.sub("", text).split())
    bare = bare[:-1].rstrip() if bare.endswith(".") and not bare.endswith("..") else bare
    return bare[:1].lower() + bare[1:] if bare[1:2].islower() else bare


def said(memory: Memory) -> list[str]:
    """Return all that a memory says, its description first where the body has it not."""
    body = sentences(memory.body)
    known = set(body)
    head = [
        each
        for each in sentences(memory.description)
        if each not in known and not (each.endswith("…") and _begins(body, each))
    ]
    return [*head, *body]


def _begins(body: Sequence[str], cut: str) -> bool:
    return any(each.startswith(cut[:-1].rstrip()) for each in body)


def fault(text: str, memories: Sequence[Memory]) -> str:
    """Return what is wrong with `text` as what `memories` say together, or nothing.

    The first of them keeps its description, which therefore need not stand in the text. Returned
    is a sentence for the model that wrote it.
    """
    if any("```" in each.body for each in memories) or "```" in text:
        return "A memory that holds code stays as it is."
    if text.lstrip().startswith("---"):
        return "A memory does not begin with a line of dashes."
    lines = {each.strip() for memory in memories for each in memory.body.split("\n")}
    for each in text.split("\n"):
        if _NUMBERED.match(each) and each.strip() not in lines:
            return "Numbers of steps stay as they are; give the line as the memory has it."
    of = {id(each): said(each) for each in memories}
    new: list[str] = []
    for each in sentences(text):
        origin = _origin(each, memories, of)
        if origin is None:
            return (
                f'"{each[:120]}" is no whole sentence of these memories. Give their sentences '
                "word for word; nothing is worded anew."
            )
        new.append(origin)
    for memory in memories:
        places = [new.index(each) for each in of[id(memory)] if each in new]
        if places != sorted(places):
            return f"The sentences of {memory.name} stand in another order. Keep their order."
    due = {id(each): said(each) for each in memories[1:]} | {
        id(memories[0]): sentences(memories[0].body)
    }
    for memory in memories:
        for each in due[id(memory)]:
            if each not in new and not any(covers(one, each) for one in new):
                return (
                    f'"{each[:120]}" of {memory.name} would be lost: no other sentence holds all '
                    "of its words. Give it too."
                )
    return ""


def _origin(sentence: str, memories: Iterable[Memory], of: dict[int, list[str]]) -> str | None:
    """Return the sentence of a memory that this one is, at most with its dates spelled out."""
    plain = relative_dates.bare(sentence)
    for each in memories:
        if sentence in of[id(each)]:
            return sentence
    for each in memories:
        if plain in of[id(each)] and relative_dates.agrees(sentence, relative_dates.said_on(each)):
            return plain
    return None


def covers(kept: str, gone: str) -> bool:
    """Return whether `kept` says all that `gone` says: its words in order, and none that turn it.

    Of plain ASCII alone: what turns a sentence in other languages is not known here.
    """
    if kept == gone:
        return True
    if not (kept.isascii() and gone.isascii()):
        return False
    whole, part = _words(kept), _words(gone)
    if not part:
        return False
    at = 0
    extra: list[str] = []
    for each in whole:
        if at < len(part) and each == part[at]:
            at += 1
        else:
            extra.append(each)
    return at == len(part) and not any(_turns(each) for each in extra)


def _words(text: str) -> list[str]:
    found = (each.strip(".*_").casefold() for each in _WORD.findall(text))
    return [each for each in found if each and each not in _EMPTY]


def _turns(word: str) -> bool:
    return word in _TURNS or "n't" in word or any(each.isdigit() for each in word)


def about_the_same(one: Memory, other: Memory) -> bool:
    """Return whether two memories share a subject, or words that tell what they are about."""
    mine, its = (each.subject.casefold() for each in (one, other))
    if mine and its:
        return mine == its
    head = set(asked(f"{one.description} {one.body}"))
    return len(head & set(terms(f"{other.description} {other.body}"))) >= _SHARED


def contradicts(newer: Memory, older: Memory, persons: frozenset[str]) -> bool:
    """Return whether `newer` says something else of the same property, and was said later.

    A person's words are contradicted by a person's alone.
    """
    if newer.modified <= older.modified or newer.kind != older.kind:
        return False
    if older.source.origin in persons and newer.source.origin not in persons:
        return False
    one, other = (each.subject or subject_of(each.description) for each in (newer, older))
    same = bool(one) and one.casefold() == other.casefold()
    return same and said(newer) != said(older)
