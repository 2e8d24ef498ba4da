"""What an agent is doing, as one line for whoever waits: from its last tool call, or its own words.

A line is shown while the agent works and then gone. A model's words about itself are nobody's: they
are checked here, and what is not plainly three to five words about work is not shown (behaviour
A1). What a notebook is saved with may hold no words of memories (behaviour L12), so a line comes
with a second form for that, made of the tool's name and at most a file's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ipymemory.events import Event
from ipymemory.neutral import one_line
from ipymemory.redaction import mask
from ipymemory.turns import ToolCall

KIND = "doing"
"""The kind of the event that bears a line."""

LONGEST = 80
"""Characters of a line: what a narrow panel shows without a break."""

LEAST_WORDS, MOST_WORDS = 3, 5

_RUN = 4
"""Words in a row that a line may not share with what the model was told."""

_ING = re.compile(r"[A-Za-z]{2,}ing")
_WORD = re.compile(r"[\w./'’()+:,&-]+")
"""No markup, no quotes, no brackets of ours around what was masked, no other scripts' controls."""

_ADDRESS = re.compile(r"://|\bwww\.", re.IGNORECASE)
_EMPHASIS = re.compile(r"(?:^|\s)__?\w[^/.]*?__?(?:\s|$)")
_ABOUT_ITSELF = frozenset(["participle", "participles", "summary line", "status line"])
_EDGES = " \t.…!\"'“”‘’"

_VERBS = {
    "Read": "Reading", "List": "Listing", "Wc": "Counting", "Edit": "Editing",
    "Write": "Writing", "Rewrite": "Rewriting", "Remove": "Removing", "Merge": "Merging",
    "Glob": "Looking for", "Find": "Looking for", "Grep": "Searching", "Git": "Asking git",
    "Remember": "Keeping", "Replace": "Replacing", "Forget": "Forgetting",
}  # fmt: skip
_WHAT = {"List": "a folder", "Grep": "files", "Glob": "files", "Find": "files"}
_OF_MEMORIES = frozenset(["Remember", "Replace", "Forget", "Merge", "Rewrite", "Remove"])
_JOBS_OF_MEMORIES = frozenset(["dream", "extraction"])


@dataclass(frozen=True, slots=True)
class Line:
    """A line to show, and the form of it that may be saved with a notebook."""

    text: str
    kept: str


def of_call(call: ToolCall, job: str) -> Line:
    """Return what a tool call says about its agent, a run of `job`: masked, one line, bounded."""
    given: Mapping[str, object] = call.input if isinstance(call.input, Mapping) else {}
    name = re.sub(r"\W", "", str(call.name))[:30] or "a tool"
    if name not in _VERBS:
        return Line(f"Using {name}", f"Using {name}")
    verb = _VERBS[name]
    path, words = _name(given.get("path")), str(given.get("pattern") or "")
    if name in _OF_MEMORIES:
        about = str(given.get("name") or given.get("keep") or "")
        return Line(_bounded(f"{verb} {about or 'a memory'}"), f"{verb} a memory")
    if name == "Git":
        return Line(*[_bounded(f"{verb} for its {_word(given.get('command')) or 'state'}")] * 2)
    named = path if _may_be_kept(str(given.get("path") or ""), job) else ""
    kept = _bounded(f"{verb} {named or ('files' if words else _WHAT.get(name, 'a file'))}")
    if words:
        where = f"{path or 'files'} for " if name == "Grep" else ""
        return Line(_bounded(f"{verb} {where}{words}"), kept if name == "Grep" else f"{verb} files")
    return Line(_bounded(f"{verb} {path}") if path else kept, kept)


def said(answer: str, told: str, before: tuple[str, ...]) -> str:
    """Return the line in a model's answer about what it does, or nothing where it is no good one.

    `told` is what the model was told, which a line must not repeat, and `before` are the lines
    that stood, from which it must differ.
    """
    line = answer.strip(_EDGES + "\n") if len(answer) <= 4 * LONGEST else ""
    words = line.split(" ")
    if not LEAST_WORDS <= len(words) <= MOST_WORDS or len(line) > LONGEST:
        return ""
    if not all(map(_WORD.fullmatch, words)) or not _ING.fullmatch(words[0]):
        return ""
    if _ADDRESS.search(line) or _EMPHASIS.search(line) or mask(line) != line:
        return ""
    if _plain(line) in {_plain(each) for each in before} or _repeats(line, told):
        return ""
    return line[0].upper() + line[1:]


class Doing:
    """The lines of the agents that run, by job, in the form that may be kept; a bus's handler."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        """Take in an event of an agent: its line, or its end."""
        if event.kind == KIND:
            self._lines[event.job] = str(event.details.get("kept", ""))
        elif event.kind in ("started", "finished", "failed"):
            self._lines.pop(event.job, None)

    def as_dict(self) -> dict[str, str]:
        """Return the line of each job that runs and has one."""
        return {job: line for job, line in tuple(self._lines.items()) if line}


def _name(path: object) -> str:
    """Return the last part of a path, of whichever system."""
    parts = [each for each in re.split(r"[/\\]", str(path or "")) if each not in ("", ".")]
    return parts[-1] if parts else ""


def _may_be_kept(path: str, job: str) -> bool:
    """Return whether the name of a file may stand in a notebook: a memory's says what it holds."""
    return job not in _JOBS_OF_MEMORIES and "memory" not in re.split(r"[/\\]", path)


def _word(value: object) -> str:
    found = re.match(r"[a-z]{2,10}", str(value or ""))
    return found[0] if found else ""


def _bounded(text: str) -> str:
    return one_line(mask(text), LONGEST)


def _plain(line: str) -> str:
    return " ".join(re.findall(r"\w+", line.casefold()))


def _repeats(line: str, told: str) -> bool:
    """Return whether a line is a piece of what the model was told, or is about being told."""
    words, all_told = _plain(line).split(), f" {_plain(told)} "
    runs = range(max(1, len(words) - _RUN + 1))
    pieces = (" ".join(words[at : at + _RUN]) for at in runs)
    about = any(f" {each} " in f" {' '.join(words)} " for each in _ABOUT_ITSELF)
    return about or any(f" {each} " in all_told for each in pieces)
