"""The story of a session: its turns folded together, in the order in which they ran.

What only the whole tells is settled here: which constant a path was made of, which name was built
from which, which later cell cured an error, what is still open, what died with a kernel. What one
turn says by itself is worked out once and remembered by the turn's value.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from ipymemory.extractive import cures, paths, results, sources
from ipymemory.extractive.material import Built, Constant, Definition, Facts, Failure, FileUse, Said
from ipymemory.extractive.wording import code
from ipymemory.turns import BoundName, Entry, Happening, Turn

_KEPT = 6000
"""Turns whose facts are remembered: more than the longest session one is likely to have."""
_OPEN = 30
"""Open errors that a later cell is compared with, the newest first."""
_BUILTINS = frozenset(dir(builtins))

_known: dict[str, tuple[Turn, Facts, Said]] = {}


@dataclass(frozen=True, slots=True)
class Step:
    """A turn with what it says. `label` is how the notes name it, `began` seconds or None."""

    turn: Turn
    label: str
    facts: Facts
    said: Said
    began: float | None = None
    again: bool = False

    @property
    def failed(self) -> bool:
        """Whether the cell raised."""
        return self.said.failure is not None

    @property
    def counts(self) -> bool:
        """Whether what the source says came to pass, as far as anybody knows."""
        turn = self.turn
        return turn.status == "ok" or (turn.status == "unknown" and turn.origin != "typed")


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error, the cells that raised it, and what cured it: `cure` is empty while it is open."""

    failure: Failure
    step: Step
    labels: tuple[str, ...]
    index: int
    cured_in: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A name of the user's: what it is, and how it was made."""

    name: str
    label: str
    kernel: int
    built: Built | None = None
    type: str = ""
    shape: str = ""
    columns: tuple[str, ...] = ()
    added: tuple[tuple[str, str], ...] = ()
    changed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FileStory:
    """A file: ``(verb, call, label)`` for each use, the newest last."""

    uses: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """A value that was shown: one line or a table; `before` are earlier ones with their cells."""

    label: str
    value: str
    table: tuple[str, ...] = ()
    before: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Story:
    """Everything that the sections draw from; dicts keep the order in which things came."""

    steps: list[Step] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    unsolved: list[int] = field(default_factory=list)
    files: dict[str, FileStory] = field(default_factory=dict)
    definitions: dict[str, tuple[Definition, str]] = field(default_factory=dict)
    commands: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    names: dict[str, Named] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    packages: dict[str, tuple[str, str, tuple[str, ...]]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    installed: dict[str, tuple[str, str]] = field(default_factory=dict)
    metrics: dict[str, Result] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    figures: dict[str, tuple[str, str]] = field(default_factory=dict)
    warnings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    marks: dict[str, tuple[str, Step]] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    restarts: dict[int, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    cells: dict[str, Step] = field(default_factory=dict)
    seen: dict[tuple[str, ...], str] = field(default_factory=dict)
    touched: dict[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    kernel: int = 0


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


def label_of(turn: Turn) -> str:
    """Return how the notes name a cell: ``[7]``, ``k2[7]`` in the second life of a kernel.

    Counts begin anew with each kernel, so that ``[7]`` alone would name two cells. A cell of a
    file that never ran is named by its place.
    """
    if turn.execution_count is None and turn.origin == "file":
        return f"[{turn.id}]"
    return turn.label if turn.kernel <= 1 else f"k{turn.kernel}{turn.label}"


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
    """Return the story of `entries`, a pure function of them."""
    story = Story()
    for entry in ordered(entries):
        if isinstance(entry, Turn):
            _turn(story, entry)
        else:
            _happening(story, entry)
    return story


def _happening(story: Story, entry: Happening) -> None:
    if entry.name == "packages":
        inner = entry.details.get("packages", entry.details)
        if isinstance(inner, dict):
            for name, version in inner.items():
                if isinstance(name, str) and isinstance(version, str) and version:
                    story.versions[_distribution(name)] = version


def _turn(story: Story, turn: Turn) -> None:
    facts, said = told(turn)
    label = label_of(turn)
    if turn.kernel > story.kernel:
        _new_kernel(story, turn.kernel)
    before = story.seen.get(facts.lines)
    step = Step(turn, label, facts, said, _seconds(turn.time), before is not None)
    story.seen[facts.lines] = label
    if step.failed or (turn.status == "unknown" and turn.origin == "typed"):
        _trouble(story, step)
    elif turn.status == "ok":
        _cure(story, step)
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
    _bind(story, step)
    if step.counts:
        _sources(story, step)
    _results(story, step)


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


def _bind(story: Story, step: Step) -> None:
    """Take up the names that a step bound: from the kernel's own word, and from the source."""
    label, kernel = step.label, step.turn.kernel
    bound = {each.name: each for each in step.turn.names}
    for each in step.turn.names:
        _named(story, each.name, label, kernel, each, None)
    for built in step.facts.built:
        if not step.counts and built.name not in bound:
            continue
        if built.how == "=":
            _named(story, built.name, label, kernel, bound.get(built.name), built)
            continue
        named = story.names.get(built.name) or Named(built.name, label, kernel)
        if built.how == "column":
            added = tuple(each for each in named.added if each[0] != built.column)
            named = replace(named, added=(*added, (built.column, label))[-12:])
        else:
            changed = tuple(each for each in named.changed if each[0] != built.expression)
            named = replace(named, changed=(*changed, (built.expression, label))[-3:])
        story.names[built.name] = named
    for name in step.facts.deleted:
        story.names.pop(name, None)
    if any(each.startswith("%reset") for each in step.facts.commands) and step.counts:
        story.names.clear()
    _shown(story, step)


def _named(
    story: Story, name: str, label: str, kernel: int, bound: BoundName | None, built: Built | None
) -> None:
    if name.startswith("_"):
        return
    before = story.names.pop(name, None)
    same = before is not None and before.label == label
    if built is not None and built.names == (name,) and before is not None and not same:
        # df = df.dropna(): what it was made of before still tells where it comes from.
        built = replace(built, names=before.built.names if before.built else ())
    named = before if before is not None and same else Named(name, label, kernel)
    if bound is not None:
        named = replace(named, type=bound.type, shape=bound.shape, columns=bound.columns)
    if built is not None:
        named = replace(named, built=built)
    story.names[name] = named
    story.lost.pop(name, None)


def _shown(story: Story, step: Step) -> None:
    """Take the shape and the columns of a frame that was shown: a file tells no types."""
    last, said = step.facts.last, step.said
    root = last.partition(".")[0]
    named = story.names.get(root)
    if named is None or named.shape or not root.isidentifier():
        return
    if last == root and said.shape:
        story.names[root] = replace(named, shape=said.shape, columns=_header(said.table))
    elif last == f"{root}.shape" and said.value:
        story.names[root] = replace(named, shape=said.value)
    elif last.startswith((f"{root}.head(", f"{root}.sample(", f"{root}.tail(")) and said.table:
        story.names[root] = replace(named, columns=_header(said.table))


def _header(table: tuple[str, ...]) -> tuple[str, ...]:
    if len(table) < 2 or not results.is_table(table):
        return ()
    return tuple(each for each in table[0].split("  ") if each.strip() and each.strip() != "...")


def _trouble(story: Story, step: Step) -> None:
    failure = step.said.failure
    if failure is None:
        lines = step.facts.lines
        failure = Failure("", "", lines[0] if len(lines) == 1 else "")
    for index in reversed(story.unsolved[-5:]):
        known = story.troubles[index]
        if known.failure == failure or (
            (known.failure.name, known.failure.value) == (failure.name, failure.value)
            and cures.alike(known.step.facts, step.facts)
        ):
            labels = (*known.labels, step.label)
            story.troubles[index] = replace(
                known, labels=labels, step=step, failure=failure, index=len(story.steps)
            )
            return
    if failure.name == "KeyboardInterrupt" or failure.name == "SystemExit":
        return
    story.unsolved.append(len(story.troubles))
    story.troubles.append(Trouble(failure, step, (step.label,), len(story.steps)))


def _cure(story: Story, step: Step) -> None:
    """Close the open errors that this step cures."""
    for index in story.unsolved[-_OPEN:]:
        trouble = story.troubles[index]
        how = _cured_by(story, trouble, step)
        if how is not None:
            story.troubles[index] = replace(trouble, cured_in=step.label, cure=how)
            story.unsolved.remove(index)


def _cured_by(story: Story, trouble: Trouble, step: Step) -> str | None:
    """Return how `step` cures `trouble`, in words, or None."""
    failure, failed = trouble.failure, trouble.step
    kind, name = cures.missing(failure)
    if kind == "module" and any(each.root == name for each in step.facts.imports):
        return _between(story, trouble, step, name)
    same = failed.turn.cell_id is not None and failed.turn.cell_id == step.turn.cell_id
    near = len(story.steps) - trouble.index <= cures.NEAR
    if same or (near and cures.alike(failed.facts, step.facts, failure.at)):
        change = cures.change(failed.facts, step.facts, failure.at)
        if change.before or change.after:
            return cures.told(change, failure.at)
        return _between(story, trouble, step, name)
    if kind == "name" and name in step.facts.binds:
        built = [each for each in step.facts.built if each.name == name]
        made = f"{name} = {built[-1].expression}" if built else ""
        return code(made, 140) or "bound there"
    return None


def _between(story: Story, trouble: Trouble, step: Step, name: str) -> str:
    """Return which cell between an error and the same cell's success made the difference."""
    wanted = trouble.step.facts.reads | ({name} if name else set())
    for other in reversed(story.steps[trouble.index + 1 :]):
        if not other.counts:
            continue
        installs = [each for each in other.facts.commands if "install" in each]
        if installs and trouble.failure.name in ("ModuleNotFoundError", "ImportError"):
            return f"after {code(installs[-1])} {other.label}"
        for definition in reversed(other.facts.definitions):
            if definition.name in wanted or definition.name == trouble.failure.function:
                return f"after {code(definition.name)} was changed in {other.label}" + _redefined(
                    story, definition, other, trouble
                )
        for built in reversed(other.facts.built):
            if built.name in wanted:
                return f"after {code(f'{built.name} = {built.expression}', 140)} {other.label}"
    return "the same cell ran again"


def _redefined(story: Story, definition: Definition, other: Step, trouble: Trouble) -> str:
    """Return the line in which a definition differs from the one before the error."""
    for step in reversed(story.steps[: trouble.index]):
        for before in step.facts.definitions:
            if before.name == definition.name:
                change = cures.change(
                    Facts(lines=sources.code_lines(before.body)),
                    Facts(lines=sources.code_lines(definition.body)),
                    trouble.failure.inside,
                )
                words = cures.told(change, trouble.failure.inside)
                return f": {words}" if words else ""
    return ""


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
    for key, line in said.metrics:
        _result(story.metrics, key, label, line, ())
    if facts.last and (said.value or said.table):
        _result(story.results, facts.last, label, said.value, said.table)
    if said.figure:
        call = next((line for line in facts.lines if "plot" in line or "hist" in line), facts.last)
        for title in facts.titles or (call,):
            story.figures.pop(title, None)
            story.figures[title] = (label, call)
    for warning in said.warnings:
        labels = story.warnings.get(warning, ())
        story.warnings[warning] = (*labels, label)[-3:]


def _result(
    kept: dict[str, Result], key: str, label: str, value: str, table: tuple[str, ...]
) -> None:
    old = kept.pop(key, None)
    before: tuple[tuple[str, str], ...] = ()
    if old is not None:
        before = old.before
        if old.value and old.value != value:
            before = (*before, (old.value, old.label))[-3:]
    kept[key] = Result(label, value, table, before)


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


def is_data(name: str, story: Story) -> bool:
    """Return whether `name` stands for data of the user's: no module, function or builtin."""
    return name not in story.modules and name not in story.definitions and name not in _BUILTINS
