"""The work log: a terse line for each step, condensed from its oldest end when it grows long.

Cells that ran right after one another (Run All) share lines; those that ran before just as they
are now are only named. When there are too many lines, tens of steps become one line, then
hundreds: which steps go together is fixed by their place, so that a line that was condensed once
stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ipymemory.extractive import results
from ipymemory.extractive.story import Step, Story, is_data
from ipymemory.extractive.wording import code, quote

BURST = 0.1
"""Seconds between the end of a cell and the next within which both were started at once."""
_PAUSE = 1800.0
"""Seconds after which a new time is put into the log."""
_WIDTH = 300
_PARTS = 4
_TEN = 10


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the log about `steps`, given by their first and last place in the story."""

    first: int
    last: int
    text: str


def phrase(story: Story, index: int) -> str:
    """Return what a step did, in a few words, everything in it quoted from the cell."""
    step = story.steps[index]
    facts, said = step.facts, step.said
    if said.failure is not None:
        at = code(said.failure.at, 100)
        return code(results.outcome(said.failure), 120) + (f" at {at}" if at else "")
    if step.turn.status == "interrupted":
        return "interrupted: " + _first(step)
    if step.turn.status == "running":
        return "running: " + _first(step)
    if step.turn.status == "unknown" and step.turn.origin == "typed":
        return "the kernel ended while this ran: " + _first(step)
    parts = [code(command, 90) for command in facts.commands[:2]]
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
    if said.figure:
        title = quote(facts.titles[0], 80) if facts.titles else ""
        parts.append(
            f"figure {title}".rstrip()
            if title
            else f"figure by {code(step.facts.last or step.facts.lines[-1], 80)}"
        )
    parts += _shown(step)
    return "; ".join(parts[:_PARTS]) if parts else _first(step)


def summary(story: Story, steps: Sequence[int], most: int = 8) -> str:
    """Return what several steps did together: names made, errors, files written, the last result."""
    parts: list[str] = []
    made: dict[str, None] = {}
    errors: dict[str, str] = {}
    for index in steps:
        step = story.steps[index]
        if step.failed:
            assert step.said.failure is not None
            errors.setdefault(step.said.failure.name, step.label)
            continue
        for definition in step.facts.definitions:
            made[definition.name] = None
        for built in step.facts.built:
            if built.how != "column" and (named := story.names.get(built.name)) is not None:
                if named.columns or named.changed or named.shape or built.names:
                    made[built.name] = None
        for verb, path in story.touched.get(index, ()):
            if verb == "writes":
                made[path] = None
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
    return "; ".join(parts) or _first(story.steps[steps[0]])


def entries(story: Story) -> list[Entry]:
    """Return the whole log, one entry for each step or run of steps, oldest first."""
    found: list[Entry] = []
    for group in _bursts(story.steps):
        if len(group) > 1 and all(story.steps[index].again for index in group):
            text = f"{_span(story, group)} in one go, as before"
            metrics = [story.steps[index].said.metrics for index in group]
            last = next((each for each in reversed(metrics) if each), None)
            found.append(
                Entry(group[0], group[-1], text + (f": {code(last[-1][1], 100)}" if last else ""))
            )
        elif len(group) > 2:
            found += _together(story, group)
        else:
            found += [_single(story, index) for index in group]
    return _same_again(story, found)


def condensed(story: Story, budget: int) -> list[str]:
    """Return the log as bullets of at most `budget` bytes, the oldest end condensed."""
    log = entries(story)
    lines = [_bullet(story, each, log[at - 1] if at else None) for at, each in enumerate(log)]
    if _size(lines) <= budget:
        return lines
    for keep, width in ((0.6, _TEN), (0.5, 5 * _TEN), (0.4, 20 * _TEN), (0.3, 100 * _TEN)):
        kept = _newest(lines, int(budget * keep))
        # A boundary at a multiple of `width` moves rarely: what was condensed stays as it is.
        cut = len(lines) - kept
        cut = min(-(-cut // width) * width, len(lines)) if cut % width else cut
        groups = [log[at : at + width] for at in range(0, cut, width)]
        old = [f"- {_range(story, group)}" for group in groups]
        both = old + lines[cut:]
        if _size(both) <= budget:
            return both
    kept = _newest(lines, budget)
    return lines[len(lines) - kept :]


def _newest(lines: list[str], budget: int) -> int:
    size, kept = 0, 0
    for line in reversed(lines):
        size += len(line.encode("utf-8", "replace")) + 1
        if size > budget:
            break
        kept += 1
    return kept


def _size(lines: list[str]) -> int:
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


def _range(story: Story, group: Sequence[Entry]) -> str:
    steps = range(group[0].first, group[-1].last + 1)
    return f"{_span(story, steps)} {summary(story, steps)}"


def _span(story: Story, group: Sequence[int]) -> str:
    first, last = story.steps[group[0]].label, story.steps[group[-1]].label
    return first if first == last else f"{first}–{last}"


def _bullet(story: Story, entry: Entry, before: Entry | None) -> str:
    step = story.steps[entry.first]
    mark = ""
    if step.turn.time and step.began is not None:
        last = story.steps[before.last] if before is not None else None
        if last is None or last.began is None or step.began - last.began > _PAUSE:
            mark = f" ({step.turn.time[:16].replace('T', ' ')} UTC)"
    if before is not None and story.steps[before.last].turn.kernel != step.turn.kernel:
        mark += " (after a restart)"
    return f"- {entry.text}{mark}"


def _single(story: Story, index: int) -> Entry:
    return Entry(index, index, f"{story.steps[index].label} {phrase(story, index)}")


def _together(story: Story, group: list[int]) -> list[Entry]:
    """Return lines that each tell of several cells, up to the width of a line."""
    found: list[Entry] = []
    pending: list[tuple[int, str]] = []

    def close() -> None:
        if pending:
            text = "; ".join(f"{story.steps[at].label} {words}" for at, words in pending)
            found.append(Entry(pending[0][0], pending[-1][0], text))
            pending.clear()

    for index in group:
        words = phrase(story, index)
        if sum(len(each) for _, each in pending) + len(words) > _WIDTH:
            close()
        pending.append((index, words))
        if story.steps[index].failed:
            close()
    close()
    return found


def _same_again(story: Story, log: list[Entry]) -> list[Entry]:
    """Return the log with runs of one cell that follow each other as one entry, the last."""
    found: list[Entry] = []
    labels: list[str] = []
    for entry in log:
        last = found[-1] if found else None
        step = story.steps[entry.last]
        if last is not None and entry.first == entry.last and labels and not step.failed:
            before = story.steps[last.last]
            same = before.turn.cell_id is not None and before.turn.cell_id == step.turn.cell_id
            if not before.failed and (same or before.facts.lines == step.facts.lines):
                labels.append(step.label)
                shown = labels if len(labels) < 5 else [labels[0], "…", labels[-1]]
                text = f"{', '.join(shown)} {phrase(story, entry.last)}"
                found[-1] = Entry(last.first, entry.last, text)
                continue
        found.append(entry)
        labels = [step.label] if entry.first == entry.last else []
    return found


def _bursts(steps: list[Step]) -> list[list[int]]:
    """Return the places of steps in groups that were started at once."""
    groups: list[list[int]] = []
    for index, step in enumerate(steps):
        before = steps[index - 1] if index else None
        at_once = (
            before is not None
            and step.began is not None
            and before.began is not None
            and before.turn.duration_ms is not None
            and before.turn.kernel == step.turn.kernel
            and step.began - before.began - before.turn.duration_ms / 1000 <= BURST
        )
        if at_once:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _made(story: Story, index: int) -> list[str]:
    """Return the names a step made, with their shape and what they were made of."""
    step = story.steps[index]
    bound = {each.name: each for each in step.turn.names}
    read = [path for verb, path in story.touched.get(index, ()) if verb != "writes"]
    parts: list[str] = []
    columns: list[str] = []
    for built in step.facts.built:
        if built.how == "column":
            columns.append(f"{built.name}[{built.column}]")
            continue
        if built.how == "fit":
            parts.append(code(built.expression, 80))
            continue
        sources = [name for name in built.names if is_data(name, story) and name != built.name]
        known = bound.get(built.name)
        shape = f"{known.type} {known.shape}".strip() if known is not None and known.shape else ""
        if not (sources or shape or (read and "(" in built.expression)):
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
    parts += [f"reads {code(path, 80)}" for path in read[:2] if code(path, 80) not in mentioned]
    return parts[:3]


def _shown(step: Step) -> list[str]:
    said, last = step.said, step.facts.last
    if said.metrics:
        return [code(said.metrics[-1][1], 100)]
    if said.value and last and "__version__" not in last:
        return [f"{code(last, 80)} → {code(said.value, 80)}"]
    if said.table and last:
        return [code(last, 90)]
    if said.printed and not step.facts.commands:
        return [f"prints {code(said.printed, 80)}"]
    return []


def _first(step: Step) -> str:
    lines = step.facts.lines or tuple(step.facts.commands)
    return code(lines[0], 100) if lines else "an empty cell"
