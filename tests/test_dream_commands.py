"""``%memory dream`` and ``ipymemory dream``: now, a dry run, the status, a kill, the way back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dream_set
import pytest
from test_memory_commands import Loaded, call, place, project, run

from ipymemory.commands import table
from ipymemory.config import Settings
from ipymemory.errors import CommandError
from ipymemory.jobs import dream
from ipymemory.memory_files import opened
from ipymemory.places import Project

__all__ = ["project"]

CONFIRM = {"Memory": {"mode": "confirm"}}


@pytest.fixture
def filled(project: Project) -> Project:
    dream_set.fill(opened(project, Settings()).folder, project.root, 50)
    return project


def texts(project: Project) -> dict[str, bytes]:
    folder = opened(project, Settings()).folder
    return {each.name: each.read_bytes() for each in folder.glob("*-*.md")}


class Working(Loaded):
    """A session whose worker dreams in this process."""

    worker = "running"

    def __init__(self, project: Project) -> None:
        super().__init__()
        self.project = project

    def ask(self, name: str, timeout: float, **arguments: Any) -> Any:
        if name == "dream_gate":
            return "next dream: 2 more sessions"
        assert name == "dream"
        confirmed = bool(arguments["confirmed"])
        return dream.dream(dream.Context(self.project, Settings(), confirmed=confirmed)).as_dict()


@pytest.mark.spec("D5", "D7")
def test_on_the_command_line_it_dreams_shows_the_diff_and_is_undone(
    filled: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    before = texts(filled)
    code, out, _ = run(capsys, "dream")
    assert code == 0
    assert "10 said again what another one says" in out
    assert "+++" in out and "ipymemory undo" in out and "ipymemory proposals" in out
    assert len(texts(filled)) == len(before) - 10
    code, out, _ = run(capsys, "undo")
    assert code == 0 and "dream" in out
    assert texts(filled) == before


@pytest.mark.spec("D6", "L12")
def test_in_a_notebook_the_page_holds_counts_and_no_memory(filled: Project) -> None:
    page = call(filled, "dream --now", live=Working(filled))
    assert "**10** said again" in page.markdown and "%memory undo" in page.markdown
    shown = f"{page.markdown} {page.text} {page.data}"
    assert "town" not in shown and "twin" not in shown
    page = call(filled, "dream", live=Working(filled))
    assert "ended: done" in page.markdown and "2 more sessions" in page.markdown
    assert "town" not in page.markdown


@pytest.mark.spec("D5")
def test_a_dry_run_shows_all_and_does_nothing(
    filled: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    before = texts(filled)
    page = call(filled, "dream --dry-run")
    assert "Nothing was changed" in page.markdown and "this Friday (2026-11-27)" in page.markdown
    assert texts(filled) == before
    code, out, _ = run(capsys, "dream", "--dry-run", "--json")
    assert code == 0 and '"merged": 10' in out


@pytest.mark.spec("L10")
def test_in_mode_confirm_it_asks_first(filled: Project) -> None:
    settings, before = Settings.read(CONFIRM)[0], texts(filled)
    page = call(filled, "dream", settings=settings)
    assert "waits for your yes" in page.markdown and texts(filled) == before
    asked: list[str] = []
    here = replace(place(filled, settings=settings), ask=lambda text: asked.append(text) or "y")
    page = table.call(here, ["dream"])
    assert "this Friday (2026-11-27)" in asked[0] and "said again" in page.markdown
    assert len(texts(filled)) == len(before) - 10
    with pytest.raises(CommandError, match="mode read"):
        call(filled, "dream", settings=Settings.read({"Memory": {"mode": "read"}})[0])


@pytest.mark.spec("D6")
def test_a_kill_with_nothing_to_kill_says_so(
    filled: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "No dream is running" in run(capsys, "dream", "--kill")[1]
    run(capsys, "dream")
    assert "No dream is running" in run(capsys, "dream", "--kill")[1]
    assert "ended: done" in run(capsys, "dream", "--status")[1]
    assert run(capsys, "dream", "--kill", "--now")[0] == 2


@pytest.mark.spec("D2")
def test_while_another_dreams_the_exit_code_is_three(
    filled: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    held = dream.lock(filled, opened(filled, Settings())).take()
    assert not isinstance(held, dream.Busy)
    try:
        assert run(capsys, "dream")[0] == 3
    finally:
        held.roll_back()


@pytest.mark.spec("D5")
def test_an_undo_goes_around_a_memory_that_was_edited_since(
    filled: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    before = texts(filled)
    run(capsys, "dream")
    path = opened(filled, Settings()).folder / "dated-0.md"
    edited = path.read_bytes() + b"And in two copies.\n"
    path.write_bytes(edited)
    code, out, _ = run(capsys, "undo")
    assert code == 0 and "left as they are" in out and "dated-0.md" in out
    assert texts(filled) == {**before, "dated-0.md": edited}


def test_the_question_of_a_contradiction_says_why(
    filled: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "dream")
    out = run(capsys, "proposals")[1]
    assert "forget port-0-old, since port-0-new, which is newer" in out


def test_nothing_to_tidy_is_said(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "dream")
    assert code == 2 and "no memories yet" in out
    run(capsys, "remember", "Keep", "dates", "day-first")
    code, out, _ = run(capsys, "dream")
    assert code == 0 and "nothing to tidy" in out
