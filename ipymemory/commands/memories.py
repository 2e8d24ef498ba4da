"""``list``, ``show`` and ``recall``: memories, each with its age and where it came from.

What a memory says is somebody's text, perhaps a model's: a notebook gets it made harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePath

from ipymemory.commands.amounts import counted
from ipymemory.commands.calling import nearest
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError, IpymemoryError, MemoryMissing, WorkerError
from ipymemory.memory_files import KINDS, Memory, MemoryFolder, opened
from ipymemory.memory_files.values import Source
from ipymemory.neutral import neutral, plain
from ipymemory.recall import Found, Recall

SHOWN = 5
"""Memories that ``recall`` shows unless told otherwise (interface.md)."""

MOST_ORIGINS = 20
"""Origins of merged memories that ``show`` names one by one."""

RECALL_SECONDS = 5.0
"""What a worker may take that loads a model first. Of ten thousand memories the first vectors may
take longer: the words answer then, and the worker is ready for the next question."""


def reading(place: Place) -> MemoryFolder:
    """Return the memory folder; raises `CommandError` where memory is off."""
    folder = opened(place.project, place.settings)
    if folder.mode == "off":
        raise CommandError(
            f"Memory is off in this project, so none is read. {place.prefix}mode read (or auto) "
            "turns it on."
        )
    return folder


def kind_of(text: str | None, command: Command, prefix: str) -> str:
    """Return the kind that `text` names, empty for None; raises `CommandError`."""
    if text is None:
        return ""
    wanted = text.casefold()
    if wanted in KINDS:
        return wanted
    near = nearest(text, KINDS)
    raise CommandError(
        f"There is no type {text!r}{f'; did you mean {near}?' if near else '.'} "
        f"The types are {', '.join(KINDS)}. The right form is: {command.usage(prefix)}"
    )


def line(memory: Memory, now: datetime) -> str:
    """Return a memory for a list: name, kind, age, and what it says."""
    what = one(memory.description) or memory.problem
    state = "" if memory.current else " (replaced by another)"
    kind = memory.kind or "unknown type"
    return f"- **{one(memory.name)}** ({one(kind)}, {memory.age(now)}): {what}{state}"


def origin(memory: Memory) -> str:
    """Return where a memory came from, as words after a colon."""
    return _origin(memory.source)


def _origin(source: Source) -> str:
    words = {
        "person": "asked for by hand",
        "markdown": "a markdown cell",
        "comment": "a comment in a cell",
        "ask": "a question to the assistant",
        "file": "a file",
        "output": "a cell's output",
        "model": "a model",
    }
    parts = [words.get(source.origin, one(source.origin))]
    if source.notebook:
        parts.append(one(PurePath(source.notebook).name))
    if source.turns:
        parts.append(counted(len(source.turns), "cell"))
    if source.session:
        parts.append(f"session {one(source.session)}")
    return ", ".join(filter(None, parts)) or "not on record"


def one(text: str) -> str:
    """Return `text` on one line and harmless in Markdown."""
    return neutral(" ".join(plain(text).split())).strip()


def _list(place: Place, arguments: Arguments) -> Page:
    folder = reading(place)
    kind = kind_of(arguments["type"], LIST, place.prefix)
    every = [each for each in folder.scan() if not kind or each.kind == kind]
    if not every:
        what = f"of type {kind} " if kind else ""
        return Page(
            f"There are no memories {what}in this project yet. "
            f"`{place.prefix}remember TEXT` keeps one.",
            [],
            exit=1,
        )
    now = datetime.now(UTC)
    total = counted(len(every), "memory", "memories")
    lines = [
        f"{total} in {one(str(folder.folder))}, newest first.",
        "",
        *(line(each, now) for each in every),
    ]
    lines += ["", f"`{place.prefix}show NAME` shows one."]
    return Page("\n".join(lines), [_listed(each, now) for each in every])


def _show(place: Place, arguments: Arguments) -> Page:
    folder = reading(place)
    try:
        memory = folder.read(" ".join(arguments["name"]))
    except MemoryMissing as error:
        return Page(str(error), None, exit=1)
    now = datetime.now(UTC)
    head = (*_head(memory, now), *_merged(memory))
    return Page(
        "\n".join((*head, "", neutral(memory.text))),
        {**memory.as_dict(), "age": memory.age(now)},
        text="\n".join((*head, "", plain(memory.text))).replace("**", ""),
    )


def _recall(place: Place, arguments: Arguments) -> Page:
    folder = reading(place)
    question = " ".join(arguments["query"])
    if not question.strip():
        raise CommandError(f"QUERY is missing. The right form is: {RECALL.usage(place.prefix)}")
    recall, found, trouble = _found(place, folder, question, arguments["n"] or SHOWN)
    alone = f"Found by their words alone. {trouble}" if trouble else ""
    if not found:
        said = f"No memory answers that. `{place.prefix}list` shows all there are."
        return Page("\n\n".join(filter(None, (said, alone))), [], exit=1)
    recall.used([each.memory.name for each in found], place.folder.id if place.folder else "")
    now = datetime.now(UTC)
    parts, texts = [], []
    for each in found:
        head = _head(each.memory, now)
        parts.append("\n".join((*head, "", neutral(each.memory.text))))
        texts.append("\n".join((*head, "", plain(each.memory.text))).replace("**", ""))
    data = [
        {**each.memory.as_dict(), "age": each.memory.age(now), "score": round(each.score, 3)}
        for each in found
    ]
    if alone:
        parts.append(alone)
        texts.append(alone)
    return Page("\n\n".join(parts), data, text="\n\n".join(texts))


def _found(
    place: Place, folder: MemoryFolder, question: str, n: int
) -> tuple[Recall, Sequence[Found], str]:
    """Return what answers `question`, and why no model of meanings was used though one is set.

    In a kernel the worker is asked, so that the model is never loaded into the user's process.
    """
    embeddings = place.settings.memory.embeddings
    if place.live is None or not embeddings:
        recall = Recall(place.project, folder, embeddings)
        return recall, recall.find(question, n), recall.trouble
    recall = Recall(place.project, folder)
    try:
        told = place.live.ask("recall", RECALL_SECONDS, question=question, n=n)
    except WorkerError as error:
        return recall, recall.find(question, n), str(error)
    found = []
    for name, score in told["found"]:
        with suppress(IpymemoryError):  # removed or replaced this moment
            found.append(Found(folder.read_exactly(name), score))
    return recall, found, told["trouble"]


def _head(memory: Memory, now: datetime) -> Sequence[str]:
    head = [
        f"**{one(memory.title)}** ({one(memory.kind) or 'unknown type'}, {memory.age(now)}; "
        f"`{one(memory.name)}`)",
        f"From: {origin(memory)}, {memory.modified[:10]}",
    ]
    if memory.source.quote and memory.source.quote not in memory.text:
        head.append(f"In the words: {one(memory.source.quote)}")
    if memory.problem:
        head.append(f"{memory.problem} The file is shown as it is: {memory.path}")
    if not memory.current:
        head.append("Another memory took its place; it is not recalled.")
    return head


def _merged(memory: Memory) -> Sequence[str]:
    """Return where else it was said: what a dream merged into it, each with its own words."""
    also = memory.source.also
    said = []
    for each in also[:MOST_ORIGINS]:
        own = each.quote and each.quote not in (memory.source.quote, *memory.text.splitlines())
        words = f": “{one(each.quote)}”" if own else ""
        said.append(f"Merged into it, from: {_origin(each)}{words}")
    if len(also) > MOST_ORIGINS:
        said.append(f"And {len(also) - MOST_ORIGINS:,} more origins, which `--json` lists.")
    return said


def _listed(memory: Memory, now: datetime) -> dict[str, object]:
    return {**memory.as_dict(), "age": memory.age(now)}


LIST = Command(
    "list",
    "list the memories of this project, newest first",
    _list,
    (Argument("--type", f"only these: {', '.join(KINDS)}", "T"), JSON),
)
SHOW = Command(
    "show",
    "show a memory, with where it came from",
    _show,
    (Argument("NAME", "the memory, or how its name begins", words=True, required=True), JSON),
)
RECALL = Command(
    "recall",
    "find memories for a question",
    _recall,
    (
        Argument("QUERY", "a question or a few words", words=True, required=True, free=True),
        Argument("-n", f"at most so many (default {SHOWN})", "N", number=True),
        JSON,
    ),
    details="It shows nothing rather than what hardly fits.",
)
