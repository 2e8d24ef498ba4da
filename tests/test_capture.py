"""Picking up a cell's output: bounded while it streams, and never in the way of what is shown."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from kernels import ROOT
from traitlets.config import Config

from ipymemory.capture import MOST_ITEMS, Captured
from ipymemory.outputs import with_result
from ipymemory.taps import KernelTap, TerminalTee


def told(captured: Captured) -> list[tuple[str, str]]:
    return [(each["kind"], each["text"]) for each in captured.pieces()]


def test_streams_displays_and_results_in_order() -> None:
    captured = Captured(4000)
    captured.stream("stdout", "a\n")
    captured.stream("stdout", "b\n")
    captured.stream("stderr", "\x1b[31mc\x1b[0m\n")
    captured.bundle("display", {"text/plain": "<Figure>", "image/png": "iVBOR" * 100}, None)
    captured.bundle("result", {"text/plain": "\x1b[1m42\x1b[0m", "text/html": "<b>42</b>"}, None)
    pieces = captured.pieces()
    assert [(each["kind"], each["text"]) for each in pieces] == [
        ("stream", "a\nb\n"),
        ("stream", "c\n"),
        ("display", "<Figure>"),
        ("result", "42"),
    ]
    assert [each["mime"] for each in pieces][2:] == [
        ["text/plain", "image/png"],
        ["text/plain", "text/html"],
    ]
    assert "iVBOR" not in str(pieces)
    assert captured.pieces() == [], "what was taken is gone"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"image/png": "x" * 1200}, "image/png, 1,200 characters"),
        ({"text/markdown": "# Title"}, "# Title"),
        ({"text/plain": "<IPython.core.display.Markdown object>", "text/markdown": "*m*"}, "*m*"),
        ({"text/plain": "<IPython.core.display.HTML object>", "text/html": "<i>"},
         "<IPython.core.display.HTML object>"),
        ({"text/plain": ["not", "text"], "application/json": {"a": 1}}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_what_is_kept_of_a_bundle(data: dict[str, Any], text: str) -> None:
    captured = Captured(4000)
    captured.bundle("display", data, None)
    pieces = captured.pieces()
    assert (pieces[0]["text"] if pieces else "") == text


def test_updates_and_clearing() -> None:
    captured = Captured(4000)
    captured.bundle("display", {"text/plain": "first"}, "id-1")
    captured.bundle("display", {"text/plain": "other"}, "id-2")
    captured.bundle("display", {"text/plain": "no id"}, None)
    captured.update({"text/plain": "second"}, "id-1")
    captured.update({"text/plain": "lost"}, None)
    captured.update({"text/plain": "of another cell"}, "id-9")
    assert [text for _, text in told(captured)] == ["second", "other", "no id"]
    captured.stream("stdout", "step 1")
    captured.clear(wait=True)
    assert told(captured) == [("stream", "step 1")], "it waits for what comes next"
    captured.stream("stdout", "step 1")
    captured.clear(wait=True)
    captured.stream("stdout", "step 2")
    captured.clear(wait=False)
    captured.stream("stdout", "step 3")
    assert told(captured) == [("stream", "step 3")]


def test_a_progress_bar_in_many_pieces_is_its_last_state() -> None:
    captured = Captured(4000)
    for number in range(5000):
        captured.stream("stderr", f"\r{number // 50:3d}%|{'#' * (number // 100)}")
    captured.stream("stderr", "\r100%|done\n")
    assert told(captured) == [("stream", "100%|done" + "#" * 45 + "\n")]


def test_many_pieces_are_bounded_and_the_result_is_among_them() -> None:
    captured = Captured(4000)
    for number in range(3 * MOST_ITEMS):
        captured.bundle("display", {"text/plain": f"figure {number}"}, None)
    captured.stream("stdout", "printed")
    captured.bundle("result", {"text/plain": "the result"}, None)
    captured.stream("stdout", " and more")
    pieces = told(captured)
    assert len(pieces) <= MOST_ITEMS + 3
    assert ("result", "the result") in pieces
    assert pieces[-1][1].endswith("more outputs left out …]")
    assert "and more" in str(pieces)


@pytest.mark.parametrize("size", [100, 1_000_000, 30_000_000])
def test_memory_is_bounded_while_it_streams(size: int) -> None:
    captured = Captured(4000)
    text = "x" * (size - 1) + "\n"
    captured.stream("stdout", "begin\n")
    tracemalloc.start()
    try:
        for _ in range(max(1, 30_000_000 // size)):
            captured.stream("stdout", text)
            captured.stream("stderr", "e" * 100)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6_000_000
    captured.stream("stdout", "end")
    pieces = captured.pieces()
    assert all(len(each["text"]) <= 4000 for each in pieces)
    assert pieces[0]["text"].startswith("begin\n")
    assert sum(each["truncated"] for each in pieces) > 25_000_000
    assert any(each["text"].endswith("end") for each in pieces)


def test_an_error_is_bounded_and_keeps_its_first_and_last_frames() -> None:
    captured = Captured(4000)
    frames = ["---", "Boom  Traceback", *(f"frame {i}\n" + "x" * 5000 for i in range(500)), "Boom"]
    captured.raised("Boom", "v" * 1_000_000, frames)
    assert captured.error is not None
    name, value, traceback = captured.error
    assert name == "Boom"
    assert max(len(value), len(traceback)) <= 4000
    assert traceback.startswith("---\nBoom")
    assert traceback.endswith("Boom")


class Sneaky(str):
    """A text that prints while it is taken, as a ``__del__`` does when garbage is collected."""

    captured: Captured

    def __len__(self) -> int:
        self.captured.stream("stdout", "in between ")
        return super().__len__()


def test_output_within_output_does_not_hang() -> None:
    captured = Captured(4000)
    text = Sneaky("taken")
    text.captured = captured
    thread = threading.Thread(target=captured.stream, args=("stdout", text), daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    assert "taken" in told(captured)[0][1]


def test_many_threads_at_once() -> None:
    captured = Captured(100_000)

    def work(number: int) -> None:
        for _ in range(200):
            captured.stream("stdout", f"{number}\n")
            captured.bundle("display", {"text/plain": "d"}, None)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(text.count("\n") for kind, text in told(captured) if kind == "stream") == 800


# The tap. Its host is a real jupyter session in test_recorder; here one that can be made to fail.


class Session:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, stream: Any, msg_or_type: Any, content: Any = None, parent: Any = None,
             *args: Any, **kwargs: Any) -> str:  # fmt: skip
        self.sent.append((stream, msg_or_type, content))
        return "sent"


class Kernel:
    def __init__(self) -> None:
        self.session = Session()
        self.iopub_socket = SimpleNamespace(io_thread=object())

    def getpass(self, prompt: str = "") -> str:
        return "typed unseen"


PARENT = {"header": {"msg_id": "m1"}}


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def seen() -> dict[str, Any]:
    return {"captured": Captured(4000), "idle": [], "secrets": []}


@pytest.fixture
def tap(kernel: Kernel, seen: dict[str, Any]) -> Iterator[KernelTap]:
    found = {"m1": seen["captured"]}
    tap = KernelTap(kernel, found.get, seen["idle"].append, seen["secrets"].append)
    tap.install()
    yield tap
    tap.remove()


@pytest.mark.usefixtures("tap")
def test_the_tap_sees_both_forms_of_messages(kernel: Kernel, seen: dict[str, Any]) -> None:
    send, socket = kernel.session.send, kernel.iopub_socket
    assert send(socket, "stream", {"name": "stdout", "text": "one "}, PARENT) == "sent"
    message = {
        "header": {"msg_type": "stream"}, "parent_header": {"msg_id": "m1"},
        "content": {"name": "stdout", "text": "two"},
    }  # fmt: skip
    send(socket.io_thread, message)
    send(socket, msg_or_type="stream", content={"name": "stdout", "text": "!"}, parent=PARENT)
    send(object(), "stream", {"name": "stdout", "text": "another socket"}, PARENT)
    send(socket, "stream", {"name": "stdout", "text": "another cell"}, {"header": {"msg_id": "x"}})
    send(socket, "stream", {"name": "stdout", "text": "no cell"}, None)
    send(socket, "error", {"ename": "E", "evalue": "v", "traceback": ["E: v"]}, PARENT)
    send(socket, "status", {"execution_state": "busy"}, PARENT)
    assert seen["idle"] == []
    send(socket, "status", {"execution_state": "idle"}, PARENT)
    assert seen["idle"] == ["m1"]
    assert told(seen["captured"]) == [("stream", "one two!")]
    assert seen["captured"].error == ("E", "v", "E: v")
    assert len(kernel.session.sent) == 9, "every message went out"


@pytest.mark.spec("L2")
@pytest.mark.parametrize("trouble", [ValueError, SystemExit, MemoryError, RecursionError])
def test_whatever_we_do_the_message_goes_out(kernel: Kernel, trouble: type[BaseException]) -> None:
    def fail(_: str) -> None:
        raise trouble

    tap = KernelTap(kernel, fail, fail, fail)
    tap.install()
    content = {"name": "stdout", "text": "x"}
    assert kernel.session.send(kernel.iopub_socket, "stream", content, PARENT) == "sent"
    assert kernel.session.send(kernel.iopub_socket, {"broken": 1}) == "sent"
    assert kernel.session.send(kernel.iopub_socket, "stream", None, PARENT) == "sent"
    assert kernel.getpass() == "typed unseen"
    tap.remove()


@pytest.mark.spec("L2")
def test_a_ctrl_c_within_the_tap_is_the_users(kernel: Kernel) -> None:
    def pressed(_: str) -> None:
        raise KeyboardInterrupt

    tap = KernelTap(kernel, pressed, pressed, pressed)
    tap.install()
    with pytest.raises(KeyboardInterrupt):
        kernel.session.send(kernel.iopub_socket, "stream", {}, PARENT)
    assert len(kernel.session.sent) == 1, "the message went out first"


@pytest.mark.usefixtures("tap")
def test_what_is_typed_unseen_is_told(kernel: Kernel, seen: dict[str, Any]) -> None:
    assert kernel.getpass("Password:") == "typed unseen"
    assert seen["secrets"] == ["typed unseen"]


@pytest.mark.spec("L1")
def test_the_tap_goes_and_leaves_what_somebody_put_over_it(
    kernel: Kernel, seen: dict[str, Any], tap: KernelTap
) -> None:
    ours = kernel.session.send
    kernel.session.send = lambda *args, **kwargs: ours(*args, **kwargs)  # type: ignore[method-assign]
    theirs = kernel.session.send
    tap.remove()
    assert kernel.session.send is theirs
    theirs(kernel.iopub_socket, "stream", {"name": "stdout", "text": "x"}, PARENT)
    assert told(seen["captured"]) == []
    assert "getpass" not in vars(kernel)


@pytest.mark.usefixtures("tap")
def test_in_a_forked_child_nothing_is_touched(
    kernel: Kernel, seen: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    kernel.session.send(kernel.iopub_socket, "status", {"execution_state": "idle"}, PARENT)
    kernel.getpass()
    assert (seen["idle"], seen["secrets"]) == ([], [])


# The tee, in a real shell.


@pytest.fixture
def shell() -> Iterator[Any]:
    made = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    yield made
    made.restore_sys_module_state()


@pytest.fixture
def teed(shell: Any, capsys: pytest.CaptureFixture[str]) -> Callable[[str], Captured]:
    """Run a cell with the tee put in as the recorder does; return what was captured."""
    tee = TerminalTee(shell)

    def run(source: str) -> Captured:
        captured = Captured(4000)
        before, after = (lambda _: tee.begin(captured)), (lambda _: tee.end())
        shell.events.register("pre_run_cell", before)
        shell.events.register("post_run_cell", after)
        state = [vars(sys.stdout).get("write"), vars(sys.stderr).get("write")]
        shell.run_cell(source, store_history=True)
        shell.events.unregister("pre_run_cell", before)
        shell.events.unregister("post_run_cell", after)
        tee.remove()
        assert "_showtraceback" not in vars(shell)
        if not hasattr(shell, "_tee"):  # newer versions put their own there and leave it
            assert [vars(sys.stdout).get("write"), vars(sys.stderr).get("write")] == state
        return captured

    return run


def test_the_tee_copies_what_is_shown(
    teed: Callable[[str], Captured], capsys: pytest.CaptureFixture[str]
) -> None:
    captured = teed(
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.stdout.write('w\\n');"
    )
    assert told(captured) == [("stream", "out\n"), ("stream", "err\n"), ("stream", "w\n")]
    assert capsys.readouterr().out == "out\nw\n"


def test_a_traceback_is_the_error_and_not_printed_text(
    teed: Callable[[str], Captured], capsys: pytest.CaptureFixture[str]
) -> None:
    captured = teed("print('before')\n{}['missing']")
    assert told(captured) == [("stream", "before\n")]
    assert captured.error is not None
    assert captured.error[:2] == ("KeyError", "'missing'")
    assert "missing" in captured.error[2]
    assert "\x1b" not in captured.error[2]
    assert "KeyError" in capsys.readouterr().out, "the person sees it as ever"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_prints_while_a_lock_is_held_for_ever(
    teed: Callable[[str], Captured], shell: Any
) -> None:
    held = threading.Event()
    captured: list[Captured] = []

    def hold(lock: Any) -> None:
        with lock:
            held.set()
            threading.Event().wait()

    shell.user_ns.update(hold=hold, held=held, captured=captured, threading=threading, os=os)
    tee = TerminalTee(shell)
    captured.append(Captured(4000))
    tee.begin(captured[0])
    thread = threading.Thread(target=hold, args=(captured[0]._lock,), daemon=True)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        print("in the child")
        os._exit(7)
    tee.end()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_stream_without_room_for_a_tee_is_left_alone(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()  # takes no attributes
    monkeypatch.setattr(sys, "stdout", stream)
    tee = TerminalTee(shell)
    tee.begin(Captured(4000))
    print("goes on")
    tee.end()
    assert stream.getvalue() == "goes on\n"


class Slotted:
    """Takes a `write` of anybody's, and has no ``__dict__``."""

    __slots__ = ("texts", "write")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.write: Callable[[str], object] = self.texts.append


class Refusing(io.StringIO):
    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("nothing is set here")


class Unreadable:
    @property
    def write(self) -> Any:
        raise ValueError("it was detached")


class StandIn:
    """Hands all on to another stream, also what is set."""

    def __init__(self, stream: Any) -> None:
        vars(self)["stream"] = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["stream"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["stream"], name, value)


@pytest.mark.spec("L2")
@pytest.mark.parametrize("make", [Refusing, Unreadable, object, lambda: None])
def test_a_stream_that_cannot_be_copied_is_left_alone_and_the_other_is_copied(
    make: Callable[[], Any], shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", make())
    monkeypatch.setattr(sys, "stderr", errors)
    tee = TerminalTee(shell)
    for _ in range(2):
        captured = Captured(4000)
        tee.begin(captured)
        errors.write("warned\n")
        tee.end()
        assert texts(captured) == [("stream", "warned\n")]
    tee.remove()
    assert "write" not in vars(errors)


@pytest.mark.spec("L2")
def test_a_stream_that_user_code_took_away_stops_no_cell(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tee = TerminalTee(shell)
    with monkeypatch.context() as patch:
        patch.delattr(sys, "stdout")
        for _ in range(2):
            tee.begin(Captured(4000))
            tee.end()
        tee.remove()


@pytest.mark.spec("L2")
def test_a_stream_in_slots_is_copied_and_left_as_it_was(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Slotted()
    before = stream.write
    monkeypatch.setattr(sys, "stdout", stream)
    tee = TerminalTee(shell)
    for _ in range(2):
        captured = Captured(4000)
        tee.begin(captured)
        print("a")
        tee.end()
        assert texts(captured) == [("stream", "a\n")]
    tee.remove()
    assert stream.write == before


@pytest.mark.spec("L2")
def test_cells_pile_nothing_up_behind_a_stand_in(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.TextIOWrapper(io.BytesIO())
    before = stream.write
    monkeypatch.setattr(sys, "stdout", StandIn(stream))
    tee = TerminalTee(shell)
    # More cells than calls can stand within each other.
    for _ in range(sys.getrecursionlimit() + 10):
        captured = Captured(4000)
        tee.begin(captured)
        print("a")
        tee.end()
    assert texts(captured) == [("stream", "a\n")]
    tee.remove()
    assert stream.write == before


def texts(captured: Captured) -> list[tuple[str, str]]:
    return [(each["kind"], each["text"]) for each in captured.pieces()]


def test_pieces_of_a_stream_are_one() -> None:
    captured = Captured(4000)
    for piece in ("a", "b\n", "c"):
        captured.stream("stdout", piece)
    captured.bundle("result", {"text/plain": "42"}, None)
    captured.stream("stdout", "d")
    assert texts(captured) == [("stream", "ab\nc"), ("result", "42"), ("stream", "d")]


def test_many_pieces_are_bounded_and_the_streams_go_on() -> None:
    captured = Captured(4000)
    for number in range(1000):
        captured.stream("stdout" if number % 2 else "stderr", f"{number}\n")
        captured.bundle("display", {"text/plain": str(number)}, None)
    found = captured.pieces()
    assert len(found) <= MOST_ITEMS + 2  # one more for each stream
    assert "999\n" in "".join(each["text"] for each in found)


def test_a_display_is_updated_in_place_and_cleared() -> None:
    captured = Captured(4000)
    captured.bundle("display", {"text/plain": "first"}, "id-1")
    captured.update({"text/plain": "second"}, "id-1")
    captured.update({"text/plain": "another's"}, "id-2")
    captured.update({"text/plain": "nobody's"}, None)
    assert texts(captured) == [("display", "second")]
    captured.stream("stdout", "old")
    captured.clear(wait=True)
    assert bool(captured)
    captured.stream("stdout", "new")
    assert texts(captured) == [("stream", "new")]
    captured.stream("stdout", "old")
    captured.clear(wait=False)
    assert texts(captured) == []


def test_images_are_told_by_type_and_size() -> None:
    captured = Captured(4000)
    captured.bundle("display", {"image/png": "A" * 50_000}, None)
    captured.bundle("display", {"text/plain": "<Figure>", "image/png": "A" * 50_000}, None)
    found = captured.pieces()
    assert [each["text"] for each in found] == ["image/png, 50,000 characters", "<Figure>"]
    assert found[1]["mime"] == ["text/plain", "image/png"]


def test_the_tee_leaves_the_streams_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    tee, captured = TerminalTee(), Captured(4000)
    tee.begin(captured)
    print("seen")
    tee.end()
    print("not seen")
    out.flush()
    assert texts(captured) == [("stream", "seen\n")]
    assert out.buffer.getvalue() == b"seen\nnot seen\n"  # type: ignore[attr-defined]
    tee.remove()
    assert "write" not in vars(out)


def test_the_tee_stays_in_place_from_cell_to_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    tee, captured = TerminalTee(), [Captured(4000) for _ in range(3)]
    put = []
    for number, each in enumerate(captured):
        tee.begin(each)
        put.append(vars(sys.stdout)["write"])
        print(number)
        tee.end()
    assert put[0] is put[1] is put[2]
    assert [texts(each) for each in captured] == [[("stream", f"{n}\n")] for n in range(3)]


@pytest.mark.spec("L2")
def test_streams_that_user_code_wraps_or_changes_are_copied_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    tee = TerminalTee()

    def run(cell: Callable[[], object]) -> list[tuple[str, str]]:
        captured = Captured(4000)
        tee.begin(captured)
        cell()
        tee.end()
        return texts(captured)

    def wrapped() -> None:
        inner = sys.stdout.write
        sys.stdout.write = lambda text: inner(text.upper())  # type: ignore[method-assign]
        print("a")

    assert run(wrapped) == [("stream", "A\n")]
    assert run(lambda: print("b")) == [("stream", "b\n")], "as it was handed to the stream"
    assert run(lambda: print("c")) == [("stream", "c\n")]
    # A stream of the user's in place of it, and both in one.
    monkeypatch.setattr(sys, "stdout", other := io.TextIOWrapper(io.BytesIO()))
    assert run(lambda: print("d")) == [("stream", "d\n")]
    monkeypatch.setattr(sys, "stderr", other)
    for _ in range(2):
        assert run(lambda: print("e")) == [("stream", "e\n")]
    tee.remove()
    assert "write" not in vars(other)
    print("f")
    other.flush()
    assert other.buffer.getvalue() == b"d\ne\ne\nf\n"


def test_a_terminals_result_is_told_from_what_was_printed() -> None:
    piece = {
        "kind": "stream",
        "text": "printed\nOut[3]: \n   a\n0  1\n",
        "mime": [],
        "truncated": 0,
    }
    assert [(each["kind"], each["text"]) for each in with_result([piece], 3)] == [
        ("stream", "printed\n"),
        ("result", "   a\n0  1"),
    ]
    assert with_result([piece], 4) == [piece]


@pytest.mark.terminal
@pytest.mark.spec("L1", "L2")
def test_a_real_terminal_is_recorded(tmp_path: Path) -> None:
    cells = (
        "%load_ext ipymemory",
        "print('hello')",
        "40 + 2",
        "1 / 0",
        "%unload_ext ipymemory",
        "print('unseen')",
    )
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input="\n".join(cells) + "\n",
        env={
            **os.environ,
            "IPYTHONDIR": str(tmp_path / "ipython"),
            "IPYMEMORY_HOME": str(tmp_path / "home"),
            "PYTHONPATH": str(ROOT),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
    (path,) = (tmp_path / "home").glob("projects/*/sessions/*/transcript.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    sources = [each["source"] for each in lines if each["type"] == "cell"]
    assert sources == ["print('hello')", "40 + 2", "1 / 0"]
    outputs = [each for each in lines if each["type"] == "outputs"]
    assert [(o["kind"], o["text"]) for o in outputs[0]["outputs"]] == [("stream", "hello\n")]
    assert [(o["kind"], o["text"]) for o in outputs[1]["outputs"]] == [("result", "42")]
    assert outputs[2]["error"]["name"] == "ZeroDivisionError"
