"""What is looked for first in a text: literals, one of which every secret of a rule holds.

A search for one literal in 2 KB takes about 2 µs, so that twenty of them would be most of what
masking costs. They are looked for in the text's bones first: its letters without the vowels a, e
and i, blanks, digits and most signs, which is less than half of it. ``password`` has the bones
``psswor``; where they are not, the word is not either.
"""

from __future__ import annotations

from collections.abc import Iterator

_KEPT = frozenset(b"bcdfghjklmnopqrstuvwxyz=:/")
_LOWER = bytes(ord(chr(byte).lower()) if byte < 128 else byte for byte in range(256))
_DROPPED = bytes(byte for byte in range(256) if _LOWER[byte] not in _KEPT)


class Literal:
    """Some bytes in lower case that are looked for, and their bones."""

    __slots__ = ("bones", "word")

    def __init__(self, word: str) -> None:
        self.word = word.encode("ascii")
        self.bones = self.word.translate(None, _DROPPED)


class Folded:
    """A text in lower case, one byte a character, in which literals are looked for."""

    __slots__ = ("_bones", "raw", "text")

    def __init__(self, text: str) -> None:
        self.raw = text.encode("latin-1", "replace")
        """The text as it is, one byte a character; what has no byte in Latin-1 is ``?``."""
        self.text = self.raw.translate(_LOWER)
        self._bones = self.raw.translate(_LOWER, _DROPPED)

    def find(self, literal: Literal, start: int = 0) -> int:
        """Return where `literal` stands first at or after `start`, -1 if nowhere."""
        if not start and literal.bones not in self._bones:
            return -1
        return self.text.find(literal.word, start)

    def holding(self, literals: tuple[Literal, ...]) -> Iterator[Literal]:
        """Yield those of `literals` that may stand in the text, in their order."""
        bones = self._bones
        return (each for each in literals if each.bones in bones)
