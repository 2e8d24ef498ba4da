"""Changed config files, taken over without a restart.

IPython reads its files once, when it starts. After a turn, and when a command is called, the
times of those files are compared; a file that changed is read again and what it says
differently is set. After a turn that happens on a thread of its own, which sleeps otherwise.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ipymemory.background import in_background
from ipymemory.config import Settings
from ipymemory.config_reading import read_config_files
from ipymemory.config_section import values_of
from ipymemory.setting_classes import CLASSES

log = logging.getLogger(__name__)

EVERY_SECONDS = 2.0
"""Least time between two looks after a turn: a Run All must not cost a look for every cell."""

_Stamp = tuple[int, int] | None
Left = tuple[tuple[_Stamp, ...] | None, dict[str, dict[str, Any]]]
"""What held when a watch ended: our settings, and the state of the files that said so; None when
those are to be read again."""


class ConfigWatch:
    """Watches `files`, the least important first, and keeps `settings` as they say.

    `config` is what held when the kernel started and `flags` what its command line set, which
    goes above every file. `refused` holds a sentence for each file and value that is not taken,
    `refused` at first.
    """

    def __init__(
        self,
        files: Sequence[Path],
        settings: Settings,
        config: Mapping[str, Any],
        flags: Mapping[str, Any],
        refused: tuple[str, ...] = (),
    ) -> None:
        self.refused = refused
        self._files = tuple(files)
        self._settings = settings
        self._flags = flags
        self._before = self._own(config)
        self._stamps = self._look()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._next = 0.0

    def nudge(self) -> None:
        """Look soon, on the watch's own thread. Costs a microsecond; does nothing after a fork."""
        now = time.monotonic()
        if now < self._next or not self._files or self._closed or os.getpid() != self._pid:
            return
        self._next = now + EVERY_SECONDS
        if self._thread is None:
            self._thread = in_background(self._run, "ipymemory-config")
        self._wake.set()

    def check(self) -> None:
        """Look now; take over what changed."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            stamps = self._look()
            if stamps == self._stamps:
                return
            self._stamps = stamps
            config, failed = read_config_files(self._files)
            now = self._own(config)
            if not failed:
                # What a file said that fails now still holds.
                self._settings.take(now, self._before)
                self._before = now
            self.refused = self._settings.judge(self._whole(now), self._files, failed)

    def close(self) -> None:
        """End the thread; returns at once."""
        self._closed = True
        self._wake.set()

    @property
    def left(self) -> Left:
        """What the next watch of the same shell begins with: a reload forgets no privacy."""
        config = self._whole(self._before)
        if self._settings.held:
            return None, config
        return self._stamps, {**config, "Privacy": self._settings.as_dict()["Privacy"]}

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closed:
                return
            try:
                self.check()
            except Exception:
                log.exception("the config files could not be looked at")

    def _look(self) -> tuple[_Stamp, ...]:
        return stamps(self._files)

    def _own(self, config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return our sections of `config` without what the command line set."""
        own: dict[str, dict[str, Any]] = {}
        for each in CLASSES:
            flags = values_of(self._flags, each.__name__)
            values = values_of(config, each.__name__)
            own[each.__name__] = {k: v for k, v in values.items() if k not in flags}
        return own

    def _whole(self, own: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return what files say together with what the command line set."""
        return {
            each.__name__: {
                **values_of(own, each.__name__),
                **values_of(self._flags, each.__name__),
            }
            for each in CLASSES
        }


def stamps(files: Sequence[Path]) -> tuple[_Stamp, ...]:
    """Return what tells whether one of `files` changed."""
    return tuple(map(_stamp, files))


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
