"""The values of the extractive engine: what it is given and what it tells from one cell.

`Facts` is what a cell's source says, `Said` what its outputs say; both depend on that one turn
alone, so they are worked out once for each turn. What depends on the turns before it (a constant
that a path is made of, a name that was bound earlier) is left open here, as an `Expr`, and
settled by the story that folds the turns together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ipymemory.turns import Entry


@dataclass(frozen=True, slots=True)
class ByModel:
    """What of the notes is a model's: all but Current State and the newer lines of the Worklog.

    `through` is the last entry that its run covers, `log` how many lines of the Worklog are its.
    """

    run: str
    through: str
    log: int


@dataclass(frozen=True, slots=True)
class NotesMaterial:
    """What the engine needs for one update of the notes.

    `entries` are in the order in which they began; `notebook` is its path or name, empty in a
    terminal. `notes` is the file `path` as it stands, `base` what the engine wrote last: what
    differs was changed by a person. The limits are in tokens (behaviour S2).
    """

    entries: tuple[Entry, ...]
    notebook: str
    notes: str
    base: str
    path: str
    section_tokens: int = 2000
    total_tokens: int = 12_000
    by_model: ByModel | None = None


@dataclass(frozen=True, slots=True)
class Expr:
    """A text that is put together: literal text, names whose value is not known yet, or parts.

    `kind`: ``text`` (literal `value`), ``name`` (a global's name in `value`), ``code`` (an
    expression that stays as written), ``add`` (`parts` one after another), ``join`` (`parts` as a
    path), ``any`` (the first of `parts` that is known).
    """

    kind: Literal["text", "name", "code", "add", "join", "any"]
    value: str = ""
    parts: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Import:
    """``import module as alias`` or ``from module import names``; `root` is what to install."""

    module: str
    alias: str = ""
    names: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The package: what stands before the first dot."""
        return self.module.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class: signature as written, the docstring's first line, its methods."""

    kind: Literal["def", "class"]
    name: str
    signature: str
    doc: str = ""
    methods: tuple[str, ...] = ()
    body: str = ""


@dataclass(frozen=True, slots=True)
class Built:
    """A name that was made: `expression` as written, the `names` in it in order.

    `how`: ``=`` bound to the expression; ``fit`` changed by a method called on it, such as
    ``model.fit(X, y)``; ``column`` when one of its columns was set, then `column` is its name.
    """

    name: str
    expression: str
    names: tuple[str, ...] = ()
    how: Literal["=", "fit", "column"] = "="
    column: str = ""


@dataclass(frozen=True, slots=True)
class FileUse:
    """A file that a call reads or writes; `by` is the call, as ``pd.read_csv``.

    `sure` when the call is known to take a file, so that any text is one.
    """

    verb: Literal["reads", "writes", "names"]
    path: Expr
    by: str
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Constant:
    """A name bound to a text or number that paths may be made of; None: to something else."""

    name: str
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What one cell's source says."""

    parsed: bool = True
    imports: tuple[Import, ...] = ()
    definitions: tuple[Definition, ...] = ()
    built: tuple[Built, ...] = ()
    files: tuple[FileUse | Constant, ...] = ()
    commands: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    drawn: str = ""
    deleted: tuple[str, ...] = ()
    reads: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()
    last: str = ""
    doc: str = ""
    headline: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """What a traceback says: the error, the user's own line, and the cell that line is in.

    `at` is the line in the cell that was run; `inside` the innermost line of the user's own code
    when that lies elsewhere, with `function` and `count`, the execution count of its cell.
    """

    name: str
    value: str = ""
    at: str = ""
    inside: str = ""
    function: str = ""
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What one cell's outputs say."""

    failure: Failure | None = None
    metrics: tuple[tuple[str, str], ...] = ()
    printed: str = ""
    brief: bool = False
    value: str = ""
    table: tuple[str, ...] = ()
    shape: str = ""
    figures: int = 0
    warnings: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    took: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One bullet of the notes, with the lines below it that belong to it.

    `weight` says what goes first when there is too much: the lowest, and of equals the oldest.
    """

    text: str
    weight: int = 5
