"""Git without git: what the tool tells of real repositories, and of hostile ones."""

from __future__ import annotations

import os
import subprocess
import tracemalloc
import zlib
from pathlib import Path

import pytest
from test_fence import nothing_done
from test_reading import KEY, Tools

from ipymemory.errors import ToolError
from ipymemory.git_objects import applied


def git(*words: str, at: Path) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    command = ["git", *who, "-c", "init.defaultBranch=main", *words]
    return subprocess.run(command, cwd=at, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = Path(os.path.realpath(tmp_path)) / "project"
    (root / "src").mkdir(parents=True)
    git("init", at=root)
    for number in range(3):
        (root / "load.py").write_text("import csv\n" * 50 + f"ROUND = {number}\n")
        (root / "src" / f"part{number}.py").write_text(f"x = {number}\n")
        (root / ".env").write_text(f"ZEBRA={number}\n")
        (root / "settings.yaml").write_text(f"round: {number}\napi_key: {KEY}{number}\n")
        git("add", "-A", at=root)
        git("commit", "-m", f"Round {number}\n\nand more of it", at=root)
    return root


@pytest.mark.spec("E6")
@pytest.mark.parametrize("packed", [False, True])
def test_log_show_diff_and_status_tell_what_git_would(root: Path, packed: bool) -> None:
    if packed:
        git("gc", "--aggressive", at=root)
        git("pack-refs", "--all", at=root)
    (root / "load.py").write_text("import csv\n" * 50 + "ROUND = 7\n")
    (root / "src" / "part0.py").unlink()
    (root / "new.py").write_text("x = 1\n")
    (root / "staged.py").write_text("x = 1\n")
    git("add", "staged.py", at=root)
    short = git("log", "--format=%h", at=root).split()
    tools = Tools(root)
    with nothing_done():
        log = tools("Git", command="log").splitlines()
        assert [each.rpartition(": ")[2] for each in log] == ["Round 2", "Round 1", "Round 0"]
        assert all("Ada" in each and "@" not in each for each in log)
        assert [each[:7] for each in log] == [each[:7] for each in short]
        assert len(tools("Git", "src/part1.py", command="log").splitlines()) == 1
        shown = tools("Git", command="show", revision="HEAD~1")
        assert "and more of it" in shown and "-ROUND = 0\n+ROUND = 1" in shown
        assert "new src/part1.py" in shown and "more in files that no tool may read" in shown
        assert tools("Git", command="show", revision=short[1]) == shown
        assert tools("Git", command="show", revision="main^") == shown
        diff = tools("Git", command="diff")
        assert "-ROUND = 2\n+ROUND = 7" in diff and "deleted src/part0.py" in diff
        assert "new.py" not in diff
        between = tools("Git", "load.py", command="diff", revision="HEAD~2..HEAD")
        assert "-ROUND = 0\n+ROUND = 2" in between and "part" not in between
        status = tools("Git", command="status").splitlines()
        assert status == [
            "On main.",
            "to commit: new staged.py",
            "not staged: changed load.py",
            "not staged: gone src/part0.py",
            "not tracked: new.py",
        ]
        every = "".join((*log, shown, diff, between, *status))
    assert "ZEBRA" not in every and KEY not in every


@pytest.mark.spec("E6", "L7")
def test_what_is_private_stays_so_in_every_commit(root: Path) -> None:
    tools = Tools(root)
    blob = git("rev-parse", "HEAD:.env", at=root).strip()
    tree = git("rev-parse", "HEAD^{tree}", at=root).strip()
    with nothing_done():
        for given in (
            {"command": "show", "path": ".env"},
            {"command": "diff", "path": ".env", "revision": "HEAD~1..HEAD"},
            {"command": "show", "revision": blob},
            {"command": "show", "revision": tree},
            {"command": "show", "revision": "HEAD:.env"},
            {"command": "show", "revision": "../../x"},
            {"command": "show", "revision": "config"},
            {"command": "show", "revision": "@{-1}"},
            {"command": "show", "revision": "--ext-diff"},
            {"command": "show", "revision": "HEAD~9999"},
            {"command": "show", "revision": "x" * 10_000},
            {"command": "push"},
            {"command": "log", "path": ".."},
            {"command": "log", "path": ".git"},
        ):
            with pytest.raises(ToolError, match="Allowed here") as raised:
                tools("Git", **given)
            assert "ZEBRA" not in str(raised.value)
        assert KEY not in tools("Git", "settings.yaml", command="show")


@pytest.mark.spec("E6")
def test_a_repository_that_runs_programs_runs_none(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    names = ("core.fsmonitor", "core.pager", "diff.external", "filter.x.clean", "diff.x.textconv")
    for name in (*names, "core.sshCommand", "core.hooksPath", "log.showSignature"):
        git("config", name, str(program), at=root)
    with (root / ".git" / "config").open("a") as config:
        config.write(f"[include]\npath = {program}\n")
    (root / ".gitattributes").write_text("*.py filter=x diff=x\n")
    (root / ".git" / "hooks" / "post-index-change").write_bytes(program.read_bytes())
    (root / "load.py").write_text("x\n")
    tools = Tools(root)
    with nothing_done():
        for command in ("log", "show", "diff", "status"):
            assert tools("Git", command=command)
    assert not (tmp_path / "ran").exists()


@pytest.mark.spec("E6", "L6")
def test_a_repository_elsewhere_is_not_read(root: Path, tmp_path: Path) -> None:
    other = root.parent / "sent"
    other.mkdir()
    cases = (f"gitdir: {root / '.git'}", f"gitdir: {root / '.git' / 'worktrees' / 'gone'}")
    for text in cases:
        (other / ".git").write_text(text)
        with pytest.raises(ToolError, match="no git repository of its own"):
            Tools(other)("Git", command="log")
    (other / ".git").unlink()
    (other / ".git").symlink_to(root / ".git")
    with pytest.raises(ToolError, match="no git repository of its own"):
        Tools(other)("Git", command="log")
    (other / ".git").unlink()
    git("worktree", "add", str(root.parent / "linked"), at=root)
    assert "Round 2" in Tools(root.parent / "linked")("Git", command="log")
    # A copy of the linked tree's mark names a repository that does not know the copy.
    (other / ".git").write_text((root.parent / "linked" / ".git").read_text())
    with pytest.raises(ToolError, match="no git repository of its own"):
        Tools(other)("Git", command="log")


@pytest.mark.spec("E6")
def test_objects_that_swell_or_are_damaged_are_refused(root: Path) -> None:
    name = git("rev-parse", "HEAD", at=root).strip()
    path = root / ".git" / "objects" / name[:2] / name[2:]
    bomb = zlib.compress(b"commit 2000000000\0" + b"x" * 40_000_000, 9)
    small = zlib.compress(b"commit 5\0" + b"x" * 40_000_000, 9)
    for data in (bomb, small, zlib.compress(b"commit 5\0abc"), b"rubbish", b"", bomb[:50]):
        path.unlink()
        path.write_bytes(data)
        tracemalloc.start()
        with pytest.raises(ToolError, match=r"damaged|larger"):
            Tools(root)("Git", command="log")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
        tracemalloc.stop()
    path.unlink()
    path.symlink_to(root / ".env")
    with pytest.raises(ToolError, match="no object"):
        Tools(root)("Git", command="log")
    for delta in (b"", b"\x03\x03\x91", b"\x03\x7f\x03abc", b"\x02\x03\x03abc", b"\x03\x03\x00"):
        with pytest.raises((ValueError, IndexError)):
            applied(b"abc", delta)
    assert applied(b"abc", b"\x03\x05\x90\x03\x02de") == b"abcde"
