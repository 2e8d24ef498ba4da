"""Which text is a living document, and what of a cell counts for its staleness."""

from __future__ import annotations

import time

import pytest

from ipymemory.documents import find, fingerprint


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


BASE = "def f(a, b):\n    if a:\n        return '# x  y'\n    return [a, b]\n%time f(1, 2)\n"


@pytest.mark.spec("M9")
@pytest.mark.parametrize(
    "source",
    [
        BASE.replace("\n", "\r\n"),
        BASE.replace("    ", "  "),
        BASE.replace("    ", "\t"),
        "# why\n\n" + BASE.replace("if a:", "if  a :  # when there is one\n\n"),
        BASE.replace("[a, b]", "[\n  a,  # first\nb]"),
        BASE.replace("%time f", "%time   f"),
    ],
)
def test_white_space_and_comments_are_no_staleness(source: str) -> None:
    assert fingerprint(source) == fingerprint(BASE)


@pytest.mark.spec("M9")
@pytest.mark.parametrize(
    "source",
    [
        BASE.replace("# x  y", "# x y"),
        BASE.replace("# x", "# z"),
        BASE.replace("    return [", "        return ["),
        BASE.replace("f(1, 2)", "f(1, 3)"),
        BASE.replace("if a:", "if b:"),
        BASE.replace("%time", "%timeit"),
    ],
)
def test_what_changes_a_step_is_staleness(source: str) -> None:
    assert fingerprint(source) != fingerprint(BASE)


@pytest.mark.spec("M9")
def test_in_another_language_a_hash_sign_is_no_comment() -> None:
    assert fingerprint("%%html\n<a href='#x'>") != fingerprint("%%html\n<a href='#y'>")
    assert fingerprint("!curl host/#x") != fingerprint("!curl host/#y")


@pytest.mark.spec("M9")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('print(f"{a["#x"]} y")', 'print(f"{a["#z"]} y")'),
        ('print(f"{a["x y"]}")', 'print(f"{a["x  y"]}")'),
        ("names = !ls  *.csv # a", "names = !ls  *.csv # b"),
        ("a, b = %sql select '#1'", "a, b = %sql select '#2'"),
    ],
)
def test_strings_within_strings_and_kept_commands_count(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.spec("M9")
def test_a_cell_that_does_nothing_has_no_hash() -> None:
    assert fingerprint("# only a comment\n\n") == "" == fingerprint("")
    assert fingerprint('f"{a}"  # x') == fingerprint('f"{a}"') != ""
    assert fingerprint("a != b  # x") == fingerprint("a != b")


@pytest.mark.spec("M1", "M9")
def test_hostile_text_takes_no_time() -> None:
    begin = time.perf_counter()
    for text in (
        "# MAGIC DOC:" + " #" * 500_000 + "x",
        "# MAGIC DOC: a" + " \t" * 500_000 + "x",
        "# MAGIC DOC: a\n_" + "a_ " * 500_000 + "x",
        " " * 1_000_000,
    ):
        find(text)
    for text in ('f"{' * 60_000, "f'''{" * 40_000, "((" * 100_000, "a = " * 50_000, "'" * 199_999):
        fingerprint(text)
    fingerprint("x + 1\n" * 1_000_000)
    assert time.perf_counter() - begin < 5
