"""Many files changed as one: a kill at any moment leaves all of them before or all after.

What is to be written is on the disk, with what stands there now, before the first file changes:
that is the journal. Then file after file is put in place through the undo history. Whoever comes
after a process that died in between finds the journal and finishes it. Files that belong together
are a group: where somebody changed one of them meanwhile, the whole group is left out, or taken
back. Within a group what is kept is written before what it stands for goes, so that at no moment
is anything said nowhere.

The caller holds the folder's lock, so that only an editor can be in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipymemory.errors import FormatError, HistoryError, PlaceError
from ipymemory.files import read_json, sync_folder, write_json
from ipymemory.held import Held
from ipymemory.history import History, Run, RunEntry

NAME = "journal.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Change:
    """One file from `before` to `after`; None is no file. The same bytes only guard a group."""

    path: Path
    before: bytes | None
    after: bytes | None


Group = tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """What came of it: the groups that are in place, and those somebody was in the way of."""

    done: tuple[Group, ...] = ()
    left_out: tuple[Group, ...] = ()
    cancelled: bool = False
    """It was stopped, and nothing is in place."""


def place(
    records: Path,
    run: Run,
    groups: Sequence[Group],
    cancelled: Callable[[], bool] = lambda: False,
    placed: Callable[[Group], None] = lambda group: None,
    project: str = "",
) -> Placed:
    """Put `groups` in place under `run`; all of them, or none where it is stopped or fails.

    `project` is the key of the project in whose history `run` is: several may share a folder.
    Raises `HistoryError`, `PlaceError`; then the files are as they were.
    """
    due: list[Group] = []
    out: list[Group] = []
    for each in groups:
        (due if all(now(change.path) == change.before for change in each) else out).append(each)
    if not due or cancelled():
        return Placed((), tuple(out), bool(due))
    journal = records / NAME
    _write(journal, run, due, project)
    done: list[Group] = []
    try:
        for each in due:
            if cancelled():
                _take_back(run, done)
                _remove(journal)
                return Placed((), tuple(out), True)
            if _put(run, each):
                done.append(each)
                placed(each)
            else:
                out.append(each)
    except BaseException:
        _take_back(run, due)
        _remove(journal)
        raise
    _remove(journal)
    return Placed(tuple(done), tuple(out))


def waits(records: Path) -> bool:
    """Return whether a process died while it put files in place. One `stat`."""
    return (records / NAME).exists()


def look(records: Path) -> None:
    """Raise `FormatError` or `PlaceError` for a journal that cannot be read, as `recover` would."""
    _read(records / NAME)


def whose(records: Path) -> str:
    """Return in which project's history the journal that waits goes on; empty for none.

    Raises `PlaceError`.
    """
    try:
        told = (read_json(records / NAME) or {}).get("project")
    except FormatError:
        return ""
    return told if isinstance(told, str) else ""


def recover(records: Path, history: History) -> str:
    """Finish what a process that died began; return its run's id, empty where there was nothing.

    A group that somebody changed since is taken back as far as it is what the run left, and so
    is nothing that a person has undone. The caller holds the dream's lock and the folder's.
    Raises `HistoryError`, `PlaceError`.
    """
    journal = records / NAME
    try:
        entry, groups = _read(journal)
    except FormatError:
        # It is written whole before the first file changes, so somebody edited it: every write
        # that was made stands in the history, where it can be undone.
        _remove(journal)
        return ""
    if entry is None:
        return ""
    if not history.is_undone(entry.id):
        run = history.resume(entry)
        for each in groups:
            states = [now(change.path) for change in each]
            known = all(
                state in (change.before, change.after)
                for state, change in zip(states, each, strict=True)
            )
            if not (known and _put(run, each)):
                _take_back(run, [each])
        run.close()
    _remove(journal)
    return entry.id


def now(path: Path) -> bytes | None:
    """Return what the file holds, None for no file; raises `PlaceError`."""
    if not path.parent.is_dir():
        return None
    with Held(path) as held:
        return held.read()


def _put(run: Run, group: Group) -> bool:
    """Put one group in place; take it back, and return False, where somebody was in the way."""
    for each in group:
        state = now(each.path)
        if state == each.after:
            continue
        try:
            if state != each.before:
                raise HistoryError("It has changed.")
            run.write(each.path, each.after, seen=each.before)
        except HistoryError:
            # Either an editor was in the way, or nothing can be logged: only the first goes on.
            _take_back(run, [group])
            if now(each.path) == each.before:
                raise
            return False
    return True


def _take_back(run: Run, groups: Sequence[Group]) -> None:
    """Put back what stands as the run left it, the last first."""
    for change in (each for group in reversed(groups) for each in reversed(group)):
        if change.before != change.after and now(change.path) == change.after:
            run.write(change.path, change.before, seen=change.after)


def _write(journal: Path, run: Run, groups: Sequence[Group], project: str = "") -> None:
    write_json(
        journal,
        {
            "version": VERSION,
            "project": project,
            "run": run.entry.as_line(),
            "groups": as_values(groups),
        },
    )


def as_values(groups: Sequence[Group]) -> list[Any]:
    """Return `groups` as JSON values, every byte of their files in them."""
    return [
        [
            {"path": str(each.path), "before": _text(each.before), "after": _text(each.after)}
            for each in group
        ]
        for group in groups
    ]


def from_values(value: Any) -> tuple[Group, ...]:
    """Return the groups that `as_values` made; raises `KeyError`, `TypeError`, `AttributeError`."""
    return tuple(tuple(_changes(each)) for each in value)


def _read(journal: Path) -> tuple[RunEntry | None, list[Group]]:
    """Return the run and the groups; raises `FormatError`, `PlaceError`."""
    told = read_json(journal)
    if told is None:
        return None, []
    if told.get("version") != VERSION:
        raise PlaceError(
            f"{journal} was written by another version of ipymemory, whose dream was cut short. "
            "Update ipymemory; it finishes then."
        )
    try:
        run, groups = told["run"], list(from_values(told["groups"]))
        entry = RunEntry(
            run["run"],
            run["time"],
            run["job"],
            run["engine"],
            run["reason"],
            tuple(run["turns"]),
            run["session"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{journal} is not what was written there.") from error
    return entry, groups


def _changes(group: Any) -> Iterator[Change]:
    for each in group:
        before, after = each["before"], each["after"]
        yield Change(
            Path(each["path"]),
            None if before is None else before.encode("utf-8", "surrogateescape"),
            None if after is None else after.encode("utf-8", "surrogateescape"),
        )


def _text(data: bytes | None) -> str | None:
    # Line endings and all: a text of JSON gives back every byte that UTF-8 can hold.
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _remove(journal: Path) -> None:
    try:
        journal.unlink(missing_ok=True)
    except OSError as error:
        raise PlaceError(f"{journal} cannot be removed: {error.strerror or error}.") from error
    sync_folder(journal.parent)
