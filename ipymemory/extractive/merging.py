"""What a person changed by hand stays (behaviour S13).

The engine remembers the text it wrote last. What differs from it in the file is a person's: a
line they added, changed or took out. Those stay as the engine's own lines go on: a changed line
stands in the place of the engine's line with the same subject, one that was taken out does not
come back, and an added one keeps its place after the line it followed.

The subject of a line is what it is about: ``[7] warns``, `` `train.csv` ``. So the person's word
on a thing stands, however often the engine has something new to say of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache

from ipymemory import markdown
from ipymemory.extractive.sections import name_of

_LABEL = re.compile(
    r"(?P<first>(?:k\d+)?\[[^\]\n]{1,20}\])(?:(?:, |–)(?:(?:k\d+)?\[[^\]\n]{1,20}\]|…))*"
)
_BEGIN = "\0begin"


@dataclass(slots=True)
class _Edits:
    """What a person did to a section, by the subjects of the engine's lines."""

    taken_out: set[str] = field(default_factory=set)
    changed: dict[str, str] = field(default_factory=dict)
    added: dict[str, list[str]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)


def merge(base: str, current: str, new: str) -> str:
    """Return `current` brought up to date with `new`, keeping what a person changed since `base`.

    Headers, italic lines and sections that `new` does not have stay byte for byte; none is
    added. An empty file gives `new`.
    """
    if not current.strip():
        return new
    bases = _bodies(base)
    news = _bodies(new)
    done: set[str] = set()
    merged: list[markdown.Section] = []
    for each in markdown.sections(current):
        name = name_of(each.name)
        if name in news and name not in done:
            done.add(name)
            body = _body(bases.get(name, ""), each, news[name])
            each = markdown.Section(each.name, each.header, each.italic, body)
        merged.append(each)
    return markdown.join(markdown.preamble(current), merged)


def by_hand(base: str, current: str) -> dict[str, int]:
    """Return, by section, how many bytes of `current` a person wrote."""
    bases = _bodies(base)
    sizes: dict[str, int] = {}
    for name, body in _bodies(current).items():
        if body == bases.get(name):
            continue
        edits = _edits(blocks(bases.get(name, "")), blocks(body))
        size = sum(len(text.encode("utf-8", "surrogatepass")) + 1 for text in edits.texts)
        if size:
            sizes[name] = size
    return sizes


def blocks(body: str) -> list[str]:
    """Return a section's content as bullets and lines, each with the indented lines below it."""
    found: list[str] = []
    lines = body.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    blank = 0
    for line in lines:
        if not line.strip():
            blank += 1
            continue
        if found and line.startswith("  "):
            found[-1] += "\n" * (blank + 1) + line
        else:
            found += [""] * (blank if found else 0)
            found.append(line)
        blank = 0
    return found


@lru_cache(maxsize=8000)
def subject(text: str) -> str:
    """Return what a line is about: its cell with the words after it, or all to the first quote."""
    line = text.partition("\n")[0].strip().removeprefix("- ")
    label = _LABEL.match(line)
    if label:
        rest = re.split(r"[`\":;→]", line[label.end() :], maxsplit=1)[0]
        words = rest.split()
        return " ".join([label["first"], *words[:2]])
    head = re.match(r"[^`\"]*(?:`[^`]*`|\"[^\"]*\")", line)
    if head and "`" in line[: head.end()] and line.startswith(("In memory", "Parts")):
        return line.partition(":")[0]
    return head.group() if head else line


def _bodies(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in markdown.sections(text):
        found.setdefault(name_of(each.name), each.body)
    return found


def _body(base: str, section: markdown.Section, new: str) -> str:
    """Return the new content of one section of the file."""
    here, wanted = blocks(section.body), blocks(new)
    merged = _merged(blocks(base), here, wanted)
    if merged == here:
        return section.body
    last = not section.body.endswith("\n\n") and bool(section.body.strip())
    if not merged:
        return "\n"
    return "\n" + "\n".join(merged) + ("\n" if last or not new.endswith("\n\n") else "\n\n")


def _merged(base: Sequence[str], here: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the lines of `new` with what a person did between `base` and `here`."""
    if [each.rstrip() for each in base] == [each.rstrip() for each in here]:
        return list(new)
    edits = _edits(base, here)
    keys = _keys(new)
    present, known = set(keys), set(edits.order)
    places: dict[str, list[str]] = {}
    anchor = _BEGIN
    for key in [_BEGIN, *edits.order]:
        if key in present:
            anchor = key
        # A changed line whose subject the engine no longer has, stays as one that was added.
        if key in edits.changed and key not in present:
            places.setdefault(anchor, []).append(edits.changed[key])
        places.setdefault(anchor, []).extend(edits.added.get(key, ()))
    merged = list(places.get(_BEGIN, ()))
    for key, text in zip(keys, new, strict=True):
        if key in edits.changed:
            merged.append(edits.changed[key])
        elif key not in edits.taken_out and (key in known or text.rstrip() not in edits.texts):
            merged.append(text)
        merged += places.get(key, ())
    return merged


def _edits(base: Sequence[str], here: Sequence[str]) -> _Edits:
    """Return what a person did to make `here` of `base`."""
    edits = _Edits()
    keys = _keys(base)
    known = set(keys)
    old, new = [each.rstrip() for each in base], [each.rstrip() for each in here]
    edits.order = keys
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        pairs = _pairs(list(range(a, b)), list(range(c, d)), old, new)
        anchor = keys[a - 1] if a else _BEGIN
        partner = {right: left for left, right in pairs}
        edits.taken_out |= {keys[at] for at in range(a, b)} - {keys[left] for left, _ in pairs}
        for at in range(c, d):
            text = here[at]
            edits.texts.add(text.rstrip())
            if at in partner:
                anchor = keys[partner[at]]
                edits.changed[anchor] = text
                continue
            edits.added.setdefault(anchor, []).append(text)
            if subject(text) and subject(text) not in known:
                edits.taken_out.add(subject(text))
    edits.texts.discard("")
    return edits


def _pairs(
    left: list[int], right: list[int], old: Sequence[str], new: Sequence[str]
) -> list[tuple[int, int]]:
    """Return which lines of a person's stand for which of the engine's: in order, most alike."""
    pairs: list[tuple[int, int]] = []
    start = 0
    for one in left:
        for at in range(start, len(right)):
            other = right[at]
            alike = bool(new[other]) and (
                subject(old[one]) == subject(new[other])
                or SequenceMatcher(None, old[one][:500], new[other][:500]).ratio() >= 0.6
            )
            if alike:
                pairs.append((one, other))
                start = at + 1
                break
    return pairs


def _keys(texts: Sequence[str]) -> list[str]:
    """Return the subject of each line; the second with one subject gets another key."""
    seen: dict[str, int] = {}
    keys: list[str] = []
    for text in texts:
        name = subject(text)
        seen[name] = seen.get(name, 0) + 1
        keys.append(name if seen[name] == 1 else f"{name}\0{seen[name]}")
    return keys
