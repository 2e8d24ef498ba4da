"""What a model that writes a living document may look at, and what it may edit (behaviour M3).

It reads the project as any agent does, with Read, Grep and Glob inside the fence (E6), and no more
than some ten long files in all; it may Edit its draft of the one document and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ipymemory import reading
from ipymemory.errors import ToolError
from ipymemory.fence import Fence
from ipymemory.finding import GLOB, GREP, glob, grep
from ipymemory.history import Run
from ipymemory.models import ToolSpec
from ipymemory.permissions import Allow, Deny, OnlyFile
from ipymemory.places import Project
from ipymemory.reading import LookTool
from ipymemory.tools import EditTool, Guard, Tool
from ipymemory.turns import ToolCall

LOOKS = ("Read", "Grep", "Glob")

MOST_SHOWN = 120_000
"""Characters that one document's run is shown of files: some 30,000 tokens, sent again each round
and read from the provider's cache."""


class DocumentFence:
    """The policy of one document's run: Edit on its draft, and looking around."""

    def __init__(self, draft: Path, around: Fence) -> None:
        self._edit = OnlyFile(draft)
        self._around = around

    def check(self, call: ToolCall) -> Allow | Deny:
        """Return the answer. Never raises."""
        if call.name == "Edit":
            return self._edit.check(call)
        if call.name not in LOOKS:
            return Deny(self._around.allowed)
        # What a model sends need not be what its type says.
        given: object = call.input
        draft = self._edit.path
        if isinstance(given, Mapping) and given.get("path") == draft.name:
            # So the prompt calls it, unless the project has a file of that name.
            there = (self._around.base / draft.name).exists()
            path = draft.name if there else str(draft)
            call = replace(call, input={**given, "path": path})
        return self._around.check(call)


class _Around(Fence):
    """The project, and the draft itself; of our home nothing else."""

    draft: str = ""

    @property
    def allowed(self) -> str:
        """What is allowed here, as a sentence for the engine."""
        return (
            f"Allowed here: {', '.join(LOOKS)} inside {self.root}, and Edit on {self.draft}; "
            "nothing else is written, and private files stay closed."
        )


def fence(
    project: Project, root: Path, draft: Path, private: Sequence[str], memories: Path
) -> Fence:
    """Return the fence around the project and the `draft`; relative paths begin in `root`.

    What `memories` say belongs into no document, wherever they lie. Raises `PlaceError` for what
    no path can be.
    """
    closed = (project.home, memories)
    around = _Around(root, draft, private, also=(project.root,), closed=closed)
    around.draft = draft.name
    return around


def tools(
    around: Fence, guard: Guard, level: str, stopped: Callable[[], bool] = lambda: False
) -> dict[str, Tool]:
    """Return the tools by name; `level` is what may be shown of a notebook's outputs."""

    def look() -> reading.Look:
        return reading.Look(around, level, stopped)

    shown = _Shown()
    edit = Once(EditTool(guard))
    looks = (LookTool(reading.READ, reading.read, look), LookTool(GREP, grep, look))
    every = (*looks, LookTool(GLOB, glob, look))
    return {edit.spec.name: edit, **{each.spec.name: Sparing(each, shown) for each in every}}


@dataclass(frozen=True, slots=True)
class Once:
    """Edit, of which the same call a second time changes nothing.

    Text that is put below a line would else stand there twice where a model says it twice.
    """

    inner: EditTool
    done: set[tuple[str, str]] = field(default_factory=set)

    @property
    def spec(self) -> ToolSpec:
        """What an engine is told of the tool."""
        return self.inner.spec

    def run(self, call: ToolCall, run: Run) -> str:
        """Make the edit; returns a sentence. Raises `ToolError` when it is refused."""
        given = (str(call.input.get("old_string")), str(call.input.get("new_string")))
        if given in self.done:
            return "That edit was made already."
        said = self.inner.run(call, run)
        self.done.add(given)
        return said


@dataclass(slots=True)
class _Shown:
    """How much one run was shown, in characters."""

    chars: int = 0


@dataclass(frozen=True, slots=True)
class Sparing:
    """A tool that looks, until enough was shown."""

    inner: LookTool
    shown: _Shown

    @property
    def spec(self) -> ToolSpec:
        """What an engine is told of the tool."""
        return self.inner.spec

    def run(self, call: ToolCall, run: Run) -> str:
        """Return what the tool says; raises `ToolError`, also when enough was shown."""
        if self.shown.chars >= MOST_SHOWN:
            raise ToolError(
                "Enough was looked at for one document. Write from what you know, or leave it."
            )
        text = self.inner.run(call, run)
        self.shown.chars += len(text)
        return text
