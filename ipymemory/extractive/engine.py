"""The extractive engine, through the door that every engine uses: edits proposed by tool calls.

It is asked once, answers with one `Edit` for every section that changes, and is done when the
answers to those come back. It costs nothing, reads no network and no file, and does not guess.
"""

from __future__ import annotations

from ipymemory import markdown
from ipymemory.errors import EngineError
from ipymemory.extractive.fitting import write_notes
from ipymemory.extractive.material import NotesMaterial
from ipymemory.extractive.merging import by_hand, merge
from ipymemory.models import Reply, Request
from ipymemory.turns import ToolCall


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
            pure = write_notes(
                material.entries,
                material.notebook,
                skeleton(material.notes),
                section_tokens=material.section_tokens,
                total_tokens=material.total_tokens,
                taken=own,
            )
            self._last = (material, pure, merge(material.base, material.notes, pure))
        return self._last[1], self._last[2]


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
