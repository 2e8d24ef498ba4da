"""How a worker process is started: what it may import, and what it has nothing to do with.

It runs isolated (``-I``): the working folder, ``PYTHONPATH`` and the user's site folder are not on
its import path, since a ``json.py`` may lie beside a notebook. What it needs is told to it by
place: this package, from where the kernel has it, and the folders that packages were installed
into, behind all else, where they hide nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import ipymemory
from ipymemory import descriptors, started
from ipymemory.messages_api.address import VARIABLES
from ipymemory.pipes import End
from ipymemory.started import Child, Process, Started

UNSEEN_SECONDS = 0.5
"""What a cell waits at most for the shell to be over, which takes two or three ms at rest."""

LOG_BYTES = 1_000_000
"""The worker's log begins anew when it is longer."""

ENGINE_VARIABLES = (
    *VARIABLES,
    *("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("https_proxy", "http_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""What of the kernel's environment an engine goes by; a change is told to the running worker."""

_NEEDED = ("traitlets", "filelock", "psutil")
"""The packages that the worker imports, by the names of their folders."""

_INSTALLED = ("site-packages", "dist-packages")

_BOOT = """
import json, sys
from importlib.machinery import PathFinder
class Told:
    def __init__(self, folders):
        self.folders = folders
    def find_spec(self, name, path=None, target=None):
        if path is None and name in self.folders:
            return PathFinder.find_spec(name, [self.folders[name]])
told = json.loads(sys.argv[1])
sys.meta_path.insert(0, Told({"ipymemory": told["package"]}))
sys.meta_path.append(Told(told["needed"]))
sys.path += [each for each in told["installed"] if each not in sys.path]
from ipymemory.worker import main
main()
"""


_CELLS_WAIT = os.name != "nt"
"""Whether a cell can wait for all children there are, whoever started them."""


class CellRuns(Exception):
    """A worker is not started now."""


class Unseen:
    """Keeps the shell that starts a worker out of sight of the cell that runs.

    A cell that waits for any child at all is told the end of the shell as well, in place of its
    own child's: of 20 first cells that did, 11 were. So it runs between two cells, or while one
    waits for an answer of ours. On Windows nobody can wait for all children, and it runs at once.
    """

    def __init__(self) -> None:
        self.cell_runs = False
        self.again: Callable[[], object] = bool
        """What is called, on the cell's thread, when the cell has ended that a start waited for."""
        self.lock = threading.Lock()
        """Held for the moment that the shell takes."""
        self._brief = True
        self._put_off = False

    def cell_begins(self) -> None:
        """Note it; where a worker is being started just now, wait for the end of that moment."""
        self.cell_runs = _CELLS_WAIT
        if self._brief and self.lock.locked():
            # A shell that somebody stopped is waited for once, not before each cell.
            self._brief = self.lock.acquire(timeout=UNSEEN_SECONDS)
            if self._brief:
                self.lock.release()

    def cell_ended(self) -> None:
        """Note it, and let a start that was put off be tried again."""
        self.cell_runs = False
        if self._put_off:
            self._put_off = False
            self.again()

    def free(self) -> bool:
        """Return whether no cell runs; if one does, its end is told to `again`."""
        # In this order: a cell that ends just now sees either this, or is seen to have ended.
        self._put_off = True
        self._put_off = self.cell_runs
        return not self._put_off

    @contextmanager
    def moment(self, *, asked: bool) -> Iterator[None]:
        """Keep cells from beginning meanwhile. Raises `CellRuns` where one runs, unless `asked`."""
        with self.lock:
            if not asked and not self.free():
                raise CellRuns
            self._brief = True
            yield


def worker_command() -> list[str]:
    """Return the command that starts a worker."""
    here = _working_folder()
    told = {
        "package": str(Path(ipymemory.__file__).resolve().parent.parent),
        "needed": {
            name: folder for name in _NEEDED if (folder := _place(name)) and folder not in here
        },
        "installed": [
            each
            for each in sys.path
            if Path(each).is_absolute() and Path(each).name in _INSTALLED and each not in here
        ],
    }
    return [sys.executable, "-I", "-c", _BOOT, json.dumps(told)]


def start(
    command: Sequence[str],
    folder: Path,
    log: Path,
    moment: AbstractContextManager[None] | None = None,
) -> tuple[Started, End, End]:
    """Start `command` in `folder`; return the process, the pipe to it and the pipe from it.

    Its standard error is appended to `log`. As long as there is a child that is no worker,
    `moment` is entered. Raises `OSError`, and what that raises.
    """
    leave = started.can_be_left()
    whole = started.left(command) if leave else list(command)
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    try:
        try:
            with moment or nullcontext():
                process = _begun(whole, folder, log, theirs_in, theirs_out)
                if leave:
                    # Where user code was first and reaped the shell, this returns as well.
                    process.wait()
        finally:
            descriptors.close(theirs_in)
            descriptors.close(theirs_out)
        one = started.adopted(process.returncode, ours_in) if leave else Child(process)
    except BaseException:
        descriptors.close(ours_out)
        descriptors.close(ours_in)
        raise
    return one, End(descriptors.above(ours_out)), End(descriptors.above(ours_in))


def _begun(command: list[str], folder: Path, log: Path, source: int, out: int) -> Process:
    errors = _open_log(log)
    try:
        return Process(command, stdin=source, stdout=out, stderr=errors, cwd=folder, **_apart())
    finally:
        descriptors.close(errors)


def engine_environment() -> dict[str, str | None]:
    """Return `ENGINE_VARIABLES` as they are now, None for one that is not set."""
    return {name: os.environ.get(name) for name in ENGINE_VARIABLES}


def _open_log(path: Path) -> int:
    try:
        anew = path.stat().st_size > LOG_BYTES
    except OSError:
        anew = False
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if anew else 0)
    return descriptors.open(path, flags, 0o600)


def _apart() -> dict[str, Any]:
    """Return what keeps the worker out of the kernel's signals and its window.

    A process left in the kernel's group makes its shutdown take seconds. Never ``preexec_fn``:
    it forks the memory of the user.
    """
    if sys.platform == "win32":
        flags = (
            subprocess.CREATE_NEW_PROCESS_GROUP
            | subprocess.CREATE_NO_WINDOW
            | subprocess.BELOW_NORMAL_PRIORITY_CLASS
        )
        return {"creationflags": flags}
    return {"start_new_session": True}


def _place(name: str) -> str:
    """Return the folder that holds the package `name` where that is no folder of installed ones."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except Exception:  # noqa: BLE001 - finders that user code put in raise what they like
        return ""
    if spec is None or not spec.submodule_search_locations:
        return ""
    folder = Path(next(iter(spec.submodule_search_locations))).parent
    return "" if folder.name in _INSTALLED else str(folder)


def _working_folder() -> set[str]:
    """Return the ways in which the working folder may stand on an import path."""
    try:
        return {"", ".", str(Path.cwd()), os.path.realpath(".")}
    except OSError:
        return {"", "."}
