"""Edit: exact, unique, guarded, on record; refused in words, with the file as it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipymemory import markdown
from ipymemory.errors import IpymemoryError, ToolError
from ipymemory.history import History, Run
from ipymemory.prompts import NOTES_TEMPLATE
from ipymemory.tools import MOST_BYTES, EditTool, elision, notes_guard
from ipymemory.turns import ToolCall

GUARD = notes_guard(2000, 12_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = Path(os.path.realpath(tmp_path)) / "notes.md"
    path.write_text(NOTES_TEMPLATE)
    return path


@pytest.fixture
def run(path: Path) -> Run:
    return History(path.parent / "history").begin("notes", "scripted", "1 turn", ("t",), "s")


def edit(path: Path, run: Run, old: Any, new: Any, **more: Any) -> str:
    given = {"path": str(path), "old_string": old, "new_string": new, **more}
    return EditTool(GUARD).run(ToolCall("1", "Edit", given), run)


def italic(name: str) -> str:
    section = markdown.section(NOTES_TEMPLATE, name)
    assert section is not None
    return section.italic + "\n"


def test_an_edit_replaces_one_place_and_is_on_record(path: Path, run: Run) -> None:
    line = italic("Worklog")
    assert edit(path, run, line, line + "- loaded a.csv [1]\n") == "notes.md was edited."
    assert path.read_text() == NOTES_TEMPLATE + "- loaded a.csv [1]\n"
    assert run.written == (path,)
    assert "+- loaded a.csv [1]" in History(path.parent / "history").diff()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("not there", "x", "is not in the file"),
        ("# ", "x", "more than once"),
        ("", "x", "old_string is empty"),
        ("# Worklog", "# Worklog", "nothing would change"),
        (None, "x", "needs old_string as text"),
        ("x", None, "needs new_string as text"),
        ("x", 3, "needs new_string as text"),
        ("x", "y" * (MOST_BYTES + 1), "new_string is longer than 1024 KB"),
        ("y" * 10_000_000, "x", "old_string is longer than 1024 KB"),
        ("Worklog\n", "Worklog\n\0", r"control character '\x00'"),
        ("Worklog\n", "Worklog\n\x1b[31m", r"control character '\x1b'"),
        ("Worklog\n", "Worklog\r# Hidden\n", r"control character '\r'"),
        ("actly once", "\ud800", "is not in the file"),
    ],
)
def test_an_edit_that_cannot_be_made_is_an_answer(
    path: Path, run: Run, old: Any, new: Any, said: str
) -> None:
    with pytest.raises(ToolError) as caught:
        edit(path, run, old, new)
    assert said in str(caught.value)
    assert path.read_text() == NOTES_TEMPLATE
    assert run.writes == 0


def test_overlapping_places_are_more_than_one(path: Path, run: Run) -> None:
    path.write_text("# A\n_i_\naaa\n")
    with pytest.raises(ToolError, match="more than once"):
        edit(path, run, "aa", "b")


def test_inputs_that_edit_does_not_know_are_told(path: Path, run: Run) -> None:
    with pytest.raises(ToolError, match="nothing else, such as 'replace_all'"):
        edit(path, run, "a", "b", replace_all=True)
    with pytest.raises(ToolError, match="needs path as text"):
        EditTool(GUARD).run(ToolCall("1", "Edit", {}), run)


def test_text_that_is_no_utf8_is_refused(path: Path, run: Run) -> None:
    line = italic("Worklog")
    with pytest.raises(ToolError, match="no text"):
        edit(path, run, line, line + "\ud800\n")
    path.write_bytes(b"# A\n_i_\n\xff\n")
    with pytest.raises(ToolError, match="not UTF-8"):
        edit(path, run, "_i_", "x")
    assert path.read_bytes() == b"# A\n_i_\n\xff\n"


def test_a_file_may_not_grow_without_end(path: Path, run: Run) -> None:
    line = italic("Worklog")
    edit(path, run, line, line + "x" * 700_000)
    with pytest.raises(ToolError, match="would grow past 1024 KB"):
        edit(path, run, "# Workflow\n" + italic("Workflow"), "# Workflow\n" + "y" * 700_000)


def test_windows_line_ends_stay(path: Path, run: Run) -> None:
    path.write_bytes(NOTES_TEMPLATE.replace("\n", "\r\n").encode())
    line = "# Worklog\n" + italic("Worklog")
    edit(path, run, line, line + "- one\n- two\n")
    data = path.read_bytes()
    assert data.endswith(b"- one\r\n- two\r\n")
    assert data.count(b"\n") == data.count(b"\r\n")


@pytest.mark.spec("S8")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# Workflow\n", "", 'loses or renames the header "# Workflow"'),
        ("# Workflow", "# Work flow", 'loses or renames the header "# Workflow"'),
        ("# Workflow", "## Workflow", 'loses or renames the header "# Workflow"'),
        ("# Workflow\n", "# Workflow \n", 'loses or renames the header "# Workflow"'),
        ("# Workflow\n", "```\n# Workflow\n", 'loses or renames the header "# Workflow"'),
        ("# Learnings", "# Mine\n_i_\n\n# Learnings", 'adds the header "# Mine"'),
        ("# Learnings", "   # Mine\n\n# Learnings", 'adds the header "# Mine"'),
        ("# Learnings", "# Worklog\n\n# Learnings", 'adds the header "# Worklog"'),
        ("_One terse", "_A terse", 'changes the italic line below "# Worklog"'),
        ("_One terse", "text\n_One terse", 'changes the italic line below "# Worklog"'),
        ("# Session Title", "words above\n# Session Title", "writes above the first header"),
    ],
)
def test_headers_and_italic_lines_survive_every_edit(
    path: Path, run: Run, old: str, new: str, said: str
) -> None:
    with pytest.raises(ToolError) as caught:
        edit(path, run, old, new)
    assert said in str(caught.value)
    assert "The file is as it was." in str(caught.value)
    assert path.read_text() == NOTES_TEMPLATE
    assert run.writes == 0


@pytest.mark.spec("S8")
def test_sections_are_not_moved(path: Path, run: Run) -> None:
    one, two = markdown.sections(NOTES_TEMPLATE)[-2:]
    old = markdown.join("", (one, two))
    with pytest.raises(ToolError, match="moves a header"):
        edit(path, run, old, markdown.join("", (two, one)))
    assert path.read_text() == NOTES_TEMPLATE


WORDS = st.sampled_from(
    ["# Workflow", "# New", "_i_", "\n", "```", "~~~", "text", "- x", "  # In", "_", "\t", "\r\n"]
)


@pytest.mark.spec("S8")
@given(data=st.data())
def test_whatever_is_edited_the_skeleton_stays(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = Path(os.path.realpath(tmp_path_factory.getbasetemp())) / "notes.md"
    path.write_text(NOTES_TEMPLATE)
    run = History(path.parent / "history").begin("notes", "scripted", "", (), "s")
    begin = data.draw(st.integers(0, len(NOTES_TEMPLATE)))
    end = data.draw(st.integers(begin, min(begin + 80, len(NOTES_TEMPLATE))))
    new = "".join(data.draw(st.lists(WORDS, max_size=6)))
    try:
        edit(path, run, NOTES_TEMPLATE[begin:end], new)
    except ToolError:
        assert path.read_text() == NOTES_TEMPLATE
    assert markdown.skeleton(path.read_text()) == markdown.skeleton(NOTES_TEMPLATE)


@pytest.mark.parametrize(
    "line",
    [
        "... rest unchanged",
        "(rest of the notes unchanged)",
        "[remaining sections omitted]",
        "<!-- other sections stay the same -->",
        "# ... existing code ...",
        "// ... existing content here ...",
        "... (the rest of the file remains the same) ...",
        "- rest of the section as before",
        "_(unchanged)_",
        "[... snip ...]",
        "… previous notes …",
    ],
)
def test_marks_that_stand_for_other_text_are_refused(path: Path, run: Run, line: str) -> None:
    old = italic("Worklog")
    with pytest.raises(ToolError, match="Write it out in full"):
        edit(path, run, old, f"{old}- a step\n{line}\n")
    assert path.read_text() == NOTES_TEMPLATE
    assert elision(line, line) == "", "what stood there already may stay"


@pytest.mark.parametrize(
    "line",
    [
        "- kept the rest of the rows unchanged [7]",
        "- [7] the rest of the pipeline stays the same",
        "- `df.iloc[...]` leaves the other columns as before, see [4]",
        '- "use the same file for the rest" [2]',
        "- other notebooks read clean.csv",
        "- Keep the file names in lower case here",
        "- existing tests pass: 12 passed in 0.3s",
        "...",
        "- remaining: 3 of 7 files",
    ],
)
def test_statements_are_no_such_marks(line: str) -> None:
    assert elision("- old\n", f"- old\n{line}\n") == ""


def test_bare_dots_are_a_mark_only_where_text_went() -> None:
    assert elision("- one\n- two\n- three\n", "- one\n...\n") == "..."
    assert elision("- one\n", "- one\n- table:\n...\n") == ""


def filled(**sizes: int) -> str:
    """The template with so many tokens in the section that begins so."""
    parts = []
    for each in markdown.sections(NOTES_TEMPLATE):
        count = sizes.get(each.name.split()[0], 0)
        body = "".join(f"- step {n:05d}\n" for n in range(3 * count // 13)) + "\n"
        parts.append(markdown.Section(each.name, each.header, each.italic, body))
    return markdown.join("", parts)


def test_mass_loss_is_refused() -> None:
    before = filled(Worklog=1500, Learnings=300, Key=300)
    assert "empties the section" in GUARD(before, filled(Learnings=300, Key=300))
    assert "drops most" in GUARD(before, filled(Worklog=200, Learnings=300, Key=300))
    assert GUARD(before, filled(Worklog=1000, Learnings=300, Key=300)) == ""
    assert GUARD(filled(Worklog=100), filled()) == "", "what is small may go"


@pytest.mark.spec("S2")
def test_what_is_over_its_limit_may_be_condensed_but_not_dropped() -> None:
    before = filled(Worklog=6000, Learnings=300)
    assert GUARD(before, filled(Worklog=1900, Learnings=300)) == ""
    assert "drops most" in GUARD(before, filled(Worklog=100, Learnings=300))
    assert "empties" in GUARD(before, filled(Learnings=300))
    small = notes_guard(200, 12_000)
    assert small(filled(Worklog=1900), filled(Worklog=190)) == ""


def test_many_small_edits_may_not_do_what_one_may_not(path: Path, run: Run) -> None:
    path.write_text(filled(Worklog=1500))
    with pytest.raises(ToolError, match="drops most"):
        for n in range(300):
            edit(path, run, f"- step {n:05d}\n", "")
    left = markdown.section(path.read_text(), "Worklog")
    assert left is not None
    assert left.body.count("step") > 150


def test_a_persons_change_between_two_edits_is_the_new_beginning(path: Path, run: Run) -> None:
    path.write_text(filled(Worklog=1500))
    edit(path, run, "- step 00000\n", "- step zero\n")
    path.write_text(NOTES_TEMPLATE + "- by hand\n\n# My own\n_mine_\n")
    edit(path, run, "- by hand\n", "- by hand\n- by the engine\n")
    assert path.read_text().endswith("- by hand\n- by the engine\n\n# My own\n_mine_\n")


@pytest.mark.spec("L6")
def test_a_file_swapped_for_a_link_after_the_check_is_not_followed(path: Path, run: Run) -> None:
    outside = path.parent / "outside.md"
    outside.write_text(NOTES_TEMPLATE)
    path.unlink()
    path.symlink_to(outside)
    line = italic("Worklog")
    with pytest.raises(IpymemoryError, match="is a link"):
        edit(path, run, line, line + "- x\n")
    assert outside.read_text() == NOTES_TEMPLATE


def test_a_file_that_is_gone_is_told(path: Path, run: Run) -> None:
    path.unlink()
    with pytest.raises(ToolError, match="There is no file"):
        edit(path, run, "a", "b")
    assert not path.exists()


def test_the_spec_is_what_is_checked() -> None:
    spec = EditTool().spec
    assert spec.name == "Edit"
    assert set(spec.schema["required"]) == set(spec.schema["properties"])
