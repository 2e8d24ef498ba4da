"""A class of settings, and what it says to a value that it cannot have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from traitlets import Bool, Enum, Int, List, TraitError, Unicode
from traitlets.config import Config, Configurable


class Section(Configurable):
    """A class of settings that says what it would take when it refuses a value."""

    @classmethod
    def refusals(cls, values: Mapping[str, Any]) -> dict[str, str]:
        """Return a sentence for each of `values`, by trait name, that cannot be set."""
        return {
            name: sentence
            for name, value in values.items()
            if (sentence := cls._refusal(name, value)) is not None
        }

    @classmethod
    def _refusal(cls, name: str, value: Any) -> str | None:
        traits = cls.class_traits(config=True)
        if not name:
            return f"{cls.__name__} is no setting itself; it has {', '.join(sorted(traits))}."
        if name not in traits:
            return f"{cls.__name__} has no setting {name}; it has {', '.join(sorted(traits))}."
        try:
            given = getattr(cls(config=Config({cls.__name__: {name: value}})), name)
        except TraitError:
            given = math.nan
        if isinstance(given, float) and not math.isfinite(given):
            # From a command line comes a text that is more than one, and says so of itself.
            shown = str(value) if isinstance(value, str) else value
            return f"{cls.__name__}.{name} must be {_range(traits[name])}, not {shown!r}."
        return None

    def update_config(self, config: Config) -> None:
        """Take what `config` says of this class; raises TraitError with the allowed range."""
        values = config.get(type(self).__name__, {})
        refused = self.refusals(values)
        if refused:
            raise TraitError(" ".join(refused.values()))
        super().update_config(Config({type(self).__name__: dict(values)}))


def _range(trait: Any) -> str:
    """Return what `trait` takes, in words that follow "must be"."""
    if isinstance(trait, Enum):
        return "one of " + ", ".join(str(value) for value in trait.values or ())
    if isinstance(trait, Bool):
        return "True or False"
    if isinstance(trait, Unicode):
        return "text"
    if isinstance(trait, List):
        return "a list of texts"
    kind = "a whole number" if isinstance(trait, Int) else "a number"
    low, high = trait.min, trait.max
    return f"{kind} from {low:g} to {high:g}" if high is not None else f"{kind} from {low:g} up"


def values_of(config: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    """Return what `config` says of a section, by name.

    What is no section at all, as after ``c.Privacy = 'none'``, is a setting without a name, which
    is refused.
    """
    found = config.get(section, {})
    return found if isinstance(found, Mapping) else {"": found}
