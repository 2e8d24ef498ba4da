"""A dream as a person has it: a home folder of some age, a real kernel, its page, and the way back.

What the page is told from start to summary, by the built-in engine and by a model on a real
socket, and what of it would be saved with the notebook.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dream_set
import pytest
from kernels import Kernel, eventually
from model_server import Fault, ModelServer
from pages import Page
from recorded import Recorded
from scripted import Call, good

from ipymemory.config import Settings
from ipymemory.dream_lock import NAME
from ipymemory.dream_shown import MIME
from ipymemory.memory_files import MemoryFolder, drafts, opened
from ipymemory.memory_files.values import Draft, Source

pytestmark = pytest.mark.kernel

HOUR = 3600

KEPT = "Exports of the shop are delivered as CSV files. They use the time zone of Vienna."
AGAIN = "The exports of the shop are delivered as CSV files. Files have no header."
MERGED = (
    "Exports of the shop are delivered as CSV files.\n"
    "They use the time zone of Vienna.\nFiles have no header."
)
LOOKS: tuple[Call, ...] = (
    ("Glob", {"pattern": "exports*.md"}),
    ("Read", {"path": "exports.md"}),
    ("Grep", {"pattern": "Vienna", "path": "transcripts"}),
)
MERGE: Call = ("Merge", {"keep": "exports", "gone": "exports-again", "text": MERGED})


class Aged:
    """A project of five sessions, whose memories were last tidied more than a day ago."""

    def __init__(self, top: Path) -> None:
        self.home, work = top / "home", top / "work"
        for number in range(5):
            session = Recorded(self.home, work, f"day-{number}")
            for cell in range(6):
                session.cell(f"step_{cell} = {number}\nwhat_{cell} = 'a line of {number}'")
            session.cell("zone = 'Europe/Vienna'")
            session.writer.close()
            when = time.time() - (20 - number) * HOUR
            os.utime(session.folder.transcript, (when, when))
            self.project = session.project
        dream_set.fill(self.memories.folder, work, 50)
        for name, text in (("exports", KEPT), ("exports-again", AGAIN)):
            source = Source(f"session-{name}", "work.ipynb", (f"turn-{name}",), text, "person")
            draft = drafts.checked(Draft("project", name, "", text, source))
            path = self.memories.folder / f"{name}.md"
            path.write_text(drafts.file_text(name, draft, dream_set.TIME), "utf-8", newline="\n")
        self.memories.rebuild_index()
        lock = self.memories.folder / NAME
        lock.write_bytes(b"")
        os.utime(lock, (time.time() - 25 * HOUR,) * 2)

    @property
    def memories(self) -> MemoryFolder:
        return opened(self.project, Settings())

    def held(self) -> dict[str, bytes]:
        top = self.memories.folder
        return {
            each.relative_to(top).as_posix(): each.read_bytes()
            for each in top.rglob("*")
            if each.is_file() and each.name != NAME
        }


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def aged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Aged:
    monkeypatch.setenv("IPYMEMORY_HOME", str(tmp_path / "home"))
    return Aged(tmp_path)


def watched(kernel: Kernel) -> tuple[Page, list[dict[str, Any]]]:
    """Run a cell and watch from the page until a dream has ended; return what it was told."""
    page = Page(kernel)
    page.open()
    kernel.run("zone = 'Europe/Vienna'")

    def told() -> list[dict[str, Any]]:
        return [each for each in page.pushed if each["type"] == "dream"]

    def ended() -> bool:
        return any(each.get("state", {}).get("status") in ("done", "failed") for each in told())

    page.until(ended, "the dream has ended", 90)
    return page, told()


def states(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each["state"] for each in told if "state" in each]


def words(told: list[dict[str, Any]]) -> str:
    """Return all that the page may keep."""
    return json.dumps(states(told))


def undone(kernel: Kernel, aged: Aged, before: dict[str, bytes]) -> None:
    """Take the dream back; what the cells show on the way may be saved with the notebook."""
    pages = [kernel.run(line) for line in ("%memory dream", "%memory history")]
    shown = "".join(each.markdown + each.text for each in pages)
    for each in ("town", "exports", "Vienna", "lake"):
        assert each not in shown, each
    assert "ended: done" in shown
    after = kernel.run("%memory undo")
    assert "Undone: dream" in after.markdown
    assert aged.held() == before


def loaded(new_kernel: Callable[..., Any]) -> Kernel:
    kernel: Kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    kernel.run("%config Engine.idle_seconds = 0.5")
    return kernel


@pytest.mark.spec("D1", "D4", "D5", "D6", "D7", "L8", "L12")
def test_five_sessions_and_a_day_later_a_dream_comes_is_watched_and_undone(
    aged: Aged, new_kernel: Callable[..., Any]
) -> None:
    before = aged.held()
    kernel = loaded(new_kernel)
    _, told = watched(kernel)
    seen = states(told)
    assert [each["status"] for each in seen[:-1]] == ["running"] * (len(seen) - 1)
    steps = list(dict.fromkeys(each["step"] for each in seen[:-1]))
    assert steps == ["orient", "gather", "consolidate", "prune"]
    assert list(dict.fromkeys(each["phase"] for each in seen[:-1])) == ["starting", "updating"]
    assert {each["sessions"] for each in seen[:-1]} == {5}
    assert seen[0]["started"] and seen[0]["engine"] == "extractive"
    last = seen[-1]
    assert last["status"] == "done" and last["counts"]["merged"] == 10 and last["seconds"] > 0
    files = [each["file"] for each in told if "file" in each]
    touched = {name for name, data in before.items() if aged.held().get(name) != data}
    assert {each["file"] for each in files} == touched - {"MEMORY.md"}
    assert all(each["diff"].startswith("---") and "\n+" in each["diff"] for each in files)
    assert "town" in str(files) and "town" not in words(told) and "twin" not in words(told)
    undone(kernel, aged, before)


@pytest.mark.spec("D4", "D5", "D6", "D7", "D8", "L8", "L9", "L12")
def test_a_model_dreams_its_turns_are_watched_and_undone(
    aged: Aged, new_kernel: Callable[..., Any], server: ModelServer
) -> None:
    script = good(*LOOKS, MERGE, words="The exports are one memory now.")

    def brain(body: dict[str, Any], number: int) -> Any:
        own = any(each["name"] == "Merge" for each in body.get("tools", ()))
        return script(body, number) if own else "Fine."

    server.brain = brain
    before = aged.held()
    kernel = loaded(new_kernel)
    for name, value in server.environment().items():
        kernel.run(f"%env {name}={value}")
    assert "on this machine" in kernel.run("%memory engine anthropic").markdown
    _, told = watched(kernel)
    seen = states(told)
    assert [each.refused for each in script.told] == [False] * 4, script.told
    assert "Europe/Vienna" in script.told[2].text
    assert seen[-1]["status"] == "done" and seen[-1]["counts"]["merged"] == 11
    counted = [each for each in seen if "turns" in each]
    assert [each["turns"] for each in counted if each["step"] == "consolidate"] == [1, 2, 3, 4, 5]
    assert (counted[-1]["calls"], counted[-1]["sessions"], counted[-1]["reviewed"]) == (4, 5, 5)
    assert counted[0]["reviewed"] == 0 and counted[-1]["tokens"] > counted[0]["tokens"] > 0
    assert counted[-1]["usd"] > 0
    turns = [each["turn"] for each in told if "turn" in each]
    assert [each["calls"] for each in turns] == [1, 1, 1, 1, 0]
    assert turns[-1]["text"] == "The exports are one memory now."
    files = [each["file"]["file"] for each in told if "file" in each]
    assert {"exports.md", "exports-again.md"} <= set(files)
    for each in ("town", "exports", "Vienna"):
        assert each not in words(told), each
    eventually(lambda: "dream" in kernel.run("%memory cost").markdown, "the bill")
    undone(kernel, aged, before)


@pytest.fixture
def dreaming(
    aged: Aged, new_kernel: Callable[..., Any], server: ModelServer
) -> tuple[Kernel, ModelServer]:
    """A kernel whose dreams only a person begins, with a model for them."""
    kernel: Kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    kernel.run("%config Dream.enabled = False")
    for name, value in server.environment().items():
        kernel.run(f"%env {name}={value}")
    kernel.run("%memory engine anthropic")
    kernel.run("zone = 'Europe/Vienna'")
    return kernel, server


def displays(ran: Any) -> list[dict[str, Any]]:
    """Return what the cell's displays held, one after the other."""
    kinds = ("display_data", "update_display_data")
    return [content["data"] for kind, content in ran.messages if kind in kinds]


@pytest.mark.spec("D6", "D7", "L12")
def test_the_cell_that_dreams_shows_how_far_it_is_and_keeps_counts(
    dreaming: tuple[Kernel, ModelServer],
) -> None:
    kernel, server = dreaming
    script = good(*LOOKS, MERGE, words="The exports are one memory now, " * 40)

    def brain(body: dict[str, Any], number: int) -> Any:
        time.sleep(0.6)
        return script(body, number)

    server.brain = brain
    ran = kernel.run("%memory dream --now", timeout=90)
    assert ran.reply["status"] == "ok", ran.reply
    shown = displays(ran)
    assert len(shown) > 3 and len(ran.kinds) - ran.kinds.count("comm_msg") == len(shown)
    assert ran.kinds.count("display_data") == 1, "one display, updated in place"
    before = [each["text/plain"] for each in shown[:-1]]
    assert "ipymemory dream --kill" in shown[0]["text/markdown"]
    assert any("brings together" in each for each in before)
    for each in ("5 of 5 sessions reviewed", "turns", "tool calls", "tokens", " $", " s"):
        assert each in before[-1]
    for each in shown:
        assert set(each) == {"text/plain", "text/markdown", MIME}
    states = [each[MIME]["state"] for each in shown]
    assert states[1]["status"] == "running" and states[1]["id"] == states[-1]["id"]
    assert states[-1]["status"] == "done" and states[-1]["counts"]["merged"] == 11
    assert "**11** said again" in shown[-1]["text/markdown"]
    for each in ("town", "exports", "Vienna", "twin"):
        assert each not in str(shown), each
    # Also where somebody only asks how it stands it may be watched.
    (page,) = displays(kernel.run("%memory dream"))
    assert page[MIME]["state"] == {**page[MIME]["state"], **states[-1]}
    assert "ended: done" in page["text/markdown"]
    assert set(displays(kernel.run("%memory dream --json"))[0]) == {"text/plain", "text/markdown"}
    assert "display_data" not in str(kernel.cells()[-1]["outputs"]), "ours is not on record"


@pytest.mark.spec("D6")
def test_the_stop_button_ends_the_dream_of_the_cell(
    dreaming: tuple[Kernel, ModelServer], aged: Aged
) -> None:
    kernel, server = dreaming
    server.faults = [Fault("hang")]
    before = aged.held()
    request = kernel.send("%memory dream --now")
    eventually(lambda: server.requests, "the model is asked", 60)
    began = time.monotonic()
    kernel.interrupt()
    ran = kernel.collect(request)
    assert time.monotonic() - began < 2
    assert ran.reply["status"] == "error" and ran.reply["ename"] == "KeyboardInterrupt"
    assert "memories are as they were" in str(displays(ran)[-1])
    assert "tidying" not in str(displays(ran)[-1]) and aged.held() == before
    (state,) = aged.home.glob("projects/*/dream/state.json")
    assert json.loads(state.read_text())["status"] == "killed"
