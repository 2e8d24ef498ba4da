"""The text of a living document: what is true of a notebook now, from its cells and outputs.

Overview first, then files, steps in the order in which they depend on each other, what can be
set, functions, data, and errors that are open. Every line names the cell it rests on and quotes
what stands there; there is no log of changes and nothing is guessed.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ipymemory.extractive import lineage, phrases, results
from ipymemory.extractive.sections import verb_of
from ipymemory.extractive.story import Story, is_data
from ipymemory.extractive.telling import tell, told
from ipymemory.extractive.wording import code, quote, spans
from ipymemory.turns import Turn

MOST = 120
"""Lines of one part: more than that nobody reads as an overview."""

_SETTING = re.compile(r"[A-Z][A-Z0-9_]+\Z")
"""How a name that is to be set by hand is written."""
_TIMED = re.compile(r"^`%%(?:time|capture)[^`]*`; ")
"""A magic that changes nothing of what a cell does."""
_REMARK = re.compile(r"\s+#[^`'\"]*`$")
"""A comment behind a shell's line."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """One notebook: its name and its turns in the order of its cells, `Turn.id` the label."""

    file: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class _Told:
    """A chapter with its story, told in the order of its dependencies."""

    file: str
    story: Story
    labels: tuple[str, ...]
    stands: bool


def write_document(chapters: Sequence[Chapter], level: int = 1) -> str:
    """Return the text below a heading of `level`; a pure function of `chapters`.

    Of several notebooks each has a part of its own, in the order in which they feed each other.
    """
    found = [_told(each) for each in chapters if each.turns]
    depth = "#" * min(level + 1, 6)
    if not found:
        return "There is no cell with code yet, so there is nothing to tell.\n"
    if len(found) == 1:
        parts = [(f"{depth} Overview", _overview(found[0])), *_parts(found[0], depth)]
        return _joined(parts)
    found = _fed(found)
    lines = [f"- {_summary(each)}" for each in found]
    parts = [(f"{depth} Overview", [*lines, _first(found), _LABELS])]
    for each in found:
        parts.append((f"{depth} {code(each.file, 80)}", [f"- {_start(each)}"]))
        parts += _parts(each, "#" * min(level + 2, 6))
    return _joined(parts)


_LABELS = "- Labels such as `[code 3]` count the cells that hold code, from the top."


def _first(found: list[_Told]) -> str:
    """Return the line that says with which notebook to start."""
    made = {path for each in found for path in _paths(each.story, "writes")}
    if any(made.intersection(_paths(each.story, "reads")) for each in found[1:]):
        first = code(found[0].file, 80)
        return f"- Start with {first}; below, each stands after those whose files it reads."
    return "- None of them reads a file that another one writes: each can be run by itself."


def _joined(parts: Iterable[tuple[str, list[str]]]) -> str:
    return "\n\n".join(f"{title}\n\n" + "\n".join(lines) for title, lines in parts if lines) + "\n"


def _told(chapter: Chapter) -> _Told:
    order = ordered([(told(each)[0].reads, told(each)[0].binds) for each in chapter.turns])
    # Counts tell how the cells were run last; the document tells how they depend.
    turns = [
        replace(chapter.turns[at], execution_count=None, origin="file", kernel=1) for at in order
    ]
    labels = tuple(f"[{each.id}]" for each in turns)
    return _Told(chapter.file, tell(turns), labels, list(order) == sorted(order))


def ordered(cells: Sequence[tuple[frozenset[str], frozenset[str]]]) -> list[int]:
    """Return the places of `cells`, the names each reads and binds, so that each can run.

    A name comes from the last cell above that binds it, else from the first one below, also where a
    cell changes it: ``df = df.dropna()``. What does not depend on anything below stays where it
    stands; so does a circle.
    """
    binders: dict[str, list[int]] = {}
    for at, (_, binds) in enumerate(cells):
        for name in binds:
            binders.setdefault(name, []).append(at)
    waits: list[set[int]] = [set() for _ in cells]
    for at, (reads, _) in enumerate(cells):
        for name in reads:
            above = [each for each in binders.get(name, ()) if each < at]
            below = [each for each in binders.get(name, ()) if each > at]
            if above:
                waits[at].add(above[-1])
            elif below:
                waits[at].add(below[0])
    needed: list[list[int]] = [[] for _ in cells]
    for at, each in enumerate(waits):
        for other in each:
            needed[other].append(at)
    left = [len(each) for each in waits]
    ready = [at for at, count in enumerate(left) if not count]
    heapq.heapify(ready)
    done: dict[int, None] = {}
    stuck = iter(range(len(cells)))
    while len(done) < len(cells):
        at = heapq.heappop(ready) if ready else next(each for each in stuck if each not in done)
        if at in done:
            continue
        done[at] = None
        for other in needed[at]:
            left[other] -= 1
            if not left[other]:
                heapq.heappush(ready, other)
    return list(done)


def _fed(found: list[_Told]) -> list[_Told]:
    """Return the notebooks so that each comes after those that write what it reads."""
    ends = [
        (frozenset(_paths(each.story, "reads")), frozenset(_paths(each.story, "writes")))
        for each in found
    ]
    return [found[at] for at in ordered(ends)]


def _paths(story: Story, verb: str) -> list[str]:
    return [path for path, file in story.files.items() if any(u[0] == verb for u in file.uses)]


def _overview(told: _Told) -> list[str]:
    return [f"- {_summary(told)}", f"- {_start(told)}", _LABELS]


def _summary(told: _Told) -> str:
    reads, writes = (_paths(told.story, verb) for verb in ("reads", "writes"))
    steps = "1 step" if len(told.labels) == 1 else f"{len(told.labels)} steps"
    text = f"{code(told.file, 80)}: {steps}"
    if reads:
        text += f"; reads {spans(tuple(reads), 6, 100)}"
    if writes:
        text += f"; writes {spans(tuple(writes), 6, 100)}"
    if told.story.unsolved:
        text += f"; open errors: {len(told.story.unsolved)}"
    return text


def _start(told: _Told) -> str:
    if told.stands:
        return f"Start with {told.labels[0]}; the cells run from top to bottom."
    runs = _runs(told.labels)
    shown = ", ".join(runs[:40]) + (", …" if len(runs) > 40 else "")
    return f"Start with {told.labels[0]}; the cells depend on each other in this order: {shown}."


def _runs(labels: Sequence[str]) -> list[str]:
    """Return labels in their order, three or more that follow each other as one."""
    found: list[list[str]] = []
    last = 0
    for each in labels:
        number = int(re.sub(r"\D", "", each) or 0)
        if found and number == last + 1:
            found[-1].append(each)
        else:
            found.append([each])
        last = number
    return [text for run in found for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else run)]


def _parts(told: _Told, depth: str) -> list[tuple[str, list[str]]]:
    story = told.story
    made = {
        "Inputs and outputs": _files(story),
        "Steps": _steps(story),
        "Parameters": _parameters(story),
        "Functions": _functions(story),
        "Data": _data(story),
        "Open errors": _errors(story),
    }
    return [(f"{depth} {name}", _bounded(lines)) for name, lines in made.items()]


def _bounded(lines: list[str]) -> list[str]:
    more = len(lines) - MOST
    return [*lines[:MOST], f"- {more} more lines do not fit in here"] if more > 0 else lines


def _files(story: Story) -> list[str]:
    found = []
    for path, file in story.files.items():
        uses = "; ".join(f"{verb_of(v)} by {code(by, 60)} {label}" for v, by, label in file.uses)
        found.append(f"- {code(path, 200)} {uses}")
    return found


def _steps(story: Story) -> list[str]:
    return [f"{at + 1}. {step.label} {_step(story, at)}" for at, step in enumerate(story.steps)]


def _step(story: Story, at: int) -> str:
    """Return what a step does: what the notes say of it, and the names that they leave out."""
    step = story.steps[at]
    text = _TIMED.sub("", phrases.phrase(story, at))
    if text.startswith("`!"):
        text = f"runs {_REMARK.sub('`', text)}"
    plain = text == phrases.first(step)
    if step.failed:
        return text
    if shown := phrases.shown(step):
        # The notes say of a number that was printed nothing but the line.
        if step.said.metrics or (step.said.table and step.facts.last):
            text = f"{text.removesuffix(shown[0])}shows {shown[0]}"
        plain = False
    elif plain and step.said.table:
        text = f"shows {text}"
    made = [each.name for each in step.facts.built if each.how == "="]
    settings = [each for each in dict.fromkeys(made) if _SETTING.match(each)]
    if plain and settings:
        return "sets " + ", ".join(code(each, 60) for each in settings[:8])
    data = [
        code(each, 60)
        for each in dict.fromkeys(made)
        if (named := story.names.get(each)) is not None
        and named.label == step.label
        and each not in settings
        and lineage.stands_out(story, named)
    ]
    new = [each for each in data if f"{each} from" not in text and f"{each} (" not in text]
    if not new or (plain and len(new) == 1):
        return text
    makes = "makes " + ", ".join(new[:4])
    return makes if plain else f"{text}; {makes}"


def _parameters(story: Story) -> list[str]:
    return [f"- {code(name, 60)} = {text}" for name, text in _settings(story).items()]


def _settings(story: Story) -> dict[str, str]:
    """Return what is set by hand: names in capitals that are made of no data, and their values."""
    found: dict[str, str] = {}
    for step in story.steps:
        for built in step.facts.built:
            if built.how != "=" or not _SETTING.match(built.name):
                continue
            if all(each in found or not is_data(each, story) for each in built.names):
                found[built.name] = f"{code(built.expression, 110)} {step.label}"
    return found


def _functions(story: Story) -> list[str]:
    found = []
    for definition, label in story.definitions.values():
        kind = "class " if definition.kind == "class" else ""
        text = f"- {kind}{code(definition.signature, 200)} {label}"
        text += f": {quote(definition.doc, 160)}" if definition.doc else ""
        if definition.methods:
            text += f"; methods {spans(definition.methods, 8, 70)}"
        found.append(text)
    return found


def _data(story: Story) -> list[str]:
    settings = _settings(story)
    return [
        lineage.line_of(story, named)
        for named in story.names.values()
        if named.name not in settings and lineage.stands_out(story, named)
    ]


def _errors(story: Story) -> list[str]:
    found = []
    for trouble in (story.troubles[index] for index in story.unsolved):
        at = code(trouble.failure.at, 160)
        text = f"- {trouble.step.label} {code(results.outcome(trouble.failure), 240)}"
        found.append(text + (f" at {at}" if at else ""))
    return found
