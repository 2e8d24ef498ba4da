"""Which process is meant, also after its number was given to another.

A process id alone is not enough: ids are used again, and after a restart of the machine all of
them are. So an identity holds the start time, the boot and the host too.
"""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

_SAME_START = 1.0
"""Seconds by which two readings of one start time may differ: the system counts in ticks from
the boot, and its idea of when that was may be corrected meanwhile."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process on one host since one boot; `started` is in seconds since the epoch."""

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
    return _identity(os.getpid())


def alive(identity: ProcessIdentity) -> bool:
    """Return whether that very process runs on this host. One of another host never does."""
    if (identity.host, identity.boot) != (_host(), _boot()):
        return False
    started = _started(identity.pid)
    return started is not None and abs(started - identity.started) <= _SAME_START


def local(identity: ProcessIdentity) -> bool:
    """Return whether the process was one of this host, so that `alive` can know."""
    return identity.host == _host()


def lower_priority() -> None:
    """Let every other process of the machine go first; where that is refused, nothing changes."""
    import psutil

    try:
        process = psutil.Process()
        process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS if os.name == "nt" else 10)
    except (psutil.Error, OSError):
        return


@cache
def _identity(pid: int) -> ProcessIdentity:
    return ProcessIdentity(pid, _started(pid) or 0.0, _boot(), _host())


def _started(pid: int) -> float | None:
    """Return when the process began, None where there is none or it is a zombie."""
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            dead = process.status() == psutil.STATUS_ZOMBIE
            return None if dead else float(process.create_time())
    except (psutil.Error, OSError):
        return None


@cache
def _boot() -> str:
    """Return what tells one boot of this machine from another."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        import psutil

        return f"{psutil.boot_time():.0f}"


@cache
def _host() -> str:
    return platform.node()
