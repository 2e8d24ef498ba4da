"""A tool call in, `Allow` or `Deny` out; nothing is carried out here.

A policy resolves what the call names, links and case included, and hands on a call that names
the resolved path alone. The tool opens that path without following a link, so a file or folder
that is swapped between the check and the use is refused there (behaviour L6).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ipymemory.held import resolved
from ipymemory.turns import ToolCall

_LONGEST_PATH = 4096
"""Linux's PATH_MAX; every other system allows less."""


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may be carried out, as it stands in `call`."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Deny:
    """The call is refused; `message` tells the engine what is allowed."""

    message: str


class Policy(Protocol):
    """Decides about every tool call of a run."""

    def check(self, call: ToolCall) -> Allow | Deny:
        """Return the answer. Must not raise, whatever the call holds."""


class OnlyFile:
    """The policy that allows `tools` on exactly one file (behaviour S7)."""

    def __init__(self, path: Path, tools: tuple[str, ...] = ("Edit",)) -> None:
        """`path` is resolved now, but for its last part: a link there is never followed."""
        self.path = resolved(path)
        self._tools = tools

    def check(self, call: ToolCall) -> Allow | Deny:
        """Return `Allow` with the resolved path in the call, or `Deny`."""
        only = f"Only {' and '.join(self._tools)} on {self.path} is allowed here."
        if call.name not in self._tools:
            return Deny(f"{only} {_short(call.name)} was refused.")
        # What an engine sends need not be what its type says.
        given: object = call.input
        named = given.get("path") if isinstance(given, Mapping) else None
        if not isinstance(named, str) or not named or len(named) > _LONGEST_PATH:
            return Deny(f'{only} The call named no path that can be one; give it as "path".')
        try:
            wanted = resolved(self.path.parent / named)
            found = os.lstat(self.path)
            link = stat.S_ISLNK(found.st_mode)
            same = wanted == self.path or os.path.samestat(os.lstat(wanted), found)
        except FileNotFoundError:
            same, link = wanted == self.path, False
        except (OSError, ValueError):
            return Deny(f"{only} {_short(named)} is no path.")
        if link:
            return Deny(f"{self.path} is a link to somewhere else, so it may not be written.")
        if not same:
            return Deny(f"{only} {_short(named)} was refused.")
        return Allow(ToolCall(call.id, call.name, {**call.input, "path": str(self.path)}))


def _short(text: object) -> str:
    shown = "".join(each if each.isprintable() else "?" for each in str(text)[:200])
    return shown or "a tool without a name"
