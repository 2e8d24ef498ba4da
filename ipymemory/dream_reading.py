"""What a dream by a model may look at: the copy of the memories, the project, and transcripts.

Read, Grep and Glob go by the fence (behaviour E6, D8). Transcripts are no files to it: Grep alone
looks through them, where its path is ``transcripts`` or ``transcripts/SESSION``, and shows what
cells and texts say, never outputs. A pattern must hold three letters that stand together, and of
no transcript more than half its lines are shown in one dream, so that none is handed over whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ipymemory import reading
from ipymemory.errors import IpymemoryError, PlaceError, ToolError
from ipymemory.fence import Fence
from ipymemory.finding import GLOB, GREP, MATCH_CHARS, MOST_MATCHES, glob, grep
from ipymemory.history import Run
from ipymemory.models import ToolSpec
from ipymemory.patterns import compiled
from ipymemory.permissions import Allow, Deny
from ipymemory.places import Project, SessionFolder
from ipymemory.reading import LookTool, bounded, clipped
from ipymemory.redaction import mask
from ipymemory.tools import Tool
from ipymemory.transcript import Transcript
from ipymemory.turns import Ask, Entry, Prose, ToolCall, Turn

TRANSCRIPTS = "transcripts"
"""The path by which Grep looks through transcripts."""

MOST_SHOWN = 2000
"""Lines of transcripts that one dream is shown: ten answers of Grep."""

MOST_SESSIONS = 100
"""Transcripts, the newest, that are looked through."""

_LEAST_TEXT = 3
"""Letters that every match must hold: with fewer nearly every line has one."""

_MOST_BYTES = 64 * 1024 * 1024
_NARROWER = "Ask for words of the memory that you are looking at."

ALLOWED = ("Read", "Grep", "Glob")


@dataclass(slots=True)
class DreamFence:
    """The policy of a dream: three tools that look, and those of `own`, which judge themselves."""

    fence: Fence
    own: tuple[str, ...]

    def check(self, call: ToolCall) -> Allow | Deny:
        """Return the answer. Never raises."""
        # What a model sends need not be what its type says.
        given: object = call.input
        if not isinstance(given, Mapping):
            return Deny(f"{str(call.name)[:40]} takes an object with its inputs by name.")
        if call.name in self.own:
            return Allow(call)
        if call.name not in ALLOWED:
            return Deny(f"Allowed here: {', '.join((*ALLOWED, *self.own))}; nothing else.")
        path = given.get("path")
        if isinstance(path, str) and _of_transcripts(path):
            if call.name == "Grep":
                return Allow(call)
            return Deny(
                f"Transcripts are not read, only searched: Grep with the path {TRANSCRIPTS} and "
                "words to look for."
            )
        return self.fence.check(call)


def _of_transcripts(path: str) -> bool:
    return path.replace("\\", "/").strip("/").split("/")[0] == TRANSCRIPTS


def fence(project: Project, copy: Path, private: tuple[str, ...]) -> Fence:
    """Return the fence around the copy, where relative paths begin, and the project."""
    return Fence(copy, None, private, also=(project.root,), closed=(project.home,))


def tools(
    transcripts: Transcripts, around: Fence, level: str, stopped: Callable[[], bool]
) -> dict[str, Tool]:
    """Return the tools that look, by name."""

    def look() -> reading.Look:
        return reading.Look(around, level, stopped)

    searched = LookTool(GREP, grep, look)
    return {
        "Read": LookTool(reading.READ, reading.read, look),
        "Grep": SearchTool(searched, transcripts),
        "Glob": LookTool(GLOB, glob, look),
    }


@dataclass(frozen=True, slots=True)
class SearchTool:
    """Grep over files, and over transcripts where the path says so."""

    files: LookTool
    transcripts: Transcripts

    @property
    def spec(self) -> ToolSpec:
        """What an engine is told of the tool."""
        return replace(
            GREP,
            description=f"{GREP.description} With the path {TRANSCRIPTS}, or {TRANSCRIPTS}/SESSION"
            ", it searches what was written in this project's sessions, at most "
            f"{MOST_MATCHES} lines a call; a pattern must hold a word.",
        )

    def run(self, call: ToolCall, run: Run) -> str:
        """Return the lines that match; raises `ToolError`."""
        path = call.input.get("path")
        if not isinstance(path, str) or not _of_transcripts(path):
            return self.files.run(call, run)
        given = reading.checked(GREP, call.input)
        if "glob" in given:
            raise ToolError("Transcripts take no glob; name a session behind the path instead.")
        session = path.replace("\\", "/").strip("/").removeprefix(TRANSCRIPTS).strip("/")
        return mask(
            self.transcripts.search(given["pattern"], session, fold=bool(given.get("ignore_case")))
        )


@dataclass(slots=True)
class Transcripts:
    """The transcripts of a project as one dream may search them, and what it was shown."""

    project: Project
    stopped: Callable[[], bool] = lambda: False
    shown: int = 0
    _of: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    """The lines that were shown, by session: the entry's id and the line's number in it."""

    @property
    def looked_through(self) -> frozenset[str]:
        """The sessions that were searched so far."""
        return frozenset(self._of)

    def search(self, pattern: str, session: str = "", *, fold: bool = False) -> str:
        """Return the lines that match, each with its session and turn; raises `ToolError`."""
        wanted = compiled(pattern, fold=fold)
        if not wanted.literals or any(_letters(each) < _LEAST_TEXT for each in wanted.literals):
            raise ToolError(
                f"That pattern fits nearly everything, since its matches need not hold "
                f"{_LEAST_TEXT} letters that stand together. {_NARROWER}"
            )
        told: list[str] = []
        looked = found = 0
        withheld: list[str] = []
        for folder in self._folders(session):
            lines = list(self._lines(folder))
            fits = [each for each in lines if wanted.search(each[2]) >= 0]
            looked, found = looked + len(lines), found + len(fits)
            known = self._of.setdefault(folder.id, set())
            for id, number, text in fits:
                if len(told) > MOST_MATCHES:
                    break
                if (id, number) not in known:
                    if len(known) >= len(lines) // 2:
                        withheld.append(folder.id)
                        break
                    known.add((id, number))
                told.append(f"{folder.id} {id}: {clipped(text.strip(), MATCH_CHARS)}")
            if len(told) > MOST_MATCHES or self.stopped():
                break
        if looked >= 20 and found > looked // 2:
            raise ToolError(f"That pattern fits nearly everything. {_NARROWER}")
        if self.shown + len(told) > MOST_SHOWN:
            raise ToolError(
                f"{MOST_SHOWN:,} lines of transcripts were shown already, which is all that one "
                "dream may see. Go by those."
            )
        self.shown += len(told)
        ends = []
        if len(told) > MOST_MATCHES:
            ends.append(f"[More than {MOST_MATCHES}; ask for less at once.]")
        if withheld:
            ends.append(
                f"[More fits in {', '.join(withheld[:5])}, but no transcript is shown whole.]"
            )
        return bounded([*(told[:MOST_MATCHES] or ["No line matches."]), *ends])

    def _folders(self, session: str) -> list[SessionFolder]:
        """Return the sessions to look through, the newest first; raises `ToolError`."""
        try:
            names = sorted((each.name for each in self.project.sessions.iterdir()), reverse=True)
        except OSError:
            names = []
        if session:
            if session not in names:
                raise ToolError(f"There is no session {session[:40]!a}; leave it out.")
            names = [session]
        found = (self.project.sessions / each for each in names[:MOST_SESSIONS])
        return [SessionFolder(each) for each in found if each.is_dir() and not each.is_symlink()]

    def _lines(self, folder: SessionFolder) -> Iterator[tuple[str, int, str]]:
        """Yield what was written in a session, line by line, masked: no outputs, no errors."""
        try:
            link = folder.transcript.is_symlink()
            if link or folder.transcript.stat().st_size > _MOST_BYTES:
                return
            transcript = Transcript(folder.transcript)
            transcript.follow()
        except (IpymemoryError, PlaceError, OSError):
            return
        for each in transcript.entries:
            for number, line in enumerate(mask(_written(each)).split("\n")):
                if line.strip():
                    yield each.id, number, line


def _written(entry: Entry) -> str:
    if isinstance(entry, Turn | Prose):
        return entry.source
    return entry.question if isinstance(entry, Ask) else ""


def _letters(text: str) -> int:
    """Return how many letters or digits stand together in `text` at most."""
    best = run = 0
    for each in text:
        # One of a script without spaces is a syllable or a word.
        run = run + (1 if each.isascii() else 2) if each.isalnum() else 0
        best = max(best, run)
    return best


def level_of(sent: str, kept: str) -> str:
    """Return what of outputs may be shown of notebooks: the stricter of two settings."""
    order = ("none", "shapes", "no-tables", "all")
    return min((each for each in (sent, kept) if each in order), key=order.index, default="none")
