"""A dream that waits for a yes: exactly what was shown is done, or nothing, by command or click."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dream_set
import pytest
from kernels import Kernel
from pages import Page as Browser
from test_memory_commands import Loaded, call, place, project, run

from ipymemory import dream_shown, dream_state, dream_undo, dream_waiting, page_dream
from ipymemory.commands import table
from ipymemory.config import Settings
from ipymemory.errors import CommandError, FormatError, HistoryError
from ipymemory.events import Bus, Event
from ipymemory.jobs import dream
from ipymemory.memory_files import opened
from ipymemory.page_messages import Refused
from ipymemory.places import Project

__all__ = ["project"]

CONFIRM = Settings.read({"Memory": {"mode": "confirm"}})[0]


@pytest.fixture
def filled(project: Project) -> Project:
    dream_set.fill(opened(project, CONFIRM).folder, project.root, 50)
    return project


def texts(project: Project) -> dict[str, bytes]:
    folder = opened(project, CONFIRM).folder
    return {each.name: each.read_bytes() for each in folder.glob("*-*.md")}


def waiting(project: Project) -> dream_waiting.Plan:
    assert dream.dream(dream.Context(project, CONFIRM)).status == "waiting"
    plan = dream_waiting.read(dream_state.place_of(project, CONFIRM))
    assert plan is not None
    return plan


def test_a_plan_is_kept_byte_for_byte_and_of_two_who_take_it_one_gets_it(filled: Project) -> None:
    records = dream_state.place_of(filled, CONFIRM)
    plan = waiting(filled)
    state = dream_state.state(filled, CONFIRM)
    assert (state["status"], state["id"]) == ("waiting", plan.id)
    assert state["counts"]["merged"] == 10 == plan.counts["merged"]
    before = {each.path.name: each.before for group in plan.groups for each in group}
    assert before.items() <= texts(filled).items()
    assert dream_waiting.take(records, plan.id) == plan
    with pytest.raises(FormatError, match="waits no longer"):
        dream_waiting.take(records, plan.id)
    assert not dream_waiting.there(records) and dream_waiting.read(records) is None
    (records / dream_waiting.NAME).write_text('{"version": 1, "groups": [[3]]}')
    assert dream_waiting.read(records) is None


@pytest.mark.spec("D5", "L10")
def test_a_yes_does_exactly_what_was_shown(filled: Project) -> None:
    plan, before = waiting(filled), texts(filled)
    # What came meanwhile is not in it, and what was changed meanwhile is left out.
    folder = opened(filled, CONFIRM).folder
    for name in ("twin-77-first", "twin-77-again"):
        text = before["twin-0-first.md"].replace(b"twin-0", b"twin-77").replace(b"town 0", b"t 77")
        (folder / f"{name}.md").write_bytes(text.replace(b"twin-77-first", name.encode()))
    edited = folder / "dated-0.md"
    edited.write_bytes(before["dated-0.md"] + b"And in two copies.\n")
    (folder / "dated-1.md").unlink()
    outcome = dream.dream(dream.Context(filled, CONFIRM), plan.id)
    assert outcome.status == "done" and outcome.counts["left_out"] == 2
    expected = {**texts(filled)}
    for group in plan.groups:
        for each in group:
            if each.path.name not in ("dated-0.md", "dated-1.md"):
                assert expected.get(each.path.name) == each.after, each.path.name
    assert (folder / "twin-77-again.md").exists() and (folder / "twin-77-first.md").exists()
    assert edited.read_bytes().endswith(b"two copies.\n")
    again = dream.dream(dream.Context(filled, CONFIRM), plan.id)
    assert again.status == "refused" and "No plan waits" in again.error


@pytest.mark.spec("D5", "L6")
def test_a_plan_that_names_another_file_is_refused(filled: Project, tmp_path: Path) -> None:
    plan = waiting(filled)
    other = tmp_path / "mine.md"
    other.write_bytes(b"mine")
    records = dream_state.place_of(filled, CONFIRM)
    path = records / dream_waiting.NAME
    told = json.loads(path.read_text())
    told["groups"].append([{"path": str(other), "before": "mine", "after": "theirs"}])
    path.write_text(json.dumps(told))
    before = texts(filled)
    outcome = dream.dream(dream.Context(filled, CONFIRM), plan.id)
    assert outcome.status == "failed" and "no memory" in outcome.error
    assert other.read_bytes() == b"mine" and texts(filled) == before


@pytest.mark.spec("D5", "L10")
def test_in_a_terminal_the_answer_decides_and_without_one_it_waits(
    filled: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    before = texts(filled)
    here = place(filled, settings=CONFIRM)
    page = table.call(replace(here, ask=lambda text: "n"), ["dream"])
    assert "dropped" in page.markdown and texts(filled) == before
    assert dream_state.state(filled, CONFIRM)["status"] == "dismissed"
    page = call(filled, "dream", settings=CONFIRM)
    assert "dream --yes" in page.markdown and "(2026-11-27)" in page.plain
    assert "waits for your yes since" in call(filled, "dream --dry-run", settings=CONFIRM).markdown
    assert "waits for your yes" in call(filled, "dream --status", settings=CONFIRM).markdown
    page = call(filled, "dream --no", settings=CONFIRM)
    assert "dropped" in page.markdown and texts(filled) == before
    with pytest.raises(CommandError, match="No plan"):
        call(filled, "dream --no", settings=CONFIRM)
    call(filled, "dream", settings=CONFIRM)
    page = call(filled, "dream --yes", settings=CONFIRM)
    assert "**10** said again" in page.markdown and len(texts(filled)) == len(before) - 10
    assert not dream_waiting.there(dream_state.place_of(filled, CONFIRM))
    # On the command line nothing need wait for it.
    code, _, _ = run(capsys, "undo")
    assert code == 0 and texts(filled) == before
    assert call(filled, "dream --yes", settings=CONFIRM).data["status"] == "done"


class Working(Loaded):
    """A session whose worker dreams in this process."""

    worker = "running"

    def __init__(self, project: Project) -> None:
        super().__init__()
        self.project = project

    def ask(self, name: str, timeout: float, **arguments: Any) -> Any:
        if name == "dream_gate":
            return ""
        id = str(arguments.get("dream", ""))
        return dream.dream(dream.Context(self.project, CONFIRM), id).as_dict()


@pytest.mark.spec("D5", "L10", "L12")
def test_in_a_notebook_it_waits_in_counts_and_asks_nobody(filled: Project) -> None:
    def never(question: str) -> str:
        raise AssertionError("a typed answer is saved with the cell")

    here = place(filled, settings=CONFIRM, live=Working(filled))
    here = replace(here, saved=True, ask=never)
    page = table.call(here, ["dream", "--now"])
    assert "%memory dream --yes" in page.markdown and "**10** said again" in page.markdown
    assert page.dream is not None and page.dream["status"] == "waiting"
    for words in (f"{page.markdown} {page.text} {page.data} {page.dream}",):
        assert "town" not in words and "twin" not in words
    with pytest.raises(CommandError, match="One of them"):
        table.call(here, ["dream", "--yes", "--no"])
    page = table.call(here, ["dream", "--yes"])
    assert "said again" in page.markdown and page.dream is not None
    assert page.dream["status"] == "done"
    with pytest.raises(CommandError, match="No plan"):
        table.call(here, ["dream", "--yes"])


@pytest.mark.spec("D5")
def test_what_a_page_may_press(filled: Project) -> None:
    asked: list[tuple[str, str]] = []

    def press(name: str, **body: Any) -> dict[str, Any]:
        return page_dream.command(name, body, filled, CONFIRM, lambda *told: asked.append(told))

    plan = waiting(filled)
    files = press("dream-plan", dream=plan.id)["files"]
    assert {"dated-0.md", "dated-1.md"} <= {each["file"] for each in files}
    assert any("+The report of team 0 is due this Friday (2026" in each["diff"] for each in files)
    assert press("dream-plan", dream="f" * 24)["files"] == []
    assert press("dream-accept", dream=plan.id) == {"type": "ok"}
    assert asked == [("dream_accept", plan.id)]
    with pytest.raises(Refused, match="waits no longer"):
        press("dream-dismiss", dream="f" * 24)
    state = press("dream-dismiss", dream=plan.id)["state"]
    assert state["status"] == "dismissed" and state["counts"]["merged"] == 10
    with pytest.raises(Refused, match="waits no longer"):
        press("dream-dismiss", dream=plan.id)


@pytest.mark.spec("D5", "L8")
def test_a_button_takes_the_last_dream_back_around_what_was_edited(filled: Project) -> None:
    before = texts(filled)
    bus, told = Bus(), list[Event]()
    bus.subscribe(told.append)
    outcome = dream.dream(dream.Context(filled, CONFIRM, bus, confirmed=True))
    assert outcome.status == "done"
    id = str(dream_state.state(filled, CONFIRM)["id"])
    with pytest.raises(HistoryError, match="not the last"):
        dream_undo.take_back(filled, CONFIRM, "f" * 24)
    path = opened(filled, CONFIRM).folder / "dated-0.md"
    edited = path.read_bytes() + b"And in two copies.\n"
    path.write_bytes(edited)
    state = dream_undo.take_back(filled, CONFIRM, id)
    assert state["status"] == "undone" and state["counts"]["left_out"] == 1
    assert texts(filled) == {**before, "dated-0.md": edited}
    assert dream_state.state(filled, CONFIRM)["status"] == "undone"
    assert "taken back" in dream_shown.ended(state) and "changed them: 1" in dream_shown.ended(
        state
    )
    with pytest.raises(HistoryError, match="undone already"):
        dream_undo.take_back(filled, CONFIRM, id)


@pytest.mark.kernel
@pytest.mark.spec("D5", "D6", "L10", "L12")
def test_a_click_does_what_the_cell_showed_and_another_takes_it_back(
    project: Project, new_kernel: Callable[..., Any]
) -> None:
    kernel: Kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    kernel.run("%config Dream.enabled = False")
    kernel.run("1")
    kernel.run("%memory remember Levels of the lake are in metres.")
    kernel.run("%memory mode confirm")
    (folder,) = kernel.home.glob("projects/*/memory")
    dream_set.fill(folder, kernel.work, 50)
    kernel.run("%memory list")
    browser = Browser(kernel)
    browser.open()
    ran = kernel.run("%memory dream --now")
    assert ran.reply["status"] == "ok", ran.reply
    before = {each.name: each.read_bytes() for each in folder.glob("*-*.md")}
    shown = [each["data"] for kind, each in ran.messages if kind.endswith("display_data")][-1]
    state = shown[dream_shown.MIME]["state"]
    assert state["status"] == "waiting" and "%memory dream --yes" in shown["text/markdown"]
    id = state["id"]

    def press(name: str) -> dict[str, Any]:
        return browser.say("command", name=name, dream=id)

    assert len(press("dream-plan")["files"]) > 10

    def stands(status: str) -> bool:
        states = [each["state"] for each in browser.pushed if "state" in each]
        return bool(states) and states[-1]["status"] == status

    assert press("dream-accept")["type"] == "ok"
    browser.until(lambda: stands("done"), "it was done")
    assert len(list(folder.glob("twin-*.md"))) == 10
    assert press("dream-accept")["type"] == "ok"
    browser.until(lambda: "notice" in str(browser.pushed[-1]), "it is said that nothing waits")
    assert "No plan waits" in browser.pushed[-1]["notice"]
    assert press("dream-undo")["type"] == "ok"
    browser.until(lambda: stands("undone"), "it was taken back")
    assert {each.name: each.read_bytes() for each in folder.glob("*-*.md")} == before
    for each in ("town", "twin", "lake"):
        assert each not in str([m["state"] for m in browser.pushed if "state" in m])
    # The cell, which is saved, says what became of what it showed.
    browser.until(lambda: len(browser.displays) >= 3, "the display of the cell follows")
    assert "tidied 5" in browser.displays[0]["text/markdown"]
    assert "taken back" in browser.displays[-1]["text/markdown"]
    assert browser.displays[-1][dream_shown.MIME]["state"]["status"] == "undone"
