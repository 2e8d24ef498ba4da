"""``doctor``: what is not as it should be, and what to do about each.

It reads and changes nothing, but for the memories' index, which is derived and rebuilt when it is
behind. A finding is two sentences: what was found, what to do.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from ipymemory import kernel_hook, markdown, prompts, sessions
from ipymemory.commands import dream_diagnosis, memory_diagnosis, page_diagnosis
from ipymemory.commands.amounts import counted
from ipymemory.commands.memories import one
from ipymemory.commands.pages import JSON, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import IpymemoryError
from ipymemory.files import lost_link
from ipymemory.places import SessionFolder, config_folder
from ipymemory.transcript import Transcript

NEEDED = {
    "IPython": ((8, 12), "ipython"),
    "traitlets": ((5, 9), "traitlets"),
    "filelock": ((4, 3), "filelock"),
    "psutil": ((5, 9), "psutil"),
    "ipykernel": ((6, 25), "ipykernel"),
}
"""The least version of each package, as in pyproject.toml; ipykernel where it is there."""

_BAD = re.compile(r"\b(?:ERROR|CRITICAL)\b|^\w*(?:Error|Exception)\b|a cell was not recorded")
"""Lines of our logs that tell of a failure; a warning is shown by what it is about."""

LEFT_SECONDS = 3600
"""Age at which a temporary file is a leftover: a write takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be."""

    what: str
    to_do: str


def _doctor(place: Place, arguments: Arguments) -> Page:
    findings = [finding for check in _CHECKS for finding in check(place)]
    looked = (
        "home, records, permissions, transcripts, notes, memories, dreams, logs, leftovers, "
        "settings, hook, versions, page"
    )
    if not findings:
        return Page(f"Nothing is wrong. Looked at: {looked}.", [])
    lines = [f"{counted(len(findings), 'finding')}. Looked at: {looked}.", ""]
    lines += [f"- **{one(each.what)}** {one(each.to_do)}" for each in findings]
    return Page("\n".join(lines), [asdict(each) for each in findings])


def _finding(sentence: str) -> Finding:
    """Return a finding that reads as `sentence`, whose last part says what to do."""
    what, _, to_do = sentence.rpartition(". ")
    return Finding(f"{what}." if what else "", to_do)


def _home(place: Place) -> Iterator[Finding]:
    home = place.home
    there = next(p for p in (home, *home.parents) if p.exists())
    if (link := lost_link(home)) is not None:
        yield Finding(
            f"The home folder {home} cannot be there: {link} is a link to nothing.",
            "Make the folder that it leads to, or remove the link.",
        )
    elif not there.is_dir():
        yield Finding(
            f"{there} is a file, so the home folder {home} cannot be there.",
            "Move the file away, or point IPYMEMORY_HOME elsewhere.",
        )
    elif not os.access(there, os.W_OK | os.X_OK):
        yield Finding(
            f"The home folder {home} cannot be written.",
            f"Give yourself the right to write {there}, or point IPYMEMORY_HOME elsewhere.",
        )


def _records(place: Place) -> Iterator[Finding]:
    readers: list[Callable[[], object]] = [place.project.properties]
    readers += [partial(sessions.read, folder) for folder in _folders(place)]
    for read in readers:
        try:
            found = read()
        except IpymemoryError as error:
            what, _, to_do = str(error).partition(". ")
            yield Finding(f"{what}.", to_do or "Look at the file.")
            continue
        if isinstance(found, sessions.SessionRecord) and found.version > sessions.VERSION:
            yield Finding(
                f"Session {found.id} was written by a newer ipymemory and is only read here.",
                "Type: python -m pip install --upgrade ipymemory",
            )


def _memories(place: Place) -> Iterator[Finding]:
    return (Finding(*each) for each in memory_diagnosis.findings(place))


def _dreams(place: Place) -> Iterator[Finding]:
    try:
        yield from (Finding(*each) for each in dream_diagnosis.findings(place))
    except IpymemoryError as error:
        yield _finding(str(error))


def _page(place: Place) -> Iterator[Finding]:
    return (Finding(*each) for each in page_diagnosis.findings(place))


def _permissions(place: Place) -> Iterator[Finding]:
    if os.name != "posix" or not place.home.is_dir():
        return
    open_to_others = [
        path
        for path in (place.home, place.project.folder, *place.project.folder.rglob("*"))
        if path.exists() and not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    if open_to_others:
        yield Finding(
            f"Other users of this machine may read {_named(open_to_others)}.",
            f"Take it away from them: chmod -R go= {place.home}",
        )


def _transcripts(place: Place) -> Iterator[Finding]:
    for folder in _folders(place):
        transcript = Transcript(folder.transcript)
        try:
            transcript.follow()
        except (IpymemoryError, OSError) as error:
            yield Finding(
                f"The transcript {folder.transcript} cannot be read: {error}",
                "Look at the file; the session's notes stay as they are meanwhile.",
            )
            continue
        if transcript.torn:
            yield Finding(
                f"{counted(transcript.torn, 'line')} of {folder.transcript} cannot be read and "
                "are left out.",
                "A kernel that was killed, or a disk that was full, leaves a line half written; "
                "there is nothing to do.",
            )


def _notes(place: Place) -> Iterator[Finding]:
    wanted = markdown.skeleton(prompts.notes_template(config_folder(place.home), lambda _: None))
    for folder in _folders(place):
        try:
            text = folder.notes.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            yield Finding(
                f"The notes {folder.notes} cannot be read: {error}.",
                "Mend the file or move it away; new notes are written from the transcript.",
            )
            continue
        has = {header for header, _ in markdown.skeleton(text)}
        missing = [header.lstrip("# ") for header, _ in wanted if header not in has]
        if missing:
            yield Finding(
                f"The notes {folder.notes} lack what the template has: {', '.join(missing)}.",
                "If nobody took them out on purpose, move the file away; new notes are written "
                "from the transcript.",
            )


def _template(place: Place) -> Iterator[Finding]:
    yield from map(_finding, prompts.faults(config_folder(place.home)))


def _leftovers(place: Place) -> Iterator[Finding]:
    old = time.time() - LEFT_SECONDS
    left = [
        path
        for path in place.project.folder.rglob(".*")
        if not path.name.endswith("lock") and path.exists() and path.stat().st_mtime < old
    ]
    if left:
        yield Finding(
            f"Temporary files of writes that did not end lie about: {_named(left)}.",
            "They are never read; delete them.",
        )


def _logs(place: Place) -> Iterator[Finding]:
    if place.folder is None:
        return
    for path in (place.folder.log, place.folder.path / "kernel.log"):
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        bad = [each for each in lines if _BAD.search(each)]
        if bad:
            yield Finding(
                f"Something failed in this session; the last of it in {path} is: {bad[-1][:200]}",
                "If recording and notes go on, there is nothing to do; else report it with that "
                "file.",
            )


def _settings(place: Place) -> Iterator[Finding]:
    held = place.live.reason if place.live is not None else ""
    yield from (_finding(each) for each in place.problems if each not in held)
    if held:
        yield Finding("Nothing is recorded.", held)


def _hook(place: Place) -> Iterator[Finding]:
    found = kernel_hook.state()
    if found == "outdated":
        yield Finding(
            f"The kernel hook {kernel_hook.path()} is from another version.",
            "Type `ipymemory install-kernel-hook` in a terminal.",
        )
    elif found == "foreign":
        yield Finding(
            f"{kernel_hook.path()} has the kernel hook's name and is not ours.",
            "Move it away if the hook is wanted.",
        )


def _versions(place: Place) -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    for name, (least, package) in NEEDED.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            continue
        numbers = tuple(int(each) for each in re.findall(r"\d+", found)[:2])
        if numbers < least:
            wanted = ".".join(map(str, least))
            yield Finding(
                f"{name} {found} is older than {wanted}.",
                f'Type: python -m pip install "{package}>={wanted}"',
            )


def _folders(place: Place) -> list[SessionFolder]:
    return [folder for _, folder in sessions.every(place.project)]


def _named(paths: list[Path]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}"


_CHECKS = (
    _home,
    _records,
    _permissions,
    _transcripts,
    _notes,
    _memories,
    _dreams,
    _template,
    _logs,
    _leftovers,
    _settings,
    _hook,
    _versions,
    _page,
)

DOCTOR = Command("doctor", "look for what is wrong and say what to do", _doctor, (JSON,))
