"""Which names a cell bound, with type and shape: a look at the namespace that touches nothing.

It runs on the main thread after every cell, so it parses nothing: patterns find the names that
the source seems to bind, and the end of the namespace shows those that are new. Only types whose
shape is known to be a plain number are asked for it; no ``repr``, no method of the user's.

A line that is indented below a ``def`` or a bracket may bind a local name, or be a keyword
argument. There a name counts if it holds another object than when it was last seen; that is told
by the object's number, so that no object of the user's is held.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

MOST_SOURCE = 16 * 1024
"""Characters of a source that are searched for names: a longer cell is data."""

_LONGEST_NAME = 200
"""Characters of a name that was made by code: of anything longer it is not told."""

_MOST_NEW = 200
"""Names at the end of the namespace that are looked at."""

_NAME = r"[^\W\d]\w*"
_TARGETS = (
    rf"([ \t]*)(\*?{_NAME}(?:[ \t]*,[ \t]*\*?{_NAME})*),?[ \t]*(?::[^=\n]+)?"
    r"(?:[-+*/|&^%@]|//|\*\*|<<|>>)?=(?!=)"
)
_ASSIGNED = re.compile(rf"\n{_TARGETS}")
"""Begins with a literal, which is found in a third of the time that ``^`` takes."""

_BESIDE = re.compile(rf";{_TARGETS}")
_FUNCTION = re.compile(rf"^([ \t]*)(?:async[ \t]+)?def[ \t]+({_NAME})", re.MULTILINE)
_CLASS = re.compile(rf"^([ \t]*)class[ \t]+({_NAME})", re.MULTILINE)
_LOOPED = re.compile(r"^([ \t]*)(?:async[ \t]+)?for[ \t]+([^\n:]*?)[ \t]+in\b", re.MULTILINE)
_WITH = re.compile(rf"()\bas[ \t]+({_NAME})(?=[ \t]*[,:)])")
_WALRUS = re.compile(rf"()\b({_NAME})[ \t]*:=")
_CHAINED = re.compile(rf"()=[ \t]*({_NAME})[ \t]*=(?!=)")
"""The middle of ``x = y = 0``; never sure, since ``f(a=b, c=d)`` comes close."""

_OTHERS = (
    ("def ", _FUNCTION),
    ("class ", _CLASS),
    ("for ", _LOOPED),
    ("with ", _WITH),
    (":=", _WALRUS),
    (";", _BESIDE),
)
_INNER = re.compile(r"\b(?:def|class)[ \t]|[(\[{,\\][ \t]*(?:#[^\n]*)?$", re.MULTILINE)
"""What makes an indented line more than a part of a loop or a condition."""

_WORD = re.compile(_NAME)

_SHAPED = frozenset(
    (
        "numpy", "pandas", "polars", "torch", "jax", "jaxlib", "tensorflow", "xarray", "scipy",
        "pyarrow", "cupy", "modin", "geopandas", "dask",
    )
)  # fmt: skip
_SIZED = frozenset(["list", "tuple", "dict", "set", "frozenset", "str", "bytes", "bytearray"])
_PLAIN = {
    id(each): each.__name__
    for each in (
        list, tuple, dict, set, frozenset, str, bytes, bytearray, int, float, bool, complex,
        type(None), FunctionType, type,
    )
}  # fmt: skip
"""Builtin types by identity: comparing a type may run a metaclass of the user's."""


class Snapshot(NamedTuple):
    """One name: its type, its shape such as ``1,000 x 12``, and of a frame its columns.

    A tuple, which is made in a third of the time of a frozen dataclass.
    """

    name: str
    type: str
    shape: str
    columns: tuple[str, ...]

    def bare(self) -> Snapshot:
        """Return the name and its type alone: it may hold what a private cell returned."""
        return Snapshot(self.name, self.type, "", ())

    def as_dict(self) -> dict[str, Any]:
        """Return the name as it stands in the transcript."""
        value: dict[str, Any] = {"name": self.name, "type": self.type}
        if self.shape:
            value["shape"] = self.shape
        if self.columns:
            value["columns"] = list(self.columns)
        return value


_as_snapshot = tuple.__new__
"""Without the way through `Snapshot.__new__`, which is a function in Python."""


class Names:
    """Looks at the names of one namespace, cell by cell."""

    def __init__(self, most: int, columns: int) -> None:
        self._most = most
        self._columns = columns
        self._known: set[str] = set()
        self._size = 0
        self._numbers: dict[str, int] = {}
        """What each name held when it was last looked at, by `id`."""

    def start(self, namespace: Mapping[str, Any]) -> None:
        """Take the names that are there now for known."""
        self._known = set(namespace)
        self._size = len(self._known)
        self._numbers = {name: id(value) for name, value in tuple(namespace.items())}

    def bound(self, source: str, namespace: dict[str, Any]) -> list[Snapshot]:
        """Return the names that a cell with this source bound, in order, at most `most`."""
        names = _written(source)
        # Before the limit can end the loop: what is new now must not be new to the next cell.
        if (
            type(namespace) is not dict
            or len(namespace) != self._size
            or next(reversed(namespace), None) not in self._known
        ):
            for name in self._new(namespace):
                names[name] = True
        found: list[Snapshot] = []
        numbers, most = self._numbers, self._most
        for name, sure in names.items():
            if len(found) == most:
                break
            if name[0] == "_" or name not in namespace:
                continue
            value = namespace[name]
            number = id(value)
            if not sure and numbers.get(name) == number:
                continue
            numbers[name] = number
            plain = _PLAIN.get(id(type(value)))
            if plain is None:
                if not _is_module(value):
                    found.append(_snapshot(name, value, self._columns))
            else:
                shape = f"{len(value):,}" if plain in _SIZED else ""
                found.append(_as_snapshot(Snapshot, (name, plain, shape, ())))
        return found

    def _new(self, namespace: dict[str, Any]) -> list[str]:
        """Return names that were not there before; a namespace keeps the order of binding."""
        new = []
        if len(namespace) < self._size:
            # Names are gone, all of them after a %reset; they may come again.
            self._known.intersection_update(namespace)
            self._numbers.clear()
        self._size = len(namespace)
        try:
            for name in islice(reversed(namespace), _MOST_NEW):
                if name in self._known:
                    break
                self._known.add(name)
                new.append(name)
        except (RuntimeError, TypeError):
            # A thread of the user's binds names meanwhile; the next cell finds them.
            return []
        return [name for name in reversed(new) if _can_be_written(name)]


def _can_be_written(name: object) -> bool:
    """Return whether a cell can use a key of its namespace as a name, and we can put it on record.

    Code may put any key there: a text of a megabyte is no line of ours, and is read by nobody.
    """
    return type(name) is str and len(name) <= _LONGEST_NAME and name.isidentifier()


def _written(source: str) -> dict[str, bool]:
    """Return the names that the source may bind, in order, and whether it surely does."""
    text = f"\n{source[:MOST_SOURCE]}"
    others: list[re.Match[str]] = []
    for word, pattern in _OTHERS:
        if word in text:
            others += pattern.finditer(text)
    found: dict[str, bool] = {}
    # Most cells bind as simply as can be, and then no object is made for each place.
    pairs: list[tuple[str, str]] = [] if others else _ASSIGNED.findall(text)
    if others or text.count("=") > len(pairs):
        others += _CHAINED.finditer(text)
    if not others:
        for indent, targets in pairs:
            if indent or not targets.isidentifier():
                break
            found[targets] = True
        else:
            return found
    bindings: Iterable[tuple[str, str, bool]]
    if others:
        matches = [*_ASSIGNED.finditer(text), *others]
        matches.sort(key=lambda match: match.start(2))
        bindings = [(match[1], match[2], match.re is not _CHAINED) for match in matches]
    else:
        bindings = [(indent, targets, True) for indent, targets in pairs]
    inner: bool | None = None
    for indent, targets, sure in bindings:
        if indent:
            if inner is None:
                inner = _INNER.search(text) is not None
            sure = sure and not inner
        for name in (targets,) if targets.isidentifier() else _WORD.findall(targets):
            found[name] = sure or found.get(name, False)
    return found


def _is_module(value: object) -> bool:
    kind = type(value)
    if id(kind) in _PLAIN:
        return False
    # Not isinstance: an object may answer for its class with code of its own.
    return any(each is ModuleType for each in type.__dict__["__mro__"].__get__(kind))


def _snapshot(name: str, value: object, columns: int) -> Snapshot:
    """Return type, shape and columns of what is nothing plain. Runs no code of the user's."""
    kind = type(value)
    # As the class itself has it: an instance or a metaclass may answer with code of its own.
    label = str(type.__dict__["__name__"].__get__(kind))
    module = type.__dict__["__module__"].__get__(kind)
    if not isinstance(module, str) or module.partition(".")[0] not in _SHAPED:
        return Snapshot(name, label, "", ())
    return Snapshot(name, label, _shape(value), _columns(value, columns))


def _shape(value: Any) -> str:
    try:
        sizes = value.shape
        if type(sizes) is int:
            return f"{sizes:,}"
        parts = [f"{size:,}" for size in islice(sizes, 8) if isinstance(size, int)]
        return " x ".join(parts) if len(parts) == len(sizes) else ""
    except Exception:  # noqa: BLE001 - a foreign property; without a shape the name is still noted
        return ""


def _columns(value: Any, most: int) -> tuple[str, ...]:
    if not most or type(value).__name__ not in ("DataFrame", "GeoDataFrame"):
        return ()
    try:
        found = [each for each in islice(value.columns, most) if isinstance(each, str | int)]
        return tuple(str(each)[:80] for each in found)
    except Exception:  # noqa: BLE001 - as above
        return ()
