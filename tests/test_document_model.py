"""Closed documents by a model, on the command line: consent, the bill, what it fails in, undo.

Real files, the real SDK, a server on a real socket; the model's answers are made here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import Fault, ModelServer
from scripted import good, hostile
from test_document_files import DOC, changed, notebook, put, recorded, written
from test_document_files import folder as folder

from ipymemory import cli, consent, document_files, document_records
from ipymemory.cost import Ledger
from ipymemory.document_model import MOST_FAILURES
from ipymemory.document_records import BEGIN, END
from ipymemory.history import History
from ipymemory.places import Project, project_of

TEXT = "\nReads `raw.csv` with csv, [code 2].\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModelServer]:
    monkeypatch.setenv("IPYMEMORY_HOME", str(tmp_path / "home"))
    config = tmp_path / "jupyter"
    config.mkdir()
    (config / "ipymemory_config.json").write_text(json.dumps({"Engine": {"tries": 1}}))
    with ModelServer() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def project(server: ModelServer, folder: Path, tmp_path: Path) -> Project:
    project = project_of(folder, tmp_path / "home")
    consent.choose(project, "anthropic", server.host)
    return project


def edit(old: str, new: str, path: str = "document.md") -> tuple[str, dict[str, Any]]:
    return "Edit", {"path": path, "old_string": old, "new_string": new}


def writes(text: str = TEXT, below: str = "_Keep it short._\n") -> Any:
    """Return a model that puts `text` below the line `below` whenever it is asked."""

    def brain(body: dict[str, Any], number: int) -> Any:
        return good(edit(below, below + text))(body, number)

    return brain


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(list(words))
    said = capsys.readouterr()
    return code, said.out, said.err


def text_of(path: Path) -> str:
    (found,) = document_files.of_file(path)
    return found.text


def prompt(server: ModelServer, number: int = 0) -> str:
    content = server.requests[number]["messages"][0]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


@pytest.mark.spec("M3", "M8", "M9", "L9")
def test_a_model_writes_a_closed_notebook_is_paid_for_and_undone(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder / "a.ipynb", notebook())
    before = path.read_bytes()
    server.brain = writes()
    code, out, _ = run(capsys, "docs", "update", "a.ipynb", "--engine", "anthropic")
    assert code == 0, out
    assert text_of(path) == DOC + TEXT
    assert '"Pipeline" is up to date' in out and "The model took 1 call, " in out and "USD" in out
    (entry,) = History(project.history).entries()
    assert (entry.engine, entry.job) == ("anthropic", "magic_docs")
    assert [*Ledger(project).by_job()] == ["magic_docs"]
    assert run(capsys, "docs", "check", "a.ipynb")[0] == 0
    value, old = json.loads(path.read_bytes()), json.loads(before)
    assert value["cells"][1:] == old["cells"][1:]
    assert not list(project.folder.glob("document-*")), "nothing is left of the draft"
    asked = len(server.requests)
    code, out, _ = run(capsys, "docs", "update", "a.ipynb")
    assert code == 0 and "1 living document is up to date." in out
    assert len(server.requests) == asked, "nobody is asked where nothing has changed"
    assert run(capsys, "undo")[0] == 0
    assert path.read_bytes() == before


@pytest.mark.spec("M5", "M9")
def test_where_no_model_is_at_hand_one_line_says_that_its_text_is_stale(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder / "a.ipynb", notebook())
    prose = folder / "ALL.md"
    prose.write_text("# MAGIC DOC: All\n_Keep it short._\n")
    server.brain = writes()
    assert run(capsys, "docs", "update")[0] == 0
    written_by_it = {each: text_of(each) for each in (path, prose)}
    changed(path, put(3, "raw = 4"))
    code, out, _ = run(capsys, "docs", "update", "--engine", "extractive")
    assert code == 0 and out.count("says now that it is stale") == 2
    assert out.count("a model wrote it, and its cells have changed since") == 2
    assert "instead" not in out and out.endswith("\n2 living documents are left to a model.\n")
    for each in (path, prose):
        text = text_of(each)
        assert text.startswith(written_by_it[each].partition("<!--")[0]), "word for word"
        assert text.count(BEGIN) == 1 and "Overview" not in text
        assert "_The text above is older than its cells" in text
        end = text.rstrip().splitlines()[-1]
        assert end == END if each == path else end.startswith("<!-- ipymemory {"), "the record"
    assert "cells: [code 2] has changed._" in text_of(path)
    # a check agrees with what stands there, and nothing is written twice
    assert run(capsys, "docs", "check")[0] == 1
    before = path.read_bytes(), prose.read_bytes()
    code, out, _ = run(capsys, "docs", "update", "--engine", "extractive")
    assert (path.read_bytes(), prose.read_bytes()) == before
    assert out.endswith("\n2 living documents are left to a model.\n")
    # the model is told what changed since it wrote, and takes the line out
    server.requests.clear()
    server.brain = lambda body, n: good(edit(text_of(path)[len(DOC) :], TEXT))(body, n)
    assert run(capsys, "docs", "update", "a.ipynb")[0] == 0
    assert "- [code 2] has changed" in prompt(server)
    assert text_of(path) == DOC + TEXT and run(capsys, "docs", "check", "a.ipynb")[0] == 0
    # without its text there is nothing to be left to it
    value = json.loads(path.read_bytes())
    value["cells"][0]["source"] = DOC
    written(path, value)
    changed(path, put(3, "raw = 5"))
    assert run(capsys, "docs", "update", "a.ipynb", "--engine", "extractive")[0] == 0
    assert "## Overview" in text_of(path) and "older" not in text_of(path)
    assert run(capsys, "docs", "check", "a.ipynb")[0] == 0


@pytest.mark.spec("M5", "M9")
def test_a_text_whose_cells_are_as_they_were_says_nothing_of_being_stale(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for newline in ("\n", "\r\n"):
        for end in ("", newline):
            text = newline.join(("# MAGIC DOC: Pipeline", "", "One.")) + end
            path = recorded(written(folder / "a.ipynb", notebook(text)), "anthropic")
            changed(path, put(3, "raw = 4"))
            assert run(capsys, "docs", "update", "--engine", "extractive")[0] == 0
            assert "older than its cells" in text_of(path) and text_of(path).startswith(text)
            value = json.loads(path.read_bytes())
            value["cells"][3]["source"] = notebook(text)["cells"][3]["source"]
            written(path, value)
            assert run(capsys, "docs", "update", "--engine", "extractive")[0] == 0
            assert text_of(path) == text, (newline, end)


@pytest.mark.spec("L1", "L7")
def test_nothing_is_sent_without_a_yes_for_this_project_and_host(
    server: ModelServer, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder / "a.ipynb", notebook())
    before = path.read_bytes()
    code, out, _ = run(capsys, "docs", "update", "a.ipynb", "--engine", "anthropic")
    assert code == 2 and "Nobody agreed to" in out and "ipymemory engine anthropic" in out
    assert path.read_bytes() == before and server.requests == []
    project = project_of(folder, tmp_path / "home")
    consent.choose(project, "anthropic", "elsewhere.example")
    code, out, _ = run(capsys, "docs", "update", "a.ipynb")
    assert code == 0 and "Nobody agreed to" in out and BEGIN in text_of(path)
    assert server.requests == []
    path.write_bytes(before)
    consent.choose(project, "anthropic", server.host)
    consent.choose(project, "extractive")
    run(capsys, "docs", "update", "a.ipynb")
    assert server.requests == []
    path.write_bytes(before)
    server.brain = writes()
    run(capsys, "docs", "update", "a.ipynb", "--engine", "anthropic")
    assert text_of(path) == DOC + TEXT, "named for this once, and agreed to before"
    assert consent.chosen(project) == "extractive"
    code, _, error = run(capsys, "docs", "update", "--engine", "magic")
    assert code == 2 and "extractive or anthropic" in error


@pytest.mark.spec("L1")
def test_consent_is_the_files_projects_and_not_the_folders_one_stands_in(
    project: Project, server: ModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    path = written(other / "a.ipynb", notebook())
    code, out, _ = run(capsys, "docs", "update", str(path), "--engine", "anthropic")
    assert code == 2 and "Nobody agreed to" in out
    assert server.requests == []


@pytest.mark.spec("M5", "L4")
@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", 500),
        Fault("refused"),
        Fault("garbage"),
        Fault("eof"),
        Fault("half_tool", said=[]),
        Fault("empty"),
        Fault("refusal"),
    ],
    ids=lambda fault: fault.kind,
)
def test_where_the_model_fails_the_built_in_text_stands_there(
    project: Project,
    server: ModelServer,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    fault: Fault,
) -> None:
    path = written(folder / "a.ipynb", notebook())
    server.faults = [fault] * 3
    code, out, _ = run(capsys, "docs", "update", "a.ipynb")
    assert code == 0, out
    assert "the model did not write it" in out and "The built-in engine wrote instead." in out
    assert BEGIN in text_of(path) and "### Overview" not in out
    assert History(project.history).entries()[0].engine == "extractive"
    assert run(capsys, "docs", "check", "a.ipynb")[0] == 0


@pytest.mark.spec("M5")
def test_what_the_built_in_engine_wrote_is_the_models_next_time(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder / "a.ipynb", notebook())
    run(capsys, "docs", "update", "a.ipynb", "--engine", "extractive")
    block = text_of(path).removeprefix(DOC)
    assert BEGIN in block
    server.brain = good(edit(block.strip("\n"), TEXT.strip("\n")))
    code, out, _ = run(capsys, "docs", "update", "a.ipynb")
    assert code == 0 and "written anew" in out
    assert BEGIN not in text_of(path) and TEXT.strip() in text_of(path)


@pytest.mark.spec("M3", "M9")
def test_it_is_told_what_has_changed_and_by_what_number_cells_go_now(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder / "a.ipynb", notebook())
    server.brain = writes()
    run(capsys, "docs", "update", "a.ipynb")
    assert "- It has not been written from these cells yet" in prompt(server)
    new = {**json.loads(path.read_bytes())["cells"][1], "id": "new", "source": "import os\nHERE=1"}

    def shift(cells: list[dict[str, Any]]) -> None:
        put(1, "import csv\nLIMIT = 4")(cells)
        cells.insert(1, new)

    changed(path, shift)
    server.requests.clear()
    server.brain = good(edit("[code 2]", "[code 3]"))
    code, out, _ = run(capsys, "docs", "update", "a.ipynb")
    assert code == 0, out
    told = prompt(server)
    assert "- [code 1] is new; it binds HERE, os\n" in told
    assert "- [code 2] has changed, and was [code 1]; it binds LIMIT, csv\n" in told
    assert "- [code 2] is called [code 3] now\n" in told
    assert "[code 3]" in text_of(path)
    changed(path, lambda cells: cells.pop(1))
    server.requests.clear()
    run(capsys, "docs", "update", "a.ipynb")
    assert "- what was [code 1] is gone" in prompt(server)
    assert "- [code 3] is called [code 2] now\n" in prompt(server)


@pytest.mark.spec("M1", "M3", "M9")
def test_a_file_of_its_own_is_written_from_the_notebooks_around_it(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(folder / "a.ipynb", notebook("# Notes\n"))
    written(folder / "b.ipynb", notebook("# Notes\n", ["x = 1"]))
    path = folder / "ALL.md"
    path.write_text(DOC)
    server.brain = writes()
    code, out, _ = run(capsys, "docs", "update", "ALL.md")
    assert code == 0, out
    shown = prompt(server)
    assert "[code 1] of b.ipynb\nx = 1" in shown and "[code 2] of a.ipynb" in shown
    record, _ = document_records.in_text(path.read_text())
    assert record is not None and path.read_text().startswith(DOC + TEXT)
    server.requests.clear()
    written(folder / "b.ipynb", notebook("# Notes\n", ["x = 2"]))
    server.brain = good(edit("with csv", "with the csv module"))
    run(capsys, "docs", "update", "ALL.md")
    assert "- [code 1] of b.ipynb has changed; it binds x\n" in prompt(server)
    assert "<!-- ipymemory" not in prompt(server).split("</document>")[0]
    once = path.read_text()
    assert once.count("<!-- ipymemory") == 1 and "with the csv module" in once
    assert run(capsys, "docs", "check", "ALL.md")[0] == 0


@pytest.mark.spec("L7")
def test_a_document_with_a_key_in_it_is_not_sent(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "sk-ant-api03-" + "abcdEFGH1234" * 4
    path = written(folder / "a.ipynb", notebook(f"{DOC}\nThe key is {key}.\n"))
    code, out, _ = run(capsys, "docs", "update", "a.ipynb")
    assert code == 0 and "looks like a password" in out
    assert server.requests == [] and key in text_of(path) and BEGIN in text_of(path)
    assert key not in out


@pytest.mark.spec("M3", "L11")
def test_a_server_that_is_away_is_not_asked_for_each_of_many(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(MOST_FAILURES + 3):
        written(folder / f"{number}.ipynb", notebook())
        # Nobody is asked for these, so they say nothing of the server.
        written(folder / f"0{number}.ipynb", notebook(f"{DOC}\npassword = 'Tr0ub4dor&3x'\n"))
    server.brain = lambda body, n: Fault("status", 500)
    code, out, _ = run(capsys, "docs", "update")
    assert code == 0 and len(server.requests) == MOST_FAILURES
    assert out.count("The built-in engine wrote instead.") == 2 * MOST_FAILURES + 6
    assert out.count("it failed in 3 documents in a row") > 0


@pytest.mark.spec("M8")
def test_a_dry_run_asks_the_model_and_writes_nothing(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder / "a.ipynb", notebook())
    before = path.read_bytes()
    server.brain = writes()
    code, out, _ = run(capsys, "docs", "update", "a.ipynb", "--dry-run")
    assert code == 0 and "+Reads `raw.csv` with csv" in out
    assert path.read_bytes() == before and not History(project.history).entries()


@pytest.mark.spec("M5", "S7")
def test_refused_edits_are_told_in_one_sentence_beside_what_was_done(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder / "a.ipynb", notebook())
    server.brain = good(
        edit("# MAGIC DOC: Pipeline", "# Mine"),
        edit("_Keep it short._\n", "_Keep it short._\n\nA.\n"),
    )
    code, out, _ = run(capsys, "docs", "update", "a.ipynb", "--json")
    (told,) = json.loads(out)["documents"]
    assert code == 0 and told["engine"] == "anthropic"
    (note,) = told["notes"]
    assert note.startswith("of the model's calls 1 were refused: The heading")
    assert text_of(path) == DOC + "\nA.\n"
    path = written(folder / "b.ipynb", notebook())
    server.brain = hostile([edit("# MAGIC DOC: Pipeline", "# Mine")])
    code, out, _ = run(capsys, "docs", "update", "b.ipynb")
    assert "each of its edits was refused" in out and BEGIN in text_of(path)


@pytest.mark.spec("M5", "M9")
def test_what_a_model_wrote_stays_as_it_is_without_one_while_it_is_true(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder / "a.ipynb", notebook())
    server.brain = writes()
    run(capsys, "docs", "update", "a.ipynb")
    before = path.read_bytes()
    code, out, _ = run(capsys, "docs", "update", "a.ipynb", "--engine", "extractive")
    assert code == 0 and "1 living document is up to date." in out
    assert path.read_bytes() == before


@pytest.mark.spec("M5", "M9")
def test_a_cell_that_is_gone_and_is_still_named_is_told(
    project: Project, server: ModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder / "a.ipynb", notebook())
    server.brain = writes()
    run(capsys, "docs", "update", "a.ipynb")
    changed(path, lambda cells: cells.pop(1))
    server.brain = lambda body, number: "Nothing to mend."
    code, out, _ = run(capsys, "docs", "update", "a.ipynb")
    assert code == 0 and "it still names [code 2], and there is no such cell" in out


@pytest.mark.worker
@pytest.mark.spec("M8", "L4")
def test_ctrl_c_ends_it_at_once_and_leaves_nothing_behind(
    project: Project, server: ModelServer, folder: Path
) -> None:
    path = written(folder / "a.ipynb", notebook())
    before = path.read_bytes()
    server.brain = lambda body, number: Fault("hang")
    argv = [sys.executable, "-m", "ipymemory", "docs", "update", "a.ipynb"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    process = subprocess.Popen(argv, cwd=folder, env=env, stderr=subprocess.PIPE)
    end = time.monotonic() + 30
    while not server.requests:
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=10)
    assert process.returncode not in (0, None) and b"Traceback" not in said, said
    assert path.read_bytes() == before
    assert not list(project.folder.glob("document-*"))
