"""What a sentence is about: told from plain forms, and not at all where none shows it."""

from __future__ import annotations

import pytest

from ipymemory.memory_files.subjects import subject_of


@pytest.mark.parametrize(
    ("one", "other", "subject"),
    [
        ("Amounts are stored in cents", "Now all amounts are in euros", "amounts: unit"),
        (
            "Dates in this source are day-first, from the data team",
            "dates in this source are month-first",
            "dates in this source: order",
        ),
        (
            "The deadline for the board report is 2026-12-18",
            "The board report is due on 2027-01-08",
            "deadline: board report",
        ),
        (
            "The board report deadline is Friday",
            "Actually, the deadline of the board report moved to Monday",
            "deadline: board report",
        ),
        ("Answer in German", "Please answer me in English from now on", "answer: language"),
        ("Always write tests first", "Don't write tests first.", "do: write tests first"),
        ("Never mock the database", "We should always mock the database", "do: mock the database"),
        ("Avoid mocking the database", "Always mock the database", "do: mock the database"),
        ("I prefer tabs over spaces", "I prefer spaces to tabs", "prefer: spaces or tabs"),
        ("The random seed is 42", "Our seed is 7", "seed"),
        ("The owner of the tides table is Anna", "The tides table's owner is Bert",
         "tides table: owner"),
        ("The time zone of the logger is UTC", "The logger's timezone is CET", "logger: zone"),
        ("The export is encoded in latin-1", "The encoding of the export is utf-8",
         "export: coded"),
        ("We use polars for the weekly report", "We use pandas for the weekly report now",
         "use for: weekly report"),
        ("Größe steht in Zentimetern", "Größe steht jetzt in Metern", "grösse: unit"),
        ("Die Frist für den Bericht ist der 3. März", "Die Frist für den Bericht wird der 4. Mai",
         "deadline: den bericht"),
        ("報告書の締切は金曜日です", "報告書の締切は月曜日です", "報告書: 締切"),
        ("報告书的截止日期是周五", "報告书的截止日期改为周一", "報告书: 截止日期"),
        ("The source of truth for prices is a.csv", "b.csv is the source of truth for prices",
         "source of truth: prices"),
        ("My name is Ada", "Call me Ada Lovelace", "user: name"),
    ],
)  # fmt: skip
def test_a_change_of_mind_has_the_same_subject(one: str, other: str, subject: str) -> None:
    assert subject_of(one) == subject_of(other) == subject


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The harbour data is from 2019",
        "We decided to drop 2019",
        "Amounts are stored in cents. Tax is apart.",
        "The file is latin-1",
        "They are in UTC",
        "I am a climate scientist and new to pandas",
        "The limit of 5 is in the docs",
        "a " * 5000 + "is in cents",
    ],
)
def test_where_no_form_shows_it_there_is_none(text: str) -> None:
    assert subject_of(text) == ""


def test_no_text_takes_long() -> None:
    for text in ("the " * 20_000, "is " * 20_000, "a's " * 20_000, "x" * 100_000, "の" * 50_000):
        assert subject_of(text) == ""
