"""The extractive engine, through the door that every engine uses: edits proposed by tool calls.

It is asked once, answers with one `Edit` for every section that changes, and is done when the
answers to those come back. It costs nothing, reads no network and no file, and does not guess.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipymemory import markdown
from ipymemory.errors import EngineError
from ipymemory.extractive.fitting import write_notes
from ipymemory.extractive.material import ByModel, NotesMaterial
from ipymemory.extractive.merging import blocks, by_hand, merge
from ipymemory.extractive.sections import name_of
from ipymemory.models import Reply, Request
from ipymemory.turns import Entry, ToolCall

_STATE, _LOG = name_of("Current State"), name_of("Worklog")


class ExtractiveModel:
    """The engine that is built in: deterministic, and only what is really there."""

    def __init__(self) -> None:
        self._last: tuple[NotesMaterial, str, str] | None = None

    @property
    def name(self) -> str:
        """The engine's name as people type it."""
        return "extractive"

    async def complete(self, request: Request) -> Reply:
        """Return the edits that bring the notes up to date; none once they were proposed.

        Raises `EngineError` when the request brings no material to write from.
        """
        material = request.material
        if not isinstance(material, NotesMaterial):
            raise EngineError(
                "The extractive engine got nothing to write from: it needs the session's turns."
            )
        if any(message.calls for message in request.messages):
            return Reply()
        return Reply(calls=tuple(edits(material, self._texts(material)[1])))

    def written(self, material: NotesMaterial) -> str:
        """Return the notes as the engine alone would have them: the next update's `base`."""
        return self._texts(material)[0]

    def _texts(self, material: NotesMaterial) -> tuple[str, str]:
        """Return the engine's own text, and that text with what a person changed."""
        if self._last is None or self._last[0] is not material:
            # Without a base nobody knows who wrote what, so no room is kept for a person's lines.
            known = any(each.body.strip() for each in markdown.sections(material.base))
            own = by_hand(material.base, material.notes) if known else {}
            pure = _written(material, material.entries, own)
            if material.by_model is not None:
                pure = refreshed(material, material.by_model, pure, own)
            self._last = (material, pure, merge(material.base, material.notes, pure))
        return self._last[1], self._last[2]


def _written(material: NotesMaterial, entries: Sequence[Entry], taken: dict[str, int]) -> str:
    return write_notes(
        entries,
        material.notebook,
        skeleton(material.notes),
        section_tokens=material.section_tokens,
        total_tokens=material.total_tokens,
        taken=taken,
    )


def refreshed(material: NotesMaterial, by: ByModel, new: str, own: dict[str, int]) -> str:
    """Return the base with what a model leaves to this engine: Current State and newer steps.

    `new` is what this engine would write alone; the log's own lines of a model stay, with a line
    below them for each step since (behaviour S9).
    """
    kept = {name_of(each.name): each.body for each in markdown.sections(material.base)}
    log = blocks(kept.get(_LOG, ""))[: by.log]
    taken = own.get(_LOG, 0) + sum(len(each.encode("utf-8", "replace")) + 1 for each in log)
    later = [each for each in material.entries if each.id > by.through]
    since = _written(material, later, {**own, _LOG: taken})
    found = []
    for each in markdown.sections(new):
        name = name_of(each.name)
        body = kept.get(name, "\n")
        if name == _STATE:
            body = each.body
        elif name == _LOG:
            one = next(s.body for s in markdown.sections(since) if name_of(s.name) == _LOG)
            lines = [*log, *blocks(one)]
            end = "\n\n" if body.endswith("\n\n") else "\n"
            body = "\n" + "\n".join(lines) + end if lines else "\n"
        found.append(markdown.Section(each.name, each.header, each.italic, body))
    return markdown.join(markdown.preamble(new), found)


def skeleton(notes: str) -> str:
    """Return the headers and italic lines of `notes` with nothing below them."""
    found = markdown.sections(notes)
    empty = [markdown.Section(each.name, each.header, each.italic, "\n") for each in found]
    return markdown.join("", empty)


def edits(material: NotesMaterial, text: str) -> list[ToolCall]:
    """Return one `Edit` for each section of the notes that `text` has otherwise."""
    calls: list[ToolCall] = []
    pairs = zip(markdown.sections(material.notes), markdown.sections(text), strict=True)
    for before, after in pairs:
        if before == after:
            continue
        old, new = markdown.join("", [before]), markdown.join("", [after])
        if old not in material.notes:
            # The last line of a file may lack its line feed.
            old = old.removesuffix("\n")
        if material.notes.count(old) > 1:
            # A person's "## Worklog" holds "# Worklog" too; a line of its own does not.
            old, new = f"\n{old}", f"\n{new}"
        calls.append(
            ToolCall(
                f"edit-{len(calls) + 1}",
                "Edit",
                {"path": material.path, "old_string": old, "new_string": new},
            )
        )
    return calls
