"""Whole files or none, private folders, locks, and clear words when the disk says no."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipymemory import files
from ipymemory.errors import FormatError, PlaceError

posix = os.name == "posix"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_file_is_written_private_in_folders_that_are_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.md"
    was = os.umask(0)
    try:
        files.write_atomic(path, b"one")
        files.write_atomic(path, b"two")
    finally:
        os.umask(was)
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]
    if posix:
        assert [mode(each) for each in (path, path.parent, path.parent.parent)] == [
            0o600, 0o700, 0o700,
        ]  # fmt: skip


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    assert files.make_folder(shared / "new") == shared / "new"
    files.make_folder(shared)
    assert mode(shared) == 0o755


def test_a_failed_replace_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "folder.md"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(PlaceError, match=r"folder\.md cannot be written.*is untouched"):
        files.write_atomic(folder, b"new")
    assert list(tmp_path.iterdir()) == [folder]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"old")
    code = """
import resource, sys
from pathlib import Path
from ipymemory.errors import PlaceError
from ipymemory.files import write_atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    write_atomic(Path(sys.argv[1]), b"x" * 5000)
except PlaceError as error:
    print(error)
"""
    done = python(code, tmp_path / "a.md")
    assert "cannot be written: File too large. Free some space" in done.stdout, done.stderr
    assert (tmp_path / "a.md").read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.md"]


def test_a_file_in_a_folders_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below" / "deep"):
        with pytest.raises(PlaceError, match=r"Move away the file.*or set IPYMEMORY_HOME"):
            files.make_folder(path)


def test_a_link_to_nothing_is_said(tmp_path: Path) -> None:
    link = tmp_path / "home"
    link.symlink_to(tmp_path / "gone")
    for path in (link, link / "projects" / "x"):
        with pytest.raises(PlaceError, match=r"home is a link to .*gone, which is not there"):
            files.make_folder(path)
    (tmp_path / "gone").mkdir()
    assert files.make_folder(link / "projects").is_dir()


def test_a_home_that_may_not_be_written_is_said(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from ipymemory.errors import PlaceError
from ipymemory.files import locked, write_atomic
with locked(Path(sys.argv[2]) / ".lock"):
    pass  # and with that everything is imported that root alone may read
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
for act in (lambda p: write_atomic(p / "new" / "a", b""), lambda p: write_atomic(p / "a", b""),
            lambda p: locked(p / ".lock").__enter__()):
    try:
        act(Path(sys.argv[1]))
    except PlaceError as error:
        print(error)
"""
    # Not below `tmp_path`, into which nobody but its owner can look.
    home = Path(tempfile.mkdtemp())
    home.chmod(0o555)
    try:
        done = python(code, home, tmp_path)
    finally:
        home.rmdir()
    one, two, three = done.stdout.splitlines()
    assert "cannot be made: Permission denied. Mend its permissions, or set" in one
    assert "cannot be written: Permission denied. Free some space or mend" in two
    assert "cannot be locked: Permission denied. Mend its permissions." in three


def test_a_writer_killed_at_any_moment_leaves_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    code = (
        "import sys; from pathlib import Path; from ipymemory.files import write_atomic\n"
        "for n in range(10**9):\n"
        "    write_atomic(Path(sys.argv[1]), b'%d ' % (n % 10) * 50_000)\n"
        "    n or print('begun', flush=True)\n"
    )
    for n in range(4):
        command = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None and child.stdout.readline()
            time.sleep(0.002 + n * 0.007)
            child.kill()
        data = path.read_bytes()
        assert len(data) == 100_000
        assert len(set(data.split())) == 1
        assert all(each == path or each.name.startswith(".") for each in tmp_path.iterdir())


# JSON.


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=())),
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=())),
    )
)
def test_json_comes_back_as_it_went(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, object]
) -> None:
    path = tmp_path_factory.mktemp("json") / "a.json"
    files.write_json(path, value)
    back = files.read_json(path)
    assert back is not None

    def plain(text: object) -> object:
        # Two halves of a pair that stood side by side are one character in JSON.
        if not isinstance(text, str):
            return text
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    assert {plain(k): plain(v) for k, v in back.items()} == {
        plain(k): plain(v) for k, v in value.items()
    }


def test_a_missing_file_is_none_and_a_broken_one_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert files.read_json(path) is None
    for bad in (b"", b"{", b"\xff", b'{"a": 1}x', b"[" * 100_000):
        path.write_bytes(bad)
        with pytest.raises(FormatError, match=r"a\.json is not valid JSON.*left as it is"):
            files.read_json(path)
        assert path.read_bytes() == bad
    path.write_bytes(b"[1]")
    with pytest.raises(FormatError, match="holds no JSON object"):
        files.read_json(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(PlaceError, match="cannot be read"):
        files.read_json(path)


# Locks.


def test_one_at_a_time_is_let_in(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from ipymemory.files import locked\n"
        "count, lock = Path(sys.argv[1]), Path(sys.argv[2])\n"
        "for _ in range(40):\n"
        "    with locked(lock, 30):\n"
        "        count.write_text(str(int(count.read_text()) + 1))\n"
    )
    counter, lock = tmp_path / "count", tmp_path / "locks" / ".lock"
    counter.write_text("0")
    command = [sys.executable, "-c", code, str(counter), str(lock)]
    started = [subprocess.Popen(command) for _ in range(3)]

    def add() -> None:
        for _ in range(40):
            with files.locked(lock, 30):
                counter.write_text(str(int(counter.read_text()) + 1))

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.wait() for each in started] == [0, 0, 0]
    assert counter.read_text() == "200"


HOLDER = """
import sys, time; from pathlib import Path; from ipymemory.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_that_is_held_too_long_is_said_and_a_killed_holder_holds_nothing(
    tmp_path: Path,
) -> None:
    lock = tmp_path / ".lock"
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        with (
            pytest.raises(PlaceError, match=r"held by another process for 0\.1 s\. Try again"),
            files.locked(lock, 0.1),
        ):
            pass
        child.kill()
    with files.locked(lock, 5):
        pass


def test_a_lock_survives_a_fork_of_its_holder(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    context = multiprocessing.get_context("fork")
    with files.locked(lock):
        child = context.Process(target=time.sleep, args=(0.2,))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
            child.start()
        with pytest.raises(PlaceError), files.locked(lock, 0.05):
            pass
    # The child lives on with what it inherited; the lock is free all the same.
    with files.locked(lock, 0.1):
        assert child.is_alive()
    child.join()


def test_an_error_in_the_block_lets_the_lock_go(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), files.locked(tmp_path / ".lock"):
        raise ZeroDivisionError
    with files.locked(tmp_path / ".lock", 0.1):
        pass
