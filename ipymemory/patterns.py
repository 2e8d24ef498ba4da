r"""Patterns to search text for, in time that grows with the text alone, whatever they say.

Python's `re` tries one way after another: a pattern such as ``(a+)+b`` keeps it busy for years,
and nothing can stop it meanwhile. A pattern that an engine wrote is therefore searched for by an
automaton that looks at each character once. It knows what people search for, in Python's words:
``. \d \w \s \b ^ $ [a-z] * + ? {2,5} | ( )``. A group may say ``|`` and may be left out (``?``),
and is then written out as so many rows; one that repeats is refused, as are look-around and
references, so that the rows stay plain chains and the automaton is short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from ipymemory.errors import ToolError

LONGEST = 1000
"""Characters of a pattern."""

MOST_ROWS = 200
MOST_ATOMS = 3000
"""What the groups and the counted repeats of a pattern may be written out to."""

_MOST_STEPS = 20_000
"""Steps that are remembered, some 5 MB; then all are forgotten and found anew."""

_KNOWN = r"Known are . \d \w \s \b ^ $ [a-z] * + ? {2,5} | and groups that do not repeat."

Test = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class _Atom:
    """One link of a chain: reads a character that passes `test`, or demands a `place`."""

    test: Test | None = None
    place: str = ""
    skip: bool = False
    """It may be left out."""
    again: bool = False
    """It may be read any number of times."""
    letter: str = ""
    """The one character that it reads, where there is just one."""


_END = _Atom()
Row = tuple[_Atom, ...]


@dataclass(slots=True)
class Pattern:
    """A pattern that can be searched for; made by `compiled`."""

    fold: bool
    literals: tuple[str, ...]
    """Of each row a text that all its matches hold; empty when some row has none."""
    _atoms: Row
    _starts: frozenset[int]
    _steps: dict[tuple[frozenset[int], str, str], frozenset[int] | None] = field(
        default_factory=dict
    )

    def may_occur(self, text: str) -> bool:
        """Return whether `text` holds what a match would hold; a quick look before a search."""
        if not self.literals:
            return True
        text = text.lower() if self.fold else text
        return any(each in text for each in self.literals)

    def search(self, line: str) -> int:
        """Return where the earliest end of a match in `line` is, -1 when there is none."""
        line = line.lower() if self.fold else line
        if not self.may_occur(line):
            return -1
        steps, state, before = self._steps, self._starts, "^"
        for at, char in enumerate(line):
            key = (state, before, char)
            try:
                found = steps[key]
            except KeyError:
                if len(steps) > _MOST_STEPS:
                    steps.clear()
                found = steps[key] = self._step(state, before, char)
            if found is None:
                return at
            state, before = found, "w" if _word(char) else "-"
        return len(line) if self._reached(state, before, "$") is None else -1

    def _step(self, state: frozenset[int], before: str, char: str) -> frozenset[int] | None:
        """Return the places after `char`; None when a match ends before it."""
        reached = self._reached(state, before, "w" if _word(char) else "-")
        if reached is None:
            return None
        found = set(self._starts)
        for at in reached:
            atom = self._atoms[at]
            if atom.test is not None and atom.test(char):
                found.add(at if atom.again else at + 1)
        return frozenset(found)

    def _reached(self, state: frozenset[int], before: str, after: str) -> set[int] | None:
        """Return the places that can be stood at without reading; None when one is an end."""
        reached: set[int] = set()
        waiting = list(state)
        while waiting:
            at = waiting.pop()
            if at in reached:
                continue
            reached.add(at)
            atom = self._atoms[at]
            if atom is _END:
                return None
            if atom.skip or (atom.place and _stands(atom.place, before, after)):
                waiting.append(at + 1)
        return reached


def _stands(place: str, before: str, after: str) -> bool:
    if place in "^$":
        return (before if place == "^" else after) == place
    return ((before == "w") != (after == "w")) == (place == "b")


def _word(char: str) -> bool:
    return char == "_" or char.isalnum()


@lru_cache(maxsize=32)
def compiled(pattern: str, *, fold: bool = False) -> Pattern:
    """Return `pattern` ready to be searched for; with `fold`, or ``(?i)``, case does not count.

    Raises `ToolError` with a sentence for the engine.
    """
    if len(pattern) > LONGEST:
        raise ToolError(f"The pattern is longer than {LONGEST:,} characters. Give a shorter one.")
    if pattern.startswith("(?i)"):
        pattern, fold = pattern[4:], True
    rows = _Parser(pattern, fold).whole()
    atoms: list[_Atom] = []
    starts = set()
    for row in rows:
        starts.add(len(atoms))
        atoms += (*row, _END)
    literals = [_literal(row) for row in rows]
    needed = tuple(dict.fromkeys(literals)) if all(literals) else ()
    return Pattern(fold, needed, tuple(atoms), frozenset(starts))


def _literal(row: Row) -> str:
    """Return the longest text that every match of `row` holds."""
    best = run = ""
    for each in row:
        if not each.letter:
            # A place reads nothing, so that what stands on both sides of it is one text.
            run = run if each.place else ""
        elif each.skip:
            run = ""
        else:
            run += each.letter
            best = max(best, run, key=len)
    return best


_CLASSES: dict[str, Test] = {
    "d": str.isdecimal,
    "w": _word,
    "s": str.isspace,
    "D": lambda char: not char.isdecimal(),
    "W": lambda char: not _word(char),
    "S": lambda char: not char.isspace(),
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_PLACES = {"b": "b", "B": "B", "A": "^", "Z": "$"}
_QUANTIFIERS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class _Parser:
    """Reads a pattern from left to right into rows of atoms."""

    def __init__(self, pattern: str, fold: bool) -> None:
        self._text = pattern
        self._at = 0
        self._fold = fold

    def whole(self) -> list[Row]:
        """Return the rows of the whole pattern; raises `ToolError`."""
        if not self._text:
            raise ToolError("The pattern is empty. Say what to search for.")
        rows = self._either(0)
        if self._at < len(self._text):
            raise self._bad("There is a ) without its (")
        return rows

    def _either(self, depth: int) -> list[Row]:
        if depth > 20:
            raise self._bad("The groups lie too deep in each other")
        rows: list[Row] = []
        while True:
            rows += self._row(depth)
            if self._peek() != "|":
                return self._bounded(rows)
            self._at += 1

    def _row(self, depth: int) -> list[Row]:
        rows: list[Row] = [()]
        while (char := self._peek()) and char not in "|)":
            piece = self._group(depth) if char == "(" else [tuple(self._repeated(self._atom()))]
            rows = self._bounded([left + right for left in rows for right in piece])
        return rows

    def _group(self, depth: int) -> list[Row]:
        self._at += 1
        if self._peek() == "?":
            if self._text[self._at : self._at + 2] != "?:":
                raise self._bad("Groups that begin with ? are not known here, but for (?:")
            self._at += 2
        rows = self._either(depth + 1)
        if self._peek() != ")":
            raise self._bad("There is a ( without its )")
        self._at += 1
        low, high = self._bounds()
        if (low, high) not in ((1, 1), (0, 1)):
            raise self._bad("A group cannot be repeated here")
        return [*rows, ()] if low == 0 else rows

    def _repeated(self, atom: _Atom) -> Iterator[_Atom]:
        low, high = self._bounds()
        if atom.place:
            if (low, high) != (1, 1):
                raise self._bad("A place such as ^ cannot be repeated")
            yield atom
            return
        yield from [atom] * low
        if high is None:
            yield _Atom(atom.test, skip=True, again=True)
        else:
            yield from [_Atom(atom.test, skip=True)] * (high - low)

    def _bounds(self) -> tuple[int, int | None]:
        """Read a quantifier, if there is one: least and most, None for no bound."""
        char, bounds = self._peek(), None
        if char and char in _QUANTIFIERS:
            self._at += 1
            bounds = _QUANTIFIERS[char]
        elif char == "{":
            bounds = self._counted()
        if bounds is None:
            return 1, 1
        if self._peek() == "?":  # the shortest match is found where any is
            self._at += 1
        if self._peek() in ("*", "+", "?"):
            raise self._bad("Two repeats stand behind each other")
        return bounds

    def _counted(self) -> tuple[int, int | None] | None:
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at + 1 : max(end, 0)].partition(",")
        numbers = least + most
        if not numbers.isascii() or not numbers.isdecimal():
            return None  # as in Python, a brace that counts nothing is a brace
        self._at = end + 1
        if len(least) > 3 or len(most) > 3:
            raise self._bad("The pattern repeats too much")
        low = int(least or 0)
        high = (int(most) if most else None) if comma else low
        if high is not None and high < low:
            raise self._bad("The larger number comes first")
        return low, high

    def _atom(self) -> _Atom:
        char = self._next()
        if char == ".":
            return _Atom(lambda each: each != "\n")
        if char in "^$":
            return _Atom(place=char)
        if char == "[":
            return _Atom(self._set())
        if char in _QUANTIFIERS:
            raise self._bad(f"There is nothing for {char} to repeat")
        if char == "\\":
            kind = self._next()
            if kind in _PLACES:
                return _Atom(place=_PLACES[kind])
            if kind in _CLASSES:
                return _Atom(_CLASSES[kind])
            char = self._escaped(kind)
        letter = char.lower() if self._fold else char
        if len(letter) != 1:
            letter = char
        return _Atom(lambda each: each == letter, letter=letter)

    def _set(self) -> Test:
        negated = self._peek() == "^"
        self._at += negated
        tests: list[Test] = []
        first = True
        while (char := self._next()) != "]" or first:
            first = False
            if char == "\\":
                char = self._next()
                if char in _CLASSES:
                    tests.append(_CLASSES[char])
                    continue
                char = self._escaped(char)
            high = char
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._next()
                high = self._escaped(self._next()) if high == "\\" else high
            if high < char:
                raise self._bad(f"{char}-{high} is no range")
            tests.append(_between(char, high, self._fold))
        return lambda each: any(one(each) for one in tests) != negated

    def _escaped(self, kind: str) -> str:
        if kind.isascii() and kind.isalnum() and kind not in _CONTROLS:
            raise self._bad(f"\\{kind} is not known here")
        return _CONTROLS.get(kind, kind)

    def _bounded(self, rows: list[Row]) -> list[Row]:
        if len(rows) > MOST_ROWS or sum(map(len, rows)) > MOST_ATOMS:
            raise self._bad("The pattern stands for too many others. Ask for fewer at once")
        return rows

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise self._bad("The pattern ends too early")
        self._at += 1
        return char

    def _bad(self, why: str) -> ToolError:
        return ToolError(f"{why} (at character {self._at} of the pattern). {_KNOWN}")


def _between(low: str, high: str, fold: bool) -> Test:
    if not fold:
        return lambda each: low <= each <= high
    return lambda each: low <= each <= high or low <= each.upper() <= high
