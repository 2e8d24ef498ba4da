"""The files that settings stand in: read, and looked through for who set what.

Python files are run, as IPython and Jupyter run theirs, so only folders that belong to the user
or the administrator may be named. What cannot be read gets one sentence, wherever it is shown.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
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


def read_config_files(paths: Iterable[Path]) -> tuple[Config, tuple[str, ...]]:
    """Return what the config files `paths` say, the later over the earlier, and what failed.

    A file that is not there says nothing; one that cannot be read gets a sentence, and the
    others count.
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
            failed.append(
                f"The config file {path} was left out: {type(error).__name__}: {error}. "
                "Mend it; it is read again when it changes."
            )
    return merged, tuple(failed)


def unread(
    paths: Iterable[Path], config: Mapping[str, Any], sections: Iterable[str]
) -> tuple[str, ...]:
    """Return a sentence for each of `paths` that whoever made `config` could not read.

    IPython tells that only where it was started, which no notebook shows. A file is run for it
    only when it speaks of one of `sections` and nothing of that stands in `config`.
    """
    failed: list[str] = []
    for path in paths:
        text = _text(path)
        if text is None or any(
            not config.get(each) and re.search(rf"(?m)^(?!\s*#).*\b{each}\b[\"']?\s*[.=:\]]", text)
            for each in sections
        ):
            failed += read_config_files([path])[1]
    return tuple(failed)


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
