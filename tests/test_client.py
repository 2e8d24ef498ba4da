"""The client and its worker, as real processes: whatever becomes of one, the kernel goes on."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import filelock
import psutil
import pytest
import traitlets
from recorded import Recorded, until
from workers import SLOW, faulty, gone, stand_in

from ipymemory import lines, markdown, sending, sessions, started, starting
from ipymemory.client import Client
from ipymemory.config import Settings
from ipymemory.errors import WorkerError
from ipymemory.history import History
from ipymemory.restarts import (
    DEATHS_AN_HOUR,
    FIRST_WAIT,
    GRACE_SECONDS,
    HEARD_SECONDS,
    LAST_WAIT,
    Restarts,
    Suspicion,
)

pytestmark = pytest.mark.worker

TESTS = Path(__file__).parent
TOP = TESTS.parent


@pytest.fixture
def recorded(home: Path, tmp_path: Path) -> Recorded:
    return Recorded(home, tmp_path / "work")


@pytest.fixture(autouse=True)
def no_thread_fails(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    failed: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    yield
    assert not failed


Start = Callable[..., Client]


@pytest.fixture
def start(recorded: Recorded) -> Iterator[Start]:
    made: list[Client] = []

    def make(command: list[str] | None = None, **config: Any) -> Client:
        settings = Settings.read({"SessionNotes": {"wait_seconds": 0.05}, **config})[0]
        made.append(Client(recorded.folder, recorded.project, settings, command))
        return made[-1]

    yield make
    for each in made:
        each.close(5.0, drain=False)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start a worker that died again at once."""
    monkeypatch.setattr("ipymemory.restarts.FIRST_WAIT", 0.02)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a worker for hanging soon, which on a busy machine one that lives may be taken for."""
    monkeypatch.setattr("ipymemory.restarts.HEARD_SECONDS", 0.5)
    monkeypatch.setattr("ipymemory.restarts.GRACE_SECONDS", 0.3)


def noted(recorded: Recorded, text: str) -> None:
    until(lambda: text in recorded.notes(), f"{text!r} in the notes")


def pid_of(client: Client) -> int:
    return int(until(lambda: client.worker_pid, "a worker"))


# The first turn, and the last.


def test_the_first_turn_starts_it_and_notes_appear(recorded: Recorded, start: Start) -> None:
    before = set(threading.enumerate())
    client = start()
    assert (client.state, client.worker_pid, client.events) == ("not started", None, ())
    client.configure(Settings())
    assert set(threading.enumerate()) <= before
    recorded.cell("first = 1")
    client.hint()
    noted(recorded, "first = 1")
    assert client.state == "running"
    assert client.last_error == ""
    until(lambda: client.events and client.events[-1]["kind"] == "finished", "the last event")
    assert client.ask("ping", 20) == "pong"
    assert client.ask("status", 20)["gates"]["notes"] == "the notes cover every turn"
    with pytest.raises(WorkerError, match="no question called 'dance'"):
        client.ask("dance", 20)
    with pytest.raises(WorkerError, match="Ask for less"):
        client.ask("ping", 20, filling="x" * 40_000)
    assert client.garbage == 0


def test_a_question_starts_it_too(recorded: Recorded, start: Start) -> None:
    recorded.cell("x = 1")
    client = start(SessionNotes={"wait_seconds": 3600.0})
    assert client.ask("update_notes", 20, force=True)["status"] == "done"
    assert "x = 1" in recorded.notes()


@pytest.mark.spec("S6")
def test_a_thousand_hints_are_few_updates_and_none_is_lost(
    recorded: Recorded, start: Start
) -> None:
    client = start()
    for number in range(1000):
        recorded.cell(f"x_{number} = {number}")
        client.hint()
    noted(recorded, "x_999 = 999")
    until(lambda: client.ask("status", 20)["waiting"] == 0, "an end of the work")
    runs = [each for each in lines.read(recorded.folder.worker_log)[0] if each["type"] == "run"]
    assert 1 <= len(runs) <= 10
    newest = recorded.cell("last = 1")
    client.hint()
    until(lambda: sessions.read(recorded.folder).notes_through == newest, "the last one")


@pytest.mark.spec("L2")
def test_its_threads_are_nobodys_and_end_with_it(recorded: Recorded, start: Start) -> None:
    before = set(threading.enumerate())
    client = start()
    client.hint()
    client.ask("ping", 20)
    threads = set(threading.enumerate()) - before
    assert {each.name for each in threads} == {"ipymemory-sender", "ipymemory-reader"}
    for each in threads:
        assert each.daemon
        assert getattr(each, "pydev_do_not_trace", False)
        assert getattr(each, "is_pydev_daemon_thread", False)
    worker = pid_of(client)
    begun = time.monotonic()
    client.close()
    assert time.monotonic() - begun < 1.5
    until(lambda: not any(each.is_alive() for each in threads), "the end of the threads")
    assert gone(worker)
    assert client.state == "ended"
    client.hint()
    client.configure(Settings())
    client.close()
    with pytest.raises(WorkerError, match="is closed"):
        client.ask("ping", 1)
    assert set(threading.enumerate()) <= before


@pytest.mark.spec("L5", "L11")
def test_closing_covers_what_is_left(recorded: Recorded, start: Start) -> None:
    client = start(SessionNotes={"wait_seconds": 3600.0})
    recorded.cell("last = 1")
    client.hint()
    client.ask("ping", 20)
    assert recorded.notes() == ""
    client.close(5.0)
    assert "last = 1" in recorded.notes()


def test_closing_waits_a_second_for_a_run_in_flight_and_lets_it_finish(
    recorded: Recorded, start: Start
) -> None:
    client = start(faulty(SLOW.format(wait="await asyncio.sleep(1.0)")))
    recorded.cell("x = 1")
    client.hint()
    until((recorded.folder.path / "in flight").exists, "a run in flight")
    worker = pid_of(client)
    begun = time.monotonic()
    client.close(0.2)
    assert time.monotonic() - begun < 0.9
    assert recorded.notes().count("x = 1") == 0
    noted(recorded, "x = 1")
    until(lambda: gone(worker), "its end")


def test_closing_without_drain_ends_it_at_once(recorded: Recorded, start: Start) -> None:
    client = start(faulty(SLOW.format(wait="await asyncio.sleep(600)")))
    recorded.cell("x = 1")
    client.hint()
    until((recorded.folder.path / "in flight").exists, "a run in flight")
    worker = pid_of(client)
    client.close(5.0, drain=False)
    assert gone(worker)


def test_closing_ends_questions_that_are_open(recorded: Recorded, start: Start) -> None:
    client = start(stand_in("import sys, time; sys.stdin.readline(); time.sleep(600)"))
    said: list[str] = []

    def ask() -> None:
        try:
            client.ask("ping", 30)
        except WorkerError as error:
            said.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    pid_of(client)
    client.close(0.2, drain=False)
    asking.join(10)
    assert said == ["The worker of this session was closed."]


@pytest.mark.spec("L5")
def test_idle_it_ends_and_the_next_turn_starts_it(recorded: Recorded, start: Start) -> None:
    client = start(Engine={"idle_minutes": 0.01})
    pids = set()
    for number in range(3):
        recorded.cell(f"x_{number} = 1")
        client.hint()
        pids.add(pid_of(client))
        noted(recorded, f"x_{number} = 1")
        until(lambda: client.state == "ended", "its end")
        assert client.last_error == ""
        assert not psutil.Process().children()
    assert len(pids) == 3


LEAVING = """
from ipymemory.worker import Worker
take = Worker._take
def leave(self, message):
    if message["type"] == {kind!r} and once("left"):
        self.leave(0)
        os._exit(0)
    take(self, message)
Worker._take = leave
"""


def test_a_question_that_crosses_with_its_leaving_is_answered_by_the_next(
    recorded: Recorded, start: Start
) -> None:
    client = start(faulty(LEAVING.format(kind="ask")))
    assert client.ask("ping", 20) == "pong"
    assert (recorded.folder.path / "left").exists()
    assert client.last_error == ""


def test_a_turn_that_crosses_with_its_leaving_is_not_forgotten(
    recorded: Recorded, start: Start
) -> None:
    client = start(faulty(LEAVING.format(kind="turn")))
    recorded.cell("x = 1")
    client.hint()
    noted(recorded, "x = 1")
    assert (recorded.folder.path / "left").exists()
    assert client.last_error == ""


def test_a_turn_during_the_telling_of_one_is_told_of_too(
    recorded: Recorded, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, told = start(), []
    send = sending.Sender._send

    def slow(self: Any, message: Any) -> None:
        send(self, message)
        told.append(message["type"])
        if told.count("turn") == 1:
            client.hint()

    monkeypatch.setattr(sending.Sender, "_send", slow)
    client.hint()
    until(lambda: told.count("turn") == 2, "the second turn")
    time.sleep(0.1)
    assert told.count("turn") == 2


@pytest.mark.spec("S4", "L13")
def test_settings_and_keys_reach_it_while_it_runs(
    recorded: Recorded, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    # An engine is asked twice a run, and the second time may be while the test reads.
    tell = (
        "(Path('key.new').write_text(str(os.environ.get('ANTHROPIC_API_KEY'))), "
        "os.replace('key.new', 'key'))"
    )
    client = start(faulty(SLOW.format(wait=tell)), SessionNotes={"enabled": False})
    recorded.cell("first = 1")
    client.hint()
    assert "turned off" in client.ask("status", 20)["gates"]["notes"]
    for number in range(100):
        client.configure(Settings.read({"SessionNotes": {"wait_seconds": number / 100}})[0])
    noted(recorded, "first = 1")
    key = recorded.folder.path / "key"
    assert key.read_text() == "None"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "set-with-percent-env")
    recorded.cell("second = 2")
    client.hint()
    noted(recorded, "second = 2")
    assert key.read_text() == "set-with-percent-env"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    client.ask("update_notes", 20, force=True)
    assert key.read_text() == "None"
    assert client.state == "running"


# A worker that dies.

PHASES = {
    "before hello": "if once('died'): die()",
    "at hello": """
from ipymemory.worker import Worker
hello = Worker._hello
Worker._hello = lambda self, message: die() if once("died") else hello(self, message)
""",
    "as it observes": """
from ipymemory.session import MemorySession
observe = MemorySession.observe
MemorySession.observe = lambda self: die() if once("died") else observe(self)
""",
    "in the engine": SLOW.format(wait="if once('died'): die()"),
    "logged, not written": """
from ipymemory.history import Run
before = Run.before
def logged(self, *rest):
    before(self, *rest)
    if once("died"):
        die()
Run.before = logged
""",
    "written, not said so": """
from ipymemory.history import Run
after = Run.after
Run.after = lambda self, *rest: die() if once("died") else after(self, *rest)
""",
    "in the middle of the edits": """
from ipymemory.history import Run
write, count = Run.write, []
def third(self, *rest, **more):
    count.append(1)
    if len(count) == 3 and once("died"):
        die()
    return write(self, *rest, **more)
Run.write = third
""",
    "before the base": """
from ipymemory.jobs import session_notes
base = session_notes._Update.write_base
session_notes._Update.write_base = (
    lambda self, outcome: die() if once("died") else base(self, outcome)
)
""",
    "before it is noted": """
from ipymemory import sessions
update = sessions.update
sessions.update = lambda *rest, **more: die() if once("died") else update(*rest, **more)
""",
}


@pytest.mark.spec("L2", "L5")
@pytest.mark.parametrize("phase", PHASES)
def test_killed_in_any_phase_the_next_one_finishes(
    recorded: Recorded, start: Start, quick: None, phase: str
) -> None:
    client = start(faulty(PHASES[phase]))
    recorded.cell("import math")
    newest = recorded.cell("def area(radius):\n    return math.pi * radius ** 2")
    client.hint()
    until((recorded.folder.path / "died").exists, "its death")
    until(lambda: sessions.read(recorded.folder).notes_through == newest, "the work of another")
    assert client.state == "running"
    assert client.last_error == "it ended without a word"
    killed = recorded.notes()
    assert "area(radius)" in killed
    assert len(markdown.sections(killed)) == 10
    assert not [each for each in recorded.folder.path.iterdir() if each.name.endswith(".tmp")]
    # As if nothing had happened: the same turns in another session give the same notes.
    recorded.folder.notes.unlink()
    recorded.folder.notes_base.unlink()
    client.ask("update_notes", 20, force=True)
    assert recorded.notes() == killed
    assert History(recorded.project.history).diff()


@pytest.mark.spec("L5")
def test_killed_while_it_drains_the_next_kernel_finishes(
    recorded: Recorded, start: Start, home: Path
) -> None:
    dying = faulty(SLOW.format(wait="if once('died'): die()"))
    client = start(dying, SessionNotes={"wait_seconds": 3600.0})
    recorded.cell("first = 1")
    client.hint()
    client.ask("ping", 20)
    client.close(10.0)
    assert (recorded.folder.path / "died").exists()
    assert "first = 1" not in recorded.notes()
    sessions.release(recorded.folder)
    again = Recorded(home, recorded.project.root)
    assert again.folder == recorded.folder
    start().hint()
    noted(recorded, "first = 1")


@pytest.mark.spec("L2")
def test_killed_at_rest_it_is_there_again_without_a_turn(
    recorded: Recorded, start: Start, quick: None
) -> None:
    client = start()
    recorded.cell("x = 1")
    client.hint()
    noted(recorded, "x = 1")
    worker = pid_of(client)
    os.kill(worker, signal.SIGKILL)
    until(lambda: client.worker_pid not in (None, worker), "another one")
    assert gone(worker)
    assert client.ask("ping", 20) == "pong"


def test_who_asks_one_that_dies_is_told(recorded: Recorded, start: Start, quick: None) -> None:
    client = start(faulty(SLOW.format(wait="die()")))
    recorded.cell("x = 1")
    with pytest.raises(WorkerError, match="ended before it answered: it ended without a word"):
        client.ask("update_notes", 20, force=True)


@pytest.mark.spec("L2")
def test_one_that_dies_again_and_again_is_left_alone_for_an_hour(
    recorded: Recorded, start: Start, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipymemory.restarts.LAST_WAIT", 0.05)
    mark = f"open({str(recorded.folder.path / 'starts')!r}, 'a').write('x')"
    client = start(stand_in(f"{mark}; raise SystemExit(3)"))
    client.hint()
    until(lambda: "within an hour" in client.last_error, "the limit")
    assert client.state == "failing"
    assert client.last_error.endswith("last: it ended without a word")
    for _ in range(20):
        client.hint()
    with pytest.raises(WorkerError, match="does not run: it failed 20 times"):
        client.ask("ping", 20)
    assert (recorded.folder.path / "starts").read_text() == "x" * DEATHS_AN_HOUR


@pytest.mark.spec("L2")
def test_one_that_cannot_be_started_is_told(
    recorded: Recorded, start: Start, quick: None, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    client = start([str(program)])
    recorded.cell("x = 1")
    client.hint()
    until(lambda: client.last_error, "an error")
    assert client.state == "failing"
    assert client.last_error.startswith("it could not be started: ")
    program.write_text(f'#!{sys.executable} -I\nprint(\'{{"type": "ready"}}\', flush=True)\n')
    with program.open("a") as file:
        file.write('import sys\nfor line in sys.stdin: print(\'{"type": "heard"}\', flush=True)')
    program.chmod(0o700)
    until(lambda: client.state == "running", "a try that succeeds")


def test_a_home_where_nothing_can_be_made_is_told(home: Path, tmp_path: Path) -> None:
    recorded = Recorded(home, tmp_path / "work")
    recorded.writer.close()
    (tmp_path / "in the way").write_text("")
    folder = type(recorded.folder)(tmp_path / "in the way" / "session")
    client = Client(folder, recorded.project, Settings())
    client.hint()
    until(lambda: "in the way" in client.last_error, "an error")
    client.close()


def test_restarts_take_longer_each_time_and_begin_anew() -> None:
    restarts, now = Restarts(), 10_000.0
    waits = []
    for _ in range(12):
        assert not restarts.failed(now)
        waits.append(restarts.not_before - now)
        now += 400
    assert waits == [min(FIRST_WAIT * 2**n, LAST_WAIT) for n in range(12)]
    assert restarts.in_a_row == 12
    restarts.failed(now, lived=3600.0)
    assert restarts.not_before - now == FIRST_WAIT
    restarts.went_well()
    assert (restarts.in_a_row, restarts.not_before) == (0, 0.0)
    fast = Restarts()
    assert [fast.failed(now + n) for n in range(DEATHS_AN_HOUR)].count(True) == 1
    assert fast.not_before == now + 3600
    assert not fast.failed(now + 3601.5)


# A worker that hangs, and one that talks rubbish.


@pytest.mark.spec("L2")
def test_one_that_stands_still_is_ended_and_started_again(
    recorded: Recorded, start: Start, quick: None, impatient: None
) -> None:
    client = start()
    recorded.cell("before = 1")
    client.hint()
    noted(recorded, "before = 1")
    worker = pid_of(client)
    os.kill(worker, signal.SIGSTOP)
    recorded.cell("after = 1")
    client.hint()
    with pytest.raises(WorkerError, match=r"has not answered for 0\.1 s"):
        client.ask("ping", 0.1)
    noted(recorded, "after = 1")
    # On a busy machine the one that is started next may be found too slow as well.
    assert re.fullmatch(r"it did not hear for [\d.]+ s and was ended", client.last_error)
    assert client.worker_pid != worker
    assert gone(worker)


def test_what_is_taken_for_hanging() -> None:
    suspicion = Suspicion()
    assert not suspicion.confirmed(None, 1e6)
    assert not suspicion.confirmed(1000.0, 1000.0 + HEARD_SECONDS - 1)
    assert suspicion.next_look(1000.0) == 1000.0 + HEARD_SECONDS
    late = 1000.0 + HEARD_SECONDS
    assert not suspicion.confirmed(1000.0, late)
    assert suspicion.next_look(1000.0) == late + GRACE_SECONDS
    assert not suspicion.confirmed(1000.0, late + GRACE_SECONDS - 1)
    assert suspicion.confirmed(1000.0, late + GRACE_SECONDS)
    # It was the kernel that stood still: then the worker gets its grace once more.
    later = late + 600
    assert not suspicion.confirmed(1000.0, later)
    assert suspicion.next_look(1000.0) == later + GRACE_SECONDS
    # It heard meanwhile.
    assert not suspicion.confirmed(later, later + 1)
    assert not suspicion.confirmed(None, later + GRACE_SECONDS)
    # One that was ended for it may have been busy: the next gets twice the time.
    suspicion.ended(hung=True)
    suspicion.ended(hung=True)
    assert suspicion.limit == 4 * HEARD_SECONDS
    suspicion.ended(hung=False)
    assert suspicion.limit == HEARD_SECONDS


@pytest.mark.spec("L2")
def test_one_that_never_reads_holds_up_nothing(recorded: Recorded, start: Start) -> None:
    client = start(stand_in("import time; time.sleep(600)"))
    client.hint()
    worker = pid_of(client)
    begun = time.monotonic()
    for number in range(200):
        client.hint()
        client.configure(Settings.read({"SessionNotes": {"rounds": number % 50 + 1}})[0])
    for _ in range(20):
        with pytest.raises(WorkerError):
            client.ask("ping", 0.001, filling="x" * 30_000)
    assert time.monotonic() - begun < 10
    begun = time.monotonic()
    client.close(1.0)
    assert time.monotonic() - begun < 1.5
    assert "ipymemory-sender" not in {each.name for each in threading.enumerate()}
    os.kill(worker, signal.SIGKILL)


@pytest.mark.spec("L2")
def test_rubbish_is_counted_and_printed_nowhere(
    recorded: Recorded, start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    code = r"""
import sys
rubbish = [
    b"\xff\xfe\x00", b"[1]", b"{}", b'{"type": 3}', b'{"type": "nonsense"}', b"[" * 100_000,
    b"x" * 3_000_000, b'{"type": "event", "event": 3}', b'{"type": "event", "event": {}}',
]
fine = [
    b'{"type": "heard"}', b'{"type": "heard"}', b'{"type": "reply", "id": 99}',
    b'{"type": "reply", "id": [1]}', b'{"type": "event", "event": {"details": {}}}',
]
sys.stdout.buffer.write(b"\n".join(rubbish + fine) + b"\nno line feed")
sys.stdout.flush()
print("to the log", file=sys.stderr, flush=True)
for line in sys.stdin:
    pass
"""
    client = start(stand_in(code))
    client.hint()
    until(lambda: client.events, "the last line")
    assert client.garbage == 9
    assert client.events == ({"kind": "", "job": "", "details": {}},)
    assert client.state == "running"
    client.close(5.0)
    assert recorded.folder.log.read_text() == "to the log\n"
    assert capfd.readouterr() == ("", "")


@pytest.mark.spec("L2")
def test_one_that_talks_nothing_but_rubbish_is_ended(
    recorded: Recorded, start: Start, quick: None
) -> None:
    client = start(stand_in("while True: print('rubbish ' * 20)"))
    client.hint()
    until(lambda: client.last_error, "its end")
    assert client.last_error == "it wrote rubbish"
    assert client.garbage > 1000
    client.close(5.0, drain=False)


# A kernel that dies, forks, or closes what is not its own.

KERNEL = """
import json, os, signal, sys, time
sys.path[:0] = json.loads(sys.argv[1])
from pathlib import Path
from ipymemory.client import Client
from ipymemory.config import Settings
from recorded import Recorded, until
from workers import SLOW, faulty
recorded = Recorded(Path(sys.argv[2]), Path(sys.argv[3]))
client = Client(recorded.folder, recorded.project, Settings(), {command})
recorded.cell("x = 1")
client.hint()
"""


def kernel(home: Path, work: Path, code: str, command: str = "None", **more: Any) -> Any:
    """Run `code` in a process that has a client, to its end."""
    path = json.dumps([str(TESTS), str(TOP)])
    return subprocess.run(
        [sys.executable, "-c", KERNEL.format(command=command) + code, path, str(home), str(work)],
        capture_output=True,
        text=True,
        timeout=60,
        **more,
    )


@pytest.mark.spec("L5", "L11")
def test_a_kernel_killed_during_an_update_leaves_no_worker_and_whole_notes(
    home: Path, tmp_path: Path
) -> None:
    code = """
until((recorded.folder.path / "in flight").exists, "a run in flight")
recorded.begin("the_last_cell()")
print(client.worker_pid, recorded.folder.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = 'faulty(SLOW.format(wait="await asyncio.sleep(0.2)"))'
    done = kernel(home, tmp_path / "work", code, command)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, folder = done.stdout.split()
    until(lambda: gone(int(pid)), "the end of the worker")
    text = (Path(folder) / "notes.md").read_text()
    assert "x = 1" in text
    assert "the_last_cell()" in text


@pytest.mark.spec("L5")
def test_a_child_that_user_code_forked_keeps_no_worker(home: Path, tmp_path: Path) -> None:
    code = """
until(lambda: "x = 1" in recorded.notes(), "notes")
child = os.fork()
if child == 0:
    os.closerange(0, 3)
    time.sleep(50)
    os._exit(0)
print(client.worker_pid, child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = kernel(home, tmp_path / "work", code)
    worker, child = map(int, done.stdout.split())
    assert psutil.pid_exists(child)
    try:
        until(lambda: gone(worker), "the end of the worker")
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.spec("L2")
def test_a_forked_child_touches_nothing_and_its_end_disturbs_nobody(
    home: Path, tmp_path: Path
) -> None:
    """Also with every lock of the client held by a thread that the child does not have."""
    code = """
import multiprocessing, threading, warnings
from ipymemory.errors import WorkerError
warnings.simplefilter("error")
client.ask("ping", 20)
lock = client._sender._thread_lock
def child():
    client.hint(); client.configure(Settings()); client.close(5.0, drain=False)
    assert (client.state, client.worker_pid) == ("not started", None)
    try:
        client.ask("ping", 5)
    except WorkerError:
        pass
held, go = threading.Event(), threading.Event()
def hold():
    with lock:
        held.set()
        go.wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
ended = []
for way in ("plain", "exit", "multiprocessing"):
    if way == "multiprocessing":
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(20)
        ended.append(process.exitcode)
        continue
    pid = os.fork()
    if pid == 0:
        child()
        if way == "plain":
            os._exit(0)
        del client
        sys.exit(0)
    ended.append(os.waitpid(pid, 0)[1])
go.set()
assert ended == [0, 0, 0], ended
assert client.ask("ping", 20) == "pong"
recorded.cell("after = 1")
client.hint()
until(lambda: "after = 1" in recorded.notes(), "notes")
client.close(5.0)
assert client.state == "ended", client.state
"""
    done = kernel(home, tmp_path / "work", code)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.spec("L2")
def test_a_kernel_that_ends_by_itself_ends_in_silence(home: Path, tmp_path: Path) -> None:
    for ending in ("", "import atexit; atexit.register(client.close)\n", "client.close()\n"):
        code = f"import warnings\nwarnings.simplefilter('error')\n{ending}"
        done = kernel(home, tmp_path / "work", code)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.spec("L2")
def test_user_code_that_closes_descriptors_gets_nothing_of_ours(home: Path, tmp_path: Path) -> None:
    code = f"""
client.ask("ping", 20)
worker = client.worker_pid
os.closerange(3, 256)
files = [open({str(tmp_path)!r} + f"/user{{n}}", "w+b", buffering=0) for n in range(30)]
for n in range(30):
    files[n].write(b"mine")
    files[n].seek(0)
for _ in range(20):
    client.hint()
    time.sleep(0.01)
until(lambda: client.worker_pid not in (None, worker), "another worker")
assert client.ask("ping", 20) == "pong"
client.close(5.0)
assert [each.read() for each in files] == [b"mine"] * 30
"""
    done = kernel(home, tmp_path / "work", code)
    assert (done.returncode, done.stderr) == (0, "")
    assert {each.read_bytes() for each in tmp_path.glob("user*")} == {b"mine"}


def test_the_kernels_interrupt_does_not_reach_it(home: Path, tmp_path: Path) -> None:
    code = """
client.ask("ping", 20)
worker = client.worker_pid
signal.signal(signal.SIGINT, lambda *rest: None)
signal.signal(signal.SIGTERM, lambda *rest: None)
for each in (signal.SIGINT, signal.SIGTERM):
    os.killpg(os.getpgid(0), each)
time.sleep(0.3)
assert client.ask("ping", 20) == "pong"
assert (client.worker_pid, client.last_error) == (worker, "")
assert os.getpgid(worker) != os.getpgid(0)
client.close(5.0)
"""
    done = kernel(home, tmp_path / "work", code, start_new_session=True)
    assert (done.returncode, done.stderr) == (0, "")


# What the worker may import.


def hostile(folder: Path, marker: Path) -> None:
    """Fill a notebook's folder with modules and settings that nobody asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("json", "asyncio", "ipymemory", "traitlets", "filelock", "psutil", "sitecustomize")
    for name in (*names, "usercustomize", "encodings", "logging", "nowhere_else"):
        text = f"open({str(marker)!r}, 'a').write({name + ' '!r})\n"
        (folder / f"{name}.py").write_text(text)
    config = "open({!r}, 'a').write('config ')\nc.SessionNotes.enabled = False\n"
    for name in ("ipython_config", "ipymemory_config", "jupyter_config"):
        (folder / f"{name}.py").write_text(config.format(str(marker)))
        (folder / f"{name}.json").write_text('{"SessionNotes": {"enabled": false}}')
    (folder / "template.md").write_text("# Hostile\n_x_\n")


ISOLATED = """
import json, os, sys
told = json.loads(sys.argv[1])
sys.path += told["path"]
from pathlib import Path
from ipymemory.client import Client
from ipymemory.config import Settings
from recorded import Recorded, until
from workers import faulty
recorded = Recorded(Path(told["home"]), Path(told["work"]))
os.chdir(told["work"])
sys.path[:0] = ["", ".", told["work"]]
os.environ["PYTHONPATH"] = os.pathsep.join(["", ".", told["work"], ""])
look = "try:\\n import nowhere_else\\nexcept ImportError: pass\\n"
client = Client(recorded.folder, recorded.project, Settings(), faulty(look))
recorded.cell("x = 1")
client.hint()
until(lambda: "x = 1" in recorded.notes(), "notes")
told = client.ask("status", 20)
client.close(5.0)
print(recorded.notes())
"""


def isolated(python: str, home: Path, work: Path, path: list[Path]) -> Any:
    told = {"home": str(home), "work": str(work), "path": [str(each) for each in path]}
    command = [python, "-I", "-c", ISOLATED, json.dumps(told)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.spec("L13")
@pytest.mark.parametrize("name", ["work", "site-packages"])
def test_nothing_is_imported_from_the_notebooks_folder(
    home: Path, tmp_path: Path, name: str
) -> None:
    """The folder is first on the kernel's path, and this package only there at all."""
    hostile(tmp_path / name, tmp_path / "imported")
    done = isolated(sys.executable, home, tmp_path / name, [TOP, TESTS])
    assert done.returncode == 0, done.stderr
    assert "# Session Title" in done.stdout
    assert not (tmp_path / "imported").exists()


@pytest.mark.spec("L13")
def test_nor_when_the_package_itself_lies_in_the_notebooks_folder(
    home: Path, tmp_path: Path
) -> None:
    work = tmp_path / "checkout"
    hostile(work, tmp_path / "imported")
    (work / "ipymemory.py").unlink()
    shutil.copytree(TOP / "ipymemory", work / "ipymemory")
    done = isolated(sys.executable, home, work, [work, TESTS])
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "imported").exists()


@pytest.mark.slow
def test_what_is_installed_only_for_the_kernel_is_found(home: Path, tmp_path: Path) -> None:
    """An environment that holds nothing; all packages are where ``pip --target`` put them."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for package in (traitlets, filelock, psutil):
        place = Path(str(package.__file__)).parent
        (libraries / place.name).symlink_to(place)
    done = isolated(str(python), home, tmp_path / "work", [libraries, TOP, TESTS])
    assert done.returncode == 0, done.stderr
    assert "x = 1" in done.stdout


def test_its_log_begins_anew_when_it_is_long(recorded: Recorded, start: Start) -> None:
    recorded.folder.log.write_bytes(b"x" * (starting.LOG_BYTES + 1))
    client = start(stand_in("import sys; print('new', file=sys.stderr); sys.stdin.read()"))
    client.hint()
    until(lambda: recorded.folder.log.read_bytes() == b"new\n", "a new log")
    assert recorded.folder.log.stat().st_size < 100


@pytest.mark.parametrize("left", [True, False])
def test_a_process_that_outlives_its_object_is_no_warning(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    if not left:
        monkeypatch.setattr(started, "can_be_left", lambda: False)
    command = stand_in("import sys; sys.stdin.read()")
    process, out, source = starting.start(command, recorded.folder.path, recorded.folder.log)
    pid = process.pid
    del process
    gc.collect()
    out.close()
    source.close()
    if not left:
        assert os.waitpid(pid, 0) == (pid, 0)
    until(lambda: gone(pid), "its end")
