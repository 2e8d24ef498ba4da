"""A dream at which others tug: memories saved in its middle, and kills at any moment."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer
from scripted import good
from test_dream import check, filled, held
from test_dream_by_model import MERGE, Dreams

from ipymemory import dream_journal
from ipymemory.config import Settings
from ipymemory.dream_lock import NAME, put
from ipymemory.history import History
from ipymemory.jobs import dream
from ipymemory.jobs.dream import Context
from ipymemory.memory_files import opened
from ipymemory.places import Project

pytestmark = [
    pytest.mark.usefixtures("home"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows"),
]

PROCESS = Path(__file__).with_name("dream_meddler.py")
OLD = 1_700_000_000_123_456_789


class Beside:
    """The other process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROCESS)],
            env={**os.environ, "PYTHONPATH": str(PROCESS.parent.parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.hear()["at"] == "loaded"

    def say(self, **told: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def dream_killed(self, project: Project, seconds: float, *, writing: bool, model: bool) -> None:
        """Have it dream, and kill that after `seconds`, counted from its first write or before."""
        self.say(root=str(project.root), model=model)
        pid = self.hear()["pid"]
        if writing and self.hear()["at"] != "updating":
            raise AssertionError("the dream wrote nothing")
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        self.say(reap=True)
        while self.hear()["at"] != "gone":
            pass

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def beside() -> Iterator[Beside]:
    made = Beside()
    yield made
    made.close()


def meddled(tmp_path: Path, beside: Beside, chance: random.Random, seconds: float) -> list[str]:
    """Dream while the other process adds, changes and deletes; return what came of its deeds."""
    project, folder = filled(tmp_path, 30)
    n = chance.randrange(6)
    deeds = [
        ("add", "", "Meanwhile somebody said a new thing."),
        # Of what the dream works on, and of what it only reads.
        ("change", f"twin-{n}-again", "Boats leave from another quay since spring."),
        ("delete", chance.choice(["dated-0", f"twin-{(n + 1) % 6}-first", "plain-0"]), ""),
    ]
    chance.shuffle(deeds)
    moments = sorted(chance.uniform(0, seconds) for _ in deeds)
    delays = [at - before for at, before in zip(moments, [0.0, *moments], strict=False)]
    beside.say(root=str(project.root), deeds=[(d, *e) for d, e in zip(delays, deeds, strict=True)])
    outcome = dream.dream(Context(project, Settings()))
    came = dict(zip((each[0] for each in deeds), beside.hear()["came"], strict=True))
    names = {each[0]: each[1] for each in deeds}
    assert outcome.status == "done", outcome
    after = held(folder.folder)
    said = b" ".join(after.values())
    assert came["add"] == "done" and b"somebody said a new thing." in said
    # It was gone already where the dream had merged it into the other one.
    assert came["change"] in ("done", "MemoryMissing", "HistoryError")
    if came["change"] == "done":
        assert b"Boats leave from another quay since spring." in after[f"{names['change']}.md"]
    assert came["delete"] in ("done", "MemoryMissing", "HistoryError")
    if came["delete"] == "done":
        assert f"{names['delete']}.md" not in after
    # Whatever nobody touched is there once more, and said by somebody.
    touched = {names["change"], names["delete"], "dated-0", "plain-0"}
    for each in range(6):
        both = {f"twin-{each}-first", f"twin-{each}-again"}
        if not both & touched:
            assert len(both & {name.removesuffix(".md") for name in after}) == 1
            assert f"office of town {each} in".encode() in said
    assert not opened(project, Settings()).drift()
    assert not dream.left_behind(project, folder)
    return [f"{what} {how}" for what, how in came.items()]


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.spec("D4")
def test_what_another_process_saves_in_the_middle_survives_in_each_of_a_hundred_runs(
    tmp_path: Path, beside: Beside
) -> None:
    (tmp_path / "first").mkdir()
    project, _ = filled(tmp_path / "first", 30)
    seconds = dream.dream(Context(project, Settings())).seconds
    chance = random.Random(21)
    came: list[str] = []
    for n in range(100):
        (tmp_path / str(n)).mkdir()
        came += meddled(tmp_path / str(n), beside, chance, seconds)
    # Early and late: some changes came before the dream had merged, some after.
    assert came.count("change done") > 10 and came.count("delete done") > 50, came


@pytest.mark.worker
@pytest.mark.spec("D4")
def test_what_another_process_saves_in_the_middle_survives(tmp_path: Path, beside: Beside) -> None:
    meddled(tmp_path, beside, random.Random(3), 0.3)


def killed(project: Project, beside: Beside, seconds: float, **how: bool) -> bool:
    """Kill a dream, and let the next one come; return whether it was after its first write.

    The folder is wholly before or wholly after, the lock is rolled back, the next dream runs, and
    one undo takes all of it back.
    """
    folder = opened(project, Settings())
    before = held(folder.folder)
    put(folder.folder / NAME, "", OLD)
    beside.dream_killed(project, seconds, **how)
    begun = dream_journal.waits(project.folder / "dream")
    dream.recover(project, Settings())
    now = held(folder.folder)
    lock = folder.folder / NAME
    assert lock.read_bytes() == b""
    if now == before:
        assert lock.stat().st_mtime_ns == OLD
    else:
        whole(project, before, **how)
    assert not dream.left_behind(project, folder) and not folder.drift()
    outcome = dream.dream(Context(project, Settings()))
    assert outcome.status == "done" and lock.stat().st_mtime_ns > OLD
    assert [each.name for each in folder.folder.iterdir() if each.name[0] == "."] == [NAME]
    assert not [*(project.folder / "dream").glob("copy-*")]
    if now == before and not how["model"]:
        whole(project, before, **how)
    if History(project.history).entries():
        History(project.history).undo()
        assert held(folder.folder) == before
    return begun


def whole(project: Project, before: dict[str, bytes], *, model: bool, writing: bool) -> None:
    """Assert that a dream was carried out to its end."""
    if not model:
        check(project, before, 30)
        return
    after = held(opened(project, Settings()).folder)
    assert set(before) - set(after) == {"exports-again.md", "exports-short.md"}
    assert b"Vienna" in after["exports.md"] and b"no header" in after["exports.md"]
    assert b"[[exports]]" in after["shop.md"]


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.spec("D3")
def test_killed_at_a_hundred_moments_it_is_whole_and_the_next_dream_runs(
    tmp_path: Path, beside: Beside
) -> None:
    (tmp_path / "first").mkdir()
    project, _ = filled(tmp_path / "first", 30)
    seconds = dream.dream(Context(project, Settings())).seconds
    chance = random.Random(22)
    begun = 0
    for n in range(100):
        (tmp_path / str(n)).mkdir()
        project, _ = filled(tmp_path / str(n), 30)
        moment = chance.uniform(0, seconds)
        begun += killed(project, beside, moment, writing=bool(n % 2), model=False)
    assert begun > 20, begun


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.spec("D3")
def test_a_dream_by_a_model_that_is_killed_is_whole_and_the_next_one_runs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(23)
    begun = asked = 0
    with ModelServer() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        beside = Beside()
        try:
            for n in range(30):
                dreams = Dreams(home, tmp_path / f"work-{n}", server)
                dreams.ready()
                server.brain = good(("Read", {"path": "exports.md"}), MERGE)
                before = len(server.requests)
                # Its writing takes some hundredths of a second, more on a busy machine.
                moment = chance.uniform(0, chance.choice([0.03, 0.15]) if n % 2 else 0.8)
                how = {"writing": bool(n % 2), "model": True}
                begun += killed(dreams.project, beside, moment, **how)
                asked += len(server.requests) > before
        finally:
            beside.close()
    assert begun >= 1 and asked > 15, (begun, asked)
