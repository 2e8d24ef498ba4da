"""Where in a notebook file the cells stand, byte for byte, and how one of them is changed.

Written anew by a JSON library, a notebook would lose its indent, the order of its keys and the
way its lines end, and somebody's diff would show all of it. So the file stays as it is but for
the source of one cell and one value in that cell's metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipymemory.errors import NotebookError

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object: its key and where it begins, and where its value stands."""

    key: str
    begin: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


def with_cell(path: Path, data: bytes, index: int, source: str, name: str, value: Any) -> bytes:
    """Return `data`, the notebook `path`, with another `source` of its cell number `index`.

    Numbers begin at 0. The cell's metadata gets ``ipymemory: {name: value}`` beside what else
    stands there. Raises `NotebookError` for a file that cannot be changed in such a way.
    """
    try:
        text = data.decode("utf-8")
        edits = _edits(path, text, index, source, name, value)
        for each in sorted(edits, key=lambda each: each.start, reverse=True):
            text = text[: each.start] + each.text + text[each.end :]
        changed = text.encode("utf-8")
        wanted = _read(data)
        cell = wanted["cells"][index]
        cell["source"] = source
        metadata = cell.setdefault("metadata", {})
        ours = metadata.get("ipymemory")
        metadata["ipymemory"] = {**(ours if isinstance(ours, dict) else {}), name: value}
        made = _read(changed)
        of_made = made["cells"][index]
        of_made["source"] = "".join(of_made["source"])
        if made != wanted:
            raise NotebookError(_odd(path, "is written in a way that is not understood"))
    except NotebookError:
        raise
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise NotebookError(_odd(path, "is cut off, damaged or no notebook")) from error
    return changed


def _odd(path: Path, why: str) -> str:
    return f"{path} {why}, so it was left as it is. Save it anew in Jupyter and try again."


def _read(data: bytes) -> Any:
    return json.loads(data.decode("utf-8-sig"))


def _edits(path: Path, text: str, index: int, source: str, name: str, value: Any) -> list[_Edit]:
    at = _after(text, 1 if text.startswith("\ufeff") else 0)
    top, _ = _members(path, text, at)
    start = _value(path, top, "cells").start
    cell = _items(text, start)[index][0]
    members, _ = _members(path, text, cell)
    newline = "\r\n" if "\r\n" in text[at : top[0].begin] else "\n"
    lead = text[cell + 1 : members[0].begin]
    unit = re.split(r"[\r\n]", text[at + 1 : top[0].begin])[-1]
    colon = text[text.index(":", _string_end(text, members[0].begin)) : members[0].start]
    ascii_only = text.isascii() and re.search(
        r"\\u00[89a-fA-F]|\\u0[1-9a-fA-F]|\\u[1-9a-fA-F]", text
    )
    style = _Style(newline, unit if "\n" in lead else "", colon, bool(ascii_only))
    old = _value(path, members, "source")
    edits = [_Edit(old.start, old.end, style.source(text[old.start : old.end], source))]
    metadata = next((each for each in members if each.key == "metadata"), None)
    if metadata is None:
        whole = {"ipymemory": {name: value}}
        return [*edits, style.insertion(text, cell, members, "metadata", whole, lead)]
    inner, _ = _members(path, text, metadata.start)
    deeper = text[metadata.start + 1 : inner[0].begin] if inner else lead + style.unit
    ours = next((each for each in inner if each.key == "ipymemory"), None)
    if ours is None:
        whole = {name: value}
        edits.append(style.insertion(text, metadata.start, inner, "ipymemory", whole, deeper, lead))
        return edits
    kept = json.loads(text[ours.start : ours.end])
    whole = {**(kept if isinstance(kept, dict) else {}), name: value}
    edits.append(_Edit(ours.start, ours.end, style.value(whole, deeper)))
    return edits


@dataclass(frozen=True, slots=True)
class _Style:
    """How the file is written: its line ends, one step of indent (nothing for none), its colon."""

    newline: str
    unit: str
    colon: str
    ascii: bool

    def value(self, value: Any, lead: str) -> str:
        """Return `value` as JSON, for a member that the white space `lead` goes before."""
        if not self.unit or "\n" not in lead:
            comma = ", " if self.colon.endswith(" ") else ","
            return json.dumps(value, ensure_ascii=self.ascii, separators=(comma, self.colon))
        base = re.split(r"[\r\n]", lead)[-1]
        text = json.dumps(
            value, ensure_ascii=self.ascii, indent=self.unit, separators=(",", self.colon)
        )
        return text.replace("\n", self.newline + base)

    def insertion(
        self,
        text: str,
        at: int,
        members: list[_Member],
        key: str,
        value: Mapping[str, Any],
        lead: str,
        outer: str = "",
    ) -> _Edit:
        """Return the edit that puts a member into the object at `at`, by its place in the order."""
        member = f'"{key}"{self.colon}{self.value(value, lead)}'
        if not members:
            end = text.index("}", at)
            pretty = bool(self.unit) and "\n" in lead
            return _Edit(at + 1, end, f"{lead}{member}{outer}" if pretty else member)
        gap = lead if "\n" in lead else " " if self.colon.endswith(" ") else ""
        before = [each for each in members if each.key < key]
        if not before:
            return _Edit(members[0].begin, members[0].begin, f"{member},{gap}")
        return _Edit(before[-1].end, before[-1].end, f",{gap}{member}")

    def source(self, old: str, source: str) -> str:
        """Return `source` as the cell had its `old` one: a text, or a list of lines."""
        if not old.startswith("["):
            return json.dumps(source, ensure_ascii=self.ascii)
        lead, tail = _SPACE.match(old, 1), re.search(r"[ \t\r\n]*\]\Z", old)
        head = lead.group() if lead else ""
        gap = head if "\n" in head else " " if self.colon.endswith(" ") else ""
        lines = [json.dumps(each, ensure_ascii=self.ascii) for each in _lines(source)]
        return "[" + head + f",{gap}".join(lines) + (tail.group() if tail else "]")


def _lines(source: str) -> list[str]:
    return [each for each in re.split(r"(?<=\n)", source) if each]


def _after(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _string_end(text: str, at: int) -> int:
    return _DECODER.raw_decode(text, at)[1]


def _value(path: Path, members: list[_Member], key: str) -> _Member:
    found = [each for each in members if each.key == key]
    if len(found) != 1:
        raise NotebookError(_odd(path, f"has no {key!r} where one is expected"))
    return found[0]


def _members(path: Path, text: str, at: int) -> tuple[list[_Member], int]:
    """Return the members of the object at `at`, and where it ends; a key twice is refused."""
    if text[at] != "{":
        raise NotebookError(_odd(path, "holds something else where an object is expected"))
    found: list[_Member] = []
    at = _after(text, at + 1)
    while text[at] != "}":
        begin = at
        key, at = _DECODER.raw_decode(text, at)
        at = _after(text, at)
        if text[at] != ":":
            raise ValueError("no colon")
        start = _after(text, at + 1)
        _, end = _DECODER.raw_decode(text, start)
        found.append(_Member(key, begin, start, end))
        at = _after(text, end)
        if text[at] == ",":
            at = _after(text, at + 1)
    if len({each.key for each in found}) != len(found):
        raise NotebookError(_odd(path, "holds one key twice in the same place"))
    return found, at + 1


def _items(text: str, at: int) -> list[tuple[int, int]]:
    """Return where the items of the list at `at` begin and end."""
    found: list[tuple[int, int]] = []
    at = _after(text, at + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append((at, end))
        at = _after(text, end)
        if text[at] == ",":
            at = _after(text, at + 1)
    return found
