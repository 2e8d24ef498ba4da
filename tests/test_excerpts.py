"""What is kept of an output: what the screen showed, in bounded memory, and rows only if wanted."""

from __future__ import annotations

import io
import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ipymemory import excerpts
from ipymemory.excerpts import Excerpt, clip, plain, privacy_filter, progress
from ipymemory.redaction import mask
from ipymemory.screen import Screen
from ipymemory.tables import without_rows

# Codes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;5;241m=\x1b[39m", "="),
        ("a\x1b[2Kb\x1b[1Ac", "abc"),
        ("\x1b]0;a title\x07x", "x"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(B\x1b[mx\x1b=", "x"),
        ("\x9b1mx", "x"),
        ("a lone \x1b", "a lone "),
        ("no code [31m", "no code [31m"),
        ("keeps\r\b\n", "keeps\r\b\n"),
    ],
)
def test_plain_has_no_codes(text: str, expected: str) -> None:
    assert plain(text) == expected


# Progress

TQDM = "".join(f"\r{n * 25:3}%|{'█' * n:4}| {n}/4 [00:0{n}<00:00,  1.00it/s]" for n in range(5))
NESTED = (
    "outer:   0%|          | 0/2\n"
    "inner:   0%|          | 0/3\x1b[A\n"
    "inner: 100%|##########| 3/3\x1b[A\n"
    "\x1b[A\router: 100%|##########| 2/2\n"
    "\n"
)
RICH = (
    "\x1b[?25l\x1b[2KWorking \x1b[38;2;249;38;114m━━━\x1b[0m 10%\n\x1b[2KOther 5%"
    "\r\x1b[2K\x1b[1A\x1b[2KWorking ━━━━━━ 100%\n\x1b[2KOther 100%\n\x1b[?25h"
)
PIP = (
    "Collecting tqdm\n  Downloading tqdm-4.whl (78 kB)\n"
    "\x1b[?25l     \x1b[90m━━━━\x1b[0m \x1b[32m0.0/78.4 kB\x1b[0m \x1b[31m?\x1b[0m eta -:--:--"
    "\r\x1b[2K     \x1b[90m━━━━━━\x1b[0m \x1b[32m78.4/78.4 kB\x1b[0m \x1b[31m2.5 MB/s\x1b[0m\n"
    "\x1b[?25hInstalling collected packages: tqdm\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ntext\n", "plain\ntext\n"),
        ("10%\r20%\r100%\n", "100%\n"),
        ("a long line\rshort", "shortg line"),
        ("a long line\rshort      \n", "short\n"),
        ("abc\b\bX", "aXc"),
        ("|\b/\b-\b\\\b done", " done"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\rb\nc\rd", "b\nd"),
        ("one\ntwo\x1b[A\x1b[2K\rONE\n", "ONE\ntwo"),
        ("1\n2\n3\n\x1b[3Fx\x1b[Ey", "x\ny\n3\n"),
        ("abcdef\x1b[3D\x1b[K", "abc"),
        ("abcdef\r\x1b[2C\x1b[1K", "   def"),
        ("abc\x1b[5Gx", "abc x"),
        ("a\nb\nc\x1b[2A\x1b[J", "a"),
        ("a\nb\x1b[H\x1b[2Jnew", "new"),
        ("a\nb\n\x1b[2J\x1b[Hnew", "new"),
        ("a long line\r\x1b[31mshort      \x1b[0m\n", "short\n"),
        ("\x1b[2J\x1b[Hnew", "new"),
        ("ab\x1b[scd\x1b[uX", "abXd"),
        ("ab\x1b7cd\x1b8X", "abXd"),
        ("\x1b[31mred\x1b[0m\r\x1b[32mgreen\x1b[0m", "green"),
        (TQDM, "100%|████| 4/4 [00:04<00:00,  1.00it/s]"),
        (RICH, "Working ━━━━━━ 100%\nOther 100%\n"),
        (
            PIP,
            "Collecting tqdm\n  Downloading tqdm-4.whl (78 kB)\n"
            "     ━━━━━━ 78.4/78.4 kB 2.5 MB/s\nInstalling collected packages: tqdm\n",
        ),
        ("\x1b[999999999Cx", " " * 1000 + "x"),
        ("a\x1b[99A\x1b[99Db", "b"),
        ("cut \x1b[3", "cut "),
    ],
)
def test_progress_shows_the_last_state(text: str, expected: str) -> None:
    assert progress(text) == expected


def test_nested_bars_stand_below_each_other() -> None:
    lines = progress(NESTED).split("\n")
    assert lines[0].startswith("outer: 100%")
    assert [line for line in lines if line.startswith("inner")] == ["inner: 100%|##########| 3/3"]


class Terminal:
    """What a screen shows, character by character: slow, and written without looking at ours."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0

    def play(self, text: str) -> str:
        at = 0
        while at < len(text):
            code = re.compile(r"\x1b\[(\d*)([ABKm])").match(text, at)
            if code:
                self.code(code[2], int(code[1] or 0))
                at = code.end()
                continue
            self.character(text[at])
            at += 1
        return "\n".join("".join(row).rstrip() for row in self.rows)

    def character(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\b":
            self.column = max(0, self.column - 1)
        elif character == "\n":
            self.down(1)
            self.column = 0
        else:
            row = self.rows[self.row]
            row.extend(" " * (self.column + 1 - len(row)))
            row[self.column] = character
            self.column += 1

    def code(self, letter: str, number: int) -> None:
        if letter == "A":
            self.row = max(0, self.row - max(1, number))
        elif letter == "B":
            self.down(max(1, number))
        elif letter == "K" and number == 0:
            del self.rows[self.row][self.column :]
        elif letter == "K" and number == 1:
            row = self.rows[self.row]
            row[: self.column + 1] = " " * min(len(row), self.column + 1)
        elif letter == "K":
            self.rows[self.row].clear()

    def down(self, count: int) -> None:
        self.row += count
        while len(self.rows) <= self.row:
            self.rows.append([])


STROKES = st.lists(
    st.sampled_from(
        [
            *("a", "bc", "def ", "é", " ", "50%|##  |", "\n", "\r", "\b", "\r\n", "\x1b[31m"),
            *("\x1b[A", "\x1b[2A", "\x1b[B", "\x1b[K", "\x1b[1K", "\x1b[2K"),
        ]
    ),
    max_size=40,
)


def shown(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")


@given(STROKES)
@example(["abc", "\x1b[A", "\r", "x", "\n", "y"])
@settings(max_examples=500, derandomize=True, deadline=None)
def test_progress_is_what_a_terminal_shows(strokes: list[str]) -> None:
    text = "".join(strokes)
    assert shown(progress(text)) == shown(Terminal().play(text))


# Clipping


@given(st.text("ab \n", max_size=400), st.integers(-1, 300))
@settings(max_examples=300, derandomize=True, deadline=None)
def test_a_clip_is_head_and_tail_and_counts_the_rest(text: str, limit: int) -> None:
    kept, left_out = clip(text, limit)
    assert len(kept) <= max(0, limit) or not left_out
    if not left_out:
        assert kept == text
        return
    mark = f"\n[… {left_out:,} characters left out …]\n"
    if mark in kept:
        head, tail = kept.split(mark)
        assert text.startswith(head)
        assert text.endswith(tail)
        assert left_out == len(text) - len(head) - len(tail)
    else:
        assert text.startswith(kept)
        assert left_out == len(text) - len(kept)
    assert clip(kept, max(0, limit)) == (kept, 0)


def test_a_clip_cuts_at_the_end_of_a_line_or_a_word() -> None:
    text = "".join(f"line number {n}\n" for n in range(500))
    kept, left_out = clip(text, 1000)
    head, _, tail = re.split(r"\n\[… ([\d,]+) characters left out …\]\n", kept)
    assert head.split("\n")[-1] in text.split("\n")
    assert tail.split("\n")[0] in text.split("\n")
    assert left_out > 5000
    words, _ = clip("word " * 1000, 500)
    assert {*words.split(" … ")[0].replace("\n", " ").split()} >= {"word"}
    assert "wor\n" not in words


@pytest.mark.spec("L7")
def test_no_half_of_a_secret_survives_a_cut() -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for padding in range(0, 120):
        text = "x " * 50 + " " * padding + secret + " " * 30 + "y " * 200 + secret + " z" * 90
        masked = mask(clip(text, 400)[0])
        assert not [
            secret[i : i + 8] for i in range(len(secret) - 8) if secret[i : i + 8] in masked
        ]


# Streams


@given(STROKES, st.lists(st.integers(0, 120), max_size=8), st.integers(60, 200))
@settings(max_examples=400, derandomize=True, deadline=None)
def test_an_excerpt_does_not_depend_on_how_a_stream_is_cut(
    strokes: list[str], cuts: list[int], limit: int
) -> None:
    """Also through the middle of a code or of ``\\r\\n``, and when it is read in between."""
    text = "".join(strokes) * 3
    excerpt = Excerpt(limit)
    at = 0
    for cut in sorted(cut for cut in cuts if cut < len(text)):
        excerpt.add(text[at:cut])
        if cut % 3 == 0:
            excerpt.text()
        at = cut
    excerpt.add(text[at:])
    whole = progress(text)
    assert (excerpt.text(), excerpt.truncated) == clip(whole, limit)


@given(st.integers(1, 40), st.integers(0, 500))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_an_excerpt_of_many_lines_is_the_clip_of_all(size: int, count: int) -> None:
    excerpt = Excerpt(300)
    lines = [f"{n} {'x' * size}\n" for n in range(count)]
    for line in lines:
        excerpt.add(line)
    assert (excerpt.text(), excerpt.truncated) == clip("".join(lines), 300)


def test_a_million_states_of_a_bar_are_one_line() -> None:
    excerpt = Excerpt(4000)
    for n in range(1, 100_001):
        excerpt.add(f"\r{n}/100000 it")
    excerpt.add("\ndone\n")
    assert excerpt.text() == "100000/100000 it\ndone\n"
    assert excerpt.truncated == 0


@pytest.mark.parametrize("unit", ["x", "some words\n", "\rstate of a bar", "\n"])
def test_a_stream_is_never_held_whole(unit: str) -> None:
    piece = unit * (1_000_000 // len(unit))
    excerpt = Excerpt(4000)
    excerpt.add(piece)
    tracemalloc.start()
    for _ in range(10):
        excerpt.add(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    assert len(excerpt.text()) <= 4000


@pytest.mark.parametrize(
    "unit",
    [
        "\x1b[2K\x1b[1A",
        "\n\x1b[500B",
        "\x1b]",
        "\x1b]x",
        "\bx",
        "x\x1b[999C",
        "\x1b[A\n\n",
        "ab\x1b[s",
    ],
)
def test_no_code_makes_a_stream_be_held(unit: str) -> None:
    excerpt = Excerpt(1000)
    for _ in range(6):
        excerpt.add(unit * (40_000 // len(unit)))
    screen = excerpt._screen
    held = len(excerpt._head) + len(excerpt._tail) + len(screen._rest)
    held += sum(map(len, screen._lines)) + sum(map(len, excerpt._waiting))
    assert held < 60_000
    assert len(screen._lines) <= 256
    assert len(excerpt.text()) <= 1000


def test_small_pieces_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million calls must cost about a million appends, so few of them may do more."""
    played: list[int] = []
    real = Screen.feed

    def feed(self: Screen, text: str) -> None:
        played.append(len(text))
        real(self, text)

    monkeypatch.setattr(Screen, "feed", feed)
    excerpt = Excerpt(4000)
    for _ in range(100_000):
        excerpt.add("x\n")
    assert len(played) < 300
    assert max(played) <= excerpts._BATCH


def test_a_secret_in_two_pieces_of_a_stream_is_masked_once_they_are_one() -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    excerpt = Excerpt(4000)
    for piece in ("token: ", secret[:9], secret[9:20], secret[20:], "\n"):
        excerpt.add(piece)
    assert mask(excerpt.text()) == "token: [masked: github token]\n"


def test_a_small_limit_is_kept() -> None:
    for limit in (0, 1, 5, 40, 60):
        excerpt = Excerpt(limit)
        excerpt.add("some text that is longer than that\n" * 10)
        assert len(excerpt.text()) <= max(1, limit)
        assert excerpt.truncated > 0


# Tables

PEOPLE = pd.DataFrame(
    {
        "name": ["Bob Smith", "Anna", "Zoë"],
        "age": [25, 30, 41],
        "city": ["New York", "Paris", ""],
    }
)
VALUES = ("Bob", "Anna", "Zoë", "Paris", "New York", "25", "30", "41")


def info(frame: pd.DataFrame) -> str:
    buffer = io.StringIO()
    frame.info(buf=buffer)
    return buffer.getvalue()


TABLES = {
    "a frame": repr(PEOPLE),
    "a frame with an index": repr(PEOPLE.set_index("name")),
    "a frame with two indexes": repr(PEOPLE.set_index(["city", "name"])),
    "one column": repr(PEOPLE[["name"]]),
    "one row": repr(PEOPLE[:1]),
    "a long frame": repr(pd.concat([PEOPLE] * 40)),
    "a wide frame": repr(pd.concat([PEOPLE.add_prefix(f"{n}_") for n in range(8)], axis=1)),
    "a pivot": repr(PEOPLE.pivot_table(index="name", columns="city", values="age")),
    "without an index": PEOPLE.to_string(index=False),
    "a series": repr(PEOPLE["name"]),
    "a series with an index": repr(PEOPLE.set_index("name")["age"]),
    "counts": repr(PEOPLE["name"].value_counts()),
    "an array of rows": repr(PEOPLE.to_numpy()),
    "a printed array of rows": str(PEOPLE.to_numpy()),
    "distinct values": repr(PEOPLE["name"].unique()),
    "records": repr(PEOPLE.to_dict("records")),
    "json": PEOPLE.to_json(orient="records"),
    "tuples": repr(list(PEOPLE.itertuples(index=False, name=None))),
    "named tuples": repr(list(PEOPLE.itertuples())),
    "html": PEOPLE._repr_html_(),
    "long html": pd.concat([PEOPLE] * 40)._repr_html_(),
    "html that was cut off": PEOPLE._repr_html_()[:-120],
    "comma separated": PEOPLE[["name", "age"]].to_csv(index=False),
    "tab separated": PEOPLE[["name", "age"]].to_csv(index=False, sep="\t"),
    "in the middle": f"head:\n{PEOPLE!r}\n\nmean: 32.0\n",
    "polars": (
        "shape: (2, 2)\n┌───────────┬─────┐\n│ name      ┆ age │\n│ ---       ┆ --- │\n"
        "│ str       ┆ i64 │\n╞═══════════╪═════╡\n│ Bob Smith ┆ 25  │\n│ Anna      ┆ 30  │\n"
        "└───────────┴─────┘"
    ),
    "a polars series": 'shape: (2,)\nSeries: \'name\' [str]\n[\n\t"Bob"\n\t"Anna"\n]',
    "markdown": "| name | age |\n|---|---:|\n| Bob | 25 |\n| Anna | 30 |\n\nmean: 32.0\n",
    "spark": (
        "+----+---+\n|name|age|\n+----+---+\n| Bob| 25|\n|Anna| 30|\n+----+---+\n"
        "only showing top 2 rows\n"
    ),
    "psql": " name | age\n------+-----\n Bob  |  25\n Anna |  30\n(2 rows)\n",
    "tabulate": "name      age\n------  -----\nBob        25\nAnna       30",
    "rich": (
        "┏━━━━━━┳━━━━━┓\n┃ name ┃ age ┃\n┡━━━━━━╇━━━━━┩\n│ Bob  │ 25  │\n│ Anna │ 30  │\n"
        "└──────┴─────┘"
    ),
    "duckdb": (
        "┌─────────┬───────┐\n│  name   │  age  │\n│ varchar │ int32 │\n├─────────┼───────┤\n"
        "│ Bob     │    25 │\n│ Anna    │    30 │\n└─────────┴───────┘"
    ),
}


@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", TABLES)
def test_rows_are_left_out_and_headers_stay(name: str) -> None:
    text = TABLES[name]
    for kind in ("result", "display", "stream", "error"):
        kept = privacy_filter(kind, text, ("text/plain", "text/html"), "no-tables")  # type: ignore[arg-type]
        gone = re.sub(r"\d+(?= (?:rows|columns|values|row|value))|\d+ × \d+|font-[^;]*", "", kept)
        values = VALUES[:3] if name == "a pivot" else VALUES  # its columns are cities
        assert not [value for value in values if re.search(rf"\b{value}\b", gone)], kept
        assert "left out" in kept
    headers = {"a series", "counts", "json", "records", "tuples", "distinct values"}
    if "name" in text and not {name} & headers and "tuple" not in name and "array" not in name:
        assert "name" in kept
    if "mean" in text:
        assert "mean: 32.0" in kept
    assert privacy_filter("result", kept, "text/plain", "no-tables") == kept


@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", TABLES)
def test_of_a_shape_nothing_but_the_shape_is_kept(name: str) -> None:
    kept = privacy_filter("result", TABLES[name], "text/plain", "shapes")
    assert re.fullmatch(
        r"(\[(?:table: [\d,]+ rows? x [\d,]+ columns?|(?:array|series|values): [\d,]+ \w+)\]\n?)+",
        kept,
    ), kept
    assert not [value for value in VALUES if value in re.sub(r"\d+", "", kept)]


@pytest.mark.parametrize(
    ("frame", "shape"),
    [
        (PEOPLE, "table: 3 rows x 3 columns"),
        (PEOPLE.set_index("name"), "table: 3 rows x 2 columns"),
        (pd.concat([PEOPLE] * 40), "table: 120 rows x 3 columns"),
        (PEOPLE["age"], "series: 3 values"),
        (np.eye(4), "array: 4 rows"),
    ],
)
def test_the_shape_is_right(frame: object, shape: str) -> None:
    assert without_rows(repr(frame))[1] == (shape,)


@pytest.mark.parametrize(
    "text",
    [
        "Epoch 1: loss 0.5\nEpoch 2: loss 0.4\naccuracy: 0.91\n",
        "[0.1, 0.2, 0.3]",
        "array([0.1, 0.2, 0.3])",
        "['a', 'b', 'c']",
        "{'a': 1, 'b': 2}",
        "shape (120, 3)",
        "def f(x):\n    return [g(y) for y in x]\n",
        "[(i, j) for i in a for j in b]",
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f(x)\n',
        "one, two\nthree, four\nfive, six\n",
        "a   b\n",
        "",
        "\n\n",
        info(PEOPLE),
        repr(PEOPLE.dtypes),
        repr(PEOPLE[:0]),
        "KeyError: 'age'",
    ],
)
def test_what_is_no_table_stays(text: str) -> None:
    assert privacy_filter("stream", text, "text/plain", "no-tables") == text


@pytest.mark.spec("L7")
def test_the_levels_of_privacy() -> None:
    def kept(kind: str, text: str, level: str) -> str:
        return privacy_filter(kind, text, "text/plain", level)  # type: ignore[arg-type]

    assert kept("stream", "Bob is 25\n", "all") == "Bob is 25\n"
    assert kept("stream", "Bob is 25\n", "no-tables") == "Bob is 25\n"
    assert kept("stream", "Bob is 25\n", "shapes") == "[text: 1 line, 10 characters]"
    assert kept("result", "'Bob'", "shapes") == "[text/plain: 1 line, 5 characters]"
    assert kept("stream", "Bob is 25\n", "none") == ""
    assert kept("result", "'Bob'", "none") == ""
    assert kept("stream", "Bob is 25\n", "a slip") == ""
    trace = "Traceback …\n  f('Bob')\nmodule.SomeError: no row for 'Bob'"
    assert kept("error", trace, "all") == trace
    assert kept("error", trace, "shapes") == kept("error", trace, "none") == "SomeError"
    assert kept("error", "no row for 'Bob'", "none") == ""
    table = f"ValueError: bad rows\n{PEOPLE!r}"
    assert "Bob" not in kept("error", table, "no-tables")
    assert "ValueError: bad rows" in kept("error", table, "no-tables")


@given(st.text("ab1 |-+│─\n,[](){}'\"<td>", max_size=200))
@settings(max_examples=300, derandomize=True, deadline=None)
def test_leaving_rows_out_never_fails(text: str) -> None:
    for level in ("no-tables", "shapes", "none"):
        privacy_filter("stream", text, "text/plain", level)
        privacy_filter("error", text, (), level)
