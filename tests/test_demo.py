"""The demo: a real notebook in a real kernel, in one folder and nowhere else."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipymemory import demo
from ipymemory.errors import CommandError

TOP = Path(__file__).parent.parent


@pytest.mark.kernel
def test_the_demo_shows_notes_folder_and_how_to_be_rid_of_it(tmp_path: Path) -> None:
    person = tmp_path / "person"
    person.mkdir()
    env = {
        **os.environ,
        "PYTHONPATH": str(TOP),
        "HOME": str(person),
        "USERPROFILE": str(person),
        "IPYMEMORY_HOME": str(person / "mine"),
        "IPYTHONDIR": str(person / "ipython"),
    }
    folder = tmp_path / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "ipymemory", "demo", str(folder)],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    for wanted in (
        "> ipymemory: notes by the built-in extractive engine",
        "# Session Title\n",
        "Bicycles on the bridge (bicycles.ipynb)",
        "find the weekday on which most bicycles cross the bridge",
        "We decided to leave out days without a count",
        "counts.csv",
        "best day: Thu with 934 bicycles",
        "ValueError: invalid literal for int() with base 10: 'n/a'",
        "def totals(path)",
        "cured in [4]",
        "transcript.jsonl",
        "notes.md",
        f"To be rid of the demo, delete the folder {folder}.",
    ):
        assert wanted in done.stdout, wanted
    kept = b"".join(p.read_bytes() for p in (folder / "memory").rglob("*") if p.is_file())
    assert b"only-for-the-demo" not in kept
    assert b"nothing of this cell" not in kept
    notebook = json.loads((folder / demo.NOTEBOOK).read_text())
    assert any(cell.get("outputs") for cell in notebook["cells"])
    left = [each for each in person.rglob("*") if each.is_file()]
    assert left == [], "the user's own home is not touched"


def test_a_folder_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(CommandError, match="is not empty, so it was left alone"):
        demo.run(str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("absent", [("nbclient",), ("nbclient", "ipykernel")])
def test_what_is_missing_is_named_with_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, absent: tuple[str, ...]
) -> None:
    found = importlib.util.find_spec

    def find(name: str, *more: Any) -> Any:
        return None if name in absent else found(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    with pytest.raises(CommandError) as caught:
        demo.run(str(tmp_path / "demo"))
    assert f"{' and '.join(absent)} " in str(caught.value)
    assert "pip install 'ipymemory[demo]'" in str(caught.value)
    assert not (tmp_path / "demo").exists()
