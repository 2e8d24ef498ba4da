"""What outputs, tracebacks and prose say; which later cell cured an error, and by what change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import Session

from ipymemory.extractive import prose, results, tracebacks, wording
from ipymemory.extractive.telling import tell
from ipymemory.turns import CellError, Output, Turn


def metrics(text: str) -> list[str]:
    turn = Turn("1", "", "x", outputs=(Output("stream", text),))
    return [line for _, line in results.said_by(turn).metrics]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("accuracy: 0.93\n", ["accuracy: 0.93"]),
        ("RMSE = 4.2 cm\nworst = 9\n", ["RMSE = 4.2 cm", "worst = 9"]),
        ("loss: 0.9\nloss: 0.5\nloss: 0.3\n", ["loss: 0.3"]),
        ("epoch 3 loss: 0.31 - val_loss: 0.42\n", ["epoch 3 loss: 0.31 - val_loss: 0.42"]),
        ("test accuracy 0.88\n", ["test accuracy 0.88"]),
        ("p-value: 1.2e-05\n", ["p-value: 1.2e-05"]),
        ("epoch: 3\nseed: 7\n", []),
        ("100%|#####| 50/50 [00:03<00:00, loss=0.2, 15.2it/s]\n", []),
        ("Wall time: 3.2 s\n", []),
        ("it is 12:30 now\n", []),
        ("done\n", []),
    ],
)
def test_metrics_are_quoted_as_printed(text: str, expected: list[str]) -> None:
    assert metrics(text) == expected


def test_values_tables_figures_and_objects() -> None:
    turn = Turn(
        "1",
        "",
        "df",
        outputs=(
            Output("display", "<Figure size 640x480 with 1 Axes>", ("image/png",)),
            Output("result", "     a  b\n0    1  2\n..  .. ..\n\n[344 rows x 2 columns]"),
        ),
    )
    told = results.said_by(turn)
    assert told.figures == 1
    assert told.shape == "344 x 2"
    assert told.table[0] == "     a  b"
    number = Turn("1", "", "x", outputs=(Output("result", "np.float64(0.25)"),))
    assert results.said_by(number).value == "0.25"
    thing = Turn("1", "", "x", outputs=(Output("result", "<Thing object at 0x7f00>"),))
    assert results.said_by(thing).value == ""


def test_warnings_and_installed_versions() -> None:
    text = "/usr/lib/x.py:3: FutureWarning: use b instead\n  old(a)\n"
    turn = Turn(
        "1",
        "",
        "x",
        outputs=(
            Output("stream", text),
            Output("stream", "Successfully installed polars-1.2.0 scikit-learn-1.5.1\n"),
        ),
    )
    told = results.said_by(turn)
    assert told.warnings == ("FutureWarning: use b instead",)
    assert told.versions == (("polars", "1.2.0"), ("scikit-learn", "1.5.1"))


NESTED = """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
Cell In[2], line 2
      1 v = {}
----> 2 w = clean(v)
      3 print(w)

Cell In[1], line 3, in clean(df)
      1 def clean(df):
      2     a = 1
----> 3     return df["x"]

File site-packages/pandas/core/frame.py:4330, in DataFrame.__getitem__(self, key)
   4329     return 1
-> 4330 indexer = self.columns.get_loc(key)

KeyError: 'x'
"""
CHAINED = """\
ZeroDivisionError                         Traceback (most recent call last)
Cell In[10], line 2
      1 try:
----> 2     1/0

ZeroDivisionError: division by zero

The above exception was the direct cause of the following exception:

KeyError                                  Traceback (most recent call last)
Cell In[10], line 4
      3 except Exception as e:
----> 4     raise KeyError("k") from e

KeyError: 'k'
"""
SYNTAX = """\
  Cell In[3], line 1
    x = = 1
        ^
SyntaxError: invalid syntax
"""
OLD = """\
ZeroDivisionError                         Traceback (most recent call last)
<ipython-input-4-9e1622b385b6> in <module>
      1 a = 1
----> 2 a/0

ZeroDivisionError: division by zero
"""
OLDER_KERNEL = """\
NameError                                 Traceback (most recent call last)
Input In [5], in <cell line: 1>()
----> 1 foo

NameError: name 'foo' is not defined
"""


@pytest.mark.parametrize(
    ("error", "count", "at", "inside"),
    [
        (CellError("KeyError", "'x'", NESTED), 2, "w = clean(v)", 'return df["x"]'),
        (CellError("KeyError", "'k'", CHAINED), 10, 'raise KeyError("k") from e', ""),
        (CellError("SyntaxError", "invalid syntax (12.py, line 1)", SYNTAX), 3, "x = = 1", ""),
        (CellError("ZeroDivisionError", "division by zero", OLD), 4, "a/0", ""),
        (CellError("NameError", "name 'foo' is not defined", OLDER_KERNEL), 5, "foo", ""),
        (CellError("UsageError", "Line magic function `%no` not found."), 6, "%no", ""),
    ],
)
def test_the_users_own_line(error: CellError, count: int, at: str, inside: str) -> None:
    failure = tracebacks.read(error, "%no", count)
    assert (failure.at, failure.inside) == (at, inside)
    assert "line 1)" not in failure.value


def test_a_fault_inside_a_function_names_its_cell() -> None:
    failure = tracebacks.read(CellError("KeyError", "'x'", NESTED), "", 2)
    assert (failure.function, failure.count) == ("clean", 1)


@pytest.mark.parametrize("name", ["clean.<locals>.<dictcomp>", "<dictcomp>", "<genexpr>"])
def test_the_frame_of_a_comprehension_is_passed_over(name: str) -> None:
    """Its own name is all that IPython 8 and 9.9 give of it."""
    text = NESTED.replace(
        "File site-packages",
        f"Cell In[1], line 3, in {name}(.0)\n----> 3 def clean(df):\n\nFile site-packages",
    )
    failure = tracebacks.read(CellError("KeyError", "'x'", text), "", 2)
    assert (failure.function, failure.inside) == ("clean", 'return df["x"]')


def test_a_method_is_named_with_its_class() -> None:
    text = NESTED.replace("in clean(df)", "in Model.fit(self, df)")
    failure = tracebacks.read(CellError("KeyError", "'x'", text), "", 2)
    assert failure.function == "Model.fit"


@given(st.text(max_size=300))
def test_any_traceback_is_survived(text: str) -> None:
    tracebacks.read(CellError("E", text, text), text, 1)


# What cured an error


def cure(session: Session) -> list[tuple[str, str, str]]:
    """Return name, cell and words of the cure of each error, in order."""
    return [
        (each.failure.name, each.cured_in, each.cure) for each in tell(session.entries).troubles
    ]


def test_a_similar_cell_cures_and_the_changed_line_is_shown() -> None:
    session = Session()
    session.cell("df['bil'].mean()", error=("KeyError", "'bil'", "df['bil'].mean()"))
    session.cell("x = 1")
    session.cell("df['bill'].mean()", value="3")
    assert cure(session) == [("KeyError", "[3]", "`df['bill'].mean()`")]


def test_the_same_cell_cures_whatever_it_holds_now() -> None:
    session = Session()
    session.cell("a = 1\nb = a / 0", error=("ZeroDivisionError", "no", "b = a / 0"), cell_id="c")
    session.cell("a = 2\nb = a / 5", cell_id="c")
    assert cure(session) == [("ZeroDivisionError", "[2]", "`b = a / 5`")]


def test_the_name_that_was_missing() -> None:
    session = Session()
    session.cell("plot(tidy)", error=("NameError", "name 'tidy' is not defined", "plot(tidy)"))
    session.cell("tidy = raw.dropna()")
    assert cure(session) == [("NameError", "[2]", "`tidy = raw.dropna()`")]


def test_the_module_that_was_missing() -> None:
    session = Session()
    line = "import seaborn as sns"
    session.cell(line, error=("ModuleNotFoundError", "No module named 'seaborn'", line))
    session.cell("!pip install seaborn")
    session.cell(line)
    assert cure(session) == [("ModuleNotFoundError", "[3]", "after `!pip install seaborn` [2]")]


def test_a_function_that_was_mended_shows_the_line_in_it() -> None:
    session = Session()
    session.cell('def clean(df):\n    a = 1\n    return df["x"]')
    session.cell("v = {}\nw = clean(v)\nprint(w)", error=CellError("KeyError", "'x'", NESTED))
    session.cell('def clean(df):\n    a = 1\n    return df["y"]')
    session.cell("v = {}\nw = clean(v)\nprint(w)")
    assert cure(session) == [
        ("KeyError", "[4]", 'after `clean` was changed in [3]: `return df["y"]`')
    ]


def test_the_new_line_of_a_rewritten_block_is_shown() -> None:
    session = Session()
    line = 'return {r["day"]: int(r["n"]) for r in rows}'
    text = NESTED.replace('return df["x"]', line)
    session.cell(f"def clean(rows):\n    a = 1\n    {line}\nw = clean(v)")
    session.entries.clear()
    text = text.replace("Cell In[1]", "Cell In[2]")
    session.cell(
        f"def clean(rows):\n    a = 1\n    {line}\nw = clean(v)", error=CellError("E", "", text)
    )
    session.cell(
        'def clean(rows):\n    a = 1\n    return {\n        r["day"]: int(r["n"])\n'
        '        for r in rows\n        if r["n"] != "n/a"\n    }\nw = clean(v)'
    )
    assert cure(session) == [("E", "[3]", '`if r["n"] != "n/a"`')]


def test_tries_at_one_thing_are_one_error_and_an_unlike_cell_cures_nothing() -> None:
    session = Session()
    for _ in range(3):
        session.cell("int('a')", error=("ValueError", "invalid literal", "int('a')"))
    session.cell("import os\nprint(os.getcwd())")
    story = tell(session.entries)
    assert [(each.labels, each.cured_in) for each in story.troubles] == [
        (("[1]", "[2]", "[3]"), "")
    ]


def test_an_interrupt_is_no_error() -> None:
    session = Session()
    session.cell("while True: pass", error=("KeyboardInterrupt", "", "while True: pass"))
    assert not tell(session.entries).troubles


# Prose


@pytest.mark.parametrize(
    "sentence",
    [
        "We decided to drop 2009.",
        "Median rather than mean here.",
        "Wir haben uns für den Median entschieden.",
        "Hemos decidido usar la mediana.",
        "我们决定用中位数。",
    ],
)
def test_decisions(sentence: str) -> None:
    assert prose.is_decision(sentence)
    assert not prose.is_learning(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Turns out the rows were counted twice.",
        "Never impute the sex column.",
        "Note: the gauge drifts in winter.",
        "Das liegt daran, weil die Uhr falsch ging.",
        "Il s'avère que la moitié manque.",
        "Оказалось, что половина строк пуста.",
        "注意：第三列的单位是厘米，不是毫米，请不要混淆。",
    ],
)
def test_learnings(sentence: str) -> None:
    assert prose.is_learning(sentence)


def test_a_question_is_neither() -> None:
    assert not prose.is_learning("Should we never shuffle because of leaks?")
    assert not prose.is_decision("Could the median be used instead of the mean?")


def test_markdown_is_taken_apart() -> None:
    told = prose.told_by(
        "# Tides\n\nThe goal is a forecast.\nIt must be good.\n\n"
        "```\n# no heading\nnever quoted because it is code\n```\n"
        "- [ ] ask the master\n- [x] done\n\n| a | b |\n|---|---|\n\n## Next steps\n\n- get wind\n"
    )
    assert told.headings == ((1, "Tides"), (2, "Next steps"))
    assert told.opening == ("The goal is a forecast.", "It must be good.")
    assert told.unchecked == ("ask the master",)
    assert told.next == ("get wind",)
    assert not told.learned


def test_a_living_document_is_nobodys_words() -> None:
    told = prose.told_by("# MAGIC DOC: Overview\n\nWe decided to use X because of Y.")
    assert told == prose.Told()


# Wording


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a `b` c", "`a 'b' c`"),
        ("a\nb\t c", "`a b c`"),
        ("\x1b[31mred\x00", "`[31mred`"),
        ("", ""),
    ],
)
def test_code_spans(text: str, expected: str) -> None:
    assert wording.code(text) == expected


def test_prose_is_disarmed() -> None:
    text = wording.words(
        "See ![x](http://evil/i.png) and [this](http://evil) <img src=x> <b>`df`</b> a ` b [r][1]"
    )
    assert text == "See x and this `df` a ' b [r] [1]"
    assert wording.title("# ### ``` Title") == "Title"
    assert "<" not in wording.words("a <script>alert(1)</script> <unclosed")


def test_half_a_number_is_not_shown() -> None:
    assert wording.shorten("accuracy of the model: 0.93751", 28) == "accuracy of the model:…"


@given(st.text(max_size=200), st.integers(4, 60))
def test_spans_never_break_out(text: str, limit: int) -> None:
    span = wording.code(text, limit)
    assert span.count("`") in (0, 2)
    assert "\n" not in span and len(span) <= limit + 2
    assert wording.words(text, limit).count("`") % 2 == 0


def test_the_mark_of_a_cut_is_no_result() -> None:
    cut = "a  b\n1  2\n\n[… 12,345 characters left out …]\n\n8  9"
    turn = Turn("1", "", "x", outputs=(Output("stream", cut + "\n"), Output("result", cut)))
    told = results.said_by(turn)
    assert told.table == ("a  b", "1  2", "…", "8  9")
    assert told.printed == "8 9"
    assert "12,345" not in wording.block(told.table)
