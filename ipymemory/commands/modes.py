"""``mode``, ``pause`` and ``resume-recording``: what may go on by itself."""

from __future__ import annotations

from ipymemory.commands.calling import nearest
from ipymemory.commands.pages import Argument, Arguments, Command, Page
from ipymemory.commands.place import Live, Place
from ipymemory.errors import CommandError

MODES = {
    "auto": "memories and documents are written by themselves",
    "confirm": "every write of a memory or document waits as a proposal",
    "read": "memories are recalled and none is written",
    "off": "no memory is read or written and no engine is called for one",
}


def _mode(place: Place, arguments: Arguments) -> Page:
    wanted = arguments["mode"]
    if wanted is None:
        return Page(_told(place.mode), {"mode": place.mode})
    if wanted not in MODES:
        near = nearest(wanted, MODES)
        raise CommandError(
            f"There is no mode {wanted!r}{f'; did you mean {near}?' if near else '.'} "
            f"The right form is: {MODE.usage(place.prefix)}"
        )
    if wanted != place.mode:
        before = place.mode
        place.project.set_property("mode", wanted)
        if place.live is not None:
            place.live.happened("mode", mode=wanted, before=before)
    return Page(_told(wanted), {"mode": wanted})


def _told(mode: str) -> str:
    return (
        f"Mode **{mode}** in this project: {MODES[mode]}. Recording and session notes go on in "
        "every mode."
    )


def _pause(place: Place, arguments: Arguments) -> Page:
    live = _live(place)
    live.pause()
    return Page(
        "Recording is paused: no cell is kept and the notes stay as they are, until "
        f"{place.prefix}resume-recording or the kernel's next start."
    )


def _resume(place: Place, arguments: Arguments) -> Page:
    live = _live(place)
    live.resume()
    if live.reason:
        return Page(f"Recording is still off. {live.reason}")
    return Page("Recording is on again, from the next cell on.")


def _live(place: Place) -> Live:
    if place.live is None:
        raise CommandError(
            "Nothing is being recorded here. Type it in the notebook that has %load_ext ipymemory."
        )
    return place.live


MODE = Command(
    "mode",
    "show or choose what may happen by itself in this project",
    _mode,
    (Argument("MODE", "the mode to choose", "off / read / confirm / auto"),),
    details="\n".join(f"{name:<8} {what}" for name, what in MODES.items()),
)
PAUSE = Command("pause", "record nothing until resume-recording", _pause, needs_session=True)
RESUME = Command("resume-recording", "record again after pause", _resume, needs_session=True)
