"""The worker process, spoken to on its pipes: what it hears, how it ends, what cannot break it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from recorded import Recorded, until
from workers import SLOW, Piped, faulty, gone

from ipymemory import lines, sessions
from ipymemory.pipes import MOST_LINE, End, Outlet, Splitter, decode

pytestmark = pytest.mark.worker


@pytest.fixture
def recorded(home: Path, tmp_path: Path) -> Recorded:
    return Recorded(home, tmp_path / "work")


def test_it_reads_what_it_is_told_of_and_writes_the_notes(recorded: Recorded) -> None:
    with Piped(recorded) as worker:
        worker.hello(SessionNotes={"wait_seconds": 0.0})
        recorded.cell("x = 1")
        worker.say(type="turn")
        kinds = []
        while not kinds or kinds[-1] != "finished":
            kinds.append(worker.hear("event")["event"]["kind"])
        assert kinds[0] == "started"
        assert "wrote" in kinds
        assert "x = 1" in recorded.notes()
        assert worker.ask("ping")["value"] == "pong"
        status = worker.ask("status")["value"]
        assert status["gates"]["notes"] == "the notes cover every turn"
        assert status["services"]["notes"]["success"]
        worker.say(type="bye")
        assert worker.ends() == 0


def test_every_message_is_heard_and_a_wrong_one_does_no_harm(recorded: Recorded) -> None:
    with Piped(recorded) as worker:
        worker.say(type="turn")
        worker.hear("heard")
        assert "was told which session" in worker.ask("status")["error"]
        worker.hello()
        worker.raw(b"rubbish\n[1]\n{}\n\xff\n" + b"x" * (MOST_LINE + 10) + b"\n")
        for wrong in ({"type": "nonsense"}, {"type": "settings"}, {"type": "environment"}):
            worker.say(**wrong)
            worker.hear("heard")
        worker.say(type="settings", settings={"SessionNotes": {"wait_seconds": -1, "new": 1}})
        worker.hear("heard")
        reply = worker.ask("nonsense")
        assert (reply["ok"], reply["id"]) == (False, 7)
        assert "'nonsense'" in reply["error"]
        assert worker.log.count("passed over") >= 6
        assert "SessionNotes has no setting new" in worker.log
        assert worker.ask("ping")["ok"]


def test_a_hello_that_says_nothing_ends_it(recorded: Recorded) -> None:
    with Piped(recorded) as worker:
        worker.say(type="hello", session=str(recorded.folder.path))
        assert worker.ends() == 2
        assert "could not be used" in worker.log


@pytest.mark.spec("S4", "L13")
def test_settings_and_environment_count_from_the_next_run_on(
    recorded: Recorded, tmp_path: Path
) -> None:
    command = faulty(f"""
from ipymemory.extractive import ExtractiveModel
complete = ExtractiveModel.complete
async def tell(self, request):
    key = str(os.environ.get("ANTHROPIC_API_KEY")) + " " + str(os.environ.get("NO_PROXY"))
    Path({str(tmp_path / "key")!r}).write_text(key)
    return await complete(self, request)
ExtractiveModel.complete = tell
""")
    environment = dict(os.environ, ANTHROPIC_API_KEY="before", NO_PROXY="x")
    with Piped(recorded, command, env=environment) as worker:
        worker.hello(SessionNotes={"wait_seconds": 3600.0})
        recorded.cell("x = 1")
        worker.say(type="turn")
        worker.ask("ping")
        worker.say(type="environment", variables={"ANTHROPIC_API_KEY": "after", "NO_PROXY": None})
        worker.say(type="settings", settings={"SessionNotes": {"wait_seconds": 0.0}})
        until(lambda: (tmp_path / "key").exists(), "a run")
        until(lambda: "x = 1" in recorded.notes(), "notes")
        assert (tmp_path / "key").read_text() == "after None"
    assert "after" not in (tmp_path / "work" / "..").resolve().joinpath("key").name
    assert "after" not in worker.log


def test_a_stray_print_cannot_break_the_protocol(recorded: Recorded) -> None:
    command = faulty("""
import sys
from ipymemory.session import MemorySession
observe = MemorySession.observe
def loud(self):
    print('{"type": "reply", "id": 7, "ok": true, "value": "forged"}', flush=True)
    os.write(1, b"bytes on descriptor 1\\n")
    os.system("echo from a child")
    sys.stdin.read(5)
    return observe(self)
MemorySession.observe = loud
""")
    with Piped(recorded, command) as worker:
        worker.hello(SessionNotes={"wait_seconds": 0.0})
        recorded.cell("x = 1")
        worker.say(type="turn")
        assert worker.ask("ping")["value"] == "pong"
        until(lambda: "x = 1" in recorded.notes(), "notes")
        assert "bytes on descriptor 1" in worker.log
        assert "from a child" in worker.log


def test_it_is_out_of_the_kernels_way(recorded: Recorded) -> None:
    with Piped(recorded) as worker:
        worker.hello()
        process = psutil.Process(worker.process.pid)
        assert process.nice() == min(19, psutil.Process().nice() + 10)
        os.kill(worker.process.pid, signal.SIGINT)
        assert worker.ask("ping")["ok"]
        assert process.memory_info().rss < 40_000_000
        assert process.num_threads() <= 5
        used = process.cpu_times()
        time.sleep(1.0)
        assert sum(process.cpu_times()[:2]) - sum(used[:2]) < 0.1


@pytest.mark.spec("L5", "L11")
@pytest.mark.parametrize("end", ["eof", "bye"])
def test_the_run_in_flight_is_finished_and_what_is_left_is_covered(
    recorded: Recorded, end: str
) -> None:
    with Piped(recorded, faulty(SLOW.format(wait="await asyncio.sleep(0.5)"))) as worker:
        worker.hello(SessionNotes={"wait_seconds": 0.0})
        recorded.cell("x = 1")
        worker.say(type="turn")
        until((recorded.folder.path / "in flight").exists, "a run in flight")
        recorded.begin("y = 2; the_kernel_dies_here()")
        if end == "eof":
            worker.eof()
        else:
            worker.say(type="bye")
        assert worker.ends() == 0
    assert "x = 1" in recorded.notes()
    assert "y = 2" in recorded.notes()


@pytest.mark.spec("L11")
def test_a_run_that_takes_too_long_to_drain_is_stopped(recorded: Recorded) -> None:
    with Piped(recorded, faulty(SLOW.format(wait="await asyncio.sleep(600)"))) as worker:
        worker.hello(SessionNotes={"wait_seconds": 0.0}, Engine={"drain_seconds": 0.3})
        recorded.cell("x = 1")
        worker.say(type="turn")
        until((recorded.folder.path / "in flight").exists, "a run in flight")
        begun = time.monotonic()
        worker.eof()
        assert worker.ends() == 0
        assert time.monotonic() - begun >= 0.3
        assert "was stopped after 0.3 s" in worker.log
    runs = [each for each in lines.read(recorded.folder.worker_log)[0] if each["type"] == "run"]
    assert [each["status"] for each in runs] == ["cancelled"]
    assert sessions.read(recorded.folder).notes_through == ""


@pytest.mark.spec("L11")
def test_a_worker_that_is_stuck_is_ended(recorded: Recorded) -> None:
    """Its loop runs nothing any more, so a thread of its own ends it."""
    limits = "from ipymemory import worker\nworker.STUCK_SECONDS = worker.CANCEL_SECONDS = 0.1\n"
    with Piped(recorded, faulty(SLOW.format(wait="time.sleep(600)") + limits)) as worker:
        worker.hello(SessionNotes={"wait_seconds": 0.0}, Engine={"drain_seconds": 0.1})
        recorded.cell("x = 1")
        worker.say(type="turn")
        until((recorded.folder.path / "in flight").exists, "a run in flight")
        worker.eof()
        assert worker.ends() == 3
        assert "was stuck" in worker.log


def test_with_nothing_to_do_it_ends(recorded: Recorded) -> None:
    recorded.cell("x = 1")
    with Piped(recorded) as worker:
        worker.hello(SessionNotes={"wait_seconds": 0.3}, Engine={"idle_minutes": 0.01})
        until(lambda: "x = 1" in recorded.notes(), "notes")
        assert worker.ends() == 0
    # A cell that runs for hours keeps no worker: its end starts one.
    recorded.begin("while True: pass")
    with Piped(recorded) as worker:
        worker.hello(Engine={"idle_minutes": 0.01})
        assert worker.ends() == 0


def test_a_parent_that_does_not_read_holds_up_nothing(recorded: Recorded) -> None:
    with Piped(recorded) as worker:
        worker.hello(SessionNotes={"wait_seconds": 0.0})
        worker.reading.clear()
        recorded.cell("x = 1")
        worker.say(type="turn")
        question = json.dumps({"type": "ask", "id": 1, "name": "status", "args": {}}).encode()
        for _ in range(2000):
            worker.raw(question + b"\n")
        until(lambda: "x = 1" in recorded.notes(), "notes")
        recorded.cell("y = 2")
        worker.eof()
        assert worker.ends() == 0
    assert "y = 2" in recorded.notes()


ORPHANING = """
import os, subprocess, sys, time, json, signal
sys.path[:0] = json.loads(sys.argv[1])
from workers import Piped
from recorded import Recorded
from pathlib import Path
recorded = Recorded(Path(sys.argv[2]), Path(sys.argv[3]))
worker = Piped(recorded, start_new_session=True)
worker.hello(SessionNotes={"wait_seconds": 3600.0})
recorded.cell("x = 1")
worker.say(type="turn")
worker.hear("heard")
if os.fork() == 0:
    os.close(1)
    time.sleep(60)
    os._exit(0)
print(worker.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.spec("L5")
def test_a_child_that_holds_the_pipe_keeps_no_orphan(
    recorded: Recorded, home: Path, tmp_path: Path
) -> None:
    """The kernel is killed, and a child that its user forked holds both pipes open."""
    path = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    kernel = subprocess.run(
        [sys.executable, "-c", ORPHANING, json.dumps(path), str(home), str(tmp_path / "other")],
        stdout=subprocess.PIPE,
        timeout=60,
        start_new_session=True,
    )
    worker = int(kernel.stdout)
    try:
        until(lambda: gone(worker), "the end of the orphan")
    finally:
        for each in psutil.process_iter(["cmdline"]):
            if str(tmp_path / "other") in (each.info["cmdline"] or ()):
                each.kill()
    notes = list(home.glob("projects/other-*/sessions/*/notes.md"))
    assert "x = 1" in notes[0].read_text()


@pytest.mark.spec("L13")
def test_what_is_past_its_days_goes_when_a_worker_starts(recorded: Recorded, home: Path) -> None:
    other = Recorded(home, recorded.project.root, "other")
    other.cell("x = 1")
    other.writer.close()
    sessions.release(other.folder)
    then = (datetime.now(UTC) - timedelta(days=401)).timestamp()
    os.utime(other.folder.transcript, (then, then))
    with Piped(recorded) as worker:
        worker.hello()
        until(lambda: "expired" in recorded.project.properties(), "a look at what is old")
        assert not other.folder.path.exists()
        until(lambda: other.folder.id in worker.log, "what went, in the log")
        assert worker.ask("ping")["ok"]


@pytest.mark.spec("L2")
def test_a_home_that_cannot_be_written_is_told_and_no_end_of_it(recorded: Recorded) -> None:
    recorded.project.history.write_text("in the way")
    with Piped(recorded) as worker:
        worker.hello(SessionNotes={"wait_seconds": 0.0})
        recorded.cell("x = 1")
        worker.say(type="turn")
        while worker.hear("event")["event"]["kind"] != "failed":
            pass
        status = worker.ask("status")["value"]
        assert "the next try is in" in status["gates"]["notes"]
        assert str(recorded.project.history) in status["services"]["notes"]["error"]
        assert "were not updated" in worker.ask("update_notes")["error"]
        recorded.project.history.unlink()
        assert worker.ask("update_notes", force=True)["value"]["status"] == "done"


def test_lines_are_split_and_bounded() -> None:
    splitter = Splitter(10)
    assert list(splitter.feed(b"ab")) == []
    assert list(splitter.feed(b"c\nde\n\nf")) == [b"abc", b"de", b""]
    assert list(splitter.feed(b"x" * 20)) == [b"f" + b"x" * 20]
    assert list(splitter.feed(b"y" * 20)) == []
    assert list(splitter.feed(b"z\nnext\n")) == [b"next"]
    assert decode(b'{"type": "x"}') == {"type": "x"}
    for rubbish in (b"", b"1", b"[]", b"{}", b'{"type": 1}', b"\xff", b"[" * 100_000):
        assert decode(rubbish) is None


def test_an_end_whose_number_is_anothers_is_left_alone(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    end = End(writing)
    assert end.write(b"x")
    os.close(writing)
    users = os.open(tmp_path / "users", os.O_RDWR | os.O_CREAT)
    assert users == writing
    assert not end.write(b"y")
    assert End(reading).read() == b"x"
    end.close()
    assert os.write(users, b"mine") == 4
    assert (tmp_path / "users").read_bytes() == b"mine"
    os.close(users)
    source = End(reading)
    assert source.read() == b""
    source.close()
    source.close()
    assert source.read() == b""
    assert not source.write(b"z")


def test_an_outlet_never_waits() -> None:
    reading, writing = os.pipe()
    outlet = Outlet(End(writing))
    for _ in range(5000):
        outlet.say({"type": "event", "filling": "x" * 500})
    assert outlet.dropped > 3000
    outlet.close(0.01)
    os.close(reading)
