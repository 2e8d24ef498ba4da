"""Notes from lines: within the limits of behaviour S2, whatever the session held.

Each section gets at most its limit. When all together are too long the work log gives way first,
then what is least needed to go on; Current State and the title go last.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipymemory import markdown
from ipymemory.extractive import worklog
from ipymemory.extractive.material import Line
from ipymemory.extractive.sections import Lines, lines_of, name_of
from ipymemory.extractive.story import Story
from ipymemory.extractive.telling import tell
from ipymemory.extractive.wording import shorten
from ipymemory.extractive.words import gather
from ipymemory.turns import Entry

_LOG = name_of("Worklog")
_GIVES_WAY = tuple(
    name_of(name)
    for name in (
        "Worklog",
        "Learnings",
        "Key results",
        "Codebase and System Documentation",
        "Workflow",
        "Files and Functions",
        "Task specification",
        "Errors & Corrections",
        "Current State",
        "Session Title",
    )
)
_BYTES = 3
"""UTF-8 bytes a token, by the meter of `ipymemory.turns.tokens`."""


def write_notes(
    entries: Sequence[Entry],
    notebook: str,
    template: str,
    *,
    section_tokens: int = 2000,
    total_tokens: int = 12_000,
    taken: dict[str, int] | None = None,
) -> str:
    """Return the whole notes of a session: `template` with its sections filled.

    A pure function: the same entries give the same bytes. Sections that are none of the ten stay
    as the template has them. Limits in tokens; `taken` is what of a section, by `name_of`, is
    spent already, in bytes.
    """
    found = markdown.sections(template)
    story = tell(entries)
    lines = lines_of(story, gather(entries, story), notebook)
    names = [name_of(each.name) for each in found]
    own = taken or {}
    fixed = len(markdown.join(markdown.preamble(template), found).encode()) + 4 * len(found)
    limits = {
        name: max(_BYTES * section_tokens - own.get(name, 0) - 2, 0)
        for name in dict.fromkeys(names)
        if name in _GIVES_WAY
    }
    texts = {name: _fill(name, lines, story, limit) for name, limit in limits.items()}
    room = _BYTES * total_tokens - fixed - sum(own.values())
    for share in (0.4, 0.0):
        for name in _GIVES_WAY:
            excess = sum(_size(each) for each in texts.values()) - room
            if excess <= 0:
                break
            if name in texts:
                size = _size(texts[name])
                limit = max(size - excess, int(size * share))
                texts[name] = _fill(name, lines, story, limit)
    done: set[str] = set()
    filled: list[markdown.Section] = []
    for each, name in zip(found, names, strict=True):
        text = texts.get(name, [])
        if not text or name in done:
            filled.append(each)
            continue
        done.add(name)
        body = each.body.strip("\r\n")
        inner = "\n".join([body, *text] if body else text)
        last = each is found[-1]
        filled.append(
            markdown.Section(
                each.name, each.header, each.italic, f"\n{inner}\n" + ("" if last else "\n")
            )
        )
    return markdown.join(markdown.preamble(template), filled)


def fills(section: str) -> bool:
    """Return whether a section of this name is one of the ten, which are filled."""
    return name_of(section) in _GIVES_WAY


def fit(lines: Sequence[Line], budget: int) -> list[str]:
    """Return the texts of `lines` in order, at most `budget` bytes with their line ends.

    What weighs least goes first, and of equals the oldest. If nothing fits, the heaviest line's
    beginning does.
    """
    sizes = [_bytes(line.text) + 1 for line in lines]
    excess = sum(sizes) - budget
    dropped: set[int] = set()
    for at in sorted(range(len(lines)), key=lambda at: (lines[at].weight, at)):
        if excess <= 0:
            break
        dropped.add(at)
        excess -= sizes[at]
    kept = [line.text for at, line in enumerate(lines) if at not in dropped]
    if kept or not lines:
        return kept
    best = max(range(len(lines)), key=lambda at: (lines[at].weight, -at))
    head = lines[best].text.partition("\n")[0]
    text = shorten(head, max(budget // 4, 0)) if budget > 80 else ""
    return [text + "`" * (text.count("`") % 2)] if text else []


def _fill(name: str, lines: dict[str, Lines], story: Story, budget: int) -> list[str]:
    if name == _LOG:
        return worklog.condensed(story, budget) if story.steps else []
    return fit(lines.get(name, []), budget)


def _size(texts: Sequence[str]) -> int:
    return sum(_bytes(each) + 1 for each in texts)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
