"""A thousand memories with what a dream is to find in them, and what it must leave alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ipymemory.memory_files import drafts
from ipymemory.memory_files.values import Draft, Source

TIME = "2026-11-23T09:00:00.000Z"
"""A Monday."""

LOOK_ALIKES = (
    ("Keep at least {n} backups of shard {n}.", "Keep at most {n} backups of shard {n}."),
    ("Write part {n} in C.", "Write part {n} in C++."),
    ("Part {n} is sorted by day.", "Part {n} is not sorted by day."),
    ("Table t{n} has 1{n} columns.", "Table t{n} has 2{n} columns."),
    ("Step {n} runs before step a{n}.", "Step a{n} runs before step {n}."),
)


def _draft(name: str, text: str, subject: str = "", kind: str = "project") -> Draft:
    source = Source(f"session-{name}", "work.ipynb", (f"turn-{name}",), text[:200], "person")
    return Draft(kind, name, "", text, source, subject)


def every(size: int = 1000) -> Iterator[tuple[str, Draft, str]]:
    """Yield name, draft and time; `size` 1000 gives the whole set, less a part of it."""
    share = size / 1000
    count = 0
    for n in range(round(200 * share)):
        text = f"Source {n} is delivered by the office of town {n} in UTF-8."
        for which in ("first", "again"):
            # The second one was said later, and with another full stop.
            said = text if which == "first" else text[:-1]
            yield f"twin-{n}-{which}", _draft(f"twin-{n}-{which}", said), TIME
            count += 1
    for n in range(round(50 * share)):
        text = f"The report of team {n} is due this Friday."
        yield f"dated-{n}", _draft(f"dated-{n}", text), TIME
        count += 1
    for n in range(round(30 * share)):
        text = f"Orders of year {n} are cleaned in `src/gone_{n}.py`."
        yield f"dead-{n}", _draft(f"dead-{n}", text), TIME
        count += 1
    for n in range(round(20 * share)):
        for which, time in (("old", TIME), ("new", "2026-11-24T09:00:00.000Z")):
            text = f"The port of server {n} is {8000 + n if which == 'old' else 9000 + n}."
            name = f"port-{n}-{which}"
            yield name, _draft(name, text, f"server {n}: port"), time
            count += 1
    for n in range(round(100 * share)):
        for which, form in zip("ab", LOOK_ALIKES[n % len(LOOK_ALIKES)], strict=True):
            yield f"alike-{n}-{which}", _draft(f"alike-{n}-{which}", form.format(n=n)), TIME
            count += 1
    for n in range(size - count):
        text = f"Chapter {n} explains how lake {n} was measured in `src/there.py`."
        yield f"plain-{n}", _draft(f"plain-{n}", text), TIME


def fill(folder: Path, root: Path, size: int = 1000) -> None:
    """Write the set into `folder`, and the one file of the project that it names below `root`."""
    folder.mkdir(parents=True, exist_ok=True)
    (root / "src").mkdir(parents=True, exist_ok=True)
    (root / "src" / "there.py").write_text("x = 1\n")
    for name, draft, time in every(size):
        text = drafts.file_text(name, drafts.checked(draft), time)
        (folder / f"{name}.md").write_text(text, encoding="utf-8", newline="\n")
