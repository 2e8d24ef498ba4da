"""What a person changed by hand stays, however often the engine has something new to say."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import Session, frame

from ipymemory import markdown
from ipymemory.extractive import ExtractiveModel, NotesMaterial, merge
from ipymemory.extractive.merging import blocks, by_hand, subject
from ipymemory.models import Request
from ipymemory.prompts import NOTES_TEMPLATE
from ipymemory.tools import replaced
from ipymemory.turns import tokens

pytestmark = pytest.mark.spec("S13")


class Notes:
    """A notes file that the engine keeps up to date and a person edits."""

    def __init__(self) -> None:
        self.session = Session()
        self.text = NOTES_TEMPLATE
        self.base = NOTES_TEMPLATE
        self.limits = (2000, 12_000)

    def update(self) -> None:
        """Let the engine write as the job does: edits applied, then the new base kept."""
        material = NotesMaterial(
            tuple(self.session.entries), "n.ipynb", self.text, self.base, "notes.md", *self.limits
        )
        model = ExtractiveModel()
        for call in asyncio.run(model.complete(Request("", (), (), material))).calls:
            old, new = str(call.input["old_string"]), str(call.input["new_string"])
            self.text = replaced(self.text, old, new)
        self.base = model.written(material)

    def lines(self, name: str) -> list[str]:
        """Return the lines of a section that are not blank."""
        found = markdown.section(self.text, name)
        assert found is not None
        return [line for line in found.body.splitlines() if line.strip()]

    def change(self, old: str, new: str) -> None:
        """Edit the file by hand."""
        assert self.text.count(old) == 1
        self.text = self.text.replace(old, new)


@pytest.fixture
def notes() -> Notes:
    made = Notes()
    session = made.session
    session.cell('raw = pd.read_csv("a.csv")', names=[frame("raw", "9 x 2", "a", "b")])
    session.cell("raw['x']", error=("KeyError", "'x'", "raw['x']"))
    session.cell("print('accuracy: 0.9')", out="accuracy: 0.9\n")
    made.update()
    return made


def test_an_added_line_keeps_its_place(notes: Notes) -> None:
    line = "- `accuracy: 0.9` [3]\n"
    notes.change(line, line + "- that was on the wrong split\n")
    notes.session.cell("print('f1: 0.8')", out="f1: 0.8\n")
    for _ in range(3):
        notes.update()
        assert notes.lines("Key results") == [
            "- `accuracy: 0.9` [3]",
            "- that was on the wrong split",
            "- `f1: 0.8` [4]",
        ]


def test_a_changed_line_stands_in_the_place_of_the_engines(notes: Notes) -> None:
    notes.change("- [3] `accuracy: 0.9`", "- [3] `accuracy: 0.9`, which I do not believe")
    notes.session.cell("y = raw")
    notes.update()
    log = notes.lines("Worklog")
    assert log[2:] == ["- [3] `accuracy: 0.9`, which I do not believe", "- [4] `y` from `raw`"]


def test_a_changed_line_wins_when_the_engine_learns_more_of_its_subject(notes: Notes) -> None:
    found = next(line for line in notes.lines("Errors") if "KeyError" in line)
    notes.change(found, "- [2] `KeyError: 'x'`: the column is called y in the new export")
    notes.session.cell("raw['a']", value="1")
    notes.update()
    notes.update()
    assert notes.lines("Errors") == [
        "- [2] `KeyError: 'x'`: the column is called y in the new export"
    ]


def test_a_line_that_was_taken_out_does_not_come_back(notes: Notes) -> None:
    notes.change("- `accuracy: 0.9` [3]\n", "")
    notes.session.cell("y = 1")
    for _ in range(3):
        notes.update()
        assert notes.lines("Key results") == []


def test_the_current_state_is_refreshed_beside_a_persons_line(notes: Notes) -> None:
    found = next(line for line in notes.lines("Current State") if line.startswith("- Last"))
    notes.change(found, found + " (waiting for Ann)")
    notes.session.cell("y = raw.sum()")
    notes.update()
    state = notes.lines("Current State")
    assert found + " (waiting for Ann)" in state
    assert any(line.startswith("- Last, [4]") for line in state)


def test_a_persons_own_sections_headers_and_italic_lines_stay(notes: Notes) -> None:
    mine = "# Plan\nno italic line here\n\n1. one\n2. two\n\n"
    notes.change("# Worklog\n", mine + "# Worklog\n")
    notes.change("_One terse line for each step in order", "_MY OWN WORDS, one line for each step")
    before = markdown.skeleton(notes.text)
    notes.session.cell("y = 1")
    notes.update()
    assert markdown.skeleton(notes.text) == before
    assert mine in notes.text
    assert notes.lines("Worklog")[-1] == "- [4] `y = 1`"


def test_a_section_that_a_person_took_out_or_renamed_is_not_put_back(notes: Notes) -> None:
    notes.change("# Learnings\n", "# What I learned\n")
    start = notes.text.index("# Workflow")
    notes.text = notes.text[:start] + notes.text[notes.text.index("# Errors") :]
    notes.session.prose("We decided to stop, because of the rain.")
    notes.session.cell("y = 1")
    notes.update()
    names = [each.name for each in markdown.sections(notes.text)]
    assert "Workflow" not in names and "Learnings" not in names
    assert notes.lines("What I learned") == []


def test_paragraphs_lists_and_fences_of_a_persons_keep_their_lines(notes: Notes) -> None:
    mine = "My view:\n\n```sql\nselect 1\n\nfrom a\n```\n- item\n  - inner\n"
    line = "- `accuracy: 0.9` [3]\n"
    notes.change(line, line + mine)
    notes.session.cell("print('f1: 0.8')", out="f1: 0.8\n")
    notes.update()
    assert line + mine + "- `f1: 0.8` [4]\n" in notes.text


def test_a_persons_table_below_a_bullet_of_the_engines(notes: Notes) -> None:
    notes.session.cell("raw.groupby('a').sum()", value="a   b\n1   2\n3   4")
    notes.update()
    notes.change("      3   4\n", "      3   4   <- odd\n")
    notes.session.cell("y = 1")
    notes.update()
    assert "      3   4   <- odd\n" in notes.text
    assert notes.text.count("raw.groupby('a').sum()` [4]\n") == 1


def test_without_a_base_nothing_of_a_persons_is_lost(notes: Notes) -> None:
    notes.change("- `accuracy: 0.9` [3]\n", "- `accuracy: 0.9` [3] is wrong\n- more of mine\n")
    notes.base = ""
    notes.session.cell("y = 1")
    notes.update()
    assert notes.lines("Key results") == ["- `accuracy: 0.9` [3] is wrong", "- more of mine"]
    assert any(line.startswith("- Last, [4]") for line in notes.lines("Current State"))


def test_what_was_condensed_away_leaves_a_persons_line_standing(notes: Notes) -> None:
    notes.change("- [3] `accuracy: 0.9`", "- [3] `accuracy: 0.9` MINE")
    for n in range(400):
        notes.session.cell(f"value_{n} = compute({n})\nprint('metric_{n}: {n}')", out=f"m_{n}: 1\n")
    notes.update()
    assert [line for line in notes.lines("Worklog") if "MINE" in line]
    assert tokens(notes.text) <= 12_000


@pytest.mark.spec("S2")
def test_the_engine_makes_room_for_what_a_person_wrote(notes: Notes) -> None:
    notes.limits = (400, 3000)
    mine = "".join(f"- my own remark number {n} about this and that\n" for n in range(15))
    found = notes.lines("Worklog")[-1] + "\n"
    notes.change(found, found + mine)
    for n in range(60):
        notes.session.cell(f"value_{n} = compute({n})")
    notes.update()
    assert mine in notes.text
    worklog = markdown.section(notes.text, "Worklog")
    assert worklog is not None and tokens(worklog.body) <= 400


def test_merging_values() -> None:
    assert merge("", "", "# A\n_a_\n\n- x\n") == "# A\n_a_\n\n- x\n"
    assert merge("", "mine\n", "# A\n_a_\n\n- x\n") == "mine\n"
    current = "# a\n_mine_\n\n- x\n"
    assert merge("# A\n_a_\n\n- x\n", current, "# A\n_a_\n\n- y\n") == "# a\n_mine_\n\n- y\n"
    assert by_hand("# A\n_a_\n\n- x\n", "# A\n_a_\n\n- x\n- y\n") == {"a": 4}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- [4] `KeyError: 'x'` at `a`; open", "[4]"),
        ("- [4], [5] `KeyError: 'x'` at `a`; open", "[4]"),
        ("- k2[1]–k2[9] again unchanged: `a`", "k2[1] again unchanged"),
        ("- [7] warns `W: no`", "[7] warns"),
        ("- `a.csv` read by `open` [3]", "`a.csv`"),
        ("- Last, [3]: `x`", "Last, [3]: `x`"),
        ('- "quoted words" (text above [1])', '"quoted words"'),
        ("- In memory: `a` (list) [1], `b`", "In memory"),
        ("- my own", "my own"),
    ],
)
def test_subjects(line: str, expected: str) -> None:
    assert subject(line) == expected


def test_blocks_keep_what_belongs_together() -> None:
    assert blocks("\n- a\n\n      table\n      row\n- b\n\npara\n  more\n\n") == [
        "- a\n\n      table\n      row",
        "- b",
        "",
        "para\n  more",
    ]


LINE = st.sampled_from(
    ["- [1] a", "- [2] b", "- [3] c", "- `x` 1", "- `y` 2", "mine", "- own", "", "      deep", "p"]
)
BODY = st.lists(LINE, max_size=8).map("\n".join)
ENGINES = st.lists(LINE, max_size=8, unique_by=subject).map("\n".join)


def file(body: str) -> str:
    return f"# A\n_a_\n\n{body}\n\n# B\n_b_\n"


@settings(max_examples=150, deadline=None)
@given(ENGINES, BODY, ENGINES)
def test_merging_keeps_every_line_that_only_the_person_has(base: str, here: str, new: str) -> None:
    merged = merge(file(base), file(here), file(new))
    assert markdown.skeleton(merged) == markdown.skeleton(file(here))
    kept = merged.splitlines()
    for line in here.splitlines():
        if line.strip() and line not in base.splitlines():
            assert kept.count(line) >= 1
    # Once merged, the same again changes nothing.
    assert merge(file(new), merged, file(new)) == merged


@settings(max_examples=60, deadline=None)
@given(ENGINES, ENGINES)
def test_without_edits_the_engines_text_stands(base: str, new: str) -> None:
    merged = merge(file(base), file(base), file(new))
    assert blocks(markdown.sections(merged)[0].body) == blocks(f"\n{new}\n\n")
