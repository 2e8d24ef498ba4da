"""Living documents by a model: each in a run of its own, over a copy of that one document.

The model may look around in the project and Edit the copy, nothing else (`document_reading`). It
is told what changed since the document was last written, and shown of outputs what may be sent.
What a text may not become is held by code, at each edit and once more at the end (M5). Where
nothing usable comes of it, whoever asked is told so and takes the built-in engine's text.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ipymemory import document_checks, document_prompt, document_reading
from ipymemory.agent import Outcome, run_agent
from ipymemory.config import Settings
from ipymemory.document_changes import changes
from ipymemory.document_files import bytes_of
from ipymemory.document_look import Context, Look, Looked, Open
from ipymemory.document_records import BEGIN
from ipymemory.document_updates import JOB
from ipymemory.document_writers import Answer, Asked
from ipymemory.dream_reading import level_of
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.extractive import Chapter, write_document
from ipymemory.extractive.sources import facts_of
from ipymemory.files import write_atomic
from ipymemory.held import resolved
from ipymemory.history import History
from ipymemory.memory_place import memory_place
from ipymemory.models import Model, Request
from ipymemory.places import Project, config_folder
from ipymemory.redaction import mask
from ipymemory.turns import CellError, Entry, Message, Turn

ROUNDS = 10
MINUTES = 3.0
"""Bounds of one document's run (behaviour L11)."""

_WHY = {
    "out_of_time": "it took longer than 3 minutes",
    "out_of_rounds": "it came to no end in 10 rounds",
    "cancelled": "the run was ended",
}


@dataclass(frozen=True, slots=True)
class Writer:
    """What a run of a model needs, whatever document it is for."""

    model: Model
    project: Project
    settings: Settings
    bus: Bus
    draft: Path
    """Where the copy of the document lies while it works."""
    history: History
    """Of the drafts: nothing to undo, since what comes of them is proposed or written by others."""
    session: str = ""
    cancelled: Callable[[], bool] = lambda: False
    told: dict[str, str] = field(default_factory=dict)
    """What it was told of the cells when it last wrote a document, as a hash, by the cell."""


async def update_by_model(
    context: Context,
    writer: Writer,
    entries: Sequence[Entry],
    *,
    prune: bool = False,
    by_hand: bool = False,
) -> Looked:
    """Have a model bring each document up to date, one after another, each in a run of its own.

    What comes of it is a proposal. Where the model fails, one that it made of the same text before
    stays; else the built-in engine writes, but for a text that was written without its two lines:
    that waits for the next try, unless a person asked (`by_hand`). A model that would be told
    what it was told before is not asked by itself. With `prune` nobody is asked, and only what was
    taken meanwhile is dropped. Raises `IpymemoryError` when nothing can be kept.
    """
    looked = await asyncio.to_thread(Look, context, entries)
    news = await asyncio.to_thread(_told, looked, writer.settings) if looked.documents else ""
    for each in looked.documents:
        old = looked.before.get(each.cell)
        if old is not None and old.base != each.text:
            old = None
        if prune:
            looked.leave(each, old.source if old is not None else each.text)
            continue
        if not by_hand and writer.told.get(each.cell) == news:
            looked.propose(each, old.source if old is not None else each.text)
            continue
        _tell_of(context, each.cell)
        try:
            answer = await written(writer, looked.asked(each))
        finally:
            _tell_of(context, "")
        looked.refused += [f'"{each.head.title}": {note}' for note in answer.notes]
        if answer.text is not None:
            writer.told[each.cell] = news
            looked.propose(each, answer.text)
        elif old is not None:
            looked.leave(each, old.source)
        elif BEGIN not in each.text and each.cell in writer.told and not _known(looked, each):
            # It is the model's, in a notebook that was not saved since: nobody knows whether it is
            # true.
            looked.leave(each, each.text)
        elif by_hand or BEGIN in each.text or _unwritten(writer, looked, each):
            looked.without_model(each)
        else:
            looked.leave(each, each.text)
    return looked.keep()


def _unwritten(writer: Writer, looked: Look, document: Open) -> bool:
    """Return whether nobody is known to have written it, in the file or in this session."""
    return looked.recorded(document) is None and document.cell not in writer.told


def _known(looked: Look, document: Open) -> bool:
    """Return whether the saved notebook says of a document that a model wrote it."""
    record = looked.recorded(document)
    return record is not None and bool(record.by)


def _told(looked: Look, settings: Settings) -> str:
    """Return a hash of all that a model is told of the cells."""
    shown = [Chapter(each.file, sendable(each.turns, settings)) for each in looked.chapters]
    text = f"{write_document(shown)}\0{_material(shown)}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _tell_of(context: Context, cell: str) -> None:
    context.bus.emit(Event("document_now", JOB, details={"cell_id": cell}))


async def written(writer: Writer, asked: Asked) -> Answer:
    """Return what a model made of one document, and a sentence on what it was refused or failed in.

    Never raises but for cancellation: where there is no text, a note says why.
    """
    if len(asked.text) > document_prompt.MOST_DOCUMENT:
        most = document_prompt.MOST_DOCUMENT
        return _none(
            f"it is longer than the {most:,} characters that a model is given", tried=False
        )
    if asked.text.encode("utf-8", "replace").decode() != asked.text:
        return _none("it holds characters that are no text", tried=False)
    if mask(asked.text) != asked.text:
        return _none(
            "it holds what looks like a password, key or token, so no model is shown it",
            tried=False,
        )
    try:
        return await _run(writer, asked)
    except IpymemoryError as error:
        return _none(str(error))
    finally:
        with suppress(OSError):
            writer.draft.unlink()


async def _run(writer: Writer, asked: Asked) -> Answer:
    path = resolved(writer.draft)
    write_atomic(path, asked.text.encode("utf-8"))
    settings, privacy = writer.settings, writer.settings.privacy
    shown = [Chapter(each.file, sendable(each.turns, settings)) for each in asked.chapters]
    prompt = await asyncio.to_thread(_prompt, writer, asked, shown)
    memories = memory_place(writer.project, settings.memory.folder).folder
    around = document_reading.fence(writer.project, asked.root, path, privacy.closed, memories)
    guard = document_checks.document_guard(
        asked.head, _material(shown), asked.most, len(asked.cells)
    )
    level = level_of(str(privacy.sent_outputs), str(privacy.outputs))
    tools = document_reading.tools(around, guard, level, writer.cancelled)
    specs = tuple(each.spec for each in tools.values())
    request = Request(
        document_prompt.SYSTEM,
        (Message("user", prompt),),
        specs,
        model=str(settings.magic_docs.model),
        job=JOB,
    )
    reason = f'update of "{asked.head.title[:80]}"'
    outcome = await run_agent(
        writer.model,
        request,
        tools,
        document_reading.DocumentFence(path, around),
        writer.history.begin(JOB, writer.model.name, reason, (), writer.session),
        writer.bus,
        rounds=ROUNDS,
        seconds=MINUTES * 60,
        one_answer=True,
        cancelled=writer.cancelled,
    )
    after = bytes_of(path).decode("utf-8", "replace")
    return _answer(asked, outcome, after, document_checks.fault(guard, asked.text, after))


def _answer(asked: Asked, outcome: Outcome, after: str, fault: str) -> Answer:
    """Return what is taken of a run: a whole text that code finds nothing wrong with, or none."""
    if outcome.status != "done":
        return _none(outcome.error or _WHY.get(outcome.status, outcome.status))
    same = after == asked.text
    if not same and fault:
        return _none(fault)
    reasons = " ".join(outcome.refusals[:1])
    if same and outcome.refused:
        return _none(f"each of its edits was refused: {reasons}")
    body = document_checks.without_ours(asked.text)[asked.head.end :]
    if same and (asked.record is None or not body.strip()):
        return _none("it wrote nothing")
    notes = []
    if outcome.refused:
        notes.append(f"of the model's calls {outcome.refused} were refused: {reasons}")
    if gone := document_checks.no_cells(after, len(asked.cells)):
        notes.append(f"it still names {gone[0]}, and there is no such cell")
    return Answer(after, tuple(notes))


def _none(why: str, *, tried: bool = True) -> Answer:
    return Answer(None, (f"the model did not write it: {why}",), tried)


def _prompt(writer: Writer, asked: Asked, shown: Sequence[Chapter]) -> str:
    cells = [
        (asked.label(chapter, turn), turn.source) for chapter in shown for turn in chapter.turns
    ]
    names = {
        asked.label(chapter, turn): sorted(facts_of(turn.source).binds)
        for chapter in shown
        for turn in chapter.turns
    }
    found = changes(asked.record, asked.file, asked.cells, names)
    return document_prompt.prompt(
        config_folder(writer.project.home),
        document=asked.text,
        path=writer.draft.name,
        title=asked.head.title,
        instructions=asked.head.instruction.strip(),
        changes=found.lines,
        facts=write_document(shown),
        cells=document_prompt.shown(cells, found.labels, _most(writer.settings)),
        warn=lambda text: writer.bus.emit(Event("warning", JOB, details={"text": text})),
    )


def _most(settings: Settings) -> int:
    """Return how many characters of cells may be sent: of a small window half, at 3 a token."""
    return min(document_prompt.MOST_SENT, int(settings.engine.window_tokens) * 3 // 2)


def _material(shown: Sequence[Chapter]) -> str:
    return "\n".join(turn.source for chapter in shown for turn in chapter.turns)


def sendable(turns: Sequence[Turn], settings: Settings) -> tuple[Turn, ...]:
    """Return `turns` with what of their outputs may be sent (`Privacy`); masked they are."""
    levels = {str(settings.privacy.sent_outputs), str(settings.privacy.outputs)}
    if not levels & {"shapes", "none"}:
        return tuple(turns)
    return tuple(
        replace(
            each,
            outputs=(),
            error=CellError(each.error.name) if each.error is not None else None,
            names=() if "none" in levels else each.names,
        )
        for each in turns
    )
