"""The assistant looks at the project's files: a real kernel, a model server that calls tools."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import Kernel
from model_server import ModelServer
from scripted import good
from test_model_story import loaded, shown

pytestmark = pytest.mark.kernel


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.mark.spec("E6", "L7")
def test_it_greps_and_reads_a_file_of_the_project_and_answers(
    kernel: Kernel, server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "work" / "load.py").write_text("def load_csv(path):\n    '''day first'''\n")
    (tmp_path / "work" / ".env").write_text("API_KEY=zebra-and-more-4711\n")
    agent = good(
        ("Grep", {"pattern": "load_csv"}),
        ("Read", {"path": "load.py"}),
        ("Read", {"path": ".env"}),
        ("Read", {"path": "../home/projects"}),
        words="Dates are **day first**, as load.py says.",
    )
    server.brain = agent
    loaded(kernel, server)
    shown(kernel, "%memory engine anthropic")
    kernel.run("x = 1")
    told = shown(kernel, "%%ask\nHow are dates parsed?")
    assert "*Grep* `load_csv`" in told and "*Read* `load.py`" in told
    assert "*Read* `.env` (refused)" in told and "day first" in told
    grep, read, env, home = agent.told
    assert "load.py:1: def load_csv(path):" in grep.text and not grep.refused
    assert "2\t    '''day first'''" in read.text
    assert env.refused and "Privacy.files" in env.text and "Allowed here: Read" in env.text
    assert home.refused and "outside the project" in home.text
    assert "zebra" not in json.dumps(server.requests)
    assert [each["name"] for each in server.requests[0]["tools"]][:3] == ["Read", "Grep", "Glob"]
    # The calls are on record, and the conversation goes on with what was read.
    (end,) = (each for each in kernel.lines() if each["type"] == "ask_end")
    assert end["calls"] == 4
    assert "Fine" in shown(kernel, "%ask and now?") or agent.words in str(server.requests[-1])
    assert "day first" in json.dumps(server.requests[-1]["messages"][:-1])


def test_the_stop_button_ends_a_long_grep(
    kernel: Kernel, server: ModelServer, tmp_path: Path
) -> None:
    for number in range(400):
        (tmp_path / "work" / f"log{number}.txt").write_text("one line of many in here\n" * 4000)
    server.brain = good(("Grep", {"pattern": r"o\w+ l\w+ \w+ [z]"}))
    loaded(kernel, server)
    shown(kernel, "%memory engine anthropic")
    kernel.run("x = 1")
    request = kernel.send("%ask look everywhere")
    while "Grep" not in str(kernel.client.get_iopub_msg(timeout=30)["content"]):
        pass
    time.sleep(0.3)
    begun = time.monotonic()
    kernel.interrupt()
    ran = kernel.collect(request, timeout=20)
    assert ran.reply["ename"] == "KeyboardInterrupt"
    assert time.monotonic() - begun < 1.0, "200 ms on a machine at rest"
    assert len(server.requests) == 1
    # The worker is free again at once.
    begun = time.monotonic()
    assert "It is done." in shown(kernel, "%ask and now?")
    assert time.monotonic() - begun < 5.0
