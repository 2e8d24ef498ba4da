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
_LEAST, _TWO_FROM, _ENDING = 5, 8, 3
"""Letters of a word that may be misspelt; of one that may be so twice; of an ending at most."""

_LONGEST = 64
"""Characters of a word; what is longer is a key, a hash or a picture."""

_STOP = """
a about after all also am an and any are as at be been before but by can could did do does for
from get had has have how i if in into is it its just like made make may me my need no not of
on or our shall should so some than that the their them then there these they this those to too
us use used using want was we were what when where which while who why will with would you your
"""
"""Words that tell nothing about what a question is about."""

_STOP_GERMAN = """
aber alle als also am an auch auf aus bei beim bin bis da das dass dein dem den der des die dies
diese dieser dieses doch dort du ein eine einem einen einer eines er es für hat hier hin ich ihr im
ist ja kann man mein mich mir mit muss nach nicht noch nur oder ohne sich sie sind soll sollen tun
um und uns unser vom von vor wann warum was welche welcher welches welchem wenn wer werden wie wir
wird wo worauf zu zum zur
"""

_COMMON = """
add answer array begin between call cell change change code column compute convert copy count create
data delete different draw each empty error every example explain fail fast few file fill find first
fit format function get give good group help histogram image import index install key last length
line list load long look loop lower many max mean merge min missing month more most name new next
notebook null number object old one open order output parameter part path plot point print problem
question quick read remove rename replace result return right row run same save second series set
short show simple size slow sort split start step stop string sum summarise summarize table take
tell test text thing time two type undo unique update value variable version way week word work
write wrong year zero
ausgabe code datei daten ergebnis fehler funktion liste spalte tabelle text wert werte zahl zeile
zeilen zeige zeigen zelle
"""
"""What questions of every notebook are about: such words alone point at no memory."""


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


def bare(question: str) -> bool:
    """Return whether a question is a word or two and no sentence: as people look things up."""
    found = _WORD.findall(question)
    return len(found) <= 2 and not any(_stem(each.casefold()) in STOPPED for each in found)


def near(term: str, other: str) -> bool:
    """Return whether two terms are forms or misspellings of one word.

    Of words in Latin letters: one is the beginning of the other and hardly shorter, or they differ
    by a letter, by two from eight letters on; two letters that changed places count as one.
    """
    short, long = sorted((term, other), key=len)
    if len(short) < _LEAST or short[0] != long[0] or short.isdigit() or long.isdigit():
        return False
    if len(long) - len(short) <= _ENDING and long.startswith(short):
        return True
    most = 2 if len(short) >= _TWO_FROM else 1
    return len(long) - len(short) <= most and _distance(short, long, most) <= most


def _distance(one: str, other: str, most: int) -> int:
    """Return the letters to be changed, left out, added or swapped, at least `most` + 1."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        row = [at]
        for to, wanted in enumerate(other, 1):
            cost = min(row[-1] + 1, last[to] + 1, last[to - 1] + (letter != wanted))
            swapped = at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted
            row.append(min(cost, before[to - 2] + 1) if swapped else cost)
        if min(row) > most:
            return most + 1
        before, last = last, row
    return last[-1]


def asked(question: str) -> list[str]:
    """Return the terms of a question, each once, without those that tell nothing.

    Of words in a script without spaces only the pairs are asked for, but of a single character.
    """
    found: dict[str, None] = {}
    for run, word in _runs(question):
        wanted = _of_word(word) if not run else _pairs(run) if len(run) > 1 else (_coded(run),)
        found.update(dict.fromkeys(wanted))
    return [each for each in found if each not in STOPPED]


def telling(text: str) -> str:
    """Return what of a text a model of meanings is to see: words that tell what it is about.

    Without those of every sentence and every notebook, which are near to everything, and without
    scripts that write no spaces: the pieces such models cut them into are near to one another.
    """
    return " ".join(
        part
        for _, word in _runs(text)
        for part in _PART.findall(word)
        if _stem(part.casefold()) not in _UNTOLD
    )


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


STOPPED = frozenset(_stem(each) for text in (_STOP, _STOP_GERMAN) for each in text.split())
COMMON = frozenset(map(_stem, _COMMON.split()))
"""The same as terms."""
_UNTOLD = STOPPED | COMMON
