"""Which notebook this is, as far as the frontend lets a kernel know.

A server tells the path in the environment and in the namespace, VS Code in a name of its own,
nbclient and a terminal not at all; then the working folder says at least which project. The
path of a server stays what it was when the kernel began, also after a renaming, so the file's
inode goes with it: a save keeps it and a renaming too. A kernel that a notebook's cell starts
inherits the path of that notebook, which is not its own. In a terminal the shell that IPython was
typed into tells it from other terminals.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ipymemory import processes
from ipymemory.sessions import Identity

_NAMES = ("__vsc_ipynb_file__", "__session__")
_VARIABLE = "JPY_SESSION_NAME"


def identity(shell: Any) -> Identity:
    """Return who `shell` works for. Reads the environment and one `stat`; never raises."""
    notebook = _notebook(shell)
    kernel = getattr(shell, "kernel", None)
    connection = getattr(getattr(kernel, "parent", None), "connection_file", "") or ""
    return Identity(
        notebook=notebook,
        inode=_inode(notebook),
        connection=Path(str(connection)).name or (_terminal() if kernel is None else ""),
        terminal=kernel is None,
    )


def working_folder() -> Path:
    """Return the folder the process works in, the home folder where that one is gone."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()


def _notebook(shell: Any) -> Path | None:
    """Return the notebook's absolute path. A console's session has a name and no file."""
    told = [shell.user_ns.get(name) for name in _NAMES]
    inherited = _inherited()
    for each in (*told, os.environ.get(_VARIABLE)):
        if not isinstance(each, str) or not each or each == inherited:
            continue
        path = Path(each)
        if path.is_absolute() and (path.suffix == ".ipynb" or path.is_file()):
            return path
    return None


def _inherited() -> str:
    """Return the path in the environment where it is that of the notebook that started this kernel.

    A server tells a kernel its notebook by a variable, which every process has that a cell starts:
    ``jupyter execute``, nbclient, and the kernels of those. A server does not have it itself.
    Who started a kernel, jupyter_client tells; not its parent, which may be a wrapper's shell.
    """
    path = os.environ.get(_VARIABLE, "")
    parent = os.environ.get("JPY_PARENT_PID", "") if os.name != "nt" else str(os.getppid())
    if not path or not parent.isdecimal():
        return ""
    return path if processes.variable(int(parent), _VARIABLE) == path else ""


def _terminal() -> str:
    """Return what names this terminal for as long as its shell lives, or nothing."""
    shell = processes.session_leader()
    return f"terminal {shell.pid} {shell.started:.2f} {shell.boot}" if shell else ""


def _inode(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_ino else None
