"""What is picked up of a cell's output, and how it is held in bounded memory."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernels import ROOT

from ipymemory.capture import MOST_ITEMS, Captured, TerminalTee
from ipymemory.outputs import with_result


def texts(captured: Captured) -> list[tuple[str, str]]:
    return [(each["kind"], each["text"]) for each in captured.pieces()]


def test_pieces_of_a_stream_are_one() -> None:
    captured = Captured(4000)
    for piece in ("a", "b\n", "c"):
        captured.stream("stdout", piece)
    captured.bundle("result", {"text/plain": "42"}, None)
    captured.stream("stdout", "d")
    assert texts(captured) == [("stream", "ab\nc"), ("result", "42"), ("stream", "d")]


def test_many_pieces_are_bounded_and_the_streams_go_on() -> None:
    captured = Captured(4000)
    for number in range(1000):
        captured.stream("stdout" if number % 2 else "stderr", f"{number}\n")
        captured.bundle("display", {"text/plain": str(number)}, None)
    found = captured.pieces()
    assert len(found) <= MOST_ITEMS + 2  # one more for each stream
    assert "999\n" in "".join(each["text"] for each in found)


def test_a_display_is_updated_in_place_and_cleared() -> None:
    captured = Captured(4000)
    captured.bundle("display", {"text/plain": "first"}, "id-1")
    captured.update({"text/plain": "second"}, "id-1")
    captured.update({"text/plain": "another's"}, "id-2")
    captured.update({"text/plain": "nobody's"}, None)
    assert texts(captured) == [("display", "second")]
    captured.stream("stdout", "old")
    captured.clear(wait=True)
    assert bool(captured)
    captured.stream("stdout", "new")
    assert texts(captured) == [("stream", "new")]
    captured.stream("stdout", "old")
    captured.clear(wait=False)
    assert texts(captured) == []


def test_images_are_told_by_type_and_size() -> None:
    captured = Captured(4000)
    captured.bundle("display", {"image/png": "A" * 50_000}, None)
    captured.bundle("display", {"text/plain": "<Figure>", "image/png": "A" * 50_000}, None)
    found = captured.pieces()
    assert [each["text"] for each in found] == ["image/png, 50,000 characters", "<Figure>"]
    assert found[1]["mime"] == ["text/plain", "image/png"]


def test_the_tee_leaves_the_streams_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    tee, captured = TerminalTee(), Captured(4000)
    tee.begin(captured)
    print("seen")
    tee.end()
    print("not seen")
    out.flush()
    assert texts(captured) == [("stream", "seen\n")]
    assert out.buffer.getvalue() == b"seen\nnot seen\n"  # type: ignore[attr-defined]
    assert "write" not in vars(out)


def test_a_terminals_result_is_told_from_what_was_printed() -> None:
    piece = {
        "kind": "stream",
        "text": "printed\nOut[3]: \n   a\n0  1\n",
        "mime": [],
        "truncated": 0,
    }
    assert [(each["kind"], each["text"]) for each in with_result([piece], 3)] == [
        ("stream", "printed\n"),
        ("result", "   a\n0  1"),
    ]
    assert with_result([piece], 4) == [piece]


@pytest.mark.terminal
@pytest.mark.spec("L1", "L2")
def test_a_real_terminal_is_recorded(tmp_path: Path) -> None:
    cells = (
        "%load_ext ipymemory",
        "print('hello')",
        "40 + 2",
        "1 / 0",
        "%unload_ext ipymemory",
        "print('unseen')",
    )
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input="\n".join(cells) + "\n",
        env={
            **os.environ,
            "IPYTHONDIR": str(tmp_path / "ipython"),
            "IPYMEMORY_HOME": str(tmp_path / "home"),
            "PYTHONPATH": str(ROOT),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
    (path,) = (tmp_path / "home").glob("projects/*/sessions/*/transcript.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    sources = [each["source"] for each in lines if each["type"] == "cell"]
    assert sources == ["print('hello')", "40 + 2", "1 / 0"]
    outputs = [each for each in lines if each["type"] == "outputs"]
    assert [(o["kind"], o["text"]) for o in outputs[0]["outputs"]] == [("stream", "hello\n")]
    assert [(o["kind"], o["text"]) for o in outputs[1]["outputs"]] == [("result", "42")]
    assert outputs[2]["error"]["name"] == "ZeroDivisionError"
