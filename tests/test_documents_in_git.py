"""The way of a team: a check that fails in CI, an update, a check that passes; in processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import six_notebooks
import yaml

TOP = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git project with two notebooks and a file of their own, all headed MAGIC DOC."""
    folder = tmp_path / "project"
    (folder / "notebooks").mkdir(parents=True)
    git(folder, "init", "-q")
    for name in ("cleaning", "api"):
        text = json.dumps(six_notebooks.ALL[name], indent=1, ensure_ascii=False)
        (folder / "notebooks" / f"{name}.ipynb").write_text(f"{text}\n", "utf-8")
    (folder / "OVERVIEW.md").write_text("# MAGIC DOC: Overview\n\nWhat we do here.\n")
    (folder / "README.md").write_text("# A project\n")
    commit(folder)
    return folder


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false"]
    ran = subprocess.run(
        ["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return ran.stdout


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "as it is")


def ipymemory(
    folder: Path, *words: str, home: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("IPYMEMORY")}
    given = {"PYTHONPATH": str(TOP), "IPYMEMORY_HOME": home or str(folder.parent / "home")}
    return subprocess.run(
        [sys.executable, "-m", "ipymemory", *words],
        cwd=folder,
        env={**kept, **given, "PYTHONUTF8": "1", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def changed(folder: Path) -> list[str]:
    return [each[3:] for each in git(folder, "status", "--porcelain").splitlines()]


@pytest.mark.spec("M9", "M8")
def test_check_fails_update_writes_check_passes(project: Path) -> None:
    # a check wants no home folder, and makes none
    ran = ipymemory(project, "docs", "check", home="/nowhere/at/all\x1b")
    assert ran.returncode == 1 and ran.stderr == ""
    assert ran.stdout.count("it has not been written yet") == 3
    assert not (project.parent / "home").exists()
    ran = ipymemory(project, "docs", "update", ".")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "3 living documents written anew." in ran.stdout
    assert changed(project) == [
        "OVERVIEW.md",
        "notebooks/api.ipynb",
        "notebooks/cleaning.ipynb",
    ]
    # of a notebook the document's cell alone: nothing that it held is removed but its text
    removed = [
        each
        for each in git(project, "diff", "-U0", "notebooks").splitlines()
        if each.startswith("-") and not each.startswith("---")
    ]
    assert len(removed) == 4 and all("source" in each or "metadata" in each for each in removed)
    ran = ipymemory(project, "docs", "check")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "3 living documents in 4 files: all are up to date.\n"
    commit(project)
    # a comment, blank lines and another indent are nothing; a step is
    cleaning = project / "notebooks" / "cleaning.ipynb"
    text = cleaning.read_text("utf-8")
    cleaning.write_text(
        text.replace("MAX_GAP = 3  # hours", "MAX_GAP=3  # hours, at most"), "utf-8"
    )
    assert ipymemory(project, "docs", "check").returncode == 0
    cleaning.write_text(text.replace("MAX_GAP = 3", "MAX_GAP = 5"), "utf-8")
    ran = ipymemory(project, "docs", "check")
    assert ran.returncode == 1
    assert ran.stdout.splitlines()[:2] == [
        '- OVERVIEW.md: "Overview" is stale: [code 1] of notebooks/cleaning.ipynb has changed',
        '- notebooks/cleaning.ipynb: "How the tide data gets clean" is stale: [code 1] has changed',
    ]
    assert ipymemory(project, "docs", "update").returncode == 0
    assert "`MAX_GAP` = `5`" in cleaning.read_text("utf-8")
    assert ipymemory(project, "docs", "check").returncode == 0
    # renamed, it is another file
    git(project, "mv", "notebooks/api.ipynb", "notebooks/issues.ipynb")
    ran = ipymemory(project, "docs", "check", "notebooks", "OVERVIEW.md")
    assert ran.returncode == 1
    assert "the file was called api.ipynb when it was written" in ran.stdout
    assert "notebooks/api.ipynb is gone or was renamed; notebooks/issues.ipynb is new" in ran.stdout


@pytest.mark.spec("M9")
def test_json_and_annotations_say_the_same(project: Path) -> None:
    # below what OVERVIEW.md rests on, which could not be told either
    broken = project / "notebooks" / "old" / "broken.ipynb"
    broken.parent.mkdir()
    broken.write_text('{"cells": [ "MAGIC DOC')
    ran = ipymemory(project, "docs", "check", "--format", "github", CI="true")
    lines = ran.stdout.splitlines()
    assert (ran.returncode, ran.stderr, len(lines)) == (2, "", 4)
    assert lines[0].startswith("::error file=notebooks/old/broken.ipynb,title=living document::")
    assert lines[1] == (
        '::warning file=OVERVIEW.md,title=living document::"Overview" is stale: '
        "it has not been written yet"
    )
    ran = ipymemory(project, "docs", "check", "--json")
    told = json.loads(ran.stdout)
    assert ran.returncode == 2
    assert [each["path"] for each in told["problems"]] == ["notebooks/old/broken.ipynb"]
    assert [each["path"] for each in told["documents"] if each["stale"]] == [
        "OVERVIEW.md",
        "notebooks/api.ipynb",
        "notebooks/cleaning.ipynb",
    ]
    broken.unlink()
    assert ipymemory(project, "docs", "update", "--json").returncode == 0
    ran = ipymemory(project, "docs", "check", "--format", "github")
    assert (ran.returncode, ran.stdout.strip()) == (0, "")
    told = json.loads(ipymemory(project, "docs", "check", "--format", "json").stdout)
    assert all(each["updated"] and not each["reasons"] for each in told["documents"])
    # below a folder a path is named as it is seen from there
    told = json.loads(ipymemory(project / "notebooks", "docs", "check", "--json").stdout)
    assert [each["path"] for each in told["documents"]] == ["api.ipynb", "cleaning.ipynb"]


@pytest.mark.spec("M9")
def test_the_hook_does_before_a_commit_what_it_says(project: Path) -> None:
    (hook,) = yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text("utf-8"))
    program, *words = hook["entry"].split()
    assert program == "ipymemory" and hook["pass_filenames"] is False
    assert hook["language"] == "python"
    script = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert script[program] == "ipymemory.cli:main"
    assert ipymemory(project, *words).returncode == 1
    assert ipymemory(project, "docs", "update").returncode == 0
    before = changed(project)
    ran = ipymemory(project, *words, PRE_COMMIT="1")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert changed(project) == before, "a check writes nothing"


@pytest.mark.spec("M8", "L8")
def test_undo_brings_the_bytes_back_that_git_has(project: Path) -> None:
    assert ipymemory(project, "docs", "update").returncode == 0
    for _ in range(3):
        assert ipymemory(project, "undo").returncode == 0
    assert changed(project) == []
