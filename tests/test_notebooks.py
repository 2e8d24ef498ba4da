"""Notebook files as turns and prose; what is none gets one clear sentence."""

from __future__ import annotations

import ast
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipymemory import markdown, notebooks
from ipymemory.errors import NotebookError
from ipymemory.extractive import results, write_notes
from ipymemory.prompts import NOTES_TEMPLATE
from ipymemory.turns import Prose, Turn

LESSON = Path(__file__).parent.parent / "notebooks" / "tides.ipynb"


def code(source: Any, count: int | None = None, *outputs: Any, **more: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": source,
        "execution_count": count,
        "outputs": list(outputs),
        "metadata": {},
        **more,
    }


def prose(source: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def write(tmp_path: Path, cells: Any, **more: Any) -> Path:
    path = tmp_path / "n.ipynb"
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells, **more}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def turns(path: Path) -> list[Turn]:
    return [each for each in notebooks.read(path).entries if isinstance(each, Turn)]


def notes(path: Path) -> str:
    return write_notes(notebooks.read(path).entries, path.name, NOTES_TEMPLATE)


def lines(path: Path, section: str) -> list[str]:
    found = markdown.section(notes(path), section)
    assert found is not None
    return [line for line in found.body.splitlines() if line.strip()]


def test_cells_with_their_outputs(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        [
            prose(["# Tides\n", "\n", "At the quay."]),
            {"cell_type": "raw", "source": "raw"},
            code(
                ["x = 1\n", "x"],
                3,
                {"output_type": "stream", "name": "stdout", "text": ["a\r", "b\n"]},
                {
                    "output_type": "execute_result",
                    "execution_count": 3,
                    "data": {"text/plain": "1", "text/html": "<b>1</b>"},
                },
                {"output_type": "display_data", "data": {"image/png": "AAAA"}},
                id="abc",
            ),
            code("", 4),
            code("never()"),
        ],
        metadata={"kernelspec": {"language": "python"}},
    )
    file = notebooks.read(path)
    assert (file.title, file.language) == ("Tides", "python")
    first, ran, never = file.entries
    assert isinstance(first, Prose) and isinstance(ran, Turn) and isinstance(never, Turn)
    assert (first.source, first.position, first.origin) == ("# Tides\n\nAt the quay.", 1, "file")
    assert (ran.source, ran.label, ran.cell_id, ran.status) == ("x = 1\nx", "[3]", "abc", "ok")
    assert [(each.kind, each.text, each.mime) for each in ran.outputs] == [
        ("stream", "b\n", ()),
        ("result", "1", ("text/plain", "text/html")),
        ("display", "", ("image/png",)),
    ]
    assert (never.status, never.origin, never.complete) == ("unknown", "file", True)


def test_a_stored_error_and_timing(tmp_path: Path) -> None:
    error = {
        "output_type": "error",
        "ename": "KeyError",
        "evalue": "'x'",
        "traceback": ["\x1b[31mKeyError\x1b[39m", "Cell In[2], line 1\n----> 1 d['x']"],
    }
    times = {
        "iopub.execute_input": "2026-11-02T10:00:00.000Z",
        "shell.execute_reply": "2026-11-02T10:00:01.500Z",
    }
    path = write(tmp_path, [code("d['x']", 2, error, metadata={"execution": times})])
    (turn,) = turns(path)
    assert turn.error is not None and turn.status == "error"
    assert (turn.error.name, turn.error.value) == ("KeyError", "'x'")
    assert "\x1b" not in turn.error.traceback
    assert (turn.time, turn.duration_ms) == ("2026-11-02T10:00:00.000Z", 1500.0)
    assert lines(path, "Errors") == ["- [2] `KeyError: 'x'` at `d['x']`; open"]


def test_secrets_are_masked_on_the_way_in(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "Ab1" * 30
    path = write(
        tmp_path,
        [
            prose(f"The key is {secret}"),
            code(
                f"key = '{secret}'",
                1,
                {"output_type": "stream", "name": "stdout", "text": f"using {secret}\n"},
                {"output_type": "error", "ename": "E", "evalue": secret, "traceback": [secret]},
            ),
        ],
    )
    assert secret not in repr(notebooks.read(path).entries)
    assert "[masked: " in repr(notebooks.read(path).entries)


def test_large_cells_are_bounded(tmp_path: Path) -> None:
    stream = {"output_type": "stream", "name": "stdout", "text": "line of output\n" * 20_000}
    path = write(tmp_path, [code("x = 1\n" * 50_000, 1, *([stream] * 100))])
    (turn,) = turns(path)
    assert len(turn.source) <= notebooks.SOURCE_CHARS
    assert len(turn.outputs) <= notebooks.OUTPUTS
    assert all(len(each.text) <= notebooks.OUTPUT_CHARS for each in turn.outputs)
    assert turn.outputs[0].truncated > 200_000


def test_what_is_left_out_of_a_cell_is_told(tmp_path: Path) -> None:
    streams = [
        {"output_type": "stream", "name": "stdout", "text": f"line {n}\n"} for n in range(99)
    ]
    result = {"output_type": "execute_result", "data": {"text/plain": "'done'"}}
    error = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
    long = "x = 1\n" * 50_000
    path = write(tmp_path, [code(long, 1, *streams, error, result), code("y = 1", 2, result)])
    first, second = turns(path)
    assert first.source.endswith("[… 168,928 characters left out …]")
    assert [each.text for each in first.outputs[-2:]] == [
        "[… 41 more outputs left out …]",
        "'done'",
    ]
    assert len(first.outputs) == notebooks.OUTPUTS and first.error is not None
    assert len(second.outputs) == 1
    assert results.said_by(first).value == "'done'"
    last = replace(first, outputs=(*first.outputs[:-2], first.outputs[-1], first.outputs[-2]))
    assert results.said_by(last).value == "'done'"


def test_counts_out_of_order_are_told_in_the_order_they_ran(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        [code("b = a + 1", 5), prose("## Then"), code("a = 1", 3), code("c()"), code("d = 1", 3)],
    )
    assert lines(path, "Workflow") == [
        "- The cells stand in another order than they ran in: [5], [3], [3]",
        "- From more than one run: [3] each stand twice",
        "- Not run: [cell 4]",
    ]
    assert lines(path, "Worklog") == [
        "- [3] `a = 1`",
        "- [cell 4] `c()`",
        "- [3] `d = 1`",
        "- [5] `b` from `a`",
    ]
    assert lines(path, "Session Title") == ["Then (n.ipynb)"]


def test_a_notebook_whose_outputs_were_cleared_still_tells(tmp_path: Path) -> None:
    path = write(tmp_path, [code('import pandas as pd\ndf = pd.read_csv("a.csv")'), code("f(df)")])
    assert lines(path, "Files") == ["- `a.csv` read by `pd.read_csv` [cell 1]"]
    assert lines(path, "Workflow") == ["- No cell has been run since outputs were cleared"]


def test_format_3(tmp_path: Path) -> None:
    content = {
        "nbformat": 3,
        "metadata": {"name": "old"},
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "heading", "level": 2, "source": "Old times"},
                    {
                        "cell_type": "code",
                        "input": "1 + 1",
                        "prompt_number": 7,
                        "outputs": [
                            {"output_type": "pyout", "text": "2", "prompt_number": 7},
                            {"output_type": "display_data", "png": "AA", "text": "<Figure>"},
                        ],
                    },
                ]
            }
        ],
    }
    path = tmp_path / "old.ipynb"
    path.write_text(json.dumps(content))
    heading, turn = notebooks.read(path).entries
    assert isinstance(heading, Prose) and heading.source == "## Old times"
    assert isinstance(turn, Turn) and turn.label == "[7]"
    assert [each.text for each in turn.outputs] == ["2", "<Figure>"]
    assert turn.outputs[1].mime == ("text/plain", "image/png")


BROKEN: dict[str, tuple[str, bytes, str]] = {
    "empty": ("n.ipynb", b"", "is empty"),
    "blank": ("n.ipynb", b" \n", "is empty"),
    "torn": ("n.ipynb", b'{"nbformat": 4, "cells": [{"cell_t', "cut off or damaged"),
    "script": ("tool.py", b"import os\n", "is no notebook"),
    "words": ("n.ipynb", b"hello", "is no notebook"),
    "binary": ("n.ipynb", b"\x89PNG\r\n\x1a\n\xff\xfe", "not UTF-8"),
    "other json": ("n.ipynb", b'{"a": 1}', "no nbformat"),
    "a list": ("n.ipynb", b"[1, 2]", "no nbformat"),
    "a number": ("n.ipynb", b"3", "no nbformat"),
    "too new": ("n.ipynb", b'{"nbformat": 9, "cells": []}', "format 9"),
    "too old": ("n.ipynb", b'{"nbformat": 2}', "format 2"),
    "no cells": ("n.ipynb", b'{"nbformat": 4, "cells": []}', "without cells"),
    "cells that are none": ("n.ipynb", b'{"nbformat": 4, "cells": 3}', "without cells"),
    "format 3 without sheets": ("n.ipynb", b'{"nbformat": 3, "worksheets": []}', "without cells"),
    "only empty cells": (
        "n.ipynb",
        b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": ""}, 7, null]}',
        "without a cell that says anything",
    ),
    "deep": ("n.ipynb", b'{"a":' + b"[" * 200_000, "cut off or damaged"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_notebook_gets_one_clear_sentence(name: str, tmp_path: Path) -> None:
    file, data, words = BROKEN[name]
    path = tmp_path / file
    path.write_bytes(data)
    with pytest.raises(NotebookError, match=words) as caught:
        notebooks.read(path)
    message = str(caught.value)
    assert str(path) in message and message.endswith(".") and "\n" not in message
    assert message.count(". ") <= 1, "two sentences at most"


def test_folders_missing_files_and_files_nobody_may_read(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="is a folder"):
        notebooks.read(tmp_path)
    with pytest.raises(NotebookError, match="There is no file"):
        notebooks.read(tmp_path / "no.ipynb")
    with pytest.raises(NotebookError, match="no file"):
        notebooks.read(tmp_path / "a\0b.ipynb")
    path = write(tmp_path, [code("x", 1)])
    with path.open("r+b") as file:
        file.truncate(notebooks.MOST_BYTES + 1)
    with pytest.raises(NotebookError, match="Clear its largest outputs"):
        notebooks.read(path)


def test_a_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, [code("x", 1)])

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(NotebookError, match=r"cannot be read \(Permission denied\)"):
        notebooks.read(path)


def test_a_byte_order_mark_is_no_reason_to_refuse(tmp_path: Path) -> None:
    path = write(tmp_path, [code("x = 1", 1)])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(turns(path)) == 1


KEYS = [
    *("cell_type", "source", "outputs", "output_type", "text", "data", "ename", "evalue"),
    *("traceback", "id", "metadata", "execution_count", "level", "execution", "kernelspec"),
]
KINDS = ["code", "markdown", "heading", "stream", "error", "pyout"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner | st.sampled_from(KINDS), max_size=5)
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4), JSON, st.sampled_from([3, 4]))
def test_odd_values_anywhere_are_survived(cells: Any, metadata: Any, version: int) -> None:
    content = {"nbformat": version, "cells": cells, "metadata": metadata}
    content["worksheets"] = [{"cells": cells}]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "n.ipynb"
        path.write_text(json.dumps(content), encoding="utf-8")
        try:
            entries = notebooks.read(path).entries
        except NotebookError:
            return
        write_notes(entries, "n.ipynb", NOTES_TEMPLATE)


# The lesson


def test_the_lesson_line_by_line() -> None:
    assert lines(LESSON, "Session Title") == [
        "How high is the tide at Windmill Quay? (tides.ipynb)"
    ]
    state = lines(LESSON, "Current State")
    assert state[0].startswith("- Open: [17] `FileNotFoundError: ")
    assert state[1].startswith("- Last before that, [16]: ")
    assert state[2] == (
        '- To do, [16]: "ask the harbour master whether half an hour under water counts"'
    )
    assert state[3].startswith('- Next: "get the wind from the weather office')
    assert lines(LESSON, "Files") == [
        "- `tide-data/gauge.csv` written by `to_csv` [2]; read by `pd.read_csv` [3]",
        "- `tide-data/june.csv` written by `forecast.to_csv` [15]",
        "- `def clean(readings: pd.DataFrame, missing: float = -999) -> pd.DataFrame` [7]: "
        '"Drop the hours in which the gauge gave no answer."',
        '- `def design(times)` [9]: "One column for the mean and two for each tide."',
    ]
    errors = lines(LESSON, "Errors")
    assert errors[0] == (
        "- [4] `KeyError: 'level'` at `raw[\"level\"].mean()`; cured in [5]: "
        '`raw["level_cm"].mean()`'
    )
    assert errors[1] == (
        "- [10] `NameError: name 'START' is not defined` at `X = design(tidy.index)`, in "
        "`design` [9]: `t = (times - START) / pd.Timedelta(hours=1)`; cured in [11]: "
        "`START = tidy.index[0]`"
    )
    assert errors[2].endswith("; open")
    assert "- `rmse: 9.15 cm` [13]" in lines(LESSON, "Key results")
    learned = lines(LESSON, "Learnings")
    assert learned[0].startswith('- Decided: "We decided to drop those hours instead of')
    assert '- "Note: never shuffle the hours before splitting." (text above [14])' in learned
    assert len(lines(LESSON, "Worklog")) == 17


def test_the_lesson_is_a_plain_notebook_that_needs_no_network() -> None:
    content = json.loads(LESSON.read_text(encoding="utf-8"))
    assert content["nbformat"] == 4
    wanted = {"pathlib", "matplotlib", "numpy", "pandas"}
    for turn in turns(LESSON):
        source = "".join(line for line in turn.source.splitlines(True) if line[0] != "%")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or node.names[0].name]
                assert {name.partition(".")[0] for name in names} <= wanted
    text = json.dumps(content)
    assert "http" not in text and "/home/" not in text and "/tmp" not in text
