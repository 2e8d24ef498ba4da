"""Sections, taken apart and put together byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipymemory import markdown
from ipymemory.prompts import NOTES_TEMPLATE
from ipymemory.turns import tokens

NOTES = """\
above the first header
# One
_what belongs in one_

- a line
```python
# not a header
```
# Two

*stars and a blank line above*
## a smaller header is content
# Three
no italic line here
"""


def test_sections_have_name_header_italic_and_body() -> None:
    one, two, three = markdown.sections(NOTES)
    assert (one.name, one.header, one.italic) == ("One", "# One", "_what belongs in one_")
    assert one.body == "\n- a line\n```python\n# not a header\n```\n"
    assert two.italic == "\n*stars and a blank line above*"
    assert two.body == "## a smaller header is content\n"
    assert (three.italic, three.body) == ("", "no italic line here\n")
    assert markdown.preamble(NOTES) == "above the first header\n"


def test_text_without_a_header_is_all_preamble() -> None:
    assert markdown.sections("just words\n") == ()
    assert markdown.preamble("just words\n") == "just words\n"


@pytest.mark.parametrize(
    "line", ["#no space", "## Two", "    # code", "#", "\t# code", "text # Three", "#\u00a0Odd"]
)
def test_what_is_no_header(line: str) -> None:
    assert [each.name for each in markdown.sections(f"# One\n{line}\n")] == ["One"]


@pytest.mark.parametrize("line", ["# Two", "   # Two", "#\tTwo", "# Two #", "# Two  \r"])
def test_what_is_a_header_for_a_reader(line: str) -> None:
    found = markdown.sections(f"# One\n{line}\n")
    assert [each.name for each in found] == ["One", "Two"]
    assert found[1].header == line


@pytest.mark.parametrize(
    "fence",
    [
        "```\n# x\n```",
        "~~~ python\n# x\n```\n# y\n~~~",
        "````\n```\n# x\n````",
        "  ```\n# x\n  ```",
        "```\n# x\n``` no end\n# y\n```",
        "```\n# x\n`````",
    ],
)
def test_fences_hide_headers(fence: str) -> None:
    assert [each.name for each in markdown.sections(f"# One\n{fence}\n# Two\n")] == ["One", "Two"]


def test_inline_code_is_no_fence() -> None:
    assert len(markdown.sections("# One\n```a ``` b`\n# Two\n")) == 2


def test_only_a_line_feed_ends_a_line() -> None:
    text = "# One\n_i_\nform\x0cfeed\u2028separator\x85next\r# Two\n"
    assert [each.name for each in markdown.sections(text)] == ["One"]


def test_windows_lines_and_a_byte_order_mark_stay() -> None:
    text = "\ufeff# One\r\n_i_\r\nbody\r\n# Two\r\n_j_\r\n"
    assert markdown.skeleton(text) == (("# One\r", "_i_\r"), ("# Two\r", "_j_\r"))
    assert [each.name for each in markdown.sections(text)] == ["One", "Two"]
    assert markdown.join(markdown.preamble(text), markdown.sections(text)) == text


@pytest.mark.spec("S8")
def test_skeleton_is_exact() -> None:
    assert markdown.skeleton(NOTES_TEMPLATE) != markdown.skeleton(
        NOTES_TEMPLATE.replace("# Workflow\n", "# Workflow \n")
    )
    assert markdown.skeleton(NOTES_TEMPLATE) == markdown.skeleton(
        NOTES_TEMPLATE.replace("\n\n# Workflow", "\n\nnew content\n\n# Workflow")
    )


PIECES = st.sampled_from(
    [
        "# A",
        "# B\r",
        "## C",
        "_i_",
        "*j*",
        "",
        " ",
        "```",
        "~~~",
        "text",
        "\ufeff",
        "_",
        "# ",
        "é\x0c",
    ]
)


@given(st.lists(PIECES, max_size=12))
def test_join_gives_back_what_sections_took(lines: list[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    assert markdown.join(markdown.preamble(text), markdown.sections(text)) == text


def test_section_is_found_as_people_type_it() -> None:
    def found(name: str) -> str | None:
        section = markdown.section(NOTES_TEMPLATE, name)
        return section.name if section else None

    assert found("current state") == "Current State"
    assert found(" ERR ") == "Errors & Corrections"
    assert found("work") is None, "Workflow and Worklog both begin so"
    assert found("worklog") == "Worklog"
    assert found("") is None
    assert found("nothing") is None


@pytest.mark.spec("S11")
def test_cut_ends_at_a_line_and_says_how_much_is_missing() -> None:
    text = "".join(f"line {n} of many\n" for n in range(100))
    short = markdown.cut(text, 60)
    *lines, mark = short.splitlines()
    assert lines == [f"line {n} of many" for n in range(len(lines))]
    assert mark == f"_(cut here: {100 - len(lines)} more lines)_"
    assert len(lines) > 3
    assert tokens(short) <= 60
    assert markdown.cut(text, 10_000) == text


def test_cut_of_one_endless_line() -> None:
    short = markdown.cut("ä" * 5000, 50)
    assert short.startswith("ä" * 20)
    assert "cut here" in short
    assert tokens(short) <= 50
