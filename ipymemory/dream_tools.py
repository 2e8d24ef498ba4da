"""Merge, Rewrite and Remove: what a model may do to memories in a dream, each looked at by code.

They work on the dream's copy (`dream_copy`) and write nothing anywhere else. Merge and Rewrite
lose no sentence (`dream_words`) and no origin. Remove is carried out where a newer memory
contradicts, or where what the memory rests on is gone; all else, and more than a fifth of the
memories, a person is asked about first (behaviour D5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ipymemory import dream_words
from ipymemory.dream_copy import Copy, File
from ipymemory.errors import ToolError
from ipymemory.extractive.references import without_mark
from ipymemory.history import Run
from ipymemory.memory_files import PERSONS
from ipymemory.memory_files.values import Memory, Source, one_line
from ipymemory.memory_tools import MemoryTool, text_spec
from ipymemory.redaction import mask
from ipymemory.tools import Tool

MOST_MERGED = 8
"""Memories that are merged into one at once."""

MOST_REMOVED = 0.2
"""The share of all memories that may go without a question (behaviour D5)."""

_LONGEST = 4000
"""Characters of what a merge comes to: a memory is a page, not a book."""

MERGE = text_spec(
    "Merge",
    "Put memories of one kind that say the same, or parts of the same, into the one called keep. "
    "gone: the names of the others, a line each; they go. text: all of their sentences, word for "
    "word and in their order, without those whose every word stands in another one.",
    "keep",
    "gone",
    "text",
)
REWRITE = text_spec(
    "Rewrite",
    "Give the memory called name a text of its own sentences, without what it says twice. Behind "
    "words such as next Friday their day may be put in brackets, as (2026-11-27), counted from "
    "the memory's own date.",
    "name",
    "text",
)
REMOVE = text_spec(
    "Remove",
    "Have the memory called name go. because: the name of the newer memory that contradicts it, "
    "or else a short reason. Where code does not see that for itself, the person is asked.",
    "name",
    "because",
)

NAMES = tuple(each.name for each in (MERGE, REWRITE, REMOVE))


@dataclass(slots=True)
class Consolidating:
    """The tools of one dream, and what came of them."""

    copy: Copy
    merged: int = 0
    rewritten: int = 0
    removed: dict[str, str] = field(default_factory=dict)
    """Why each memory goes, by its name; carried out at the end (`settle`)."""
    asked: dict[str, str] = field(default_factory=dict)
    """Why each memory should go of which a person is asked."""
    _because: dict[str, str] = field(default_factory=dict)
    _links: dict[str, str] = field(default_factory=dict)

    def tools(self) -> dict[str, Tool]:
        """Return the tools by name."""
        done = (self.merge, self.rewrite, self.remove)
        return {
            spec.name: MemoryTool(spec, do)
            for spec, do in zip((MERGE, REWRITE, REMOVE), done, strict=True)
        }

    def merge(self, given: Mapping[str, str], run: Run) -> str:
        """Merge memories; returns a sentence for the model. Raises `ToolError`."""
        kept = self.copy.find(given["keep"])
        names = [each for each in given["gone"].replace(",", "\n").split("\n") if each.strip()]
        if len(names) >= MOST_MERGED:
            raise ToolError(f"At most {MOST_MERGED} memories become one at once.")
        gone = {each.name: each for each in map(self.copy.find, names)}
        if not gone or kept.name in gone:
            raise ToolError("gone names the memories that go, and keep is none of them.")
        self._free(kept, *gone.values())
        into = self.copy.memory(kept)
        others = [self.copy.memory(each) for each in gone.values()]
        for each in others:
            _may_join(each, into)
        text = self._text(given["text"], [into, *others])
        self.copy.rewrite(kept, text, _origins(into, others))
        for file in gone.values():
            self.copy.remove(file)
        self.copy.join([kept, *gone.values()])
        for each in others:
            self._links |= dict.fromkeys(filter(None, (each.name, each.label)), kept.name)
        self.merged += len(gone)
        return f"{', '.join(gone)} went into {kept.name}, with all that they say."

    def rewrite(self, given: Mapping[str, str], run: Run) -> str:
        """Give a memory another text; returns a sentence. Raises `ToolError`."""
        file = self.copy.find(given["name"])
        self._free(file)
        memory = self.copy.memory(file)
        text = self._text(given["text"], [memory])
        self.copy.rewrite(file, text)
        self.rewritten += 1
        return f"{file.name} has that text now."

    def remove(self, given: Mapping[str, str], run: Run) -> str:
        """Have a memory go, or ask about that; returns a sentence. Raises `ToolError`."""
        file = self.copy.find(given["name"])
        self._free(file)
        memory = self.copy.memory(file)
        because = one_line(mask(given["because"]))
        try:
            other: File | None = self.copy.find(because)
        except ToolError:
            other = None
        if other is not None and other.name != file.name and other.name not in self.removed:
            newer = self.copy.memory(other)
            if dream_words.contradicts(newer, memory, PERSONS):
                return self._goes(file, f"{other.name}, which is newer, says something else", other)
        elif memory.kind in ("project", "reference") and _rests_on_nothing(memory):
            return self._goes(file, "what it names is no longer in this project", None)
        why = f"{other.name} is said to stand against it" if other is not None else because
        self.asked[file.name] = f"a model would remove it: {why}"[:200]
        return f"{file.name} stays for now: nothing here shows that it is wrong. They are asked."

    def settle(self) -> int:
        """Carry out what goes, or ask where it is too much; return how many links follow."""
        if len(self.removed) > self.copy.total * MOST_REMOVED:
            self.asked |= self.removed
            self.removed = {}
        for name in self.removed:
            file = self.copy.files[name]
            self.copy.remove(file)
            if because := self._because.get(name):
                # What goes because of another goes only while that other stands.
                self.copy.join([self.copy.files[because], file])
                label = self.copy.original(file).label
                self._links |= dict.fromkeys(filter(None, (name, label)), because)
        return self.copy.relink(self._links) if self._links else 0

    def _goes(self, file: File, why: str, other: File | None) -> str:
        self.removed[file.name] = why
        if other is not None:
            self._because[file.name] = other.name
        return f"{file.name} goes at the end of this run: {why}."

    def _free(self, *files: File) -> None:
        """Refuse what goes already, or what something else goes for; raises `ToolError`."""
        for each in files:
            if each.name in self.removed or each.name in self._because.values():
                raise ToolError(f"{each.name} is part of a removal already. Leave it.")

    def _text(self, text: str, memories: list[Memory]) -> str:
        if mask(text) != text:
            raise ToolError("The text holds what looks like a password, key or token.")
        if odd := next((each for each in text if not (each.isprintable() or each == "\n")), ""):
            raise ToolError(f"The text holds the character {odd!a}. Leave it out.")
        if len(text) > _LONGEST:
            raise ToolError(f"The text is longer than {_LONGEST:,} characters. Leave them apart.")
        if why := dream_words.fault(text, memories):
            raise ToolError(why)
        return text


def _may_join(gone: Memory, kept: Memory) -> None:
    """Raise `ToolError` where `kept` cannot stand for `gone`."""
    if gone.kind != kept.kind:
        raise ToolError(f"{gone.name} is of kind {gone.kind} and {kept.name} of {kept.kind}.")
    if (gone.source.origin in PERSONS) != (kept.source.origin in PERSONS):
        raise ToolError(
            f"Of {gone.name} and {kept.name} one holds a person's words and the other does not, "
            "so they stay apart."
        )
    if not dream_words.about_the_same(gone, kept):
        raise ToolError(f"{gone.name} and {kept.name} are not about the same. Leave them apart.")


def _origins(kept: Memory, gone: list[Memory]) -> tuple[Source, ...]:
    """Return where all of them came from but for the kept one's own source, each once."""
    every = (one for each in (kept, *gone) for one in (each.source.alone, *each.source.also))
    own = kept.source.alone
    return tuple(each for each in dict.fromkeys(every) if each not in (own, Source()))


def _rests_on_nothing(memory: Memory) -> bool:
    """Return whether the built-in engine has marked that what the memory names is gone."""
    return without_mark(memory.body) != memory.body
