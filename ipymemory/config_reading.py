"""The files that settings stand in: read, and looked through for who set what.

Python files are run, as IPython and Jupyter run theirs, so only folders that belong to the user
or the administrator may be named. What cannot be read gets one sentence, wherever it is shown.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traitlets.config import Config
from traitlets.config.loader import (
    ConfigFileNotFound,
    JSONFileConfigLoader,
    PyFileConfigLoader,
)

log = logging.getLogger(__name__)

_MOST_BYTES = 1024 * 1024
"""A config file is a page or a few, IPython's own commented one has 40 KB; no more is read."""


PRIVACY = "Privacy"
"""The section whose loss would let more be kept than somebody wanted."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A config file that could not be read.

    `sentence` says so and what to do; `private` tells whether it speaks of `Privacy`, or may.
    """

    sentence: str
    private: bool


def read_config_files(
    paths: Iterable[Path], flags: Mapping[str, Any] | None = None
) -> tuple[Config, tuple[Unread, ...]]:
    """Return what the config files `paths` say, the later over the earlier, and what failed.

    Over all of them goes what the command line set, `flags`. A file that is not there says
    nothing; one that cannot be read gets a sentence, and the others count.
    """
    merged, failed = Config(), []
    for path in paths:
        loader = JSONFileConfigLoader if path.suffix == ".json" else PyFileConfigLoader
        try:
            merged.merge(loader(path.name, str(path.parent)).load_config())
        except ConfigFileNotFound:
            continue
        except Exception as error:
            log.debug("the config file %s failed", path, exc_info=True)
            failed.append(_unread(path, f"{type(error).__name__}: {error}"))
    merged.merge(Config(dict(flags or {})))
    return merged, tuple(failed)


def _unread(path: Path, why: str) -> Unread:
    text = _text(path)
    private = text is None or re.search(rf"(?m)^(?!\s*#).*\b{PRIVACY}\b", text) is not None
    said = f"The config file {path} was left out: {why}. "
    if private:
        speaks = "may speak" if text is None else "speaks"
        said += f"It {speaks} of {PRIVACY}, so nothing is recorded until you mend it; "
        return Unread(said + "then it is read again by itself.", True)
    return Unread(said + "Mend it; it is read again when it changes.", False)


def completed(
    paths: Sequence[Path],
    config: Mapping[str, Any],
    flags: Mapping[str, Any],
    sections: Iterable[str],
) -> tuple[Config, tuple[Unread, ...]]:
    """Return `config` with what whoever made it could not read of `paths`, and what nobody can.

    IPython tells that only where it was started, which no notebook shows; and a file that was
    mended since then is read by nobody. A file is run for it only when it speaks of one of
    `sections` and nothing of that stands in `config`. Of `Privacy` another file may have told, or
    the command line (`flags`): then every file that speaks of it is run.
    """
    made = Config(dict(config))
    failed: list[Unread] = []
    spoken = {path: tuple(_spoken(path, sections)) for path in paths}
    several = sum(PRIVACY in each for each in spoken.values()) + (PRIVACY in flags) > 1
    lacking = {each for each in sections if not config.get(each) or (each == PRIVACY and several)}
    for path, found in spoken.items():
        if lacking.intersection(found):
            read, unread = read_config_files([path])
            failed += unread
            made.merge(Config({name: read[name] for name in lacking if name in read}))
    made.merge(Config({name: flags[name] for name in lacking if name in flags}))
    return made, tuple(failed)


def _spoken(path: Path, sections: Iterable[str]) -> Iterable[str]:
    """Return those of `sections` that a file speaks of, all of them when it cannot be opened."""
    text = _text(path)
    if text is None:
        return sections
    return [
        each
        for each in sections
        if each in text and re.search(rf"(?m)^(?!\s*#).*\b{each}\b[\"']?\s*[.=:\]]", text)
    ]


def set_in(paths: Iterable[Path], section: str, name: str) -> Path | None:
    """Return the file that sets a trait, the last of `paths` that speaks of it; None for none."""
    pattern = re.compile(rf"(?m)^(?!\s*#).*\b{section}\b(?:\.|[\s\S]*?\b){re.escape(name)}\b")
    found = [path for path in paths if pattern.search(_text(path) or "")]
    return found[-1] if found else None


def _text(path: Path) -> str | None:
    """Return what stands in a file, nothing where there is none, None where it is unreadable."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        return None
