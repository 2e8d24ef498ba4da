"""JSON Lines that several append to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ipymemory import lines
from ipymemory.errors import PlaceError


def test_append_and_read_on(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.jsonl"
    assert lines.read(path) == ([], 0)
    lines.append(path, {"n": 1, "text": "zwei\nZeilen ä \ud800"})
    values, offset = lines.read(path)
    assert [each["n"] for each in values] == [1]
    assert path.read_bytes().count(b"\n") == 1
    lines.append(path, {"n": 2}, sync=True)
    assert lines.read(path, offset) == ([{"n": 2}], path.stat().st_size)
    if os.name != "nt":
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_torn_line_is_skipped_and_the_next_one_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines.append(path, {"n": 1})
    with path.open("ab") as file:
        file.write(b'{"n": 2, "to')
    values, offset = lines.read(path)
    assert [each["n"] for each in values] == [1]
    lines.append(path, {"n": 3})
    assert [each["n"] for each in lines.read(path)[0]] == [1, 3]
    assert [each["n"] for each in lines.read(path, offset)[0]] == [3]
    with path.open("ab") as file:
        file.write(b'[1]\n"text"\n\xff\xfe\n\n{"n": 4}\n')
    assert [each["n"] for each in lines.read(path)[0]] == [1, 3, 4]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlaceError):
        lines.append(tmp_path / "file" / "log.jsonl", {})
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(PlaceError):
        lines.append(tmp_path / "log.jsonl", {})
    with pytest.raises(PlaceError):
        lines.read(tmp_path / "log.jsonl")


_APPENDER = """
import sys
from pathlib import Path
from ipymemory import lines
for n in range(200):
    lines.append(Path(sys.argv[1]), {"who": sys.argv[2], "n": n, "filling": "x" * 500})
"""


def test_processes_append_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    running = [
        subprocess.Popen([sys.executable, "-c", _APPENDER, str(path), str(who)]) for who in range(3)
    ]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    values, _ = lines.read(path)
    assert len(values) == 600
    for who in "012":
        assert [each["n"] for each in values if each["who"] == who] == list(range(200))
