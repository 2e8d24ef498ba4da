"""From a plan to files: each memory's bytes before and after, in groups that stand together.

A merge is one group: the memory that is kept, with the sources of all it stands for, and those
that go. Nothing goes whose sources the kept one cannot name. Reads the folder, writes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ipymemory.dream_journal import Change, Group, now
from ipymemory.errors import FormatError, IpymemoryError, MemoryMissing
from ipymemory.extractive import consolidating, references
from ipymemory.extractive.consolidating import Doubt, Merge
from ipymemory.images import digest
from ipymemory.memory_files import MemoryFolder, drafts
from ipymemory.memory_files.rewriting import relinked, rewritten
from ipymemory.memory_files.values import Memory, Source
from ipymemory.turns import utc_now

_SOURCE_BYTES = 512 * 1024
"""Largest file of the project in which a function is looked for."""


@dataclass(frozen=True, slots=True)
class Tidied:
    """What is to be done, and how much of each kind."""

    groups: tuple[Group, ...]
    doubts: tuple[Doubt, ...]
    counts: dict[str, int]


@dataclass(slots=True)
class _Work:
    """What becomes of one memory."""

    memory: Memory
    description: str
    body: str
    label: str
    why: set[str] = field(default_factory=set)


def tidied(
    folder: MemoryFolder,
    root: Path,
    persons: frozenset[str],
    over: Callable[[], bool] = lambda: False,
) -> Tidied:
    """Return what there is to tidy in `folder`, of the project whose files lie below `root`.

    `over` ends it early, with nothing to do. Raises `IpymemoryError`.
    """
    memories: list[Memory] = []
    for each in folder.scan():
        if over():
            return Tidied((), (), {"memories": 0})
        if each.current and not each.problem:
            with contextlib.suppress(MemoryMissing):  # forgotten this moment
                memories.append(folder.read_exactly(each.name))
    plan = consolidating.plan(memories, persons)
    merged = {each.name for merge in plan.merges for each in merge.gone}
    works = {
        each.name: _Work(each, each.description, each.body, each.label)
        for each in memories
        if each.name not in merged and each.digest and not each.problem
    }
    for dated in plan.dated:
        work = works[dated.memory.name]
        work.description, work.body = dated.description, dated.body
        work.why.add("dated")
    _mark(works, root)
    _relink(works, plan.merges)
    return _grouped(works, plan.merges, plan.doubts, len(memories))


def _mark(works: Mapping[str, _Work], root: Path) -> None:
    """Say in each memory what it names that is gone, and no longer where it is there again."""
    if not any("`" in each.body for each in works.values()):
        return
    known = references.files(root)
    if known is None:
        return
    texts: dict[str, str] = {}

    def read(path: str) -> str:
        if path not in texts:
            texts[path] = _text(root / path)
        return texts[path]

    day = utc_now()[:10]
    for each in works.values():
        body = references.marked(each.body, references.gone(each.body, known, read), day)
        if body != each.body:
            each.body = body
            each.why.add("marked")


def _relink(works: Mapping[str, _Work], merges: tuple[Merge, ...]) -> None:
    """Let links to a memory that goes lead to the one that stands for it."""
    names = {
        drafts.folded_name(name): merge.kept.name
        for merge in merges
        for each in merge.gone
        for name in (each.name, each.label)
        if name
    }
    # What a memory that stays is called too leads there already.
    for each in works.values():
        for name in (each.memory.name, each.memory.label):
            names.pop(drafts.folded_name(name), None)
    for each in works.values():
        # The description and the title are what the index and the lists show.
        texts = (each.description, each.body, each.label)
        after = tuple(relinked(text, names) for text in texts) if names else texts
        if after != texts:
            each.description, each.body, each.label = after
            each.why.add("relinked")


def _grouped(
    works: Mapping[str, _Work], merges: tuple[Merge, ...], doubts: tuple[Doubt, ...], count: int
) -> Tidied:
    counts = {"memories": count, "merged": 0, "dated": 0, "marked": 0, "relinked": 0, "left_out": 0}
    groups: list[Group] = []
    of = {each.kept.name: each for each in merges}
    for name, work in works.items():
        merge = of.get(name)
        if merge is None and not work.why:
            continue
        found = _merged(work, merge) if merge is not None else None
        if found is not None:
            group, gone = found
        else:
            single = _single(work)
            counts["left_out"] += merge is not None or single is None
            if single is None:
                continue
            group, gone = single, 0
        groups.append(group)
        counts["merged"] += gone
        if merge is not None and gone and gone < len(merge.gone):
            counts["left_out"] += 1
        for why in work.why:
            counts[why] += 1
    return Tidied(
        tuple(groups), doubts, counts | {"asked": sum(len(d.memories) - 1 for d in doubts)}
    )


def _merged(work: _Work, merge: Merge) -> tuple[Group, int] | None:
    """Return the group of a merge and how many memories go: as many as the kept one can name."""
    data = _bytes(work.memory)
    gone = list(merge.gone)
    while data is not None and gone:
        own = work.memory.source.alone
        every = [
            one for each in (work.memory, *gone) for one in (each.source.alone, *each.source.also)
        ]
        also = tuple(each for each in dict.fromkeys(every) if each != own and each in merge.origins)
        try:
            after = _after(work, data, also)
        except FormatError:
            gone.pop()
            continue
        removed = [(each, _bytes(each)) for each in gone]
        kept = Change(work.memory.path, data, after)
        rest = tuple(Change(each.path, held, None) for each, held in removed if held is not None)
        return ((kept, *rest), len(rest)) if rest else None
    return None


def _single(work: _Work) -> Group | None:
    data = _bytes(work.memory)
    if data is None or not work.why:
        return None
    try:
        after = _after(work, data, work.memory.source.also)
    except FormatError:
        return None
    return (Change(work.memory.path, data, after),) if after != data else None


def _after(work: _Work, data: bytes, also: tuple[Source, ...]) -> bytes:
    memory = work.memory
    before = (memory.description, memory.body, memory.label)
    if (work.description, work.body, work.label) == before and also == memory.source.also:
        return data
    label = work.label if work.label != memory.label else ""
    return rewritten(
        data, memory, description=work.description, body=work.body, label=label, also=also
    )


def _bytes(memory: Memory) -> bytes | None:
    """Return the file as it was read for the plan; None where it is another by now."""
    try:
        data = now(memory.path)
    except IpymemoryError:
        return None
    return data if data is not None and digest(data) == memory.digest else None


def _text(path: Path) -> str:
    """Return what a file of the project holds; nothing where it is no short text."""
    try:
        data = now(path)
        return data.decode("utf-8") if data and len(data) <= _SOURCE_BYTES else ""
    except (IpymemoryError, UnicodeDecodeError, OSError):
        return ""
