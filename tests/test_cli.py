"""The command line: the same commands, exit codes, JSON, and nothing taken from the folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ipymemory
from ipymemory import cli
from ipymemory.commands.table import COMMANDS

TOP = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a home of its own and an empty Jupyter config path."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("IPYMEMORY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path / "system"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return work


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    code = cli.main(line.split())
    said = capsys.readouterr()
    return code, said.out, said.err


def notebook(folder: Path) -> Path:
    path = folder / "counts.ipynb"
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Counting bicycles"},
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {},
            "execution_count": 3,
            "source": "total = 812\nprint('total', total)",
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "total 812\n"}],
        },
    ]
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    )
    return path


def test_notes_of_a_notebook_file_go_to_stdout(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, f"notes {notebook(folder)}")
    assert (code, err) == (0, "")
    assert out.startswith("# Session Title\n")
    assert "Counting bicycles" in out
    assert "812" in out
    code, out, _ = run(capsys, "notes counts.ipynb --section session --json")
    assert code == 0
    assert json.loads(out)["sections"][0]["name"] == "Session Title"
    assert not (folder.parent / "home").exists(), "reading a file leaves nothing behind"


@pytest.mark.parametrize("text", ["", "{}", "not json", "[1, 2]", '{"cells": 3}'])
def test_a_file_that_is_no_notebook_gets_one_sentence_and_exit_2(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = folder / "no.ipynb"
    path.write_text(text)
    code, out, err = run(capsys, f"notes {path}")
    assert (code, out) == (2, "")
    assert err.startswith("ipymemory: ")
    assert str(path) in err or path.name in err
    assert err.count("\n") == 1
    assert path.read_text() == text


def test_a_missing_file_gets_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "notes nowhere.ipynb")
    assert code == 2
    assert "nowhere.ipynb" in err


@pytest.mark.spec("S9")
def test_a_template_without_a_section_gets_one_sentence_and_the_default(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = folder.parent / "home" / "config" / "session-notes" / "template.md"
    template.parent.mkdir(parents=True)
    template.write_text("only prose\n")
    code, out, err = run(capsys, f"notes {notebook(folder)}")
    assert code == 0
    assert out.startswith("# Session Title\n")
    assert err.count("\n") == 1
    assert f"{template} has no section" in err
    assert template.read_text() == "only prose\n"


def test_a_typo_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "stauts")
    assert (code, out) == (2, "")
    assert "Did you mean ipymemory status?" in err


def test_what_only_a_notebook_has_is_sent_there(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "pause")
    assert code == 2
    assert "type %memory pause there" in err


@pytest.mark.parametrize("line", ["preview --help", "preview -h", "help preview"])
def test_help_of_what_only_a_notebook_has_is_there_too(
    capsys: pytest.CaptureFixture[str], line: str
) -> None:
    code, _, err = run(capsys, line)
    assert code == 2 and "type %memory help preview there" in err


@pytest.mark.parametrize("line", ["", "help", "--help", "-h"])
def test_help_lists_every_command(capsys: pytest.CaptureFixture[str], line: str) -> None:
    code, out, _ = run(capsys, line)
    assert code == 0
    for name in cli.line_commands():
        assert f"ipymemory {name} " in out


@pytest.mark.parametrize("line", ["help notes", "notes --help", "notes -h"])
def test_help_of_one(capsys: pytest.CaptureFixture[str], line: str) -> None:
    code, out, _ = run(capsys, line)
    assert code == 0
    assert out.startswith("ipymemory notes [NOTEBOOK] [--section NAME] [--now] [--json]\n")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"ipymemory {ipymemory.__version__}\n", "")


FINDING = {"list", "show", "recall", "forget", "ingest"}
"""Commands whose exit code says that nothing was found, or not all (interface.md)."""


def test_every_listing_has_json(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in cli.line_commands().items():
        if any(each.name == "--json" for each in command.arguments):
            needs = "dates " if any(each.required for each in command.arguments) else ""
            code, out, _ = run(capsys, f"{name} {needs}--json")
            assert code in ((0, 1) if name in FINDING else (0,)), name
            json.loads(out)
    for name in ("status", "notes", "history", "diff", "doctor", "list", "recall"):
        assert any(each.name == "--json" for each in COMMANDS[name].arguments)


@pytest.mark.spec("S4")
def test_settings_come_from_jupyters_config_path(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("jupyter", "system"):
        (folder.parent / name).mkdir()
    # Jupyter lets the environment's path go first, then the user's folder, then the system's.
    (folder.parent / "jupyter" / "ipymemory_config.py").write_text(
        "c.Memory.mode = 'read'\nc.Memory.keep_days = 7\n"
    )
    (folder.parent / "system" / "ipymemory_config.json").write_text(
        '{"Memory": {"mode": "confirm"}}'
    )
    _, out, _ = run(capsys, "status --json")
    data = json.loads(out)
    assert (data["mode"], data["kept"]["keep_days"]) == ("confirm", 7)


@pytest.mark.spec("L13")
def test_no_setting_is_taken_from_the_current_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "ipymemory_config.py").write_text("raise SystemExit('ran')\n")
    (folder / "ipymemory_config.json").write_text('{"Memory": {"mode": "off"}}')
    code, out, _ = run(capsys, "status --json")
    assert code == 0
    assert json.loads(out)["mode"] == "auto"


def test_a_wrong_setting_is_said_and_its_default_used(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.parent / "jupyter").mkdir()
    config = folder.parent / "jupyter" / "ipymemory_config.py"
    config.write_text("c.Memory.keep_days = 0\n")
    code, out, err = run(capsys, "status --json")
    assert code == 0
    assert json.loads(out)["kept"]["keep_days"] == 400
    assert err == (
        "ipymemory: Memory.keep_days must be a whole number from 1 up, not 0. "
        f"It is 400 until you mend {config}.\n"
    )
    sentence = err.removeprefix("ipymemory: ").rstrip("\n")
    assert json.loads(out)["problems"] == [sentence]
    for command in ("status", "doctor"):
        _, out, err = run(capsys, command)
        assert out.count(sentence) == 1
        assert err == ""


def test_the_hook_can_be_installed_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "install-kernel-hook")[0] == 0
    assert "there already" in run(capsys, "install-kernel-hook")[1]
    assert "The hook is gone" in run(capsys, "uninstall-kernel-hook")[1]
    assert "There was no hook" in run(capsys, "uninstall-kernel-hook")[1]


def program(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ipymemory", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TOP), **environment},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.spec("L13")
def test_the_program_imports_nothing_from_the_current_folder(folder: Path) -> None:
    for name in ("json", "difflib", "traitlets", "psutil", "filelock"):
        (folder / f"{name}.py").write_text("raise SystemExit('imported from the folder')\n")
    done = program(folder, "status", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["project"] == str(folder.resolve())


def test_the_program_starts_without_ipython(folder: Path) -> None:
    code = (
        "import sys; from ipymemory.cli import main; code = main(['status']); "
        "print(code, {'IPython', 'ipykernel', 'nbformat', 'asyncio'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TOP)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("\n0 set()\n")


def test_a_screen_that_knows_no_such_letter_gets_an_escape(folder: Path) -> None:
    path = notebook(folder)
    path.write_text(path.read_text().replace("bicycles", "\\u81ea\\u8ee2\\u8eca"))
    done = program(folder, "notes", str(path), PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "\\u81ea" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_failure(folder: Path) -> None:
    path = notebook(folder)
    with subprocess.Popen(
        [sys.executable, "-m", "ipymemory", "notes", str(path)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TOP)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
