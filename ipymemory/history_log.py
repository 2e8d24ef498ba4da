"""The log of the undo history: its lines, and what follows from them.

Lines are only appended; what a run wrote, whether it is undone and which run's version of a file
stands are worked out from all of them. Only `HistoryLog.trim` writes the log anew, without the
oldest runs, under the lock of the history.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ipymemory import lines
from ipymemory.errors import HistoryError, PlaceError
from ipymemory.files import write_atomic
from ipymemory.held import resolved
from ipymemory.images import Images, digest

VERSION = 1


@dataclass(frozen=True, slots=True)
class Write:
    """What one run did to one file, from its first write to its last; hashes, None for no file."""

    path: Path
    before: str | None
    after: str | None
    size: int = 0
    """Bytes the run left in it."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run on record."""

    id: str
    time: str
    job: str
    engine: str
    reason: str
    turns: tuple[str, ...] = ()
    session: str = ""
    undoes: str = ""
    """The run that this one took back."""
    planned: int = 0
    """Files an undo set out to put back: one that was killed half-way counts as not done."""
    writes: tuple[Write, ...] = ()
    undone_by: str = ""
    """The undo that took this run back and stands."""

    def as_line(self) -> dict[str, Any]:
        """Return the fields that stand in the run's own line."""
        return {
            "run": self.id,
            "time": self.time,
            "job": self.job,
            "engine": self.engine,
            "reason": self.reason,
            "session": self.session,
            "turns": list(self.turns),
            "undoes": self.undoes,
            "planned": self.planned,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the run with its writes as JSON values."""
        writes = [
            {"path": str(each.path), "before": each.before, "after": each.after, "size": each.size}
            for each in self.writes
        ]
        return {**self.as_line(), "writes": writes, "undone_by": self.undone_by}


@dataclass(slots=True)
class _Event:
    """One write to one file. `done` when a line says that it came to pass."""

    run: str
    key: str
    before: str | None
    after: str | None
    size: int
    done: bool = False


@dataclass(slots=True)
class _State:
    """What the lines read so far say."""

    runs: dict[str, RunEntry] = field(default_factory=dict)
    events: list[_Event] = field(default_factory=list)
    left_out: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    known: list[RunEntry] | None = None
    """What `HistoryLog.runs` made of the lines, until there are more."""
    newer: bool = False
    offset: int = 0
    file: int = 0


class HistoryLog:
    """The log in `folder`, read as far as it has grown each time it is asked."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "log.jsonl"
        self._base = Path(os.path.realpath(folder.parent))
        self._state = _State()

    def append(self, value: Mapping[str, Any], *, sync: bool = False) -> None:
        """Append one line; raises `PlaceError`, and `HistoryError` in a newer version's log."""
        if self._read().newer:
            raise HistoryError(
                f"{self.path} was written by a newer ipymemory, so this one only reads it. "
                "Update ipymemory to go on."
            )
        lines.append(self.path, value, sync=sync)

    def key(self, path: Path) -> str:
        """Return how the log names `path`: relative to the project's folder where it lies in it."""
        real = resolved(path)
        try:
            return real.relative_to(self._base).as_posix()
        except ValueError:
            return real.as_posix()

    def runs(self) -> list[RunEntry]:
        """Return every run that is on record, oldest first, with its writes."""
        state = self._read()
        if state.known is not None:
            return state.known
        writes: dict[str, dict[str, Write]] = {}
        for event in self._landed(state):
            found = writes.setdefault(event.run, {})
            first = found.get(event.key)
            path = self._base / event.key if first is None else first.path
            before = event.before if first is None else first.before
            found[event.key] = Write(path, before, event.after, event.size)
        # Later undos come later in the log: going backwards, an undo's own fate is known first.
        undone: dict[str, str] = {}
        for each in reversed(state.runs.values()):
            complete = len(writes.get(each.id, ())) >= each.planned
            if each.undoes and complete and each.id not in undone:
                undone.setdefault(each.undoes, each.id)
        known = [
            replace(
                each,
                writes=tuple(writes.get(each.id, {}).values()),
                undone_by=undone.get(each.id, ""),
            )
            for each in state.runs.values()
        ]
        last = {event.key: event for event in state.events}
        if all(event.done for event in last.values()):
            # Else the file itself tells whether its last write was made, and is asked each time.
            state.known = known
        return known

    def left_out(self, job: str, session: str) -> frozenset[str]:
        """Return the turns of undone runs that are no longer kept."""
        return self._read().left_out.get((job, session), frozenset())

    def standing(self, path: Path) -> str:
        """Return the id of the run whose version of `path` stands, or nothing."""
        state = self._read()
        key = self.key(path)
        found = ""
        before: dict[str, str] = {}
        for event in self._landed(state):
            if event.key != key:
                continue
            before.setdefault(event.run, found)
            run = state.runs[event.run]
            found = before.get(run.undoes, "") if run.undoes else run.id
        return found

    def trim(self, job: str, keep: int, images: Images) -> None:
        """Make room for one more run of `job`: drop the oldest, and images that nothing names then.

        Up to a tenth more than `keep` stand meanwhile, so that the log is not written anew for
        every run. Call it under the lock. Raises `PlaceError`; the log is as it was then.
        """
        runs = self.runs()
        own = [each for each in runs if each.job == job and not each.undoes]
        if len(own) < keep + keep // 10:
            return
        drop = {each.id for each in own[: len(own) + 1 - keep]}
        for each in runs:
            if each.undoes in drop:
                drop.add(each.id)
        left_out = {name: set(turns) for name, turns in self._state.left_out.items()}
        for each in runs:
            if each.id in drop and each.undone_by and each.turns:
                left_out.setdefault((each.job, each.session), set()).update(each.turns)
        self._rewrite(drop, left_out, images)

    def forget(self, sessions: Set[str], images: Images) -> None:
        """Drop every run of `sessions`, their undone turns, and images that nothing names then.

        Call it under the lock. Raises `PlaceError`; the log is as it was then.
        """
        drop = {each.id for each in self.runs() if each.session in sessions}
        left_out = {
            name: set(turns)
            for name, turns in self._state.left_out.items()
            if name[1] not in sessions
        }
        self._rewrite(drop, left_out, images)

    def _rewrite(
        self, drop: Set[str], left_out: Mapping[tuple[str, str], Set[str]], images: Images
    ) -> None:
        """Write the log anew without the runs in `drop`, and with just these turns left out."""
        values, _ = lines.read(self.path)
        kept = [
            value
            for value in values
            if value.get("run") not in drop and value.get("type") != "left_out"
        ]
        kept += [
            {"type": "left_out", "job": name, "session": session, "turns": sorted(turns)}
            for (name, session), turns in left_out.items()
        ]
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in kept)
        write_atomic(self.path, text.encode("utf-8", "backslashreplace"))
        named = {value.get(side) for value in kept for side in ("before", "after")}
        images.keep_only({name for name in named if isinstance(name, str)})

    def _read(self) -> _State:
        """Read what is new. A log that was written anew is read from its beginning."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._state = _State()
            return self._state
        except OSError as error:
            raise PlaceError(f"{self.path} cannot be read: {error.strerror or error}.") from error
        state = self._state
        if found.st_ino != state.file or found.st_size < state.offset:
            state = self._state = _State(file=found.st_ino)
        if found.st_size > state.offset:
            values, state.offset = lines.read(self.path, state.offset)
            state.known = None
            for value in values:
                try:
                    self._take(state, value)
                except (KeyError, TypeError, ValueError, AttributeError):
                    continue  # a damaged line must not hide the others
        return state

    def _take(self, state: _State, value: dict[str, Any]) -> None:
        match value.get("type"):
            case "run":
                state.newer = state.newer or int(value["version"]) > VERSION
                state.runs[str(value["run"])] = RunEntry(
                    str(value["run"]),
                    str(value["time"]),
                    str(value["job"]),
                    str(value["engine"]),
                    str(value["reason"]),
                    tuple(str(each) for each in value["turns"]),
                    str(value["session"]),
                    str(value.get("undoes", "")),
                    int(value.get("planned", 0)),
                )
            case "write":
                if value["run"] in state.runs:
                    state.events.append(
                        _Event(
                            value["run"],
                            value["path"],
                            value["before"],
                            value["after"],
                            int(value["size"]),
                        )
                    )
            case "wrote":
                for event in reversed(state.events):
                    if (event.run, event.key) == (value["run"], value["path"]):
                        event.done = True
                        break
            case "left_out":
                name = (str(value["job"]), str(value["session"]))
                turns = frozenset(str(each) for each in value["turns"])
                state.left_out[name] = state.left_out.get(name, frozenset()) | turns

    def _landed(self, state: _State) -> list[_Event]:
        """Return the writes that came to pass.

        After a kill between the log and the file's replacement only the hashes tell: the next
        write's before-image, or the file itself. Where a person wrote meanwhile nothing tells;
        then the write is taken for made, and an undo asks.
        """
        following: dict[str, str | None] = {}
        found: list[_Event] = []
        for event in reversed(state.events):
            made = event.done
            if not made:
                if event.key in following:
                    now = following[event.key]
                else:
                    try:
                        now = digest((self._base / event.key).read_bytes())
                    except OSError:
                        now = None
                made = now == event.after or now != event.before
            following[event.key] = event.before
            if made:
                found.append(event)
        found.reverse()
        return found
