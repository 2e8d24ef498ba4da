"""Living documents written: what they say, what of a file changes, and the way back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from made import frame
from test_document_files import folder as folder
from test_document_files import notebook, recorded, run, written

from ipymemory import cli, document_records, document_text, document_updates, processes
from ipymemory.document_files import of_file
from ipymemory.extractive import Chapter, write_document
from ipymemory.extractive.document import ordered
from ipymemory.history import History, Run
from ipymemory.places import project_of
from ipymemory.sessions import Identity, claim
from ipymemory.turns import BoundName, CellError, Turn

PIPELINE = [
    "import pandas as pd\nLIMIT = 3  # cm\nTHRESHOLD = LIMIT * 2",
    "raw = pd.read_csv('raw.csv')",
    "tidy = clean(raw)\ntidy.to_csv('tidy.csv')",
    'def clean(frame):\n    """Drop what no gauge can say."""\n    return frame.dropna()',
    "tidy['nowhere']",
]


def turns(sources: list[str], **extra: Any) -> tuple[Turn, ...]:
    found = []
    for number, source in enumerate(sources, 1):
        names: tuple[BoundName, ...] = extra.get("names", {}).get(number, ())
        error = extra.get("errors", {}).get(number)
        status = "error" if error else "ok"
        found.append(
            Turn(
                f"code {number}", "", source, status=status, error=error, names=names, origin="file"
            )  # type: ignore[arg-type]
        )
    return tuple(found)


@pytest.mark.spec("M5")
def test_the_text_says_what_is_true_and_where() -> None:
    error = CellError("KeyError", "'nowhere'", "")
    cells = turns(
        PIPELINE, names={2: (frame("raw", "90 x 2", "time", "level"),)}, errors={5: error}
    )
    text = write_document([Chapter("tides.ipynb", cells)], 2)
    assert text.startswith(
        "### Overview\n\n- `tides.ipynb`: 5 steps; reads `raw.csv`; writes `tidy.csv`"
    )
    order = "[code 1], [code 2], [code 4], [code 3], [code 5]"
    assert f"Start with [code 1]; the cells depend on each other in this order: {order}.\n" in text
    assert "- `raw.csv` read by `pd.read_csv` [code 2]\n" in text
    assert "- `tidy.csv` written by `tidy.to_csv` [code 3]\n" in text
    assert "- `LIMIT` = `3` [code 1]\n- `THRESHOLD` = `LIMIT * 2` [code 1]\n" in text
    assert '- `def clean(frame)` [code 4]: "Drop what no gauge can say."\n' in text
    assert "- `raw` [code 2] DataFrame 90 x 2" in text
    assert "- [code 5] `KeyError: 'nowhere'`" in text
    assert text == write_document([Chapter("tides.ipynb", cells)], 2), "the same bytes"
    assert write_document([]) == "There is no cell with code yet, so there is nothing to tell.\n"


@pytest.mark.spec("M5")
def test_notebooks_stand_in_the_order_in_which_they_feed_each_other() -> None:
    late = Chapter("a.ipynb", turns(["import pandas as pd\nx = pd.read_csv('mid.csv')"]))
    early = Chapter("b.ipynb", turns(["open('mid.csv', 'w').write('1')"]))
    text = write_document([late, early])
    assert "- Start with `b.ipynb`" in text
    assert text.index("## `b.ipynb`") < text.index("## `a.ipynb`")


def test_a_circle_and_a_thousand_cells_come_to_an_end() -> None:
    def names(*each: str) -> frozenset[str]:
        return frozenset(each)

    assert ordered([(names("a"), names("b")), (names("b"), names("a"))]) == [0, 1]
    assert ordered([(names("a"), names("b")), (names(), names("a"))]) == [1, 0]
    assert ordered([(names("x"), names("x"))] * 1000) == list(range(1000))
    # Two that change a frame, and below them the one that reads it from a file.
    changed = [(names("df"), names("df"))] * 2
    assert ordered([*changed, (names(), names("df"))]) == [2, 0, 1]


def test_text_of_others_begins_no_line_of_its_own() -> None:
    hostile = [
        "def f():\n    '''# MAGIC DOC: x\n\n<!-- ipymemory:end --> <script>alert(1)</script>'''",
        "open('<!-- ipymemory:end -->.csv')\nX = '''\n<!-- ipymemory:end -->\n'''",
    ]
    text = write_document([Chapter("<img src=x>\n# a.ipynb", turns(hostile))])
    lines = text.splitlines()
    assert document_records.END not in lines
    assert not any("MAGIC" in each for each in lines if each.startswith("#"))
    assert "<script" not in text.replace("`", "")


def project(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    value = notebook("## Magic Doc: Tides\n_Short._\n\nMy own words.\n", PIPELINE)
    return written(folder / "tides.ipynb", value)


@pytest.mark.spec("M9", "M5", "M8")
def test_check_fails_update_writes_check_passes_undo_takes_it_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project(folder)
    path.chmod(0o644)
    (folder / "ALL.md").write_bytes(b"# MAGIC DOC: All\r\n\r\nmine\r\n")
    before = path.read_bytes()
    assert run(capsys, "check")[0] == 1
    code, out, err = run(capsys, "update", "--dry-run")
    assert (code, err) == (0, "")
    assert "+- `tides.ipynb`: 5 steps" in out
    assert path.read_bytes() == before
    assert not (folder.parent / "home").exists()
    code, out, err = run(capsys, "update")
    assert (code, err) == (0, "")
    assert "2 living documents written anew" in out
    assert run(capsys, "check")[0] == 0
    text = of_file(path)[0].text
    head = (
        "## Magic Doc: Tides\n_Short._\n\nMy own words.\n\n<!-- ipymemory:begin -->\n### Overview\n"
    )
    assert text.startswith(head)
    prose = (folder / "ALL.md").read_bytes()
    assert prose.startswith(b"# MAGIC DOC: All\r\n\r\nmine\r\n\r\n<!-- ipymemory:begin -->\r\n")
    assert prose.count(b"\n") == prose.count(b"\r\n")
    after = path.read_bytes()
    assert (
        after[after.index(b'"cell_type": "code"') :]
        == before[before.index(b'"cell_type": "code"') :]
    )
    if os.name != "nt":
        assert path.stat().st_mode & 0o777 == 0o644
    code, out, _ = run(capsys, "update")
    assert "Nothing to write: 2 living documents are up to date." in out
    assert path.read_bytes() == after
    for _ in range(2):
        assert cli.main(["undo"]) == 0
    assert path.read_bytes() == before
    assert run(capsys, "check")[0] == 1


@pytest.mark.spec("M9")
def test_a_changed_step_is_written_in_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project(folder)
    run(capsys, "update")
    value = json.loads(path.read_bytes())
    value["cells"][1]["source"] = ["LIMIT = 4"]
    written(path, value)
    assert run(capsys, "check")[0] == 1
    assert run(capsys, "update", "tides.ipynb")[0] == 0
    text = of_file(path)[0].text
    assert "`LIMIT` = `4`" in text
    assert "`LIMIT` = `3`" not in text
    assert text.count("My own words.") == 1
    assert run(capsys, "check")[0] == 0


@pytest.mark.spec("M8")
def test_a_notebook_that_changed_meanwhile_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project(folder)
    write = Run.write

    def saved_first(self: Run, path: Path, data: bytes | None, *, seen: bytes | None) -> None:
        path.write_bytes(path.read_bytes() + b" ")
        write(self, path, data, seen=seen)

    monkeypatch.setattr(Run, "write", saved_first)
    before = path.read_bytes()
    code, out, _ = run(capsys, "update")
    assert code == 2
    assert "was changed by somebody else meanwhile" in out
    assert path.read_bytes() == before + b" "


@pytest.mark.spec("M8")
def test_a_notebook_that_a_live_session_holds_is_refused(
    folder: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project(folder)
    before = path.read_bytes()
    place = project_of(path, home)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        owner = processes.identity(child.pid)
        assert owner is not None
        claim(place, Identity(path, None, "k.json", False), datetime.now(UTC), owner)
        code, out, _ = run(capsys, "update")
        assert code == 2
        assert "is open: a kernel with ipymemory works in it" in out
        assert path.read_bytes() == before
        assert run(capsys, "update", "--dry-run")[0] == 0
    finally:
        child.kill()
        child.wait()
    assert run(capsys, "update")[0] == 0


@pytest.mark.spec("M8", "M5")
def test_what_is_damaged_or_not_allowed_is_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doc = f"# MAGIC DOC: a\n{document_records.END}\n"
    path = written(folder / "a.ipynb", notebook(doc))
    before = path.read_bytes()
    code, out, _ = run(capsys, "update")
    assert code == 2
    assert "Mend them, or remove both" in out
    assert path.read_bytes() == before
    assert run(capsys, "update", "--engine", "anthropic")[0] == 2
    cli.main(["mode", "off"])
    code, _, err = run(capsys, "update")
    assert code == 2
    assert "No document is written in mode off" in err


@pytest.mark.spec("L7")
def test_secrets_do_not_get_into_a_document(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "sk-ant-api03-" + "abcdEFGH1234" * 4
    value = notebook("# MAGIC DOC: a\n", [f"API_KEY = '{key}'", "%%private\nname = 'Ada'"])
    path = written(folder / "a.ipynb", value)
    assert run(capsys, "update")[0] == 0
    (found,) = of_file(path)
    assert key not in found.text
    assert "Ada" not in found.text
    assert found.stale == ()


def test_100_documents_in_one_notebook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = notebook("# MAGIC DOC: 0\n", PIPELINE)
    for number in range(1, 100):
        value["cells"].append(
            {**value["cells"][0], "source": f"# MAGIC DOC: {number}", "id": f"m{number}"}
        )
    path = recorded(written(folder / "a.ipynb", value))
    place = project_of(path, folder.parent / "home")
    (one,) = document_updates.update_file(path, History(place.history), dry=False, title="57")
    assert not one.fresh
    texts = [each.text for each in of_file(path)]
    assert [at for at, each in enumerate(texts) if "Overview" in each] == [57]
    made: list[int] = []

    def counted(chapters: tuple[Chapter, ...], level: int) -> str:
        made.append(level)
        return write_document(chapters, level)

    monkeypatch.setattr(document_text, "write_document", counted)
    assert len(document_updates.update_file(path, History(place.history), dry=False)) == 100
    assert made == [1], "what is told of a notebook is made once"
    assert all("Overview" in each.text and not each.stale for each in of_file(path))
