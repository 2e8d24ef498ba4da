"""What a model may not write into the notes, whatever it was told (behaviour S13).

A prompt is a wish; these are the rules, looked at with every edit. An edit that breaks one is
refused with the reason, so that the model can mend it in the next round.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipymemory import assistant, prompts
from ipymemory.redaction import mask
from ipymemory.tools import Guard

RUN = 8
"""Words of our own instructions in a row that are no coincidence."""

_WORD = re.compile(r"[^\W_]+")
_OF_NOTES = re.compile(
    r"\bnote-?taking\b"
    r"|\b(?:these|the|my|session) notes? (?:is|are|was|were|has|have|had|will|should|now)\b"
    r"|\b(?:updat|tak|writ|keep|refresh|condens)(?:e|es|ed|ing|ten) "
    r"(?:of )?(?:the |these |session )*notes?\b"
    r"|\bas (?:instructed|requested by the (?:system|prompt))\b|\bsystem prompt\b",
    re.IGNORECASE,
)


def guard(by_hand: tuple[str, ...], limits: Guard) -> Guard:
    """Return the guard of notes that a model writes: `limits`, and then what this room says.

    `by_hand` are the lines of a person; each is to stay as it is.
    """
    own = frozenset(_runs(" ".join((prompts.NOTES_PROMPT, assistant.SYSTEM, *_OWN))))

    def check(before: str, after: str) -> str:
        return (
            limits(before, after)
            or _lost(by_hand, before, after)
            or _written(_new(before, after), own - frozenset(_runs(before)))
        )

    return check


_OWN = (assistant.RESTARTED, assistant.PARTLY, assistant.RECALLED)


def _lost(by_hand: tuple[str, ...], before: str, after: str) -> str:
    had = {line.strip() for line in before.split("\n")}
    kept = {line.strip() for line in after.split("\n")}
    for line in by_hand:
        if line in had and line not in kept:
            return f"A person wrote the line {line[:200]!r}; it stays as it is."
    return ""


def _written(new: list[str], own: frozenset[str]) -> str:
    """Return what is wrong with the new lines, as a sentence, or nothing."""
    for line in new:
        if found := _OF_NOTES.search(line):
            return (
                f"The notes are about the work and not about themselves, so leave out {found[0]!r}."
            )
        if mask(line) != line:
            return "An edit holds what looks like a password, key or token. Leave it out."
    if any(run in own for run in _runs("\n".join(new))):
        return "An edit repeats these instructions. Write what the cells show, and nothing else."
    return ""


def _new(before: str, after: str) -> list[str]:
    had = {line.strip() for line in before.split("\n")}
    return [line for line in after.split("\n") if line.strip() and line.strip() not in had]


def _runs(text: str) -> Iterator[str]:
    words = [each.casefold() for each in _WORD.findall(text)]
    for at in range(len(words) - RUN + 1):
        yield " ".join(words[at : at + RUN])
