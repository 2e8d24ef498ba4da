"""What of a cell goes to disk: through a real shell, masked, cut, bounded, never in the way."""

from __future__ import annotations

import gc
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import eventually
from recording import Recording, text
from secret_probes import SECRETS, probes

from ipymemory import on_record, outputs
from ipymemory.errors import PlaceError, TranscriptError
from ipymemory.outputs import bounded, fitting, with_result


class Clock:
    """The module `time` with a clock that a test sets."""

    def __init__(self, now: list[float]) -> None:
        self.monotonic = lambda: now[0]
        self.perf_counter = time.perf_counter


@pytest.fixture
def new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Recording]]:
    made: list[Recording] = []

    def start(**config: dict[str, Any]) -> Recording:
        made.append(Recording(tmp_path / str(len(made)), **config))
        made[-1].recorder.install()
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.fixture
def recording(new: Callable[..., Recording]) -> Recording:
    return new()


@pytest.mark.spec("L5")
def test_a_cell_is_three_lines_in_a_terminal_too(recording: Recording) -> None:
    recording.run("n = 41\nprint('hello')\nn + 1", cell_id="abc")
    told = recording.outputs()
    cell, end = recording.lines[:2]
    assert cell == {
        "type": "cell", "id": told["id"], "time": cell["time"], "kernel": 1, "cell_id": "abc",
        "source": "n = 41\nprint('hello')\nn + 1",
    }  # fmt: skip
    assert end == {
        "type": "end", "id": told["id"], "execution_count": 1, "status": "ok",
        "duration_ms": end["duration_ms"],
    }  # fmt: skip
    assert 0 <= end["duration_ms"] < 60_000
    assert text(told) == [("stream", "hello\n"), ("result", "42")]
    assert told["names"] == [{"name": "n", "type": "int"}]
    assert told["error"] is None
    eventually(lambda: {*recording.told} == {"begin", "end", "outputs"}, "all is told")


@pytest.mark.spec("L5")
def test_the_line_is_on_disk_while_the_cell_runs(recording: Recording) -> None:
    recording.shell.user_ns["lines"] = lambda: [each["type"] for each in recording.lines]
    assert recording.run("lines()").result == ["cell"]


@pytest.mark.parametrize(
    ("source", "status", "name", "value"),
    [
        ("1 / 0", "error", "ZeroDivisionError", "division by zero"),
        ("def broken(:", "error", "SyntaxError", ""),
        ("raise KeyError('k')", "error", "KeyError", "'k'"),
        ("raise KeyboardInterrupt", "interrupted", "KeyboardInterrupt", ""),
        ("import asyncio\nraise asyncio.CancelledError", "interrupted", "CancelledError", ""),
        ("raise SystemExit(3)", "error", "SystemExit", "3"),
        ("from IPython.core.error import UsageError\nraise UsageError('wrong form')", "error",
         "UsageError", "wrong form"),
        ("raise ExceptionGroup('both', [ValueError(1)])", "error", "ExceptionGroup", "both"),
        ("import asyncio\nawait asyncio.sleep(0)\nraise OSError(2, 'gone')", "error",
         "FileNotFoundError", "[Errno 2] gone"),
        ("class E(Exception):\n  def __str__(self): return 'my own'\nraise E", "error", "E", ""),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:To exit")
def test_how_a_cell_ends(
    recording: Recording, source: str, status: str, name: str, value: str
) -> None:
    recording.run(source)
    end, told = recording.end(), recording.outputs()
    assert (end["status"], end.get("error")) == (status, name)
    assert told["error"]["name"] == name
    assert told["error"]["value"].startswith(value) or value in told["error"]["traceback"]
    assert "\x1b" not in json.dumps(told)
    if name == "ZeroDivisionError":
        assert "1 / 0" in told["error"]["traceback"]
        assert text(told) == [], "the traceback is the error and no output"


def test_no_turn_is_made_of_what_is_none(recording: Recording) -> None:
    for source in ("", "  \n", "%load_ext ipymemory_of_nobody # ipymemory"):
        recording.run(source)
    recording.run("silent = 1", silent=True)
    recording.run("unstored = 1", history=False)
    recording.run("real = 1")
    assert recording.sources() == ["%load_ext ipymemory_of_nobody # ipymemory", "real = 1"]


def test_nested_cells_are_part_of_theirs(recording: Recording) -> None:
    recording.run(
        "for source in ('print(1)', '', 'print(2)', 'print(2)'):\n"
        "    get_ipython().run_cell(source, store_history=True)\nprint(3)"
    )
    assert len(recording.sources()) == 1
    assert [each["type"] for each in recording.lines[:2]] == ["cell", "end"]
    assert text(recording.outputs()) == [("stream", "1\n2\n2\n3\n")]
    # a cell that runs its own source
    recording.shell.user_ns["depth"] = 0
    recording.run(
        "depth += 1\nif depth < 3:\n    get_ipython().run_cell(In[-1], store_history=False)\n"
        "print('depth', depth)"
    )
    assert len(recording.sources()) == 2
    assert text(recording.outputs())[0][1].count("depth") == 3


@pytest.mark.spec("L2")
def test_nothing_of_the_users_is_held_or_changed(recording: Recording) -> None:
    recording.run("class Big: pass\nbig = Big()\nheld = [big]")
    recording.outputs()
    big = weakref.ref(recording.shell.user_ns["big"])
    recording.run("del big, held")
    gc.collect()
    assert big() is None
    result = recording.run("shown = Big()\nshown").result
    assert recording.shell.user_ns["_"] is result is recording.shell.user_ns["shown"]


@pytest.mark.spec("L2")
def test_a_recorder_that_breaks_is_not_noticed(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SystemExit("a fault of ours")

    recording.run("before = 1")
    recording.outputs()
    for name in ("mask_source", "mask", "learn_named"):
        monkeypatch.setattr(recording.recorder._masker, name, fail)
    capsys.readouterr()
    assert recording.run("print('works')\n6 * 7").result == 42
    assert capsys.readouterr().out.splitlines()[0] == "works"
    monkeypatch.undo()
    recording.run("after = 1")
    assert recording.sources()[-1] == "after = 1"


def test_a_source_is_masked_and_bounded(new: Callable[..., Recording]) -> None:
    recording = new(Capture={"source_bytes": 2000})
    lines = "\n".join(f"value_{i} = {i}" for i in range(2000))
    recording.run(f"password = 'Xk39!fhsPQ'\n{lines}\nlast = 'ü'")
    source = recording.sources()[0]
    assert len(source.encode()) <= 2000
    assert source.startswith("password = '[masked: password]'\nvalue_0 = 0\n")
    assert source.endswith("last = 'ü'")
    assert "characters left out" in source
    recording.run("#" + "ü" * 3000)
    assert len(recording.sources()[1].encode()) <= 2000


@pytest.mark.parametrize("character", ["x", '"', "\\", "\n", "\x01", "ü", "😀"])
def test_a_line_fits_whatever_it_holds(recording: Recording, character: str) -> None:
    recording.run(f"'''{character * 40_000}'''")
    recording.run(f"print({character!r} * 9000)\n{character!r} * 9000")
    recording.outputs()
    for line in recording.folder.transcript.read_bytes().split(b"\n"):
        assert len(line) < 64 * 1024
    assert len(recording.sources()) == 2


def test_all_outputs_of_a_cell_are_bounded(new: Callable[..., Recording]) -> None:
    recording = new(Capture={"outputs_bytes": 6000, "output_chars": 1000})
    recording.run(
        "import sys\nfor i in range(40):\n    print(f'out {i} ' + 'o' * 900)\n"
        "    print(f'err {i} ' + 'e' * 900, file=sys.stderr)\n'the result'"
    )
    told = recording.outputs()
    assert len(json.dumps(told, ensure_ascii=False).encode()) <= 6000 + 500
    assert text(told)[0][1].startswith("out 0 ")
    assert text(told)[-1] == ("result", "'the result'")
    assert "more outputs left out" in json.dumps(told, ensure_ascii=False)


def test_bounded_keeps_the_last_and_then_the_first() -> None:
    pieces = [
        {"kind": "stream", "text": f"{i} " + "x" * 300, "mime": [], "truncated": 0}
        for i in range(9)
    ]
    assert bounded(pieces, 100_000) is pieces
    kept = bounded(pieces, 1300)
    assert [each["text"][:2] for each in kept] == ["0 ", "1 ", "[…", "8 "]
    assert "left out" in kept[2]["text"]
    assert len(json.dumps(kept, ensure_ascii=False).encode()) <= 1300
    (large,) = bounded([{**pieces[0], "text": "y " * 5000}], 2000)
    assert 500 < len(large["text"]) < 2000
    assert large["truncated"] > 8000


def test_the_result_of_a_terminal_is_told_from_what_was_printed() -> None:
    def piece(said: str) -> list[dict[str, Any]]:
        return [{"kind": "stream", "text": said, "mime": [], "truncated": 3}]

    def split(said: str) -> list[tuple[str, str]]:
        return [(each["kind"], each["text"]) for each in with_result(piece(said), 7)]

    assert split("Out[7]: 42\n") == [("result", "42")]
    assert split("a\nOut[7]: \n   x\n0  1\n") == [("stream", "a\n"), ("result", "   x\n0  1")]
    assert split("Out[6]: 42\n") == [("stream", "Out[6]: 42\n")]
    assert split("Out[7]: 1\nOut[7]: 2\n") == [("stream", "Out[7]: 1\n"), ("result", "2")]


@pytest.mark.spec("L7")
@pytest.mark.parametrize(
    ("level", "kept", "left_out"),
    [
        ("all", ["Alice", "1,200", "salary", "boom of Alice"], []),
        ("no-tables", ["1,200", "salary"], ["Alice"]),
        ("shapes", ["1,200", "ValueError"], ["Alice", "salary", "boom"]),
        ("none", ["ValueError"], ["Alice", "salary", "boom", "1,200"]),
    ],
)
def test_privacy_of_outputs(
    new: Callable[..., Recording], level: str, kept: list[str], left_out: list[str]
) -> None:
    recording = new(Privacy={"outputs": level})
    recording.run(
        "import pandas as pd\n"
        "df = pd.DataFrame({'name': ['Alice', 'Bob'] * 600, 'salary': [1, 2] * 600})\ndf"
    )
    recording.outputs()
    recording.run("raise ValueError('boom of ' + df.name[0])")
    told = [recording.outputs()]
    told += [each for each in recording.lines if each["type"] == "outputs"]
    if level == "no-tables":
        told = told[1:2]
    said = json.dumps(told, ensure_ascii=False)
    for word in kept:
        assert word in said, word
    for word in left_out:
        assert word not in said, word


@pytest.mark.spec("L7")
def test_values_of_secret_names_are_masked_wherever_they_show(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "qP9wLm2-zzTop")
    recording.run("password = 'mag' + 'enta-' + 'Rhino77'")
    recording.run("print('it is', password)\nraise RuntimeError(password)")
    recording.run("import os\nprint(os.environ['SERVICE_' + 'API_KEY'])")
    recording.outputs()
    recording.run("from getpass import getpass\ngetpass = lambda: 'typed-Unseen-12'")
    recording.run("pin = getpass()")
    recording.run("[pin]")
    recording.outputs()
    data = recording.folder.transcript.read_bytes()
    for secret in (b"enta-Rhino77", b"qP9wLm2", b"[['typed-Unseen-12"):
        assert secret not in data
    assert b"masked: secret" in data
    assert text(recording.outputs()) == [("result", "['[masked: secret]']")]


@pytest.mark.spec("L7")
def test_what_a_data_scientist_logs_in_with_reaches_no_transcript(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "what a data scientist logs in with"
    told = [probes(form)[0] for form in SECRETS[kind].strip("\n").split("\n--\n")]
    printed = [text for way, text, _ in told if way == "text"]
    monkeypatch.setattr("builtins.printed", iter(printed), raising=False)
    for _ in printed:
        recording.run("import builtins; print(next(builtins.printed))")
    recording.outputs()
    data = recording.folder.transcript.read_text()
    held = {each for way, _, secrets in told if way == "text" for each in secrets}
    assert [each for each in held if each in data] == []
    assert data.count("[masked: ") >= len(printed)


@pytest.mark.spec("L7")
def test_a_private_cell_is_nowhere_and_not_quoted(recording: Recording) -> None:
    recording.run(
        "# ipymemory: off\nhidden = 'narwhal'\ndef fail(what):\n    return hidden[what]\n"
    )
    recording.run("x = 1")
    assert [each["name"] for each in recording.outputs()["names"]] == ["x"]
    recording.run("fail('number')")
    traceback = recording.outputs()["error"]["traceback"]
    assert "[private]" in traceback
    assert "fail('number')" in traceback
    recording.run("import inspect\nprint(In[1])\nIn[1]")
    recording.run("get_ipython().run_cell('# ipymemory: off\\nprint(hidden)')\nprint('outer')")
    assert text(recording.outputs()) == []
    data = recording.folder.transcript.read_text()
    assert "hidden[what]" not in data
    assert "'narwhal'" not in data
    assert "def fail" not in data
    recording.run("y = 1")
    assert text(recording.outputs()) == []
    assert recording.sources()[-1] == "y = 1"


@pytest.mark.spec("L7")
def test_private_cells_stay_private_over_loading_again(recording: Recording) -> None:
    recording.run("# ipymemory: off\ndef fail(what):\n    return what['narwhal']")
    recording.recorder.remove()
    recording.recorder = recording.new_recorder()
    recording.recorder.install()
    recording.run("fail(1)")
    assert "narwhal" not in recording.folder.transcript.read_text()
    assert "[private]" in recording.outputs()["error"]["traceback"]


def test_pause_and_resume(recording: Recording) -> None:
    recording.run("a = 1")
    recording.recorder.pause()
    recording.run("b = 2")
    assert recording.recorder.paused
    recording.recorder.resume()
    recording.run("c = 3")
    assert recording.sources() == ["a = 1", "c = 3"]
    assert recording.outputs()["names"] == [{"name": "c", "type": "int"}]


@pytest.mark.spec("L13")
def test_what_ran_before_enters_once_with_its_count(recording: Recording) -> None:
    recording.recorder.remove()
    for source in (
        "early = 1",
        "# ipymemory: off\nprivate = 2",
        "%memory status",
        "password='Xk39!fhsPQ'",
    ):
        recording.run(source)
    recording.recorder = recording.new_recorder()
    recording.recorder.lines.generation = 3
    recording.recorder.install()
    recording.run("first = 1")
    recording.run("second = 1")
    entered = [each for each in recording.lines if each.get("origin") == "history"]
    assert [(each["source"], each["execution_count"], each["kernel"]) for each in entered] == [
        ("early = 1", 1, 3), ("password='[masked: password]'", 4, 3),
    ]  # fmt: skip
    assert recording.sources()[2:] == ["first = 1", "second = 1"]
    recording.recorder.remove()
    recording.run("between = 1")
    recording.recorder = recording.new_recorder()
    recording.recorder.install()
    recording.run("third = 1")
    assert recording.sources()[4:] == ["between = 1", "third = 1"]


def test_packages_are_told_once_with_their_version(recording: Recording) -> None:
    recording.run("import json, pandas as pd\nfrom numpy import array")
    recording.run("import pandas")

    def told() -> list[dict[str, str]]:
        return [each["packages"] for each in recording.lines if each.get("name") == "packages"]

    recording.outputs()
    eventually(told, "the packages are told")
    time.sleep(3 * outputs.BATCH_SECONDS)
    import numpy
    import pandas

    assert told() == [{"pandas": pandas.__version__, "numpy": numpy.__version__}]


@pytest.mark.spec("L2")
@pytest.mark.parametrize(
    "trouble", [PlaceError("No folder. Make one."), TranscriptError("Full."), OSError(28, "full")]
)
def test_without_a_place_it_is_quiet_and_tries_again(
    recording: Recording, trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(on_record, "time", Clock(now))
    recording.trouble = trouble
    for number in range(5):
        assert recording.run(f"{number} + 1").result == number + 1
    assert recording.opened == 1, "not in every cell"
    assert str(trouble.args[-1]) in recording.recorder.lines.reason
    now[0] += on_record.RETRY_SECONDS + 1
    recording.run("again = 1")
    assert recording.opened == 2
    recording.trouble = None
    now[0] += 2 * on_record.RETRY_SECONDS + 1
    recording.run("recorded = 1")
    assert recording.recorder.lines.reason == ""
    assert recording.sources()[-2:] == ["again = 1", "recorded = 1"], "the ones before by source"


@pytest.mark.spec("L2")
def test_what_ends_while_the_disk_is_full_gets_its_end_later(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(on_record, "time", Clock(now))
    real = os.write
    room = [True]

    def write(descriptor: int, data: bytes) -> int:
        if room[0] or b'"type"' not in data:
            return real(descriptor, data)
        return real(descriptor, data[:7])

    recording.run("first = 1")
    recording.outputs()
    recording.shell.user_ns["room"] = room
    monkeypatch.setattr("ipymemory.descriptors.write", write)
    recording.run("room[0] = False")
    assert "disk is full" in recording.recorder.lines.reason
    recording.run("lost = 1")
    time.sleep(3 * outputs.BATCH_SECONDS)
    room[0] = True
    now[0] += on_record.RETRY_SECONDS + 1
    recording.run("third = 1")
    recording.outputs()
    assert recording.recorder.lines.reason == ""
    lines = recording.lines
    assert recording.torn
    cells = [each["id"] for each in lines if each["type"] == "cell"]
    assert len(cells) == 3, "the cell that began while it was full is not there"
    for kind in ("end", "outputs"):
        assert sorted(each["id"] for each in lines if each["type"] == kind) == cells


def test_removing_writes_what_is_left_and_says_that_a_cell_went_on(recording: Recording) -> None:
    recording.shell.user_ns["remove"] = recording.recorder.remove
    recording.run("print('so far')\nremove()\nprint('unseen')")
    assert recording.end()["status"] == "unknown"
    assert text(recording.outputs()) == [("stream", "so far\n")]
    recording.run("later = 1")
    assert len(recording.sources()) == 1
    assert not [each for each in threading.enumerate() if each.name == "ipymemory-outputs"]


@pytest.mark.spec("L2")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_records_nothing(recording: Recording) -> None:
    recording.shell.user_ns["recorder"] = recording.recorder
    recording.run(
        "import os\nchild = os.fork()\nif child == 0:\n    recorder.remove()\n"
        "    get_ipython().run_cell('in_the_child = 1', store_history=True)\n"
        "    os._exit(5)\nos.waitstatus_to_exitcode(os.waitpid(child, 0)[1])"
    )
    assert text(recording.outputs())[-1] == ("result", "5")
    recording.run("after = 1")
    assert [each["type"] for each in recording.lines if "in_the_child" in str(each)] == ["cell"]
    assert recording.sources()[-1] == "after = 1"


def test_names_of_wide_frames_are_bounded() -> None:
    wide = {"name": "df", "type": "DataFrame", "columns": ["c" * 80] * 50}
    kept = fitting([wide] * 40, 12_000)
    assert 2 <= len([each for each in kept if "columns" in each]) < 4
    assert len(kept) == 40
    assert len(json.dumps(kept)) <= 12_500


def test_nothing_is_left_behind_by_cells_that_are_over(recording: Recording) -> None:
    for number in range(300):
        recording.run(f"x = {number}")
    recording.outputs()
    assert recording.recorder._turns == {}
    assert len([each for each in recording.lines if each["type"] == "end"]) == 300
