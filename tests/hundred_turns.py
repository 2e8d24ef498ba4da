"""What a model in 100 turns costs, against a plain loop that keeps no cache.

One run, the real session and SDK, a server that accounts for its prompt cache as the provider
does. The plain loop answers the same questions and keeps the same notes at the same moments, but
sends everything uncached each time and writes the notes file out whole.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from model_server import ModelServer, tool
from note_writer import asked_notes
from recorded import Recorded

from ipymemory import consent, markdown, prices
from ipymemory.config import Settings
from ipymemory.models import Usage
from ipymemory.session import MemorySession
from ipymemory.turns import new_id, tokens

MODEL = "claude-haiku-5-5"
TURNS = 100
ASK_EVERY = 4
SECONDS = 15.0
"""From one turn to the next, and ten more at rest: the cache lives five minutes."""

_ANSWER = "The median is 4.2, as [3] shows; the mean is pulled up by three rows. " * 4


@dataclass
class Figures:
    """Money in US dollars, the least share a fork read from the cache, and calls for notes."""

    money: float = 0.0
    plain: float = 0.0
    least: float = 1.0
    notes: int = 0


def measure() -> Figures:
    """Return the figures of one run."""
    now = [0.0]
    with tempfile.TemporaryDirectory() as folder, _server(now) as server:
        home = Path(folder) / "home"
        home.mkdir()
        recorded = Recorded(home, Path(folder) / "work")
        consent.choose(recorded.project, "anthropic", server.host)
        settings = Settings.read({"Engine": {"model": MODEL}})[0]
        session = MemorySession(recorded.folder, recorded.project, settings, clock=lambda: now[0])
        return asyncio.run(_run(recorded, session, server, now))


@contextmanager
def _server(now: list[float]) -> Iterator[ModelServer]:
    here = "ipymemory.messages_api.address.is_anthropic"
    with (
        ModelServer(_brain, clock=lambda: now[0]) as server,
        patch(here, lambda host: True),
        patch.dict(os.environ, server.environment()),
    ):
        yield server


def _brain(body: dict[str, Any], number: int) -> Any:
    """Answer a question in a few words; write three sections of the notes."""
    notes = asked_notes(body)
    if not notes:
        return _ANSWER
    step = f"[{number}] fitted step {number}; loss 0.{number}, 12 rows dropped."
    calls = []
    for at, (name, text) in enumerate(
        (("Current State", step), ("Learnings", f"- {step}"), ("Worklog", f"- Ran {step}"))
    ):
        found = markdown.section(notes + "\n", name)
        assert found is not None
        lines = [each for each in found.body.strip().split("\n") if each]
        if name == "Current State" and (body := found.body.strip("\n")) and notes.count(body) == 1:
            # What was true then gives way to what is true now, and no more is written out.
            old, new = body, text
        elif name == "Current State" or not lines:
            old = f"{found.header}\n{found.italic}\n{found.body}".rstrip("\n")
            new = f"{found.header}\n{found.italic}\n\n{text}"
        else:
            old, new = lines[-1], f"{lines[-1]}\n{text}"
        call = {"path": "notes.md", "old_string": old, "new_string": new}
        calls.append(tool("Edit", call, f"call_{at}"))
    return calls


async def _run(
    recorded: Recorded, session: MemorySession, server: ModelServer, now: list[float]
) -> Figures:
    figures = Figures()
    for turn in range(TURNS):
        source = f"model_{turn} = fit(frame, rate=0.0{turn})\nprint(report(model_{turn}))"
        id = recorded.begin(source)
        recorded.count += 1
        recorded.writer.append(
            {
                "type": "end",
                "id": id,
                "execution_count": recorded.count,
                "status": "ok",
                "duration_ms": 9.0,
            }
        )
        recorded.outputs(id, f"step {turn}: loss 0.{turn} accuracy 0.9{turn}\n" * 18)
        now[0] += SECONDS
        session.observe()
        now[0] += 6.0
        for _ in range(2):
            due = session.due()
            if due is not None and due <= 0:
                await session.run_due()
            now[0] += 2.0
        if turn % ASK_EVERY == ASK_EVERY - 1:
            question = f"What did step {turn} give?"
            asked = new_id()
            recorded.writer.append({"type": "ask", "id": asked, "kernel": 1, "question": question})
            await session.ask(question, asked, None, lambda piece: None, lambda: False)
    await session.session_model.close()
    total = session.session_model.ledger.spent()
    figures.money = total.money
    _count(server, session, figures)
    return figures


def _count(server: ModelServer, session: MemorySession, figures: Figures) -> None:
    """Work out what a plain loop would have paid, and what each fork read of the one before."""
    output = tokens(session.folder.notes.read_text("utf-8"))
    before = 0
    for body, told in zip(server.requests, server.usages, strict=True):
        usage = Usage(
            told.get("input_tokens", 0),
            0,
            told.get("cache_read_input_tokens", 0),
            told.get("cache_creation_input_tokens", 0),
        )
        if before:
            figures.least = min(figures.least, usage.cache_read / before)
        # What was said last, a question with its answer still to come or the notes as they were
        # then, is in no other request.
        before = usage.prompt - tokens(body["messages"][-1]["content"][0]["text"])
        is_notes = bool(asked_notes(body))
        figures.notes += is_notes
        words = output if is_notes else tokens(_ANSWER)
        paid = prices.cost(MODEL, Usage(usage.prompt, words))
        assert paid is not None
        figures.plain += paid
