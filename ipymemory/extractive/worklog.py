"""The work log: a terse line for each step, condensed from its oldest end when it grows long.

Cells that ran right after one another (Run All) share lines; those that ran before just as they
are now are only named. When there are too many lines, tens of steps become one line, then
hundreds: which steps go together is fixed by their place, so that a line that was condensed once
stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ipymemory.extractive import phrases
from ipymemory.extractive.story import Step, Story
from ipymemory.extractive.wording import code

BURST = 0.1
"""Seconds between the end of a cell and the next within which both were started at once."""
_PAUSE = 1800.0
"""Seconds after which a new time is put into the log."""
_WIDTH = 300
_TEN = 10


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the log about `steps`, given by their first and last place in the story."""

    first: int
    last: int
    text: str


def entries(story: Story) -> list[Entry]:
    """Return the whole log, one entry for each step or run of steps, oldest first."""
    found: list[Entry] = []
    for group in _bursts(story.steps):
        if len(group) > 2:
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
    first, last = group[0].first, group[-1].last
    if (first, last) in story.ranges:
        return story.ranges[first, last]
    steps = range(first, last + 1)
    text = f"{_span(story, steps)} {phrases.summary(story, steps)}"
    if last < len(story.logged):
        story.ranges[first, last] = text
    return text


def _span(story: Story, group: Sequence[int]) -> str:
    first, last = story.steps[group[0]].label, story.steps[group[-1]].label
    return first if first == last else f"{first}–{last}"


def _bullet(story: Story, entry: Entry, before: Entry | None) -> str:
    step = story.steps[entry.first]
    mark = ""
    if step.turn.time and step.began is not None:
        last = story.steps[before.last] if before is not None else None
        if last is None or last.began is None or step.began - last.began > _PAUSE:
            mark = f"{step.turn.time[:16].replace('T', ' ')} UTC"
    if before is not None and story.steps[before.last].turn.kernel != step.turn.kernel:
        mark = f"{mark}, after a restart" if mark else "after a restart"
    return f"- {entry.text}" + (f" ({mark})" if mark else "")


def _single(story: Story, index: int) -> Entry:
    return Entry(index, index, f"{story.steps[index].label} {phrases.phrase(story, index)}")


def _again_from(story: Story, group: list[int]) -> list[int]:
    """Return the cells at the beginning of `group` that ran before just as they are now."""
    count = 0
    while count < len(group) and story.steps[group[count]].again:
        count += 1
    return group[:count]


def _unchanged(story: Story, run: list[int]) -> str:
    """Return a run of cells that ran before just as they are now, in a few words."""
    return "again unchanged: " + phrases.summary(story, run, 5)


def _together(story: Story, group: list[int]) -> list[Entry]:
    """Return lines that each tell of several cells, up to the width of a line."""
    found: list[Entry] = []
    pending: list[tuple[int, str]] = []

    def close() -> None:
        if pending:
            text = " · ".join(f"{story.steps[at].label} {words}" for at, words in pending)
            found.append(Entry(pending[0][0], pending[-1][0], text))
            pending.clear()

    at = 0
    while at < len(group):
        run = _again_from(story, group[at:])
        if len(run) > 1:
            close()
            text = f"{_span(story, run)} {_unchanged(story, run)}"
            found.append(Entry(run[0], run[-1], text))
            at += len(run)
            continue
        index = group[at]
        at += 1
        words = phrases.phrase(story, index)
        if sum(len(each) for _, each in pending) + len(words) > _WIDTH:
            close()
        pending.append((index, words))
        if story.steps[index].failed:
            close()
    close()
    return found


def _same_again(story: Story, log: list[Entry]) -> list[Entry]:
    """Return the log with runs of one cell that follow each other as one entry.

    What was changed between two runs is said, with what came of it: that is an experiment.
    """
    found: list[Entry] = []
    tries: list[str] = []
    for entry in log:
        last = found[-1] if found else None
        step = story.steps[entry.last]
        if last is not None and entry.first == entry.last and tries and not step.failed:
            before = story.steps[last.last]
            same = before.turn.cell_id is not None and before.turn.cell_id == step.turn.cell_id
            same = same or bool(step.note) or before.facts.lines == step.facts.lines
            if same and not before.failed:
                if len(tries) == 1 and step.was:
                    tries[0] += f" with {step.was}"
                tries.append(_try(story, entry.last))
                shown = tries if len(tries) < 7 else [tries[0], "…", *tries[-4:]]
                found[-1] = Entry(last.first, entry.last, "; ".join(shown))
                continue
        found.append(entry)
        tries = [entry.text] if entry.first == entry.last else []
    return found


def _try(story: Story, index: int) -> str:
    """Return another run of the same cell: what was changed, and what came of it."""
    step = story.steps[index]
    came = "; ".join(phrases.shown(step)) or (
        ("figure " + code(step.facts.drawn, 60)) if step.said.figures else ""
    )
    if step.note:
        return f"{step.label} with {step.note}" + (f": {came}" if came else "")
    return f"{step.label} {'again' if step.again else phrases.phrase(story, index)}" + (
        f": {came}" if came and step.again else ""
    )


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
