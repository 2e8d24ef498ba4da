"""Living documents by a model: each in a run of its own, over a copy of that one document.

The model may Edit the copy and nothing else, and what comes of it is a proposal like any other.
It is shown of outputs what may be sent; what a text may not become is held by its guard (M5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ipymemory import prompts
from ipymemory.agent import Outcome, run_agent
from ipymemory.config import Settings
from ipymemory.document_files import bytes_of
from ipymemory.document_look import Context, Look, Looked, Open
from ipymemory.document_updates import JOB
from ipymemory.documents import Document, find
from ipymemory.events import Event
from ipymemory.extractive import Chapter, write_document
from ipymemory.files import write_atomic
from ipymemory.held import resolved
from ipymemory.history import History
from ipymemory.models import Model, Request
from ipymemory.permissions import OnlyFile
from ipymemory.redaction import mask
from ipymemory.tools import EditTool, Guard
from ipymemory.turns import CellError, Entry, Message, Turn, tokens

ROUNDS = 10
MINUTES = 3.0
"""Bounds of one document's run (behaviour L11)."""
_SMALL = 200
"""Tokens that a document may lose without a question."""


@dataclass(frozen=True, slots=True)
class Writer:
    """What a run of a model needs beside its `Context`."""

    model: Model
    history: History
    config_folder: Path
    cancelled: Callable[[], bool] = lambda: False


async def update_by_model(
    context: Context, writer: Writer, entries: Sequence[Entry], *, prune: bool = False
) -> Looked:
    """Have a model bring each document up to date, one after another, each in a run of its own.

    It may Edit a copy of that one document in the session's folder and nothing else; what comes of
    it is a proposal. With `prune` nobody is asked, and only what was taken meanwhile is dropped.
    Raises `IpymemoryError` when nothing can be kept.
    """
    looked = await asyncio.to_thread(Look, context, entries)
    for each in looked.documents:
        old = looked.before.get(each.cell)
        if prune:
            looked.propose(each, old.source if old and old.base == each.text else each.text)
            continue
        _tell_of(context, each.cell)
        try:
            outcome, text = await _written(context, writer, each, looked.chapters)
        finally:
            _tell_of(context, "")
        if outcome.status == "done":
            looked.propose(each, text)
            continue
        why = outcome.error or outcome.status
        looked.refused.append(f'"{each.head.title}": {why}')
        if old is not None and old.base == each.text:
            looked.propose(each, old.source)
    return looked.keep()


def _tell_of(context: Context, cell: str) -> None:
    context.bus.emit(Event("document_now", JOB, details={"cell_id": cell}))


async def _written(
    context: Context, writer: Writer, document: Open, chapters: Sequence[Chapter]
) -> tuple[Outcome, str]:
    """Return how a model's run on one document ended, and the text that it left."""
    path = resolved(context.folder.document)
    write_atomic(path, document.text.encode("utf-8", "replace"))
    shown = [Chapter(each.file, sendable(each.turns, context.settings)) for each in chapters]
    prompt = prompts.document_prompt(
        writer.config_folder,
        document=document.text,
        path=path.name,
        title=document.head.title,
        instructions=document.head.instruction.strip(),
        facts=write_document(shown),
        cells="\n\n".join(f"[{turn.id}]\n{turn.source}" for e in shown for turn in e.turns),
        warn=lambda text: context.bus.emit(Event("warning", JOB, details={"text": text})),
    )
    edit = EditTool(document_guard(document.head))
    request = Request(prompts.DOCUMENT_SYSTEM, (Message("user", prompt),), (edit.spec,))
    reason = f'update of "{document.head.title[:80]}"'
    run = writer.history.begin(JOB, writer.model.name, reason, (), context.folder.id)
    outcome = await run_agent(
        writer.model,
        request,
        {edit.spec.name: edit},
        OnlyFile(path),
        run,
        context.bus,
        rounds=ROUNDS,
        seconds=MINUTES * 60,
        one_answer=True,
        cancelled=writer.cancelled,
    )
    return outcome, bytes_of(path).decode("utf-8", "replace")


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


def document_guard(head: Document) -> Guard:
    """Return the guard of a document that a model writes (behaviour M5)."""

    def check(before: str, after: str) -> str:
        again = find(after)
        kept = after[: head.end].rstrip("\n") == before[: head.end].rstrip("\n")
        if again is None or not kept:
            return "The heading and the instruction line below it stay exactly as they are."
        if again.instruction != head.instruction:
            # It would be read as the person's own words from the next update on.
            return "The first line below the heading is no italic one: that is the person's to set."
        was, now = (tokens(each[head.end :].strip()) for each in (before, after))
        if not now:
            return "The edit leaves the document empty."
        if was > _SMALL and now < was // 2:
            return f"The edit drops most of the document: {was:,} tokens would become {now:,}."
        if mask(after) != mask(before) and mask(after) != after:
            return "An edit holds what looks like a password, key or token. Leave it out."
        return ""

    return check
