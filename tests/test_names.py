"""Which names a cell bound: found in its text and in the namespace, touching no object."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ipymemory.names import MOST_SOURCE, Names


def run(source: str, namespace: dict[str, Any], names: Names | None = None) -> list[str]:
    """Run a cell as IPython would; return the names it bound, by what `Names` tells."""
    if names is None:
        names = Names(40, 50)
        names.start(namespace)
    with contextlib.suppress(ZeroDivisionError):
        exec(source, namespace)
    namespace.pop("__builtins__", None)
    return [each.name for each in names.bound(source, namespace)]


def fresh() -> dict[str, Any]:
    return {"x": 1, "y": 2, "z": contextlib.nullcontext, "sep": ",", "total": 0.0, "Frame": int}


@pytest.mark.parametrize(
    ("source", "bound"),
    [
        ("x = 10", ["x"]),
        ("x == 1", []),
        ("print(x <= 1, x != 2)", []),
        ("x: int = 10", ["x"]),
        ("x, *y = 10, 20", ["x", "y"]),
        ("x = y = 7", ["x", "y"]),
        ("x += 1", ["x"]),
        ("x = 5; y = 6", ["x", "y"]),
        ("if (x := 10): pass", ["x"]),
        ("for x, y in [(7, 8)]: pass", ["x", "y"]),
        ("with z(1) as x, z(2) as y:\n    pass", ["x", "y"]),
        ("with z(1):\n    pass", []),
        ("def x(y): return z", ["x"]),
        ("async def x(y): return z", ["x"]),
        ("class x(z): pass", ["x"]),
        ("y = 3\ndef f(): pass\nx = 4", ["y", "f", "x"]),
        ("_hidden = 1\nnew = 2", ["new"]),
        ("exec('made = 1')", ["made"]),
        ("import json\nfrom json import dumps", ["dumps"]),
        ("x = 1 / 0", ["x"]),
        ("gone = 1\ndel gone", []),
        ("", []),
    ],
)
def test_a_name_is_bound_by_what_binds_it(source: str, bound: list[str]) -> None:
    assert run(source, fresh()) == bound


@pytest.mark.parametrize(
    "source",
    [
        "print(\n    1,\n    sep=';',\n)",
        "f = print\nf(1,\n  sep=';')",
        "def f():\n    total = 5.0\n    return total",
        "class K:\n    x = 5\n    def m(self, sep=','):\n        y = 6",
        "f = dict(x=y, y=x)",
    ],
)
def test_local_names_and_keyword_arguments_are_none(source: str) -> None:
    assert set(run(source, fresh())) <= {"f", "K"}


def test_what_a_loop_binds_counts() -> None:
    source = "for i in range(3):\n    total = total + i\n    if i:\n        y = i"
    assert run(source, fresh()) == ["i", "total", "y"]


def test_what_is_told_is_what_the_cell_bound_and_no_more() -> None:
    namespace, names = fresh(), Names(40, 50)
    names.start(namespace)
    assert run("a = 1", namespace, names) == ["a"]
    assert run("b = 2", namespace, names) == ["b"]
    names.start(namespace)
    namespace["private"] = 3
    names.start(namespace)
    assert run("c = 3", namespace, names) == ["c"]
    namespace.clear()
    assert run("from math import *", namespace, names)[:2] != []
    assert run("a = 2", namespace, names) == ["a"]


def test_names_that_come_again_after_a_reset_are_new() -> None:
    namespace, names = fresh(), Names(40, 50)
    names.start(namespace)
    run("exec('made = 1')", namespace, names)
    namespace.clear()
    assert names.bound("%reset -f", namespace) == []
    assert run("exec('made = 1')", namespace, names) == ["made"]


def test_no_more_than_asked_for() -> None:
    namespace, names = fresh(), Names(7, 50)
    names.start(namespace)
    source = "\n".join(f"n{i} = {i}" for i in range(100))
    exec(source, namespace)
    del namespace["__builtins__"]
    assert len(names.bound(source, namespace)) == 7
    assert names.bound("pass", namespace) == [], "what went over the limit is not the next cell's"
    assert [
        each.name for each in names.bound("x = 1" + " " * MOST_SOURCE + "\ny = 1", namespace)
    ] == ["x"]


def told(value: object, columns: int = 50) -> tuple[str, str, tuple[str, ...]]:
    (found,) = Names(10, columns).bound("name = 1", {"name": value})
    return found.type, found.shape, found.columns


def test_type_shape_and_columns() -> None:
    frame = pd.DataFrame({"a": range(1200), "b": 0, 3: 1})
    assert told(frame) == ("DataFrame", "1,200 x 3", ("a", "b", "3"))
    assert told(frame, columns=1) == ("DataFrame", "1,200 x 3", ("a",))
    assert told(frame, columns=0) == ("DataFrame", "1,200 x 3", ())
    assert told(frame["a"]) == ("Series", "1,200", ())
    assert told(np.ones((3, 4))) == ("ndarray", "3 x 4", ())
    assert told(np.float64(1)) == ("float64", "", ())
    assert told([1] * 2000) == ("list", "2,000", ())
    assert told("four") == ("str", "4", ())
    assert told(1) == ("int", "", ())
    assert told(None) == ("NoneType", "", ())
    (found,) = Names(10, 50).bound("df = 1", {"df": frame})
    assert found.as_dict() == {
        "name": "df", "type": "DataFrame", "shape": "1,200 x 3", "columns": ["a", "b", "3"],
    }  # fmt: skip


touched: list[str] = []
"""What our look at a hostile object asked it for."""


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        touched.append(f"class {name}")
        return super().__getattribute__(name)


class DataFrame(metaclass=Meta):
    """Somebody's own class with a well-known name, which notes what it is asked for."""

    def __getattribute__(self, name: str) -> Any:
        touched.append(name)
        return super().__getattribute__(name)

    def __len__(self) -> int:
        touched.append("len")
        return 1

    def __repr__(self) -> str:
        touched.append("repr")
        return ""


class Long(list[int]):
    def __len__(self) -> int:
        touched.append("len")
        return 1


@pytest.mark.spec("L2", "L3")
def test_no_code_of_the_users_runs() -> None:
    namespace: dict[Any, Any] = {"a": DataFrame(), "b": Long(), "c": DataFrame, 5: 1}
    names = Names(40, 50)
    names.start({})
    touched.clear()
    found = names.bound("a = b = c = d = 1", namespace)
    asked = list(touched)
    assert asked == []
    assert [(each.name, each.type, each.shape) for each in found] == [
        ("a", "DataFrame", ""), ("b", "Long", ""), ("c", "Meta", ""),
    ]  # fmt: skip


def test_a_frame_whose_shape_fails_is_told_by_its_type() -> None:
    class Broken(pd.DataFrame):
        __module__ = "pandas.broken"

        @property
        def shape(self) -> Any:
            raise RuntimeError("no")

    assert told(Broken({"a": [1]}))[:2] == ("Broken", "")


def test_no_object_is_held() -> None:
    namespace: dict[str, Any] = {}
    names = Names(40, 50)
    names.start(namespace)
    namespace["big"] = big = Long()
    before = sys.getrefcount(big)
    found = names.bound("big = load()", namespace)
    assert found
    assert sys.getrefcount(big) == before


@pytest.mark.spec("L2")
@pytest.mark.parametrize("odd", ["", "\ud800", "a\x1b[2J\nb", "k" * 1_000_000])
def test_a_key_that_is_no_name_is_not_told_and_hides_none(odd: str) -> None:
    namespace: dict[str, Any] = {}
    names = Names(40, 50)
    names.start(namespace)
    namespace.update({odd: 1, "found": 2})
    assert [each.name for each in names.bound("vars().update(more)", namespace)] == ["found"]


@pytest.mark.spec("L2", "L3")
def test_a_key_of_a_class_of_the_users_runs_no_code() -> None:
    class Key(str):
        __hash__ = str.__hash__

        def __getitem__(self, place: Any) -> Any:
            raise SystemExit("user code")

    namespace: dict[str, Any] = {}
    names = Names(40, 50)
    names.start(namespace)
    namespace[Key("odd")] = 1
    namespace["found"] = 2
    assert [each.name for each in names.bound("found = 2", namespace)] == ["found"]
