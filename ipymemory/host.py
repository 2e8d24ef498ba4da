"""What the application that runs the shell knows: its config files and its command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def application(shell: Any) -> Any:
    """Return IPython's or ipykernel's application, None for an embedded shell."""
    kernel = getattr(shell, "kernel", None)
    return getattr(kernel if kernel is not None else shell, "parent", None)


def config_files(shell: Any) -> tuple[Path, ...]:
    """Return the files that IPython read its settings from, or would, the least important first.

    They lie in the profile's folder, the environment's and the system's.
    """
    app = application(shell)
    names = ["ipython_config.py"]
    names += [name for name in getattr(app, "config_files", ()) if name not in names]
    return tuple(
        (Path(folder) / name).with_suffix(ending)
        for name in names
        for folder in reversed(getattr(app, "config_file_paths", ()))
        for ending in (".py", ".json")
    )


def flags(shell: Any) -> dict[str, Any]:
    """Return what the command line of the application set, which goes above every file."""
    return dict(getattr(application(shell), "cli_config", {}))
