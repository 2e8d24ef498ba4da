"""What a person says in one notebook is there in the next: two real kernels of one project."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, eventually

MEDIAN = "# always use the median, never the mean, for latency"
DATES = "# Dates in this source are day-first, from the data team."


def project(folder: Path, *names: str) -> None:
    """Make a git work tree with a folder for each notebook."""
    git = folder / "work" / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    for name in names:
        (folder / "work" / name).mkdir()


def memories(kernel: Kernel) -> list[Path]:
    found = kernel.home.glob("projects/*/memory/*.md")
    return sorted(each for each in found if each.name != "MEMORY.md")


@pytest.mark.kernel
@pytest.mark.spec("E4", "E9", "E12", "L8")
def test_what_one_notebook_taught_another_recalls(new_kernel: Any, tmp_path: Path) -> None:
    project(tmp_path, "one", "two")
    first: Kernel = new_kernel("one/one.ipynb")
    assert "no memories yet." in first.run("%load_ext ipymemory").text
    ran = first.run(f"{MEDIAN}\nlatency = [1, 2, 9]", cell_id="c1")
    assert ran.messages == [], "nothing of ours comes up in a cell that did not ask"
    eventually(lambda: len(memories(first)) == 1, "the first memory is kept")
    first.run(f"{DATES}\nraw = 'tides.csv'", cell_id="c2")
    first.run("# should we maybe use UTC?\n# for now only the first file\nprint('always')")
    eventually(lambda: len(memories(first)) == 2, "two memories are kept")

    second: Kernel = new_kernel("two/two.ipynb")
    assert ", 2 memories." in second.run("%load_ext ipymemory").text
    found = second.run("%memory recall mean or median for latency").text
    assert "always use the median, never the mean, for latency" in found
    assert "one.ipynb" in found and "a comment in a cell" in found
    assert "day-first" in second.run("%memory recall how are dates parsed").text

    # The first is told what was kept, once, in a cell that asks something of us.
    told = first.run("%memory list").text
    assert "Kept from what you said" in told and "%memory undo" in told
    assert "Kept from what you said" not in first.run("%memory list").text
    assert "Kept from what you said" not in second.run("%memory list").text

    (run,) = re.findall("%memory undo ([0-9a-f]+)", told)
    assert run in first.run("%memory history").markdown
    assert "Undone: extraction" in first.run(f"%memory undo {run}").text
    assert len(memories(first)) == 1
    first.run(f"{DATES}\nraw = 'tides.csv'", cell_id="c2")
    assert "Nothing new" in first.run("%memory extract").text
    assert len(memories(first)) == 1, "what was undone is not learned again"


@pytest.mark.kernel
@pytest.mark.spec("E11")
def test_what_was_said_last_is_kept_when_the_kernel_ends(new_kernel: Any, tmp_path: Path) -> None:
    project(tmp_path, "one")
    kernel: Kernel = new_kernel("one/one.ipynb")
    kernel.run("%load_ext ipymemory")
    kernel.run("x = 1")
    eventually(kernel.notes, "the worker runs")
    text = {"cell_type": "markdown", "metadata": {}, "source": "We never delete **raw** files."}
    saved = {"cells": [text], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (kernel.work / "one" / "one.ipynb").write_text(json.dumps(saved))
    kernel.run(MEDIAN + "\nx = 2")
    kernel.shutdown()
    eventually(lambda: len(memories(kernel)) == 2, "both are kept")


@pytest.mark.kernel
@pytest.mark.spec("E11", "L5")
def test_what_a_killed_kernel_left_the_next_session_looks_through(
    new_kernel: Any, tmp_path: Path
) -> None:
    project(tmp_path, "one", "two")
    first: Kernel = new_kernel("one/one.ipynb")
    first.run("%load_ext ipymemory")
    first.run("%config Extraction.every_turns = 500")
    first.run("x = 1")
    eventually(first.notes, "the worker runs")
    first.run(MEDIAN + "\nx = 2")
    for each in first.workers():
        each.kill()
    first.kill()
    assert memories(first) == []
    second: Kernel = new_kernel("two/two.ipynb")
    second.run("%load_ext ipymemory")
    second.run("y = 1")
    eventually(lambda: len(memories(second)) == 1, "what was left is learned")
    assert "median" in second.run("%memory recall latency median").text
