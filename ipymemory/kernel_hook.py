"""The kernel hook: one file in IPython's startup folder that loads the extension.

IPython runs the Python files of that folder in every kernel and terminal of the user. Ours says
nothing, does nothing once the package is gone, and is known by its first line, so that only a
file that we wrote is ever replaced or removed.
"""

from __future__ import annotations

import os
from pathlib import Path

from ipymemory.errors import PlaceError
from ipymemory.files import write_atomic

MARK = "# The kernel hook of ipymemory."
NAME = "50-ipymemory.py"

_TEXT = f"""\
{MARK} `ipymemory uninstall-kernel-hook` removes it.
try:
    from ipymemory.extension import load_quietly as _ipymemory_load
except ImportError:
    pass
else:
    _ipymemory_load(get_ipython())
    del _ipymemory_load
"""


def path() -> Path:
    """Return where the hook lies or would lie: the startup folder of IPython's default profile."""
    folder = os.environ.get("IPYTHONDIR") or str(Path.home() / ".ipython")
    return Path(folder).expanduser() / "profile_default" / "startup" / NAME


def state() -> str:
    """Return ``installed``, ``outdated``, ``foreign`` (not our file) or ``absent``."""
    try:
        text = path().read_text(encoding="utf-8")
    except FileNotFoundError:
        return "absent"
    except (OSError, UnicodeDecodeError):
        return "foreign"
    if not text.startswith(MARK):
        return "foreign"
    return "installed" if text == _TEXT else "outdated"


def install() -> bool:
    """Write the hook; return whether anything changed. Raises `PlaceError`."""
    found = state()
    if found == "foreign":
        raise PlaceError(
            f"{path()} is there and is not ours, so it was left alone. Move it away, then "
            "install the hook again."
        )
    if found == "installed":
        return False
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlaceError(
            f"The folder {path().parent} cannot be made: {error.strerror}. Make it, or point "
            "IPYTHONDIR at a folder that can be written."
        ) from error
    write_atomic(path(), _TEXT.encode())
    return True


def uninstall() -> bool:
    """Remove the hook if it is ours; return whether it was there. Raises `PlaceError`."""
    found = state()
    if found == "absent":
        return False
    if found == "foreign":
        raise PlaceError(f"{path()} is not ours, so it was left alone.")
    try:
        path().unlink()
    except OSError as error:
        raise PlaceError(
            f"{path()} cannot be removed: {error.strerror}. Remove it by hand."
        ) from error
    return True
