"""The settings of a session: where they come from, what is refused, what crosses the pipe.

Settings come from where IPython's own come from: the user's and the administrator's
``ipython_config.py``, ``%config SessionNotes.wait_seconds = 3``, and for the command line
``ipymemory_config.py`` or ``.json`` on Jupyter's config path. `Settings` holds one object of
each class (`setting_classes`); `Settings.as_dict` is what crosses the pipe to the worker.

A value that a setting cannot have is refused with the allowed range, by `Section.update_config`
(what ``%config`` calls) as by `Settings.read`, which takes a whole config file: there the
default stands in for what was refused, since a slip in one line must not cost the session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from traitlets import TraitError
from traitlets.config import Config

from ipymemory.config_reading import Unread, set_in
from ipymemory.config_section import Section, values_of
from ipymemory.errors import SettingError
from ipymemory.setting_classes import (
    CLASSES,
    Capture,
    Dream,
    Engine,
    Extraction,
    MagicDocs,
    Memory,
    Privacy,
    SessionNotes,
)


class Settings:
    """One object of each class of settings, made from one traitlets `Config`."""

    def __init__(self, config: Config | None = None) -> None:
        """Read `config`; raises `SettingError` for a value that a setting cannot have."""
        self.held = ""
        """Why nothing may be recorded, in sentences: what is wrong with `Privacy`; or nothing."""
        config = config if config is not None else Config()
        try:
            self.memory = Memory(config=config)
            self.capture = Capture(config=config)
            self.privacy = Privacy(config=config)
            self.session_notes = SessionNotes(config=config)
            self.extraction = Extraction(config=config)
            self.magic_docs = MagicDocs(config=config)
            self.dream = Dream(config=config)
            self.engine = Engine(config=config)
        except TraitError as error:
            raise SettingError(f"A setting has a value it cannot have: {error}") from error

    @classmethod
    def read(
        cls,
        config: Mapping[str, Any],
        files: Sequence[Path] = (),
        unread: Sequence[Unread] = (),
    ) -> tuple[Settings, tuple[str, ...]]:
        """Return the settings in `config`, and what is wrong: in `unread` files and with values.

        A refused setting keeps its default, but one of `Privacy` the strictest value there is,
        and nothing is recorded (`held`): whoever mistyped it wanted less kept. Sections that are
        not ours are left alone.
        """
        taken = Config()
        for section in CLASSES:
            values = dict(values_of(config, section.__name__))
            for name in section.refusals(values):
                del values[name]
            taken[section.__name__] = Config(values)
        settings = cls(taken)
        return settings, settings.judge(config, files, unread)

    def judge(
        self, config: Mapping[str, Any], files: Sequence[Path], unread: Sequence[Unread] = ()
    ) -> tuple[str, ...]:
        """Hold recording, or let it go, by what is wrong with `Privacy`; return all that is wrong.

        While it is held, each setting of `Privacy` has its strictest value; afterwards what
        `config` says.
        """
        wrong = self.wrong(config, files)
        held = [each.sentence for each in unread if each.private]
        held += [each for each in wrong if _HOLDS in each]
        if held:
            self.privacy.update_config(Config({"Privacy": _STRICTEST}))
        elif self.held:
            self.privacy.update_config(Config({"Privacy": _PRIVACY}))
            self.privacy.update_config(Config({"Privacy": dict(values_of(config, "Privacy"))}))
        self.held = " ".join(held)
        return (*(each.sentence for each in unread), *wrong)

    def take(self, config: Mapping[str, Any], before: Mapping[str, Any]) -> None:
        """Set what `config` says otherwise than `before` did.

        For a config file that changed: what somebody set with ``%config`` meanwhile stays, unless
        the file says something new about it. A line that is gone gives the default back, and a
        refused value leaves the setting as it is.
        """
        for each in self.objects:
            section = type(each).__name__
            defaults = type(each)()
            changed = _differences(values_of(before, section), values_of(config, section))
            for name, value in changed:
                new = getattr(defaults, name, None) if value is _GONE else value
                if not each.refusals({name: new}):
                    each.update_config(Config({section: {name: new}}))

    def wrong(self, config: Mapping[str, Any], files: Sequence[Path] = ()) -> tuple[str, ...]:
        """Return what is wrong in `config`: a value each, what holds instead, and where to mend it.

        `files` are those that `config` was read from, as far as it was.
        """
        said = []
        for each in self.objects:
            section, known = type(each).__name__, each.trait_names(config=True)
            for name, sentence in each.refusals(values_of(config, section)).items():
                file = set_in(files, section, name)
                where = str(file) if file else "the config file or command line that sets it"
                holds = f"It is {getattr(each, name)!r} until you mend" if name in known else "Mend"
                said.append(f"{sentence} {_HOLDS if each is self.privacy else holds} {where}.")
        return tuple(said)

    @property
    def objects(self) -> tuple[Section, ...]:
        """The objects in the order of `CLASSES`; what ``%config`` is to know of."""
        return (
            self.memory,
            self.capture,
            self.privacy,
            self.session_notes,
            self.extraction,
            self.magic_docs,
            self.dream,
            self.engine,
        )

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Return every setting as JSON values: class name to trait name to value."""
        return {
            type(each).__name__: {
                name: getattr(each, name) for name in each.trait_names(config=True)
            }
            for each in self.objects
        }

    @classmethod
    def from_dict(cls, values: dict[str, dict[str, Any]]) -> Settings:
        """Return the settings that `as_dict` described; raises `SettingError`."""
        return cls(Config(values))


_GONE = object()
_HOLDS = "Nothing is recorded until you mend"
_STRICTEST = {"outputs": "none", "sent_outputs": "none", "files": ["*"]}
_PRIVACY = {name: trait.default() for name, trait in Privacy.class_traits(config=True).items()}


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each name whose value in `now` is another than in `before`; `_GONE` if it has none."""
    for name in sorted({*before, *now}):
        value = now.get(name, _GONE)
        if name not in before or before[name] != value:
            yield name, value
