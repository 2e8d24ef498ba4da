"""What a notebook file says plainly, as proposals of memories; a part of `ingest`.

Who wrote a notebook that lies in a folder nobody knows, so nothing of it becomes a memory before
a person said yes (behaviour E13), in whatever mode. What was offered once is not offered again,
and at most `learning.MOST_PROPOSED` wait: then the rest is left for a later look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ipymemory.config import Settings
from ipymemory.errors import MemoryRefused
from ipymemory.extractive import passages
from ipymemory.extractive.forms import USE
from ipymemory.extractive.remembering import MemoriesMaterial, drafts, words_of
from ipymemory.history import History
from ipymemory.learning import JOB, MOST_PROPOSED
from ipymemory.memory_files import Draft, opened
from ipymemory.memory_files.offered import Offered
from ipymemory.memory_files.values import fingerprint, one_line, when
from ipymemory.notebooks import NotebookFile
from ipymemory.places import Project, SessionFolder
from ipymemory.turns import Entry, Prose, Turn

ENGINE = "extractive"


@dataclass(frozen=True, slots=True)
class Offer:
    """What came of a look: a sentence for each proposal made, and whether there is `more`."""

    lines: tuple[str, ...] = ()
    more: bool = False


def closed(project: Project, settings: Settings) -> str:
    """Return why no memory may be proposed here, as a sentence, or nothing.

    Raises `IpymemoryError`.
    """
    if not settings.extraction.enabled:
        return "Extraction is turned off (Extraction.enabled)."
    return opened(project, settings).closed


def propose(
    folder: SessionFolder,
    notebook: NotebookFile,
    project: Project,
    settings: Settings,
    history: History,
    told: set[str] | None = None,
) -> Offer:
    """Propose what `notebook` says and nobody was asked yet; with `told` only tell.

    `told` are marks of what was told of the notebooks before, and gets more. Raises
    `IpymemoryError`.
    """
    found = found_in(folder, notebook)
    if not found:
        return Offer()
    memory = opened(project, settings)
    offered = Offered(project, memory, JOB)
    run = history.begin(JOB, ENGINE, f"read {notebook.path.name}", (), folder.id)
    lines: list[str] = []
    for each in found:
        mark = fingerprint(each.source.quote)
        if offered.holds(each, ever=True) or memory.forgotten(each) or (told and mark in told):
            continue
        if len(offered.waiting) + len(told or ()) >= MOST_PROPOSED:
            return Offer(tuple(lines), more=True)
        if told is not None:
            told.add(mark)
            lines.append(f"save [{each.kind}] {one_line(each.description, 200)}")
            continue
        try:
            done = memory.propose(each, run)
        except MemoryRefused:
            # It may not be kept: a secret, a rule of the file's against a person's own.
            continue
        offered.add(each, done)
        lines.append(done.line)
    return Offer(tuple(lines))


def found_in(folder: SessionFolder, notebook: NotebookFile) -> tuple[Draft, ...]:
    """Return what the notebook says that is worth a proposal."""
    said = tuple(passages.of_entries(_dated(notebook.entries), passages.Held(None)))
    # What the code shows is no news, which is asked of one form alone.
    asked = any(USE.search(each.text) for each in said)
    turns = [each for each in notebook.entries if isinstance(each, Turn)] if asked else []
    return drafts(MemoriesMaterial(said, notebook.path.name, folder.id, words_of(turns)))


def _dated(entries: Sequence[Entry]) -> list[Entry]:
    """Return the cells, the text with the time when Jupyter last ran one of them.

    The file's own time is that of a download or a copy as often as not, and "by Friday" would get
    a wrong day of it; without any time such a sentence names none.
    """
    times = [each.time for each in entries if isinstance(each, Turn) and when(each.time)]
    newest = max(times, key=lambda each: when(each) or 0, default="")
    return [replace(each, time=newest) if isinstance(each, Prose) else each for each in entries]
