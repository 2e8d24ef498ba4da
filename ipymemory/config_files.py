"""Where the settings of the command line lie: Jupyter's config path.

In a kernel IPython has read its own files before the extension is loaded; the command line has
no IPython, so it reads ``ipymemory_config.py`` and ``.json`` from the folders that Jupyter's
programs read theirs from: the user's, the environment's, the system's. Never from the current
folder, which may be somebody else's.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path


def config_files() -> tuple[Path, ...]:
    """Return the files that may hold our settings, the least important first."""
    return tuple(
        folder / f"ipymemory_config.{ending}"
        for folder in reversed(jupyter_config_folders())
        for ending in ("py", "json")
    )


def jupyter_config_folders() -> list[Path]:
    """Return Jupyter's config path, the most important first, as ``jupyter --paths`` has it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from jupyter_core.paths import jupyter_config_path

            return [Path(each) for each in jupyter_config_path()]
    except ImportError:
        named = os.environ.get("JUPYTER_CONFIG_PATH", "").split(os.pathsep)
        own = os.environ.get("JUPYTER_CONFIG_DIR") or Path.home() / ".jupyter"
        system = ["/usr/local/etc/jupyter", "/etc/jupyter"] if os.name == "posix" else []
        return [Path(p) for p in [*filter(None, named), own, f"{sys.prefix}/etc/jupyter", *system]]
