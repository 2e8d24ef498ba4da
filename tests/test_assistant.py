"""`%%ask` in a real kernel: how soon it shows, how soon it stops, and what is left of it."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, Ran, eventually, texts

pytestmark = pytest.mark.kernel

FAKE = """
import ipymemory.starting as starting
command = starting.worker_command()
code = '''
import asyncio, json, time
from pathlib import Path
from ipymemory.session import MemorySession
async def ask(self, question, ask_id, last, hear, cancelled):
    said = Path.cwd() / "said.jsonl"
    def say(**piece):
        with said.open("a") as file:
            file.write(json.dumps([time.time(), piece]) + chr(10))
        hear(piece)
    self.observe()
{script}
    return dict(status="cancelled" if cancelled() else "done", text="", chars=1, calls=0)
MemorySession.ask = ask
'''
*start, boot, told = command
command = [*start, boot.removesuffix("main()\\n") + code + "\\nmain()\\n", told]
starting.worker_command = lambda: command
"""
"""A worker whose assistant follows a script in place of a model."""


def load(kernel: Kernel, *script: str) -> None:
    """Load the extension with an assistant that follows `script`."""
    body = "\n".join(f"    {line}" for line in script)
    assert kernel.run(FAKE.replace("{script}", body)).reply["status"] == "ok"
    assert kernel.run("%load_ext ipymemory").reply["status"] == "ok"
    # The worker runs before anything is measured.
    kernel.run("x = 1")
    kernel.run("%memory status")


def said(kernel: Kernel) -> list[Any]:
    """Return when the assistant said what."""
    text = (kernel.sessions[-1] / "said.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def follow(kernel: Kernel, request: str, first: str = "") -> tuple[Ran, list[float]]:
    """Return what came of a request, and when each change of its display came.

    With `first` the kernel is interrupted once that is shown.
    """
    ran, times = Ran({}), []
    while True:
        message = kernel.client.get_iopub_msg(timeout=30)
        if message["parent_header"].get("msg_id") != request:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "status" and content["execution_state"] == "idle":
            ran.reply = kernel.client.get_shell_msg(timeout=30)["content"]
            return ran, [*times, time.time()]
        if kind in ("display_data", "update_display_data", "stream", "error", "execute_result"):
            ran.messages.append((kind, content))
            times.append(time.time())
            if first and first in str(content):
                kernel.interrupt()
                times.append(time.time())
                first = ""


def asks(kernel: Kernel) -> list[dict[str, Any]]:
    """Return the lines of asks on record."""
    return [each for each in kernel.lines() if each["type"] in ("ask", "ask_end")]


WORDS = (
    "for n in range(100):",
    "    say(text=str(n) + ' ')",
    "    await asyncio.sleep(0.01)",
)


def test_the_first_words_show_within_a_tenth_of_a_second(new_kernel: Any) -> None:
    kernel = new_kernel()
    load(kernel, *WORDS)
    waits = []
    for _ in range(5):
        (kernel.sessions[-1] / "said.jsonl").unlink(missing_ok=True)
        ran, times = follow(kernel, kernel.send("%%ask\nwhat is x?"))
        waits.append(times[0] - said(kernel)[0][0])
    assert ran.reply["status"] == "ok"
    assert sorted(waits)[2] < 0.1, waits
    # One display, changed in place, at most ten times a second, and whole at the end.
    (first, shown), *later = ran.messages
    assert first == "display_data"
    assert {kind for kind, _ in later} == {"update_display_data"}
    assert len({each["transient"]["display_id"] for _, each in ran.messages}) == 1
    assert len(ran.messages) <= 10 * (times[-1] - times[0]) + 3
    assert shown["data"]["text/plain"].startswith("0")
    assert ran.messages[-1][1]["data"]["text/markdown"].endswith("98 99")
    assert ran.messages[-1][1]["data"]["text/plain"].endswith("98 99")


@pytest.mark.spec("L11")
def test_the_stop_button_ends_it_within_200_ms_and_keeps_what_came(new_kernel: Any) -> None:
    kernel = new_kernel()
    load(
        kernel,
        "say(text='Half of it')",
        "while not cancelled(): await asyncio.sleep(0.01)",
        "(Path.cwd() / 'stopped').touch()",
    )
    waits = []
    for _ in range(5):
        ran, times = follow(kernel, kernel.send("%%ask\nwhat is x?"), "Half of it")
        interrupted, *_, idle = times[1:]
        waits.append(idle - interrupted)
        (shown, content), (error, raised) = ran.messages[-2:]
        assert content["data"]["text/markdown"] == "Half of it", shown
        assert (error, raised["traceback"]) == ("error", ["Stopped."])
        assert ran.reply["ename"] == raised["ename"] == "KeyboardInterrupt"
        eventually((kernel.sessions[-1] / "stopped").exists, "the worker stopped too", 5)
        (kernel.sessions[-1] / "stopped").unlink()
    assert sorted(waits)[2] < 0.2, waits
    assert [each["status"] for each in asks(kernel)[1::2]] == ["interrupted"] * 5
    # The kernel goes on as if nothing had been.
    assert kernel.run("x + 1").text == "2\n"


def test_the_cells_behind_an_ask_that_was_stopped_do_not_run(new_kernel: Any) -> None:
    kernel = new_kernel()
    load(kernel, "say(text='Half of it')", "while not cancelled(): await asyncio.sleep(0.01)")
    request = kernel.send("%%ask\nwhat is x?", stop_on_error=True)
    behind = [kernel.send(f"x = {n}", stop_on_error=True) for n in (2, 3)]
    ran, _ = follow(kernel, request, "Half of it")
    assert ran.reply["status"] == "error"
    replies = [kernel.client.get_shell_msg(timeout=30) for _ in behind]
    assert [each["content"]["status"] for each in replies] == ["aborted"] * 2
    assert kernel.run("x").text == "1\n"


@pytest.mark.spec("L2")
@pytest.mark.parametrize("cell", ["%ask why?", "import asyncio\nawait asyncio.sleep(0)\n%ask why?"])
def test_stopping_again_and_again_loses_nothing_and_breaks_nothing(
    new_kernel: Any, cell: str
) -> None:
    kernel = new_kernel()
    load(
        kernel,
        "say(text='Half of it')",
        "while not cancelled(): await asyncio.sleep(0.01)",
        "(Path.cwd() / 'stopped').touch()",
    )
    handler = kernel.run("import signal; signal.getsignal(signal.SIGINT)").text
    for n in range(4):
        request = kernel.send(cell)
        while "Half of it" not in str(kernel.client.get_iopub_msg(timeout=30)["content"]):
            pass
        # As a key does that is held down.
        for _ in range(2 + n):
            os.kill(kernel.pid, signal.SIGINT)
            time.sleep(0.01 * n)
        ran = kernel.collect(request)
        assert ran.reply["ename"] == "KeyboardInterrupt"
        assert asks(kernel)[-1]["status"] == "interrupted", asks(kernel)
        eventually((kernel.sessions[-1] / "stopped").exists, "the worker stopped too", 5)
        (kernel.sessions[-1] / "stopped").unlink()
        time.sleep(0.2)
    assert kernel.run("import signal; signal.getsignal(signal.SIGINT)").text == handler
    assert kernel.run("x + 1").text == "2\n"
    assert texts(kernel.recorded("x + 1")) == "2"


@pytest.mark.spec("L2")
def test_an_ask_is_on_record_masked_before_it_is_sent_and_is_no_cell(new_kernel: Any) -> None:
    kernel = new_kernel()
    load(
        kernel,
        "lines = self.folder.transcript.read_text().splitlines()",
        "kinds = [json.loads(each)['type'] for each in lines]",
        "say(text=' '.join((kinds[-1], question, str(last), str(ask_id in lines[-1]))))",
    )
    secret = "sk-ant-" + "api03-" + "k" * 24
    ran = kernel.run(f"%%ask --last 2\nis {secret} a key of mine?", cell_id=None)
    shown = ran.messages[-1][1]["data"]["text/markdown"]
    assert shown.startswith("ask is ")
    assert shown.endswith("a key of mine? 2 True")
    assert secret not in shown
    begun, end = asks(kernel)
    assert secret not in json.dumps(kernel.lines())
    assert begun["question"].endswith("a key of mine?")
    assert (begun["id"], begun["kernel"], end["status"]) == (end["id"], 1, "ok")
    assert not [each for each in kernel.cells() if "%%ask" in each.get("source", "")]
    kernel.run("%ask what's a line {x} $x?")
    assert asks(kernel)[-2]["question"] == "what's a line {x} $x?"
    # In a cell of other things too, what it shows is none of that cell's outputs.
    mixed = "print('before')\n%ask why?\n%memory notes\nprint('after')"
    kernel.run(mixed)
    assert texts(kernel.recorded(mixed)) == "before\nafter\n"
    assert asks(kernel)[-1]["status"] == "ok"
    # It returns nothing.
    kernel.run("41 + 1")
    kernel.run("%ask why")
    assert kernel.run("_").text == "42\n"


@pytest.mark.spec("L2")
def test_whatever_goes_wrong_is_said_in_the_cell_that_asked_and_nowhere_else(
    new_kernel: Any,
) -> None:
    kernel = new_kernel()
    load(kernel, "say(text='Half')", "import os; os._exit(9)")
    ran = kernel.run("%ask why")
    assert ran.reply["status"] == "ok"
    assert "The worker ended before it answered" in ran.messages[-1][1]["data"]["text/markdown"]
    assert asks(kernel)[-1]["status"] == "error"
    assert kernel.run("x").text == "1\n"
    ran = kernel.run("%ask")
    assert ran.reply["ename"] == "UsageError"
    kernel.run("%memory pause")
    ran = kernel.run("%ask why")
    assert "resume-recording" in ran.reply["evalue"]


def test_it_can_be_the_first_thing_in_a_notebook(kernel: Kernel) -> None:
    ran = kernel.run("%ask what is this?")
    assert ran.reply["status"] == "ok"
    # Without a model it says how to get one.
    shown = ran.messages[-1][1]["data"]["text/markdown"]
    assert "localhost:11434" in shown
    assert shown.count("`%memory engine anthropic`") == 2
    assert [each["type"] for each in asks(kernel)] == ["ask", "ask_end"]
    assert asks(kernel)[0]["question"] == "what is this?"


def test_a_reset_is_on_record(kernel: Kernel) -> None:
    kernel.run("x = 1")
    assert "begins anew" in kernel.run("%memory ask-reset").text
    assert [each["name"] for each in kernel.lines() if each["type"] == "event"][-1] == "ask_reset"


def test_loading_it_imports_nothing_of_the_assistants(kernel: Kernel) -> None:
    names = "('ipymemory.asking', 'ipymemory.streamed', 'ipymemory.neutral', 'rich', 'anthropic')"
    ran = kernel.run(f"import sys; print([each for each in {names} if each in sys.modules])")
    assert ran.text == "[]\n"


def test_the_home_holds_nothing_of_a_wrong_call(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run("%ask")
    assert not list((tmp_path / "home").glob("projects/*/sessions/*/transcript.jsonl"))
