"""What a private cell returned is not recorded by a later cell that shows it from the history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import Kernel, texts
from recording import Recording, text

from ipymemory.shown_again import ShownAgain

HIDDEN = "narwhal salary 4711"
RETURNS = f"# ipymemory: off\n{HIDDEN[:3]!r} + {HIDDEN[3:]!r}"
"""Not as it is shown: a quote of the cell is left out for what it is."""


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    made = Recording(tmp_path)
    made.recorder.install()
    yield made
    made.close()


SHOWING = (
    *("_", "print(_)", "_1", "print(_1)", "Out[1]", "Out", "_oh[1]", "_oh", "Out.get(1)"),
    *("list(Out.values())", "x = _\nx", "[each for each in Out]", "_.upper()", "f'{_1}'"),
    *("get_ipython().user_ns['_1']", "eval('_1')", "globals()['_1']", "%history -o"),
    *("%hist -n -o 1-3", "1 / len(_) and int(_)", "display(_1)", "In[1]", "_i1", "_ih[1]"),
    *("%recall", "%rep 1", "%macro m 1", "%save -f saved 1", "%rerun 1"),
)


@pytest.mark.spec("L7")
@pytest.mark.parametrize("source", SHOWING)
def test_a_cell_that_shows_what_a_private_one_returned_is_recorded_without_it(
    recording: Recording, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recording.folder.path.parent)
    recording.run(RETURNS)
    recording.run(source)
    recording.run("'public'")
    assert text(recording.outputs()) == [("result", "'public'")]
    assert recording.sources() == [source, "'public'"]
    assert "narwhal" not in recording.folder.transcript.read_text()


@pytest.mark.spec("L7")
@pytest.mark.parametrize(
    "source",
    [
        "'one'", "print('one')", "for _ in range(2): print('one')", "_, one = 1, 'one'\none",
        "_2 if False else 'one'", "class A: Out = 'one'\nA.Out", "(lambda _: _)('one')",
        "def f(_): return _\nf('one')", "In_all = 'one'\nIn_all", "history = 'one'\nhistory",
        "%history 2", "[_ for _ in ('one',)]",
    ],
)  # fmt: skip
def test_any_other_cell_is_recorded_whole(recording: Recording, source: str) -> None:
    recording.run(RETURNS)
    recording.run("_2 = 'one'")
    recording.run(source)
    assert "one" in str(recording.outputs()["outputs"])


@pytest.mark.spec("L7")
def test_the_last_result_is_told_from_one_before(recording: Recording) -> None:
    recording.run(RETURNS)
    recording.run("'second'")
    recording.run("_ + '!'")
    assert text(recording.outputs()) == [("result", "'second!'")]
    recording.run("___")
    assert text(recording.outputs()) == []
    recording.run("Out[2]")
    assert text(recording.outputs()) == [("result", "'second'")]
    assert "narwhal" not in recording.folder.transcript.read_text()


@pytest.mark.spec("L7")
def test_what_showed_it_is_not_shown_again_either(recording: Recording) -> None:
    recording.run(RETURNS)
    for source in ("_", "_", "_3", "Out[4][::-1]", "_[::-1]"):
        recording.run(source)
        assert text(recording.outputs()) == []
    data = recording.folder.transcript.read_text()
    assert "narwhal" not in data
    assert "narwhal"[::-1] not in data


@pytest.mark.spec("L7")
def test_a_name_bound_to_it_is_recorded_without_shape_and_columns(recording: Recording) -> None:
    recording.run("# ipymemory: off\n[1, 2, 3]")
    recording.run("kept = _")
    assert recording.outputs()["names"] == [{"name": "kept", "type": "list"}]
    assert text(recording.outputs()) == []


@pytest.mark.spec("L7")
def test_what_recall_puts_up_next_is_private_too(recording: Recording) -> None:
    recording.run(RETURNS)
    recording.run("%recall")
    put_up = recording.shell.rl_next_input
    assert put_up == HIDDEN
    recording.run(put_up)
    recording.run("1 + 1")
    assert recording.sources() == ["%recall", "1 + 1"]
    recording.run("%recall 2")
    recording.run(HIDDEN.upper())
    assert recording.sources()[-1] == HIDDEN.upper(), "only the cell that was put up"


@pytest.mark.spec("L7")
def test_what_a_private_cell_was_captured_into(recording: Recording) -> None:
    recording.run(f"%%capture kept\n# ipymemory: off\nprint({HIDDEN[:3]!r} + {HIDDEN[3:]!r})")
    recording.run("kept.show()")
    recording.run("print(kept.stdout)")
    recording.run("kept = 'one'\nkept")
    assert text(recording.outputs()) == [("result", "'one'")]
    assert "narwhal" not in recording.folder.transcript.read_text()


@pytest.mark.spec("L7")
def test_a_number_given_anew_after_reset_is_public(recording: Recording) -> None:
    recording.run(RETURNS)
    recording.shell.reset(new_session=True)
    recording.run("'new'")
    recording.run(f"Out[{recording.end()['execution_count']}]")
    assert text(recording.outputs()) == [("result", "'new'")]


@pytest.mark.spec("L7")
def test_hostile_histories_raise_nothing(recording: Recording) -> None:
    recording.run(RETURNS)
    recording.run("class D(dict):\n    def __iter__(self): raise SystemExit\n_oh = D()")
    assert recording.run("_").success
    recording.run("'after'")
    assert text(recording.outputs()) == [("result", "'after'")]


def test_nothing_is_looked_at_while_no_cell_was_private() -> None:
    assert not ShownAgain(None, list).shows("Out[1]; _")


@pytest.mark.kernel
@pytest.mark.spec("L7")
def test_in_a_kernel_neither_result_nor_source_comes_back(kernel: Kernel) -> None:
    kernel.run("%load_ext ipymemory")
    count = kernel.run(f"%%private\n{HIDDEN[:3]!r} + {HIDDEN[3:]!r}").reply["execution_count"]
    for source in (f"Out[{count}]", f"_{count}", "_", f"display(_{count})", "%history -o"):
        assert "narwhal" in kernel.run(source).text, "the person sees it"
    (put_up,) = kernel.run("%recall").reply["payload"]
    assert put_up["text"] == HIDDEN
    kernel.run(put_up["text"])
    kernel.run("'after'")
    assert "after" in texts(kernel.recorded("'after'"))
    for path in kernel.home.rglob("*.jsonl"):
        assert "narwhal" not in path.read_text("utf-8", "replace")


@pytest.mark.spec("L7")
def test_a_private_cell_that_ran_only_within_another_is_not_shown_later(
    recording: Recording,
) -> None:
    """What IPython made of a line of it is in ``In``, and no line of the cell as it was typed."""
    inner = "# ipymemory: off\n%time 'narwhal 4711'"
    recording.run(f"get_ipython().run_cell({inner!r}, store_history=True);")
    recording.run("len(In)")
    recording.run("print(In[-3], In[-2])")
    recording.outputs()
    shown = "".join(each for _, each in text(recording.outputs()))
    assert "narwhal" not in shown
