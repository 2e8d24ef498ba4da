"""The tools that read: what they answer, how much, and what they leave out."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipymemory import finding, reading
from ipymemory.config import Settings
from ipymemory.errors import ToolError
from ipymemory.fence import READING, Fence
from ipymemory.finding import reading_tools
from ipymemory.history import History
from ipymemory.permissions import Deny
from ipymemory.turns import ToolCall

KEY = "sk-ant-api03-" + "Ab3" * 30
TABLE = "      name  age\n0  Zebulon   41\n1   Mirabel   52\n"


class Tools:
    """The tools behind their fence; a refusal is a `ToolError` too."""

    def __init__(self, root: Path, level: str = "no-tables") -> None:
        self.root = root
        self.stopped: Callable[[], bool] = lambda: False
        self.fence = Fence(root, None, Settings().privacy.closed)
        self.tools = reading_tools(self.fence, level, lambda: self.stopped())
        self.run = History(root.parent / "history").begin("ask", "scripted", "asked", (), "s")

    def __call__(self, tool: str, path: Any = None, **given: Any) -> str:
        if path is not None:
            given["path"] = str(path)
        verdict = self.fence.check(ToolCall("1", tool, given))
        if isinstance(verdict, Deny):
            raise ToolError(verdict.message)
        return self.tools[tool].run(verdict.call, self.run)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "project"
    for name, text in {
        "load.py": "import csv\n\ndef load_csv(path):\n    return list(csv.reader(open(path)))\n",
        "src/clean.py": "from load import load_csv\nROWS = load_csv('a')\n",
        "src/deep/model.py": "class Model: ...\n",
        "notes.md": "# Notes\nload it first\n",
        "config.yaml": f"name: harbour\napi_key: {KEY}\n",
        "data.csv": "name,age\nZebulon,41\n",
        ".env": f"KEY={KEY}\n",
        "node_modules/x/load.js": "load_csv\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def tools(root: Path) -> Tools:
    return Tools(root)


def test_a_file_is_read_with_the_numbers_of_its_lines(tools: Tools) -> None:
    assert tools("Read", "load.py", limit=2) == (
        "load.py, lines 1 to 2 of 4:\n1\timport csv\n2\t\n[2 more; offset 3 goes on.]"
    )
    assert tools("Read", "load.py", offset=4) == (
        "load.py, lines 4 to 4 of 4:\n4\t    return list(csv.reader(open(path)))"
    )
    with pytest.raises(ToolError, match="has 4 lines"):
        tools("Read", "load.py", offset=5)


def test_an_answer_is_bounded_whatever_the_file_is(tools: Tools, root: Path) -> None:
    (root / "long.txt").write_text("word " * 200_000)
    (root / "many.txt").write_text("a line of some length\n" * 50_000)
    assert len(tools("Read", "long.txt")) < 2200
    told = tools("Read", "many.txt")
    assert (
        len(told) < reading.MOST_CHARS + 200 and "lines 1 to 1" in told and "more; offset" in told
    )
    assert len(tools("Grep", pattern="line|word")) < reading.MOST_CHARS + 2000
    (root / "huge.txt").write_bytes(b"x" * (reading.MOST_BYTES + 1))
    with pytest.raises(ToolError, match="larger than 4,096 KB"):
        tools("Read", "huge.txt")


def test_text_of_every_kind_is_read_and_nothing_else(tools: Tools, root: Path) -> None:
    (root / "windows.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    assert tools("Read", "windows.txt").endswith(":\n1\ta\n2\tb")
    (root / "empty.txt").write_bytes(b"")
    assert "lines 1 to 1 of 1" in tools("Read", "empty.txt")
    for name, data in {
        "a.bin": b"\xff\x00",
        "b.txt": b"a\0b",
        "c.txt": "a".encode("utf-16"),
    }.items():
        (root / name).write_bytes(data)
        with pytest.raises(ToolError, match=r"no (UTF-8 )?text"):
            tools("Read", name)


def test_grep_finds_lines_and_says_where(tools: Tools) -> None:
    assert tools("Grep", pattern=r"\bload_csv\(").splitlines() == [
        "load.py:3: def load_csv(path):",
        "src/clean.py:2: ROWS = load_csv('a')",
    ]
    assert tools("Grep", "src", pattern="LOAD", ignore_case=True).count("\n") == 1
    assert tools("Grep", pattern="load", glob="*.md") == "notes.md:2: load it first"
    assert tools("Grep", "node_modules", pattern="load").startswith("node_modules/x/load.js:1:")
    assert tools("Grep", "load.py", pattern="csv").count("\n") == 2
    assert tools("Grep", pattern="no such thing") == "No line matches."


def test_grep_says_what_it_passed_over_and_when_there_is_more(tools: Tools, root: Path) -> None:
    (root / "a.bin").write_bytes(b"\xff\xfe load")
    assert "[1 files were passed over" in tools("Grep", pattern="load")
    (root / "many.txt").write_text("needle\n" * 500)
    told = tools("Grep", pattern="needle").splitlines()
    assert len(told) == finding.MOST_MATCHES + 2 and "More than 200" in told[-2]
    (root / "wide.txt").write_text("x" * 5000 + "pin" + "x" * 5000)
    (found,) = (each for each in tools("Grep", pattern="pin").splitlines() if "wide" in each)
    assert "pin" in found and len(found) < 350


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", ["load.py", "src/clean.py", "src/deep/model.py"]),
        ("src/*.py", ["src/clean.py"]),
        ("src/**/*.py", ["src/clean.py", "src/deep/model.py"]),
        ("**/model.py", ["src/deep/model.py"]),
        ("**", ["config.yaml", "load.py", "node_modules", "notes.md", "src/clean.py"]),
        ("s*/d*/*", ["src/deep/model.py"]),
        ("*.csv", []),
        (".env*", []),
    ],
)
def test_glob_names_files(tools: Tools, pattern: str, names: list[str]) -> None:
    told = tools("Glob", pattern=pattern)
    if pattern == "**":
        assert ".env" not in told and "data.csv" not in told and "node_modules" not in told
        names.remove("node_modules")
        assert set(names) < set(told.splitlines())
    else:
        assert told.splitlines() == (names or ["Nothing fits."])


def test_find_and_list_and_wc_tell_sizes(tools: Tools, root: Path) -> None:
    os.utime(root / "notes.md", (0, 0))
    (root / "link.py").symlink_to("load.py")
    told = tools("List")
    assert "src/\n" in told and "notes.md  22 bytes  1970-01-01 00:00 UTC" in told
    assert "link.py (a link, not followed)" in told and "2 more that no tool may read" in told
    assert "data" not in told and ".env" not in told
    assert "notes.md" not in tools("Find", days=1) and "load.py" in tools("Find", days=1)
    assert tools("Find", kind="folder", name="d*") == "src/deep/"
    assert tools("Find", larger=100).split()[0] == "config.yaml"
    assert tools("Find", name="*.py", larger=10**9) == "Nothing fits."
    assert tools("Wc", "notes.md") == "notes.md: 2 lines, 5 words, 22 characters."


@pytest.mark.spec("L7")
def test_secrets_are_masked_before_anything_is_cut_or_searched(tools: Tools, root: Path) -> None:
    told = tools("Read", "config.yaml")
    assert "harbour" in told and "[masked:" in told and KEY not in told
    for pattern in ("sk-ant", "sk-ant-api03-A", "Ab3", r"api_key: s", "Ab3Ab3$"):
        assert "config.yaml" not in tools("Grep", pattern=pattern), pattern
    # A range must not show the half of a secret that stands on several lines.
    block = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7v\n" * 20
    (root / "deploy.txt").write_text(f"a\n{block}-----END RSA PRIVATE KEY-----\nz\n")
    for offset in range(1, 5):
        try:
            assert "MIIEp" not in tools("Read", "deploy.txt", offset=offset)
        except ToolError as error:
            assert "has" in str(error)
    assert "deploy" not in tools("Grep", pattern="MIIE")
    (root / f"{KEY}.md").write_text("x")
    assert KEY not in tools("Glob", pattern="*.md") + tools("List") + tools("Grep", pattern="^x$")


def notebook(*cells: dict[str, Any]) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)})


def cell(source: str, output: str = "") -> dict[str, Any]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    return {"cell_type": "code", "source": source, "execution_count": 3, "outputs": outputs}


@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", ["a.ipynb", "copy.txt", "a.json", "A.IPYNB"])
def test_a_notebook_is_read_as_its_cells_with_what_may_be_sent(root: Path, name: str) -> None:
    image = {"output_type": "display_data", "data": {"image/png": "iVBORw0" * 100}}
    (root / name).write_text(
        notebook(
            {"cell_type": "markdown", "source": "# Ports"},
            cell("print(frame)", TABLE),
            cell("%%private\nzebra = 1", "zebra"),
            {**cell("plot()"), "outputs": [image]},
        )
    )
    told = Tools(root)("Read", name)
    assert "# Ports" in told and "code [3]" in told and "print(frame)" in told
    assert "Zebulon" not in told and "zebra" not in told and "iVBOR" not in told
    assert "Zebulon" not in Tools(root)("Grep", pattern="Zebulon")
    assert "Zebulon" in Tools(root, "all")("Grep", pattern="Zebulon")
    assert "name" not in Tools(root, "none")("Read", name).replace(name, "")


def test_what_is_cut_of_a_notebook_is_told_and_how_to_read_on(root: Path) -> None:
    long = "".join(f"step_{n} = {n}\n" for n in range(5000))
    many = [{"output_type": "stream", "name": "stdout", "text": f"line {n}"} for n in range(99)]
    (root / "long.ipynb").write_text(
        notebook(cell(long), {**cell("go()"), "outputs": many}, cell(f"wide = '{'ab ' * 2000}'"))
    )
    tools, told, offset = Tools(root, "all"), "", 1
    while True:
        answer = tools("Read", "long.ipynb", offset=offset)
        told += answer
        more = re.search(r"more; offset (\d+) goes on", answer)
        if more is None:
            break
        offset = int(more[1])
    assert all(f"\tstep_{n} = {n}\n" in told for n in range(5000))
    assert "[… 40 more outputs left out …]" in told and "line 98" in told
    assert "more characters]" in told and "Grep shows the part of one that matches" in told
    assert "Lines are cut" not in tools("Read", "long.ipynb", limit=10)


def test_an_answer_that_masking_makes_too_long_says_so(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "mask", lambda text: text + "x" * 2 * reading.MOST_CHARS)
    assert tools("Read", "load.py").endswith("more characters]")


@pytest.mark.parametrize(
    ("tool", "given", "why"),
    [
        ("Read", {"path": "load.py", "offset": "3"}, "offset as integer"),
        ("Read", {"path": "load.py", "offset": 0}, "at least 1"),
        ("Read", {"path": "load.py", "limit": True}, "limit as integer"),
        ("Read", {"path": "load.py", "nobody_knows": [None]}, "no nobody_knows"),
        ("Read", {"path": "missing.py"}, "no file missing.py"),
        ("Read", {"path": "src"}, "no regular file|cannot be read"),
        ("List", {"path": "load.py"}, "no folder"),
        ("Grep", {}, "needs pattern"),
        ("Grep", {"pattern": 7}, "pattern as string"),
        ("Grep", {"pattern": "(a+)+b"}, "cannot be repeated"),
        ("Glob", {"pattern": "../*"}, "begins below path"),
        ("Glob", {"pattern": "/etc/*"}, "begins below path"),
        ("Glob", {"pattern": "*" * 600}, "longer than 500"),
        ("Find", {"kind": "socket"}, "one of file, folder"),
        ("Find", {"days": -1}, "at least 0"),
    ],
)
@pytest.mark.spec("E6")
def test_a_wrong_call_is_answered_with_why_and_with_what_is_allowed(
    tools: Tools, tool: str, given: dict[str, Any], why: str
) -> None:
    with pytest.raises(ToolError, match=why) as raised:
        tools(tool, **given)
    assert "Allowed here: Read, Grep" in str(raised.value) and str(tools.root) in str(raised.value)


def test_a_search_ends_when_it_is_told_to_and_when_its_time_is_up(
    tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        (root / f"f{number}.txt").write_text("needle in a line\n" * 2000)
    asked = iter(range(10**6))
    tools.stopped = lambda: next(asked) > 20
    begun = time.monotonic()
    assert "Not all was looked at" in tools("Grep", pattern=r"n\w+x")
    assert time.monotonic() - begun < 2
    (root / "one").mkdir()
    (root / "one" / "large.txt").write_text("needle in a line\n" * 100_000)
    asked = iter(range(10**6))
    tools.stopped = lambda: next(asked) > 5
    assert "Not all was looked at" in tools("Grep", "one", pattern=r"n\w+x|needle$")
    tools.stopped = lambda: False
    monkeypatch.setattr(reading, "SECONDS", 0.1)
    assert "the time for one call was up" in tools("Grep", pattern=r"n\w+x")
    assert "the time for one call was up" in tools("Find") or "f299.txt" in tools("Find")


def test_every_tool_of_the_fence_is_there_and_only_looks(tools: Tools) -> None:
    assert set(tools.tools) == set(READING)
    assert all(each.spec.reads for each in tools.tools.values())
