"""Ids sort by time whatever the clock does; the meter rounds up."""

from __future__ import annotations

import os
import time

import pytest

from ipymemory.turns import Turn, new_id, tokens


def test_ids_sort_in_the_order_in_which_they_were_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [new_id() for _ in range(3000)]
    monkeypatch.setattr(time, "time_ns", lambda: 1)  # the clock is set back
    ids += [new_id() for _ in range(10)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert all(len(id) == 24 and int(id, 16) for id in ids)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_does_not_go_on_with_its_parents_ids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 2**60)
    new_id()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, new_id().encode())
        os._exit(0)
    os.waitpid(pid, 0)
    theirs = os.read(read, 100).decode()
    os.close(read)
    os.close(write)
    assert theirs != new_id()


@pytest.mark.parametrize(
    ("text", "factor", "count"),
    [("", 1.0, 0), ("a", 1.0, 1), ("abc", 1.0, 1), ("abcd", 1.0, 2), ("日期", 1.0, 2),
     ("abc" * 100, 1.5, 150), ("\ud800", 1.0, 1)],
)  # fmt: skip
def test_a_token_is_three_bytes_rounded_up(text: str, factor: float, count: int) -> None:
    assert tokens(text, factor) == count


def test_a_turn_is_called_by_its_count() -> None:
    assert Turn("1", "", "x", execution_count=7).label == "[7]"
    assert Turn("1", "", "x").label == "[*]"
