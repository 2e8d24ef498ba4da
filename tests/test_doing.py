"""The one line about an agent: from its last call, from its own words, and what may be saved."""

from __future__ import annotations

from typing import Any

import pytest

from ipymemory.agent_summary import PREVIOUS, PROMPT
from ipymemory.doing import LONGEST, Doing, of_call, said
from ipymemory.events import Event
from ipymemory.turns import ToolCall

TOLD = PROMPT.format(previous=PREVIOUS.format(line="Reading clean.py for dates"))


def line(tool: str, job: str = "ask", /, **given: Any) -> tuple[str, str]:
    made = of_call(ToolCall("1", tool, given), job)
    return made.text, made.kept


@pytest.mark.spec("A1")
@pytest.mark.parametrize(
    ("call", "text", "kept"),
    [
        (("Read", {"path": "/work/src/clean.py"}), "Reading clean.py", "Reading clean.py"),
        (("Read", {"path": r"C:\work\clean.py"}), "Reading clean.py", "Reading clean.py"),
        (("Edit", {"path": "notes.md"}), "Editing notes.md", "Editing notes.md"),
        (("List", {}), "Listing a folder", "Listing a folder"),
        (("Wc", {"path": "a/b/"}), "Counting b", "Counting b"),
        (("Grep", {"pattern": "load_csv"}), "Searching files for load_csv", "Searching files"),
        (
            ("Grep", {"pattern": "x", "path": "src/a.py"}),
            "Searching a.py for x",
            "Searching a.py",
        ),
        (("Find", {"pattern": "*.md"}), "Looking for *.md", "Looking for files"),
        (
            ("Git", {"command": "log --since=x"}),
            "Asking git for its log",
            "Asking git for its log",
        ),
        (("Remember", {"fact": "Tea at 5"}), "Keeping a memory", "Keeping a memory"),
        (("Forget", {"name": "tea"}), "Forgetting tea", "Forgetting a memory"),
        (("Weird`\n*Tool*", {}), "Using WeirdTool", "Using WeirdTool"),
    ],
)
def test_a_call_says_what_is_done(call: tuple[str, Any], text: str, kept: str) -> None:
    assert line(call[0], **call[1]) == (text, kept)


@pytest.mark.spec("A1", "L12")
def test_what_may_be_saved_names_no_memory_and_no_pattern() -> None:
    for job, path in (("ask", "/home/p/memory/boss-hates-tea.md"), ("dream", "boss.md")):
        for name in ("Read", "Grep", "Edit", "Glob", "Merge", "Rewrite", "Remove"):
            text, kept = line(name, job, path=path, pattern="boss", name="boss", keep="boss")
            assert "boss" not in kept, (name, job)
            assert "boss" in text


@pytest.mark.spec("A1", "L7")
def test_a_call_is_shown_masked_bounded_and_in_one_line() -> None:
    secret = "sk-ant-" + "api03-" + "k" * 24
    for given in ({"path": f"a/{secret}"}, {"pattern": secret}, {"pattern": "x\ny\x1b[2J" * 99}):
        for shown in line("Grep", **given):
            assert secret not in shown and len(shown) <= LONGEST
            assert "\n" not in shown and "\x1b" not in shown
    assert of_call(ToolCall("1", "Read", None), "ask").text == "Reading a file"  # type: ignore[arg-type]
    assert line("Read", path=["a"], pattern={"b": 1})[0].startswith("Reading")


@pytest.mark.spec("A1")
@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("Searching transcripts for Vienna", "Searching transcripts for Vienna"),
        ("  reading __init__.py first.\n", "Reading __init__.py first"),
        ('"Comparing load_csv() and read_table()"', "Comparing load_csv() and read_table()"),
        ("Merging exports.md, shop.md", "Merging exports.md, shop.md"),
    ],
)
def test_good_words_are_shown(answer: str, shown: str) -> None:
    assert said(answer, TOLD, ()) == shown


@pytest.mark.spec("A1")
@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n\n",
        "Reading clean.py",
        "Reading the file clean.py for dates",
        "word " * 20,
        "Reading " + "x" * 200 + " for dates",
        "Reading a.py\nand b.py",
        "Reading a.py\tand b.py",
        "I read the file",
        "Read the file again",
        "Done with all files",
        "King of all files",
        "Reading **clean.py** for dates",
        "Reading `clean.py` for dates",
        "Reading _clean_ for dates",
        "Reading <b>clean</b> for dates",
        "Reading [clean](x) for dates",
        "Reading clean.py for $x$",
        "Reading \x1b[31mclean.py for dates",
        "Reading \u202eclean.py for dates",
        "Reading https://evil.example for dates",
        "Reading www.evil.example for dates",
        "Trying hunter2 password=hunter2-and-more now",
        "Using sk-ant-" + "api03-" + "k" * 24 + " for login",
        "Reading [masked: github token] now",
        "Reading parse() in loader.py",
        "Saying what you did since",
        "Writing a present participle",
        "Naming the file or function",
        "reading Clean.py for dates",
        "Reading clean.py, for dates!",
    ],
)
def test_anything_else_is_dropped(answer: str) -> None:
    assert said(answer, TOLD, ("Reading clean.py for dates",)) == ""


@pytest.mark.spec("A1", "L12")
def test_the_page_of_a_session_is_told_what_may_be_kept_until_the_agent_ends() -> None:
    lines = Doing()
    told = {"text": "Reading boss.md now", "kept": "Reading a file", "by": "model"}
    lines(Event("doing", "ask", "r", told))
    lines(Event("doing", "dream", "s", {}))
    assert lines.as_dict() == {"ask": "Reading a file"}
    lines(Event("call", "ask", "r"))
    lines(Event("finished", "dream", "s"))
    assert lines.as_dict() == {"ask": "Reading a file"}
    lines(Event("failed", "ask", "r"))
    assert lines.as_dict() == {}
