"""Patterns: as `re` finds them, and never slower than the text is long."""

from __future__ import annotations

import random
import re
import time

import pytest

from ipymemory.errors import ToolError
from ipymemory.patterns import compiled

ATOMS = (
    *("a", "b", "c", ".", r"\d", r"\w", "[ab]", "[^a]", "[a-c1]", "^", "$", r"\b", r"\B", "A"),
    *("(a|b)", "(ab|)?", "(?:a|bc)", "a{2}", "b{1,2}", r"\s", r"\.", "_", "{", "é"),
)
REPEATS = ("", "", "", "*", "+", "?", "*?", "{2}", "{0,2}", "{,2}")


def test_a_pattern_finds_what_python_finds() -> None:
    chance = random.Random(7)
    for _ in range(6000):
        pattern = ""
        for _ in range(chance.randint(1, 4)):
            atom, repeat = chance.choice(ATOMS), chance.choice(REPEATS)
            bare = atom in ("^", "$", r"\b", r"\B", "{") or atom[-1] in ")}?"
            pattern += atom + ("" if bare else repeat) + ("|" if chance.random() < 0.1 else "")
        fold = chance.random() < 0.3
        text = "".join(chance.choice("abcAB1_ é.{") for _ in range(chance.randint(1, 8)))
        found = re.search(pattern, text, re.IGNORECASE if fold else 0)
        assert (compiled(pattern, fold=fold).search(text) >= 0) == bool(found), (pattern, text)


def test_it_tells_where_the_first_match_ends() -> None:
    assert compiled("load_").search("def load_csv") == 9
    assert compiled(r"\d+\.\d+").search("pi = 3.14") == 8
    assert compiled("(?i)LOAD").search("reload") == 6
    assert compiled("x").search("") == -1


@pytest.mark.parametrize(
    "pattern",
    ["a*a*a*a*a*a*a*b", "(a|a)(a|a)(a|a)a*b", ".*.*.*.*x", r"\w+\s?\w+\s?\w+$z", "a{0,200}b"],
)
def test_no_pattern_takes_long(pattern: str) -> None:
    begun = time.monotonic()
    assert compiled(pattern).search("a" * 200_000) == -1
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "(", "a)", "[a", "*a", "a**", "a*+", "(a+)+b", "(a|b)*", "(ab){2}", "(?=a)b", "\\"),
        *("(?P<x>a)", r"(a)\1", r"\q", "[z-a]", "x{3,1}", "x{1000}", "(" * 200, "a" * 2000, "^*"),
        *(
            "(a|b)" * 30,
            "a{999}" * 9,
            "(a|b|c|d)(a|b|c|d)(a|b|c|d)(a|b|c|d)(a|b|c|d)",
            "[a-",
            "[\\",
        ),
    ],
)
def test_what_it_cannot_do_it_refuses_in_words(pattern: str) -> None:
    with pytest.raises(ToolError, match=r"pattern"):
        compiled(pattern)
