"""The whole notes: ten sections, each line from a cell, nothing made up, within their limits."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import Session, frame

from ipymemory import markdown
from ipymemory.errors import EngineError
from ipymemory.extractive import ExtractiveModel, NotesMaterial, telling, write_notes
from ipymemory.extractive.wording import clean
from ipymemory.models import Request
from ipymemory.prompts import NOTES_TEMPLATE
from ipymemory.tools import elision, notes_guard, replaced
from ipymemory.turns import BoundName, CellError, Entry, Message, Prose, ToolResult, Turn, tokens

TEN = [
    "Session Title",
    "Current State",
    "Task specification",
    "Files and Functions",
    "Workflow",
    "Errors & Corrections",
    "Codebase and System Documentation",
    "Learnings",
    "Key results",
    "Worklog",
]


def notes(session: Session, notebook: str = "bills.ipynb", **limits: int) -> str:
    return write_notes(session.entries, notebook, NOTES_TEMPLATE, **limits)


def lines(text: str, section: str) -> list[str]:
    found = markdown.section(text, section)
    assert found is not None
    return [line for line in found.body.splitlines() if line.strip()]


def penguins() -> Session:
    """A session with a bit of everything."""
    s = Session()
    s.prose(
        "# Bill lengths\n\nWhich species has the longest bill? We need the answer by Friday.\n\n"
        "- [ ] ask Ann about 2009"
    )
    s.cell('import pandas as pd\nfrom pathlib import Path\nDATA = Path("data")')
    s.happening("packages", packages={"pandas": "2.2.0"})
    s.cell(
        'raw = pd.read_csv(DATA / "penguins.csv")\nraw.shape',
        value="(344, 3)",
        names=[frame("raw", "344 x 3", "species", "bill_mm", "sex")],
    )
    s.cell('raw["bill"].mean()', error=("KeyError", "'bill'", 'raw["bill"].mean()'))
    s.cell('raw["bill_mm"].mean()', value="43.92")
    s.prose("We decided to drop rows without a sex, because only eleven lack it.")
    s.cell(
        "def clean(df: pd.DataFrame, by='sex'):\n    'Drop rows without it.'\n"
        "    return df.dropna(subset=[by])\n\ntidy = clean(raw)",
        names=[frame("tidy", "333 x 3", "species", "bill_mm", "sex")],
    )
    s.cell("!pip install polars", out="Successfully installed polars-1.2.0\n")
    s.cell(
        "# TODO: weigh by year\nprint('longest: Gentoo')\nprint('mean: 47.5')", out="mean: 47.5\n"
    )
    s.cell("tidy.plot.scatter(x='a', y='b', title='Bills')", image=True)
    s.cell('tidy.to_csv(DATA / "tidy.csv")')
    s.cell("model.fit(tidy)", error=("NameError", "name 'model' is not defined", "model.fit(tidy)"))
    return s


@pytest.mark.spec("S1")
def test_ten_sections_in_order_each_with_its_italic_line() -> None:
    text = notes(penguins())
    assert [each.name for each in markdown.sections(text)] == TEN
    assert markdown.skeleton(text) == markdown.skeleton(NOTES_TEMPLATE)


def test_each_section_line_by_line() -> None:
    text = notes(penguins())
    assert lines(text, "Session Title") == ["Bill lengths (bills.ipynb)"]
    assert lines(text, "Current State") == [
        "- Open: [10] `NameError: name 'model' is not defined` at `model.fit(tidy)`",
        "- Last before that, [9]: writes `data/tidy.csv`",
        "- In memory: `raw` (DataFrame 344 x 3) [2], `tidy` (DataFrame 333 x 3) [5]",
        '- To do, [7]: "weigh by year"',
        '- To do: "ask Ann about 2009" (text above [1])',
    ]
    assert lines(text, "Task specification") == [
        '- "Which species has the longest bill?" (text above [1])',
        '- "We need the answer by Friday." (text above [1])',
    ]
    assert lines(text, "Files and Functions") == [
        "- `data/penguins.csv` read by `pd.read_csv` [2]",
        "- `data/tidy.csv` written by `tidy.to_csv` [9]",
        "- `def clean(df: pd.DataFrame, by='sex')` [5]: \"Drop rows without it.\"",
    ]
    assert lines(text, "Workflow") == [
        "- `!pip install polars` [6] → `Successfully installed polars-1.2.0`"
    ]
    assert lines(text, "Errors & Corrections") == [
        '- [3] `KeyError: \'bill\'` at `raw["bill"].mean()`; cured in [4]: `raw["bill_mm"].mean()`',
        "- [10] `NameError: name 'model' is not defined` at `model.fit(tidy)`; open",
    ]
    assert lines(text, "Codebase") == [
        "- [1] imports `pandas` 2.2.0 as `pd`",
        "- [6] installed `polars` 1.2.0",
        '- `raw` [2] DataFrame 344 x 3 from `DATA`: `pd.read_csv(DATA / "penguins.csv")`; '
        "columns `species`, `bill_mm`, `sex`",
        "- `tidy` [5] DataFrame 333 x 3 from `raw`: `clean(raw)`; "
        "columns `species`, `bill_mm`, `sex`",
    ]
    assert lines(text, "Learnings") == [
        '- Decided: "We decided to drop rows without a sex, because only eleven lack it." '
        "(text above [5])"
    ]
    assert lines(text, "Key results") == [
        "- `raw.shape` [2] → `(344, 3)`",
        '- `raw["bill_mm"].mean()` [4] → `43.92`',
        "- `mean: 47.5` [7]",
        "- [8] figure \"Bills\" by `tidy.plot.scatter(x='a', y='b', title='Bills')`",
    ]
    assert lines(text, "Worklog")[:3] == [
        "- [1] imports `pandas`, `pathlib` (2026-11-25 09:00 UTC)",
        "- [2] `raw` (DataFrame 344 x 3) from `DATA`; reads `data/penguins.csv`; "
        "`raw.shape` → `(344, 3)`",
        "- [3] `KeyError: 'bill'` at `raw[\"bill\"].mean()`",
    ]


@pytest.mark.spec("S13")
def test_every_update_refreshes_the_current_state() -> None:
    session = penguins()
    before = lines(notes(session), "Current State")
    session.cell("model = fit(tidy)", names=[BoundName("model", "Model")])
    after = lines(notes(session), "Current State")
    assert after != before
    assert not any("Open" in line for line in after)
    assert "- Last, [11]: `model` from `tidy`" in after


@pytest.mark.spec("S13")
def test_notes_say_nothing_about_taking_notes() -> None:
    text = notes(penguins()).casefold()
    for word in ("summary", "notes", "transcript", "extractive", "template"):
        assert word not in text.replace(NOTES_TEMPLATE.casefold(), "")


def test_paths_are_made_of_constants_as_they_stood_when_the_cell_ran() -> None:
    session = Session()
    session.cell('DATA = "old"')
    session.cell('pd.read_csv(DATA + "/a.csv")')
    session.cell('DATA = "new"')
    session.cell('pd.read_csv(DATA + "/b.csv")')
    session.cell("DATA = ask()")
    session.cell('pd.read_csv(DATA + "/c.csv")')
    assert [line.split()[1] for line in lines(notes(session), "Files")] == [
        "`old/a.csv`",
        "`new/b.csv`",
        "`{DATA}/c.csv`",
    ]


def test_what_failed_has_read_and_defined_nothing() -> None:
    session = Session()
    line = 'df = pd.read_csv("a.csv")'
    session.cell(f"import nosuch\n{line}\ndef f(): pass", error=("E", "no", "import nosuch"))
    assert lines(notes(session), "Files") == []
    assert lines(notes(session), "Codebase") == []


def test_a_mark_that_the_cell_no_longer_holds_is_done() -> None:
    session = Session()
    session.cell("# TODO: scale\nx = 1", cell_id="a")
    assert any("scale" in line for line in lines(notes(session), "Current State"))
    session.cell("x = 2", cell_id="a")
    assert not any("scale" in line for line in lines(notes(session), "Current State"))


def test_a_running_cell_and_one_that_the_kernel_died_in() -> None:
    session = Session()
    session.cell("x = 1")
    turn = session.cell("train(x)")
    session.entries[-1] = replace(turn, status="running", execution_count=None)
    assert "- Running, [*]: `train(x)`" in lines(notes(session), "Current State")
    session.entries[-1] = replace(turn, status="unknown", execution_count=None)
    told = lines(notes(session), "Errors")
    assert told == ["- [*] the kernel ended while this ran: `train(x)`; open"]


def test_a_restart_says_what_is_gone() -> None:
    session = Session()
    session.cell("raw = load()", names=[frame("raw", "3 x 2", "a", "b")])
    session.cell("tidy = clean(raw)", names=[frame("tidy", "2 x 2", "a", "b")])
    session.restart(minutes=600)
    session.cell("raw = load()", names=[frame("raw", "3 x 2", "a", "b")])
    text = notes(session)
    state = lines(text, "Current State")
    assert "- The kernel was restarted after [2]; not made again since: `tidy` [2]" in state
    assert "- In memory: `raw` (DataFrame 3 x 2) k2[1]" in state
    assert lines(text, "Worklog")[-1].endswith("(2026-11-25 19:01 UTC, after a restart)")


def test_an_experiment_shows_what_was_changed_and_what_came_of_it() -> None:
    session = Session()
    for rate, accuracy in ((0.1, 0.81), (0.3, 0.84), (1.0, 0.79)):
        session.cell(
            f"RATE = {rate}\nmodel = fit(RATE)\nprint(score(model))",
            out=f"accuracy: {accuracy}\n",
            cell_id="c",
        )
    text = notes(session)
    assert lines(text, "Key results") == [
        "- `accuracy: 0.79` [3] with `RATE = 1.0`; before `accuracy: 0.81` [1] with `RATE = 0.1`, "
        "`accuracy: 0.84` [2] with `RATE = 0.3`"
    ]
    assert len(lines(text, "Worklog")) == 1
    assert "[2] with `RATE = 0.3`: `accuracy: 0.84`" in lines(text, "Worklog")[0]


def test_run_all_takes_few_lines_and_a_second_one_takes_one() -> None:
    session = Session()
    cells = [f"step_{n} = make({n})" for n in range(12)]
    for source in cells:
        session.cell(source, pause=0.01)
    session.seconds += 100
    for source in cells:
        session.cell(source, pause=0.01)
    log = lines(notes(session), "Worklog")
    assert len(log) < 8
    assert log[-1].startswith("- [13]–[24] again unchanged")


def test_columns_that_were_set_and_models_that_were_fitted() -> None:
    session = Session()
    session.cell("df = load()", names=[frame("df", "9 x 2", "a", "b")])
    session.cell("df['ratio'] = df.a / df.b")
    session.cell("model = Forest()", names=[BoundName("model", "Forest")])
    session.cell("model.fit(df[['a']], df.ratio)")
    told = lines(notes(session), "Codebase")
    assert told[0].endswith("; set `ratio` [2]")
    assert told[1].endswith("`model.fit(df[['a']], df.ratio)` [4]")


def test_prose_that_was_edited_counts_as_it_stands_now() -> None:
    session = Session()
    session.prose("We decided to use the mean.", cell_id="m")
    session.prose("We decided to use the median.", cell_id="m")
    session.cell("x = 1")
    assert lines(notes(session), "Learnings") == [
        '- "We decided to use the median." (text above [1])'.replace('- "', '- Decided: "')
    ]


def test_without_a_title_the_notes_name_what_is_worked_on() -> None:
    session = Session()
    session.cell('df = pd.read_csv("sales.csv")', names=[frame("df", "3 x 1", "a")])
    assert lines(notes(session, ""), "Session Title") == ["`sales.csv`, `df`"]
    assert lines(notes(session, "C:\\work\\q3.ipynb"), "Session Title") == [
        "q3.ipynb: `sales.csv`, `df`"
    ]


def test_an_empty_session_leaves_the_template() -> None:
    assert write_notes([], "", NOTES_TEMPLATE) == NOTES_TEMPLATE


# Templates


@pytest.mark.spec("S9")
def test_a_template_of_the_users_own_is_filled_where_its_sections_are_known() -> None:
    template = (
        "Mine.\n\n# WORKLOG\n_What I did._\n\n# Mood\n_How it went._\nfine\n\n"
        "# errors and corrections\n_Slips._\n"
    )
    text = write_notes(penguins().entries, "", template)
    assert markdown.skeleton(text) == markdown.skeleton(template)
    assert text.startswith("Mine.\n\n# WORKLOG\n_What I did._\n\n- [1] imports")
    assert "# Mood\n_How it went._\nfine\n\n" in text
    assert len(lines(text, "errors and corrections")) == 2


# Limits


def long_session(count: int) -> Session:
    session = Session()
    for n in range(count):
        session.cell(
            f"frame_{n} = load('file_{n}.csv')\nprint('metric_{n}: {n}')",
            out=f"metric_{n}: {n}\n",
            names=[frame(f"frame_{n}", f"{n} x 2", "a", "b")],
        )
        if n % 9 == 0:
            session.cell(f"frame_{n}[{n}]", error=("KeyError", f"{n}", f"frame_{n}[{n}]"))
            session.prose(f"Turns out number {n} was wrong, because of the units in column {n}.")
    return session


@pytest.mark.spec("S2")
@pytest.mark.parametrize(
    ("section", "total"), [(2000, 12_000), (300, 12_000), (2000, 3000), (100, 500), (150, 900)]
)
def test_notes_keep_within_their_limits(section: int, total: int) -> None:
    text = notes(long_session(300), section_tokens=section, total_tokens=total)
    assert tokens(text) <= total
    assert all(tokens(each.body) <= section for each in markdown.sections(text))
    assert markdown.skeleton(text) == markdown.skeleton(NOTES_TEMPLATE)


@pytest.mark.spec("S2")
def test_the_oldest_of_the_worklog_is_condensed_first() -> None:
    session = long_session(300)
    log = lines(notes(session), "Worklog")
    last = session.count
    assert log[-1].startswith(f"- [{last}] ")
    assert "–" in log[0]
    ranges = [re.match(r"- \[(\d+)\]–\[(\d+)\]", line) for line in log]
    covered = [(int(m[1]), int(m[2])) for m in ranges if m]
    assert covered[0][0] == 1
    assert all(one[1] + 1 == other[0] for one, other in pairwise(covered))


@pytest.mark.spec("S2")
def test_what_was_condensed_stays_as_it_is_with_one_more_turn() -> None:
    session = long_session(300)
    before = lines(notes(session), "Worklog")
    session.cell("one_more = 1")
    after = lines(notes(session), "Worklog")
    assert len(set(after) - set(before)) <= 3


def test_current_state_survives_the_smallest_limits() -> None:
    text = notes(long_session(50), section_tokens=100, total_tokens=700)
    assert lines(text, "Current State")


# Determinism


def test_the_same_entries_give_the_same_bytes_whatever_the_hash_seed() -> None:
    code = (
        "import sys; from test_extractive import penguins, long_session, notes; "
        "sys.stdout.write(notes(penguins()) + notes(long_session(120)))"
    )
    texts = set()
    for seed in ("1", "2", "3"):
        tests = str(Path(__file__).parent)
        path = os.pathsep.join([tests, str(Path(tests).parent), *sys.path])
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(run.stdout)
    assert len(texts) == 1
    assert texts == {notes(penguins()) + notes(long_session(120))}


def fresh(entries: list[Entry]) -> str:
    """Return the notes as a process that has seen nothing yet writes them."""
    telling._known.clear()
    telling._settled = ([], telling.Story())
    return write_notes(entries, "n.ipynb", NOTES_TEMPLATE)


def test_going_on_gives_the_same_as_starting_over() -> None:
    session = long_session(40)
    session.entries[20:20] = penguins().entries
    for end in range(1, len(session.entries), 7):
        gone_on = write_notes(session.entries[:end], "n.ipynb", NOTES_TEMPLATE)
        settled, known = telling._settled, dict(telling._known)
        assert gone_on == fresh(session.entries[:end])
        telling._settled = settled
        telling._known.update(known)


def test_a_turn_that_changes_late_changes_the_notes() -> None:
    session = long_session(30)
    write_notes(session.entries, "", NOTES_TEMPLATE)
    old = session.entries[3]
    assert isinstance(old, Turn)
    session.entries[3] = replace(old, error=CellError("LateError", "x"), status="error")
    assert "LateError" in write_notes(session.entries, "", NOTES_TEMPLATE)


# Nothing made up

NAMES = st.sampled_from(["alpha", "beta_2", "gamma", "delta", "Omega", "x1", "taux_é", "数据"])
NUMBERS = st.one_of(st.integers(0, 99_999).map(str), st.floats(0, 99).map(lambda x: f"{x:.3f}"))
WORDS = st.lists(
    st.sampled_from(
        [
            *("we", "decided", "because", "never", "turns out", "note:", "goal", "must", "17"),
            *("#", "`", "```", "<b>", "![i](u)", "[a](b)", "**", "_", "- [ ]", "TODO:", "next:"),
            *("pd.DataFrame", "?", ".", "\n"),
        ]
    ),
    max_size=14,
).map(" ".join)


@st.composite
def sources(draw: st.DrawFn) -> str:
    a, b, c = draw(NAMES), draw(NAMES), draw(NAMES)
    n, m = draw(NUMBERS), draw(NUMBERS)
    return draw(
        st.sampled_from(
            [
                f"import {a} as {b}",
                f"from {a}.{b} import {c}",
                f"DATA = 'dir-{n}'\n{a} = {b}.read_csv(DATA + '/{c}.csv')",
                f"from pathlib import Path\nP = Path('{a}')\n(P / '{b}.txt').write_text('{n}')",
                f"{a} = {b}.drop({c}, {n})\n{a}",
                f"{a}['{b}'] = {c} * {n}",
                f"{a}.fit({b}, {c})",
                f"def {a}({b}, {c}={n}):\n    '''{b} {m}'''\n    return {m}",
                f"class {a}:\n    def fit(self, {b}): pass",
                f"# TODO: {a} {n}\n%time {b}",
                f"!{a} --{b} {n}",
                f"# {a} is better than {b} because of {n}\n{c}.plot(title='{a} {m}')",
                f"with open('{a}-{n}.json', 'w') as f:\n    f.write('{m}')",
                f"{a} = = {n}",
                draw(WORDS),
            ]
        )
    )


@st.composite
def outputs(draw: st.DrawFn) -> str:
    a, n = draw(NAMES), draw(NUMBERS)
    return draw(
        st.sampled_from(
            [
                "",
                f"{a}: {n}\n",
                f"{a} = {n}\nloss {n}\n",
                f"   {a}  b\n0  {n}  2\n1  3  4\n\n[{draw(st.integers(1, 999))} rows x 2 columns]",
                f"UserWarning: {a} {n}\n",
                f"Successfully installed {a}-{n}\n",
                draw(WORDS),
                draw(st.text(max_size=40)),
            ]
        )
    )


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    session = Session(draw(st.sampled_from(["typed", "file"])))
    for _ in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(["cell"] * 6 + ["error", "prose", "restart", "packages"]))
        if kind == "prose":
            session.prose(draw(WORDS), draw(st.sampled_from([None, "m1", "m2"])))
        elif kind == "restart":
            session.restart(draw(st.integers(0, 100)))
        elif kind == "packages":
            session.happening("packages", packages={draw(NAMES): draw(NUMBERS)})
        else:
            source = draw(sources())
            line = source.partition("\n")[0]
            a, b = draw(NAMES), draw(NAMES)
            session.cell(
                source,
                out=draw(outputs()),
                value=draw(outputs()),
                image=draw(st.booleans()),
                error=(f"{a}Error", f"name '{b}' is not defined", line)
                if kind == "error"
                else None,
                names=[frame(a, f"{draw(NUMBERS)} x 2", b)] if draw(st.booleans()) else [],
                cell_id=draw(st.sampled_from([None, "c1", "c2"])),
                pause=draw(st.sampled_from([0.01, 30.0, 4000.0])),
            )
    return session


def corpus(session: Session, notebook: str) -> str:
    """Return all that the entries hold, as text."""
    parts = [notebook]
    for entry in session.entries:
        if isinstance(entry, Turn):
            parts += [entry.id, entry.time.replace("T", " "), entry.source, str(entry.kernel)]
            parts += [str(entry.execution_count), *(each.text for each in entry.outputs)]
            if entry.error:
                parts += [entry.error.name, entry.error.value, entry.error.traceback]
            for bound in entry.names:
                parts += [bound.name, bound.type, bound.shape, *bound.columns]
        elif isinstance(entry, Prose):
            parts.append(entry.source)
        else:
            parts.append(str(dict(entry.details)))
    return clean("\n".join(parts)).replace("`", "'")


TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d]\w*")


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_every_identifier_path_and_number_occurs_in_the_transcript(session: Session) -> None:
    text = notes(session, "tab-7.ipynb")
    said = corpus(session, "tab-7.ipynb")
    own = set(NOTES_TEMPLATE.splitlines())
    for line in text.splitlines():
        if line in own or not line.strip():
            continue
        parts = line.split("`")
        assert len(parts) % 2, f"an open code span: {line}"
        for at, part in enumerate(parts):
            for token in TOKEN.findall(part):
                if at % 2 or token[0].isdigit():
                    assert token in said, f"{token!r} of {line!r}"


@settings(max_examples=40, deadline=None)
@given(sessions())
def test_no_text_of_a_cell_becomes_structure(session: Session) -> None:
    text = notes(session)
    assert markdown.skeleton(text) == markdown.skeleton(NOTES_TEMPLATE)
    own = set(NOTES_TEMPLATE.splitlines())
    for each in markdown.sections(text):
        for line in each.body.splitlines():
            assert line in own or line[:2] in ("", "- ", "  ") or each.name == "Session Title"
            assert not line.lstrip(" ").startswith("#") or line.startswith("      ")
            assert not re.search(r"<[A-Za-z/!]|!\[|\]\(", re.sub(r"`[^`]*`|^ {6}.*", "", line))
    assert not elision("", text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)


HEADER = "# Current State\n_" + "x" * 20 + "_\n"


@pytest.mark.parametrize(
    "text",
    [
        HEADER * 3,
        "```\n# Worklog\n```\n",
        "... rest of the notes unchanged",
        "[other sections omitted]",
        "…\n…",
        "\u202e\u200bevil\x1b[2J",
        "# a" * 500,
        "![x](http://e.example/x.png) <script>alert(1)</script>",
        "- [ ] `unclosed",
        "a\r\n# b\r# c\x0b# d\u2028# e\x85# f",
    ],
)
@pytest.mark.spec("S8")
def test_hostile_text_everywhere_changes_no_header(text: str) -> None:
    session = Session()
    session.prose("We decided that, because of\n\n" + text)
    session.prose(text)
    session.cell(text, out=text + ": 3\n", value=text + "\n1  2\n3  4")
    session.cell("show()", value=text + "\n1  2\n" + text)
    session.cell(f"# {text}", error=(text, text, text))
    session.cell("x", names=[BoundName(text, text, text, (text,))])
    session.cell(
        f"def f(a={text!r}):\n    {text!r}\n\nopen({text!r})\nplt.title({text!r})", image=True
    )
    session.happening("packages", packages={text: text})
    got = notes(session, text)
    assert markdown.skeleton(got) == markdown.skeleton(NOTES_TEMPLATE)
    assert not elision("", got)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e\u200b]", got)


# The engine


def complete(material: NotesMaterial, *messages: Message) -> list[tuple[str, str]]:
    model = ExtractiveModel()
    request = Request("", (Message("user", "go"), *messages), (), material)
    reply = asyncio.run(model.complete(request))
    assert all(call.name == "Edit" for call in reply.calls)
    assert all(call.input["path"] == material.path for call in reply.calls)
    return [(str(c.input["old_string"]), str(c.input["new_string"])) for c in reply.calls]


def material(session: Session, current: str = NOTES_TEMPLATE, base: str = "") -> NotesMaterial:
    return NotesMaterial(
        tuple(session.entries), "n.ipynb", current, base, "/s/notes.md", 2000, 12_000
    )


def applied(current: str, edits: list[tuple[str, str]]) -> str:
    guard = notes_guard(2000, 12_000)
    for old, new in edits:
        after = replaced(current, old, new)
        assert guard(current, after) == ""
        current = after
    return current


@pytest.mark.spec("S8")
def test_the_engine_proposes_edits_that_the_guard_lets_through() -> None:
    session = penguins()
    model = ExtractiveModel()
    first = material(session)
    text = applied(NOTES_TEMPLATE, complete(first))
    assert text == model.written(first) == write_notes(session.entries, "n.ipynb", NOTES_TEMPLATE)
    assert complete(material(session, text, text)) == []
    session.cell("y = 2")
    more = material(session, text, text)
    edits = complete(more)
    assert {old.partition("\n")[0] for old, _ in edits} >= {"# Current State", "# Worklog"}
    assert applied(text, edits) == write_notes(session.entries, "n.ipynb", NOTES_TEMPLATE)


def test_the_engine_stops_once_it_has_proposed() -> None:
    first = material(penguins())
    reply = asyncio.run(ExtractiveModel().complete(Request("", (), (), first)))
    answers = tuple(ToolResult(call.id, "refused", True) for call in reply.calls)
    messages = (Message("assistant", calls=reply.calls), Message("user", results=answers))
    assert complete(first, *messages) == []


def test_the_engine_wants_material() -> None:
    with pytest.raises(EngineError, match="turns"):
        asyncio.run(ExtractiveModel().complete(Request("", ())))


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_edits_fit_a_file_however_it_ends(end: str) -> None:
    current = NOTES_TEMPLATE.rstrip("\n") + end
    text = applied(current, complete(material(penguins(), current)))
    assert lines(text, "Worklog")
    assert markdown.skeleton(text) == markdown.skeleton(NOTES_TEMPLATE)


def test_a_persons_own_header_that_ends_like_ours_does_not_confuse_the_edit() -> None:
    current = NOTES_TEMPLATE.replace("# Session Title\n", "## Worklog\n\n# Session Title\n", 1)
    current = "#" + NOTES_TEMPLATE[NOTES_TEMPLATE.index("# Worklog") :] + "\n" + NOTES_TEMPLATE
    text = applied(current, complete(material(penguins(), current)))
    assert lines(text, "Worklog")[0].startswith("- [1]")


def test_a_file_without_sections_gets_no_edits() -> None:
    assert complete(material(penguins(), "my own words\n")) == []


def test_a_figure_of_several_axes_is_told_once() -> None:
    s = Session()
    axes = (
        "fig, axes = plt.subplots(1, 3)\nfor ax in axes: ax.plot(levels)\n"
        "axes[0].set_title('north')\naxes[1].set_title('south')\naxes[2].set_title('west')"
    )
    s.cell(axes, image=True)
    told = [each for each in lines(notes(s), "Key results") if "figure" in each]
    assert told == ['- [1] figure "north", "south", "west" by `ax.plot(levels)`']
    s.cell(axes, image=True)
    told = [each for each in lines(notes(s), "Key results") if "figure" in each]
    assert told == ['- [2] figure "north", "south", "west" by `ax.plot(levels)`']
    assert (
        sum('figure "north", "south", "west"' in each for each in lines(notes(s), "Worklog")) == 1
    )


def test_figures_of_one_cell_are_told_each_by_its_title() -> None:
    s = Session()
    turn = s.cell(
        "plt.hist(a)\nplt.title('a')\nplt.show()\nplt.hist(b)\nplt.title('b')", image=True
    )
    s.entries[-1] = replace(turn, outputs=turn.outputs * 2)
    told = [each for each in lines(notes(s), "Key results") if "figure" in each]
    assert told == ['- [1] figure "a"', '- [1] figure "b"']


def test_older_open_errors_are_named_too() -> None:
    session = Session()
    for name in ("one", "two", "three", "four", "five"):
        session.cell(
            f"open('{name}.csv')", error=("FileNotFoundError", name, f"open('{name}.csv')")
        )
    state = markdown.section(notes(session), "Current State")
    assert state is not None
    assert "- Open too: [2], [1]" in state.body
