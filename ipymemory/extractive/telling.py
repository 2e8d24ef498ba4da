"""The fold: a session's turns told as one story, in the order in which they ran.

What one turn says by itself is worked out once and remembered by the turn's value; only what
depends on the turns before it is done anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from ipymemory.extractive import cures, paths, phrases, results, sources, troubles
from ipymemory.extractive.binding import bind
from ipymemory.extractive.material import Constant, Facts, FileUse, Said
from ipymemory.extractive.story import FileStory, Result, Step, Story, label_of
from ipymemory.extractive.wording import code
from ipymemory.turns import Entry, Happening, Turn

_KEPT = 6000
"""Turns whose facts are remembered: more than the longest session one is likely to have."""

_known: dict[str, tuple[Turn, Facts, Said]] = {}
_settled: tuple[list[Turn | Happening], Story] = ([], Story())
"""The story of the last call's entries but for its last few, which may still change."""


def told(turn: Turn) -> tuple[Facts, Said]:
    """Return what `turn` says by itself; worked out once for each turn's value."""
    known = _known.get(turn.id)
    if known is not None and (known[0] is turn or known[0] == turn):
        return known[1], known[2]
    facts = sources.facts_of(turn.source)
    said = results.said_by(turn)
    if len(_known) >= _KEPT:
        for key in list(_known)[: _KEPT // 2]:
            del _known[key]
    _known[turn.id] = (turn, facts, said)
    return facts, said


def ordered(entries: Iterable[Entry]) -> list[Turn | Happening]:
    """Return the turns and happenings in the order in which they ran.

    A notebook file stands in the order of its cells; its counts say how it ran.
    """
    found = [each for each in entries if isinstance(each, Turn | Happening)]
    turns = [each for each in found if isinstance(each, Turn)]
    if not turns or any(each.origin != "file" for each in turns):
        return found
    last = (0, -1)
    keys: dict[str, tuple[int, int]] = {}
    for turn in turns:
        if turn.execution_count is not None:
            last = (turn.kernel, turn.execution_count)
        keys[turn.id] = last
    turns.sort(key=lambda each: keys[each.id])
    return [each for each in found if isinstance(each, Happening)] + list(turns)


def tell(entries: Iterable[Entry]) -> Story:
    """Return the story of `entries`, a pure function of them.

    The story of the last call is gone on with where `entries` begin with those of that call: one
    more turn then costs one turn, and not the whole session again.
    """
    global _settled
    now = ordered(entries)
    before, base = _settled
    if len(before) > len(now) or any(
        one is not other and one != other for one, other in zip(before, now, strict=False)
    ):
        before, base = [], Story()
    end = max(len(now) - phrases.OPEN, len(before))
    for entry in now[len(before) : end]:
        _entry(base, entry)
    _settled = (now[:end], base)
    story = base.copy()
    for entry in now[end:]:
        _entry(story, entry)
    return story


def _entry(story: Story, entry: Turn | Happening) -> None:
    if isinstance(entry, Turn):
        _turn(story, entry)
    else:
        _happening(story, entry)


def _happening(story: Story, entry: Happening) -> None:
    if entry.name == "packages":
        inner = entry.details.get("packages", entry.details)
        if isinstance(inner, Mapping):
            for name, version in inner.items():
                if isinstance(name, str) and isinstance(version, str) and version:
                    story.versions[_distribution(name)] = version


def _turn(story: Story, turn: Turn) -> None:
    facts, said = told(turn)
    label = label_of(turn)
    if turn.kernel > story.kernel:
        _new_kernel(story, turn.kernel)
    again = facts.lines in story.seen
    note, was = _note(story, turn, facts)
    step = Step(turn, label, facts, said, _seconds(turn.time), again, note, was)
    story.seen[facts.lines] = label
    if step.failed or (turn.status == "unknown" and turn.origin == "typed"):
        troubles.raised(story, step)
    elif turn.status == "ok":
        troubles.ran(story, step)
    story.steps.append(step)
    if facts.marks or story.marks:
        _marks(story, step)
    if turn.cell_id:
        story.cells[turn.cell_id] = step
    for comment in facts.comments:
        story.comments.setdefault(comment, label)
    for command in facts.commands:
        labels, _ = story.commands.get(command, ((), ""))
        story.commands[command] = ((*labels, label)[-4:], _outcome(step, command))
    for name in facts.reads:
        named = story.names.get(name)
        if named is not None and named.label != label:
            story.used[name] = label
    bind(story, step)
    if step.counts:
        _sources(story, step)
    _results(story, step)
    phrases.log(story)


def _note(story: Story, turn: Turn, facts: Facts) -> tuple[str, str]:
    """Return the one or two lines that were changed since the same cell ran: now, and before."""
    if turn.cell_id:
        before = story.cells.get(turn.cell_id)
    else:
        before = story.steps[-1] if story.steps else None
    if before is None or before.failed or len(before.facts.lines) != len(facts.lines):
        return "", ""
    pairs = [
        (old, new) for old, new in zip(before.facts.lines, facts.lines, strict=True) if old != new
    ]
    most = len(facts.lines) - 1 if turn.cell_id else len(facts.lines) // 2
    if not 0 < len(pairs) <= min(most, 2):
        return "", ""
    # What is printed says less than what it was printed of.
    pairs = [each for each in pairs if not each[1].startswith("print(")] or pairs
    now, was = (", ".join(code(each[side], 60) for each in pairs) for side in (1, 0))
    return now, was


def _new_kernel(story: Story, kernel: int) -> None:
    """Note that a kernel began: what the one before had bound is gone."""
    if story.kernel:
        story.restarts[kernel] = story.steps[-1].label if story.steps else ""
        for name, named in story.names.items():
            story.lost[name] = named.label
    story.kernel = kernel


def _sources(story: Story, step: Step) -> None:
    facts, label = step.facts, step.label
    for each in facts.imports:
        if each.alias:
            story.modules[each.alias] = each.module
        elif not each.names:
            story.modules[each.root] = each.root
        for name in each.names:
            story.modules[name] = f"{each.module}.{name}"
        if each.root and not each.module.startswith("."):
            _, alias, names = story.packages.get(each.root, ("", "", ()))
            names = tuple(dict.fromkeys(names + each.names))
            story.packages[each.root] = (label, each.alias or alias, names)
    for definition in facts.definitions:
        story.definitions.pop(definition.name, None)
        story.definitions[definition.name] = (definition, label)
    for use in facts.files:
        if isinstance(use, Constant):
            _constant(story, use)
        else:
            path = _file(story, use, label)
            if path:
                at = len(story.steps) - 1
                story.touched[at] = (*story.touched.get(at, ()), (use.verb, path))
    for name, version in step.said.versions:
        story.versions[_distribution(name)] = version
        story.installed[name] = (version, label)
    if facts.last.endswith(".__version__") and step.said.value:
        module = story.modules.get(facts.last.removesuffix(".__version__"), "")
        if module:
            story.versions[_distribution(module)] = step.said.value.strip("'\"")


def _constant(story: Story, constant: Constant) -> None:
    if constant.value is not None and paths.literal(constant.value, story.constants):
        story.constants[constant.name] = paths.resolve(constant.value, story.constants)[:400]
    else:
        story.constants.pop(constant.name, None)


def _file(story: Story, use: FileUse, label: str) -> str:
    """Take up a file; return its path, or nothing when it cannot be told."""
    if not paths.literal(use.path, story.constants):
        return ""
    path = paths.resolve(use.path, story.constants)
    if not path.strip() or len(path) > 400 or "\n" in path:
        return ""
    if not use.sure and not paths.looks_like_path(path):
        return ""
    uses = story.files[path].uses if path in story.files else ()
    kept = tuple(each for each in uses if each[:2] != (use.verb, use.by))
    story.files[path] = FileStory((*kept, (use.verb, use.by, label))[-6:])
    return path


def _marks(story: Story, step: Step) -> None:
    """Keep the marks of what is to be done; those that a cell no longer holds are done."""
    for mark, (_, holder) in list(story.marks.items()):
        if mark in step.facts.marks:
            continue
        same = holder.turn.cell_id is not None and holder.turn.cell_id == step.turn.cell_id
        if same or (not step.turn.cell_id and cures.alike(holder.facts, step.facts)):
            del story.marks[mark]
    for mark in step.facts.marks:
        story.marks[mark] = (step.label, step)


def _results(story: Story, step: Step) -> None:
    said, facts, label = step.said, step.facts, step.label
    if not any("?" in command for command in facts.commands):
        for key, line in said.metrics:
            _result(story.metrics, key, step, line, ())
        key = results.told_apart(said.printed)
        if key and said.brief and not said.metrics and not facts.commands:
            _result(story.metrics, key, step, said.printed, ())
    if facts.last and (said.value or said.table):
        _result(story.results, facts.last, step, said.value, said.table)
    if said.figures:
        for titles in _figures(facts.titles, said.figures):
            figure = (titles, "" if titles else facts.drawn or facts.last)
            story.figures.pop(figure, None)
            # Which call drew which of several is not known.
            story.figures[figure] = (label, facts.drawn if said.figures == 1 else "")
    for warning in said.warnings:
        labels = story.warnings.get(warning, ())
        story.warnings[warning] = (*labels, label)[-3:]


def _figures(titles: tuple[str, ...], shown: int) -> list[tuple[str, ...]]:
    """Return the titles of each figure of a cell that showed so many: an axis may have its own.

    Where there are more titles than figures nobody knows which stands on which, so all are one's.
    """
    return [(each,) for each in titles] if 0 < len(titles) <= shown else [titles]


def _result(
    kept: dict[str, Result], key: str, step: Step, value: str, table: tuple[str, ...]
) -> None:
    old = kept.pop(key, None)
    before: tuple[tuple[str, str, str], ...] = ()
    if old is not None:
        before = old.before
        if old.value and (old.value != value or old.note != step.note):
            before = (*before, (old.value, old.label, old.note or step.was))[-5:]
    kept[key] = Result(step.label, value, step.note, table, before)


def _outcome(step: Step, command: str) -> str:
    """Return what a command came to: its time, or the last line that it printed."""
    if step.failed:
        return ""
    if command.startswith("%") and "time" in command.split()[0]:
        return step.said.took
    return step.said.printed if command.startswith("!") else ""


def _seconds(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp() if time else None
    except ValueError:
        return None


def _distribution(name: str) -> str:
    return name.casefold().replace("-", "_").partition(".")[0]
