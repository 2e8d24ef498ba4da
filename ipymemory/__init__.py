"""The memory that notebooks never had: session notes that write themselves.

``%load_ext ipymemory`` in a notebook or terminal IPython turns it on. `open` gives a program
what a project's sessions left, without IPython.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipymemory.project import OpenProject

__version__ = "0.1.0"
__all__ = ["__version__", "load_ipython_extension", "open", "unload_ipython_extension"]


def open(path: str | os.PathLike[str] = ".") -> OpenProject:
    """Return the project that `path`, a file or folder, lies in. Nothing is written.

    Settings are the command line's. Raises `IpymemoryError`.
    """
    from ipymemory.project import open_project

    return open_project(path)


def load_ipython_extension(ipython: Any) -> None:
    """Turn everything on; for ``%load_ext ipymemory``."""
    from ipymemory.extension import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Turn everything off and take away what `load_ipython_extension` put in."""
    from ipymemory.extension import unload

    unload(ipython)
