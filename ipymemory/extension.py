"""Wiring: what loading turns on, and unloading turns off.

Everything that is put into the shell hangs on one `Extension`, which is kept on the shell
itself: ``%reload_ext`` runs the package's module anew, and a global there would be a second
one. Loading writes nothing to the disk and asks no network; it says one line in the cell that
asked for it, and none when the kernel hook loads it.
"""

from __future__ import annotations

import atexit
import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from ipymemory import greeting, places
from ipymemory.config import Settings
from ipymemory.config_reading import Unread, completed, read_config_files
from ipymemory.config_watch import ConfigWatch, stamps
from ipymemory.errors import IpymemoryError
from ipymemory.frontend import Frontend
from ipymemory.host import config_files, flags
from ipymemory.identity import identity, working_folder
from ipymemory.live import LiveSession
from ipymemory.magics import PREFIX, MemoryMagics, answer, with_questions, without_private
from ipymemory.setting_classes import CLASSES

if TYPE_CHECKING:
    from ipymemory.commands.place import Place

log = logging.getLogger(__name__)

_TRANSFORMERS = (without_private, with_questions)

ATTRIBUTE = "_ipymemory"
"""Where the shell keeps what was loaded into it."""

_LEFT = "_ipymemory_config"
"""Where it keeps, once that is taken out, what its settings were."""


def load(shell: Any) -> None:
    """Turn everything on and say one line; for ``%load_ext``. Does nothing a second time."""
    if getattr(shell, ATTRIBUTE, None) is not None:
        return
    try:
        extension = Extension(shell)
        line = extension.greeting()
    except IpymemoryError as error:
        line = greeting.one_line(f"ipymemory was not loaded. {error}")
        raise UsageError(line) from None
    extension.install()
    sys.stdout.write("\n".join((line, *extension.watch.refused)) + "\n")


def load_quietly(shell: Any) -> None:
    """Turn everything on without a word; for the kernel hook. Never raises."""
    try:
        if getattr(shell, ATTRIBUTE, None) is None:
            Extension(shell).install()
            shell.extension_manager.loaded.add("ipymemory")
    except Exception:
        logging.getLogger("ipymemory").debug("the kernel hook failed", exc_info=True)


def unload(shell: Any) -> None:
    """Take away all that `load` put into the shell, and end the worker."""
    extension = getattr(shell, ATTRIBUTE, None)
    if extension is not None:
        extension.remove()


class Extension:
    """All of it for one shell, from `install` to `remove`. Raises `IpymemoryError` when made."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        files = config_files(shell)
        config, unread = _config(shell, files)
        self.settings, refused = Settings.read(config, files, unread)
        self.home = places.home(self.settings.memory.home)
        self.watch = ConfigWatch(files, self.settings, config, flags(shell), refused)
        found = identity(shell)
        self.project = places.project_of(
            found.notebook or working_folder(),
            self.home,
            share_worktrees=self.settings.memory.share_worktrees,
        )
        self.live = LiveSession(
            shell, self.settings, self.project, lambda: identity(shell), self.watch
        )
        self.frontend = Frontend(shell, self.live)
        self.live.frontend = self.frontend
        self.live.on_event = self.frontend.heard
        self.magics: MemoryMagics | None = None

    def greeting(self) -> str:
        """Return the line for the cell that loads; reads what was left here."""
        line, self.live.greeted = greeting.line(
            self.project, identity(self.shell), datetime.now(UTC), self.settings.memory.folder
        )
        return line

    def install(self) -> None:
        """Put everything into the shell."""
        shell = self.shell
        self.magics = MemoryMagics(shell, self.place, self.live)
        shell.register_magics(self.magics)
        shell.configurables.extend(self.settings.objects)
        shell.input_transformers_cleanup.extend(_TRANSFORMERS)
        self.live.open()
        self.frontend.install()
        atexit.register(self.live.at_exit)
        setattr(shell, ATTRIBUTE, self)

    def remove(self) -> None:
        """Take everything out again."""
        shell = self.shell
        atexit.unregister(self.live.at_exit)
        self.frontend.remove()
        self.live.close()
        for each in _TRANSFORMERS:
            if each in shell.input_transformers_cleanup:
                shell.input_transformers_cleanup.remove(each)
        # `Magics` puts itself among them
        own = (*self.settings.objects, self.magics)
        setattr(shell, _LEFT, self.watch.left)
        shell.configurables[:] = [c for c in shell.configurables if not any(c is o for o in own)]
        _take_out(shell, self.magics)
        delattr(shell, ATTRIBUTE)

    def place(self) -> Place:
        """Return where a command is called just now."""
        from ipymemory.commands.place import Place  # late: loading needs none of it

        self.watch.check()
        return Place(
            self.settings,
            self.home,
            self.project,
            ask=answer,
            prefix=PREFIX,
            folder=self.live.folder,
            live=self.live,
            problems=self.watch.refused,
            before=self.live.before,
        )


def _config(shell: Any, files: Sequence[Path]) -> tuple[Mapping[str, Any], Sequence[Unread]]:
    """Return what the config files say, and which cannot be read.

    IPython read them when it started. What changed since an earlier load is read anew, and what
    ``%config`` said of `Privacy` still holds, else ``%reload_ext`` would undo it.
    """
    before = getattr(shell, _LEFT, None)
    if before is None:
        return completed(files, shell.config, flags(shell), [each.__name__ for each in CLASSES])
    if before[0] == stamps(files) or not files:
        return before[1], ()
    return read_config_files(files, flags(shell))


def _take_out(shell: Any, magics: MemoryMagics | None) -> None:
    """Undo ``register_magics``; IPython has no call for it. A magic that somebody put over ours
    meanwhile stays."""
    manager = shell.magics_manager
    for table in manager.magics.values():
        for name, function in list(table.items()):
            if magics is not None and getattr(function, "__self__", None) is magics:
                del table[name]
    if manager.registry.get(MemoryMagics.__name__) is magics:
        del manager.registry[MemoryMagics.__name__]
