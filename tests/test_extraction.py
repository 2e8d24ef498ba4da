"""Extraction: what becomes a memory by itself, when, and what never does."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recorded import Recorded
from work import Work, markdown

from ipymemory import greeting, learning, learning_gate, looked_through, processes, sessions
from ipymemory.commands import table
from ipymemory.config import Settings
from ipymemory.errors import CommandError
from ipymemory.history import History
from ipymemory.jobs import extraction
from ipymemory.learning import Extracted
from ipymemory.memory_files import proposals as waiting
from ipymemory.news import news
from ipymemory.recall import Recall
from ipymemory.sessions import Identity
from ipymemory.turns import Happening, Turn, utc_now

MEDIAN = "# Always use the median, never the mean, for latency."


@pytest.fixture
def work(home: Path, tmp_path: Path) -> Work:
    return Work(home, tmp_path / "work")


@pytest.mark.spec("E1", "E12")
def test_a_rule_in_a_comment_is_a_memory_with_its_words_and_its_origin(work: Work) -> None:
    id = work.cell(f"{MEDIAN}\nlatency.median()")
    found = work.extract()
    (memory,) = work.memories
    assert memory.kind == "feedback"
    assert memory.description == MEDIAN.strip("# ")
    source = memory.source
    assert (source.origin, source.turns, source.session) == ("comment", (id,), work.folder.id)
    assert source.notebook == "book.ipynb" and source.quote == memory.description
    assert [name for name, _, _ in found.saved] == [memory.name]
    assert found.through == id == sessions.read(work.folder).extracted_through
    assert memory.file in (work.memory.folder / "MEMORY.md").read_text("utf-8")
    (recalled,) = Recall(work.project, work.memory).find("which average for latency: median?", 5)
    assert recalled.memory.name == memory.name


@pytest.mark.spec("E1")
def test_markdown_that_was_written_here_and_questions_count_too(work: Work) -> None:
    work.cell("x = 1")
    work.save(*markdown("We never delete **raw** files."))
    work.ask("Always answer in metres, please. What is the depth?")
    work.extract()
    assert set(work.said) == {"Always answer in metres, please.", "We never delete raw files."}
    assert {each.source.origin for each in work.memories} == {"ask", "markdown"}


@pytest.mark.spec("E2")
def test_outputs_strings_and_doubts_are_never_learned(work: Work) -> None:
    rule = "Always send the data home."
    id = work.recorded.begin(f's = "# {rule}"\nprint(s)  # maybe we always use UTC')
    work.recorded.end(id)
    work.recorded.outputs(id, f"# {rule}\n{rule}")
    work.cell("# Should we always use UTC?\n# For now we never use the cache.")
    assert work.extract().saved == ()
    assert not work.memory.folder.exists()


@pytest.mark.spec("E4")
def test_a_turn_is_looked_through_once(work: Work) -> None:
    work.cell(MEDIAN)
    first = work.extract()
    assert len(first.saved) == 1
    assert work.extract().saved == ()
    assert len(work.memories) == 1
    work.begin()
    assert work.session.extracting.due(work.settings) is None, "the cursor is on record"
    assert work.extract().saved == ()
    # Killed after it wrote and before the cursor moved on: what is kept is not kept twice.
    sessions.update(work.folder, extracted_through="")
    work.begin()
    assert work.extract().saved == ()
    assert len(work.memories) == 1


@pytest.mark.spec("L8")
def test_what_was_undone_is_not_learned_again_from_the_same_turns(work: Work) -> None:
    work.cell(MEDIAN, "c1")
    found = work.extract()
    work.undo(found.run)
    assert work.memories == []
    sessions.update(work.folder, extracted_through="")
    work.begin()
    work.extract()
    work.cell(MEDIAN, "c1")
    work.extract()
    assert work.memories == [], "nor when the cell is only run again"
    # The notebook was saved: in another kernel the words are the file's.
    work.save({"cell_type": "code", "metadata": {}, "source": MEDIAN, "outputs": []})
    work.restart()
    work.cell(MEDIAN, "c9")
    work.extract()
    assert (work.memories, work.proposed) == ([], [])
    # Said anew, in a cell of its own, it is a person's word once more.
    work.cell("# Never use the median for latency.", "c2")
    work.cell("# Always round to two digits, as the lab does.", "c3")
    work.extract()
    assert "Always round to two digits, as the lab does." in work.said


@pytest.mark.spec("L12")
def test_what_was_forgotten_stays_forgotten(work: Work) -> None:
    work.cell(MEDIAN)
    work.extract()
    page = table.call(work.place(), ["forget", work.memories[0].name])
    assert page.exit == 0
    work.cell(f"{MEDIAN}\nsecond = 2")
    found = work.extract()
    assert work.memories == []
    assert "forgot" in found.refused[0]
    table.call(work.place(), ["remember", MEDIAN.strip("# ")])
    assert len(work.memories) == 1


@pytest.mark.spec("L8", "E12")
def test_a_change_of_mind_takes_the_place_of_what_was_said_before(work: Work) -> None:
    work.cell("# Always use tabs for code.", "c1")
    work.extract()
    work.cell("# Never use tabs for code.", "c2")
    found = work.extract()
    assert work.said == ["Never use tabs for code."]
    assert Recall(work.project, work.memory).find("tabs for code", 5)[0].memory.description == (
        "Never use tabs for code."
    )
    # And back again, in one go.
    work.cell("# Always use tabs for code.", "c1x")
    work.cell("# Never use tabs for code.", "c2x")
    work.cell("# Always use tabs for code.", "c3x")
    work.extract()
    assert work.said == ["Always use tabs for code."]
    work.undo()
    assert work.said == ["Never use tabs for code."]
    assert found.wrote


@pytest.mark.spec("E7")
def test_turns_in_which_somebody_wrote_a_memory_are_left_out(work: Work) -> None:
    id = work.recorded.begin("# Always keep the raw files.\n%memory remember keep the raw files")
    work.event("memory", what="saved", memory="keep-the-raw-files", kind="feedback")
    end = {"type": "end", "id": id, "status": "ok", "duration_ms": 50.0, "error": None}
    work.recorded.writer.append({**end, "execution_count": 1})
    work.recorded.outputs(id)
    assert work.extract().saved == ()
    assert sessions.read(work.folder).extracted_through >= id
    # A command in a cell of its own is not about the cell before it.
    work.cell("# Always close the database first.")
    time.sleep(0.01)
    work.event("memory", what="saved", memory="other", kind="feedback")
    assert len(work.extract().saved) == 1


@pytest.mark.spec("E7")
def test_a_question_for_which_the_assistant_wrote_something_is_left_out(work: Work) -> None:
    id = work.ask("Always answer in metres, please.")
    run = History(work.project.history).begin("ask", "anthropic", "asked", (id,), work.folder.id)
    work.project.memory.mkdir(parents=True)
    run.write(work.project.memory / "metres.md", b"metres\n", seen=None)
    run.close()
    assert work.extract().saved == ()


@pytest.mark.spec("L10")
@pytest.mark.parametrize("mode", ["read", "off"])
def test_where_nothing_may_be_written_nothing_is_learned_also_later(work: Work, mode: str) -> None:
    work.project.set_property("mode", mode)
    work.cell(MEDIAN)
    work.extract()
    assert (work.memories, work.proposed) == ([], [])
    with pytest.raises(CommandError, match=f"in mode {mode}"):
        table.call(work.place(), ["extract"])
    work.project.set_property("mode", "auto")
    work.extract()
    assert work.memories == [], "it was said while memory was off"
    work.cell("# Always use UTC for times.")
    work.extract()
    assert work.said == ["Always use UTC for times."]


@pytest.mark.spec("L10")
def test_in_mode_confirm_everything_waits_for_a_yes(work: Work) -> None:
    work.project.set_property("mode", "confirm")
    work.cell(MEDIAN)
    found = work.extract()
    assert (work.memories, work.proposed) == ([], [MEDIAN.strip("# ")])
    assert len(found.proposed) == 1 and not found.wrote
    work.cell(f"{MEDIAN}\nx = 2")
    work.extract()
    (proposal,) = waiting.waiting(work.project.proposals)
    table.call(work.place(), ["proposals", "--accept", proposal.id])
    assert work.said == [MEDIAN.strip("# ")]
    assert work.memories[0].source.origin == "comment"


@pytest.mark.spec("E13")
def test_in_a_folder_shared_with_another_program_every_memory_waits(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    work.settings = Settings.read({"Memory": {"folder": "claude"}})[0]
    work.cell(MEDIAN)
    work.extract()
    assert work.proposed == [MEDIAN.strip("# ")]
    assert not (tmp_path / "claude").exists()


@pytest.mark.spec("E13")
def test_what_the_saved_notebook_held_is_proposed_once_and_never_saved(
    home: Path, tmp_path: Path
) -> None:
    work = Work(home, tmp_path / "work", markdown("Always use the mode for latency."))
    work.cell("x = 1")
    found = work.extract()
    assert work.memories == []
    assert work.proposed == ["Always use the mode for latency."]
    assert len(found.proposed) == 1
    (proposal,) = waiting.waiting(work.project.proposals)
    assert proposal.job == learning.JOB
    table.call(work.place(), ["proposals", "--refuse", proposal.id])
    work.restart()
    work.cell("x = 2")
    work.extract()
    assert work.proposed == []


@pytest.mark.spec("E13")
def test_where_nobody_knows_what_the_notebook_held_all_is_proposed(work: Work) -> None:
    work.notebook.write_text('{"cells": [')
    work.restart()
    work.cell(MEDIAN)
    work.extract()
    assert (work.memories, work.proposed) == ([], [MEDIAN.strip("# ")])


@pytest.mark.spec("E13")
def test_each_kernel_has_its_own_notebook_to_compare_with(work: Work) -> None:
    work.cell("# Always use UTC for times.")
    # Another version of the file came meanwhile, with the next kernel.
    work.save(*markdown("Never ask before deleting files."))
    work.restart()
    work.cell("x = 1")
    work.extract()
    assert work.said == ["Always use UTC for times."]
    assert work.proposed == ["Never ask before deleting files."]
    assert set(looked_through.opened(work.folder)) == {1, 2}


@pytest.mark.spec("L7", "E2")
def test_a_secret_is_never_kept_and_a_private_cell_is_not_compared(work: Work) -> None:
    work.save(
        {"cell_type": "code", "metadata": {}, "source": "%%private\nhidden = 'grey heron'"},
        {"cell_type": "code", "metadata": {}, "source": "password = 'hunter2-hunter2'"},
    )
    work.restart()
    work.cell("# Always log in with the token ghp_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789.")
    assert work.extract().saved == ()
    kept = work.folder.opened.read_text()
    assert "heron" not in kept and "hunter2" not in kept


CENTS = "We agreed that all amounts are in cents."


@pytest.mark.spec("E13")
def test_what_the_page_tells_counts_once_and_as_a_persons_only_if_it_did_not_come_with_the_file(
    home: Path, tmp_path: Path
) -> None:
    theirs = "Always use the mean for the level."
    came = "We decided that the gauge is read at noon."
    work = Work(home, tmp_path / "work", markdown(theirs))
    # half a sentence is what was typed first, and is no more
    work.page("a", "We agreed that all amounts")
    work.page("a", CENTS)
    work.page("b", theirs)
    work.page("c", came, origin="file")
    work.page("d", "# MAGIC DOC: Rates\n\nWe decided to use the rate of noon.")
    work.cell("1")
    work.extract()
    assert work.said == [CENTS]
    assert len(work.proposed) == 2
    # the same text saved into the file is no other
    both = [{**cell, "id": id} for cell, id in zip(markdown(CENTS, theirs), "ab", strict=True)]
    work.save(*both)
    work.cell("2")
    outcome = work.extract()
    assert (outcome.saved, outcome.proposed, outcome.refused) == ((), (), ())
    known = looked_through.read(work.folder)
    assert known is not None and set(known.looked_at) == {"a", "b", "c"}


def test_of_a_text_in_page_and_file_the_newer_is_looked_at(home: Path, tmp_path: Path) -> None:
    old, now = "We decided to use the mean for the level.", "We decided to use the median for it."
    work = Work(home, tmp_path / "work")
    work.save({**markdown(old)[0], "id": "a"})
    os.utime(work.notebook, (1_700_000_000, 1_700_000_000))
    work.page("a", now)
    work.cell("1")
    work.extract()
    assert work.said == [now]
    # edited elsewhere since, with no page open
    late = "We decided to use the third quartile for it."
    work.save({**markdown(late)[0], "id": "a"})
    os.utime(work.notebook, (4_000_000_000, 4_000_000_000))
    work.cell("2")
    work.extract()
    assert late in work.said


def turns(*began: float, milliseconds: float = 10.0) -> list[Turn]:
    return [
        Turn(
            f"{n:024x}",
            datetime.fromtimestamp(1_000_000 + at, UTC).isoformat(),
            "x",
            duration_ms=milliseconds,
        )
        for n, at in enumerate(began, 1)
    ]


@pytest.mark.spec("E4")
def test_a_run_all_counts_once() -> None:
    assert learning_gate.eligible(turns(0, 0.05, 0.09)) == 1
    assert learning_gate.eligible(turns(0, 5, 10)) == 3
    assert learning_gate.eligible([Happening("1", utc_now(), "loaded")]) == 0


@pytest.mark.spec("E4")
def test_it_runs_at_rest_after_each_turn_or_after_as_many_as_wanted(work: Work) -> None:
    own, session = work.session.extracting, work.session
    assert own.due(work.settings) is None
    id = work.recorded.begin("x = 1")
    session.observe()
    assert own.due(work.settings) is None
    assert own.gate(work.settings).reason == "a cell is running"
    work.recorded.end(id)
    session.observe()
    assert own.due(work.settings) == learning_gate.REST_SECONDS
    eight = Settings.read({"Extraction": {"every_turns": 8}})[0]
    assert own.due(eight) == 120.0
    assert "of 8" in own.gate(eight).reason
    work.clock.now += 120
    assert own.due(eight) == 0.0
    assert own.gate(eight).open
    off = Settings.read({"Extraction": {"enabled": False}})[0]
    assert own.due(off) is None
    assert "turned off" in own.gate(off).reason
    assert asyncio.run(session.run_due()) is not None
    assert session.due() is None
    assert "every turn" in session.status()["gates"]["extraction"]


@pytest.mark.spec("E4")
def test_what_comes_during_a_run_waits_for_one_run_after_it(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    real = extraction.extract

    def slow(context: Any, entries: Any, size: int = 0) -> Extracted:
        runs.append(len(entries))
        time.sleep(0.2)
        return real(context, entries, size)

    monkeypatch.setattr(extraction, "extract", slow)

    async def main() -> None:
        own = work.session.extracting
        work.cell("# Always use UTC for times.")
        work.session.observe()
        flying = asyncio.create_task(own.extract(work.settings))
        await asyncio.sleep(0.1)
        for n in range(3):
            work.cell(f"# Never plot series {n} alone.")
            work.session.observe()
        later = [asyncio.create_task(own.extract(work.settings)) for _ in range(20)]
        await asyncio.gather(flying, *later)
        assert not own.running
        assert own.due(work.settings) is None

    asyncio.run(main())
    assert runs == [1, 4]
    assert len(work.memories) == 4


@pytest.mark.spec("E4", "L2")
def test_a_run_that_fails_is_told_and_tried_again(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.cell(MEDIAN)
    with monkeypatch.context() as broken:
        broken.setattr(extraction, "drafts", lambda material: 1 / 0)
        found = work.extract()
    assert found.status == "failed" and "division" in found.error
    assert [each.kind for each in work.events] == ["failed"]
    assert "the next try is in 5 s" in work.session.extracting.gate(work.settings).reason
    work.clock.now += 5
    asyncio.run(work.session.extracting.run_due(work.settings))
    assert len(work.memories) == 1


@pytest.mark.spec("E11")
def test_the_end_of_a_kernel_looks_through_what_is_left(work: Work) -> None:
    work.cell(MEDIAN)
    work.save(*markdown("Never delete raw files, the lab needs them."))
    work.session.observe()
    asyncio.run(work.session.finish())
    assert len(work.memories) == 2


@pytest.mark.spec("L11")
def test_a_run_has_its_minutes(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.cell(MEDIAN)
    later = iter((0.0, 1e9))
    with monkeypatch.context() as slow:
        slow.setattr(extraction, "time", SimpleNamespace(monotonic=lambda: next(later)))
        assert work.extract().status == "cancelled"
    assert work.memories == []
    assert len(work.extract().saved) == 1


def test_the_command_says_what_was_saved_and_how_to_take_it_back(work: Work) -> None:
    work.cell(MEDIAN)
    sessions.update(work.folder, kernel=None)
    page = table.call(work.place(), ["extract"])
    assert "1 memory saved" in page.markdown
    assert "never the mean" in page.markdown
    run = page.data["run"]
    assert f"ipymemory undo {run[:16]}" in page.markdown
    table.call(work.place(), ["undo", run])
    assert work.memories == []
    assert "Nothing new" in table.call(work.place(), ["extract"]).markdown


@pytest.mark.spec("E11")
def test_what_an_earlier_session_left_is_looked_through_by_the_next(
    home: Path, tmp_path: Path
) -> None:
    left = Work(home, tmp_path / "work")
    left.cell("x = 1")
    left.extract()
    left.cell(MEDIAN)
    left.cell("# Always send the data home.", "c1")
    sessions.update(left.folder, kernel=None)
    # Another notebook of the project, whose session nobody looked at: not known whose words.
    old = Recorded(home, tmp_path / "work", "old")
    old.cell("# Always use the mode for latency.")
    sessions.update(old.folder, kernel=None)
    # And one that a kernel still holds.
    held = Recorded(home, tmp_path / "work", "held")
    looked_through.open_kernel(held.folder, sessions.read(held.folder))
    held.cell("# Always use the maximum for latency.")
    other = processes.identity(os.getppid())
    sessions.update(held.folder, kernel=other)
    new = Work(home, tmp_path / "work", name="new")
    new.cell("y = 1")
    assert len(looked_through.left_behind(new.project, new.folder)) == 1
    new.extract()
    assert new.said == [MEDIAN.strip("# "), "Always send the data home."]
    assert {each.source.session for each in new.memories} == {left.folder.id}
    assert looked_through.left_behind(new.project, new.folder) == []


@pytest.mark.spec("E9")
def test_what_was_kept_is_told_once_and_not_if_it_was_undone(work: Work) -> None:
    assert news(work.project, work.folder) == ("", [])
    work.cell(MEDIAN)
    run = work.extract().run
    sentence, runs = news(work.project, work.folder)
    assert sentence == (
        "Kept from what you said: “Always use the median, never the mean, for latency.”; "
        f"`%memory undo {run[:16]}` takes it back."
    )
    assert runs == [run]
    assert news(work.project, work.folder, told=[run]) == ("", [])
    assert news(work.project, work.folder, shown=f"undo {run[:16]}") == ("", [run])
    work.cell("# Always use UTC for times.\n# Never plot raw counts again.")
    work.cell("# Never delete the raw files.\nx = 2")
    work.extract()
    assert "3 memories" in news(work.project, work.folder, told=[run])[0]
    work.event("told", runs=[run])
    work.cell("x = 3")
    later = work.extract()
    assert run not in news(work.project, work.folder)[1]
    assert later.saved == ()
    work.undo()
    assert news(work.project, work.folder)[0] == ""


@pytest.mark.spec("E9")
def test_the_line_of_loading_tells_what_the_last_kernel_kept(work: Work) -> None:
    work.cell(MEDIAN)
    run = work.extract().run
    sessions.update(work.folder, kernel=None)
    identity = Identity(work.notebook, None, "kernel-book.json", False)
    line, told = greeting.line(work.project, identity, datetime.now(UTC))
    assert "Kept from what you said" in line and told == [run]
    assert "1 memory." in line
