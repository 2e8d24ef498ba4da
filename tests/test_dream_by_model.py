"""A dream by a model: what it may do to memories, what it may look at, and how it fails.

A real dream, the real SDK, a server on a real socket; the model's answers are made here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from model_server import ModelServer
from scripted import Call, Script, good

from ipymemory import consent, places
from ipymemory.config import Settings
from ipymemory.cost import Ledger
from ipymemory.dream_lock import NAME
from ipymemory.dream_model import model_of
from ipymemory.events import Bus, Event
from ipymemory.history import History
from ipymemory.jobs import dream
from ipymemory.jobs.dream import Context, Dreamt
from ipymemory.memory_files import MemoryFolder, drafts, opened, proposals
from ipymemory.memory_files.values import Draft, Source
from ipymemory.places import Project

OLD, LATER, NEW = (f"2026-11-{day}T09:00:00.000Z" for day in (23, 24, 25))
"""A Monday and the two days after it."""

PARTS = {
    "exports": "Exports of the shop are delivered as CSV files. They use the time zone of Vienna.",
    "exports-again": "The exports of the shop are delivered as CSV files. Files have no header.",
    "exports-short": "The exports of the shop are delivered as CSV.",
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


class Dreams:
    """A project with memories, and dreams of it."""

    def __init__(self, home: Path, root: Path, server: ModelServer) -> None:
        root.mkdir(exist_ok=True)
        self.project: Project = places.project_of(root, places.home(""))
        self.settings = Settings.read({"Engine": {"tries": 1, "answer_seconds": 20.0}})[0]
        consent.choose(self.project, "anthropic", server.host)
        self.events: list[Event] = []
        self.asks = True

    @property
    def folder(self) -> MemoryFolder:
        return opened(self.project, self.settings)

    def remember(
        self, name: str, text: str, kind: str = "project", time: str = OLD, **more: str
    ) -> None:
        source = Source(
            f"session-{name}", "work.ipynb", (f"turn-{name}",), text, more.get("origin", "person")
        )
        draft = drafts.checked(Draft(kind, name, "", text, source, more.get("subject", "")))
        path = self.folder.folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drafts.file_text(name, draft, time), "utf-8", newline="\n")

    def ready(self) -> None:
        """Have a folder of memories as a person has, with its index."""
        for name, text in PARTS.items():
            self.remember(name, text)
        self.remember("shop", "See [[exports-again]] of the shop before March reports are made.")
        self.remember("tea", "Tests are called before tea.", "feedback")
        for n in range(10):
            self.remember(f"lake-{n}", f"Lake {n} was measured by the office of town {n}.")
        self.folder.rebuild_index()

    def held(self) -> dict[str, bytes]:
        top = self.folder.folder
        return {
            each.relative_to(top).as_posix(): each.read_bytes()
            for each in top.rglob("*")
            if each.is_file() and each.name != NAME
        }

    def context(self, *, by_hand: bool = True) -> Context:
        bus = Bus()
        bus.subscribe(self.events.append)
        model, note = model_of(self.project, self.settings, by_hand=by_hand)
        return Context(self.project, self.settings, bus, model=model, note=note, asks=self.asks)

    def dream(self, **more: bool) -> Dreamt:
        return dream.dream(self.context(**more))

    def waiting(self) -> list[str]:
        return [each.name for each in proposals.waiting(self.project.proposals)]


@pytest.fixture
def dreams(home: Path, tmp_path: Path, server: ModelServer) -> Dreams:
    made = Dreams(home, tmp_path / "work", server)
    made.ready()
    return made


def merge(keep: str, gone: str, text: str) -> Call:
    return "Merge", {"keep": keep, "gone": gone, "text": text}


def remove(name: str, because: str = "It is not true.") -> Call:
    return "Remove", {"name": name, "because": because}


def rewrite(name: str, text: str) -> Call:
    return "Rewrite", {"name": name, "text": text}


MERGED = (
    "Exports of the shop are delivered as CSV files.\n"
    "They use the time zone of Vienna.\nFiles have no header."
)
MERGE = merge("exports", "exports-again\nexports-short", MERGED)


# What it does


@pytest.mark.spec("D4", "D5", "D7", "L8")
def test_a_model_merges_what_only_a_reader_sees_is_the_same(
    dreams: Dreams, server: ModelServer
) -> None:
    before = dreams.held()
    server.brain = script = good(
        ("Read", {"path": "exports.md"}),
        ("Grep", {"pattern": "CSV"}),
        ("Glob", {"pattern": "*.md"}),
        MERGE,
    )
    outcome = dreams.dream()
    assert [each.refused for each in script.told] == [False] * 4, script.told
    assert (
        "time zone of Vienna" in script.told[0].text and "exports-short.md" in script.told[1].text
    )
    assert outcome.status == "done" and outcome.counts["merged"] == 2, outcome
    assert set(before) - set(dreams.held()) == {"exports-again.md", "exports-short.md"}
    kept = dreams.folder.read("exports")
    assert kept.body.strip() == MERGED and kept.modified == OLD
    sources = (kept.source.alone, *kept.source.also)
    assert {each.session for each in sources} == {f"session-{each}" for each in PARTS}
    assert {each.quote for each in sources} == set(PARTS.values())
    assert "[[exports]]" in dreams.folder.read("shop").body
    assert not dreams.folder.drift()
    (run,) = [each for each in History(dreams.project.history).log.runs() if each.writes]
    assert (run.id, run.engine, run.job) == (outcome.run, "anthropic", "dream")
    History(dreams.project.history).undo(outcome.run)
    assert {k: v for k, v in dreams.held().items() if k != "MEMORY.md"} == {
        k: v for k, v in before.items() if k != "MEMORY.md"
    }


@pytest.mark.spec("D6", "L12", "L9")
def test_its_turns_are_told_as_they_come_and_what_is_kept_holds_counts(
    dreams: Dreams, server: ModelServer
) -> None:
    server.brain = Script(
        [[("Read", {"path": "tea.md"})], [MERGE, ("Read", {"path": "shop.md"})]],
        "Two went into the Vienna one.",
    )
    assert dreams.dream().status == "done"
    turns = [each.details for each in dreams.events if each.kind == "dream_turn"]
    assert [(each["turn"], each["calls"]) for each in turns] == [(1, 1), (2, 2), (3, 0)]
    assert turns[-1]["text"] == "Two went into the Vienna one."
    files = {each.details["file"] for each in dreams.events if each.kind == "dream_file"}
    assert files == {"exports.md", "exports-again.md", "exports-short.md", "shop.md"}
    told = [each for each in dreams.events if each.kind == "dream"]
    last = told[-1].details
    assert (last["turns"], last["calls"], last["engine"]) == (3, 3, "anthropic")
    assert last["tokens"] > 0 and last["usd"] > 0
    kept = [each for each in dreams.events if each.kind not in ("dream_turn", "dream_file")]
    assert "Vienna" not in str(kept) and "exports" not in str(kept)
    spent = Ledger(dreams.project).by_job()["dream"]
    assert spent.calls == 3 and spent.money == pytest.approx(last["usd"])
