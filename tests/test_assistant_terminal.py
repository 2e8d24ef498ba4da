"""`%ask` in a real terminal IPython on a pseudo-terminal: streamed, stopped by Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import ROOT, eventually
from test_assistant import FAKE

pytestmark = pytest.mark.terminal

SCRIPT = """
    say(text="# Head\\n\\nHalf of **it**")
    while not cancelled() and "stop" in question: await asyncio.sleep(0.01)
    if not cancelled(): hear(dict(call="Read", about="a.py")); say(text="the end")
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Any]:
    import pexpect  # there is none on Windows, and no pseudo-terminal

    fake = tmp_path / "fake.py"
    fake.write_text(FAKE.replace("{script}", SCRIPT.replace("\\", "\\\\\\\\")))
    child = pexpect.spawn(
        sys.executable,
        ["-m", "IPython", "--no-banner", "--simple-prompt", "--colors=NoColor"],
        env={
            **os.environ,
            "IPYTHONDIR": str(tmp_path / "ipython"),
            "IPYMEMORY_HOME": str(tmp_path / "home"),
            "PYTHONPATH": str(ROOT),
            "TERM": "xterm-256color",
        },
        cwd=str(tmp_path),
        encoding="utf-8",
        dimensions=(40, 100),
        timeout=30,
    )
    child.expect_exact("In [1]: ")
    child.sendline("exec(open('fake.py').read())")
    child.expect_exact("In [2]: ")
    child.sendline("%load_ext ipymemory")
    child.expect_exact("In [3]: ")
    child.sendline("x = 1")
    child.expect_exact("In [4]: ")
    yield child
    child.close(force=True)


def seen(text: str) -> str:
    """Return what stands on the screen after `text`, without colours and moves."""
    return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text).replace("\r", "")


def test_an_answer_is_there_when_the_prompt_comes_back(terminal: Any, tmp_path: Path) -> None:
    terminal.sendline("%ask what's x?")
    terminal.expect_exact("In [5]: ")
    text = seen(terminal.before)
    assert "Half of it" in text
    assert "Read a.py" in text
    assert "the end" in text.split("Read a.py")[-1]
    assert "Out[" not in text


@pytest.mark.spec("L11")
def test_control_c_gives_the_prompt_back_within_200_ms_and_keeps_what_came(
    terminal: Any, tmp_path: Path
) -> None:
    waits = []
    for n in range(5, 8):
        terminal.sendline("%ask stop?")
        terminal.expect("Half of.*it")
        time.sleep(0.05)
        begun = time.monotonic()
        terminal.sendintr()
        terminal.expect_exact(f"In [{n}]: ")
        waits.append(time.monotonic() - begun)
        text = seen(terminal.before)
        assert "Stopped." in text
        assert "Half of it" in text
        assert "Traceback" not in text
        assert "KeyboardInterrupt" not in text
        assert terminal.before.rindex("\x1b[?25h") >= 0, "the cursor is shown again"
    assert sorted(waits)[1] < 0.2, waits
    (path,) = (tmp_path / "home").glob("projects/*/sessions/*/transcript.jsonl")
    ends = [json.loads(each) for each in path.read_text().splitlines() if '"ask_end"' in each]
    assert [each["status"] for each in ends] == ["interrupted"] * 3
    eventually(lambda: terminal.isalive(), "it lives on")


def test_control_c_again_and_again_leaves_the_terminal_as_it_was(
    terminal: Any, tmp_path: Path
) -> None:
    for n in range(5, 9):
        terminal.sendline("%ask stop?")
        terminal.expect("Half of.*it")
        for _ in range(6):
            terminal.sendintr()
            time.sleep(0.002 * n)
        # IPython takes those that come when the answer is over: the last one clears its line.
        time.sleep(0.5)
        terminal.sendline(f"print({n} * 1000)")
        terminal.expect_exact(f"{n}000\r\n")
        text = seen(terminal.before)
        assert "Stopped." in text
        assert "ipymemory" not in text, "no traceback of ours"
    (path,) = (tmp_path / "home").glob("projects/*/sessions/*/transcript.jsonl")
    lines = [json.loads(each) for each in path.read_text().splitlines()]
    ends = [each["status"] for each in lines if each["type"] == "ask_end"]
    assert ends == ["interrupted"] * 4
    terminal.sendline("import signal; print(signal.getsignal(2) is signal.default_int_handler)")
    terminal.expect_exact("True\r\n")
