"""``dream``: tidy the memories now, show what that would do, how it stands, or end it.

A page in a notebook is saved with it, so it holds counts; what the memories say is shown where
somebody asks for it (``--dry-run``, ``diff``), and in a terminal.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ipymemory.commands.amounts import counted
from ipymemory.commands.dream_plans import (
    ASK_SECONDS,
    ENGINES,
    context,
    dry_run,
    summary,
    waiting,
    waits,
)
from ipymemory.commands.memories import one
from ipymemory.commands.pages import JSON, Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError
from ipymemory.history import SHORT, History
from ipymemory.memory_files import opened
from ipymemory.stopping import Stopped

if TYPE_CHECKING:
    from ipymemory.dream_waiting import Plan

KILLED = "The dream was ended. The memories are as they were."

STOP_SECONDS = 1.5
"""How long an interrupt waits for the dream to end: it looks for that all the time (D6)."""

LOCKED = 3
"""Exit code where another dream holds the lock (interface.md)."""


def _dream(place: Place, arguments: Arguments) -> Page:
    known = ("now", "dry_run", "status", "kill", "yes", "no")
    chosen = [each for each in known if arguments[each]]
    if len(chosen) > 1 and set(chosen) != {"now", "yes"}:
        raise CommandError(f"One of them at a time. The right form is: {DREAM.usage(place.prefix)}")
    engine = _engine(place, arguments["engine"] or "", chosen)
    if arguments["kill"]:
        return _kill(place)
    if arguments["dry_run"]:
        return dry_run(place, engine)
    if arguments["no"] or (arguments["yes"] and not arguments["now"]):
        plan = waiting(place)
        if plan is not None:
            return _yes(place, plan) if arguments["yes"] else _no(place, plan)
        if arguments["no"] or place.live is not None:
            raise CommandError(
                f"No plan of a dream waits for an answer. {place.prefix}dream --dry-run shows what "
                "one would do now."
            )
    # On the command line it is one dream, gates off; in a notebook the word alone only tells.
    if arguments["status"] or (place.live is not None and not chosen):
        return _status(place)
    return _now(place, engine, confirmed=arguments["yes"])


def _engine(place: Place, wanted: str, chosen: Sequence[str]) -> str:
    """Return the engine that was named for this once, empty for none; raises `CommandError`."""
    if wanted not in ("", *ENGINES):
        raise CommandError(f"--engine takes {' or '.join(ENGINES)}, not {wanted!r}.")
    if wanted and {"status", "kill", "no"} & set(chosen):
        raise CommandError("--engine goes with a dream, or with --dry-run.")
    if wanted and place.live is not None:
        raise CommandError(
            f"--engine is for the command line. Here the project's own engine tidies; "
            f"{place.prefix}engine says and changes which that is."
        )
    return wanted


def _now(place: Place, engine: str, *, confirmed: bool = False) -> Page:
    folder = opened(place.project, place.settings)
    if folder.closed:
        raise CommandError(folder.closed)
    told, left = _dreamt(place, "dream", engine, confirmed=confirmed and folder.proposes)
    plan = waiting(place) if told.get("status") == "waiting" else None
    if plan is None:
        return _ended(place, told, left)
    page = waits(place, plan, str(told.get("note") or ""))
    if place.saved:
        # A view of the page has the buttons; an answer that is typed would be saved with the cell.
        return _live(place, page)
    answer = place.ask(f"{page.plain}\n\nDo this now? One undo takes all of it back. [y/N] ")
    if answer is None:
        return page
    return _yes(place, plan) if answer.strip().lower() in ("y", "yes") else _no(place, plan)


def _yes(place: Place, plan: Plan) -> Page:
    """Do what waits, exactly as it was shown."""
    return _ended(place, *_dreamt(place, "dream_accept", dream=plan.id))


def _no(place: Place, plan: Plan) -> Page:
    """Drop what waits."""
    from ipymemory import dream_shown, dream_state, dream_waiting

    records = dream_state.place_of(place.project, place.settings)
    told = dream_waiting.dismiss(records, plan.id)
    return _live(place, Page(dream_shown.ended(told), {"status": "dismissed"}))


def _dreamt(
    place: Place, name: str, engine: str = "", **arguments: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Dream, in the worker where there is one; return how it ended, and what was left as it is."""
    from ipymemory.jobs import dream

    if place.live is not None:
        return _watched(place, name, **arguments), ()
    with _shown(place) as show:
        made = context(place, engine, confirmed=bool(arguments.get("confirmed")))
        made.bus.subscribe(lambda event: show(event.details) if event.kind == dream.JOB else None)
        found = dream.dream(made, str(arguments.get("dream", "")))
    return found.as_dict(), found.left


def _watched(place: Place, name: str, **arguments: Any) -> dict[str, Any]:
    """Ask the worker for a dream and show how far it is; an interrupt ends the dream too.

    Raises `WorkerError`, `Stopped`.
    """
    from ipymemory import dream_state

    assert place.live is not None
    before = dream_state.state(place.project, place.settings).get("id")
    with _shown(place) as show:

        def look() -> None:
            state = dream_state.state(place.project, place.settings)
            # Until ours begins, what stands there is how the last one ended.
            known = state.get("status") != "running" and state.get("id") == before
            show({} if known else state)

        try:
            answer = place.live.ask(name, ASK_SECONDS, meanwhile=look, **arguments)
        except KeyboardInterrupt:
            _stop(place, before)
            raise Stopped(KILLED) from None
    return dict(answer) if isinstance(answer, Mapping) else {}


@contextlib.contextmanager
def _shown(place: Place) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Yield what shows the person how a dream stands, as long as the block runs."""
    from ipymemory import dream_line

    screen = place.screen(dream_line.line) if place.screen is not None else None
    if screen is None:
        yield lambda state: None
        return
    try:
        yield screen.show
    except KeyboardInterrupt:
        screen.ended(KILLED)
        raise
    except BaseException:
        screen.ended("")
        raise
    screen.done()


def _stop(place: Place, before: object) -> None:
    """Have the dream that was asked for end, also where it is about to begin."""
    from ipymemory import dream_state

    end = time.monotonic() + STOP_SECONDS
    while time.monotonic() < end:
        state = dream_state.state(place.project, place.settings)
        if state.get("status") == "running":
            dream_state.kill(place.project, place.settings)
        elif state.get("id") != before:
            return
        time.sleep(0.05)


def _ended(place: Place, told: Mapping[str, Any], left: Sequence[str] = ()) -> Page:
    page = _end(place, told, left)
    # One that was refused has not begun, so what stands there is another.
    return page if told.get("status") == "refused" else _live(place, page)


def _live(place: Place, page: Page) -> Page:
    """Return the page with how the dream stands, where it may be watched."""
    if place.live is None:
        return page
    from ipymemory import page_dream

    return replace(page, dream=page_dream.standing(place.project, place.settings))


def _end(place: Place, told: Mapping[str, Any], left: Sequence[str]) -> Page:
    status = told.get("status")
    if status == "locked":
        return Page(str(told.get("error")), dict(told), exit=LOCKED)
    if status == "killed":
        return Page(KILLED, dict(told))
    if status != "done" and not told.get("run"):
        why = one(told.get("error") or status or "the worker gave no answer")
        return Page(
            f"The memories were not tidied, and are as they were. {why}", dict(told), exit=2
        )
    lines = summary(told.get("counts") or {})
    if status != "done":
        lines = [
            f"The model's part was not done: {one(str(told.get('error') or status))} The built-in "
            "engine's part was, and the dream counts as due again.",
            "",
            *lines,
        ]
    if told.get("note"):
        lines += ["", one(told["note"])]
    if left:
        lines += ["", "Left as they are, since nobody could be asked:", ""]
        lines += [f"- {one(each)}" for each in left]
    run = str(told.get("run") or "")
    if (told.get("counts") or {}).get("asked"):
        lines += ["", f"`{place.prefix}proposals` shows the questions."]
    if not run:
        return Page("\n".join(lines), dict(told))
    lines += [
        "",
        f"`{place.prefix}diff {run[:SHORT]}` shows every change, `{place.prefix}undo "
        f"{run[:SHORT]}` takes all of it back.",
    ]
    markdown = "\n".join(lines)
    # What a terminal shows is saved nowhere.
    diff = "" if place.live is not None else History(place.project.history).diff(run)
    return Page(markdown, dict(told), text=f"{markdown}\n\n{diff}".rstrip().replace("**", ""))


def _status(place: Place) -> Page:
    from ipymemory import dream_state

    told = dream_state.state(place.project, place.settings)
    gate = ""
    if place.live is not None and place.live.worker == "running":
        gate = str(place.live.ask("dream_gate", 2.0) or "")
    data = {key: value for key, value in told.items() if key != "owner"} | {"gate": gate}
    lines = []
    if not told:
        lines.append("No dream has tidied the memories of this project yet.")
    elif told.get("status") == "waiting" and (plan := waiting(place)) is not None:
        return _live(place, waits(place, plan))
    elif told.get("status") == "running":
        lines.append(
            f"A dream is running since {_when(told, 'started')}: {one(told.get('phase', ''))}, "
            f"{one(told.get('step', ''))}, {counted(_number(told, 'files'), 'file')} written. "
            f"`{place.prefix}dream --kill` ends it."
        )
    else:
        died = told.get("status") == "dead"
        state = "died with its process" if died else one(told.get("status", ""))
        lines.append(f"The last dream began at {_when(told, 'started')} and ended: {state}.")
        if told.get("error"):
            lines.append(one(told["error"]))
        if died:
            lines.append("What it left is put right before the next one.")
        counts = told.get("counts")
        if isinstance(counts, Mapping) and counts:
            lines += ["", *summary(counts)]
    if gate:
        lines += ["", f"Gate: {one(gate)}."]
    lines += ["", f"`{place.prefix}dream --dry-run` shows what one would do now, `--now` does it."]
    return _live(place, Page("\n".join(lines), data))


def _kill(place: Place) -> Page:
    from ipymemory import dream_state

    if not dream_state.kill(place.project, place.settings):
        return Page("No dream is running, so there is none to end.", {"killed": False})
    return Page("The dream ends; the memories stay as they were.", {"killed": True})


def _when(told: Mapping[str, Any], key: str) -> str:
    return f"{one(str(told.get(key, '')))[:19].replace('T', ' ')} UTC"


def _number(told: Mapping[str, Any], key: str) -> int:
    value = told.get(key)
    return value if isinstance(value, int) else 0


DREAM = Command(
    "dream",
    "tidy the memories; one undo takes it back",
    _dream,
    (
        Argument("--now", "tidy now, whether it is due or not"),
        Argument("--dry-run", "show what that would do, and do nothing"),
        Argument("--status", "show how the last one stands, and when the next is due"),
        Argument("--kill", "end the one that runs; the memories stay as they were"),
        Argument("--yes", "do what waits for a yes, as it was shown; with --now do not ask"),
        Argument("--no", "drop what waits for a yes"),
        Argument("--engine", "on the command line: who tidies, extractive or anthropic", "NAME"),
        JSON,
    ),
    details=(
        "It runs by itself at rest, a day and five other sessions after the last one. The "
        "built-in engine removes nothing that only one memory says, and asks what contradicts; a "
        "model, where you agreed to one, also removes what a newer memory contradicts. One undo "
        "takes a dream back."
    ),
)
