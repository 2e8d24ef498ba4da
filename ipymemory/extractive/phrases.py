"""What the work log says of a step, in a few words, everything in them quoted from the cell."""

from __future__ import annotations

from collections.abc import Sequence

from ipymemory.extractive import lineage, results
from ipymemory.extractive.story import Logged, Step, Story, is_data
from ipymemory.extractive.wording import code, plain, quote, quotes

OPEN = 8
"""Steps after which what the log says of one is settled: whether a later cell went on with it."""
_PARTS = 4


def log(story: Story) -> None:
    """Settle what the log says of the step that lies far enough back."""
    index = len(story.steps) - 1 - OPEN
    if index >= 0:
        story.logged.append(Logged(_phrase(story, index), _results_of(story, index)))


def phrase(story: Story, index: int) -> str:
    """Return what a step did, in a few words, everything in it quoted from the cell."""
    return story.logged[index].phrase if index < len(story.logged) else _phrase(story, index)


def _results_of(story: Story, index: int) -> tuple[str, ...]:
    """Return the names, functions and files that a step made."""
    step = story.steps[index]
    if step.failed:
        return ()
    shapes = {
        each.name for each in step.turn.names if each.shape and not lineage.PLAIN.match(each.type)
    }
    made = [each.name for each in step.facts.definitions]
    made += [
        each.name
        for each in step.facts.built
        if each.how != "column"
        and (each.name in shapes or (each.name in story.used and "(" in each.expression))
        and each.name not in story.constants
    ]
    made += [path for verb, path in story.touched.get(index, ()) if verb == "writes"]
    return tuple(dict.fromkeys(made))


def _phrase(story: Story, index: int) -> str:
    step = story.steps[index]
    facts, said = step.facts, step.said
    if said.failure is not None:
        at = code(said.failure.at, 100)
        return code(results.outcome(said.failure), 120) + (f" at {at}" if at else "")
    if step.turn.status == "interrupted":
        return "interrupted: " + first(step)
    if step.turn.status == "running":
        return "running: " + first(step)
    if step.turn.status == "unknown" and step.turn.origin == "typed":
        return "the kernel ended while this ran: " + first(step)
    parts = [quote(facts.headline, 90)] if facts.headline else []
    parts += [code(command, 90) for command in facts.commands[:2]]
    roots = tuple(dict.fromkeys(each.root for each in facts.imports if each.root))
    if roots:
        parts.append("imports " + ", ".join(code(root) for root in roots[:6]))
    if facts.definitions:
        names = ", ".join(code(each.name) for each in facts.definitions[:5])
        parts.append("defines " + names)
    parts += _made(story, index)
    parts += [
        f"writes {code(path, 80)}"
        for verb, path in story.touched.get(index, ())
        if verb == "writes"
    ][:3]
    if said.figures:
        title = quotes(facts.titles, 3, 80)
        by = code(facts.drawn or facts.last, 80)
        parts.append(f"figure {title}" if title else f"figure by {by}" if by else "figure")
    parts += shown(step)
    return "; ".join(parts[:_PARTS]) if parts else first(step)


def summary(story: Story, steps: Sequence[int], most: int = 8) -> str:
    """Return what several steps did together: what they made, errors, the last metric."""
    parts: list[str] = []
    made: dict[str, None] = {}
    errors: dict[str, str] = {}
    for index in steps:
        failure = story.steps[index].said.failure
        if failure is not None:
            errors.setdefault(failure.name, story.steps[index].label)
        settled = index < len(story.logged)
        for name in story.logged[index].made if settled else _results_of(story, index):
            made[name] = None
    if made:
        parts.append(", ".join(code(name, 60) for name in list(made)[:most]))
    if errors:
        shown = list(errors.items())[: max(most // 2, 2)]
        parts.append("errors " + ", ".join(f"{code(name)} {label}" for name, label in shown))
    for index in reversed(steps):
        metrics = story.steps[index].said.metrics
        if metrics:
            parts.append(code(metrics[-1][1], 100))
            break
    return "; ".join(parts) or first(story.steps[steps[0]])


def _made(story: Story, index: int) -> list[str]:
    """Return the names a step made, with their shape and what they were made of."""
    step = story.steps[index]
    bound = {each.name: each for each in step.turn.names}
    read = [path for verb, path in story.touched.get(index, ()) if verb != "writes"]
    parts: list[str] = []
    columns: list[str] = []
    for built in step.facts.built:
        if not is_data(built.name, story) or built.name.startswith("_"):
            continue
        if built.how == "column":
            columns.append(f"{built.name}[{built.column}]")
            continue
        if built.how == "fit":
            parts.append(code(built.expression, 80))
            continue
        sources = [name for name in built.names if is_data(name, story) and name != built.name]
        known = bound.get(built.name)
        shape = ""
        if known is not None and known.shape and not lineage.PLAIN.match(known.type):
            shape = plain(f"{known.type} {known.shape}")
        if not (sources or shape or (read and "(" in built.expression)):
            continue
        if not (built.name in story.used or index >= len(story.steps) - 2 or shape):
            # A name that no other cell uses is a step on the way within this one.
            continue
        text = code(built.name) + (f" ({shape})" if shape else "")
        if (
            read
            and not sources
            and any(path.rsplit("/", 1)[-1] in built.expression for path in read)
        ):
            text += f" from {code(read[0], 80)}"
        elif sources:
            text += " from " + ", ".join(code(name) for name in sources[:3])
        parts.append(text)
    if columns:
        parts.append("sets " + ", ".join(code(each, 50) for each in columns[:4]))
    mentioned = " ".join(parts)
    parts += [
        f"{verb} {code(path, 80)}"
        for verb, path in story.touched.get(index, ())
        if verb != "writes" and code(path, 80) not in mentioned
    ][:2]
    return parts[:3]


def shown(step: Step) -> list[str]:
    """Return what a step printed or returned that tells how it went, at most one piece."""
    said, last = step.said, step.facts.last
    if said.metrics:
        return [", ".join(code(line, 100) for _, line in said.metrics[-2:])]
    if said.value and last and not results.is_write(last) and "__version__" not in last:
        return [f"{code(last, 80)} → {code(said.value, 80)}"]
    if said.table and last:
        return [code(last, 90)]
    if said.printed and not step.facts.commands:
        return [f"prints {code(said.printed, 80)}"]
    return []


def first(step: Step) -> str:
    """Return the first line of a cell as code."""
    lines = step.facts.lines or tuple(step.facts.commands)
    return code(lines[0], 100) if lines else "an empty cell"
