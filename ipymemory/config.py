"""Every setting, as a trait whose help is its documentation.

Settings come from where IPython's own come from: the user's and the administrator's
``ipython_config.py``, ``%config SessionNotes.wait_seconds = 3``, and for the command line
``ipymemory_config.py`` or ``.json`` on Jupyter's config path. `Settings` holds one object of
each class; `Settings.as_dict` is what crosses the pipe to the worker.
"""

from __future__ import annotations

from typing import Any

from traitlets import Bool, Enum, Float, Int, TraitError, Unicode
from traitlets.config import Config, Configurable

from ipymemory.errors import SettingError


class Memory(Configurable):
    """Where memory lies and how long it is kept."""

    home = Unicode(
        "", help="The home folder. Empty: the environment's IPYMEMORY_HOME, else ~/.ipymemory."
    ).tag(config=True)
    mode = Enum(
        ["auto", "confirm", "read", "off"],
        "auto",
        help=(
            "auto: memories and documents are written by themselves; confirm: every such write "
            "is a proposal; read: recall only; off: neither, and no engine call. Recording and "
            "notes go on in all four. A mode chosen with %memory mode in a project goes first."
        ),
    ).tag(config=True)
    share_worktrees = Bool(
        True, help="Whether linked git work trees share the main work tree's memory."
    ).tag(config=True)
    keep_days = Int(400, min=1, help="Days that a session is kept after its last turn.").tag(
        config=True
    )
    history_keep = Int(
        200, min=1, help="Runs of one job whose before-images are kept for undo, in a project."
    ).tag(config=True)


class Capture(Configurable):
    """What is recorded of a cell, and how much."""

    source_bytes = Int(
        32 * 1024, min=1024, max=48 * 1024, help="Bytes of a cell's source that are kept."
    ).tag(config=True)
    output_chars = Int(
        4000, min=200, max=16000, help="Characters kept of one piece of output."
    ).tag(config=True)
    outputs_bytes = Int(
        24 * 1024, min=1024, max=48 * 1024, help="Bytes kept of all outputs of a cell."
    ).tag(config=True)
    names = Int(40, min=0, max=200, help="Names a cell bound that are noted with their type.").tag(
        config=True
    )
    columns = Int(50, min=0, max=200, help="Column names that are noted of a data frame.").tag(
        config=True
    )
    late_seconds = Float(
        2.0, min=0.0, max=60.0, help="Seconds after a cell in which its late output still counts."
    ).tag(config=True)


class Privacy(Configurable):
    """What may be kept on disk, and what may be sent."""

    outputs = Enum(
        ["all", "no-tables", "shapes", "none"],
        "all",
        help=(
            "What is kept of outputs. all; no-tables: a table's rows are left out, since rows may "
            "be people; shapes: only type and shape; none: nothing but errors' names."
        ),
    ).tag(config=True)
    sent_outputs = Enum(
        ["all", "no-tables", "shapes", "none"],
        "no-tables",
        help="What of outputs may be sent to a model; never more than is kept.",
    ).tag(config=True)


class SessionNotes(Configurable):
    """The session notes."""

    enabled = Bool(True, help="Whether session notes are kept.").tag(config=True)
    wait_seconds = Float(
        1.0,
        min=0.0,
        max=3600.0,
        help="Seconds of rest before the extractive engine updates the notes.",
    ).tag(config=True)
    section_tokens = Int(
        2000, min=100, max=100_000, help="Soft limit of one section of the notes, in tokens."
    ).tag(config=True)
    total_tokens = Int(
        12_000, min=500, max=1_000_000, help="Soft limit of the notes as a whole, in tokens."
    ).tag(config=True)
    rounds = Int(10, min=1, max=100, help="Most rounds of one update.").tag(config=True)
    minutes = Float(3.0, min=0.01, max=60.0, help="Most minutes of one update.").tag(config=True)


class Engine(Configurable):
    """The worker process and the engine that runs in it."""

    idle_minutes = Float(
        10.0, min=0.01, max=1440.0, help="Minutes with nothing to do after which the worker ends."
    ).tag(config=True)
    drain_seconds = Float(
        60.0, min=0.0, max=3600.0, help="Seconds a run in flight may take when the kernel ends."
    ).tag(config=True)
    idle_seconds = Float(
        5.0, min=0.1, max=3600.0, help="Seconds at rest after which a session counts as idle."
    ).tag(config=True)


CLASSES: tuple[type[Configurable], ...] = (Memory, Capture, Privacy, SessionNotes, Engine)


class Settings:
    """One object of each class of settings, made from one traitlets `Config`."""

    def __init__(self, config: Config | None = None) -> None:
        """Read `config`; raises `SettingError` for a value that a setting cannot have."""
        config = config if config is not None else Config()
        try:
            self.memory = Memory(config=config)
            self.capture = Capture(config=config)
            self.privacy = Privacy(config=config)
            self.session_notes = SessionNotes(config=config)
            self.engine = Engine(config=config)
        except TraitError as error:
            raise SettingError(f"A setting has a value it cannot have: {error}") from error

    @property
    def objects(self) -> tuple[Configurable, ...]:
        """The objects in the order of `CLASSES`; what ``%config`` is to know of."""
        return (self.memory, self.capture, self.privacy, self.session_notes, self.engine)

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Return every setting as JSON values: class name to trait name to value."""
        return {
            type(each).__name__: {name: getattr(each, name) for name in each.trait_names(config=True)}
            for each in self.objects
        }

    @classmethod
    def from_dict(cls, values: dict[str, dict[str, Any]]) -> Settings:
        """Return the settings that `as_dict` described; raises `SettingError`."""
        return cls(Config(values))
