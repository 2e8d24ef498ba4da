"""``purge``: transcripts, notes and history gone from the disk, after showing what and asking.

Memories go only when they are named. A session that another kernel is recording stays.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ipymemory import dream_recovery, recall, sessions
from ipymemory.commands.amounts import counted, size
from ipymemory.commands.pages import Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError, PlaceError
from ipymemory.history import History
from ipymemory.places import Project, SessionFolder
from ipymemory.turns import new_id

_OLDER = re.compile(r"older than (\d{1,6}) days?")


@dataclass(frozen=True, slots=True)
class _Plan:
    """What would go. `everything`: all of the project's sessions, so its whole history too."""

    what: str
    folders: tuple[SessionFolder, ...]
    busy: int = 0
    everything: bool = False
    memories: bool = False


def _purge(place: Place, arguments: Arguments) -> Page:
    plan = _plan(place, arguments["what"], memories=arguments["memories"])
    if not any(each.is_dir() for each in (*_targets(place, plan), *_dreams(place, plan))):
        return Page(f"Nothing to remove: there is no {plan.what}.{_stays(plan)}", {"sessions": []})
    shown = _shown(place, plan)
    if not arguments["yes"]:
        answer = place.ask(f"{shown}\nThis cannot be undone. Remove it? [y/N] ")
        if answer is None:
            raise CommandError(
                f"{shown} Nobody can be asked here, so nothing was removed; say --yes to remove it."
            )
        if answer.strip().lower() not in ("y", "yes"):
            return Page("Nothing was removed.", {"sessions": []})
    with dream_recovery.at_rest(place.project, place.settings, kept=not plan.memories) as busy:
        if busy:
            raise CommandError(
                f"Nothing was removed. {busy} {place.prefix}dream --kill ends a dream that runs."
            )
        _remove(place, plan)
    for path in _dreams(place, plan):
        _take_away(path)
    return Page(
        f"Removed: {_counts(plan)}.{_stays(plan)}",
        {"sessions": [each.id for each in plan.folders], "memories": plan.memories},
    )


def _plan(place: Place, words: Sequence[str], *, memories: bool) -> _Plan:
    what = " ".join(words).lower()
    if what.endswith(" memories"):
        what, memories = re.sub(r"(?: and)? memories$", "", what), True
    if memories and what != "project":
        raise CommandError(
            "Memories belong to the project, not to a session; they go with "
            f"{place.prefix}purge project --memories"
        )
    if what == "this session":
        if place.live is None:
            raise CommandError(
                "There is no session here: that is for a notebook. Here it is "
                f"{place.prefix}purge older than 30 days, or {place.prefix}purge project"
            )
        own = (place.folder,) if place.folder and place.folder.path.is_dir() else ()
        return _Plan("transcript of this session", own)
    now = datetime.now(UTC)
    every = sessions.every(place.project)
    free = [f for record, f in every if f == place.folder or not sessions.owned(record, f, now)]
    busy = len(every) - len(free)
    if what == "project":
        return _Plan("session of this project", tuple(free), busy, not busy, memories)
    match = _OLDER.fullmatch(what)
    if not match:
        raise CommandError(
            f"It is not clear what to remove. The right form is: {place.prefix}purge this session, "
            f"{place.prefix}purge older than 30 days, or {place.prefix}purge project"
        )
    days = int(match[1])
    old = sessions.expired(place.project, days, now)
    return _Plan(f"session whose last turn is older than {counted(days, 'day')}", tuple(old))


def _targets(place: Place, plan: _Plan) -> list[Path]:
    """Return the folders that go as a whole."""
    project = place.project
    return [
        *(each.path for each in plan.folders),
        *((project.history, project.proposals) if plan.everything else ()),
        *((project.memory, *_about_memories(project)) if plan.memories else ()),
    ]


def _dreams(place: Place, plan: _Plan) -> list[Path]:
    """Return what tells of dreams, their journals among it: they go when no dream may be on."""
    if not (plan.everything or plan.memories):
        return []
    return [each for each in dream_recovery.places(place.project, place.settings) if each.is_dir()]


def _about_memories(project: Project) -> list[Path]:
    """Return the files that tell of memories and lie beside them; of what was forgotten, hashes."""
    names = ("index.sqlite", "listed.json", "forgotten.jsonl", "offered.jsonl")
    return [each for name in names if (each := project.folder / name).exists()]


def _shown(place: Place, plan: _Plan) -> str:
    dreams = _dreams(place, plan)
    total = size(sum(map(_bytes, (*_targets(place, plan), *dreams))))
    root = place.project.root
    also = (
        f" What is on record of dreams goes too: {', '.join(map(str, dreams))}." if dreams else ""
    )
    return f"This removes {_counts(plan)} of {root}, {total}.{also}{_stays(plan)}"


def _counts(plan: _Plan) -> str:
    count = counted(len(plan.folders), "session")
    memories = ", and all memories" if plan.memories else ""
    return f"{count} with transcripts, notes and undo history{memories}"


def _stays(plan: _Plan) -> str:
    busy = (
        f" {counted(plan.busy, 'session')} that another kernel holds will stay."
        if plan.busy
        else ""
    )
    return busy if plan.memories else f"{busy} Memories stay."


def _bytes(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(each.stat().st_size for each in files if each.is_file())


def _remove(place: Place, plan: _Plan) -> None:
    if place.live is not None and place.folder in plan.folders:
        place.live.let_go()
    if not plan.everything:
        History(place.project.history).forget([each.id for each in plan.folders])
    for path in _targets(place, plan):
        _take_away(path)
    if plan.memories:
        recall.forget_uses(place.project)


def _take_away(path: Path) -> None:
    """Remove a folder; under another name first, so that no half of it is met as the whole."""
    if path.is_symlink() or path.is_file():
        # What a link points to is not ours.
        path.unlink()
        return
    if not path.is_dir():
        return
    gone = path.with_name(f".gone-{new_id()}")
    try:
        path.replace(gone)
        shutil.rmtree(gone)
    except OSError as error:
        left = gone if gone.exists() else path
        raise PlaceError(
            f"Not all of it could be removed ({error.strerror or error}). Close what uses it, then "
            f"delete {left} by hand."
        ) from error


PURGE = Command(
    "purge",
    "remove transcripts, notes and history from the disk",
    _purge,
    (
        Argument(
            "WHAT",
            "what goes",
            "this session / older than N days / project",
            words=True,
            required=True,
        ),
        Argument("--memories", "with project: the memories too"),
        Argument("--yes", "do not ask"),
    ),
    details="It shows what would go and asks first. Memories stay unless they are named.",
)
