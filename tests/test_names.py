"""Which names a cell bound, found in its text and in the namespace."""

from __future__ import annotations

import pytest

from ipymemory.names import Names


@pytest.mark.parametrize(
    ("source", "bound"),
    [
        ("x = 1", ["x"]),
        ("x == 1", []),
        ("x: int = 1", ["x"]),
        ("x, *y = 1, 2", ["x", "y"]),
        ("x = y = 0", ["x", "y"]),
        ("x += 1", ["x"]),
        ("if (x := 1): pass", ["x"]),
        ("for x, y in z: pass", ["x", "y"]),
        ("with z(1) as x, z(2) as y:\n    pass", ["x", "y"]),
        ("with z(1):\n    pass", []),
        ("async with z(1) as x:\n    pass", ["x"]),
        ("def x(y): return z", ["x"]),
        ("class x(y): pass", ["x"]),
    ],
)
def test_a_name_is_bound_by_what_binds_it(source: str, bound: list[str]) -> None:
    namespace: dict[str, object] = {"x": 1, "y": 2, "z": open}
    names = Names(40, 50)
    names.start(namespace)
    assert [each.name for each in names.bound(source, namespace)] == bound


def test_a_new_name_counts_however_it_came() -> None:
    namespace: dict[str, object] = {"x": 1}
    names = Names(40, 50)
    names.start(namespace)
    namespace["made_by_exec"] = [1, 2]
    (found,) = names.bound("exec(text)", namespace)
    assert (found.name, found.type, found.shape) == ("made_by_exec", "list", "2")


def test_what_went_over_the_limit_is_not_taken_for_the_next_cells() -> None:
    namespace: dict[str, object] = {}
    names = Names(2, 50)
    names.start(namespace)
    namespace.update({"a": 1, "b": 2, "c": 3})
    assert [each.name for each in names.bound("a, b, c = 1, 2, 3", namespace)] == ["a", "b"]
    assert names.bound("pass", namespace) == []
