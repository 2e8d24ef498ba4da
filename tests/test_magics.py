"""The magics: what `%memory` shows, in a terminal and in a kernel, and `%%private`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError
from kernels import Kernel, eventually

from ipymemory import magics
from ipymemory.commands import table
from ipymemory.commands.pages import Page
from ipymemory.magics import MemoryMagics, without_private


def test_usage_in_the_docstring_is_what_help_says() -> None:
    """It is written out, so that loading need not import every command."""
    documented = [line.strip() for line in (MemoryMagics.memory.__doc__ or "").splitlines()]
    for line in table.overview("%memory ").splitlines():
        assert line in documented


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["%%private\n", "x = 1\n"], ["\n", "x = 1\n"]),
        (["%%private  \n", "x = 1"], ["\n", "x = 1"]),
        (["%%private\n", "%%time\n", "x = 1\n"], ["%%time\n", "x = 1\n"]),
        (["%%private\n"], ["\n"]),
        (["%%private"], ["\n"]),
        (["%%private now\n", "x"], ["%%private now\n", "x"]),
        (["%%privately\n", "x"], ["%%privately\n", "x"]),
        (["x = 1\n", "%%private\n"], ["x = 1\n", "%%private\n"]),
        ([], []),
    ],
)
def test_the_private_line_is_taken_away_once(lines: list[str], expected: list[str]) -> None:
    once = without_private(lines)
    assert once == expected
    assert without_private(once) == once


# In a real kernel.


@pytest.mark.kernel
@pytest.mark.spec("L2")
def test_a_page_is_markdown_with_plain_text_and_returns_nothing(kernel: Kernel) -> None:
    kernel.run("41 + 1")
    ran = kernel.run("%memory status")
    (kind, content), *more = ran.messages
    assert (kind, more) == ("display_data", [])
    assert set(content["data"]) == {"text/markdown", "text/plain"}
    assert "- **Recording** on" in content["data"]["text/markdown"]
    assert "- Recording on" in content["data"]["text/plain"]
    assert ran.reply["status"] == "ok"
    assert kernel.run("_").text == "42\n"


@pytest.mark.kernel
@pytest.mark.spec("L2")
def test_json_is_shown_as_json(kernel: Kernel) -> None:
    ran = kernel.run("%memory status --json")
    fenced = ran.markdown
    assert fenced.startswith("```json\n{") and fenced.endswith("}\n```")
    for text in (ran.text, fenced.removeprefix("```json").removesuffix("```")):
        assert json.loads(text)["recording"] == "on"


def test_a_sentence_beside_json_does_not_stand_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    page = Page("shown", {"star": "a *b* c"}, warnings=("One file was left out.",))
    magics.show(None, page.as_json())
    out, err = capsys.readouterr()
    assert json.loads(out) == page.data
    assert err == "One file was left out.\n"
    magics.show(None, page)
    assert capsys.readouterr().out == "shown\nOne file was left out.\n"


@pytest.mark.kernel
def test_the_notes_are_there_and_shown(kernel: Kernel) -> None:
    kernel.run("total = 812\nprint('total', total)")
    # The worklog is the last section that an update writes, and ends with the time.
    eventually(lambda: kernel.notes().rstrip().endswith("UTC)"), "the notes write themselves")
    assert "812" in kernel.notes()
    assert kernel.run("%memory notes").markdown == kernel.notes()
    kernel.run("mean = total / 7")
    shown = kernel.run("%memory notes --section worklog --now").markdown
    assert shown.startswith("# Worklog\n_")
    assert "mean" in shown


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%memory stauts", "UsageError: There is no %memory stauts. Did you mean %memory status?"),
        ("%memory notes --nwo", "UsageError: --nwo is unknown here; did you mean --now? "
         "The right form is: %memory notes [NOTEBOOK] [--section NAME] [--now] [--json]"),
        ("%memory purge", "UsageError: WHAT is missing. The right form is: %memory purge "
         "this session / older than N days / project [--memories] [--yes]"),
        ("%memory diff nosuchrun", "UsageError: There is no run nosuchrun"),
        ("%%private now\nx = 1", "UsageError: %%private takes no arguments."),
    ],
)  # fmt: skip
def test_a_wrong_call_is_a_usage_error_with_the_right_form(
    kernel: Kernel, line: str, said: str
) -> None:
    ran = kernel.run(line)
    assert ran.text.startswith(said)
    assert "Traceback" not in ran.text
    assert ran.reply["status"] == "error"
    assert ran.reply["ename"] == "UsageError"


@pytest.mark.kernel
def test_help_shows_usage(kernel: Kernel) -> None:
    assert "%memory notes" in kernel.run("%memory help").text
    assert "[--section NAME]" in kernel.run("%memory help notes").text
    pages = kernel.run("%memory?").reply["payload"]
    assert "%memory help COMMAND tells more of one." in pages[0]["data"]["text/plain"]


@pytest.mark.kernel
def test_purge_does_not_wait_for_an_answer_where_nobody_can_be_asked(kernel: Kernel) -> None:
    kernel.run("x = 1")
    ran = kernel.run("%memory purge this session")
    assert "Nobody can be asked here, so nothing was removed; say --yes" in ran.text
    assert kernel.lines()


@pytest.mark.kernel
def test_purge_asks_in_the_frontend(kernel: Kernel) -> None:
    kernel.run("x = 1")
    (folder,) = kernel.sessions
    request = kernel.send("%memory purge this session", allow_stdin=True)
    asked = kernel.client.get_stdin_msg(timeout=20)
    assert "This removes 1 session" in asked["content"]["prompt"]
    kernel.client.input("y")
    assert "Removed: 1 session" in kernel.collect(request).text
    assert not folder.exists()


@pytest.mark.kernel
@pytest.mark.spec("L7")
def test_a_private_cell_runs_like_any_other_and_leaves_no_trace(kernel: Kernel) -> None:
    assert kernel.run("%%private\nhidden = 'xyzzy'\nhidden").text == "'xyzzy'\n"
    assert kernel.run("len(_)").text == "5\n", "its result is in _ as ever"
    ran = kernel.run("%%private\nimport asyncio\nawait asyncio.sleep(0)\n1/0")
    assert ran.reply["ename"] == "ZeroDivisionError"
    assert any("----> 4" in line or "---> 4" in line for line in plain(ran.reply["traceback"]))
    assert "Wall time" in kernel.run("%%private\n%%time\nprint('plugh')").text
    kernel.run("visible = 1")
    kernel.recorded("visible = 1")
    kept = b"".join(each.read_bytes() for each in kernel.home.rglob("*") if each.is_file())
    for secret in (b"xyzzy", b"plugh", b"asyncio"):
        assert secret not in kept


def plain(traceback: list[str]) -> list[str]:
    from ipymemory.excerpts import plain

    return plain("\n".join(traceback)).splitlines()


@pytest.mark.kernel
@pytest.mark.spec("S4")
def test_config_works_in_a_kernel(kernel: Kernel) -> None:
    assert kernel.run("%config SessionNotes.wait_seconds = 0.5").text == ""
    assert kernel.run("%config SessionNotes.wait_seconds").text == "0.5\n"
    said = kernel.run("%config SessionNotes.wait_seconds = -1").text
    assert "SessionNotes.wait_seconds must be a number from 0 to 3600, not -1." in said
    assert kernel.run("%config SessionNotes.wait_seconds").text == "0.5\n"


@pytest.mark.kernel
@pytest.mark.spec("L5")
def test_a_restart_is_said_with_the_title(new_kernel: Callable[..., Kernel]) -> None:
    kernel = new_kernel("bicycles.ipynb")
    kernel.run("%load_ext ipymemory")
    kernel.run("total = 812\nprint('total', total)")
    eventually(lambda: "812" in kernel.notes(), "the notes")
    kernel.restart()
    said = kernel.run("%load_ext ipymemory").text
    assert "This notebook was here before: bicycles.ipynb" in said
    assert "No variable of its last kernel is left; %memory resume brings them back." in said
    assert said.count("\n") == 1
    kernel.run("x = 1")
    kernel.recorded("x = 1")
    assert len(kernel.sessions) == 1
    assert {each["kernel"] for each in kernel.cells()} == {1, 2}


@pytest.mark.kernel
@pytest.mark.spec("L5")
def test_a_cell_that_killed_the_kernel_is_named(
    new_kernel: Callable[..., Kernel], tmp_path: Path
) -> None:
    kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    kernel.run("x = 1")
    kernel.send("import os\nos.kill(os.getpid(), 9)")
    eventually(lambda: not kernel.manager.is_alive(), "the kernel is gone")
    again: Any = new_kernel()
    said = again.run("%load_ext ipymemory").text
    assert "That kernel died while this cell was running: import os…" in said


@pytest.mark.kernel
def test_shutting_down_is_quick(new_kernel: Callable[..., Kernel]) -> None:
    kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    for number in range(20):
        kernel.run(f"x = {number}")
    assert kernel.shutdown() < 2.5, "a kernel that takes longer is killed"


@pytest.mark.terminal
def test_a_terminal_gets_plain_text(tmp_path: Path) -> None:
    import os
    import sys

    import pexpect

    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), "TERM": "dumb"}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "IPython", "--no-banner", "--colors=NoColor", "--simple-prompt",
         "--no-confirm-exit"],
        env=env, cwd=str(tmp_path), encoding="utf-8", timeout=30,
    )  # fmt: skip
    for line, wanted in (
        ("%load_ext ipymemory", "ipymemory: notes by the built-in extractive engine"),
        ("total = 812", r"In \[3\]"),
        ("%memory status", "- Recording on"),
        ("%memory notes --now --section Worklog", "total = 812"),
        ("%memory purge this session", r"Remove it\? \[y/N\]"),
        ("y", "Removed: 1 session"),
    ):
        child.sendline(line)
        child.expect(wanted)
    child.sendline("exit")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_a_usage_error_is_ipythons() -> None:
    assert magics.UsageError is UsageError


@pytest.mark.kernel
@pytest.mark.spec("S9")
def test_a_template_without_a_section_is_said_in_status_and_the_notes_go_on(
    new_kernel: Callable[..., Kernel], tmp_path: Path
) -> None:
    template = tmp_path / "home" / "config" / "session-notes" / "template.md"
    template.parent.mkdir(parents=True)
    template.write_text("only prose\n")
    kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    assert kernel.run("x = 1").text == ""
    eventually(lambda: "x = 1" in kernel.notes(), "the notes")
    shown = kernel.run("%memory status").markdown
    assert shown.count(f"{template} has no section") == 1
    assert template.read_text() == "only prose\n"


@pytest.mark.kernel
@pytest.mark.spec("S4")
def test_a_changed_config_file_is_taken_over_while_the_kernel_runs(
    new_kernel: Callable[..., Kernel], tmp_path: Path
) -> None:
    config = tmp_path / "ipython" / "profile_default" / "ipython_config.py"
    config.parent.mkdir(parents=True)
    config.write_text("c.SessionNotes.wait_seconds = 3600\nc.SessionNotes.rounds = 5\n")
    kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    kernel.run("x = 1")
    config.write_text("c.SessionNotes.wait_seconds = 0\nc.SessionNotes.rounds = 0\n")
    eventually(lambda: kernel.run("y = 1") and "x = 1" in kernel.notes(), "the new setting holds")
    assert kernel.run("%config SessionNotes.rounds").text == "5\n"
    said = "SessionNotes.rounds must be a whole number from 1 to 100, not 0. It is 5 until you mend"
    for command in ("status", "doctor"):
        page = kernel.run(f"%memory {command}").markdown.replace("**", "")
        assert page.count(f"{said} {config}.") == 1
    config.write_text("c.SessionNotes.rounds = (\n")
    for command in ("status", "doctor"):
        page = kernel.run(f"%memory {command}").markdown.replace("**", "")
        assert page.count(f"The config file {config} was left out: SyntaxError: ") == 1
        assert page.count("Mend it; it is read again when it changes.") == 1
        assert said not in page
    config.write_text("c.SessionNotes.rouns = 7\n")
    for command in ("status", "doctor"):
        page = kernel.run(f"%memory {command}").markdown.replace("**", "")
        assert page.count("SessionNotes has no setting rouns; it has ") == 1
        assert page.count(f"Mend {config}.") == 1
    config.write_text("c.SessionNotes.rounds = 7\n")
    assert "Nothing is wrong" in kernel.run("%memory doctor").markdown


@pytest.mark.kernel
@pytest.mark.spec("S4")
def test_a_config_file_that_ipython_could_not_read_is_said_at_load(
    new_kernel: Callable[..., Kernel], tmp_path: Path
) -> None:
    config = tmp_path / "ipython" / "profile_default" / "ipython_config.py"
    config.parent.mkdir(parents=True)
    config.write_text("c.Privacy.outputs = no_such_name\n")
    kernel = new_kernel()
    said = f"The config file {config} was left out: NameError: name 'no_such_name' is not defined."
    assert said in kernel.run("%load_ext ipymemory").text
    for command in ("status", "doctor"):
        page = kernel.run(f"%memory {command}").markdown.replace("**", "")
        assert page.count(said) == 1


@pytest.mark.kernel
@pytest.mark.spec("L13")
def test_the_hook_loads_in_a_kernel_before_its_first_cell(
    new_kernel: Callable[..., Kernel], tmp_path: Path
) -> None:
    from ipymemory import kernel_hook

    kernel_hook.install()
    assert kernel_hook.path().is_relative_to(tmp_path)
    kernel = new_kernel()
    assert kernel.run("x = 1").messages == []
    kernel.recorded("x = 1")
    assert "already loaded" in kernel.run("%load_ext ipymemory").text
