"""Remember and Replace for a model that looks through a session: it chooses, a person has said it.

The prompt of such a run asks for whole sentences; this is where that is looked at, with every call
and before anything is written (behaviour E2, E13). What is kept stands word for word among what was
said since the last look. Whose words these are the record tells, not the model: what came with a
file waits as a proposal and is never a person's wish. A question, a guess or a one-off is refused,
so is what is known, and the reason goes back to the model, which may mend it in the next round.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ipymemory.errors import HistoryError, MemoryRefused, ToolError
from ipymemory.extractive.doubts import passing
from ipymemory.extractive.passages import Passage
from ipymemory.extractive.remembering import MemoriesMaterial, quoted
from ipymemory.history import Run
from ipymemory.learning import Keeping
from ipymemory.memory_files import KINDS, Draft, Memory, Proposal
from ipymemory.memory_files.subjects import subject_of
from ipymemory.memory_files.values import one_line
from ipymemory.memory_tools import SPECS, JudgeThemselves, MemoryTool
from ipymemory.permissions import Policy
from ipymemory.recall.words import asked, terms
from ipymemory.tools import Tool

MOST_KEPT = 10
"""Memories of one look: who keeps more does not choose."""

MOST_SENTENCES = 4
"""Sentences of one memory: the fact, why, and when it applies."""

FILES_KINDS = ("project", "reference")
"""Kinds that words which came with a file may be: the others are a person's alone."""

_NAMES = ("Remember", "Replace")
_EDGE = " \t.!?;:,-–—•*\"“”'‘’。！？；"
_SPACE = re.compile(r"\s+")


@dataclass(slots=True)
class Choosing:
    """The tools of one run, which choose among `said`."""

    keeping: Keeping
    said: Sequence[Passage]
    material: MemoriesMaterial
    refused: list[str] = field(default_factory=list)
    """What was not kept, and why, for a person to read."""

    def tools(self) -> dict[str, Tool]:
        """Return the tools by name."""
        specs = {each.name: each for each in SPECS}
        return {
            "Remember": MemoryTool(specs["Remember"], self.remember),
            "Replace": MemoryTool(specs["Replace"], self.replace),
        }

    def policy(self, others: Policy) -> Policy:
        """Return the policy that lets these tools look at their calls, and asks `others` else."""
        return JudgeThemselves(others, _NAMES)

    def remember(self, given: Mapping[str, str], run: Run) -> str:
        """Keep a fact; returns a sentence for the model. Raises `ToolError`."""
        return self._keep(given["fact"], given["kind"], None, run)

    def replace(self, given: Mapping[str, str], run: Run) -> str:
        """Put a fact in a memory's place; returns a sentence. Raises `IpymemoryError`."""
        old = self.keeping.memory.find(given["name"])
        return self._keep(given["fact"], old.kind, old, run)

    def _keep(self, fact: str, kind: str, old: Memory | None, run: Run) -> str:
        try:
            draft = self._draft(fact, kind, old)
            if self.keeping.known(draft):
                return "That is kept already, or waits for the person's yes."
            done = self.keeping.keep(draft, run, old.name if old is not None else None)
        except (ToolError, MemoryRefused, HistoryError) as error:
            self.refused.append(f"{one_line(fact, 80)}: {error}")
            raise ToolError(str(error)) from error
        if isinstance(done, Proposal):
            return "It waits for the person's yes."
        return f"Kept as {done.name} ({done.kind})."

    def _draft(self, fact: str, kind: str, old: Memory | None) -> Draft:
        """Return what would be kept; raises `ToolError` with the reason why it may not be."""
        if kind not in KINDS:
            raise ToolError(f"kind is one of {', '.join(KINDS)}.")
        if len(self.keeping.saved) + len(self.keeping.proposed) >= MOST_KEPT:
            raise ToolError(f"{MOST_KEPT} are kept of this look already. Leave the rest.")
        found = whole_sentences(fact, self.said)
        if not found:
            raise ToolError(
                "These are not whole sentences of what was said, word for word. Give them as they "
                "stand between the <said> marks, or leave it."
            )
        if len(found) > MOST_SENTENCES:
            raise ToolError(f"At most {MOST_SENTENCES} sentences are one memory. Keep the fact.")
        if why := next(filter(None, (passing(each.text) for each in found)), ""):
            raise ToolError(f"It is not kept, since {why}.")
        draft = quoted(kind, found, self.material, subject_of(" ".join(e.text for e in found)))
        if draft.source.origin == "file":
            if kind not in FILES_KINDS:
                raise ToolError(
                    f"Words that came with the file are nobody's wish, so none is of kind {kind}."
                )
            if self.keeping.full:
                raise ToolError("Too many proposals wait already. Leave what came with the file.")
        if old is not None and not _shares_words(old, draft):
            raise ToolError(f"It says nothing of {old.name}, so it takes no place of that.")
        return draft


def whole_sentences(fact: str, said: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return the sentences of which `fact` is made and nothing else; empty where it is not.

    Marks between sentences, white space and the form of letters apart. The longest is tried first;
    of two that say the same, a person's counts before a file's.
    """
    by_words: dict[str, Passage] = {}
    for each in said:
        words = _plain(each.text)
        if words and (words not in by_words or each.typed):
            by_words[words] = each
    longest = sorted(by_words, key=len, reverse=True)
    rest, found = _plain(fact), []
    while rest:
        begun = next((each for each in longest if _begins(rest, each)), None)
        if begun is None:
            return ()
        found.append(by_words[begun])
        rest = rest[len(begun) :].lstrip(_EDGE)
    return tuple(dict.fromkeys(found))


def _begins(text: str, words: str) -> bool:
    after = text[len(words) : len(words) + 1]
    return text.startswith(words) and not after.isalnum()


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return _SPACE.sub(" ", folded).strip(_EDGE)


def _shares_words(old: Memory, draft: Draft) -> bool:
    head = {*terms(old.name), *terms(old.title), *terms(old.description)}
    return bool(head & set(asked(draft.description)))
