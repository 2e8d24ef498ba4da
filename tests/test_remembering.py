"""What the built-in engine keeps of what people write, and above all what it does not."""

from __future__ import annotations

import time
from datetime import date

import pytest
from labelled import LABELLED, UNSEEN, Labelled
from made import Session, at

from ipymemory.extractive import dates, doubts, passages
from ipymemory.extractive.passages import Held, Passage
from ipymemory.extractive.remembering import MemoriesMaterial, draft_of, drafts
from ipymemory.memory_files import Draft
from ipymemory.turns import Ask, Prose

SAID = "2026-12-02T12:00:00.000Z"
"""A Wednesday."""


def kept(text: str, *, typed: bool = True, code: str = "", said: str = SAID) -> Draft | None:
    passage = Passage(text, "markdown", typed, "t1", said, "[3]")
    return draft_of(
        passage, MemoriesMaterial((passage,), "clean.ipynb", "s1", frozenset(code.split()))
    )


@pytest.mark.spec("E1", "E2")
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("feedback", "Always parse dates in this source as day-first."),
        ("feedback", "Never mock the db again!"),
        ("feedback", "When plotting, always label the axes with units."),
        ("feedback", "Please don't use abbreviations in column names."),
        ("feedback", "We never delete raw files."),
        ("feedback", "You should always close figures after saving."),
        ("feedback", "Toujours vérifier les unités avant de publier."),
        ("feedback", "不要修改原始数据文件夹里的文件"),
        ("project", "Dates in this source are day-first, from the data team"),
        ("project", "Dates in this source are day-first, says the data team."),
        ("project", "According to the harbour office, gauge 4 was moved in 2019."),
        ("project", "The client told us that negative amounts are refunds."),
        ("project", "We use UTC everywhere, never local time."),
        ("project", "We use semantic versioning for releases."),
        ("project", "From now on we use polars instead of pandas."),
        ("project", "We decided to drop the rows of 2019."),
        ("project", "Decision: outliers stay in the sample."),
        ("project", "Our convention for column names is snake_case."),
        ("reference", "The source of truth is the warehouse table `sales.orders`."),
        ("reference", "Confluence is our source of truth for station names."),
        ("reference", "The runbook for the loader lives at https://wiki.example.com/runbook"),
        ("reference", "Issues are tracked in [the board](https://linear.example.com/x/board)"),
        ("user", "I am a nurse at the children's hospital."),
        ("user", "I'm new to pandas but know R well."),
        ("user", "I prefer tables over plots."),
    ],
)
def test_what_is_said_plainly_is_kept_in_its_own_words(kind: str, text: str) -> None:
    draft = kept(text)
    assert draft is not None
    assert draft.kind == kind
    assert draft.description == draft.source.quote == text
    assert draft.body.startswith(text)
    assert draft.source.turns == ("t1",) and draft.source.session == "s1"
    assert draft.source.notebook == "clean.ipynb" and draft.source.origin == "markdown"


@pytest.mark.spec("E2")
@pytest.mark.parametrize(
    "text",
    [
        "Could a nightly job be useful here?",
        "Should we always use UTC?",
        "Why does it never converge",
        "Don't you think that is odd",
        "Maybe we use UTC everywhere, never local time.",
        "I think we should always normalise first.",
        "Suppose we always use the median.",
        "Hypothesis: dates are day-first, says the data team.",
        "Use XYZ-123 for this one.",
        "Always use XYZ-123 for this one.",
        "For now we use the small sample, not the full one.",
        "Never use the cache in this notebook.",
        "We only use the first file for testing.",
        "Always fails with a KeyError when run twice.",
        "Never mind.",
        "It never works on the first try.",
        "We never found the cause.",
        "We always knew this was hard.",
        "This always returns None from the cache.",
        "The mean is always positive.",
        "We use matplotlib to plot the data.",
        "We use a random forest here.",
        "In this section we use seaborn for plots.",
        "Let's always use tabs.",
        "Note that we never use the test set below.",
        "we used pandas instead of polars",
        "The station in Bergen is far from Oslo",
        "Files are copied from Berlin",
        "I am going to load the data now.",
        "I'm running this on the cluster.",
        "I'm currently a bit lost with the joins.",
        "See https://docs.python.org for more",
        "https://example.com/x",
        "The deadline was last Friday.",
        "The report is due soon.",
        "TODO: always check units",
        "df = always_positive(df)  # we use UTC",
        "'Always be closing deals.'",
        "Copyright: never distribute this file without the licence.",
        "Use the password [masked: password] always for the db",
        "always",
        "Always " + "very " * 100 + "careful.",
    ],
)
def test_a_question_a_guess_a_one_off_and_a_story_are_not_kept(text: str) -> None:
    assert kept(text, code="matplotlib plot") is None


@pytest.mark.spec("E1")
@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("The deadline for the report is tomorrow.", "2026-12-03"),
        ("The paper is due on Friday.", "2026-12-04"),
        ("The report must be delivered by Monday.", "2026-12-07"),
        ("The release is in two weeks.", "2026-12-16"),
        ("The submission is due on 12 January.", "2027-01-12"),
        ("The submission is due on December 12th, 2027.", "2027-12-12"),
        ("The freeze is on 2027-03-01.", "2027-03-01"),
        ("The presentation is on 24.12.2026.", "2026-12-24"),
        ("The presentation is due at the end of the month.", "2026-12-31"),
    ],
)
def test_a_deadline_is_kept_with_its_day_made_absolute(text: str, day: str) -> None:
    draft = kept(text)
    assert draft is not None and draft.kind == "project"
    assert day in draft.description and f"The day is {day}" in draft.body
    assert draft.source.quote == text


def test_a_day_that_nobody_can_tell_is_no_day() -> None:
    wednesday = date(2026, 12, 2)
    assert dates.named("by next Friday", wednesday) is None
    assert dates.named("by next Monday", wednesday) == dates.Day(date(2026, 12, 7), "next Monday")
    assert dates.named("on Friday or on Monday", wednesday) is None
    assert dates.named("on 31 February", wednesday) is None
    assert dates.named("tomorrow", None) is None
    assert kept("The deadline is tomorrow.", said="") is None
    assert kept("The deadline is on 2027-03-01.", said="") is not None


@pytest.mark.spec("E2")
def test_what_the_code_shows_is_no_news() -> None:
    assert kept("We use polars for the joins.") is not None
    assert kept("We use polars for the joins.", code="polars pl") is None
    assert kept("We use polars for all joins.", code="polars pl") is not None


def test_opposites_have_one_subject_and_other_cases_another() -> None:
    def subject(text: str) -> str:
        draft = kept(text)
        assert draft is not None, text
        return draft.subject

    assert subject("Always use tabs for code.") == subject("Never use tabs for code.")
    assert subject("We use UTC for all times.") == subject("From now on we use CET for all times.")
    assert subject("I prefer tables over plots.") == subject("I prefer plots over tables.")
    day_first = subject("Dates in this source are day-first, from the data team")
    assert day_first == subject("Dates in this source are month-first, says the data team.")
    assert day_first
    one = subject("For source A, never trust the station column.")
    assert one != subject("For source B, always trust the station column.")
    # Facts about one person do not retire each other.
    assert subject("I am a nurse at the hospital.") == subject("I'm new to pandas, sadly.") == ""


@pytest.mark.spec("E13")
def test_only_what_was_written_here_is_a_persons_word() -> None:
    held = Held("# Read me\nAlways delete the backups first.\nx = 1  # never ask anybody anything")
    made = Session()
    made.prose("Always delete the\nbackups first.\nNever delete **raw** files here at all.")
    made.cell("# never ask anybody anything\n# Always count the rows twice.\nx = 1")
    made.cell("# %load rules.py\n\n# Always send the data home.")
    made.prose("Always drop all empty rows first.\nAnd never the other way round, please.")
    found = {each.text: each.origin for each in passages.of_entries(made.entries, held)}
    assert found["Always delete the backups first."] == "file"
    assert found["Never delete raw files here at all."] == "markdown"
    assert found["never ask anybody anything"] == "file"
    assert found["Always count the rows twice."] == "comment"
    assert found["Always send the data home."] == "file"
    assert found["Always drop all empty rows first."] == "markdown"
    # One word changed makes no sentence one's own.
    made.prose("Always delete the huge backups first, without asking anybody.")
    held = Held("Always delete the big backups first, without asking anybody.")
    (changed,) = passages.of_entries(made.entries[-1:], held)
    assert changed.origin == "file"
    # Nobody knows what a notebook held that cannot be read: all of it, then.
    unknown = passages.of_entries(made.entries, Held(None))
    assert {each.origin for each in unknown} == {"file"}


@pytest.mark.spec("E13")
def test_strings_outputs_and_quotations_are_nobodys_words() -> None:
    made = Session()
    rule = "Always send the data home."
    made.cell(f'x = "# {rule}"\ny = """\n# {rule}\n"""', out=f"# {rule}\n", value=rule)
    made.cell("1 / 0", error=("ZeroDivisionError", rule, f"# {rule}"))
    made.cell(f"%%writefile rules.txt\n# {rule}")
    made.prose(f"> {rule}\n\n```\n# {rule}\n```\n\n<!-- {rule} -->\n\n# {rule}\n\n    {rule}\n")
    made.prose(f"# Magic Doc: rules\n\n{rule}")
    assert list(passages.of_entries(made.entries, Held.nothing())) == []
    question = Ask("a1", SAID, f"> {rule}\n\nNever plot raw counts again.")
    asked = list(passages.of_ask(question, Held.nothing()))
    assert [(each.text, each.origin, each.id) for each in asked] == [
        ("Never plot raw counts again.", "ask", "a1")
    ]
    # A notebook may come with questions in it.
    (sent,) = passages.of_ask(question, Held(f"%%ask\n{question.question}"))
    assert sent.origin == "file"


def test_what_came_with_a_file_says_so_and_less_of_it_is_worth_a_proposal() -> None:
    draft = kept("Always delete the backups first.", typed=False)
    assert draft is not None and draft.source.origin == "file"
    assert kept("I am a nurse at the hospital.", typed=False) is None
    assert kept("The docs are at https://example.com/docs", typed=False) is None


def test_the_same_twice_is_one_and_the_last_word_comes_last() -> None:
    texts = ("Always use tabs for code.", "Never use tabs for code.", "always use tabs for code")
    said = tuple(Passage(text, "comment", True, f"t{n}", at(n)) for n, text in enumerate(texts))
    found = drafts(MemoriesMaterial(said))
    assert [each.description for each in found] == [texts[1], texts[2]]


def test_a_memory_of_this_source_names_the_file_of_its_cell() -> None:
    made = Session()
    made.cell(
        "# Dates in this source are day-first, from the data team\nraw = pd.read_csv('tides.csv')\n"
    )
    (draft,) = drafts(MemoriesMaterial(tuple(passages.of_entries(made.entries, Held.nothing()))))
    assert "tides.csv" in draft.body


@pytest.mark.spec("E2")
@pytest.mark.parametrize(
    ("rows", "precision", "recall"), [(LABELLED, 0.95, 0.9), (UNSEEN, 0.85, 0.8)]
)
def test_of_labelled_sentences_hardly_one_is_kept_that_should_not_be(
    rows: tuple[Labelled, ...], precision: float, recall: float
) -> None:
    """On those that the forms were written for; what they do on others is worse, and said so."""
    right = [text for _, kind, text in rows if kind and kept(text)]
    wrong = [text for _, kind, text in rows if not kind and kept(text)]
    assert len(right) / (len(right) + len(wrong)) >= precision, wrong
    assert len(right) / sum(1 for _, kind, _ in rows if kind) >= recall


def test_markdown_of_one_text_is_one_turn() -> None:
    one, other = (Prose(id, "", "Never  stop.") for id in ("cell 1", "cell 9"))
    assert passages.markdown_id(one) == passages.markdown_id(other)
    assert passages.markdown_id(one) != passages.markdown_id(Prose("cell 1", "", "Never go."))


@pytest.mark.parametrize("shape", ["{} ", "we use {}, ", "always {} (", "https://a.b/{} ", "{}-"])
def test_no_text_takes_long(shape: str) -> None:
    text = "".join(shape.format(f"word{n}") for n in range(5000))
    began = time.perf_counter()
    for size in (100, 390, 20_000):
        kept(text[:size])
        doubts.passing(text[:size])
        dates.named(text[:400], date(2026, 12, 2))
    list(passages.of_ask(Ask("a", SAID, text), Held.nothing()))
    assert time.perf_counter() - began < 2
