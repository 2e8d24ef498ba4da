"""The values of a session's story: steps, troubles, names, files, results.

What only the whole tells is settled in them: which constant a path was made of, which name was
built from which, which later cell cured an error, what is still open, what died with a kernel.
`telling` makes them from the turns.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field, fields

from ipymemory.extractive.material import Built, Definition, Facts, Failure, Said
from ipymemory.turns import Turn

_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class Step:
    """A turn with what it says.

    `label` is how the notes name it, `began` seconds since the epoch or None, `again` whether the
    same source ran before, `note` the lines that were changed since the cell ran before, `was`
    how they read then.
    """

    turn: Turn
    label: str
    facts: Facts
    said: Said
    began: float | None = None
    again: bool = False
    note: str = ""
    was: str = ""

    @property
    def failed(self) -> bool:
        """Whether the cell raised."""
        return self.said.failure is not None

    @property
    def counts(self) -> bool:
        """Whether what the source says came to pass, as far as anybody knows."""
        turn = self.turn
        return turn.status == "ok" or (turn.status == "unknown" and turn.origin != "typed")


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error, the cells that raised it, and what cured it: `cure` is empty while it is open."""

    failure: Failure
    step: Step
    labels: tuple[str, ...]
    index: int
    cured_in: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A name of the user's: what it is, and how it was made."""

    name: str
    label: str
    kernel: int
    built: Built | None = None
    type: str = ""
    shape: str = ""
    columns: tuple[str, ...] = ()
    added: tuple[tuple[str, str], ...] = ()
    changed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FileStory:
    """A file: ``(verb, call, label)`` for each use, the newest last."""

    uses: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """A value that was shown: one line or a table; `before` are earlier ones with their cells."""

    label: str
    value: str
    note: str = ""
    table: tuple[str, ...] = ()
    before: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Logged:
    """What the work log says of a step, in its own line and in one about many steps."""

    phrase: str
    made: tuple[str, ...] = ()


@dataclass(slots=True)
class Story:
    """Everything that the sections draw from; dicts keep the order in which things came."""

    steps: list[Step] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    unsolved: list[int] = field(default_factory=list)
    files: dict[str, FileStory] = field(default_factory=dict)
    definitions: dict[str, tuple[Definition, str]] = field(default_factory=dict)
    commands: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    names: dict[str, Named] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    packages: dict[str, tuple[str, str, tuple[str, ...]]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    installed: dict[str, tuple[str, str]] = field(default_factory=dict)
    metrics: dict[str, Result] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    figures: dict[tuple[tuple[str, ...], str], tuple[str, str]] = field(default_factory=dict)
    """By their titles, or what drew one that has none: the cell, and the call."""
    warnings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    marks: dict[str, tuple[str, Step]] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    restarts: dict[int, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    cells: dict[str, Step] = field(default_factory=dict)
    seen: dict[tuple[str, ...], str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    touched: dict[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    logged: list[Logged] = field(default_factory=list)
    ranges: dict[tuple[int, int], str] = field(default_factory=dict)
    kernel: int = 0

    def copy(self) -> Story:
        """Return a story that can go on without changing this one; what they hold is frozen."""
        other = Story()
        for each in fields(self):
            value = getattr(self, each.name)
            setattr(other, each.name, value.copy() if isinstance(value, list | dict) else value)
        # What settled steps did together is the same for both, and worked out once.
        other.ranges = self.ranges
        return other


def label_of(turn: Turn) -> str:
    """Return how the notes name a cell: ``[7]``, ``k2[7]`` in the second life of a kernel.

    Counts begin anew with each kernel, so that ``[7]`` alone would name two cells. A cell of a
    file that never ran is named by its place.
    """
    if turn.execution_count is None and turn.origin == "file":
        return f"[{turn.id}]"
    return turn.label if turn.kernel <= 1 else f"k{turn.kernel}{turn.label}"


def is_data(name: str, story: Story) -> bool:
    """Return whether `name` stands for data of the user's: no module, function or builtin."""
    return name not in story.modules and name not in story.definitions and name not in _BUILTINS
