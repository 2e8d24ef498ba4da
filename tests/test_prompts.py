"""Templates and prompts, ours and the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipymemory import markdown, prompts

TEN = [
    "Session Title",
    "Current State",
    "Task specification",
    "Files and Functions",
    "Workflow",
    "Errors & Corrections",
    "Codebase and System Documentation",
    "Learnings",
    "Key results",
    "Worklog",
]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "config" / "session-notes"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.mark.spec("S1")
def test_the_built_in_template_has_the_ten_sections_in_order(
    tmp_path: Path, warnings: list[str]
) -> None:
    text = prompts.notes_template(tmp_path / "config", warnings.append)
    found = markdown.sections(text)
    assert [each.name for each in found] == TEN
    assert all(each.header == f"# {each.name}" for each in found)
    assert all(each.italic.startswith("_") and each.italic.endswith("_") for each in found)
    assert all("\n" not in each.italic and not each.body.strip() for each in found)
    assert warnings == []


@pytest.mark.spec("S9")
def test_the_users_template_replaces_ours(own: Path, warnings: list[str]) -> None:
    (own / "template.md").write_bytes(b"\xef\xbb\xbf# Mine\n\n_my own line_\n\n# Worklog\n_steps_")
    text = prompts.notes_template(own.parent, warnings.append)
    assert text == "# Mine\n\n_my own line_\n\n# Worklog\n_steps_\n"
    assert warnings == []


@pytest.mark.spec("S9")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"only words\n", "has no section"),
        (b"", "has no section"),
        (
            b"# One\n_i_\n\n# Two\ntext\n",
            'no italic line such as "_what belongs here_" below "# Two"',
        ),
        (b"# One\n_i_\n# one\n_j_\n", 'has the header "# One" twice'),
        (b"# \n_i_\n", "has a header without a name"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (b"# One\n_i_\n" + b"x" * 300_000, "is larger than 256 KB"),
    ],
)
def test_a_template_that_cannot_be_used_is_one_warning(
    own: Path, warnings: list[str], data: bytes, said: str
) -> None:
    path = own / "template.md"
    path.write_bytes(data)
    for _ in range(3):
        assert prompts.notes_template(own.parent, warnings.append) == prompts.NOTES_TEMPLATE
    assert len(warnings) == 1
    assert said in warnings[0]
    assert str(path) in warnings[0]
    assert "Mend the file or delete it." in warnings[0]
    assert path.read_bytes() == data, "the user's file is left alone"


@pytest.mark.spec("S9")
def test_a_mended_template_counts_and_a_new_fault_is_told(own: Path, warnings: list[str]) -> None:
    path = own / "template.md"
    path.write_text("words")
    prompts.notes_template(own.parent, warnings.append)
    path.write_text("# One\n_i_\n")
    assert prompts.notes_template(own.parent, warnings.append) == "# One\n_i_\n"
    path.write_text("words")
    prompts.notes_template(own.parent, warnings.append)
    assert len(warnings) == 2


@pytest.mark.spec("S9")
def test_a_folder_in_the_templates_place_is_one_warning(own: Path, warnings: list[str]) -> None:
    (own / "template.md").mkdir()
    (own / "prompt.md").mkdir()
    for _ in range(2):
        assert prompts.notes_template(own.parent, warnings.append) == prompts.NOTES_TEMPLATE
        prompts.notes_prompt(own.parent, notes="", path="", sizes="", warn=warnings.append)
    assert len(warnings) == 2


@pytest.mark.spec("S9")
def test_variables_of_the_users_prompt(own: Path, warnings: list[str]) -> None:
    (own / "prompt.md").write_text("N={{notes}} P={{ path }} S={{sizes}} {{other}} {{ {single}")
    text = prompts.notes_prompt(
        own.parent, notes="has {{path}} in it", path="/n.md", sizes="big", warn=warnings.append
    )
    assert text == "N=has {{path}} in it P=/n.md S=big {{other}} {{ {single}"


@pytest.mark.spec("S9")
def test_an_empty_prompt_falls_back(own: Path, warnings: list[str]) -> None:
    (own / "prompt.md").write_text(" \n")
    text = prompts.notes_prompt(
        own.parent, notes="the notes", path="/n.md", sizes="", warn=warnings.append
    )
    assert "the notes" in text
    assert len(warnings) == 1
    assert "is empty, so the built-in prompt is used" in warnings[0]


@pytest.mark.spec("S2")
def test_oversized_names_each_section_and_the_total() -> None:
    notes = "# A\n_i_\n" + "x" * 900 + "\n# B\n_j_\nshort\n# C\n_k_\n" + "y" * 450 + "\n"
    assert prompts.oversized(notes, section_tokens=1000, total_tokens=1000) == ""
    text = prompts.oversized(notes, section_tokens=100, total_tokens=1000)
    assert "- A: 301 of at most 100 tokens" in text
    assert "- C: 151 of at most 100 tokens" in text
    assert "- B" not in text
    assert "all sections" not in text
    text = prompts.oversized(notes, section_tokens=1000, total_tokens=200)
    assert "- all sections:" in text
    assert "Condense" in text


@pytest.mark.spec("S2")
@pytest.mark.parametrize("own_prompt", [None, "Just do it.", "Do it. {{sizes}}"])
def test_every_prompt_names_what_is_oversized(
    own: Path, warnings: list[str], own_prompt: str | None
) -> None:
    if own_prompt is not None:
        (own / "prompt.md").write_text(own_prompt)
    sizes = prompts.oversized("# A\n_i_\n" + "x" * 900, section_tokens=100, total_tokens=1000)
    text = prompts.notes_prompt(
        own.parent, notes="n", path="/n.md", sizes=sizes, warn=warnings.append
    )
    assert text.count("- A: 300 of at most 100 tokens") == 1


@pytest.mark.spec("S13")
def test_the_built_in_prompt_asks_for_what_s13_says(tmp_path: Path) -> None:
    text = prompts.notes_prompt(tmp_path, notes="NOTES", path="/n.md", sizes="", warn=str)
    for wanted in (
        "Always refresh Current State",
        "Add, move and rename none",
        "do not mention that notes are taken",
        "system\n  prompt, the memory index and any earlier summary",
        "Lines that a person wrote or changed by hand stay",
    ):
        assert wanted in text
    assert "{{" not in text
