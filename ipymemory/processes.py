"""Which process is meant, also after its number was given to another.

A process id alone is not enough: ids are used again, and after a restart of the machine all of
them are. So an identity holds the start time, the boot and the host too. Linux tells them
without a clock that somebody may set; elsewhere psutil is asked, which costs an import.
"""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ipymemory import descriptors

_SAME_START = 1.0
"""Seconds by which two readings of one start time may differ."""

_SAME_BOOT = 300.0
"""Seconds by which two readings of one boot may differ where it is a time of day: Windows and
macOS work it out from the clock, which is corrected meanwhile."""

_LONGEST_LINE = 4096

_LINUX = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process on one host since one boot.

    `started` is in seconds, on Linux since the boot, elsewhere since the epoch; it is only ever
    compared. `boot` is a name that the system gave the boot, or its time in seconds.
    """

    pid: int
    started: float
    boot: str
    host: str

    def as_dict(self) -> dict[str, Any]:
        """Return the identity as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: object) -> ProcessIdentity | None:
        """Return the identity that `as_dict` described, or None for anything else."""
        if not isinstance(value, dict):
            return None
        try:
            return cls(
                int(value["pid"]), float(value["started"]), str(value["boot"]), str(value["host"])
            )
        except (KeyError, TypeError, ValueError):
            return None


def own() -> ProcessIdentity:
    """Return the identity of this process, also in a child that was forked."""
    return _own(os.getpid())


def identity(pid: int) -> ProcessIdentity | None:
    """Return the identity of the process that has the number `pid` now, or None."""
    started = _started(pid)
    return None if started is None else ProcessIdentity(pid, started, _boot(), _host())


def session_leader() -> ProcessIdentity | None:
    """Return the shell of the terminal that this process was typed into.

    None without a terminal, where the process leads its session itself, and on Windows.
    """
    if os.name == "nt" or not os.isatty(0):
        return None
    leader = os.getsid(0)
    return identity(leader) if leader != os.getpid() else None


def alive(identity: ProcessIdentity) -> bool:
    """Return whether that very process runs on this host. One of another host never does."""
    if identity.host != _host() or not _same_boot(identity.boot, _boot()):
        return False
    started = _started(identity.pid)
    return started is not None and abs(started - identity.started) <= _SAME_START


def variable(pid: int, name: str) -> str | None:
    """Return what the process `pid` had in its environment when it began; None if not known."""
    if _LINUX.exists():
        try:
            found = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return None
        start = os.fsencode(f"{name}=")
        return next((os.fsdecode(e[len(start) :]) for e in found if e.startswith(start)), None)
    import psutil

    try:
        value: str | None = psutil.Process(pid).environ().get(name)
        return value
    except (psutil.Error, OSError, ValueError):
        return None


def local(identity: ProcessIdentity) -> bool:
    """Return whether the process was one of this host, so that `alive` can know."""
    return identity.host == _host()


def lower_priority() -> None:
    """Let every other process of the machine go first; where that is refused, nothing changes."""
    if os.name != "nt":
        with contextlib.suppress(OSError):
            os.nice(10)
        return
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)


@cache
def _own(pid: int) -> ProcessIdentity:
    return identity(pid) or ProcessIdentity(pid, 0.0, _boot(), _host())


def _started(pid: int) -> float | None:
    """Return when the process began, None where there is none or it is a zombie."""
    if _LINUX.exists():
        return _started_on_linux(pid)
    import psutil

    try:
        process = psutil.Process(pid)
        dead = process.status() == psutil.STATUS_ZOMBIE
        return None if dead else float(process.create_time())
    except (psutil.Error, OSError):
        return None


def _started_on_linux(pid: int) -> float | None:
    """Return the seconds from the boot to the start, by proc(5): ``stat``, fields 3 and 22."""
    try:
        # Without a file object, which costs several times as much.
        descriptor = descriptors.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            line = descriptors.read(descriptor, _LONGEST_LINE)
        finally:
            descriptors.close(descriptor)
        # The name of the program comes second, in brackets, and may itself hold brackets.
        state, *rest = line[line.rindex(b")") + 2 :].split()
        return None if state in (b"Z", b"X") else int(rest[18]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


@cache
def _boot() -> str:
    """Return what tells one boot of this machine from another."""
    try:
        return _LINUX.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        import psutil

        return f"{psutil.boot_time():.0f}"


def _same_boot(one: str, other: str) -> bool:
    try:
        return abs(float(one) - float(other)) <= _SAME_BOOT
    except ValueError:
        return one == other


@cache
def _host() -> str:
    return platform.node()
