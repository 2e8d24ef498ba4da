"""What a dream tidies without a model: what says the same, dates, and what looks alike."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ipymemory.extractive.consolidating import Plan, plan
from ipymemory.memory_files.values import Memory, Source

WEDNESDAY = "2026-12-02T12:00:00.000Z"


def memory(name: str, body: str, subject: str = "", **more: str) -> Memory:
    return Memory(
        name=name,
        kind=more.get("kind", "project"),
        description=more.get("description", body.split("\n")[0]),
        body=body,
        path=Path(f"/m/{name}.md"),
        modified=more.get("modified", WEDNESDAY),
        source=Source(session=name, origin=more.get("origin", "")),
        subject=subject,
        digest=more.get("digest", "0"),
    )


def tidied(*memories: Memory) -> Plan:
    return plan(memories, frozenset({"person"}))


def merged(found: Plan) -> list[tuple[str, list[str]]]:
    return [(each.kept.name, [one.name for one in each.gone]) for each in found.merges]


@pytest.mark.spec("D4", "D5")
def test_what_says_the_same_becomes_one_and_no_origin_is_lost() -> None:
    found = tidied(
        memory("a", "Dates are day first."),
        memory("b", "dates  are day first"),
        memory("c", "- Dates are day first.", origin="person"),
    )
    assert merged(found) == [("c", ["a", "b"])]
    assert {each.session for each in found.merges[0].origins} == {"a", "b", "c"}


@pytest.mark.spec("D4")
def test_of_one_subject_the_longer_text_holds_the_shorter() -> None:
    short = memory("a", "Dates are day first.", "dates: order")
    long = memory("b", "Dates are day first.\n\n**Why:** the bank says so.", "dates: order")
    assert merged(tidied(short, long)) == [("b", ["a"])]
    apart = (memory("a", "Dates are day first."), memory("b", long.body))
    assert merged(tidied(*apart)) == [], "without a subject only the same text is the same"


@pytest.mark.spec("D5")
def test_a_persons_words_do_not_go_for_a_machines() -> None:
    own = memory("a", "Dates are day first.", "dates: order", origin="person")
    other = memory("b", "Dates are day first. The bank says so.", "dates: order", origin="file")
    assert merged(tidied(own, other)) == []


@pytest.mark.spec("D5")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Keep at least 5 rows.", "Keep at most 5 rows."),
        ("Never mock the database.", "Mock the database."),
        ("Write it in C.", "Write it in C++."),
        ("Rows where a > b are bad.", "Rows where a < b are bad."),
        ("The offset is -5.", "The offset is 5."),
        ("The key column is ID.", "The key column is id."),
        ("ID is the key.", "Id is the key."),
        ("The rate is 3.5.", "The rate is 35."),
    ],
)
def test_what_only_looks_alike_is_not_touched(one: str, other: str) -> None:
    found = tidied(memory("a", one), memory("b", other))
    assert found == Plan((), (), ())


@pytest.mark.spec("D5")
def test_sharing_a_sentence_is_not_saying_the_same() -> None:
    found = tidied(
        memory("a", "Use A. Use B.", "tools", modified="2026-11-01T00:00:00Z"),
        memory("b", "Use A. Use C.", "tools"),
        memory("c", "Use B. Use D.", "tools"),
    )
    assert not found.merges
    assert len(found.doubts[0].memories) == 3


@pytest.mark.spec("D5")
def test_the_same_steps_in_another_order_are_others() -> None:
    one = memory("a", "Steps:\n```\nload()\nclean()\n```")
    other = memory("b", "Steps:\n```\nclean()\nload()\n```")
    assert not tidied(one, other).merges


def test_kinds_subjects_and_what_was_read_in_part_stay_apart() -> None:
    text = "Dates are day first."
    assert not tidied(memory("a", text), memory("b", text, kind="feedback")).merges
    assert not tidied(memory("a", text, "one"), memory("b", text, "other")).merges
    assert not tidied(memory("a", text), memory("b", text, digest="")).merges
    assert not tidied(
        memory("a", text), memory("b", text, description="Of the bank's file.")
    ).merges


@pytest.mark.spec("D4")
def test_two_of_one_subject_that_differ_are_a_question() -> None:
    found = tidied(
        memory("a", "Dates are day first.", "dates: order"),
        memory("b", "Dates are month first.", "dates: order", modified="2026-12-03T00:00:00Z"),
    )
    assert not found.merges
    assert [[one.name for one in each.memories] for each in found.doubts] == [["b", "a"]]


@pytest.mark.spec("D4")
@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("The report is due tomorrow.", "The report is due tomorrow (2026-12-03)."),
        ("We meet the bank this Friday.", "We meet the bank this Friday (2026-12-04)."),
        ("Fine.\nThe freeze ends in 3 days, due to the audit.",
         "Fine.\nThe freeze ends in 3 days (2026-12-05), due to the audit."),
        ("next monday we deploy", "next monday (2026-12-07) we deploy"),
        ("We met the bank last Friday.", "We met the bank last Friday (2026-11-27)."),
        ("We meet this coming Sunday.", "We meet this coming Sunday (2026-12-06)."),
        ("The demo is this weekend.", "The demo is this weekend (2026-12-05 to 2026-12-06)."),
        ("The team met last weekend.", "The team met last weekend (2026-11-28 to 2026-11-29)."),
        ("The launch is in two weeks.", "The launch is in two weeks (2026-12-16)."),
        ("We meet in two weeks' time.", "We meet in two weeks' time (2026-12-16)."),
        ("The report is due at the end of next month.",
         "The report is due at the end of next month (2027-01-31)."),
        ("The release is next month.", "The release is next month (2027-01)."),
        ("The audit starts next week.", "The audit starts next week (week of 2026-12-07)."),
        ("We moved to UTC yesterday.", "We moved to UTC yesterday (2026-12-01)."),
        ("The bank was closed last month.", "The bank was closed last month (2026-11)."),
        ("The visit is scheduled for tomorrow.",
         "The visit is scheduled for tomorrow (2026-12-03)."),
        ("We met last Friday and meet tomorrow.",
         "We met last Friday (2026-11-27) and meet tomorrow (2026-12-03)."),
    ],
)  # fmt: skip
def test_a_relative_date_gets_its_day_once(said: str, dated: str) -> None:
    (found,) = tidied(memory("a", said)).dated
    assert found.body == dated
    assert not tidied(memory("a", dated)).dated


@pytest.mark.parametrize(
    "said",
    [
        "Reports are due by Friday every week.",
        "Training converges in 3 days.",
        "The deadline was 2026-11-30, not tomorrow.",
        "The cell says `due tomorrow`.",
        "The file is used today.",
        "Backups run on Monday.",
        "The freeze is next Friday.",
        "We met the bank last Tuesday.",
        "The demo is next weekend.",
        "The deadline was on Friday.",
        "The report was due at the end of the month.",
        "The charts compare yesterday with tomorrow.",
        "Invoices go out at the end of the month.",
        "We read the files of yesterday.",
        "We meet on the last Friday of the month.",
        "We look at the last month only.",
        "The model predicts next month from last month.",
        "The launch is in two weeks or three.",
        "Files that were changed yesterday are loaded.",
        "Tomorrow's prices are loaded at noon.",
        "The release is soon.",
        "Es ist morgen so weit.",
    ],
)
def test_what_is_no_day_stays(said: str) -> None:
    found = tidied(memory("a", said)).dated
    assert not found, found


@pytest.mark.parametrize(
    ("day", "said", "dated"),
    [
        ("2026-12-04", "The freeze is next Friday.", "next Friday (2026-12-11)"),
        ("2026-12-04", "We meet this Friday.", ""),
        ("2026-12-05", "We meet this Friday.", ""),
        ("2026-12-05", "The demo is next weekend.", "next weekend (2026-12-12 to 2026-12-13)"),
        ("2026-12-05", "We met last weekend.", ""),
        ("2026-12-05", "The report is due at the end of the week.", ""),
        ("2026-12-06", "The freeze is next Monday.", ""),
        ("2026-12-06", "The audit starts next week.", ""),
        ("2026-12-31", "The release is next month.", "next month (2027-01)"),
        ("2028-01-31", "The report is due at the end of next month.", "month (2028-02-29)"),
    ],
)
def test_the_day_on_which_it_was_said_decides(day: str, said: str, dated: str) -> None:
    found = tidied(memory("a", said, modified=f"{day}T12:00:00.000Z")).dated
    assert (dated in found[0].body) if dated else not found


def turn(day: int) -> str:
    return f"{int(datetime(2026, 12, day, 12, tzinfo=UTC).timestamp() * 1000):012x}{'0' * 12}"


@pytest.mark.spec("D4")
def test_a_day_is_counted_from_when_it_was_said_and_not_from_when_it_was_kept() -> None:
    kept = memory("a", "The report is due tomorrow.", modified="2026-12-09T12:00:00.000Z")
    said = replace(kept, source=Source("s", "n.ipynb", (turn(2), turn(2)), "", "comment"))
    assert "tomorrow (2026-12-03)" in tidied(said).dated[0].body
    days = replace(kept, source=Source("s", "n.ipynb", (turn(2), turn(3)), "", "comment"))
    assert not tidied(days).dated
    also = replace(said.source, also=(Source("t", "n.ipynb", (turn(4),), "", "comment"),))
    assert not tidied(replace(said, source=also)).dated
    # A notebook that somebody sent was written on any day.
    came = replace(kept, source=Source("s", "n.ipynb", ("markdown 1",), "", "file"))
    assert not tidied(came).dated
