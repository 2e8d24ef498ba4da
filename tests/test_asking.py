"""`%%ask`: what may be typed, and what is shown of an answer while it grows."""

from __future__ import annotations

import functools
import io
import itertools
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from ipymemory import asking, stopping
from ipymemory.asking import STOPPED, Asked, Question, follow, parse
from ipymemory.client import MOST_ASKED, fits
from ipymemory.errors import CommandError
from ipymemory.magics import MemoryMagics, with_questions
from ipymemory.pipes import encode
from ipymemory.stopping import Stop, Stopped
from ipymemory.streamed import Growing, Terminal, settled
from ipymemory.streaming import Stream


@pytest.mark.parametrize(
    ("line", "cell", "question"),
    [
        ("why is it slow?", None, Question("why is it slow?")),
        ("  it's {x} and $y ", None, Question("it's {x} and $y")),
        ("", "why\nis it\n", Question("why\nis it")),
        ("--quiet --last 3", "why", Question("why", True, 3)),
        ("--last=3 --quiet why", None, Question("why", True, 3)),
        ("--last 3   why  so", "and that\n", Question("why  so\nand that", False, 3)),
        ("-- --last is what?", None, Question("--last is what?")),
        ("why --last 3", None, Question("why --last 3")),
    ],
)
def test_a_question_is_taken_as_it_was_typed(
    line: str, cell: str | None, question: Question
) -> None:
    assert parse(line, cell) == question


@pytest.mark.parametrize(
    ("line", "cell", "why"),
    [
        ("", None, "no question"),
        ("--quiet", " \n", "no question"),
        ("--last", "why", "whole number of at least 1, not ''"),
        ("--last none why", None, "not 'none'"),
        ("--last=0 why", None, "not '0'"),
        ("--lost 3 why", None, "--lost is unknown"),
        ("--quiet=1 why", None, "--quiet=1 is unknown"),
    ],
)
def test_a_wrong_call_is_met_with_the_right_form(line: str, cell: str | None, why: str) -> None:
    with pytest.raises(CommandError, match=re.escape(why)) as raised:
        parse(line, cell)
    assert "%ask [--quiet] [--last N] TEXT" in str(raised.value)


@pytest.mark.parametrize("letter", ["x", "é", "字", "\x00", "\U0001f600"])
def test_a_question_fits_whole_into_a_message_or_not_at_all(letter: str) -> None:
    size = len(encode({"question": letter * 1000})) / 1000
    most = int(MOST_ASKED / size)
    assert fits(letter * (most * 9 // 10))
    assert not fits(letter * most)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%ask why?\n", "get_ipython().run_line_magic('ask', 'why?')\n"),
        ("  %ask  it's {x}? ", "  get_ipython().run_line_magic('ask', \"it's {x}?\")"),
        (
            "%memory recall which month?",
            "get_ipython().run_line_magic('memory', 'recall which month?')",
        ),
        ("%memory recall?", "%memory recall?"),
        ("%memory?", "%memory?"),
        ("%memory status", "%memory status"),
        ("%ask x", "get_ipython().run_line_magic('ask', 'x')"),
        ("%ask?", "%ask?"),
        ("%ask", "%ask"),
        ("%ask a \\\n", "%ask a \\\n"),
        ("%%ask why?\n", "%%ask why?\n"),
        ("%asked why?\n", "%asked why?\n"),
        ("x = 1 # %ask why?", "x = 1 # %ask why?"),
    ],
)
def test_a_question_mark_asks_for_no_help(line: str, expected: str) -> None:
    assert with_questions([line]) == [expected]
    assert with_questions([expected]) == [expected]


def test_a_line_within_a_string_is_no_question() -> None:
    lines = ['x = """\n', "%ask why?\n", '"""\n', "%ask why?\n"]
    assert with_questions(lines)[:3] == lines[:3]
    assert with_questions(lines)[3].startswith("get_ipython")


# What is shown.


def grown(*pieces: dict[str, Any], quiet: bool = False) -> Growing:
    answer = Growing(quiet)
    for piece in pieces:
        answer.add(piece)
    return answer


READ = {"call": "Read", "about": "data/`clean`.py\nx"}


def test_words_and_calls_stand_in_their_order_each_call_one_quiet_line() -> None:
    answer = grown(
        {"text": "I "}, {"text": "look."}, READ, {"call": "Git", "about": ""},
        {"refused": "Git", "about": "why"}, {"text": "It is **one**."},
    )  # fmt: skip
    assert answer.markdown() == (
        "I look.\n\n*Read* `data/'clean'.py x`\\\n*Git* (refused)\n\nIt is **one**."
    )
    assert answer.plain() == (
        "I look.\n\nRead data/'clean'.py x\n\nGit (refused)\n\nIt is **one**."
    )
    assert grown({"text": "a"}, READ, quiet=True).markdown() == "a"
    assert grown(READ).markdown() == "*Read* `data/'clean'.py x`"
    assert grown(READ, quiet=True).empty
    # What was written is told in any case, once, and does nothing but show.
    kept = (
        {"call": "Remember", "about": "x"},
        {"noted": "kept as <b>; %memory undo takes it back"},
    )
    assert grown(*kept, quiet=True).markdown() == (
        "*Remember* `x` (kept as &lt;b>; %memory undo takes it back)"
    )
    assert "(kept as <b>; %memory undo" in grown(*kept).plain()


def test_what_a_second_try_says_stands_in_place_of_the_first() -> None:
    answer = grown({"text": "a"}, READ, {"text": "half"}, {"again": "whole"})
    assert answer.plain().endswith("whole")
    assert "half" not in answer.plain()
    answer.replace("all of it")
    assert answer.plain().endswith("all of it")
    assert "whole" not in answer.plain()


def test_an_unknown_piece_and_one_out_of_place_do_no_harm() -> None:
    assert grown({"image": "x"}, {"refused": "Read"}, {}).empty


@pytest.mark.spec("L2")
def test_nothing_a_model_says_acts_in_the_notebook() -> None:
    hostile = "<script>alert(1)</script> ![x](https://evil.example/?q=1) `ok <b>`"
    answer = grown(
        {"text": "```\nopen"}, {"call": hostile, "about": hostile}, {"text": hostile}
    )  # fmt: skip
    answer.note(hostile)
    markdown = answer.markdown()
    # Within a code span nothing acts.
    outside = re.sub(r"`[^`\n]+`", "", markdown)
    assert "<" not in outside
    assert "![" not in outside
    assert markdown.count("```") == 2


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("one", ""),
        ("one\n\ntwo", "one\n\n"),
        ("```\na\n\nb", ""),
        ("x\n\n```\na\n\nb", "x\n\n"),
        ("```\na\n\n```\n\nb", "```\na\n\n```\n\n"),
        ("````\n```\n\n````\n\nb", "````\n```\n\n````\n\n"),
    ],
)
def test_a_block_is_finished_when_it_cannot_change(text: str, finished: str) -> None:
    assert text[: settled(text)] == finished


class Screen:
    """Keeps what it was shown and when."""

    def __init__(self) -> None:
        self.shown: list[tuple[float, str]] = []

    def show(self, answer: Growing) -> None:
        self.shown.append((time.monotonic(), answer.plain()))

    def close(self, answer: Growing) -> None:
        self.show(answer)


def test_the_first_words_are_shown_at_once_and_then_ten_times_a_second() -> None:
    stream, screen, said = Stream(), Screen(), []

    def say() -> None:
        for n in range(100):
            said.append(time.monotonic())
            stream.put({"text": f"{n} "})
            time.sleep(0.005)
        stream.end({}, "")

    thread = threading.Thread(target=say)
    thread.start()
    follow(stream, screen, answer := Growing(), Stop())
    thread.join()
    times = [at for at, _ in screen.shown]
    assert times[0] - said[0] < 0.05
    assert all(b - a >= 0.095 for a, b in itertools.pairwise(times))
    assert 3 <= len(times) <= 11
    assert answer.plain() == " ".join(map(str, range(100)))


@pytest.mark.parametrize(
    ("value", "error", "note"),
    [
        ({"status": "done", "stop": "end_turn"}, "", ""),
        ({"status": "done", "stop": "max_tokens"}, "", "Engine.answer_tokens"),
        ({"status": "done", "stop": "refusal"}, "", "refused"),
        ({"status": "out_of_time"}, "", "Engine.ask_minutes"),
        ({"status": "out_of_rounds"}, "", "Engine.ask_rounds"),
        ({"status": "failed", "error": "Overloaded."}, "", "Overloaded."),
        (None, "The worker ended.", "The worker ended."),
    ],
)
def test_why_an_answer_ends_is_said_below_it(value: Any, error: str, note: str) -> None:
    stream = Stream()
    stream.end(value, error)
    stream.take(0)
    said = asking.ended(stream, Growing())
    assert (note in said) if note else not said


def test_pieces_that_were_lost_are_made_up_for_at_the_end() -> None:
    stream, answer = Stream(), grown({"text": "half"}, READ)
    stream.lost = True
    stream.end({"status": "done", "text": "whole"}, "")
    stream.take(0)
    asking.ended(stream, answer)
    assert answer.plain().endswith("whole")
    assert "half" not in answer.plain()


# What it is doing, in one line.


@pytest.mark.spec("A1", "L12")
def test_what_it_is_doing_stands_below_while_it_works_and_is_no_part_of_the_answer() -> None:
    answer = grown(READ, {"doing": "Reading `clean.py`\nfor dates"})
    assert answer.doing == "Reading 'clean.py' for dates"
    assert "for dates" not in answer.markdown() + answer.plain()
    answer.add({"doing": "Searching files for x"})
    assert answer.doing == "Searching files for x"
    answer.add({"text": "It is"})
    assert answer.doing == "", "its words say themselves what it does"


@pytest.mark.spec("A1", "L12")
@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_a_notebook_shows_it_and_is_not_saved_with_it(
    shell: Any, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    shown: list[dict[str, str]] = []

    class Display:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data)

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Display:
        shown.append(data)
        return Display()

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(shell, "kernel", object(), raising=False)

    class Slow(Asker):
        @contextmanager
        def asking(self, question: str, last: int | None, cell: Asked) -> Iterator[Stream]:
            stream = Stream()
            stream.put({"doing": "Reading <b>__init__.py</b> *now*"})
            threading.Timer(0.3, lambda: stream.put({"call": "Read", "about": "a.py"})).start()
            threading.Timer(0.6, lambda: stream.end({"status": status}, "")).start()
            yield stream

    asking.ask(shell, Slow(), Question("why?"), Stop())
    first, *_, last = shown
    assert first["text/plain"] == "Reading <b>__init__.py</b> *now*…"
    line = re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), first["text/markdown"])
    assert line == "*Reading <b>__init__.py</b> *now*…*"
    assert not re.search(r"[<_]|\*n", first["text/markdown"][1:-1]), "it only shows"
    assert any("Read" in e["text/plain"] and "…" in e["text/plain"] for e in shown)
    assert "Reading" not in str(last) and "*Read* `a.py`" in last["text/markdown"]


# In a terminal.


class Asker:
    """A session whose assistant says `pieces` and then does `then`."""

    def __init__(self, *pieces: dict[str, Any], then: Callable[[], None] = lambda: None) -> None:
        self.pieces = pieces
        self.then = then
        self.asked: list[tuple[str, int | None, Asked]] = []

    def aside(self) -> Any:
        return nullcontext()

    @contextmanager
    def asking(self, question: str, last: int | None, cell: Asked) -> Iterator[Stream]:
        self.asked.append((question, last, cell))
        stream = Stream()
        for piece in self.pieces:
            stream.put(piece)
        self.then()
        stream.end({"status": "done"}, "")
        yield stream


@pytest.fixture
def shell() -> Iterator[Any]:
    shell: Any = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    yield shell
    shell.restore_sys_module_state()


def asks(shell: Any, asker: Asker) -> None:
    shell.register_magics(MemoryMagics(shell, lambda: pytest.fail("no command"), asker))


def test_in_a_terminal_the_answer_is_printed_and_nothing_returned(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asker = Asker({"text": "# One\n\nTwo `x < 1`"}, READ, {"text": "three"})
    asks(shell, asker)
    shell.user_ns["x"] = "never"
    assert shell.run_line_magic("ask", "--last 2 what is {x} and $x?") is None
    assert shell.run_cell_magic("ask", "--quiet", "why?\n") is None
    assert [each[:2] for each in asker.asked] == [("what is {x} and $x?", 2), ("why?", None)]
    printed = capsys.readouterr().out
    assert printed.count("Two x < 1") == 2
    assert printed.count("Read") == 1
    assert "\x1b" not in printed
    shell.input_transformers_cleanup.append(with_questions)
    for question in ("why {x}", "what's $x?", "is it x??", "a `b", "x!"):
        assert shell.run_cell(f"%ask {question}").success
        assert asker.asked[-1][0] == question
    assert shell.run_cell("%%ask what's {x}?\nand $x?").success
    assert asker.asked[-1][0] == "what's {x}?\nand $x?"


def test_a_wrong_call_asks_nobody(shell: Any) -> None:
    asker = Asker()
    asks(shell, asker)
    with pytest.raises(UsageError, match="The right form"):
        shell.run_line_magic("ask", "")
    assert not asker.asked


def test_an_interrupt_keeps_what_came_and_the_cell_counts_as_interrupted(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(Asker):
        @contextmanager
        def asking(self, question: str, last: int | None, cell: Asked) -> Iterator[Stream]:
            stream = Stream()
            take = stream.take
            stream.put({"text": "Half an"})

            def interrupted(seconds: float) -> Any:
                stream.take = take  # type: ignore[method-assign]
                stream.put({"text": " answer"})
                raise KeyboardInterrupt

            stream.take = interrupted  # type: ignore[method-assign]
            yield stream

    asks(shell, Interrupted())
    result = shell.run_cell("%ask why")
    assert isinstance(result.error_in_exec, Stopped)
    assert type(result.error_in_exec).__name__ == "KeyboardInterrupt"
    printed = capsys.readouterr().out
    assert printed.split() == ["Half", "an", "answer", STOPPED]


def test_whoever_stops_twice_tears_nothing_and_what_handled_the_signal_does_so_again(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    press = functools.partial(signal.raise_signal, signal.SIGINT)
    ends = []

    class Pressed(Asker):
        @contextmanager
        def asking(self, question: str, last: int | None, cell: Asked) -> Iterator[Stream]:
            stream = Stream()
            stream.put({"text": "Half an"})
            press()
            try:
                yield stream
            finally:
                press()
                stream.put({"text": " answer"})
                press()
                ends.append(question)

    handled = []
    before = signal.signal(signal.SIGINT, handler := lambda *signal: handled.append(signal))
    try:
        asks(shell, Pressed())
        assert isinstance(shell.run_cell("%ask why").error_in_exec, Stopped)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert ends == ["why"] and not handled
    assert capsys.readouterr().out.split() == ["Half", "an", "answer", STOPPED]


def test_an_end_that_hangs_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "PATIENCE_SECONDS", 0.05)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Stop():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.1)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it was not interrupted")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_that_is_ignored_stays_so_and_other_threads_get_none() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Stop() as stop:
            signal.raise_signal(signal.SIGINT)
            assert not stop.wanted
    finally:
        signal.signal(signal.SIGINT, before)

    def elsewhere() -> None:
        with Stop():
            found.append(signal.getsignal(signal.SIGINT))

    found: list[Any] = []
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [before]


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_growing_answer_is_whole_in_the_terminal_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = Tty()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    screen, answer = Terminal(), Growing()
    for piece in ["# He", "ad\n\nfirst", " paragraph\n\n```python\nx = 1\n\n", "y = 2\n```\n\nend"]:
        answer.add({"text": piece})
        screen.show(answer)
    before = out.getvalue()
    assert "Head" in before
    screen.close(answer)
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", out.getvalue())
    assert text.rstrip().endswith("end")
    assert "y = 2" in text
    # What is finished is printed once, and the cursor is given back.
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


@pytest.mark.spec("A1")
def test_a_terminal_shows_what_is_done_and_prints_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = Tty()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    screen, answer = Terminal(), Growing()
    pieces = [{"doing": "Reading [red]a.py"}, {"text": "one half"}, {"doing": "Looking on"}]
    for piece in [*pieces, {"text": " and the rest\n\nnew"}, {"doing": "Looking again"}]:
        answer.add(piece)
        screen.show(answer)
    assert "Reading [red]a.py…" in out.getvalue() and "Looking on…" in out.getvalue()
    answer.doing = ""
    before = len(out.getvalue())
    screen.close(answer)
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", out.getvalue())
    assert text.rstrip().endswith("new")
    assert "one half and the rest" in text and "Looking" not in out.getvalue()[before:]
    assert out.getvalue().count("one half and the rest") == 1
