"""Living documents on disk: found, checked and told, without a home, a model or a kernel."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipymemory import cli, document_records
from ipymemory.commands.document_pages import checked
from ipymemory.document_files import code_cells, look, of_file
from ipymemory.document_records import Cell, in_text, put_in_text
from ipymemory.errors import FormatError, NotebookError
from ipymemory.notebook_spans import with_cell

DOC = "# MAGIC DOC: Pipeline\n_Keep it short._\n"
CODE = ["import csv\nLIMIT = 3", "# only a comment", "raw = list(csv.reader(open('raw.csv')))"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "jupyter"))
    return work


def notebook(doc: str = DOC, code: list[str] = CODE, ids: bool = True) -> dict[str, Any]:
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": doc}]
    cells += [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": each,
        }
        for each in code
    ]
    if ids:
        for number, cell in enumerate(cells):
            cell["id"] = f"c{number}"
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 if ids else 4}


def written(path: Path, value: dict[str, Any]) -> Path:
    """Put `value` at `path` as Jupyter does, lines apart."""
    for cell in value["cells"]:
        if isinstance(cell["source"], str):
            cell["source"] = cell["source"].splitlines(keepends=True)
    path.write_bytes(
        json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"
    )
    return path


def recorded(path: Path, by: str = "") -> Path:
    """Give every document in the notebook `path` the record of what is there now."""
    for each in of_file(path):
        record = document_records.made("2026-12-02T00:00:00.000Z", path.name, each.cells, by)
        data = with_cell(path, path.read_bytes(), each.index, each.text, "doc", record.as_dict())
        path.write_bytes(data)
    return path


def stale(path: Path) -> tuple[str, ...]:
    (found,) = of_file(path)
    return found.stale


def changed(path: Path, change: Callable[[list[dict[str, Any]]], Any]) -> tuple[str, ...]:
    value = json.loads(path.read_bytes())
    change(value["cells"])
    return stale(written(path, value))


def put(number: int, source: str) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda cells: cells[number].update(source=[source])


@pytest.mark.spec("M9")
@pytest.mark.parametrize("ids", [True, False])
def test_no_record_is_stale_and_what_changes_nothing_is_not(folder: Path, ids: bool) -> None:
    path = written(folder / "a.ipynb", notebook(ids=ids))
    assert stale(path) == ("it has not been written yet",)
    recorded(path)
    assert stale(path) == ()
    assert changed(path, put(1, "import csv   # why\n\nLIMIT  =  3")) == ()
    assert changed(path, put(2, "# another comment")) == ()
    assert changed(path, lambda cells: cells.insert(1, dict(cells[2], id="new"))) == ()
    assert changed(path, lambda cells: cells.append({**cells[2], "source": ["%memory docs"]})) == ()


@pytest.mark.spec("M9")
def test_a_changed_a_removed_a_new_and_a_moved_step_are_stale(folder: Path) -> None:
    def fresh() -> Path:
        return recorded(written(folder / "a.ipynb", notebook()))

    assert changed(fresh(), put(1, "import csv\nLIMIT = 4")) == ("[code 1] has changed",)
    assert changed(fresh(), lambda cells: cells.pop(3)) == ("the cell c3 is gone",)
    added = {"cell_type": "code", "metadata": {}, "id": "x", "source": "print(raw)"}
    assert changed(fresh(), lambda cells: cells.append(added)) == ("[code 3] is new",)
    assert changed(fresh(), lambda cells: cells.insert(1, cells.pop())) == (
        "its cells stand in another order",
    )


@pytest.mark.spec("M9")
def test_a_notebook_of_another_kernel_is_read_in_its_language(folder: Path) -> None:
    value = notebook(code=["x <- 1", "y <- x"])
    value["metadata"] = {"kernelspec": {"name": "ir", "language": "R"}, "language_info": []}
    path = recorded(written(folder / "a.ipynb", value))
    assert changed(path, put(1, "x<-1  # one")) == ()
    assert changed(path, put(1, "x < -1")) == ("[code 1] has changed",)


@pytest.mark.spec("M9")
def test_a_renamed_file_is_stale(folder: Path) -> None:
    path = recorded(written(folder / "a.ipynb", notebook()))
    assert stale(path.rename(folder / "b.ipynb")) == (
        "the file was called a.ipynb when it was written",
    )
    (folder / "b.ipynb").rename(path)
    prose = folder / "doc.md"
    prose.write_text("# MAGIC DOC: All\n")
    (found,) = of_file(prose)
    record = document_records.made("", "doc.md", found.cells)
    prose.write_text(put_in_text(found.text, record))
    assert stale(prose) == ()
    path.rename(folder / "c.ipynb")
    assert stale(prose) == ("a.ipynb is gone or was renamed", "c.ipynb is new")


@pytest.mark.spec("M1", "M2")
def test_a_file_is_one_at_level_one_only(folder: Path) -> None:
    (folder / "a.md").write_text("# magic doc: One\n")
    (folder / "b.md").write_text("## MAGIC DOC: Two\n")
    (folder / "c.md").write_text("```\n# MAGIC DOC: Three\n```\n")
    assert [each.title for each in look([folder]).documents] == ["One"]


@pytest.mark.spec("M9")
@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        [],
        {"version": 2, "rests_on": []},
        {"version": 1, "rests_on": {}},
        {"version": 1, "rests_on": [3]},
        {"version": 1, "rests_on": [{"cell": ["../x"], "hash": "h"}]},
        {"version": 1, "rests_on": [{"cell": "a", "hash": "h"}] * 20_001},
    ],
)
def test_a_record_of_somebody_else_is_none(folder: Path, value: object) -> None:
    found = notebook()
    found["cells"][0]["metadata"] = {"ipymemory": {"doc": value}}
    assert stale(written(folder / "a.ipynb", found)) == ("it has not been written yet",)


@pytest.mark.spec("M9")
def test_a_record_that_names_paths_reads_none_of_them(folder: Path) -> None:
    secret = folder.parent / "secret.ipynb"
    secret.write_text("{}")
    cells = (Cell("x\n::error::", "h", file="../secret.ipynb"), Cell("y", "h", file="/etc/passwd"))
    text = put_in_text("# MAGIC DOC: a\n", document_records.made("", "a.md", cells))
    assert text.count("-->") == 1
    (folder / "a.md").write_text(text)
    told = " ".join(stale(folder / "a.md"))
    assert "../secret.ipynb is gone or was renamed" in told
    assert "\n" not in told
    record, rest = in_text(text)
    assert record is not None
    assert rest == "# MAGIC DOC: a\n\n\n"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["docs", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.spec("M9")
def test_check_says_what_is_stale_without_a_home(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYMEMORY_HOME", "~nobody-of-this-name/x")
    path = recorded(written(folder / "a.ipynb", notebook()))
    code, out, err = run(capsys, "check")
    assert (code, err) == (0, "")
    assert "1 living document in 1 file: it is up to date." in out
    assert run(capsys, "check", "--format", "github") == (0, "", "")
    changed(path, put(1, "import csv\nLIMIT = 4"))
    code, out, _ = run(capsys, "check", ".")
    assert code == 1
    assert out.startswith('- a.ipynb: "Pipeline" is stale: [code 1] has changed\n')
    code, out, _ = run(capsys, "check", "a.ipynb", "--format", "github")
    assert (code, out) == (
        1,
        '::warning file=a.ipynb,title=living document::"Pipeline" is stale: [code 1] has changed\n',
    )
    for how in (["--json"], ["--format", "json"]):
        code, out, _ = run(capsys, "check", *how)
        assert code == 1
        assert json.loads(out)["documents"][0]["reasons"] == ["[code 1] has changed"]
    code, out, _ = run(capsys, "list", "--json")
    assert code == 0
    assert json.loads(out)["documents"][0]["title"] == "Pipeline"
    assert run(capsys, "check", "--format", "xml")[0] == 2


@pytest.mark.spec("M9")
def test_what_cannot_be_read_is_a_sentence_and_exit_2(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = '{"nbformat": 4, "cells": ' + "[" * 200_000
    hostile = {
        "broken.ipynb": '{"cells": [ "magic',
        "deep.ipynb": deep,
        "three.ipynb": '{"nbformat": 3, "worksheets": []}',
        "list.ipynb": "[1]",
        "long.ipynb": json.dumps(notebook("# MAGIC DOC: " + "a # " * 1000)),
        "large.ipynb": json.dumps(notebook(DOC + "x" * 5_000_000)),
        "latin.md": "",
        "text.txt": "",
        "gone.ipynb": None,
    }
    for name, text in hostile.items():
        if text is not None:
            (folder / name).write_text(text)
    (folder / "latin.md").write_bytes(b"# MAGIC DOC: \xe9")
    (folder.parent / "real.ipynb").write_text(json.dumps(notebook()))
    (folder / "link.ipynb").symlink_to(folder.parent / "real.ipynb")
    for name in [*hostile, "link.ipynb", "a\0b.ipynb"]:
        code, out, err = run(capsys, "check", name)
        assert code == 2, name
        assert out.count("\n- ") == 0, out
        assert out.startswith("- "), out
        assert err == ""
    code, out, _ = run(capsys, "check", ".", "--format", "github")
    assert code == 2
    assert out.count("::error ") == 4, out  # of those that may hold a document


@pytest.mark.spec("M9")
def test_200_notebooks_are_checked_within_10_seconds(folder: Path) -> None:
    code = [
        f"step_{n} = [\n    each + {n}  # why\n    for each in range({n})\n]" for n in range(50)
    ]
    image = {"output_type": "display_data", "data": {"image/png": "A" * 100_000}, "metadata": {}}
    value = notebook(code=code)
    value["cells"][1]["outputs"] = [image]
    for number in range(200):
        written(folder / f"n{number}.ipynb", value)
    begin = time.perf_counter()
    found = look([folder])
    assert time.perf_counter() - begin < 10
    assert len(found.documents) == 200


def layouts() -> list[bytes]:
    value = notebook("# MAGIC DOC: Ü\nold\n")
    value["cells"][0]["metadata"] = {"tags": ["a"], "zoom": {"x": 1}}
    lines = json.loads(json.dumps(value))
    for cell in lines["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)
    jupyter = json.dumps(lines, indent=1, ensure_ascii=False, sort_keys=True)
    return [
        (jupyter + "\n").encode(),
        jupyter.encode(),
        jupyter.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + jupyter.encode(),
        json.dumps(lines, indent=4).encode(),
        json.dumps(value, indent="\t", ensure_ascii=False).encode(),
        json.dumps(value).encode(),
        json.dumps(value, separators=(",", ":"), sort_keys=True).encode(),
        jupyter.replace(
            '"tags": [\n     "a"\n    ],\n    "zoom": {\n     "x": 1\n    }', ""
        ).encode(),
    ]


@pytest.mark.spec("M8")
@pytest.mark.parametrize("data", layouts())
def test_only_that_cell_changes_byte_for_byte(folder: Path, data: bytes) -> None:
    path = folder / "a.ipynb"
    new = "# MAGIC DOC: Ü\n\nnew “text”\n"
    record = {"version": 1, "rests_on": [{"cell": "c1", "hash": "h"}]}
    once = with_cell(path, data, 0, new, "doc", record)
    cell = json.loads(once.decode("utf-8-sig"))["cells"][0]
    assert "".join(cell["source"]) == new
    assert cell["metadata"]["ipymemory"] == {"doc": record}
    assert once.count(b"\r\n") == (once.count(b"\n") if b"\r\n" in data else 0)
    assert once.endswith(data[-20:])
    same = 0
    while data[same] == once[same]:
        same += 1
    cells = json.loads(data.decode("utf-8-sig"))["cells"]
    assert (len(cells) > 1) and data[:20] == once[:20]
    # What comes behind the document's cell stands there as it did.
    mark = b"code"
    assert (
        once[once.index(b"cell_type", once.index(mark) - 20) :]
        == (data[data.index(b"cell_type", data.index(mark) - 20) :])
    )
    # Written back, all is as it was but for the record.
    old = "# MAGIC DOC: Ü\nold\n"
    again = with_cell(path, once, 0, old, "doc", record)
    assert with_cell(path, again, 0, new, "doc", record) == once


@pytest.mark.spec("M8")
def test_as_jupyter_would_write_it(folder: Path) -> None:
    data = layouts()[0]
    new = "# MAGIC DOC: Ü\n\nnew\n"
    made = with_cell(folder / "a", data, 0, new, "doc", {"rests_on": [], "version": 1})
    value = json.loads(made)
    text = json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    assert made.decode() == text


@pytest.mark.spec("M8")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"cells": []}',
        b'{"cells": [{"source": "a", "source": "b", "metadata": {}}]}',
        b'{"cells": [{"source": "a", "metadata": {}}], "cells": []}',
        b'{"cells": [{"source": "a", "metadata": []}]}',
        b'{"cells": [3]}',
        b'{"cells": [' + b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_not_understood_is_left_alone(folder: Path, data: bytes) -> None:
    with pytest.raises(NotebookError):
        with_cell(folder / "a.ipynb", data, 0, "x", "doc", {})


@pytest.mark.spec("M5")
def test_only_what_is_between_the_marks_is_ours() -> None:
    begin, end = document_records.BEGIN, document_records.END
    head = "# MAGIC DOC: a\n_Be brief._\n"
    first = document_records.filled(head, len(head), "one\ntwo\n")
    assert first == f"{head}\n{begin}\none\ntwo\n{end}\n"
    own = first.replace(begin, f"## Mine\n```\n{end}\n```\n{begin}") + "last words"
    again = document_records.filled(own, len(head), "three")
    assert again == own.replace("one\ntwo", "three")
    crlf = own.replace("\n", "\r\n")
    assert document_records.filled(crlf, len(head), "three") == again.replace("\n", "\r\n")
    for broken in (first.replace(end, ""), first + begin, first.replace(begin, end)):
        with pytest.raises(FormatError):
            document_records.filled(broken, len(head), "x")


def test_private_cells_are_no_part_of_it() -> None:
    found = code_cells(notebook(code=["%%private\nx = 1", "%memory docs", "y = 2"]))
    assert [(index, cell.label) for index, cell in found] == [(3, "[code 1]")]


def test_a_page_about_hostile_titles_is_harmless(folder: Path) -> None:
    doc = "# MAGIC DOC: <img src=x onerror=alert(1)> \x1b[2J![a](http://x)"
    written(folder / "a.ipynb", notebook(doc))
    page = checked(look([folder]), "text", check=True)
    assert "<img" not in page.markdown
    assert "![" not in page.markdown
    assert "\x1b" not in page.plain


def test_the_hook_for_commits_calls_what_is_there() -> None:
    import yaml

    top = Path(__file__).parent.parent
    (hook,) = yaml.safe_load((top / ".pre-commit-hooks.yaml").read_text("utf-8"))
    words = hook["entry"].split()
    assert words[:3] == ["ipymemory", "docs", "check"]
    assert "docs" in cli.line_commands()
