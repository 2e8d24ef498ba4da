"""An answer in pieces, from the worker's loop to the thread that shows it."""

from __future__ import annotations

import _thread
import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded import Recorded, until
from workers import faulty

from ipymemory.client import Client
from ipymemory.config import Settings
from ipymemory.errors import WorkerError
from ipymemory.pieces import GATHER_SECONDS, MOST_TEXT, Pieces
from ipymemory.streaming import MOST_KEPT, MOST_PIECES, Stream

# What is kept for the one who takes.


def test_pieces_come_in_order_and_the_end_comes_last() -> None:
    stream = Stream()
    stream.put({"text": "a"})
    stream.put({"call": "Read"})
    stream.end({"status": "ok"}, "")
    assert stream.take(1.0) == [{"text": "a"}, {"call": "Read"}]
    assert stream.ended
    assert (stream.value, stream.error, stream.lost) == ({"status": "ok"}, "", False)
    assert stream.take(1.0) == []


def test_taking_waits_no_longer_than_asked_and_not_at_all_once_there_is_something() -> None:
    stream = Stream()
    begun = time.monotonic()
    assert stream.take(0.1) == []
    assert 0.09 < time.monotonic() - begun < 1.0
    threading.Timer(0.05, lambda: stream.put({"text": "late"})).start()
    assert stream.take(20.0) == [{"text": "late"}]
    assert time.monotonic() - begun < 5.0


@pytest.mark.parametrize("size", [1, 10_000])
def test_who_puts_never_waits_and_what_nobody_takes_is_bounded(size: int) -> None:
    stream = Stream()
    for _ in range(MOST_PIECES + 100):
        stream.put({"text": "x" * size})
    assert stream.lost
    stream.end(None, "")
    kept = stream.take(0.0)
    assert len(kept) <= MOST_PIECES
    assert sum(len(each["text"]) for each in kept) <= MOST_KEPT


def test_a_wait_for_a_piece_can_be_interrupted() -> None:
    stream = Stream()
    begun = time.monotonic()
    # Without a system call that it could interrupt, as on Windows.
    threading.Timer(0.1, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        stream.take(20.0)
    assert time.monotonic() - begun < 1.0


# What the worker sends.


def said(hearing: Callable[[Pieces], Any]) -> list[tuple[float, dict[str, Any]]]:
    """Return what was sent, each with its second, while `hearing` runs on a loop."""
    sent: list[tuple[float, dict[str, Any]]] = []

    async def run() -> None:
        begun = time.monotonic()
        pieces = Pieces(lambda message: sent.append((time.monotonic() - begun, dict(message))), 7)
        await hearing(pieces)
        pieces.close()
        assert pieces.sent == len(sent)

    asyncio.run(run())
    return sent


def test_the_first_word_goes_out_at_once_and_the_next_ones_together() -> None:
    async def hearing(pieces: Pieces) -> None:
        for n in range(20):
            pieces.hear({"text": f"{n} "})
            await asyncio.sleep(GATHER_SECONDS / 10)

    sent = said(hearing)
    assert sent[0][0] < 0.05
    assert sent[0][1] == {"type": "piece", "id": 7, "piece": {"text": "0 "}}
    assert 2 <= len(sent) <= 10
    assert "".join(each["piece"]["text"] for _, each in sent) == "".join(f"{n} " for n in range(20))


def test_a_word_after_a_silence_goes_out_at_once_too() -> None:
    at: list[float] = []

    async def hearing(pieces: Pieces) -> None:
        begun = time.monotonic()
        pieces.hear({"text": "a"})
        await asyncio.sleep(5 * GATHER_SECONDS)
        at.append(time.monotonic() - begun)
        pieces.hear({"text": "b"})
        await asyncio.sleep(0)
        assert pieces.sent == 2

    assert len(said(hearing)) == 2


def test_a_tool_call_keeps_its_place_and_a_long_text_is_cut() -> None:
    async def hearing(pieces: Pieces) -> None:
        pieces.hear({"text": "a"})
        pieces.hear({"text": "b" * MOST_TEXT + "c"})
        pieces.hear({"call": "Read", "about": "x.py"})
        pieces.hear({"text": "d"})

    sent = [each["piece"] for _, each in said(hearing)]
    assert [each.get("text", "")[:1] for each in sent] == ["a", "b", "c", "", "d"]
    assert sent[3] == {"call": "Read", "about": "x.py"}


# Both, with a real worker between.

FAKE = """
import asyncio
from ipymemory.session import MemorySession
async def ask(self, question, ask_id, last, hear, cancelled):
    hear({{"text": "you asked " + question}})
    {then}
    return {{"status": "cancelled" if cancelled() else "done", "last": last}}
MemorySession.ask = ask
"""


@pytest.fixture
def start(home: Path, tmp_path: Path) -> Iterator[Callable[[str], Client]]:
    recorded = Recorded(home, tmp_path / "work")
    made: list[Client] = []

    def make(then: str) -> Client:
        command = faulty(FAKE.format(then=then))
        made.append(Client(recorded.folder, recorded.project, Settings(), command))
        return made[-1]

    yield make
    for each in made:
        each.close(5.0, drain=False)


def all_of(stream: Stream) -> str:
    found: list[Any] = []
    until(lambda: found.extend(stream.take(0.1)) or stream.ended, "the end of the answer")
    return "".join(str(each.get("text", f"<{each.get('call')}>")) for each in found)


@pytest.mark.worker
def test_pieces_cross_the_pipe_and_the_reply_ends_them(start: Callable[[str], Client]) -> None:
    client = start('hear({"call": "Read", "about": "x"}); hear({"text": " bye"})')
    with client.stream("ask", question="what", ask_id="1", last=3) as stream:
        assert all_of(stream) == "you asked what<Read> bye"
    assert stream.value == {"status": "done", "last": 3}
    assert (stream.error, client.garbage) == ("", 0)
    assert client.ask("ping", 20) == "pong"


@pytest.mark.worker
def test_a_piece_is_there_before_the_answer_is_over(start: Callable[[str], Client]) -> None:
    client = start("await asyncio.sleep(0 if cancelled() else 1.0)")
    client.ask("ping", 20)
    begun = time.monotonic()
    with client.stream("ask", question="what", ask_id="1", last=None) as stream:
        assert stream.take(20.0) == [{"text": "you asked what"}]
        assert time.monotonic() - begun < 0.5
        assert all_of(stream) == ""


@pytest.mark.worker
def test_leaving_before_the_end_has_the_worker_stop(start: Callable[[str], Client]) -> None:
    client = start(
        """
    while not cancelled():
        await asyncio.sleep(0.01)
    (Path.cwd() / "stopped").touch()"""
    )
    with (
        pytest.raises(KeyboardInterrupt),
        client.stream("ask", question="what", ask_id="1", last=None) as stream,
    ):
        assert stream.take(20.0)
        raise KeyboardInterrupt
    folder = client._folder.path
    until((folder / "stopped").exists, "that the worker stopped", 5.0)
    assert client.ask("ping", 20) == "pong"


@pytest.mark.worker
@pytest.mark.parametrize(
    ("then", "why"),
    [
        ("raise IpymemoryError('No model.')", "No model."),
        ("1 / 0", "ZeroDivisionError"),
        ("die()", "ended before it answered"),
    ],
)
def test_what_goes_wrong_is_the_streams_error(
    start: Callable[[str], Client], then: str, why: str
) -> None:
    client = start(f"from ipymemory.errors import IpymemoryError; {then}")
    with client.stream("ask", question="what", ask_id="1", last=None) as stream:
        assert all_of(stream) in ("you asked what", "")
    assert why in stream.error


@pytest.mark.worker
def test_closing_the_session_ends_the_answer(start: Callable[[str], Client]) -> None:
    client = start("await asyncio.sleep(0.0 if cancelled() else 600.0)")
    with client.stream("ask", question="what", ask_id="1", last=None) as stream:
        assert stream.take(20.0)
        client.close(5.0, drain=False)
        all_of(stream)
    assert "closed" in stream.error
    with (
        pytest.raises(WorkerError, match="is closed"),
        client.stream("ask", question="x"),
    ):
        sys.exit("the block was entered")
