"""``%memory resume``: where the last kernel stopped, and its variables in a new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, eventually
from recorded import Recorded

from ipymemory.commands import table
from ipymemory.commands.pages import Page
from ipymemory.commands.place import Place
from ipymemory.config import Settings
from ipymemory.errors import CommandError
from ipymemory.extractive.dataflow import flow_of
from ipymemory.extractive.replay import Replay, replay
from ipymemory.identity import Identity
from ipymemory.turns import BoundName, Status, Turn


def turns(*cells: str | tuple[str, str] | tuple[str, str, Status]) -> list[Turn]:
    """Return cells of one kernel: a source, or with ``name: type`` of what it bound and status."""
    found = []
    for count, each in enumerate(cells, 1):
        given = (each,) if isinstance(each, str) else each
        source, bound, status = (*given, *("", "", "ok")[len(given) :])
        names = tuple(BoundName(*part.split(": ")) for part in bound.split(", ") if part)
        found.append(
            Turn(str(count), "", source, execution_count=count, status=status, names=names)  # type: ignore[arg-type]
        )
    return found


def again(found: Replay) -> list[int]:
    return [int(each.id) for each in found.again]


WORK = turns(
    "import pandas as pd\nimport numpy as np",
    ("df = pd.DataFrame({'a': [1, 2, 3]})", "df: DataFrame"),
    "df.head()",
    "print(df)",
    ("df['b'] = df.a * RATE", "", "error"),
    "RATE = 3",
    "def scaled(x):\n    return x * RATE",
    "df['b'] = scaled(df.a)",
    "df.plot(); pd.set_option('display.width', 200)",
    ("total = df.b.sum()", "total: int64"),
    "xs = []\nfor i in range(3):\n    xs.append(i)",
    "xs.sort()",
    "tmp = total + 1",
    "del tmp",
)


@pytest.mark.parametrize(
    ("names", "cells", "back"),
    [
        ([], [1, 2, 6, 7, 8, 9, 10, 11, 12], "pd np df RATE scaled total i xs"),
        (["total"], [1, 2, 6, 7, 8, 9, 10], "total"),
        (["xs"], [11, 12], "xs"),
        (["RATE"], [6], "RATE"),
    ],
    ids=["all", "a number", "a list", "a constant"],
)
def test_the_cells_that_names_rest_on_in_their_order(
    names: list[str], cells: list[int], back: str
) -> None:
    found = replay(WORK, names)
    assert again(found) == cells
    assert sorted(found.names) == sorted(back.split())
    assert not found.lost


def test_run_again_they_give_what_stood_there() -> None:
    was: dict[str, Any] = {"__file__": __file__}
    cells = turns(
        "a = [1]", "b = a", "a = [5]\nb.append(2)", "c = {'k': a}", "c['k'].append(7)", "print(c)",
        "a += [9]", "for n in a:\n    d = n", "with open(__file__) as f:\n    e = 1",
        "(g, *h), j = (1, 2, 3), 4", "if (w := len(a)) > 1:\n    z = w", "def k():\n    return z",
        "z = k() + 1", "m = b", "m.append(8)", "class A:\n    at = z", "A.at = 5", "q = A.at + e",
    )  # fmt: skip
    for each in cells:
        exec(each.source, was)
    got: dict[str, Any] = {"__file__": __file__}
    for each in replay(cells).again:
        exec(each.source, got)
    for name in set(was) - {"__builtins__", "__file__", "f", "k", "A"}:
        assert got[name] == was[name], name
    assert got["A"].at == 5 and got["k"]() == was["k"]()
    # And each alone.
    for name in ("b", "c", "q", "z", "h", "d", "m"):
        alone: dict[str, Any] = {"__file__": __file__}
        found = replay(cells, [name])
        for each in found.again:
            exec(each.source, alone)
        assert alone[name] == was[name], name
        assert len(found.again) < len(cells) - 1


@pytest.mark.spec("L2")
@pytest.mark.parametrize(
    "source",
    [
        "try:\n    x = 1\nexcept ValueError as e:\n    print(e)",
        "try:\n    x = 1\nexcept* ValueError as e:\n    print(e.exceptions)",
        "def x():\n    try:\n        return 1\n    except ValueError as e:\n        print(e)",
        "def x():\n    import os.path as e\n    return e",
        "def x():\n    from os import path as e\n    return e",
        "def x():\n    def e():\n        return 1\n    return e()",
        "def x(it):\n    match it:\n        case [*e]:\n            return e",
        "def x(it):\n    match it:\n        case {**e}:\n            return e",
    ],
)
def test_a_name_that_lives_in_one_clause_or_body_is_asked_of_no_cell(source: str) -> None:
    assert replay(turns(source)).lost == ()
    assert "e" not in flow_of(source, {}, ()).reads


@pytest.mark.spec("L2")
def test_what_stands_before_and_behind_a_clause_is_still_read() -> None:
    flow = flow_of("try:\n    f(e)\nexcept Odd as e:\n    show(e)\nprint(d)", {}, ())
    assert flow.reads >= {"f", "e", "Odd", "show", "d"}
    method = "class A:\n    def e(self):\n        return e()\nx = A()"
    assert "e" in flow_of(method, {}, ()).reads


def test_what_only_a_failed_cell_bound_is_named() -> None:
    cells = turns(("model = fit(x)", "model: Model", "error"), "score = model.score(held)")
    found = replay(cells)
    assert again(found) == [2]
    assert found.lost == (("held", ""), ("model", "[1]"))


def test_what_is_here_already_is_not_made_again() -> None:
    assert again(replay(WORK, ["total"], ["df"])) == [10]
    assert again(replay(WORK, ["df"], ["df"])) == []


def test_nothing_before_a_reset_counts() -> None:
    assert replay(turns("a = 1", "%reset -f", "b = 2")).names == ("b",)


@pytest.mark.parametrize(
    ("source", "types", "changes"),
    [
        ("df.drop(columns='a', inplace=True)", {"df": "DataFrame"}, {"df"}),
        ("df.drop(columns='a')", {"df": "DataFrame"}, set()),
        ("df.loc[0, 'a'] = 1", {}, {"df"}),
        ("model.fit(x)", {"model": "Ridge"}, {"model"}),
        ("model.predict(x)", {"model": "Ridge"}, set()),
        ("fill(df, 3)", {}, {"df"}),
        ("len(df)", {}, set()),
        ("random.shuffle(xs)", {}, {"xs"}),
        ("x.y.z = 1", {}, {"x"}),
        ("del d['k']", {}, {"d"}),
        ("total += 1", {}, {"total"}),
        ("next(it)", {}, {"it"}),
    ],
)
def test_what_changes_a_thing_in_place(
    source: str, types: dict[str, str], changes: set[str]
) -> None:
    assert flow_of(source, types, ["random"]).changes == changes


@pytest.mark.parametrize(
    ("source", "sets"),
    [
        ("%matplotlib inline", True),
        ("%load_ext ipymemory", False),
        ("np.random.seed(0)", True),
        ("plt.rcParams['figure.dpi'] = 150", True),
        ("plt.plot(x)", False),
        ("!pip install polars", False),
    ],
)
def test_what_sets_something_for_all_that_follows(source: str, sets: bool) -> None:
    assert flow_of(source, {}, ["np", "plt"]).sets == sets


@pytest.mark.parametrize("source", ["x = = 1", "\0", "(" * 3000, "f'{" * 500, "x = 1\n  y = 2"])
def test_what_is_no_python_breaks_nothing(source: str) -> None:
    assert not flow_of(source, {}, []).binds
    assert replay(turns(source, "a = 1")).names == ("a",)


def test_top_level_await_and_questions_are_told() -> None:
    found = replay(
        turns("page = await fetch()", "name = input('who? ')", "async for n in page:\n    m = n")
    )
    assert (found.waits, found.asks) == ({"1", "3"}, {"2"})


# On the command line.


@pytest.fixture
def work(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path / "home", tmp_path / "work")


def call(work: Recorded, text: str) -> Page:
    place = Place(
        Settings.read({})[0], work.project.home, work.project, lambda _: None, "ipymemory "
    )
    return table.call(place, text.split())


def test_in_a_shell_it_shows_the_cells(work: Recorded) -> None:
    for source in ("x = 1", "print('no')", "y = x + 1"):
        work.end(work.begin(source))
    page = call(work, "resume")
    assert "2 cells of 3, in this order, bring back `x`, `y`." in page.markdown
    assert "# [1]\nx = 1\n\n# [3]\ny = x + 1" in page.markdown and "print" not in page.markdown
    assert [each["label"] for each in page.data["cells"]] == ["[1]", "[3]"]
    assert call(work, "resume x").data["names"] == ["x"]
    assert call(work, "resume nope").exit == 1
    with pytest.raises(CommandError, match="needs a notebook"):
        call(work, "resume --run")
    with pytest.raises(CommandError, match="is no name"):
        call(work, "resume os.system")


def test_a_session_of_no_notebook_file_is_called_that_and_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A headless kernel is not told which notebook it runs.
    monkeypatch.setattr("recorded.Identity", lambda _, *rest: Identity(None, *rest))
    work = Recorded(tmp_path / "home", tmp_path / "work")
    work.end(work.begin("x = 1"))
    said = call(work, "resume").markdown
    assert said.startswith("**a session without a notebook file**, last worked on")


def test_without_a_session_there_is_nothing_to_go_back_to(tmp_path: Path) -> None:
    work = Recorded(tmp_path / "home", tmp_path / "work")
    assert "nothing to go back to" in call(work, "resume").markdown


def test_a_cell_that_is_not_on_record_whole_is_run_by_hand(work: Recorded) -> None:
    for source in ("x = 1", "key = '[masked: password]'", "y = use(key, x)"):
        work.end(work.begin(source))
    page = call(work, "resume y")
    assert "[2] is yours to run in the notebook itself" in page.markdown
    assert [each["label"] for each in page.data["cells"]] == ["[1]"]


# In a kernel.


def recorded(kernel: Kernel, source: str) -> None:
    kernel.run(source)
    kernel.recorded(source)


@pytest.mark.kernel
@pytest.mark.spec("L12")
def test_one_word_brings_the_variables_back(kernel: Kernel) -> None:
    recorded(kernel, "import math")
    recorded(kernel, "base = [1, 2]")
    recorded(kernel, "base.append(3)")
    recorded(kernel, "area = math.pi * sum(base)")
    recorded(kernel, "print('shown', area)")
    kernel.run("area += undefined")
    eventually(lambda: "undefined" in kernel.notes(), "the notes", 30)
    kernel.restart()
    assert "No variable of its last kernel is left" in kernel.run("%load_ext ipymemory").text
    ran = kernel.run("%memory resume")
    assert "Open" in ran.markdown and "undefined" in ran.markdown
    assert "4 cells of 6" in ran.markdown and "`area`" in ran.markdown
    (payload,) = ran.reply["payload"]
    assert payload["source"] == "set_next_input"
    assert payload["text"].startswith("# [2]\nimport math") and "print" not in payload["text"]
    assert kernel.run("area").reply["status"] == "error"
    ran = kernel.run("%memory resume --run")
    assert "4 cells ran again." in str(ran.messages)
    assert kernel.run("print(round(area, 3), base)").text.strip() == "18.85 [1, 2, 3]"
    # It is on record which ran, so that the next kernel has them as well.
    kernel.run("more = area + 1")
    kernel.restart()
    kernel.run("%load_ext ipymemory")
    kernel.run("%memory resume more --run")
    assert kernel.run("print(round(more, 3))").text.strip() == "19.85"


@pytest.mark.kernel
def test_it_stops_where_a_cell_fails_this_time(kernel: Kernel, tmp_path: Path) -> None:
    recorded(kernel, "here = open('there.txt', 'w').write('1')")
    recorded(kernel, "text = open('there.txt').read()")
    recorded(kernel, "n = int(text)")
    kernel.restart()
    (kernel.work / "there.txt").unlink()
    kernel.run("%load_ext ipymemory")
    ran = kernel.run("%memory resume n --run")
    assert "Stopped at [3], which failed this time, so the 1 cell after it did not run" in str(
        ran.messages
    )
    assert "FileNotFoundError" in str(ran.messages)
    kernel.run("text = '1'")
    assert "1 cell ran again." in str(kernel.run("%memory resume n --run").messages)
    assert kernel.run("print(n + 1)").text.strip() == "2"
