"""Which names a cell bound, with type and shape: a look at the namespace that touches nothing.

It runs on the main thread after every cell, so it parses nothing: a pattern finds the names that
the source may bind, and the end of the namespace shows those that are new. Only types whose
shape is known to be a plain number are asked for it; no ``repr``, no method of the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from types import FunctionType, ModuleType
from typing import Any

MOST_SOURCE = 16 * 1024
"""Characters of a source that are searched for names: a longer cell is data."""

_MOST_NEW = 200
"""Names at the end of the namespace that are looked at."""

_BINDS = re.compile(
    r"^[ \t]*(?:(?P<targets>\*?\w+(?:[ \t]*,[ \t]*\*?\w+)*,?)[ \t]*(?::[^=\n]+)?"
    r"(?:[-+*/|&^%@]|//|\*\*|<<|>>)?=(?!=)"
    r"|(?:async[ \t]+)?(?:(?:def|class|for)\b(?P<rest>[^\n]*)|with\b(?P<held>[^\n]*)))",
    re.MULTILINE,
)
_WALRUS = re.compile(r"\b([^\W\d]\w*)[ \t]*:=")
_CHAIN = re.compile(r"(?<=[=])[ \t]*(\w+)[ \t]*(?==(?!=))")
_WORD = re.compile(r"[^\W\d]\w*")
_AS = re.compile(r"\bas[ \t]+([^\W\d]\w*)")
_BOUND_IN = re.compile(r"^[ \t]*([^\W\d]\w*)(?:[ \t]*,[ \t]*([^\W\d]\w*))*|\bas[ \t]+([^\W\d]\w*)")

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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One name: its type, its shape such as ``1,000 x 12``, and of a frame its columns."""

    name: str
    type: str
    shape: str
    columns: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the name as it stands in the transcript."""
        value: dict[str, Any] = {"name": self.name, "type": self.type}
        if self.shape:
            value["shape"] = self.shape
        if self.columns:
            value["columns"] = list(self.columns)
        return value


class Names:
    """Looks at the names of one namespace, cell by cell."""

    def __init__(self, most: int, columns: int) -> None:
        self._most = most
        self._columns = columns
        self._known: set[str] = set()

    def start(self, namespace: Mapping[str, Any]) -> None:
        """Take the names that are there now for known."""
        self._known = set(namespace)

    def bound(self, source: str, namespace: dict[str, Any]) -> list[Snapshot]:
        """Return the names that a cell with this source bound, in order, at most `most`."""
        seen = set()
        found: list[Snapshot] = []
        # Before the limit can end the loop: what is new now must not be new to the next cell.
        new = self._new(namespace)
        for name in chain(self._written(source), new):
            if len(found) >= self._most:
                break
            if name in seen or name.startswith("_") or name not in namespace:
                continue
            seen.add(name)
            value = namespace[name]
            if not _is_module(value):
                found.append(snapshot(name, value, self._columns))
        return found

    def _written(self, source: str) -> Iterator[str]:
        text = source[:MOST_SOURCE]
        if ":=" in text:
            yield from _WALRUS.findall(text)
        for match in _BINDS.finditer(text):
            targets, rest = match["targets"], match["rest"]
            if targets:
                yield from _WORD.findall(targets)
                end = text.find("\n", match.end())
                end = end if end >= 0 else len(text)
                if text.find("=", match.end(), end) >= 0:
                    # x = y = 0: the rest of the line, seen from its first "=".
                    yield from _CHAIN.findall(text[match.end() - 1 : end])
            elif rest:
                for groups in _BOUND_IN.findall(rest):
                    yield from filter(None, groups)
            elif match["held"]:
                yield from _AS.findall(match["held"])

    def _new(self, namespace: dict[str, Any]) -> list[str]:
        """Return names that were not there before; a namespace keeps the order of binding."""
        new = []
        try:
            for name in islice(reversed(namespace), _MOST_NEW):
                if name in self._known:
                    break
                self._known.add(name)
                new.append(name)
        except (RuntimeError, TypeError):
            # A thread of the user's binds names meanwhile; the next cell finds them.
            return []
        return [name for name in reversed(new) if isinstance(name, str)]


def _is_module(value: object) -> bool:
    kind = type(value)
    if id(kind) in _PLAIN:
        return False
    # Not isinstance: an object may answer for its class with code of its own.
    return any(each is ModuleType for each in type.__dict__["__mro__"].__get__(kind))


def snapshot(name: str, value: object, columns: int) -> Snapshot:
    """Return type, shape and columns of `value`. Runs no code of the user's."""
    kind = type(value)
    plain = _PLAIN.get(id(kind))
    if plain is not None:
        sized = plain in _SIZED
        return Snapshot(name, plain, f"{len(value):,}" if sized else "", ())  # type: ignore[arg-type]
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
