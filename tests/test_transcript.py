"""The transcript, killed at every byte, on a full disk, with rubbish in it, and over a fork."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipymemory import transcript as module
from ipymemory.entry_lines import MOST_LINE, as_line, cell_line, end_line
from ipymemory.errors import TranscriptError
from ipymemory.left_running import last_running
from ipymemory.places import SessionFolder
from ipymemory.transcript import Transcript, TranscriptWriter
from ipymemory.turns import Ask, CellError, Happening, Prose, Turn, new_id, utc_now

posix = os.name == "posix"
Line = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    return SessionFolder(tmp_path / "projects" / "p" / "sessions" / "0193")


def cell(id: str, source: str = "x = 1", kernel: int = 1, **more: Any) -> Line:
    line = {"type": "cell", "id": id, "time": utc_now(), "kernel": kernel, "cell_id": None}
    return {**line, "source": source, **more}


def end(id: str, status: str = "ok", **more: Any) -> Line:
    return {"type": "end", "id": id, "execution_count": 1, "status": status, "duration_ms": 1.5,
            **more}  # fmt: skip


def outputs(id: str, text: str = "printed\n", **more: Any) -> Line:
    shown = [{"kind": "stream", "text": text, "mime": ["text/plain"], "truncated": 0}]
    return {"type": "outputs", "id": id, "outputs": shown, "error": None, "names": [], **more}


def write(folder: SessionFolder, *lines: Mapping[str, Any]) -> None:
    writer = TranscriptWriter(folder, folder.id)
    for line in lines:
        writer.append(line)
    writer.close()


def read(folder: SessionFolder) -> Transcript:
    found = Transcript(folder.transcript)
    found.follow()
    return found


def turns(found: Transcript) -> list[Turn]:
    return [each for each in found.entries if isinstance(each, Turn)]


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


# What is written is what is read.


def test_a_cell_is_told_as_it_was(folder: SessionFolder) -> None:
    error = {"name": "ZeroDivisionError", "value": "division by zero", "traceback": "Traceback"}
    write(
        folder,
        {"type": "event", "id": "e1", "time": "t", "name": "loaded", "kernel": 2},
        {"type": "markdown", "id": "m1", "time": "t", "cell_id": "c0", "source": "# Plan",
         "origin": "file"},
        cell("a", "df = 1/0", kernel=2, cell_id="c1"),
        end("a", "error", execution_count=7, duration_ms=12.25, error="ZeroDivisionError"),
        outputs("a", error=error, names=[
            {"name": "df", "type": "DataFrame", "shape": "1,000 x 12", "columns": ["u", "v"]}]),
    )  # fmt: skip
    found = read(folder)
    event, prose, turn = found.entries
    assert isinstance(event, Happening)
    assert (event.name, event.details) == ("loaded", {"kernel": 2})
    assert isinstance(prose, Prose)
    assert (prose.source, prose.cell_id, prose.origin) == ("# Plan", "c0", "file")
    assert isinstance(turn, Turn)
    assert (turn.label, turn.status, turn.kernel, turn.cell_id) == ("[7]", "error", 2, "c1")
    assert (turn.duration_ms, turn.complete, turn.origin) == (12.25, True, "typed")
    assert turn.error == CellError(**error)
    assert [each.text for each in turn.outputs] == ["printed\n"]
    assert (turn.names[0].shape, turn.names[0].columns) == ("1,000 x 12", ("u", "v"))
    assert (found.torn, found.busy, found.generation) == (0, False, 2)


def test_the_file_begins_with_its_version_and_is_private(folder: SessionFolder) -> None:
    writer = TranscriptWriter(folder, "0193")
    assert not folder.path.exists()
    offset = writer.append(cell("a"))
    first, second = folder.transcript.read_bytes().splitlines()
    head = json.loads(first)
    assert (head["type"], head["version"], head["id"]) == ("session", 1, "0193")
    assert json.loads(second)["id"] == "a"
    assert offset == folder.transcript.stat().st_size
    assert writer.append(end("a")) == folder.transcript.stat().st_size
    if posix:
        assert folder.transcript.stat().st_mode & 0o777 == 0o600
        assert folder.path.parent.parent.stat().st_mode & 0o777 == 0o700


def test_each_line_is_one_write(folder: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    real = os.write

    def spy(descriptor: int, data: bytes) -> int:
        written.append(bytes(data))
        return real(descriptor, data)

    monkeypatch.setattr("ipymemory.descriptors.write", spy)
    write(folder, cell("a", "x\n" * 10_000), end("a"))
    monkeypatch.undo()
    assert [each.count(b"\n") for each in written] == [1, 1, 1]
    assert b"".join(written) == folder.transcript.read_bytes()


@pytest.mark.spec("L5")
def test_a_turn_is_on_disk_when_it_begins(folder: SessionFolder) -> None:
    writer = TranscriptWriter(folder, folder.id)
    follower = Transcript(folder.transcript)
    assert follower.follow() == []
    writer.append(cell("a"))
    assert follower.follow() == ["a"]
    assert (turns(follower)[0].status, follower.busy) == ("running", True)
    writer.append(end("a"))
    assert follower.follow() == ["a"]
    assert (turns(follower)[0].status, follower.busy, turns(follower)[0].complete) == (
        "ok", False, False,
    )  # fmt: skip
    writer.append(outputs("a"))
    assert follower.follow() == ["a"]
    assert turns(follower)[0].complete
    assert follower.follow() == []


def test_late_outputs_come_after_the_others(folder: SessionFolder) -> None:
    write(folder, cell("a"), end("a"), outputs("a", "one"), cell("b"))
    write(folder, outputs("a", "two", late=True), end("b"), outputs("b", "three"))
    first, second = turns(read(folder))
    assert [each.text for each in first.outputs] == ["one", "two"]
    assert [each.text for each in second.outputs] == ["three"]


def test_outputs_keep_the_error_that_only_the_end_told(folder: SessionFolder) -> None:
    write(folder, cell("a"), end("a", "interrupted", error="KeyboardInterrupt"), outputs("a"))
    turn = turns(read(folder))[0]
    assert (turn.status, turn.error) == ("interrupted", CellError("KeyboardInterrupt"))


def test_a_cell_from_the_history_is_complete_without_an_end(folder: SessionFolder) -> None:
    write(folder, cell("h", origin="history", execution_count=3), cell("a"), end("a"))
    past, turn = turns(read(folder))
    assert (past.label, past.origin, past.complete, past.status) == (
        "[3]", "history", True, "unknown",
    )  # fmt: skip
    assert turn.origin == "typed"
    write(folder, cell("h2", origin="history", execution_count=4))
    assert not read(folder).busy


def test_what_an_older_kernel_left_running_is_unknown(folder: SessionFolder) -> None:
    write(folder, cell("a"), end("a"), cell("b", "while True: pass"))
    follower = read(folder)
    assert follower.busy
    write(folder, {"type": "event", "id": "e", "time": "t", "name": "restarted", "kernel": 2})
    assert follower.follow() == ["a", "b", "e"]
    assert [each.status for each in turns(follower)] == ["ok", "unknown"]
    assert all(each.complete for each in turns(follower))
    assert not follower.busy
    write(folder, cell("c", kernel=2))
    assert follower.busy is False and follower.follow() == ["c"] and follower.busy


def test_a_cell_whose_end_could_not_be_written_holds_nobody_up(folder: SessionFolder) -> None:
    write(folder, cell("a"), cell("b"), end("b"))
    assert not read(folder).busy
    write(folder, cell("c"), outputs("c"))
    assert not read(folder).busy


# Killed, torn, full, spoilt.


def story() -> list[Line]:
    """Return the lines of a session with two kernels, in scripts of several widths."""
    lines: list[Line] = []
    for n, source in enumerate(("x = 1", "print('größer 数据 🎉')", "1/0", "")):
        id = f"t{n}"
        lines += [cell(id, source, kernel=1 + n // 2), end(id), outputs(id, source)]
    return lines


def cells(data: bytes) -> int:
    """Return how many whole lines of `data` begin a cell."""
    return sum(b'"type":"cell"' in each for each in data.split(b"\n")[:-1])


@pytest.mark.spec("L5")
def test_a_file_cut_at_any_byte_is_read_and_gone_on_with(folder: SessionFolder) -> None:
    write(folder, *story())
    whole = folder.transcript.read_bytes()
    for size in range(len(whole) + 1):
        part = whole[:size]
        folder.transcript.write_bytes(part)
        follower = Transcript(folder.transcript)
        follower.follow()
        assert len(turns(follower)) == cells(part)
        assert follower.torn == 0, "a last line without its line feed is waited for"

        write(folder, cell("new", kernel=9), end("new"), outputs("new", "after"))
        follower.follow()
        # Cut just before its line feed, a line was whole after all.
        lacks_only_its_end = whole[size : size + 1] == b"\n"
        ragged = bool(part) and not part.endswith(b"\n")
        assert follower.torn == (ragged and not lacks_only_its_end)
        kept = cells(whole[: size + lacks_only_its_end])
        assert [each.id for each in turns(follower)] == [*(f"t{n}" for n in range(kept)), "new"]
        last = turns(follower)[-1]
        assert (last.status, last.complete, last.outputs[0].text) == ("ok", True, "after")
        assert read(folder).entries == follower.entries
        got = folder.transcript.read_bytes()
        assert got.startswith(part), "nothing is repaired in place"
        assert got.count(b"\n") == (part.count(b"\n") + ragged if part else 1) + 3
    assert whole.count(b"\n") == len(story()) + 1


@pytest.mark.spec("L5")
def test_what_was_appended_survives_a_kill(folder: SessionFolder) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from ipymemory.places import SessionFolder\n"
        "from ipymemory.transcript import TranscriptWriter\n"
        "w = TranscriptWriter(SessionFolder(Path(sys.argv[1])), 's')\n"
        "for n in range(10**9):\n"
        "    for type in ('cell', 'end'):\n"
        "        line = {'type': type, 'id': f'{n:08}', 'kernel': 1, 'source': 'y' * 3000}\n"
        "        print(f'{n:08}', type, w.append(line), flush=True)\n"
    )
    for wait in (0.0, 0.013, 0.031, 0.05):
        command = [sys.executable, "-c", code, str(folder.path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            said = [child.stdout.readline()]
            time.sleep(wait)
            child.kill()
            said += [each for each in child.stdout if each.endswith("\n")]
        id, kind, offset = said[-1].split()
        found = read(folder)
        turn = next(each for each in turns(found) if each.id == id)
        assert kind == "cell" or turn.status != "running"
        assert folder.transcript.stat().st_size >= int(offset)
        assert found.torn == 0
        folder.transcript.unlink()


def test_a_disk_that_fills_up_loses_no_line_before_and_none_after(folder: SessionFolder) -> None:
    code = """
import resource, sys
from pathlib import Path
from ipymemory.errors import TranscriptError
from ipymemory.places import SessionFolder
from ipymemory.transcript import TranscriptWriter
w = TranscriptWriter(SessionFolder(Path(sys.argv[1])), "s")
line = lambda n: {"type": "cell", "id": f"{n}", "kernel": 1, "source": "y" * 1000}
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
refused = 0
for n in range(10):
    try:
        w.append(line(n))
        print("kept", n)
    except TranscriptError as error:
        refused += 1
        message = str(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
w.append(line("after"))
print(refused, message)
"""
    done = python(code, folder.path)
    assert done.returncode == 0, done.stderr
    *kept, last = done.stdout.splitlines()
    assert len(kept) == 3
    assert last.startswith("7 Nothing is recorded: ")
    assert "Free some space or mend the permissions; recording then goes on by itself." in last
    found = read(folder)
    assert [each.id for each in turns(found)] == ["0", "1", "2", "after"]
    assert found.torn == 1


def test_a_full_disk_is_said(folder: SessionFolder) -> None:
    folder.path.mkdir(parents=True)
    folder.transcript.symlink_to("/dev/full")
    writer = TranscriptWriter(folder, folder.id)
    with pytest.raises(TranscriptError, match=r"No space left on device.*Free some space"):
        writer.append(cell("a"))
    folder.transcript.unlink()
    writer.append(cell("b"))
    assert [each.id for each in turns(read(folder))] == ["b"]


def test_a_home_that_cannot_be_written_is_said(folder: SessionFolder, tmp_path: Path) -> None:
    (tmp_path / "projects").write_text("a file in the folder's place")
    writer = TranscriptWriter(folder, folder.id)
    with pytest.raises(TranscriptError, match=r"cannot be made.*IPYMEMORY_HOME"):
        writer.append(cell("a"))
    (tmp_path / "projects").unlink()
    writer.append(cell("b"))
    folder.transcript.unlink()
    folder.transcript.mkdir()
    time.sleep(module.LOOK_SECONDS)
    with pytest.raises(TranscriptError, match="cannot be written"):
        writer.append(cell("c"))
    with pytest.raises(TranscriptError, match="cannot be read"):
        read(folder)


RUBBISH = (
    b"no JSON\n", b"[1, 2]\n", b"12\n", b'"text"\n', b"null\n", b"{\n", b'{"type": 5}\n',
    b'{"type": "cell"}\n', b'{"type": "cell", "id": 5}\n', b'{"type": "cell", "id": ""}\n',
    b'{"type": "end", "id": "nobody"}\n', b'{"type": "outputs", "id": "e0"}\n',
    b'{"type": "cell", "id": "a"}\n', b"\x00\x00\x00\n", b"\xff\xfe{\x00}\x00\n", b"\r\n",
    b"[" * 100_000 + b"\n", b"x" * 3_000_000 + b"\n", b'{"a": ' + b"9" * 5000 + b"}\n",
)  # fmt: skip


def test_rubbish_is_passed_over_and_counted(folder: SessionFolder) -> None:
    event = {"type": "event", "id": "e0", "time": "t", "name": "loaded", "kernel": 1}
    write(folder, event, cell("a"), end("a"))
    with folder.transcript.open("ab") as file:
        for each in RUBBISH:
            file.write(each)
    write(folder, outputs("a"), cell("b"))
    found = read(folder)
    assert [each.id for each in found.entries] == ["e0", "a", "b"]
    assert found.torn == len(RUBBISH)
    assert turns(found)[0].complete


def test_fields_of_the_wrong_type_lose_no_turn(folder: SessionFolder) -> None:
    write(
        folder,
        {"type": "cell", "id": "a", "time": 5, "kernel": "x", "cell_id": [], "source": None},
        {"type": "end", "id": "a", "status": "odd", "duration_ms": "x", "execution_count": True},
        {"type": "outputs", "id": "a", "outputs": [5, {"kind": "odd"}, {"kind": "stream"}],
         "names": {"a": 1}, "error": "E"},
    )  # fmt: skip
    turn = turns(read(folder))[0]
    assert (turn.source, turn.kernel, turn.status, turn.duration_ms) == ("", 1, "unknown", None)
    assert [each.text for each in turn.outputs] == [""]
    assert turn.complete


def test_invalid_bytes_nul_and_halves_of_pairs_lose_no_turn(folder: SessionFolder) -> None:
    write(folder, cell("a", "nul \0 half \ud83d and \udc80 pair \ud83d\ude00 emoji 😀 esc \x1b"))
    with folder.transcript.open("ab") as file:
        file.write(b'{"type":"cell","id":"b","source":"latin \xe9"}\n')
        file.write(b'{"type":"cell","id":"c","source":"\\uD83D"}\n')
    one, two, three = turns(read(folder))
    assert one.source == "nul \0 half � and � pair 😀 emoji 😀 esc \x1b"
    assert (two.source, three.source) == ("latin �", "�")
    assert all(each.source.encode() for each in (one, two, three))


TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
CELL = st.builds(lambda id, source: cell(f"id{id}", source), st.integers(), TEXT)


@given(
    source=TEXT | st.just("long " * 20_000) | st.just("é" * 40_000),
    cell_id=st.none() | TEXT,
    count=st.none() | st.integers(),
    duration=st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    error=st.sampled_from(["", "ValueError"]),
)
@settings(max_examples=200, deadline=None)
def test_the_lines_of_a_cell_are_those_of_the_encoder(
    source: str,
    cell_id: str | None,
    count: int | None,
    duration: float | None,
    error: str,
) -> None:
    line = {"type": "cell", "id": "a", "time": "t", "kernel": 2, "cell_id": cell_id}
    assert cell_line("a", "t", 2, cell_id, source) == as_line({**line, "source": source})
    line = {"type": "end", "id": "a", "execution_count": count, "status": "ok"}
    told = {"error": error} if error else {}
    expected = as_line({**line, "duration_ms": duration, **told})
    assert end_line("a", count, "ok", duration, error) == expected


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(CELL, min_size=1, max_size=6, unique_by=lambda each: str(each["id"])),
    data=st.data(),
)
def test_reading_in_pieces_is_reading_the_whole(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Line], data: st.DataObject
) -> None:
    folder = SessionFolder(tmp_path_factory.mktemp("s"))
    write(folder, *lines, *(end(each["id"]) for each in lines))
    whole = folder.transcript.read_bytes()
    expected = read(folder).entries
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    follower = Transcript(folder.transcript)
    folder.transcript.write_bytes(b"")
    told: set[str] = set()
    with folder.transcript.open("ab", buffering=0) as file:
        for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            file.write(whole[start:stop])
            told.update(follower.follow())
    assert follower.entries == expected
    assert told == {each["id"] for each in lines}
    assert (follower.offset, follower.torn) == (len(whole), 0)
    for turn, line in zip(turns(follower), lines, strict=True):
        joined = line["source"].encode("utf-16-le", "surrogatepass")
        assert turn.source == joined.decode("utf-16-le", "replace")


# Bounds.

HUGE = (
    cell("id", "x" * 500_000, cell_id="c1"),
    cell("id", "数" * 100_000),
    cell("id", "\x01" * 100_000),
    cell("id", "\ud800" * 50_000),
    outputs("id", "é" * 200_000, late=True),
    {**outputs("id"), "outputs": [{"kind": "stream", "text": "y" * 4000, "mime": []}] * 500},
    {**outputs("id"), "names": [{"name": "n" * 50, "columns": ["c" * 99] * 99}] * 99},
    {**outputs("id"), "error": {"name": "E" * 99_999, "value": "v" * 99_999, "traceback": "t"}},
    {**cell("id"), "odd": {f"k{n}": "v" * 50 for n in range(9000)}},
    {**cell("id"), "deep": [[["z" * 900] * 9] * 9] * 9},
)


@pytest.mark.parametrize("line", HUGE)
def test_a_line_that_would_be_too_long_is_cut_in_its_texts_and_not_lost(
    folder: SessionFolder, line: Line
) -> None:
    write(folder, cell("id2"), line, end("id"))
    lines = folder.transcript.read_bytes().splitlines(keepends=True)
    assert max(map(len, lines)) <= MOST_LINE
    assert len(lines) == 4
    assert {**json.loads(lines[2])}.items() >= {
        "type": line["type"], "id": "id", **({"late": True} if "late" in line else {}),
    }.items()  # fmt: skip
    if "x" * 9000 in line.get("source", ""):
        source = turns(read(folder))[-1].source
        assert source.startswith("xxx") and source.endswith("xxx")
        assert "[484,000 characters left out]" in source
        assert turns(read(folder))[-1].cell_id == "c1"


def test_an_endless_id_makes_no_endless_line(folder: SessionFolder) -> None:
    write(folder, cell("i" * 100_000), end("i" * 100_000, source="x" * 70_000))
    assert max(map(len, folder.transcript.read_bytes().splitlines())) < MOST_LINE


def test_what_is_no_json_is_said(folder: SessionFolder) -> None:
    writer = TranscriptWriter(folder, folder.id)
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(TranscriptError, match="no JSON"):
        writer.append({"type": "cell", "id": "a", "source": ring})
    writer.append(cell("b"))
    assert [each.id for each in turns(read(folder))] == ["b"]


def test_following_reads_what_is_new_and_no_more(
    folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    real = module.as_object

    def spy(line: bytes) -> dict[str, Any] | None:
        parsed.append(len(line))
        return real(line)

    write(folder, *(line for n in range(2000) for line in (cell(f"c{n}"), end(f"c{n}"))))
    follower = Transcript(folder.transcript)
    assert len(follower.follow()) == 2000
    monkeypatch.setattr(module, "as_object", spy)
    write(folder, cell("new"))
    parsed.clear()
    assert follower.follow() == ["new"]
    assert len(parsed) == 1
    # A restart looks at what is open, not at all that ever was.
    follower._open.clear()
    write(folder, cell("later", kernel=2))
    assert follower.follow() == ["later"]


def test_a_file_that_was_replaced_is_read_anew(folder: SessionFolder) -> None:
    write(folder, cell("a"), end("a"))
    follower = read(folder)
    folder.transcript.rename(folder.path / "old")
    write(folder, cell("b"), end("b"), cell("c"), end("c"))
    assert follower.follow() == ["b", "c"]
    assert [each.id for each in follower.entries] == ["b", "c"]
    folder.transcript.write_bytes(b"")
    follower.follow()
    assert (follower.entries, follower.offset) == ([], 0)


def test_a_missing_file_has_no_entries(folder: SessionFolder) -> None:
    assert read(folder).entries == []
    assert last_running(folder.transcript) is None


# The kernel's own life: threads, forks, descriptors, other versions.


def test_threads_append_whole_lines(folder: SessionFolder) -> None:
    writer = TranscriptWriter(folder, folder.id)
    each = 200

    def append(name: int) -> None:
        for n in range(each):
            writer.append(cell(f"{name}-{n}", "y" * (n * 7)))

    threads = [threading.Thread(target=append, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read(folder)
    assert (len(turns(found)), found.torn) == (4 * each, 0)
    assert folder.transcript.read_bytes().count(b'"type":"session"') == 1


def test_a_forked_child_writes_nothing_and_is_not_held_up(folder: SessionFolder) -> None:
    code = """
import os, sys, threading, time
from pathlib import Path
from ipymemory.errors import TranscriptError
from ipymemory.places import SessionFolder
from ipymemory.transcript import TranscriptWriter
writer = TranscriptWriter(SessionFolder(Path(sys.argv[1])), "s")
writer.append({"type": "cell", "id": "a"})
held = threading.Event()
def hold():
    with writer._lock:
        held.set()
        time.sleep(30)
threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if child == 0:
    try:
        writer.append({"type": "cell", "id": "child"})
    except TranscriptError as error:
        writer.close()
        os._exit(0 if "forked" in str(error) else 3)
    os._exit(4)
_, status = os.waitpid(child, 0)
os._exit(os.waitstatus_to_exitcode(status))
"""
    done = python(code, folder.path)
    assert done.returncode == 0, done.stderr
    assert [each.id for each in turns(read(folder))] == ["a"]


@pytest.mark.parametrize("close", [os.close, lambda each: os.closerange(each, each + 1)])
def test_a_descriptor_that_user_code_closed_is_not_written_to(
    folder: SessionFolder, tmp_path: Path, close: Callable[[int], None]
) -> None:
    writer = TranscriptWriter(folder, folder.id)
    writer.append(cell("a"))
    close(writer._descriptor)
    with (tmp_path / "mine").open("wb") as mine:
        assert mine.fileno() == writer._descriptor
        writer.append(cell("b"))
        close(writer._descriptor)
        with (tmp_path / "other").open("wb") as other:
            writer.close()
            other.write(b"still open")
    assert (tmp_path / "mine").read_bytes() == b""
    assert (tmp_path / "other").read_bytes() == b"still open"
    assert [each.id for each in turns(read(folder))] == ["a", "b"]


@pytest.mark.parametrize("given", [False, True])
def test_an_end_goes_to_no_file_of_the_user_s_either(
    folder: SessionFolder, tmp_path: Path, given: bool
) -> None:
    """Of an end only the file's place is looked at; a cell may have closed what it did not know."""
    writer = TranscriptWriter(folder, folder.id)
    writer.append(cell("a"))
    os.close(writer._descriptor)
    mine = (tmp_path / "mine").open("wb", buffering=0) if given else None
    if mine is not None:
        assert mine.fileno() == writer._descriptor
        mine.write(b"x" * 10)
    writer.write(end_line("a", 1, "ok", 1.5, ""), soon=True)
    assert [each.status for each in turns(read(folder))] == ["ok"]
    if mine is not None:
        mine.close()
        assert (tmp_path / "mine").read_bytes() == b"x" * 10


def test_an_end_is_written_where_somebody_else_wrote_meanwhile(folder: SessionFolder) -> None:
    writer = TranscriptWriter(folder, folder.id)
    writer.append(cell("a"))
    with folder.transcript.open("ab") as file:
        file.write(b'{"type":"unknown"}\n')
    for id in ("a", "b"):
        writer.write(end_line(id, 1, "ok", 1.5, ""), soon=True)
        size = writer.append(cell("b"))
        assert size == folder.transcript.stat().st_size
    assert [each.status for each in turns(read(folder))] == ["ok", "ok"]


def test_a_session_that_was_purged_meanwhile_begins_anew(folder: SessionFolder) -> None:
    writer = TranscriptWriter(folder, folder.id)
    writer.append(cell("a"))
    folder.transcript.unlink()
    folder.path.rmdir()
    time.sleep(module.LOOK_SECONDS)
    writer.append(cell("b"))
    assert [each.id for each in turns(read(folder))] == ["b"]
    assert folder.transcript.read_bytes().startswith(b'{"type":"session","version":1')


@pytest.mark.spec("L13")
def test_a_newer_version_is_only_read(folder: SessionFolder) -> None:
    write(folder, cell("a"))
    lines = folder.transcript.read_bytes().replace(b'"version":1', b'"version":2')
    folder.transcript.write_bytes(lines + b'{"type":"novel","id":"x"}\n')
    with pytest.raises(TranscriptError, match=r"newer ipymemory.*pip install --upgrade"):
        write(folder, cell("b"))
    assert folder.transcript.read_bytes().startswith(lines)
    found = read(folder)
    assert ([each.id for each in turns(found)], found.torn) == (["a"], 0)


# The cell in which a kernel died.


def died_in(folder: SessionFolder, lines: Sequence[Line]) -> str | None:
    write(folder, *lines)
    turn = last_running(folder.transcript)
    return turn.source if turn is not None else None


@pytest.mark.spec("L5")
@pytest.mark.parametrize(
    ("lines", "source"),
    [
        ([cell("a", "one"), end("a"), cell("b", "two")], "two"),
        ([cell("a", "one"), end("a")], None),
        ([cell("a", "one"), outputs("a")], None),
        ([cell("a", "main"), cell("b", "beside"), end("b")], "main"),
        ([cell("a", "one"), cell("h", "past", origin="history")], "one"),
        ([cell("h", "past", origin="history")], None),
        ([cell("a", "old"), cell("b", "new", kernel=2), end("b")], None),
        ([cell("a", "old"), {"type": "event", "id": "e", "kernel": 2}], None),
        ([cell("a", "one"), {"type": "event", "id": "e", "name": "packages"}], "one"),
        ([cell("a", "one"), *(outputs("z", "y" * 20_000) for _ in range(20))], "one"),
        ([], None),
    ],
)
def test_the_cell_that_was_running_is_found(
    folder: SessionFolder, lines: list[Line], source: str | None
) -> None:
    assert died_in(folder, lines) == source


@pytest.mark.spec("L5")
def test_the_cell_that_was_running_is_found_behind_a_torn_line(folder: SessionFolder) -> None:
    write(folder, cell("a", "os.kill(os.getpid(), 9)"))
    with folder.transcript.open("ab") as file:
        file.write(b'{"type":"outputs","id":"a","out')
    turn = last_running(folder.transcript)
    assert turn is not None and turn.source == "os.kill(os.getpid(), 9)"


def test_ids_sort_by_time_within_a_process() -> None:
    ids = [new_id() for _ in range(2000)]
    assert ids == sorted(set(ids))


# Questions, and the order in which things came to be told.


def asked(id: str, question: str = "Why?", **more: Any) -> Line:
    return {"type": "ask", "id": id, "time": "t", "kernel": 1, "question": question, **more}


def test_a_question_is_an_entry_with_its_end(folder: SessionFolder) -> None:
    write(folder, asked("a", "Why?", cell_id="c", execution_count=3))
    found = Transcript(folder.transcript)
    assert found.follow() == ["a"] and not found.busy
    assert found.entries == [Ask("a", "t", "Why?", 1, "c", 3)]
    write(folder, {"type": "ask_end", "id": "a", "status": "interrupted", "calls": 2})
    assert found.follow() == ["a"]
    assert found.entries == [Ask("a", "t", "Why?", 1, "c", 3, "interrupted", 2)]
    write(folder, asked("a", "Again?"), {"type": "ask_end", "id": "b"}, end("a"), outputs("a"))
    assert found.follow() == [] and found.torn == 4


def test_a_question_whose_kernel_is_gone_has_an_unknown_end(folder: SessionFolder) -> None:
    write(folder, asked("a", question=3, calls="x"), cell("b", kernel=2))
    (first, _) = read(folder).entries
    assert isinstance(first, Ask) and (first.status, first.question) == ("unknown", "")


def test_steps_come_when_something_can_be_told_and_hold_only_what_is_new(
    folder: SessionFolder,
) -> None:
    write(folder, cell("a"), cell("b"), end("b"), outputs("b", "two"), end("a"))
    found = read(folder)
    assert [each.entry.id for each in found.steps] == ["b"]
    write(folder, asked("q"), outputs("a", "one"), outputs("b", "late", late=True))
    found.follow()
    assert [(each.entry.id, each.added) for each in found.steps] == [
        *(("b", False), ("q", False), ("a", False), ("b", True))
    ]
    last = found.steps[-1].entry
    assert isinstance(last, Turn) and [each.text for each in last.outputs] == ["late"]
    assert [each.at for each in found.steps] == sorted({each.at for each in found.steps})
    assert found.steps[-1].at == found.offset
    # The same whenever they are read, and anew when another file lies there.
    assert read(folder).steps == found.steps
    steps = found.steps
    folder.transcript.unlink()
    write(folder, cell("z"), cell("y", kernel=2))
    found.follow()
    assert found.steps is not steps
    assert [each.entry.id for each in found.steps] == ["z"], "closed by the kernel after it"


@pytest.mark.spec("L2")
def test_what_is_printed_to_a_closed_stream_does_not_come_into_the_transcript(
    tmp_path: Path,
) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from ipymemory.places import SessionFolder\n"
        "from ipymemory.transcript import TranscriptWriter\n"
        "for each in (0, 1, 2): os.close(each)\n"
        "writer = TranscriptWriter(SessionFolder(Path(sys.argv[1])), 's')\n"
        "writer.append({'type': 'event'})\n"
        "for each in (0, 1, 2):\n"
        "    try: os.write(each, b'printed')\n"
        "    except OSError: pass\n"
        "os._exit(0)\n"
    )
    folder = tmp_path / "s"
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
    data = (folder / "transcript.jsonl").read_bytes()
    assert b"event" in data
    assert b"printed" not in data
