"""``extract``: look through what was said for memories now, gates or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipymemory import sessions
from ipymemory.commands.amounts import counted
from ipymemory.commands.memories import one
from ipymemory.commands.pages import JSON, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError
from ipymemory.history import SHORT

ASK_SECONDS = 240.0
"""Longest wait for a run: above what one may take by `Extraction.minutes` (3)."""


def _extract(place: Place, arguments: Arguments) -> Page:
    if place.mode in ("read", "off"):
        raise CommandError(
            f"No memory is written in mode {place.mode}, so nothing was looked through. "
            f"{place.prefix}mode auto (or confirm) allows it."
        )
    if place.live is not None:
        found = place.live.ask("extract", ASK_SECONDS)
    else:
        folder = sessions.latest_folder(place.project)
        if folder is None:
            return Page("There is no session of this project yet, so there is nothing new.", {})
        from ipymemory.project import extract

        found = extract(folder, place.project, place.settings)
    told: dict[str, Any] = dict(found) if isinstance(found, Mapping) else {}
    return Page("\n".join(_lines(told, place.prefix)), told)


def _lines(found: Mapping[str, Any], prefix: str) -> list[str]:
    """Return what came of a look; every sentence in it is somebody's text, made harmless."""
    runs = [found] + ([found["by_model"]] if found.get("by_model") else [])
    saved, proposed, refused = (
        [each for run in runs for each in run.get(key) or []]
        for key in ("saved", "proposed", "refused")
    )
    lines: list[str] = []
    if saved:
        lines.append(f"{counted(len(saved), 'memory', 'memories')} saved:")
        lines += ["", *(f"- **{one(each['name'])}** ({one(each['type'])}): {one(each['words'])}"
                        for each in saved)]  # fmt: skip
        back = [f"`{prefix}undo {str(each['run'])[:SHORT]}`" for each in runs if each.get("wrote")]
        if back:
            lines += [
                "",
                f"{' and '.join(back)} {'takes it' if len(back) == 1 else 'take it'} back.",
            ]
    if proposed:
        lines += [""] if lines else []
        lines.append(f"{counted(len(proposed), 'proposal')} to look at with `{prefix}proposals`:")
        lines += ["", *(f"- {one(each)}" for each in proposed)]
    if refused:
        lines += [""] if lines else []
        lines += ["Not kept:", "", *(f"- {one(each)}" for each in refused)]
    lines = lines or ["Nothing new to remember was said since the last look."]
    if (last := runs[-1]).get("status") != "done":
        lines += [
            "",
            f"The model was no help this time: {one(last.get('error') or last['status'])}",
        ]
    return lines


EXTRACT = Command(
    "extract",
    "look now for what is worth remembering in what was said",
    _extract,
    (JSON,),
    details=(
        "It looks at markdown cells, comments and questions, never at outputs. Only what was typed "
        "in this session is saved; what came with the file is proposed. A model, where one may "
        "work, chooses too, and keeps your words."
    ),
)
