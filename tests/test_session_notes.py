"""The session notes job through the real agent, tools and disk.

`Lister` is a small engine that keeps a person's changes as the extractive engine does: one line
of the Worklog a turn, lines by hand kept. So the tests here are about the job, not about what an
engine makes of a turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ipymemory import markdown, notes_base, prompts, sessions
from ipymemory.agent import Outcome
from ipymemory.config import Settings
from ipymemory.events import Bus, Event
from ipymemory.extractive.engine import ExtractiveModel
from ipymemory.extractive.material import ByModel, NotesMaterial
from ipymemory.history import History
from ipymemory.jobs.session_notes import JOB, Context, gate, update
from ipymemory.models import Reply, Request
from ipymemory.places import Project, SessionFolder
from ipymemory.prompts import NOTES_TEMPLATE
from ipymemory.session import MemorySession
from ipymemory.turns import Happening, ToolCall, Turn, utc_now


class Lister:
    """An engine whose notes are one line a turn, with a state that changes with every turn."""

    name = "lister"

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.spoil = ""

    def written(self, material: NotesMaterial) -> str:
        turns = [each for each in material.entries if isinstance(each, Turn)]
        found = []
        for each in markdown.sections(NOTES_TEMPLATE):
            body = "\n"
            if each.name == "Worklog":
                body = "".join(f"- {turn.source} {turn.label}\n" for turn in turns)
            elif each.name == "Current State" and turns:
                body = f"- last: {turns[-1].source}\n\n"
            found.append(replace(each, body=body))
        return markdown.join("", found)

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        if any(each.results for each in request.messages):
            return Reply("done")
        material = request.material
        assert isinstance(material, NotesMaterial)
        new, calls = self.written(material), []
        for section in markdown.sections(new):
            now = markdown.section(material.notes, section.name)
            base = markdown.section(material.base, section.name)
            if now is None or base is None:
                continue
            body = merged(base.body, now.body, section.body)
            if body != now.body:
                old = f"{now.header}\n{now.italic}\n{now.body}"
                text = f"{now.header}\n{now.italic}\n{body}"
                if section.name == self.spoil:
                    text = text.replace("# ", "# My ", 1)
                call = {"path": material.path, "old_string": old, "new_string": text}
                calls.append(ToolCall(str(len(calls)), "Edit", call))
        return Reply("", tuple(calls))


def merged(base: str, now: str, new: str) -> str:
    """Lines by hand stay, lines a person took away stay away, the rest is the engine's."""
    had, has = base.splitlines(), now.splitlines()
    gone = [line for line in had if line not in has]
    by_hand = [line for line in has if line not in had]
    kept = [line for line in new.splitlines() if line not in gone and line not in by_hand]
    return "".join(line + "\n" for line in kept + by_hand)


@dataclass
class Place:
    """A session folder in a home, with an engine, and the turns so far."""

    project: Project
    folder: SessionFolder
    config: Path
    model: Any = field(default_factory=Lister)
    settings: Settings = field(default_factory=Settings)
    turns: list[Turn] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    keep: int = 200

    def context(self) -> Context:
        bus = Bus()
        bus.subscribe(self.events.append)
        return Context(
            self.folder,
            self.project,
            self.settings,
            bus,
            self.model,
            History(self.project.history, self.keep),
            self.config,
            "clean.ipynb",
        )

    def cells(self, *sources: str) -> Outcome:
        """Run cells, then update."""
        changed = []
        for source in sources:
            n = len(self.turns) + 1
            turn = Turn(
                f"{n:024d}", utc_now(), source, execution_count=n, status="ok", complete=True
            )
            self.turns.append(turn)
            changed.append(turn.id)
        return self.update(changed)

    def update(self, changed: Sequence[str] = (), *, force: bool = False) -> Outcome:
        return asyncio.run(update(self.context(), self.turns, changed, force=force))

    @property
    def history(self) -> History:
        return History(self.project.history, self.keep)

    @property
    def notes(self) -> str:
        return self.folder.notes.read_text()

    @property
    def log(self) -> list[str]:
        section = markdown.section(self.notes, "Worklog")
        assert section is not None
        return [line for line in section.body.splitlines() if line]

    @property
    def state(self) -> str:
        section = markdown.section(self.notes, "Current State")
        assert section is not None
        return section.body.strip()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    home = Path(os.path.realpath(tmp_path)) / "home"
    project = Project(home / "root", "root-0123456789", home / "projects" / "root-0123456789")
    folder = SessionFolder(project.folder / "sessions" / "0193")
    return Place(project, folder, home / "config")


@pytest.mark.spec("S1")
def test_the_notes_are_made_from_the_template_when_first_needed(place: Place) -> None:
    assert place.update().status == "done"
    assert not place.folder.notes.exists(), "nothing was needed yet"
    outcome = place.cells("x = 1")
    assert outcome.status == "done"
    assert markdown.skeleton(place.notes) == markdown.skeleton(NOTES_TEMPLATE)
    assert place.log == ["- x = 1 [1]"]
    assert place.state == "- last: x = 1"


def test_updating_again_changes_nothing(place: Place) -> None:
    place.cells("x = 1")
    before = place.notes, place.folder.notes_base.read_text()
    for _ in range(2):
        assert place.update(force=True).wrote == ()
        assert place.update([place.turns[0].id]).wrote == ()
    assert (place.notes, place.folder.notes_base.read_text()) == before
    assert len(place.history.entries()) == 1


@pytest.mark.spec("S7")
def test_the_fence_is_edit_on_that_one_file(place: Place) -> None:
    class Hostile:
        name = "hostile"

        async def complete(self, request: Request) -> Reply:
            if any(each.results for each in request.messages):
                return Reply()
            target = str(place.folder.transcript)
            given = {"path": target, "old_string": "secret", "new_string": "mine"}
            return Reply(
                "", (ToolCall("1", "Edit", given), ToolCall("2", "Write", {"path": target}))
            )

    place.folder.path.mkdir(parents=True)
    place.folder.transcript.write_text("secret\n")
    place.model = Hostile()
    outcome = place.cells("x = 1")
    assert outcome.refused == 2
    assert all(f"Only Edit on {place.folder.notes}" in each for each in outcome.refusals)
    assert place.folder.transcript.read_text() == "secret\n"
    assert place.notes == NOTES_TEMPLATE


@pytest.mark.spec("S8", "S13")
def test_an_edit_that_breaks_a_header_is_refused_and_the_rest_lands(place: Place) -> None:
    place.cells("one")
    place.model.spoil = "Current State"
    outcome = place.cells("two")
    assert (outcome.status, outcome.refused) == ("done", 1)
    assert 'loses or renames the header "# Current State"' in outcome.refusals[0]
    assert place.state == "- last: one"
    assert place.log == ["- one [1]", "- two [2]"]
    assert markdown.skeleton(place.notes) == markdown.skeleton(NOTES_TEMPLATE)
    place.model.spoil = ""
    place.cells("three")
    assert place.state == "- last: three", "what was refused once is no change by hand"
    assert place.log[-1] == "- three [3]"


@pytest.mark.spec("S8", "L2")
def test_the_reason_of_a_refusal_is_on_the_status_page(place: Place) -> None:
    place.cells("one")
    place.model.spoil = "Current State"
    place.cells("two")
    status = MemorySession(place.folder, place.project, place.settings).status()
    notes = status["services"]["notes"]
    assert notes["success"]
    assert notes["error"].startswith("an edit was refused: The edit loses or renames the header")


@pytest.mark.spec("S13")
def test_what_a_person_changed_stays(place: Place) -> None:
    place.cells("one", "two")
    place.folder.notes.write_text(
        place.notes.replace("- one [1]\n", "").replace("- two [2]", "- two, and it worked [2]")
        + "- by hand\n"
    )
    place.cells("three")
    assert place.log == ["- three [3]", "- two, and it worked [2]", "- by hand"]
    assert place.state == "- last: three"
    base = place.folder.notes_base.read_text()
    assert "by hand" not in base
    assert "- one [1]" in base


@pytest.mark.spec("S13")
def test_a_persons_windows_editor_is_no_change(place: Place) -> None:
    place.cells("one")
    place.folder.notes.write_bytes(place.notes.replace("\n", "\r\n").encode())
    place.cells("two")
    data = place.folder.notes.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") > 20
    assert place.log == ["- one [1]", "- two [2]"]
    place.cells("three")
    assert place.log == ["- one [1]", "- two [2]", "- three [3]"]


@pytest.mark.spec("S1")
def test_notes_that_a_person_deleted_are_made_again(place: Place) -> None:
    place.cells("one", "two")
    place.folder.notes.unlink()
    place.cells("three")
    assert place.log == ["- one [1]", "- two [2]", "- three [3]"]
    place.folder.notes.unlink()
    place.folder.notes_base.unlink()
    assert place.update(force=True).status == "done"
    assert place.log == ["- one [1]", "- two [2]", "- three [3]"]


@pytest.mark.spec("S8")
def test_notes_that_a_person_broke_are_theirs(place: Place) -> None:
    place.cells("one")
    broken = place.notes.replace("# Worklog\n", "## Worklog\n")
    place.folder.notes.write_text(broken)
    place.cells("two")
    assert markdown.skeleton(place.notes) == markdown.skeleton(broken)
    assert place.state == "- last: two"
    place.folder.notes.write_text("")
    outcome = place.cells("three")
    assert outcome.status == "failed"
    assert "has no section" in outcome.error
    assert "made again" in outcome.error
    assert place.notes == ""


def test_notes_that_are_no_text_are_left_and_told(place: Place) -> None:
    place.cells("one")
    place.folder.notes.write_bytes(b"# A\n_i_\n\xe9\n")
    outcome = place.cells("two")
    assert outcome.status == "failed"
    assert "is not UTF-8 text" in outcome.error
    assert place.folder.notes.read_bytes() == b"# A\n_i_\n\xe9\n"
    assert place.events[-1].kind == "failed"
    assert last_run(place)["status"] == "failed"


@pytest.mark.spec("L6")
def test_notes_that_became_a_link_are_not_followed(place: Place, tmp_path: Path) -> None:
    place.cells("one")
    outside = tmp_path / "outside.md"
    outside.write_text(place.notes)
    place.folder.notes.unlink()
    place.folder.notes.symlink_to(outside)
    before = outside.read_text()
    outcome = place.cells("two")
    assert outcome.status == "failed"
    assert "is a link" in outcome.error
    assert outside.read_text() == before


def last_run(place: Place) -> dict[str, Any]:
    lines = place.folder.worker_log.read_text().splitlines()
    return dict(json.loads(lines[-1]))


def test_each_run_is_in_the_workers_log(place: Place) -> None:
    outcome = place.cells("one")
    line = last_run(place)
    assert line["type"] == "run"
    assert (line["id"], line["job"], line["engine"]) == (outcome.run, JOB, "lister")
    assert (line["status"], line["refused"], line["notes_through"]) == (
        "done",
        0,
        place.turns[0].id,
    )
    assert line["wrote"] == [str(place.folder.notes)]
    assert sessions.read(place.folder).notes_through == place.turns[0].id


def test_an_update_that_failed_leaves_its_turns_for_the_next(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.cells("one")
    written = place.model.written

    def broken(material: NotesMaterial) -> str:
        raise ZeroDivisionError("a fault in the engine")

    place.model.written = broken
    with caplog.at_level(logging.CRITICAL):
        outcome = place.cells("two")
    assert outcome.status == "failed"
    assert "ZeroDivisionError: a fault in the engine" in outcome.error
    assert sessions.read(place.folder).notes_through == place.turns[0].id
    place.folder.notes_base.unlink()
    with caplog.at_level(logging.CRITICAL):
        assert place.update([place.turns[1].id]).status == "failed"
    assert place.events[-1].kind == "failed"
    place.model.written = written
    place.update([each.id for each in place.turns])
    assert place.log == ["- one [1]", "- two [2]"]
    assert sessions.read(place.folder).notes_through == place.turns[1].id


# Undo


@pytest.mark.spec("L8")
def test_what_was_undone_is_not_done_again_from_the_same_turns(place: Place) -> None:
    place.cells("one")
    place.cells("two")
    place.history.undo()
    assert place.log == ["- one [1]"]
    assert place.update([place.turns[1].id]).wrote == ()
    assert place.update(force=True).wrote == ()
    assert place.log == ["- one [1]"]
    place.cells("three")
    assert place.log == ["- one [1]", "- three [3]"]
    assert place.state == "- last: three"


@pytest.mark.spec("L8")
def test_undoing_the_undo_brings_the_turns_back(place: Place) -> None:
    place.cells("one")
    place.cells("two")
    place.history.undo()
    place.history.undo(place.history.entries(1)[0].id)
    assert place.log == ["- one [1]", "- two [2]"]
    place.cells("three")
    assert place.log == ["- one [1]", "- two [2]", "- three [3]"]


@pytest.mark.spec("L8")
def test_undoing_the_first_run_leaves_its_turns_out_for_good(place: Place) -> None:
    place.cells("one", "two")
    place.history.undo()
    assert place.notes == NOTES_TEMPLATE
    assert place.update([each.id for each in place.turns]).wrote == ()
    assert place.update(force=True).wrote == ()
    place.cells("three")
    assert place.log == ["- three [3]"]


@pytest.mark.spec("L8")
def test_undoing_a_run_that_made_the_notes_again_leaves_all_its_turns_out(place: Place) -> None:
    place.cells("one")
    place.cells("two")
    place.folder.notes.unlink()
    place.cells("three")
    assert len(place.log) == 3
    place.history.undo()
    assert place.update(force=True).wrote == ()
    assert place.notes == NOTES_TEMPLATE


@pytest.mark.spec("L8")
def test_a_line_that_was_undone_is_no_line_that_a_person_took_out(place: Place) -> None:
    place.folder.path.mkdir(parents=True)
    place.folder.notes.write_text(NOTES_TEMPLATE + "- by hand\n")
    place.cells("x")
    place.history.undo()
    assert place.log == ["- by hand"]
    place.cells("x")
    assert place.state == "- last: x"
    assert place.log == ["- x [2]", "- by hand"]


@pytest.mark.spec("L8", "S13")
def test_undo_keeps_what_a_person_changed_before(place: Place) -> None:
    place.cells("one")
    place.folder.notes.write_text(place.notes + "- by hand\n")
    place.cells("two")
    place.history.undo()
    assert place.log == ["- one [1]", "- by hand"]
    place.cells("three")
    assert place.log == ["- one [1]", "- three [3]", "- by hand"]


@pytest.mark.spec("L8")
def test_undo_of_an_earlier_run_by_force_goes_on_from_there(place: Place) -> None:
    place.cells("one")
    second = place.cells("two").run
    place.cells("three")
    place.history.undo(second, force=True)
    assert place.log == ["- one [1]"]
    place.cells("four")
    assert place.log == ["- one [1]", "- three [3]", "- four [4]"]


@pytest.mark.spec("L8")
def test_notes_deleted_after_an_undo_come_back_without_the_undone(place: Place) -> None:
    place.cells("one")
    place.cells("two")
    place.history.undo()
    place.folder.notes.unlink()
    place.cells("three")
    assert place.log == ["- one [1]", "- three [3]"]


@pytest.mark.spec("L8")
def test_a_history_that_forgot_the_run_still_leaves_its_turns_out(place: Place) -> None:
    place.keep = 3
    place.cells("one")
    place.cells("two")
    place.history.undo()
    for n in range(3, 12):
        place.cells(f"cell {n}")
    assert not [each for each in place.history.entries() if each.undone_by]
    assert place.log == ["- one [1]", *(f"- cell {n} [{n}]" for n in range(3, 12))]


# Killed half-way


@pytest.mark.parametrize("step", range(1, 13))
def test_a_run_killed_half_way_is_no_change_by_hand(
    place: Place, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at any write of the disk: what landed is the engine's, and is kept up to date."""

    class Killed(BaseException):
        pass

    place.cells("one")
    place.folder.notes.write_text(place.notes + "- by hand\n")
    count = 0
    real = os.replace

    def killing(*args: Any, **kwargs: Any) -> None:
        nonlocal count
        count += 1
        if count == step:
            raise Killed
        real(*args, **kwargs)
        count += 1
        if count == step:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killing)
        with contextlib.suppress(Killed):
            place.cells("two")
    place.cells("three")
    assert place.state == "- last: three"
    assert place.log == ["- one [1]", "- two [2]", "- three [3]", "- by hand"]


def test_a_lost_history_and_a_lost_base_cost_no_line(place: Place) -> None:
    place.cells("one")
    place.folder.notes.write_text(place.notes + "- by hand\n")
    (place.project.history / "log.jsonl").unlink()
    place.cells("two")
    assert place.log == ["- one [1]", "- two [2]", "- by hand"]
    place.folder.notes_base.unlink()
    place.cells("three")
    assert place.log == ["- one [1]", "- two [2]", "- three [3]", "- by hand"]


# Prompts, gates, bounds


@pytest.mark.spec("S9")
def test_the_users_template_and_prompt_are_used(place: Place) -> None:
    own = place.config / "session-notes"
    own.mkdir(parents=True)
    (own / "template.md").write_text("# Mine\n_my line_\n\n# Worklog\n_steps_\n")
    (own / "prompt.md").write_text("Look at {{path}}: {{notes}} {{what}}")
    place.cells("one")
    assert [each.name for each in markdown.sections(place.notes)] == ["Mine", "Worklog"]
    assert place.log == ["- one [1]"]
    prompt = place.model.asked[0].messages[0].text
    assert prompt.startswith(f"Look at {place.folder.notes}: # Mine\n_my line_")
    assert prompt.endswith("{{what}}")


@pytest.mark.spec("S9")
def test_a_template_of_no_use_is_one_warning(place: Place) -> None:
    own = place.config / "session-notes"
    own.mkdir(parents=True)
    (own / "template.md").write_text("no section at all")
    place.cells("one")
    place.cells("two")
    warnings = [each for each in place.events if each.kind == "warning"]
    assert len(warnings) == 1
    assert "has no section" in warnings[0].details["text"]
    assert markdown.skeleton(place.notes) == markdown.skeleton(NOTES_TEMPLATE)


@pytest.mark.spec("S2")
def test_the_prompt_names_what_is_oversized(place: Place) -> None:
    place.settings.session_notes.section_tokens = 100
    place.cells(*(f"a cell with the number {n}" for n in range(40)))
    assert "grown too large" not in place.model.asked[0].messages[0].text
    place.cells("one more")
    assert "- Worklog:" in place.model.asked[-1].messages[0].text
    assert "of at most 100 tokens" in place.model.asked[-1].messages[0].text


@pytest.mark.spec("S4")
def test_limits_of_the_settings_reach_the_engine(place: Place) -> None:
    place.settings.session_notes.section_tokens = 333
    place.settings.session_notes.total_tokens = 4444
    place.cells("one")
    material = place.model.asked[0].material
    assert (material.section_tokens, material.total_tokens) == (333, 4444)
    assert (material.notebook, material.path) == ("clean.ipynb", str(place.folder.notes))


@pytest.mark.spec("L10")
@pytest.mark.parametrize("mode", ["auto", "confirm", "read", "off"])
def test_notes_go_on_in_every_mode(place: Place, mode: str) -> None:
    place.settings.memory.mode = mode
    assert gate(place.settings, changed=1, rest_seconds=9, busy=False).open
    place.cells("one")
    assert place.log == ["- one [1]"]


def test_the_gate_says_when_notes_are_turned_off() -> None:
    settings = Settings()
    assert gate(settings, changed=1, rest_seconds=1.0, busy=False).open
    assert gate(settings, changed=1, rest_seconds=0.5, busy=False).reason.endswith("less than 1 s")
    settings.session_notes.enabled = False
    shut = gate(settings, changed=1, rest_seconds=9, busy=False)
    assert (shut.open, "SessionNotes.enabled" in shut.reason) == (False, True)


@pytest.mark.spec("L11")
def test_the_bounds_of_a_run_are_the_settings(place: Place) -> None:
    assert Settings().session_notes.rounds == 10
    assert Settings().session_notes.minutes == 3.0

    class Endless:
        name = "endless"

        async def complete(self, request: Request) -> Reply:
            return Reply("", (ToolCall("1", "Edit", {}),))

    place.model = Endless()
    assert place.cells("one").status == "out_of_rounds"
    assert last_run(place)["rounds"] == 10

    class Slow:
        name = "slow"

        async def complete(self, request: Request) -> Reply:
            await asyncio.sleep(60)
            return Reply()

    place.model = Slow()
    place.settings.session_notes.minutes = 0.01
    assert place.cells("two").status == "out_of_time"


@pytest.mark.spec("S6")
def test_an_update_for_many_requests_is_one_run(place: Place) -> None:
    place.cells(*(f"cell {n}" for n in range(30)))
    (entry,) = place.history.entries()
    assert entry.reason == "30 turns"
    assert len(entry.turns) == 30


def test_what_befell_a_session_is_not_counted_as_a_turn(place: Place) -> None:
    loaded = Happening("0" * 24, utc_now(), "loaded", {})
    turn = Turn(f"{1:024d}", utc_now(), "x = 1", execution_count=1, status="ok", complete=True)
    asyncio.run(update(place.context(), [loaded, turn], [loaded.id, turn.id], force=True))
    (entry,) = place.history.entries()
    assert entry.reason == "asked for, 1 turn"


def test_a_model_without_a_base_leaves_none(place: Place) -> None:
    class Plain:
        name = "plain"

        async def complete(self, request: Request) -> Reply:
            if any(each.results for each in request.messages):
                return Reply()
            line = markdown.sections(NOTES_TEMPLATE)[-1].italic + "\n"
            path = str(place.folder.notes)
            call = {"path": path, "old_string": line, "new_string": line + "- a line\n"}
            return Reply("", (ToolCall("1", "Edit", call),))

    place.model = Plain()
    place.cells("one")
    assert place.log == ["- a line"]
    assert not place.folder.notes_base.exists()


def test_the_base_line_and_its_pattern_agree(place: Place) -> None:
    for by_model in (None, ByModel("0193abb", "0193aaa", 12), ByModel("0193abb", "", 0)):
        base = notes_base.Base("# A\n_b_\ntext\n", "0193abc", by_model)
        notes_base.write(place.folder, base)
        assert notes_base.read(place.folder) == base
    place.folder.notes_base.write_bytes(b"# A\n")
    assert notes_base.read(place.folder) == notes_base.Base()


# The engine that is built in


def cell(n: int) -> str:
    kinds = (
        f"import pandas as pd\ndf{n} = pd.read_csv('data{n}.csv')",
        f"def mean_{n}(rows, scale={n}):\n    '''Return the mean of rows.'''\n    return sum(rows)",
        f"print('accuracy:', 0.{n})",
        "# keep the rest of the rows unchanged\n...",
        f"# TODO: the other columns stay the same\nx{n} = {n}",
        f"!pip install package{n}",
    )
    return kinds[n % len(kinds)]


@pytest.mark.spec("S2", "S8", "S13", "L8")
def test_the_extractive_engine_goes_through_the_same_door(place: Place) -> None:
    place.model = ExtractiveModel()
    place.settings.session_notes.section_tokens = 300
    place.settings.session_notes.total_tokens = 1500
    for n in range(1, 61):
        outcome = place.cells(cell(n))
        assert (outcome.status, outcome.refused) == ("done", 0), outcome.refusals
        if n == 20:
            place.folder.notes.write_text(place.notes.rstrip("\n") + "\n- a line by hand\n")
        if n % 15 == 0:
            place.history.undo()
    assert markdown.skeleton(place.notes) == markdown.skeleton(NOTES_TEMPLATE)
    assert place.notes.count("- a line by hand\n") == 1
    assert prompts.oversized(place.notes, section_tokens=300, total_tokens=1500) == ""
    assert "[59]" in place.notes
    assert not {"[15]", "[30]", "[45]", "[60]"} & set(re.findall(r"\[\d+\]", place.notes))
    before = place.notes
    assert place.update(force=True).wrote == ()
    assert place.notes == before


@pytest.mark.spec("S13")
def test_the_extractive_engine_writes_the_same_in_steps_and_at_once(place: Place) -> None:
    place.model = ExtractiveModel()
    for n in range(1, 31):
        place.cells(cell(n))
    in_steps = place.notes
    place.folder.notes.unlink()
    place.update(force=True)
    assert place.notes == in_steps
