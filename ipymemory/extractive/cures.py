"""Which later cell cured an error, and by what change.

A cell cures an error when it ran without one and is the same cell again, or nearly the same
source, or binds or imports the very name that was missing. The change is shown as the line that
is different, since that is what one wants to find a week later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from ipymemory.extractive.material import Facts, Failure
from ipymemory.extractive.wording import code

NEAR = 25
"""Cells after an error within which a similar source counts as another try."""
_ALIKE = 0.6
_MISSING_NAME = re.compile(r"name '(?P<name>\w+)' is not defined")
_MISSING_MODULE = re.compile(r"No module named '(?P<name>[\w.]+)'")


@dataclass(frozen=True, slots=True)
class Change:
    """How a cure differs: lines as they were and as they are; both empty for no difference."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def missing(failure: Failure) -> tuple[str, str]:
    """Return ``("name", n)``, ``("module", n)`` or ``("", "")``: what an error says is missing."""
    if failure.name == "NameError" and (match := _MISSING_NAME.search(failure.value)):
        return "name", match["name"]
    if failure.name in ("ModuleNotFoundError", "ImportError") and (
        match := _MISSING_MODULE.search(failure.value)
    ):
        return "module", match["name"].partition(".")[0]
    return "", ""


def alike(one: Facts, other: Facts, at: str = "") -> bool:
    """Return whether two sources are two tries at the same thing.

    `at` is the line that failed: one that is nearly the same in a longer cell is enough, and the
    very same one where a function of the cell was written anew.
    """
    if one.lines == other.lines:
        return bool(one.lines)
    made = {each.name for each in one.definitions}
    if at and at in other.lines and any(each.name in made for each in other.definitions):
        return True
    if one.words and other.words:
        common = len(one.words & other.words)
        if 3 * common < min(len(one.words), len(other.words)):
            return False
        if at in other.lines and at and 3 * common >= 2 * max(len(one.words), len(other.words)):
            return True
    if _ratio(one.lines[:60], other.lines[:60]) >= _ALIKE:
        return True
    return (
        bool(at)
        and len(at) > 8
        and any(line != at and _line_ratio(at, line) >= 0.75 for line in other.lines[:60])
    )


def change(one: Facts, other: Facts, *near: str) -> Change:
    """Return what differs between two tries, where it is nearest to the lines that failed.

    `near` are those lines, the innermost first.
    """
    old, new = one.lines[:200], other.lines[:200]
    if old == new:
        return Change()
    hunks = [
        (old[a:b], new[c:d])
        for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if kind != "equal"
    ]
    for at in near:
        for before, after in hunks:
            if at and any(at in line or line in at for line in before):
                return _narrow(before, after, at)
    for before, after in hunks:
        if before and after:
            return _narrow(before, after, "")
    return Change(hunks[0][0][:2], hunks[0][1][:2])


def told(change: Change, *near: str) -> str:
    """Return a change in words; the lines that failed stand before it and are not said again."""
    after = ", ".join(code(line, 140) for line in change.after)
    said = "\n".join(near)
    before = ", ".join(code(line, 140) for line in change.before if line not in said)
    if after and before:
        return f"{before} became {after}"
    if after:
        return after
    return f"{before} taken out" if before else "the line taken out" if change.before else ""


def _narrow(before: tuple[str, ...], after: tuple[str, ...], at: str) -> Change:
    """Return the line of a hunk that failed, and what of the new lines was not there before."""
    if len(before) <= 1 and len(after) <= 1:
        return Change(before, after)
    old = next((line for line in before if at and (at in line or line in at)), "")
    old = old or (before[0] if before else "")
    held = "\n".join(before)
    fresh = tuple(line for line in after[:40] if line not in held)
    if not fresh:
        return Change((old,), after[:1])
    best = max(fresh, key=lambda line: _line_ratio(old, line))
    return Change((old,), (best,) if _line_ratio(old, best) >= 0.4 else fresh[:2])


@lru_cache(maxsize=20_000)
def _ratio(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Return how alike two sources are, 0 to 1: by lines, or by characters when they are few."""
    if len(one) > 3 and len(other) > 3:
        return SequenceMatcher(None, one, other, autojunk=False).ratio()
    return _line_ratio("\n".join(one)[:600], "\n".join(other)[:600])


@lru_cache(maxsize=20_000)
def _line_ratio(one: str, other: str) -> float:
    one, other = one[:400], other[:400]
    if not one or not other:
        return 0.0
    shorter, longer = sorted((len(one), len(other)))
    if 2 * shorter < _ALIKE * (shorter + longer):
        return 0.0
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.quick_ratio() < 0.4:
        return 0.0
    return matcher.ratio()
