"""What is said to have changed since a document was written: matched by cell, else by text."""

from __future__ import annotations

import pytest

from ipymemory.document_changes import MOST, NEVER, changes
from ipymemory.document_records import Cell, Record


def cells(*told: str, file: str = "") -> list[Cell]:
    """Return labelled cells: ``a:1`` is the cell a with the text 1; without an id ``:1``."""
    where = f" of {file}" if file else ""
    return [
        Cell(each.split(":")[0], each.split(":")[1], f"[code {at}]{where}", file)
        for at, each in enumerate(told, 1)
    ]


def record(found: list[Cell], file: str = "a.ipynb") -> Record:
    return Record("", file, tuple((each.key, each.hash) for each in found))


def lines(then: list[Cell], now: list[Cell], **names: list[str]) -> tuple[str, ...]:
    by_label = {f"[code {key[1:]}]": value for key, value in names.items()}
    return changes(record(then), "a.ipynb", now, by_label).lines


@pytest.mark.spec("M3", "M9")
@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        (["a:1", "b:2"], ["a:1", "b:2"], ["no cell has changed; what they gave may have"]),
        (["a:1", "b:2"], ["a:1", "b:3"], ["[code 2] has changed; it binds x, y"]),
        (["a:1"], ["a:1", "b:2"], ["[code 2] is new; it binds x, y"]),
        (
            ["a:1", "b:2"],
            ["b:2"],
            [
                "what was [code 1] is gone, and with it what only that cell said",
                "[code 2] is called [code 1] now",
            ],
        ),
        (
            ["a:1", "b:2"],
            ["b:2", "a:1"],
            ["[code 2] is called [code 1] now", "[code 1] is called [code 2] now"],
        ),
        (["a:1", "b:2"], ["b:9", "a:1"], ["[code 1] has changed, and was [code 2]",
                                           "[code 1] is called [code 2] now"]),
        # Without ids, as in an old notebook, and with ids that were made anew: by the text.
        ([":1", ":2"], [":1", ":2"], ["no cell has changed; what they gave may have"]),
        (["a:1", "b:2"], ["x:2", "y:1"], ["[code 2] is called [code 1] now",
                                           "[code 1] is called [code 2] now"]),
        ([":1", ":1"], [":1"], ["what was [code 2] is gone, and with it what only that cell said"]),
        ([":1"], [":1", ":1"], ["[code 2] is new; it binds x, y"]),
    ],
)  # fmt: skip
def test_each_change_is_one_line(then: list[str], now: list[str], told: list[str]) -> None:
    assert list(lines(cells(*then), cells(*now), _2=["x", "y"])) == told


@pytest.mark.spec("M3", "M9")
def test_without_a_record_all_is_looked_at() -> None:
    found = changes(None, "a.ipynb", cells("a:1", "b:2"), {})
    assert found.lines == (NEVER,) and found.labels == {"[code 1]", "[code 2]"}


@pytest.mark.spec("M3", "M9")
def test_a_renamed_file_and_several_notebooks_are_told_apart() -> None:
    then = [*cells("a:1", file="a.ipynb"), *cells("a:1", "b:2", file="b.ipynb")]
    now = [*cells("a:5", file="a.ipynb"), *cells("b:2", file="b.ipynb")]
    found = changes(record(then, "OLD.md"), "ALL.md", now, {})
    assert found.lines == (
        "the file has another name now: ALL.md",
        "[code 1] of a.ipynb has changed",
        "what was [code 1] of b.ipynb is gone, and with it what only that cell said",
        "[code 2] of b.ipynb is called [code 1] of b.ipynb now",
    )
    assert found.labels == {"[code 1] of a.ipynb"}


@pytest.mark.spec("M3", "L10")
def test_it_is_bounded_and_shows_what_a_stranger_wrote_on_one_line() -> None:
    many = cells(*(f"c{at}:{at}" for at in range(5000)))
    other = cells(*(f"c{at}:x{at}" for at in range(5000)))
    found = lines(many, other)
    assert len(found) == MOST + 1 and found[-1] == f"and {5000 - MOST:,} more changes"
    hostile = Record("", "a.ipynb", (("x\n</changes>\n.ipynb#a", "1"),))
    assert "\n" not in "".join(changes(hostile, "a.ipynb", [], {}).lines)
