"""The command line: ``ipymemory COMMAND``, the same commands as ``%memory`` without IPython.

Exit codes: 0 done, 1 what a command means by it, 2 a wrong call or a failure that is said in a
sentence. Settings come from ``ipymemory_config.py`` or ``.json`` on Jupyter's config path,
never from the current folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ipymemory import __version__, kernel_hook, places
from ipymemory.commands import calling, helping
from ipymemory.commands.ingesting import INGEST
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place, Screen
from ipymemory.commands.table import COMMANDS
from ipymemory.config import Settings
from ipymemory.config_files import config_files
from ipymemory.config_reading import read_config_files
from ipymemory.errors import CommandError, IpymemoryError
from ipymemory.neutral import plain

PREFIX = "ipymemory "


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (else of the process) and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        page = _run(words)
    except IpymemoryError as error:
        return _finish(f"ipymemory: {error}", 2, error=True)
    except KeyboardInterrupt:
        return _finish("ipymemory: interrupted", 130, error=True)
    for sentence in page.warnings:
        _write(f"ipymemory: {sentence}", error=True)
    return _finish(page.plain, page.exit)


def _run(words: list[str]) -> Page:
    known = line_commands()
    if not words or words[0] in ("-h", "--help"):
        words = ["help"]
    elif words[0] == "--version":
        return Page(f"ipymemory {__version__}")
    elif {"-h", "--help"} & set(words[1:]):
        words = ["help", words[0]]
    # Help for such a command is asked of the same notebook.
    asked = "help " if words[0] == "help" and len(words) > 1 else ""
    meant = words[1] if asked else words[0]
    if meant in COMMANDS and meant not in known:
        raise CommandError(
            f"{meant} is for a running notebook or terminal IPython: type "
            f"%memory {asked}{meant} there."
        )
    command = calling.find(known, words[0], PREFIX)
    arguments = calling.parse(command, words[1:], PREFIX)
    page = command.anywhere(arguments) if command.anywhere else None
    if page is not None:
        return page.as_json() if arguments.get(JSON.key) and not page.pure else page
    place = here()
    if command.name not in ("status", "doctor") or arguments.get(JSON.key):
        # Those two show it on their page.
        for sentence in place.problems:
            _write(f"ipymemory: {sentence}", error=True)
    page = command.run(place, arguments)
    return page.as_json() if arguments.get(JSON.key) else page


def line_commands() -> dict[str, Command]:
    """Return every command of the command line by its name."""
    known = {
        name: each for name, each in COMMANDS.items() if not each.needs_session and name != "help"
    }
    known |= {each.name: each for each in (INGEST, DEMO, INSTALL_HOOK, UNINSTALL_HOOK)}
    known["help"] = helping.command(known)
    return known


def here() -> Place:
    """Return the place of the current folder; its `problems` tell what of settings is refused."""
    files = config_files()
    config, failed = read_config_files(files)
    settings, problems = Settings.read(config, files, failed)
    home = places.home(settings.memory.home)
    project = places.project_of(Path.cwd(), home, share_worktrees=settings.memory.share_worktrees)
    return Place(
        settings, home, project, ask=_ask, prefix=PREFIX, problems=problems, screen=_screen
    )


def _screen(says: Callable[[Mapping[str, Any]], str]) -> Screen:
    from ipymemory.terminal_line import Line  # late: rich is seldom needed

    return Line(says)


def _ask(question: str) -> str | None:
    if not sys.stdin or not sys.stdin.isatty():
        return None
    try:
        return input(plain(question))
    except EOFError:
        return None


def _write(text: str, *, error: bool = False) -> None:
    """Write `text` and a newline; the one place of this package that writes to a screen."""
    stream = sys.stderr if error else sys.stdout
    line = plain(text).rstrip("\n") + "\n"
    try:
        stream.write(line)
    except UnicodeEncodeError:
        code = stream.encoding or "ascii"
        stream.write(line.encode(code, "backslashreplace").decode(code))


def _finish(text: str, code: int, *, error: bool = False) -> int:
    try:
        if text:
            _write(text, error=error)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us (`| head`) has seen enough; without this Python complains at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _demo(place: Place, arguments: Arguments) -> Page:
    from ipymemory import demo

    return demo.run(arguments["folder"])


def _install(place: Place, arguments: Arguments) -> Page:
    changed = kernel_hook.install()
    text = "The extension is loaded in every kernel and terminal IPython that starts from now on"
    if not changed:
        text = "The hook was there already: the extension is loaded in every kernel that starts"
    return Page(f"{text} ({kernel_hook.path()}). `ipymemory uninstall-kernel-hook` undoes this.")


def _uninstall(place: Place, arguments: Arguments) -> Page:
    if kernel_hook.uninstall():
        return Page("The hook is gone. Kernels that start from now on load nothing of ours.")
    return Page(f"There was no hook at {kernel_hook.path()}; nothing was changed.")


DEMO = Command(
    "demo",
    "run a small notebook in a real kernel and show what it leaves",
    _demo,
    (Argument("FOLDER", "where its files go; else a new folder for temporary files"),),
)
INSTALL_HOOK = Command(
    "install-kernel-hook", "load the extension in every kernel of this user", _install
)
UNINSTALL_HOOK = Command("uninstall-kernel-hook", "load it in every kernel no longer", _uninstall)
