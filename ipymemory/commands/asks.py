"""``ask-reset``: the assistant begins a new conversation.

A line in the transcript says so, and from there on the assistant is shown what came since. The
record itself stays whole: notes and memories go on from it.
"""

from __future__ import annotations

from ipymemory.commands.pages import Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.errors import CommandError


def _reset(place: Place, arguments: Arguments) -> Page:
    if place.live is None:
        raise CommandError(
            "Nobody is asked here. Type it in the notebook that has %load_ext ipymemory."
        )
    place.live.happened("ask_reset")
    return Page(
        "The assistant begins anew: it sees no cell, question or answer from before this. The "
        "record, the notes and the memories stay as they are."
    )


ASK_RESET = Command(
    "ask-reset",
    "have %%ask begin a new conversation",
    _reset,
    details="To leave out older cells of one question only: %%ask --last 5",
    needs_session=True,
)
