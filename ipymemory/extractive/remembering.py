"""What a person said plainly, as drafts of memories: rules, decisions, deadlines, links, facts.

A sentence is kept when it has one of the known `forms` and nothing speaks against it (`doubts`);
its words are quoted, never put in others. The engine would rather keep nothing.

`Draft.subject` names what a memory is about and which property of that, so that a change of mind
takes the place of what was said before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ipymemory.extractive import cells, dates, doubts, other_tongues
from ipymemory.extractive.forms import (
    DEADLINE,
    DUE_FOR,
    FORMS,
    LINK,
    PASSED,
    PURPOSE,
    USE,
    about,
    is_lasting,
    is_news,
)
from ipymemory.extractive.passages import Passage
from ipymemory.memory_files.values import Draft, Source, fingerprint, normal, one_line
from ipymemory.turns import Turn

TITLE = 60
"""Characters of a title at most."""

MOST_CODE = 500
"""Cells, the newest, whose code is compared with what is said of it."""


@dataclass(frozen=True, slots=True)
class MemoriesMaterial:
    """What the engine needs for one extraction.

    `code` are the words of the session's cells: what they show is no news (behaviour E2).
    """

    passages: tuple[Passage, ...]
    notebook: str = ""
    session: str = ""
    code: frozenset[str] = field(default_factory=frozenset)


def words_of(turns: Sequence[Turn]) -> frozenset[str]:
    """Return the words of cells' code without their comments, for `MemoriesMaterial.code`."""
    return frozenset(
        word
        for each in turns[-MOST_CODE:]
        for word in normal(re.sub(r"#.*", " ", cells.take_apart(each.source).python)).split()
    )


def drafts(material: MemoriesMaterial) -> tuple[Draft, ...]:
    """Return what is to be kept of `material`, in order, the same thing once. Never raises."""
    found: dict[str, Draft] = {}
    for passage in material.passages:
        draft = draft_of(passage, material)
        if draft is not None:
            # What is said again later counts as said later: it is the newest of its subject.
            found.pop(key := fingerprint(draft.description), None)
            found[key] = draft
    return tuple(found.values())


def draft_of(passage: Passage, material: MemoriesMaterial) -> Draft | None:
    """Return the memory that one sentence makes, None where it makes none."""
    text = passage.text
    if doubts.doubt(_without_links(text)):
        return None
    if (draft := _deadline(passage, material)) is not None:
        return draft
    for form in (*FORMS, *other_tongues.FORMS):
        match = form.pattern.search(text)
        if match is None or not (passage.typed or form.from_files):
            continue
        if form.pattern is USE and not is_news(match, material.code):
            return None
        if form.kind == "user" and not is_lasting(text):
            return None
        return _draft(form.kind, passage, material, form.subject(match))
    return _link(passage, material)


def quoted(
    kind: str, said: Sequence[Passage], material: MemoriesMaterial, subject: str = ""
) -> Draft:
    """Return the memory of `kind` that sentences make which somebody chose, at least one.

    A deadline among a project's gets its day in numbers; one that names no single day stays as it
    was said, beside the day on which that was.
    """
    first = said[0]
    files = tuple(dict.fromkeys(each for one in said for each in one.files))
    typed = all(each.typed for each in said)
    text = " ".join(each.text for each in said)
    whole = replace(first, text=text, files=files, typed=typed)
    draft = _deadline(whole, material) if kind == "project" else None
    draft = draft or _draft(kind, whole, material, subject)
    turns = tuple(dict.fromkeys(each.id for each in said))
    return replace(draft, source=replace(draft.source, turns=turns))


def _draft(
    kind: str, passage: Passage, material: MemoriesMaterial, subject: str, more: str = ""
) -> Draft:
    text = one_line(passage.text)
    day = dates.day_of(passage.time)
    cell = f", cell {passage.cell}" if passage.cell else ""
    where = f"{material.notebook or 'a terminal'}{cell}"
    said = "Said" if passage.typed else "Stands"
    body = [text, "", *([more, ""] if more else [])]
    if kind == "feedback":
        body += [f"**How to apply:** as it was said, in {where}; no further than its words go."]
    else:
        body += [f"{said} in {where}{f' on {day.isoformat()}' if day else ''}."]
    if passage.files and re.search(r"\b(?:this|these)\s+\w+", text, re.IGNORECASE):
        body += ["", f"The cell it stands in names {', '.join(passage.files[:3])}."]
    source = Source(material.session, material.notebook, (passage.id,), text, passage.origin)
    return Draft(kind, _title(text), text, "\n".join(body), source, subject)


def _deadline(passage: Passage, material: MemoriesMaterial) -> Draft | None:
    """Return a deadline whose one day is known; one without is none."""
    text = passage.text
    if not DEADLINE.search(text) or PASSED.search(text):
        return None
    day = dates.named(text, dates.day_of(passage.time))
    if day is None:
        return None
    match = DUE_FOR.search(text)
    aim = (match["aim"] or match["aim2"]) if match else ""
    draft = _draft("project", passage, material, about("deadline", aim), f"The day is {day}.")
    if day.said_absolutely:
        return draft
    described = f"{one_line(text).rstrip('.!')}: {day.date.isoformat()}"
    return Draft(draft.kind, draft.title, described, draft.body, draft.source, draft.subject)


def _link(passage: Passage, material: MemoriesMaterial) -> Draft | None:
    """Return a link that says what it is for; only a person's."""
    match = LINK.search(passage.text)
    if match is None or not passage.typed:
        return None
    rest = f"{LINK.sub(' ', passage.text)} {match['name'] or ''}"
    if len(normal(rest).split()) < 3 or not PURPOSE.search(rest):
        return None
    return _draft("reference", passage, material, f"link: {match['url']}")


def _title(text: str) -> str:
    return one_line(LINK.sub(lambda m: m["name"] or " ", text).rstrip("….! "), TITLE)


def _without_links(text: str) -> str:
    return LINK.sub("link", text)
