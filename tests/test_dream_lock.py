"""The lock of dreams: one winner of many, dead owners, other hosts, and times put back."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ipymemory import dream_lock, processes
from ipymemory.dream_lock import NAME, Busy, DreamLock, HeldLock, put
from ipymemory.errors import PlaceError
from ipymemory.files import write_json

TOP = Path(__file__).parent.parent
OLD = 1_700_000_000_123_456_789


@pytest.fixture
def lock(tmp_path: Path) -> DreamLock:
    (tmp_path / "memory").mkdir()
    return DreamLock(tmp_path / "memory", tmp_path / "dream")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory" / NAME


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "dream" / "owner.json"


def held(lock: DreamLock) -> HeldLock:
    found = lock.take()
    assert isinstance(found, HeldLock), found
    return found


def dead_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def inhabit(record: Path, before: int | None, **changed: object) -> None:
    """Leave the record of an owner that was like this process but for what is `changed`."""
    owner = replace(processes.own(), **changed)  # type: ignore[arg-type]
    write_json(record, {"owner": owner.as_dict(), "before": before})


@pytest.mark.spec("D2", "D3")
def test_its_body_is_the_owner_and_its_time_the_beginning(lock: DreamLock, file: Path) -> None:
    assert lock.last() is None
    began = time.time()
    mine = held(lock)
    taken = time.time()
    assert file.read_text() == str(os.getpid()) and mine.mine
    time.sleep(0.05)
    mine.done()
    assert file.read_text() == "" and not mine.mine
    last = lock.last()
    assert last is not None
    assert began - 0.01 <= last <= taken
    mine.roll_back()
    assert lock.last() == last, "the first end counts"
    assert [each.name for each in file.parent.iterdir()] == [NAME]


@pytest.mark.spec("D2")
def test_who_holds_it_lets_nobody_in(lock: DreamLock) -> None:
    mine = held(lock)
    refused = lock.take()
    assert isinstance(refused, Busy)
    assert "another process" in refused.reason
    mine.done()
    held(lock).done()


@pytest.mark.spec("D3")
@pytest.mark.parametrize("before", [None, OLD])
def test_a_failure_puts_the_old_time_back(lock: DreamLock, file: Path, before: int | None) -> None:
    if before:
        put(file, "", before)
    held(lock).roll_back()
    assert (file.stat().st_mtime_ns if file.exists() else None) == before


@pytest.mark.spec("D2", "D3")
@pytest.mark.parametrize("before", [None, OLD])
def test_a_dead_owner_loses_it_and_the_time_before_counts(
    lock: DreamLock, file: Path, record: Path, before: int | None
) -> None:
    pid = dead_process()
    put(file, str(pid), time.time_ns())
    inhabit(record, before, pid=pid)
    mine = held(lock)
    assert mine.found_dead
    mine.roll_back()
    assert (file.stat().st_mtime_ns if file.exists() else None) == before


@pytest.mark.spec("D2")
def test_an_owner_whose_number_was_given_away_is_dead(
    lock: DreamLock, file: Path, record: Path
) -> None:
    put(file, str(os.getpid()), OLD)
    inhabit(record, None, started=processes.own().started - 50)
    assert held(lock).found_dead


@pytest.mark.spec("D2")
def test_a_living_owner_keeps_it_however_old(lock: DreamLock, file: Path, record: Path) -> None:
    """The lock of the system is not seen here, as on a file system that has none."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        owner = processes.identity(child.pid)
        assert owner is not None
        put(file, str(child.pid), OLD)
        write_json(record, {"owner": owner.as_dict(), "before": None})
        assert isinstance(lock.take(), Busy)
        record.unlink()
        assert isinstance(lock.take(), Busy), "another program's, which keeps no record"
        assert file.stat().st_mtime_ns == OLD
    finally:
        child.communicate(b"\n")


@pytest.mark.spec("D2")
@pytest.mark.parametrize(("age", "free"), [(3500, False), (3700, True), (-9000, False)])
def test_another_host_keeps_it_an_hour(
    lock: DreamLock,
    file: Path,
    record: Path,
    age: int,
    free: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A time to come, of a clock that is wrong, counts as held."""
    pid = dead_process()
    monkeypatch.setattr(dream_lock, "changed", lambda _: time.time() - age)
    put(file, str(pid), time.time_ns() - age * 10**9)
    inhabit(record, OLD, pid=pid, host="elsewhere")
    assert isinstance(lock.take(), HeldLock) == free


@pytest.mark.spec("D2")
@pytest.mark.parametrize("body", ["no number", "99999999999999999999", "-1", "0"])
def test_a_body_that_says_nothing_is_held_for_an_hour(
    lock: DreamLock, file: Path, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(file, body, time.time_ns())
    assert isinstance(lock.take(), Busy)
    put(file, body, OLD)
    monkeypatch.setattr(dream_lock, "changed", lambda _: OLD / 1e9)
    held(lock).done()


@pytest.mark.spec("D3")
def test_killed_before_the_body_was_written_the_time_stays(
    lock: DreamLock, file: Path, record: Path
) -> None:
    put(file, "", OLD)
    inhabit(record, None, pid=dead_process())
    mine = held(lock)
    assert not mine.found_dead
    mine.roll_back()
    assert file.stat().st_mtime_ns == OLD


@pytest.mark.spec("D2")
def test_a_link_in_its_place_is_not_followed(lock: DreamLock, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("kept")
    file.symlink_to(other)
    with pytest.raises(PlaceError):
        lock.take()
    assert other.read_text() == "kept"


@pytest.mark.spec("D2")
@pytest.mark.parametrize("own", [True, False])
def test_a_clock_that_is_wrong_gives_nobody_a_lock_that_is_held(
    lock: DreamLock, file: Path, record: Path, own: bool
) -> None:
    """The owner's clock is two hours behind, or ours two ahead: the disk knows when it was put."""
    pid = dead_process()
    put(file, str(pid), time.time_ns() - 7200 * 10**9)
    if own:
        inhabit(record, OLD, pid=pid, host="elsewhere")
    found = lock.take()
    assert isinstance(found, Busy) and found.running
    assert file.read_text() == str(pid)


@pytest.mark.spec("D2")
def test_two_machines_that_take_it_at_one_moment_have_it_once(
    lock: DreamLock, file: Path, record: Path
) -> None:
    """Their locks of the system know nothing of each other; who wrote last has it."""
    mine = held(lock)
    inhabit(record, None, pid=4_194_001, host="elsewhere")
    put(file, "4194001", time.time_ns())
    assert not mine.mine
    mine.done()
    assert file.read_text() == "4194001" and record.exists(), "the other one frees it itself"
    # Also where both have one number.
    inhabit(record, None, host="elsewhere")
    put(file, str(os.getpid()), time.time_ns())
    assert not mine.mine


@pytest.mark.spec("D2")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
@pytest.mark.skipif(os.name == "nt", reason="fcntl is of other systems")
def test_on_a_disk_without_locks_nobody_gets_it(
    lock: DreamLock, file: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    import fcntl

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    found = lock.take()
    assert isinstance(found, Busy) and not found.running
    assert os.strerror(number) in found.reason and "Set IPYMEMORY_HOME" in found.reason
    assert not file.exists()


@pytest.mark.spec("D2")
@pytest.mark.skipif(os.name == "nt", reason="fcntl is of other systems")
def test_on_a_disk_whose_locks_hold_nobody_off_nobody_gets_it(
    lock: DreamLock, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As some network file systems do it; and a new file is made though it is there already."""
    import fcntl

    whole = os.open
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    monkeypatch.setattr(
        os,
        "open",
        lambda path, flags, *rest, **more: whole(path, flags & ~os.O_EXCL, *rest, **more),
    )
    found = lock.take()
    assert isinstance(found, Busy) and not found.running
    assert "lets two have one lock" in found.reason and "Set IPYMEMORY_HOME" in found.reason
    assert not file.exists()


_TRY = """
import sys
from pathlib import Path
from ipymemory import processes
from ipymemory.dream_lock import Busy, DreamLock
lock = DreamLock(Path(sys.argv[1]) / "memory", Path(sys.argv[1]) / "dream")
sys.stdin.readline()
found = lock.take()
print("busy" if isinstance(found, Busy) else "mine", flush=True)
sys.stdin.readline()
"""


@pytest.mark.spec("D2", "D3")
@pytest.mark.worker
def test_of_sixty_four_processes_one_gets_it(lock: DreamLock, file: Path, tmp_path: Path) -> None:
    """And when it is killed, the time before is back with the next one."""
    put(file, "", OLD)
    command = [sys.executable, "-c", _TRY, str(tmp_path)]
    every = [
        subprocess.Popen(command, cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(64)
    ]
    try:
        time.sleep(1)
        for each in every:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        said = [each.stdout.readline().strip() for each in every if each.stdout]
        assert sorted(said) == ["busy"] * 63 + ["mine"]
        winner = every[said.index("mine")]
        assert file.read_text() == str(winner.pid)
    finally:
        for each in every:
            each.kill()
            each.communicate()
    mine = held(lock)
    assert mine.found_dead
    mine.roll_back()
    assert file.stat().st_mtime_ns == OLD


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.spec("D2")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
def test_of_sixty_four_at_one_barrier_one_gets_it_a_hundred_times_over(tmp_path: Path) -> None:
    """Forked from one that has all loaded, so that they try within microseconds."""
    (tmp_path / "memory").mkdir()
    process = Path(__file__).with_name("dreaming_process.py")
    done = subprocess.run(
        [sys.executable, str(process), "contest", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(TOP)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    told = [json.loads(each) for each in done.stdout.splitlines()]
    assert len(told) == 100
    assert [each["winners"] for each in told] == [1] * 100
    assert all(each["body"] == str(each["winner"]) for each in told)
    # Freed by one that ended well, one that failed, and one that was killed.
    assert [each["after"] for each in told] == ["new", "old", "old"] * 33 + ["new"]
