"""Edit on exactly one file, by whatever name it is called; nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ipymemory.permissions import Allow, Deny, OnlyFile
from ipymemory.turns import ToolCall


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = Path(os.path.realpath(tmp_path)) / "session"
    path.mkdir()
    (path / "notes.md").write_text("notes")
    (path / "other.md").write_text("other")
    (path.parent / "outside.md").write_text("outside")
    return path


def check(folder: Path, path: Any, name: str = "Edit", **more: Any) -> Allow | Deny:
    call = ToolCall("1", name, {"path": path, "old_string": "a", "new_string": "b", **more})
    return OnlyFile(folder / "notes.md").check(call)


@pytest.mark.spec("S7", "L6")
@pytest.mark.parametrize(
    "named", ["{}/notes.md", "notes.md", "./notes.md", "{}/../session/notes.md", "{}//notes.md"]
)
def test_every_name_of_the_one_file_is_allowed_and_made_plain(folder: Path, named: str) -> None:
    verdict = check(folder, named.format(folder))
    assert isinstance(verdict, Allow)
    assert verdict.call.input["path"] == str(folder / "notes.md")
    assert verdict.call.input["old_string"] == "a"


@pytest.mark.spec("S7", "L6")
@pytest.mark.parametrize(
    "named",
    [
        "{}/other.md",
        "other.md",
        "../outside.md",
        "{}/../outside.md",
        "{}",
        "",
        ".",
        "..",
        "/",
        "/etc/passwd",
        "~/notes.md",
        "notes.md\0",
        "notes.md\0/../other.md",
        "notes.md/x",
        "\ud800",
        "n" * 300,
        "x/" * 2000,
        "x" * 10_000_000,
        None,
        7,
        ["notes.md"],
        {"path": "notes.md"},
        b"notes.md",
    ],
)
def test_everything_else_is_denied_and_told_what_is_allowed(folder: Path, named: Any) -> None:
    verdict = check(folder, named.format(folder) if isinstance(named, str) else named)
    assert isinstance(verdict, Deny)
    assert f"Only Edit on {folder / 'notes.md'} is allowed here." in verdict.message
    assert len(verdict.message) < 1000
    assert verdict.message.isprintable()


@pytest.mark.spec("S7")
@pytest.mark.parametrize("tool", ["Write", "Read", "edit", "Bash", "", "Edit ", "x" * 10_000_000])
def test_other_tools_are_denied(folder: Path, tool: str) -> None:
    verdict = check(folder, str(folder / "notes.md"), tool)
    assert isinstance(verdict, Deny)
    assert "Only Edit on" in verdict.message
    assert len(verdict.message) < 1000


@pytest.mark.spec("S7")
@pytest.mark.parametrize("given", [None, "path=notes.md", [], 3])
def test_an_input_that_is_none_is_denied(folder: Path, given: Any) -> None:
    assert isinstance(OnlyFile(folder / "notes.md").check(ToolCall("1", "Edit", given)), Deny)


@pytest.mark.spec("L6")
def test_links_are_resolved(folder: Path) -> None:
    (folder.parent / "way").symlink_to(folder)
    (folder / "to-other.md").symlink_to(folder / "other.md")
    (folder / "to-notes.md").symlink_to(folder / "notes.md")
    assert isinstance(check(folder, str(folder.parent / "way" / "notes.md")), Allow)
    assert isinstance(check(folder.parent / "way", str(folder / "notes.md")), Allow)
    assert isinstance(check(folder, "to-other.md"), Deny)
    assert isinstance(check(folder, "to-notes.md"), Deny)


@pytest.mark.spec("L6")
def test_a_file_that_became_a_link_is_denied(folder: Path) -> None:
    (folder / "notes.md").unlink()
    (folder / "notes.md").symlink_to(folder.parent / "outside.md")
    verdict = check(folder, str(folder / "notes.md"))
    assert isinstance(verdict, Deny)
    assert "is a link to somewhere else" in verdict.message


@pytest.mark.spec("L6")
def test_case_counts_where_the_file_system_says_so(folder: Path) -> None:
    upper = folder / "NOTES.MD"
    verdict = check(folder, str(upper))
    if upper.exists():  # a file system that does not tell them apart
        assert isinstance(verdict, Allow)
        assert verdict.call.input["path"] == str(folder / "notes.md")
    else:
        assert isinstance(verdict, Deny)
        upper.write_text("another file")
        assert isinstance(check(folder, str(upper)), Deny)
        # the same file by a name in another case, as such a file system shows it
        upper.unlink()
        os.link(folder / "notes.md", upper)
        verdict = check(folder, str(upper))
        assert isinstance(verdict, Allow)
        assert verdict.call.input["path"] == str(folder / "notes.md")


def test_a_file_that_is_not_there_yet_is_allowed_by_its_own_name(folder: Path) -> None:
    (folder / "notes.md").unlink()
    assert isinstance(check(folder, "notes.md"), Allow)
    assert isinstance(check(folder, "other.md"), Deny)
