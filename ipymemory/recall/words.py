"""From a text to the terms by which it is found; the same for memories and for questions.

Identifiers are found by their parts and as a whole: ``load_csv`` and ``loadCsv`` are *load*,
*csv* and *loadcsv*. Scripts that write no spaces between words are cut into pairs of characters
(FTS5's own tokenisers find no two-character Chinese word). English endings are taken off, so
that a question about parsing finds what was parsed.

A term is ASCII letters and digits: other letters are written in hexadecimal, so that no version
of SQLite has an opinion on them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# Han, kana, Hangul, Thai, Lao, Khmer, Burmese; the rest of the world writes spaces or marks.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<word>(?:[^\W{_UNSPACED}]|_)+)")
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_ACCENT = re.compile("[\u0300-\u036f]")
_LONGEST = 64
"""Characters of a word; what is longer is a key, a hash or a picture."""

_STOP = """
a about after all also am an and any are as at be been before but by can could did do does for
from get had has have how i if in into is it its just like made make may me my need no not of
on or our shall should so some than that the their them then there these they this those to too
us use used using want was we were what when where which while who why will with would you your
"""
"""Words that tell nothing about what a question is about."""


def terms(text: str) -> list[str]:
    """Return the terms of `text` in order, the same one as often as it occurs."""
    found: list[str] = []
    if text.isascii():
        for word in _WORD.findall(text):
            found += _of_word(word)
        return found
    for run, word in _runs(text):
        if run:
            found += map(_coded, run)
            found += _pairs(run)
        else:
            found += _of_word(word)
    return found


def asked(question: str) -> list[str]:
    """Return the terms of a question, each once, without those that tell nothing.

    Of words in a script without spaces only the pairs are asked for, but of a single character.
    """
    found: dict[str, None] = {}
    for run, word in _runs(question):
        wanted = _of_word(word) if not run else _pairs(run) if len(run) > 1 else (_coded(run),)
        found.update(dict.fromkeys(wanted))
    return [each for each in found if each not in STOPPED]


def _runs(text: str) -> Iterator[tuple[str, str]]:
    """Yield each run of characters without spaces, or each word; the other of the two is empty."""
    if not text.isascii():
        text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
        text = unicodedata.normalize("NFC", _ACCENT.sub("", text))
    for match in _RUN.finditer(text):
        yield match["unspaced"] or "", match["word"] or ""


def _pairs(run: str) -> Iterator[str]:
    return (_coded(run[at : at + 2]) for at in range(len(run) - 1))


@lru_cache(maxsize=16_384)  # the same few thousand words make up all memories of a project
def _of_word(word: str) -> tuple[str, ...]:
    if len(word) > _LONGEST:
        return ()
    if word.isascii() and word.islower():
        parts = word.split("_") if "_" in word else [word]
    else:
        parts = _PART.findall(word)
    parts = [each for each in parts if each]
    if len(parts) > 1:
        parts.append("".join(parts))
    return tuple(_coded(_stem(each.casefold())) for each in parts)


def _stem(word: str) -> str:
    """Return `word` without its English ending; the same for *parse*, *parses*, *parsing*."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        left = word.removesuffix(ending)
        if left != word and len(left) > 2 and re.search("[aeiouy]", left):
            doubled = len(left) > 3 and left[-1] == left[-2] and left[-1] not in "lsz"
            word = left[:-1] if doubled else left
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def _coded(term: str) -> str:
    return term if term.isascii() else f"x{term.encode('utf-8', 'surrogatepass').hex()}"


STOPPED = frozenset(map(_stem, _STOP.split()))
"""The same as terms."""
