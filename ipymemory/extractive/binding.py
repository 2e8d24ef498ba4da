"""The names of a session: where each was bound last, what it holds, and what was made of it."""

from __future__ import annotations

from dataclasses import replace

from ipymemory.extractive import results
from ipymemory.extractive.material import Built
from ipymemory.extractive.story import Named, Step, Story
from ipymemory.turns import BoundName


def bind(story: Story, step: Step) -> None:
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
    found = _columns(table) or table[0].split("  ")
    return tuple(name for each in found if (name := each.strip()) and name != "...")


def _columns(table: tuple[str, ...]) -> list[str]:
    """Return the names above a frame's columns, which stand to the right as the values do.

    One blank stands between the names of two columns of words, and also within a name: a column
    ends where every value ends.
    """
    whole = [each for each in table[:8] if not each.lstrip().startswith(("…", ".."))]
    width = max(map(len, whole))
    head, *rows = (each.rjust(width) + " " for each in whole)
    found: list[str] = []
    begin = 0
    for at in range(width):
        ends = head[at] != " " and head[at + 1] == " "
        if ends and all(row[at] != " " and row[at + 1] == " " for row in rows):
            found.append(head[begin : at + 1])
            begin = at + 1
    return found if not head[begin:].strip() else []
