"""Which cells are private, whatever stands above the mark, and what a text quotes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipymemory import notebooks
from ipymemory.private import QUOTED, Quotes, is_ours, is_private

PRIVATE = (
    "%%private\nx = 1",
    "%%private",
    "\n\n%%private\nx = 1",
    "  %%private\nx = 1",
    "# a note\n%%private\nx = 1",
    "%%time\n%%private\nx = 1",
    "%%capture out\n%%private\nx = 1",
    "# ipymemory: off\nx = 1",
    "#ipymemory:off",
    "## ipymemory: off\nx = 1",
    "# IPYMEMORY : OFF\nx = 1",
    "# hello\n\n# ipymemory: off\nx = 1",
    "\ufeff# ipymemory: off\nx = 1",
)
RECORDED = (
    "",
    "x = 1",
    "x = 1\n%%private",
    "x = 1  # ipymemory: off",
    "print('%%private')",
    "# ipymemory: on\nx = 1",
    "# ipymemory is loaded\nx = 1",
    "%%privately\nx = 1",
    "'''\n%%private\n'''",
)


@pytest.mark.spec("L7")
@pytest.mark.parametrize("source", PRIVATE)
def test_a_private_cell_is_known(source: str) -> None:
    assert is_private(source)


@pytest.mark.parametrize("source", RECORDED)
def test_any_other_is_recorded(source: str) -> None:
    assert not is_private(source)


@pytest.mark.spec("L7")
def test_what_is_quoted_is_left_out() -> None:
    quotes = Quotes()
    quotes.add_all(["%%private\nsalary = read(4711)\nx", "open = 1"])
    text = (
        "----> 2 salary = read(4711)\n      3 open = 1\n"
        "    salary = read(4711)\nsalary = read(4712)"
    )
    assert quotes.without(text).split("\n") == [
        f"----> 2 {QUOTED}",
        "      3 open = 1",
        f"    {QUOTED}",
        "salary = read(4712)",
    ]


@pytest.mark.spec("L7")
def test_private_cells_of_a_notebook_file_are_not_read(tmp_path: Path) -> None:
    def code(source: str, outputs: list[object]) -> dict[str, object]:
        return {
            "cell_type": "code", "source": source, "outputs": outputs, "execution_count": 1,
            "metadata": {},
        }  # fmt: skip

    def printed(text: str) -> dict[str, object]:
        return {"output_type": "stream", "name": "stdout", "text": text}

    failed = {
        "output_type": "error", "ename": "ValueError", "evalue": "no",
        "traceback": ["Cell In[1], line 2", "----> 2 launch = 'codes 0000'", "ValueError: no"],
    }  # fmt: skip
    path = tmp_path / "n.ipynb"
    cells = [
        code("# ipymemory: off\nlaunch = 'codes 0000'\nprint(launch)", [printed("codes 0000")]),
        code("%%private\nsalary = 99000\nsalary", [printed("99000")]),
        code("go()", [failed]),
        code("%memory notes", [printed("# Session Title of ours")]),
    ]
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    )
    told = str(notebooks.read(path).entries)
    assert "go()" in told
    assert QUOTED in told
    for secret in ("0000", "99000", "salary", "%memory", "of ours"):
        assert secret not in told


VAULT = (
    "%%private\ndef open_vault(code):\n    if code != 'opal-7':\n        raise ValueError(code)\n"
)

VERBOSE = """\
---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
Cell In[9], line 2
      1 first = 1
----> 2 open_vault('x')

Cell In[4], line 3, in open_vault(code='ruby')
      1 def open_vault(code):
----> 3         raise ValueError(code)
        code = 'ruby'
        held = 'opal-8'

File /usr/lib/python3.11/json/decoder.py:355, in JSONDecoder.raw_decode(self, s, idx)
--> 355     obj, end = self.scan_once(s, idx)

ValueError: x"""


@pytest.mark.spec("L7")
def test_of_a_frame_in_a_private_cell_only_the_place_is_left() -> None:
    quotes = Quotes()
    quotes.add(VAULT, 4)
    told = quotes.without(VERBOSE)
    for hidden in ("opal", "ruby", "raise ValueError(code)"):
        assert hidden not in told
    assert f"Cell In[4], line 3\n    {QUOTED}\n\nFile /usr" in told
    assert "----> 2 open_vault('x')" in told
    assert "--> 355     obj, end" in told
    assert told.endswith("\n\nValueError: x")


@pytest.mark.spec("L7")
@pytest.mark.parametrize("quote", [repr(VAULT), f"> x(2)\n-> {VAULT.splitlines()[2].strip()}"])
def test_a_quote_within_a_line_is_left_out(quote: str) -> None:
    quotes = Quotes()
    quotes.add(VAULT, 4)
    told = quotes.without(f"before\n{quote}\nafter")
    assert "opal" not in told
    assert told.startswith("before\n")
    assert told.endswith("\nafter")


def test_a_number_that_comes_again_is_no_longer_private() -> None:
    quotes = Quotes()
    quotes.add("%%private\nx", 9)
    assert "first = 1" not in quotes.without(VERBOSE)
    quotes.public(9)
    assert quotes.without(VERBOSE) == VERBOSE


@pytest.mark.parametrize(
    "source",
    [
        "%memory status",
        "%config SessionNotes.wait_seconds = 3",
        "%config Privacy",
        "memory status",
        "ask why is the first row empty?",
        "# quiet\n%config Memory.mode = 'off'\n\n%memory mode",
    ],
)
def test_a_cell_of_our_own_magics_and_settings_is_no_turn(source: str) -> None:
    assert is_ours(source)


@pytest.mark.parametrize(
    "source",
    [
        "%config InlineBackend.figure_format = 'svg'",
        "%config MemoryBank.mode = 1",
        "%config SessionNotes.wait_seconds = 3\nx = 1",
        "%memory status\n%config InlineBackend.rc = {}",
        "# only a comment",
        "# only 50% of a comment",
        "memory",
        "memory = 1",
        "memory.status",
        "memory in pools",
        "memory is None",
        "ask = 3\nask",
    ],
)
def test_a_cell_with_anything_else_is_a_turn(source: str) -> None:
    assert not is_ours(source)


@pytest.mark.spec("L7")
@pytest.mark.parametrize(
    "quote",
    [
        "['', '\\npw = 1', 'y = 2']",
        "'%%private\\npw = 1'",
        "   3: pw = 1",
        "12/3: pw = 1",
        ">>> pw = 1",
        "pw = 1",
    ],
)
def test_a_short_private_cell_is_left_out_of_lists_of_cells(quote: str) -> None:
    quotes = Quotes()
    quotes.add("%%private\npw = 1")
    quotes.add("\npw = 1")
    told = quotes.without(f"before\n{quote}\nafter")
    assert "pw" not in told
    assert QUOTED in told
    assert "y = 2" in told or "y = 2" not in quote
