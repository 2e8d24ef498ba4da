"""Secrets out of text, by rule, with what was masked and where.

Everything that goes to disk or to an engine passes here first. Three kinds of rules find a
secret: tokens that say what they are (`secret_tokens`), values that a name gives away
(`secret_values`, `secret_names`), and forms such as URLs and key blocks (`secret_forms`).
Masked, it reads ``[masked: github token]``. Git hashes, UUIDs, base64 images, numbers and code
stay whole.

A cell's text is masked on the main thread, so that ordinary text must cost next to nothing:
it is folded to lower case bytes once, and a rule is asked only where a literal of its own
occurs. From there it looks at a piece of at most 4,000 characters; the pieces begin wherever a
literal does, overlap as they must, and so miss nothing at their edges, and the work grows with
the length of the text alone.

A secret that a stream prints in two pieces is found only once they are one text: join first
(`excerpts`), then mask. `Masker` also remembers what it has masked as somebody's value, and
what it is told of, and masks it wherever it turns up later.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from functools import cache

from ipymemory.secret_literals import Folded
from ipymemory.secret_marks import MARKER, applied, back, merged, spared
from ipymemory.secret_tokens import Mark, runs, tokens, wandb_key

__all__ = ["Mark", "Masker", "is_secret_name", "mask", "mask_source", "mask_with_marks"]

log = logging.getLogger(__name__)

_UNCHECKED = "[masked: text that could not be checked]"
_ROUNDS = 5
_LEARNED = 200
"""Values that a `Masker` remembers; the oldest go first."""


def mask(text: str) -> str:
    """Return `text` with its secrets masked. Never raises; masking twice changes nothing more."""
    return _masked(text, code=False)[0]


def mask_with_marks(text: str) -> tuple[str, tuple[Mark, ...]]:
    """Return `text` masked, and the marks: rule, begin and end of what was masked in `text`."""
    return _masked(text, code=False)


def mask_source(source: str) -> str:
    """Return a cell's source with its secrets masked; like `mask`, but it knows code.

    ``password = ask()`` is code and stays; ``password = "x"``, ``%env KEY=x`` and a shell line
    hold values. Cells of another language are read as text.
    """
    return _masked(source, code=_is_python(source))[0]


def is_secret_name(name: str) -> bool:
    """Tell whether whatever `name` holds is secret: ``api_key``, ``DB_PASSWORD``; not ``key``."""
    from ipymemory.secret_names import judge

    judged = judge(name)
    return judged is not None and judged.strong


class Masker:
    """Masks, and remembers the values it has come to know.

    It may be used by two threads at once and takes no lock, so that a forked child cannot be
    held up by one.
    """

    def __init__(self) -> None:
        self._learned: dict[str, None] = {}

    def learn(self, value: str) -> bool:
        """Remember `value`, as what was typed into ``getpass``; return whether it is now known.

        A value that is too short or too common to be looked for in other texts is not.
        """
        from ipymemory.secret_names import worth_learning

        if not worth_learning(value):
            return False
        value = value.strip()
        for form in dict.fromkeys((value, *_forms(value))):
            self._learned[form] = None
        while len(self._learned) > _LEARNED:
            oldest = next(iter(tuple(self._learned)), None)
            if oldest is None:
                break
            self._learned.pop(oldest, None)
        return True

    def names_secret(self, name: str) -> bool:
        """Tell whether whatever `name` holds is secret; see `is_secret_name`."""
        return is_secret_name(name)

    def learn_named(self, name: str, value: object) -> bool:
        """Remember the value of a variable if its name and its looks say that it is secret."""
        from ipymemory.secret_names import judge, secret

        judged = judge(name)
        if judged is None or not isinstance(value, str) or not secret(judged, value):
            return False
        return self.learn(value)

    def mask(self, text: str) -> str:
        """Return `text` with its secrets masked, learned values too; see the function `mask`."""
        return self._mask(text, code=False)

    def mask_source(self, source: str) -> str:
        """Return a cell's source masked, and learn the values it gives to secret names."""
        return self._mask(source, code=_is_python(source))

    def leaves(self, source: str) -> bool:
        """Return whether `mask_source` surely leaves a source as it is; for ASCII text alone.

        It asks the same as the rules do first, in one go: for most cells that is all.
        """
        if not source.isascii() or "\x1b" in source:
            return False
        for value in tuple(self._learned):
            if value in source:
                return False
        try:
            return _plain(source)
        except Exception:
            log.exception("a source of %d characters could not be looked at", len(source))
            return False

    def _mask(self, text: str, *, code: bool) -> str:
        masked, marks = _masked(text, code=code, learned=tuple(self._learned))
        if not marks:
            return masked
        known = len(self._learned)
        for mark in marks:
            if mark.named and mark.end - mark.start <= 500:
                self.learn(text[mark.start : mark.end])
        if len(self._learned) > known:
            # What was learned just now may stand elsewhere in the same text.
            masked, _ = _masked(text, code=code, learned=tuple(self._learned))
        return masked


def _forms(value: str) -> Iterator[str]:
    """Yield `value` as other texts may spell it: escaped in a repr or JSON, quoted in a URL."""
    yield value.encode("unicode_escape").decode("ascii")
    yield repr(value)[1:-1]
    yield value.replace("\\", "\\\\").replace('"', '\\"')
    from urllib.parse import quote, quote_plus

    yield quote(value, safe="")
    yield quote_plus(value)


_CELL = re.compile(r"\s*%%(\w+)")
_PYTHON_CELLS = [
    "time",
    "timeit",
    "capture",
    "prun",
    "python",
    "python3",
    "pypy",
    "private",
    "memit",
    "mprun",
    "lprun",
    "snakeviz",
    "debug",
    "scalene",
    "cython",
    "px",
    "autopx",
    "ipytest",
]


def _is_python(source: str) -> bool:
    if "%%" not in source:
        return True
    match = _CELL.match(source)
    return match is None or match[1] in _PYTHON_CELLS


def _masked(
    text: str, *, code: bool, learned: tuple[str, ...] = ()
) -> tuple[str, tuple[Mark, ...]]:
    """Mask until nothing more is found, so that a second time finds nothing either."""
    try:
        marks = _found(text, code, learned)
        if not marks:
            return text, ()
        masked = applied(text, marks)
        for _ in range(_ROUNDS):
            more = _found(masked, code, learned)
            if not more:
                break
            marks = merged((*marks, *back(more, marks)), text)
            masked = applied(text, marks)
        return masked, marks
    except Exception:
        log.exception("a text of %d characters could not be masked", len(text))
        return _UNCHECKED, (Mark("unchecked", 0, len(text)),)


def _found(text: str, code: bool, learned: tuple[str, ...]) -> tuple[Mark, ...]:
    """Return what is secret in `text`, in order and without overlaps."""
    marks = _rules(text, code)
    if learned:
        marks += _remembered(text, learned)
    if not text.isascii() or "\x1b" in text:
        marks += _disguised(text, code, learned)
    if not marks:
        return ()
    if MARKER in text:
        marks = spared(text, marks)
    return merged(marks, text)


def _rules(text: str, code: bool) -> list[Mark]:
    named, formed, may_hold = _finders()
    folded = Folded(text)
    found: list[Mark] = []
    for start, end in runs(folded.raw):
        found += (Mark(rule, begin, stop) for rule, begin, stop in tokens(text, start, end))
        if wandb_key(text, start, end):
            found.append(Mark("wandb key", start, end))
    if may_hold(folded):
        found += named(text, folded, code=code)
        found += formed(text, folded)
    return found


def _plain(text: str) -> bool:
    """Return whether no rule has anything to look at in `text`."""
    folded = Folded(text)
    for _ in runs(folded.raw):
        return False
    return not _finders()[2](folded)


@cache
def _finders() -> tuple[
    Callable[..., Iterator[Mark]], Callable[..., Iterator[Mark]], Callable[[Folded], bool]
]:
    # Late: their patterns take milliseconds to compile, and loading the extension must not wait.
    from ipymemory.secret_forms import formed, may_hold
    from ipymemory.secret_values import named

    return named, formed, may_hold


def _remembered(text: str, learned: tuple[str, ...]) -> Iterator[Mark]:
    """Yield where learned values stand; a short one must not be part of a longer word."""
    for value in learned:
        at = text.find(value)
        while at >= 0:
            end = at + len(value)
            alone = not (
                (value[0].isalnum() and text[at - 1 : at].isalnum())
                or (value[-1].isalnum() and text[end : end + 1].isalnum())
            )
            if alone or len(value) >= 16:
                yield Mark("secret", at, end)
            at = text.find(value, end)


def _disguised(text: str, code: bool, learned: tuple[str, ...]) -> Iterator[Mark]:
    """Yield what the rules find once unseen characters, colours and wide letters are gone."""
    from ipymemory.secret_disguises import bare

    shown = bare(text)
    if shown is not None:
        found = [*_rules(shown.text, code), *_remembered(shown.text, learned)]
        yield from shown.back(found)
