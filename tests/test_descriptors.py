"""Code of the user's that puts something else in the place of a call of ``os``."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from unittest import mock

import pytest

from ipymemory import lines, processes
from ipymemory.pipes import End
from ipymemory.problems import Problems


@pytest.mark.spec("L2")
@pytest.mark.parametrize("effect", [ZeroDivisionError("of a test"), None])
def test_what_is_ours_goes_on_and_is_not_seen_by_a_mock(
    effect: Exception | None, tmp_path: Path
) -> None:
    pipe = os.pipe()
    log, problems = tmp_path / "usage.jsonl", Problems()
    problems.file = tmp_path / "kernel.log"
    me = processes.own()
    mocks = {
        name: mock.Mock(side_effect=effect)
        for name in ("write", "read", "open", "close", "fstat", "lseek")
    }
    with mock.patch.multiple(os, **mocks):
        lives = processes.alive(me)
        source, out = map(End, pipe)
        sent, came = out.write(b'{"type": "turn"}\n'), source.read()
        out.close()
        rest = source.read()
        source.close()
        lines.append(log, {"n": 1})
        lines.append(log, {"n": 2})
        problems.emit(logging.makeLogRecord({"msg": "it broke", "levelname": "WARNING"}))
        called = {name: list(each.mock_calls) for name, each in mocks.items() if each.called}
    assert not called
    assert lives
    assert (sent, came, rest) == (True, b'{"type": "turn"}\n', b"")
    assert [each["n"] for each in lines.read(log)[0]] == [1, 2]
    assert "it broke" in problems.file.read_text()
