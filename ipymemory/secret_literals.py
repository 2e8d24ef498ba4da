"""What is looked for first in a text: literals, one of which every secret of a rule holds.

A search for one literal in 2 KB takes about 1 µs, so that thirty of them would be most of what
masking costs. So they are looked for in the text's bones: its letters without the vowels a, e and
i, blanks, digits and most signs, which is about half of it. ``password`` has the bones
``psswor``; where they are not, the word is not either. And those that share a rare letter are
looked for at once, by a pattern that begins with it: ``k(?:y|(?<=tok)n|…)``, which stops at that
letter only.
"""

from __future__ import annotations

import re
from functools import cached_property

_KEPT = frozenset(b"bcdfghjklmnopqrstuvwxyz=:/*")
_LOWER = bytes(ord(chr(byte).lower()) if byte < 128 else byte for byte in range(256))
_DROPPED = bytes(byte for byte in range(256) if _LOWER[byte] not in _KEPT)
_RARE = "kphgf*:bclzwqjxvymudrnsto="
"""Letters by which literals are gathered, the first that a literal has; few, so few searches."""

_SHORT = 200
"""Bytes of bones, twice as much of a text, in which one search for all costs less than many."""


class Literal:
    """Some bytes in lower case that are looked for, and their bones."""

    __slots__ = ("bones", "word")

    def __init__(self, word: str) -> None:
        self.word = word.encode("ascii")
        self.bones = self.word.translate(None, _DROPPED)

    @property
    def rare(self) -> int:
        """Where its rarest letter stands in its bones."""
        bones = self.bones.decode("ascii")
        return bones.index(next(letter for letter in _RARE if letter in bones))


class Literals:
    """Literals that are looked for together, in the order in which they were given."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.all = tuple(map(Literal, dict.fromkeys(words)))

    @cached_property
    def gathered(self) -> tuple[tuple[re.Pattern[bytes], tuple[Literal, ...]], ...]:
        """Those that share a rare letter, with the pattern that finds the bones of any of them."""
        by_letter: dict[bytes, list[Literal]] = {}
        for each in self.all:
            by_letter.setdefault(each.bones[each.rare : each.rare + 1], []).append(each)
        return tuple((_any(letter, held), tuple(held)) for letter, held in by_letter.items())

    @cached_property
    def anywhere(self) -> re.Pattern[bytes]:
        """What finds the bones of any of them; in a short text sooner than one after another."""
        return re.compile(b"|".join(pattern.pattern for pattern, _ in self.gathered))


def _any(letter: bytes, literals: list[Literal]) -> re.Pattern[bytes]:
    ways = []
    for each in literals:
        before, after = each.bones[: each.rare], each.bones[each.rare + 1 :]
        behind = b"(?<=" + re.escape(before + letter) + b")" if before else b""
        ways.append(behind + re.escape(after))
    return re.compile(re.escape(letter) + b"(?:" + b"|".join(dict.fromkeys(ways)) + b")")


class Folded:
    """A text in lower case, one byte a character, in which literals are looked for."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode("latin-1", "replace")
        """The text as it is, one byte a character; what has no byte in Latin-1 is ``?``."""
        self._bones = self.raw.translate(_LOWER, _DROPPED)
        self._asked: Literals | None = None
        self._answer: tuple[Literal, ...] = ()

    @cached_property
    def text(self) -> bytes:
        """The text in lower case."""
        return self.raw.translate(_LOWER)

    def holding(self, literals: Literals) -> tuple[Literal, ...]:
        """Return those of `literals` that may stand in the text: their bones do."""
        if literals is not self._asked:
            bones = self._bones
            found: list[Literal] = []
            if len(bones) > _SHORT or literals.anywhere.search(bones):
                for pattern, held in literals.gathered:
                    if pattern.search(bones):
                        found += (each for each in held if each.bones in bones)
            self._asked, self._answer = literals, tuple(found)
        return self._answer
