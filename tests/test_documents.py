"""Which text is a living document."""

from __future__ import annotations

import time

import pytest

from ipymemory.documents import find


@pytest.mark.spec("M1")
@pytest.mark.parametrize(
    ("text", "title", "instruction"),
    [
        ("# MAGIC DOC: Pipeline", "Pipeline", ""),
        ("\n \n###### magic  Doc :Two words  ##\r\n", "Two words", ""),
        ("# MAGIC DOC: a\n_Be brief._\nbody", "a", "_Be brief._"),
        ("\ufeff# MAGIC DOC: a\r\n\r\n*Be brief.*\r\nbody", "a", "*Be brief.*\r"),
        ("# MAGIC DOC: a\n\n\n_Too far below._\n", "a", ""),
        ("# MAGIC DOC: a\n**bold is no instruction**\n", "a", ""),
    ],
)
def test_a_document_with_its_instruction(text: str, title: str, instruction: str) -> None:
    found = find(text)
    assert found is not None
    assert (found.title, found.instruction) == (title, instruction)
    assert found.heading in text[: found.end]
    assert text[: found.end].rstrip().endswith((found.instruction or found.heading).rstrip())


@pytest.mark.spec("M1")
@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\n",
        "Words first\n# MAGIC DOC: a",
        "```\n# MAGIC DOC: a\n```",
        "    # MAGIC DOC: code",
        "####### MAGIC DOC: seven",
        "#MAGIC DOC: no space",
        "# MAGIC DOC:  ",
        "# MAGIC DOCUMENT: a",
    ],
)
def test_what_is_no_document(text: str) -> None:
    assert find(text) is None


@pytest.mark.spec("M1")
def test_a_file_begins_at_level_one() -> None:
    assert find("# MAGIC DOC: a", levels=1)
    assert find("## MAGIC DOC: a", levels=1) is None


@pytest.mark.spec("M1")
def test_hostile_text_takes_no_time() -> None:
    begin = time.perf_counter()
    for text in (
        "# MAGIC DOC:" + " #" * 500_000 + "x",
        "# MAGIC DOC: a" + " \t" * 500_000 + "x",
        "# MAGIC DOC: a\n_" + "a_ " * 500_000 + "x",
        " " * 1_000_000,
    ):
        find(text)
    assert time.perf_counter() - begin < 5
