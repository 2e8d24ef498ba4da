"""What a dream that died left: found by the next to come, and finished or reverted (behaviour D3).

Of several projects that share a folder of memories any may be the next: the journal says in whose
history it goes on, so that one undo there takes the whole dream back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ipymemory import dream_journal, dream_state
from ipymemory.config import Settings
from ipymemory.dream_lock import OWNER, Busy, DreamLock
from ipymemory.history import History
from ipymemory.memory_files import MemoryFolder, opened
from ipymemory.places import Project


def lock(project: Project, folder: MemoryFolder) -> DreamLock:
    """Return the lock of the dreams of `folder`; making it touches nothing."""
    return DreamLock(folder.folder, place(project, folder))


def recover(project: Project, settings: Settings) -> bool:
    """Put right what a dream that died left; return whether there was anything.

    Also one of another project that shares the folder. Raises `IpymemoryError`.
    """
    folder = opened(project, settings)
    if not left_behind(project, folder) or not folder.folder.is_dir():
        return False
    if _whose(project, settings, folder)[1].closed:
        return False
    held = lock(project, folder).take()
    if isinstance(held, Busy):
        return False
    try:
        finish(project, settings, folder)
        if not folder.closed:
            folder.mend()
    finally:
        held.roll_back()
    return True


@contextmanager
def at_rest(project: Project, settings: Settings, *, kept: bool) -> Iterator[str]:
    """Let no dream begin while the block runs, and give it why one goes on, empty for none.

    Where the memories are `kept`, or somebody else's too, what a dream that died left is put
    right first, in every mode: its journal may go then. Raises `IpymemoryError`.
    """
    folder = opened(project, settings)
    if folder.refusal or not folder.folder.is_dir():
        yield ""
        return
    held = lock(project, folder).take()
    if isinstance(held, Busy):
        yield held.reason if held.running else ""
        return
    try:
        if kept or folder.shared:
            finish(project, settings, folder, any_mode=True)
        yield ""
    finally:
        held.roll_back()


def places(project: Project, settings: Settings) -> list[Path]:
    """Return the folders that tell of the project's dreams, whether they are there or not."""
    folder = opened(project, settings)
    own = project.folder / dream_state.FOLDER
    return [own, place(project, folder)] if folder.shared and not folder.refusal else [own]


def left_behind(project: Project, folder: MemoryFolder) -> bool:
    """Return whether a dream of `folder` runs or has died. Two `stat`."""
    records = place(project, folder)
    return dream_journal.waits(records) or (records / OWNER).exists()


def finish(
    project: Project, settings: Settings, folder: MemoryFolder, *, any_mode: bool = False
) -> None:
    """Finish what a dream that died had begun to put in place, in the history where it began.

    The caller holds the lock. `any_mode`: also where the mode lets no memory be written. Raises
    `IpymemoryError`.
    """
    records = place(project, folder)
    if dream_journal.waits(records):
        owner, own = _whose(project, settings, folder)
        if any_mode:
            own.mode = "auto"
        with own.held_still(confirmed=True):
            dream_journal.recover(records, History(owner.history, settings.memory.history_keep))


def _whose(
    project: Project, settings: Settings, folder: MemoryFolder
) -> tuple[Project, MemoryFolder]:
    """Return from which project a dream that died tidied `folder`, and the folder as seen there.

    That is `project` where the other one is gone, or keeps its memories elsewhere by now.
    """
    other = _known(project, dream_journal.whose(place(project, folder)))
    if other is not None:
        own = opened(other, settings)
        if own.folder == folder.folder:
            return other, own
    return project, folder


def _known(project: Project, key: str) -> Project | None:
    """Return the other project called `key` that is known in the same home."""
    if not key or key == project.key or Path(key).name != key:
        return None
    found = Project(Path(), key, project.folder.with_name(key))
    root = found.properties().get("root")
    return replace(found, root=Path(root)) if isinstance(root, str) else None


def place(project: Project, folder: MemoryFolder) -> Path:
    """Return the folder of the dreams of `folder` (`dream_state.place`)."""
    return dream_state.place(project, folder.folder, shared=folder.shared)
