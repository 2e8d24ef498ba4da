"""What an engine wrote in the notes, without what a person changed: ``notes.base.md``.

The difference between it and ``notes.md`` is the person's. Its first line names the run it
belongs to, and, once a model has written the notes, the model's last run: how far that went, and
how many lines of the Worklog are its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ipymemory import markdown
from ipymemory.extractive.material import ByModel
from ipymemory.extractive.merging import blocks
from ipymemory.extractive.sections import name_of
from ipymemory.files import write_atomic
from ipymemory.places import SessionFolder

_LINE = "<!-- ipymemory: what the engine wrote in run {};{} not for editing -->\n"
_MODEL = " model run {} through {}, {} lines of its own;"
_RUN = re.compile(
    r"<!-- ipymemory: what the engine wrote in run (\w*);"
    r"(?: model run (\w+) through (\w*), (\d{1,6}) lines of its own;)?.*-->\n"
)


@dataclass(frozen=True, slots=True)
class Base:
    """The text that engines wrote, the run it belongs to, and what of it is a model's."""

    text: str = ""
    run: str = ""
    by_model: ByModel | None = None


def read(folder: SessionFolder) -> Base:
    """Return the base on disk; one without text where there is none or it is of no use."""
    try:
        text = folder.notes_base.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return Base()
    match = _RUN.match(text)
    if match is None:
        return Base()
    run, model, through, lines = match.groups()
    by_model = ByModel(model, through, int(lines)) if model else None
    return Base(text[match.end() :], run, by_model)


def write(folder: SessionFolder, base: Base) -> None:
    """Write the base, where it is another than on disk; raises `PlaceError`."""
    by = base.by_model
    told = _MODEL.format(by.run, by.through, by.log) if by is not None else ""
    data = (_LINE.format(base.run, told) + base.text).encode()
    path = folder.notes_base
    if not path.is_file() or path.read_bytes() != data:
        write_atomic(path, data)


def landed(old: str, new: str, before: str, after: str) -> str:
    """Return `new`, but with `old`'s section wherever an edit of the notes did not land.

    `old` and `new` are bases; `before` and `after` the notes around the run.
    """
    was, had = _by_name(old), _by_name(before)
    now = _by_name(after)
    return markdown.join(
        markdown.preamble(new),
        (
            was[each.name]
            if each.name in was and had.get(each.name) == now.get(each.name)
            else each
            for each in markdown.sections(new)
        ),
    )


def by_hand(base: str, notes: str) -> tuple[str, ...]:
    """Return the lines below the headers of `notes` that `base` has not: a person's."""
    had = Counter(_lines(base))
    found = []
    for line in _lines(notes):
        if had[line]:
            had[line] -= 1
        else:
            found.append(line)
    return tuple(found)


def without(notes: str, by_hand: Iterable[str]) -> str:
    """Return `notes` without the lines `by_hand`."""
    gone = Counter(by_hand)
    kept_sections = []
    for each in markdown.sections(notes):
        kept = []
        for line in each.body.split("\n"):
            if gone[line.strip()]:
                gone[line.strip()] -= 1
            else:
                kept.append(line)
        kept_sections.append(markdown.Section(each.name, each.header, each.italic, "\n".join(kept)))
    return markdown.join(markdown.preamble(notes), kept_sections)


def log_lines(text: str) -> int:
    """Return how many lines the Worklog of `text` has, each with those below that belong to it."""
    wanted = name_of("Worklog")
    found = (each for each in markdown.sections(text) if name_of(each.name) == wanted)
    return next((len(blocks(each.body)) for each in found), 0)


def _lines(text: str) -> list[str]:
    bodies = (each.body for each in markdown.sections(text))
    return [line.strip() for body in bodies for line in body.split("\n") if line.strip()]


def _by_name(text: str) -> dict[str, markdown.Section]:
    return {each.name: each for each in markdown.sections(text)}
