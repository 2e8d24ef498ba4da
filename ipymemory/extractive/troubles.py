"""Errors, the cells that raised them again, and the cell and change that cured them."""

from __future__ import annotations

from dataclasses import replace

from ipymemory.extractive import cures, sources
from ipymemory.extractive.material import Definition, Facts, Failure
from ipymemory.extractive.story import Step, Story, Trouble
from ipymemory.extractive.wording import code

_OPEN = 30
"""Open errors that a later cell is compared with, the newest first."""


def raised(story: Story, step: Step) -> None:
    """Take up the error of a step that is about to be added, or one more try at an open one."""
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


def ran(story: Story, step: Step) -> None:
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
        change = cures.change(failed.facts, step.facts, failure.inside, failure.at)
        if change.before or change.after:
            return cures.told(change, failure.inside, failure.at)
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
            if definition.name in wanted or definition.name in trouble.failure.function.split("."):
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
