"""``preview`` and ``compact``: what a model would be shown, and making that shorter."""

from __future__ import annotations

from ipymemory.commands.pages import JSON, Arguments, Command, Page
from ipymemory.commands.place import Live, Place
from ipymemory.errors import CommandError

ASK_SECONDS = 30.0
"""Rendering a long notebook takes a worker that has just begun some seconds."""

FULL = 16_000
"""Characters of a preview that a page shows; the rest is in the data of ``--json``."""


def _preview(place: Place, arguments: Arguments) -> Page:
    data = _live(place).ask("preview", ASK_SECONDS)
    parts = data["parts"]
    what = f"about {data['tokens']:,} tokens, as they stand here"
    more = "the memories recalled for it and the question itself come on top"
    out = [
        f"A question now would send {what}, to {data['host']}; {more}."
        if data["host"]
        else f"Nothing is sent, since no model is chosen. With one, a question would send {what}; "
        f"{more}.",
        "",
    ]
    text = "\n\n".join(
        f"--- {each['name']}, {each['tokens']:,} tokens ---\n{each['text']}" for each in parts
    )
    if len(text) > FULL:
        left = len(text) - FULL
        text = f"{text[:FULL]}\n[… {left:,} characters more; {place.prefix}preview --json …]"
    fence = "`" * max(4, _longest_run(text) + 1)
    return Page("\n".join([*out, f"{fence}text", text, fence]), data, text="\n".join([*out, text]))


def _longest_run(text: str) -> int:
    longest = run = 0
    for each in text:
        run = run + 1 if each == "`" else 0
        longest = max(longest, run)
    return longest


def _compact(place: Place, arguments: Arguments) -> Page:
    data = _live(place).ask("compact", ASK_SECONDS)
    if not data["done"]:
        return Page(
            f"Nothing was left out: of {data['before']:,} tokens all are among the newest turns, "
            "or the notes do not cover them yet.",
            data,
        )
    return Page(
        f"The conversation went from {data['before']:,} to {data['after']:,} tokens: the session "
        "notes stand for the older cells. The record itself is whole.",
        data,
    )


def _live(place: Place) -> Live:
    if place.live is None:
        raise CommandError(
            "There is no conversation here. Type it in the notebook that has %load_ext ipymemory."
        )
    return place.live


PREVIEW = Command(
    "preview",
    "show exactly what a question would send to a model now",
    _preview,
    (JSON,),
    needs_session=True,
)
COMPACT = Command(
    "compact",
    "let the notes stand for older cells that a model is shown",
    _compact,
    needs_session=True,
)
