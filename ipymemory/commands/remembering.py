"""``remember``, ``forget`` and ``proposals``: what a person keeps, removes, or says yes to.

In mode ``confirm``, and where the folder is shared with another program, each of these is a
proposal first; ``proposals`` shows what waits.
"""

from __future__ import annotations

import re
from contextlib import suppress

from ipymemory import sessions
from ipymemory.commands.amounts import counted
from ipymemory.commands.memories import kind_of, one
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError, IpymemoryError, MemoryMissing
from ipymemory.history import SHORT, History, Run
from ipymemory.memory_files import KINDS, Draft, Memory, MemoryFolder, Proposal, Source, opened
from ipymemory.memory_files import proposals as waiting
from ipymemory.memory_files.subjects import subject_of
from ipymemory.memory_files.values import one_line

TITLE = 60

_KINDS = (
    ("reference", re.compile(r"https?://|\b(?:dashboard|wiki|runbook|documented in)\b", re.I)),
    ("user", re.compile(r"^\W*(?:I|I'm|I’m|my|me|call me)\b", re.I)),
    (
        "feedback",
        re.compile(
            r"\b(?:always|never|don['’]?t|do not|avoid|prefer|instead of|must|should)\b", re.I
        ),
    ),
)
"""What a sentence is taken for when nobody says it, the first that fits; else ``project``."""


_KIND_OF_SUBJECT = (
    ("feedback", ("do:", "do, ", "answer:")),
    ("user", ("prefer:", "user:")),
    ("reference", ("source of truth:",)),
    ("project", ("deadline:", "use for:", "convention:")),
)
"""A change of mind must be of the same kind as what it changes, however it is worded."""


def guessed(text: str) -> str:
    """Return the kind of memory that `text` most likely is."""
    subject = subject_of(text)
    for kind, starts in _KIND_OF_SUBJECT:
        if subject.startswith(starts):
            return kind
    return next((kind for kind, form in _KINDS if form.search(text)), "project")


def _remember(place: Place, arguments: Arguments) -> Page:
    text = " ".join(arguments["text"]).strip()
    if not text:
        raise CommandError(f"TEXT is missing. The right form is: {REMEMBER.usage(place.prefix)}")
    kind = kind_of(arguments["type"], REMEMBER, place.prefix) or guessed(text)
    session = place.folder.id if place.folder else ""
    source = Source(session, _notebook(place), (), text, "person")
    title = one_line(text, TITLE).rstrip("….!")
    draft = Draft(kind, title, "", text, source, subject_of(text))
    folder = opened(place.project, place.settings)
    before = {each.name: each for each in folder.scan()}
    run = _run(place, "remember", f"remember: {one_line(text, 80)}")
    done = folder.keep(draft, run, asked=True)
    run.close()
    if isinstance(done, Proposal):
        return _proposed(place, done)
    if not run.writes:
        return Page(
            f"That is remembered already, as `{one(done.name)}`.", {**done.as_dict(), "new": False}
        )
    _happened(place, "saved", done)
    told = f"Remembered as `{one(done.name)}` ({done.kind})"
    data = {**done.as_dict(), "new": True}
    if (old := before.get(done.name)) is not None:
        return Page(
            f"{told}, in place of what was kept of the same: “{one(old.description)}”. "
            f"{_undo(place, run)} brings that back.",
            {**data, "replaced": old.description},
        )
    return Page(f"{told}. {_undo(place, run)} takes it back.", data)


def _forget(place: Place, arguments: Arguments) -> Page:
    folder = opened(place.project, place.settings)
    name = " ".join(arguments["name"])
    try:
        found = folder.find(name)
    except MemoryMissing as error:
        return Page(str(error), None, exit=1)
    run = _run(place, "forget", f"forget: {one_line(found.name, 80)}")
    done = folder.drop(found.name, run)
    run.close()
    if isinstance(done, Proposal):
        return _proposed(place, done)
    _happened(place, "forgotten", done)
    return Page(
        f"Forgotten: `{one(done.name)}`. It will not be learned again by itself; "
        f"{_undo(place, run)} brings it back.",
        done.as_dict(),
    )


def _proposals(place: Place, arguments: Arguments) -> Page:
    store = place.project.proposals
    if arguments["accept"] and arguments["refuse"]:
        raise CommandError(
            f"Accept or refuse, not both. The right form is: {PROPOSALS.usage(place.prefix)}"
        )
    if arguments["refuse"]:
        chosen = waiting.find(store, arguments["refuse"])
        waiting.settle(store, chosen)
        return Page(f"Refused: {one(chosen.line)}.", chosen.as_dict())
    if arguments["accept"]:
        chosen = waiting.find(store, arguments["accept"])
        run = _run(place, "accept", f"accepted: {one_line(chosen.line, 80)}")
        memory = opened(place.project, place.settings).accept(chosen, run)
        run.close()
        _happened(place, "saved" if chosen.draft else "forgotten", memory)
        return Page(
            f"Done: {one(chosen.line)}. {_undo(place, run)} takes it back.", memory.as_dict()
        )
    every = waiting.waiting(store)
    if not every:
        return Page("Nothing waits for a yes.", [])
    lines = [f"{counted(len(every), 'proposal')}.", ""]
    lines += [
        f"- `{each.id}` {each.time[:10]} by {one(each.job)}: {one(each.line)}"
        f"{f', since {one(each.why)}' if each.why else ''}"
        for each in every
    ]
    lines += [
        "",
        f"`{place.prefix}proposals --accept ID` carries one out, `--refuse ID` drops it.",
    ]
    return Page("\n".join(lines), [each.as_dict() for each in every])


def index_follows(place: Place) -> None:
    """Bring the index of the memories in step after an undo; never in the undo's way."""
    from ipymemory.recall import Recall

    with suppress(IpymemoryError):
        folder: MemoryFolder = opened(place.project, place.settings)
        folder.rebuild_index()
        Recall(place.project, folder).sync()


def _run(place: Place, job: str, reason: str) -> Run:
    history = History(place.project.history, place.settings.memory.history_keep)
    return history.begin(job, "person", reason, (), place.folder.id if place.folder else "")


def _undo(place: Place, run: Run) -> str:
    """Return the command that takes `run` back, whatever the engines write in between."""
    return f"`{place.prefix}undo {run.id[:SHORT]}`"


def _proposed(place: Place, proposal: Proposal) -> Page:
    why = (
        "the folder is shared with another program"
        if place.settings.memory.folder == "claude"
        else "the mode is confirm"
    )
    return Page(
        f"It waits for a yes, since {why}: {one(proposal.line)}. "
        f"`{place.prefix}proposals --accept {proposal.id}` carries it out.",
        proposal.as_dict(),
    )


def _notebook(place: Place) -> str:
    if place.folder is None:
        return ""
    with suppress(IpymemoryError):
        return sessions.read(place.folder).notebook
    return ""


def _happened(place: Place, what: str, memory: Memory) -> None:
    """Tell the transcript, so that nobody learns from this cell what was just done by hand."""
    if place.live is not None:
        place.live.happened("memory", what=what, memory=memory.name, kind=memory.kind)


REMEMBER = Command(
    "remember",
    "keep a memory for this project's notebooks to come",
    _remember,
    (
        Argument("TEXT", "what to keep, in your words", words=True, required=True, free=True),
        Argument("--type", f"its type: {', '.join(KINDS)}; else told from the words", "T"),
        JSON,
    ),
)
FORGET = Command(
    "forget",
    "remove a memory, and do not learn it again",
    _forget,
    (Argument("NAME", "the memory, or how its name begins", words=True, required=True), JSON),
)
PROPOSALS = Command(
    "proposals",
    "show memories that wait for a yes, accept or refuse them",
    _proposals,
    (
        Argument("--accept", "carry out the one with this id", "ID"),
        Argument("--refuse", "drop the one with this id", "ID"),
        JSON,
    ),
)
