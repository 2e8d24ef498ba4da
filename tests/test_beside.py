"""The text beside the turns: what a notebook file holds between the cells that ran."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ipymemory import notebooks
from ipymemory.beside import NotebookText, with_text
from ipymemory.turns import Entry, Prose, Turn


def ran(source: str, cell_id: str | None = None, count: int = 1) -> Turn:
    return Turn(f"{count:024x}", "", source, cell_id=cell_id, execution_count=count)


def text(source: str) -> Prose:
    return Prose(source, "", source)


def shown(entries: tuple[Entry, ...]) -> list[str]:
    return [each.source for each in entries if isinstance(each, Turn | Prose)]


@pytest.mark.parametrize(
    ("entries", "cells", "expected"),
    [
        # above the cell below it
        ([ran("a"), ran("b")], [ran("a"), text("T"), ran("b")], ["a", "T", "b"]),
        # above its newest run
        ([ran("b"), ran("a"), ran("b")], [text("T"), ran("b")], ["b", "a", "T", "b"]),
        # a cell that did not run is passed over
        ([ran("a"), ran("c")], [ran("a"), text("T"), ran("b"), ran("c")], ["a", "T", "c"]),
        # below the last that ran
        ([ran("a"), ran("z")], [ran("a"), text("T"), ran("b")], ["a", "T", "z"]),
        # nothing of the file ran: at the end
        ([ran("z")], [text("T"), ran("b"), text("U")], ["z", "T", "U"]),
        # known by the id that the frontend gave, though it was edited since
        ([ran("old", "i")], [text("T"), ran("new", "i")], ["T", "old"]),
        # two texts stay in their order
        ([ran("a")], [text("T"), text("U"), ran("a")], ["T", "U", "a"]),
        ([], [text("T")], ["T"]),
        ([ran("a")], [], ["a"]),
    ],
)
def test_a_text_stands_where_it_stands_in_the_notebook(
    entries: list[Entry], cells: list[Entry], expected: list[str]
) -> None:
    assert shown(with_text(entries, cells)) == expected


def told(source: str, id: str, time: str = "2026-12-02T10:00:00.000Z") -> Prose:
    return Prose(f"told {source}", time, source, cell_id=id, origin="typed", kernel=1)


def test_a_text_that_the_page_told_too_is_there_once_and_as_it_is_now() -> None:
    saved = "2026-12-02T09:00:00+00:00"
    cells = [Prose("1", saved, "old", "i"), ran("a"), Prose("2", saved, "kept", "j"), ran("b")]
    entries = [told("half", "i"), told("now", "i"), ran("a"), ran("b"), told("only here", "k")]
    assert shown(with_text(entries, cells)) == ["now", "a", "kept", "b", "only here"]
    # removed on the page since it was saved
    assert shown(with_text([*entries, told("", "j"), told("", "k")], cells)) == ["now", "a", "b"]
    # saved later, by something else
    late = [Prose("1", "2026-12-02T11:00:00+00:00", "newest", "i"), *cells[1:]]
    assert shown(with_text(entries, late)) == ["newest", "a", "kept", "b", "only here"]
    # an older file, whose cells have no ids
    assert shown(with_text([told("same", "x1"), ran("a")], [text("same"), ran("a")])) == [
        "same",
        "a",
    ]
    # nobody knows when it was saved
    assert shown(with_text([told("page", "i")], [Prose("1", "", "file", "i")])) == ["page"]


def save(path: Path, *texts: str) -> None:
    cells = [{"cell_type": "markdown", "metadata": {}, "source": each} for each in texts]
    content: dict[str, Any] = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    path.write_text(json.dumps(content))


def test_the_file_is_read_again_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    save(path, "first")
    found = NotebookText(path)
    assert shown(found.cells()) == ["first"]
    save(path, "first", "second, longer")
    assert shown(found.cells()) == ["first", "second, longer"]
    assert found.cells() is found.cells()


@pytest.mark.parametrize("content", ["", '{"nbformat": 4, "cells": [{"cell_ty', "null"])
def test_a_file_that_is_being_saved_leaves_what_was_read(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.ipynb"
    save(path, "first")
    found = NotebookText(path)
    found.cells()
    path.write_text(content)
    assert shown(found.cells()) == ["first"]
    save(path, "saved")
    os.utime(path, (1, 1))
    assert shown(found.cells()) == ["saved"]
    path.unlink()
    assert shown(found.cells()) == ["saved"]


def test_a_file_that_changed_while_it_was_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ipynb"
    save(path, "half")
    read = notebooks.read

    def slowly(name: Path) -> notebooks.NotebookFile:
        found = read(name)
        save(path, "half", "whole")
        return found

    monkeypatch.setattr(notebooks, "read", slowly)
    found = NotebookText(path)
    assert found.cells() == ()
    monkeypatch.undo()
    assert shown(found.cells()) == ["half", "whole"]


@pytest.mark.parametrize("path", [None, Path("x.py"), Path(), Path("/nowhere/x.ipynb")])
def test_no_notebook_has_no_text(path: Path | None) -> None:
    assert NotebookText(path).cells() == ()


def test_a_secret_in_a_text_is_masked(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    save(path, "use postgres://me:hunter2secret@db/x")
    assert "hunter2secret" not in "".join(shown(NotebookText(path).cells()))
