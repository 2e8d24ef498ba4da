"""What a cell's source says: by syntax tree, with IPython's own syntax, and when it is broken."""

from __future__ import annotations

import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipymemory.extractive import cells, paths
from ipymemory.extractive.material import Constant, Facts, FileUse
from ipymemory.extractive.sources import facts_of


def files(facts: Facts, known: dict[str, str] | None = None) -> list[tuple[str, str, str]]:
    """Return verb, path and call of each file, constants of the same cell settled."""
    names = dict(known or {})
    found = []
    for each in facts.files:
        if isinstance(each, Constant):
            if each.value is None or not paths.literal(each.value, names):
                names.pop(each.name, None)
            else:
                names[each.name] = paths.resolve(each.value, names)
        elif isinstance(each, FileUse) and paths.literal(each.path, names):
            path = paths.resolve(each.path, names)
            if each.sure or paths.looks_like_path(path):
                found.append((each.verb, path, each.by))
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('pd.read_csv("a.csv")', ("reads", "a.csv", "pd.read_csv")),
        ('D = Path("data"); pd.read_csv(D / "x.csv")', ("reads", "data/x.csv", "pd.read_csv")),
        ('D = Path("a") / "b"; open(D.joinpath("c"))', ("reads", "a/b/c", "open")),
        ('D = "out"; df.to_csv(f"{D}/y.csv")', ("writes", "out/y.csv", "df.to_csv")),
        ('N = 3; fig.savefig(f"fig{N}.png")', ("writes", "fig3.png", "fig.savefig")),
        ('open(os.path.join("a", "b.txt"), "w")', ("writes", "a/b.txt", "open")),
        ('open("log.txt", mode="a")', ("writes", "log.txt", "open")),
        ('(OUT / "w.json").open("w")', ("writes", "{OUT}/w.json", "open")),
        ('(OUT / "w.json").write_text(x)', ("writes", "{OUT}/w.json", "write_text")),
        ('P = Path("p.md"); P.read_text()', ("reads", "p.md", "P.read_text")),
        ('joblib.dump(model, "m.joblib")', ("writes", "m.joblib", "joblib.dump")),
        ('M = "m.joblib"; joblib.dump(model, M)', ("writes", "m.joblib", "joblib.dump")),
        ('np.save("x.npy", array)', ("writes", "x.npy", "np.save")),
        ('Image.open("cat.png")', ("reads", "cat.png", "Image.open")),
        ('D = Path("d"); D.glob("*.csv")', ("reads", "d/*.csv", "D.glob")),
        ('"a" + "/" + "b.csv"; load("a.csv")', ("reads", "a.csv", "load")),
        ('pd.read_csv(filepath_or_buffer="k.csv")', ("reads", "k.csv", "pd.read_csv")),
        ('plot_map("norway.geojson")', ("names", "norway.geojson", "plot_map")),
        ("%%writefile tool.py\nx = 1", ("writes", "tool.py", "%%writefile")),
        ("%run prepare.py --fast", ("reads", "prepare.py", "%run")),
        ('for y in years:\n    pd.read_csv(f"in/{y}.csv")', ("reads", "in/{y}.csv", "pd.read_csv")),
        ('def f(p):\n    return pd.read_csv("d/" + p)', ("reads", "d/{p}", "pd.read_csv")),
        ('pd.read_csv(str(Path("s") / "t.csv"))', ("reads", "s/t.csv", "pd.read_csv")),
    ],
)
def test_files_with_their_constants(source: str, expected: tuple[str, str, str]) -> None:
    assert expected in files(facts_of(source))


@pytest.mark.parametrize(
    "source",
    [
        'df.to_dict("records")',
        'pd.to_datetime("2026-01-02", format="%d/%m/%Y")',
        "open(path)",
        "json.dump(data, f)",
        "pd.read_csv(buffer)",
        'print("a.csv")',
        'plt.title("a/b.csv")',
        'def f(path):\n    return open(path)\npath = "no.csv"',
    ],
)
def test_what_names_no_file(source: str) -> None:
    assert not files(facts_of(source))


def test_a_constant_that_was_bound_to_something_else_is_forgotten() -> None:
    facts = facts_of('D = "a"\nD = compute()\nopen(D + "/x.csv")')
    assert files(facts) == [("reads", "{D}/x.csv", "open")]


def test_definitions_with_signature_doc_and_methods() -> None:
    facts = facts_of(
        "def load(path: str, *, sep=';',\n"
        "         # how many\n"
        "         n: int = 3) -> 'DataFrame':\n"
        '    """Load it.\n\n    And more.\n    """\n'
        "@cache\n"
        "async def wait(x): return 1\n"
        "class Model(Base):\n"
        "    'A model.'\n"
        "    def __init__(self, lr=0.1): pass\n"
        "    def fit(self, X, y): pass\n"
        "    def _hidden(self): pass\n"
    )
    load, wait, model = facts.definitions
    assert load.signature == "def load(path: str, *, sep=';', n: int = 3) -> 'DataFrame'"
    assert load.doc == "Load it."
    assert wait.signature == "async def wait(x)"
    assert (model.signature, model.doc) == ("Model(Base)", "A model.")
    assert model.methods == ("__init__(self, lr=0.1)", "fit(self, X, y)")


def test_what_was_built_from_what() -> None:
    facts = facts_of(
        "tidy = clean(raw).merge(other, on='k')\n"
        "tidy['ratio'] = tidy.a / total\n"
        "model.fit(X, y)\n"
        "a, b = split(tidy)\n"
        "xs = [f(x) for x in rows]\n"
    )
    told = [(each.name, each.names, each.how, each.column) for each in facts.built]
    assert told == [
        ("tidy", ("raw", "other"), "=", ""),
        ("tidy", ("tidy", "total"), "column", "ratio"),
        ("model", ("X", "y"), "fit", ""),
        ("a", ("tidy",), "=", ""),
        ("b", ("tidy",), "=", ""),
        ("xs", ("rows",), "=", ""),
    ]


def test_commands_in_order_and_the_rest_still_parses() -> None:
    facts = facts_of(
        "%matplotlib inline\n"
        "import os\n"
        "names = !ls *.csv\n"
        "!echo don't \\\n"
        "%stop\n"
        "if names:\n"
        "    %timeit f(x)\n"
        "    y = %timeit -o f(x)\n"
        "df.head?\n"
        "text = '''\n% none\n!none\n'''\n"
        "x = (3\n  % 2)\n"
    )
    assert facts.parsed
    assert facts.commands == (
        "%matplotlib inline",
        "!ls *.csv",
        "!echo don't %stop",
        "%timeit f(x)",
        "%timeit -o f(x)",
        "df.head?",
    )
    assert [each.module for each in facts.imports] == ["os"]
    assert {"names", "text", "x"} <= facts.binds


def test_cell_magics() -> None:
    timed = facts_of("%%time\nmodel = fit(X)")
    assert (timed.commands, timed.built[0].name) == (("%%time",), "model")
    shell = facts_of("%%bash\n# no\nls -l\ncd data")
    assert shell.commands == ("%%bash", "! ls -l", "! cd data")
    assert facts_of("%%sql\nselect 1").commands == ("%%sql",)
    assert facts_of("pip install polars").commands == ("%pip install polars",)


def test_comments_marks_and_a_headline() -> None:
    facts = facts_of(
        "# Fit again\n# on resampled days.\n"
        "x = 1  # TODO(ann): scale it\n"
        "y = '# no comment'\n"
        "# FIXME\n"
    )
    assert facts.comments == ("Fit again on resampled days.", "TODO(ann): scale it", "FIXME")
    assert facts.marks == ("scale it",)
    assert facts.headline == "Fit again on resampled days."


@pytest.mark.parametrize(
    ("source", "marks", "comments"),
    [
        (
            "# TODO: compare with the values of 2019, once the\n# harbour office has sent them\n"
            "# read the gauge\nx = 1",
            ("compare with the values of 2019, once the harbour office has sent them",),
            ("read the gauge",),
        ),
        ("# TODO: weigh by year\n# load the data\nx = 1", ("weigh by year",), ("load the data",)),
        ("# TODO: weigh by year\n# Load the data\nx = 1", ("weigh by year",), ("Load the data",)),
        ("# TODO weigh it.\n# and load\nx = 1", ("weigh it.",), ("and load",)),
        ("# TODO: weigh\n#       by year\n# Load it\nx = 1", ("weigh by year",), ("Load it",)),
        (
            "# TODO: ask whether the gauge at the quay was moved\n# or only cleaned\nx = 1",
            ("ask whether the gauge at the quay was moved or only cleaned",),
            (),
        ),
        (
            "    # FIXME: the filter drops the first hour of every single day in\n"
            "    # Reykjavik\n    # Plot it\n    x = 1",
            ("the filter drops the first hour of every single day in Reykjavik",),
            ("Plot it",),
        ),
    ],
)
def test_a_mark_ends_where_its_sentence_does(
    source: str, marks: tuple[str, ...], comments: tuple[str, ...]
) -> None:
    facts = facts_of(source)
    assert facts.marks == marks
    assert tuple(each for each in facts.comments if marks[0] not in each) == comments


def test_a_cell_that_does_not_parse_still_gives_what_can_be_read() -> None:
    facts = facts_of(
        "import os\nx = = 1\ndf = pd.read_csv('a.csv')\n"
        "for w in words\n    print(w)\ndef f(a): pass\n"
    )
    assert not facts.parsed
    assert facts.imports[0].module == "os"
    assert files(facts) == [("reads", "a.csv", "pd.read_csv")]
    assert facts.definitions[0].name == "f"


HOSTILE = {
    "brackets": "(" * 100_000,
    "minus": "-" * 100_000 + "1",
    "plus": "1+" * 100_000 + "1",
    "calls": "f(" * 90 + ")" * 90,
    "attributes": "a" + ".b" * 50_000,
    "subscripts": "a" + "[0]" * 30_000,
    "lambdas": "lambda:" * 50_000 + "1",
    "open string": "'''" + "a" * 1_000_000,
    "one line": "x = '" + "a" * 1_000_000 + "'",
    "long name": "a" * 1_000_000,
    "null": "a\x00b = 1",
    "surrogate": "x = '\ud800'",
    "spaces": "a" + " " * 1_000_000 + "= 1",
    "deep blocks": "".join(" " * i + "if x:\n" for i in range(150)) + " " * 151 + "pass",
    "digits": "x = " + "9" * 10_000,
    "continuations": "\\\n" * 100_000,
    "quotes": '"' * 99_999,
    "escapes": "'\\" * 50_000,
    "line feeds": "\n" * 200_000 + "%x",
    "commands": "!a\n" * 30_000,
    "broken defs": "def f(:\n" * 20_000,
    "f-strings": "f'{" * 1000,
    "returns": "\r" * 100_000,
    "comments": "#" * 100_000 + "\n" + "# a\n" * 20_000,
    "assignments": "x=" * 50_000 + "1",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_sources_are_survived(name: str) -> None:
    began = time.process_time()
    facts = facts_of(HOSTILE[name])
    assert isinstance(facts, Facts)
    # No benchmark: a bound that only a source read in quadratic time would pass.
    assert time.process_time() - began < 20


def test_no_warning_about_a_source_gets_out() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        facts = facts_of("import re\nre.compile('\\d')\nx is 1\nassert (1, 'a')\n")
    assert facts.parsed


@given(st.text(max_size=200))
def test_any_text_is_survived(source: str) -> None:
    facts = facts_of(source)
    assert all(line == " ".join(line.split()) for line in facts.lines)


@given(st.text(alphabet="ab'\"\\\n#()[]{}%!?= \t", max_size=80))
def test_taking_apart_keeps_every_line_in_its_place(source: str) -> None:
    python = cells.take_apart(source).python
    if not source.lstrip().startswith("%%"):
        assert python.count("\n") == source.count("\n")
