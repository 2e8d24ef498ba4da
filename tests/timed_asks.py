"""How soon the words of a model show in a notebook, how soon a stop is felt, what compacting takes.

A real kernel, worker and SDK, and a server on a real socket that knows when it sent what.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from kernels import Kernel
from model_server import ModelServer
from recorded import Recorded

from ipymemory.config import Settings
from ipymemory.context import Conversation
from ipymemory.transcript import Transcript

ASKS = 12
STOPS = 6


@dataclass
class Figures:
    """Milliseconds: the first ask of a kernel, the median and worst of later ones, and stops."""

    cold: float = 0.0
    words: list[float] = field(default_factory=list)
    stops: list[float] = field(default_factory=list)
    compaction: float = 0.0


def measure() -> Figures:
    """Return the figures of one kernel and one long conversation."""
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder, ModelServer() as server:
        kernel = Kernel(Path(folder) / "kernel")
        try:
            _asks(kernel, server, figures)
        finally:
            kernel.close()
        figures.compaction = _compaction(Path(folder))
    return figures


def _asks(kernel: Kernel, server: ModelServer, figures: Figures) -> None:
    server.brain = lambda body, n: "word " * 5
    for line in (
        f"%env ANTHROPIC_BASE_URL={server.url}",
        "%env ANTHROPIC_API_KEY=key-of-a-test",
        "%load_ext ipymemory",
        "%memory engine anthropic",
        "x = 1",
    ):
        kernel.run(line)
    for number in range(ASKS):
        server.first_piece_at = 0.0
        request = kernel.send("%ask what is x?")
        seen = kernel.when(request, lambda content: "word" in content)
        took = (seen - server.first_piece_at) * 1000
        kernel.collect(request)
        if number:
            figures.words.append(took)
        else:
            figures.cold = took
    server.brain = lambda body, n: "word " * 2000
    server.pause = 0.02
    for _ in range(STOPS):
        request = kernel.send("%ask what is x?")
        kernel.when(request, lambda content: "word" in content)
        began = time.time()
        kernel.interrupt()
        kernel.when(request, lambda content: "'execution_state': 'idle'" in content)
        figures.stops.append((time.time() - began) * 1000)
        kernel.client.get_shell_msg(timeout=10)


def _compaction(folder: Path) -> float:
    """Return the milliseconds of compacting 90,000 tokens to notes of 12,000."""
    (folder / "home").mkdir()
    recorded = Recorded(folder / "home", folder / "work")
    for number in range(300):
        recorded.cell(f"step = {number}\n# {'x' * 850}")
    body = "- a line\n" * 400
    notes = "".join(f"# Section {n}\n_What is here._\n{body}\n" for n in range(10))
    transcript = Transcript(recorded.folder.transcript)
    ids = transcript.follow()
    conversation = Conversation(recorded.folder, Settings())
    conversation.follow(transcript.steps)
    assert conversation.tokens > 75_000, conversation.tokens
    began = time.perf_counter()
    assert conversation.compact(notes, ids[-1])
    return (time.perf_counter() - began) * 1000
