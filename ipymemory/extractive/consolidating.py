"""What can be tidied in memories without a model: a plan, made of the memories alone.

Two say the same when every sentence of one stands in the other, letter for letter but for the
capital it begins with, its full stop and white space. Nothing weaker counts: "at least 5" and
"at most 5", "C" and "C++", or a sentence and its negation look alike and differ. Two of one
subject that say different things are a question for the user and are not settled here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ipymemory.extractive import relative_dates
from ipymemory.memory_files.values import Memory, Source

_END = re.compile(r"(?<=[.!?。！？])\s+|\n")
_LIST = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")


@dataclass(frozen=True, slots=True)
class Merge:
    """`gone` say nothing that `kept` does not say too."""

    kept: Memory
    gone: tuple[Memory, ...]
    origins: tuple[Source, ...]
    """Where all of them came from, the kept one's first, each once."""


@dataclass(frozen=True, slots=True)
class Dated:
    """A memory whose relative dates were given their day."""

    memory: Memory
    description: str
    body: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """Memories of one subject that say different things, the newest first."""

    subject: str
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that there is to do, in the order of the memories' names."""

    merges: tuple[Merge, ...]
    dated: tuple[Dated, ...]
    doubts: tuple[Doubt, ...]


def plan(memories: Iterable[Memory], persons: frozenset[str] = frozenset()) -> Plan:
    """Return what to tidy in `memories`; those read in part, broken or superseded are left alone.

    `persons` are the origins that are a person's own words: such a memory is kept before another
    that says the same.
    """
    every = sorted(
        (each for each in memories if each.current and each.digest and not each.problem),
        key=lambda each: each.name,
    )
    merges = _merges(every, persons)
    gone = {each.name for merge in merges for each in merge.gone}
    left = [each for each in every if each.name not in gone]
    dated = (_dated(each) for each in left)
    return Plan(merges, tuple(each for each in dated if each is not None), _doubts(left))


def sentences(text: str) -> frozenset[str]:
    """Return what `text` says, sentence by sentence, as two of them are compared."""
    found = (_sentence(each) for each in _END.split(text))
    return frozenset(each for each in found if each)


def _sentence(text: str) -> str:
    bare = " ".join(_LIST.sub("", text).split())
    bare = bare[:-1].rstrip() if bare.endswith(".") and not bare.endswith("..") else bare
    # Of a word such as "ID" the capitals mean something.
    return bare[:1].lower() + bare[1:] if bare[1:2].islower() else bare


def _said(memory: Memory) -> frozenset[str]:
    """Return all a memory says; a description that the body begins with adds nothing."""
    body = sentences(memory.body)
    return body | {
        each
        for each in sentences(memory.description)
        if not (each.endswith("…") and any(one.startswith(each[:-1].rstrip()) for one in body))
    }


def _merges(every: Sequence[Memory], persons: frozenset[str]) -> tuple[Merge, ...]:
    said = {each.name: _said(each) for each in every}
    by_sentence: dict[tuple[str, str], list[Memory]] = {}
    for each in every:
        for one in said[each.name]:
            by_sentence.setdefault((each.kind, one), []).append(each)
    # Who says most comes first, so that the others find it; then persons, then the newest.
    order = sorted(every, key=lambda each: each.modified, reverse=True)
    order.sort(key=lambda each: (-len(said[each.name]), each.source.origin not in persons))
    groups: dict[str, list[Memory]] = {}
    kept: dict[str, Memory] = {}
    for each in order:
        says = said[each.name]
        if not says:
            continue
        rarest = min((by_sentence[each.kind, one] for one in says), key=len)
        into = next(
            (
                one
                for one in rarest
                if one.name in kept and says <= said[one.name] and _may_join(each, one, persons)
                if (says == said[one.name] and _in_order(each) == _in_order(one))
                or _is_part(each, one)
            ),
            None,
        )
        if into is None:
            kept[each.name] = each
        else:
            groups.setdefault(into.name, []).append(each)
    return tuple(_merge(kept[name], groups[name]) for name in sorted(groups))


def _in_order(memory: Memory) -> list[str]:
    """Return the sentences of the body as they follow each other: steps and code have an order."""
    return [each for each in map(_sentence, _END.split(memory.body)) if each]


def _is_part(part: Memory, whole: Memory) -> bool:
    """Tell whether sentences of `part`, of the same subject, may stand anywhere in `whole`."""
    return bool(part.subject) and part.subject == whole.subject and "```" not in part.body


def _may_join(gone: Memory, kept: Memory, persons: frozenset[str]) -> bool:
    """Tell whether `kept` can stand for `gone`: not another subject, nor less than a person."""
    if gone.subject and kept.subject and gone.subject.casefold() != kept.subject.casefold():
        return False
    return gone.source.origin not in persons or kept.source.origin in persons


def _merge(kept: Memory, gone: Sequence[Memory]) -> Merge:
    every = (one for each in (kept, *gone) for one in (each.source.alone, *each.source.also))
    origins = dict.fromkeys(each for each in every if each != Source())
    return Merge(kept, tuple(sorted(gone, key=lambda each: each.name)), tuple(origins))


def _doubts(left: Sequence[Memory]) -> tuple[Doubt, ...]:
    subjects: dict[tuple[str, str], list[Memory]] = {}
    for each in left:
        if each.subject:
            subjects.setdefault((each.kind, each.subject.casefold()), []).append(each)
    return tuple(
        Doubt(
            same[0].subject,
            tuple(sorted(same, key=lambda each: (each.modified, each.name), reverse=True)),
        )
        for _, same in sorted(subjects.items())
        if len(same) > 1
    )


def _dated(memory: Memory) -> Dated | None:
    said = relative_dates.said_on(memory)
    body, description = (
        relative_dates.dated(each, said) for each in (memory.body, memory.description)
    )
    if (body, description) == (memory.body, memory.description):
        return None
    return Dated(memory, description, body)
