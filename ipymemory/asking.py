"""``%%ask`` and ``%ask``: a question to the assistant, and its answer while it comes.

The magic runs on the main thread and waits there, so that the stop button and Ctrl-C reach it;
they end the ask, what had come stays, and the cell counts as interrupted. The answer is shown at
most `UPDATES` times a second, its first words at once.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from ipymemory.errors import CommandError
from ipymemory.stopping import Stop, Stopped
from ipymemory.streamed import Growing, Notebook, Screen, Terminal
from ipymemory.streaming import Stream

UPDATES = 10.0
"""Most updates of a display a second."""

WAIT_SECONDS = 0.05
"""How long to wait for a piece at once; whether the person wants to stop is seen in between."""

USAGE = "%ask [--quiet] [--last N] TEXT, or %%ask with the question in the cell"

STOPPED = "Stopped."

_ENDS = {
    "out_of_time": "The time for one ask was up; `%config Engine.ask_minutes` gives it more.",
    "out_of_rounds": "The tool calls of one ask were used up; `%config Engine.ask_rounds` "
    "gives it more.",
    "cancelled": STOPPED,
}
_STOPS = {
    "max_tokens": "The answer was cut at its longest; `%config Engine.answer_tokens` lets it be "
    "longer.",
    "refusal": "The model refused to go on.",
}


class Asker(Protocol):
    """The session that is recorded in this process."""

    def asking(
        self, question: str, last: int | None, cell: Asked
    ) -> AbstractContextManager[Stream]:
        """Put the question on record and to the worker; raises `IpymemoryError`."""

    def news(self, shown: str = "") -> str:
        """Return a sentence about what was learned and not told yet, or nothing; it is told then.

        What the text `shown` names needs none.
        """

    def aside(self) -> AbstractContextManager[None]:
        """Leave what is shown within the block out of the record of the cell that runs."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a question was asked."""

    cell_id: str | None = None
    execution_count: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What was typed. `last` is the number of turns the model is to see, None for all."""

    text: str
    quiet: bool = False
    last: int | None = None


def parse(line: str, cell: str | None = None) -> Question:
    """Return the question in the arguments of the magic and the cell below it.

    Raises `CommandError` with the right form.
    """
    rest, quiet, last = line.strip(), False, None
    while rest.startswith("--"):
        word, _, after = rest.partition(" ")
        name, joined, value = word.partition("=")
        after = after.strip()
        if name == "--":
            rest = after
            break
        if name == "--quiet" and not joined:
            quiet = True
        elif name == "--last":
            if not joined:
                value, _, after = after.partition(" ")
            if not value.isdecimal() or int(value) < 1:
                raise _wrong(f"--last takes a whole number of at least 1, not {value!r}.")
            last = int(value)
        else:
            raise _wrong(f"{word} is unknown here.")
        rest = after.strip()
    text = f"{rest}\n{cell}".strip() if cell is not None else rest
    if not text:
        raise _wrong("There is no question.")
    return Question(text, quiet, last)


def ask(shell: Any, asker: Asker, question: Question, stop: Stop) -> None:
    """Ask, and show the answer in the cell that runs; returns when it is over.

    Raises `IpymemoryError` when it could not be asked at all, and `Stopped` when the person
    stopped it: then what had come is shown.
    """
    parent = shell.get_parent() if hasattr(shell, "get_parent") else None
    cell_id = ((parent or {}).get("metadata") or {}).get("cellId")
    cell = Asked(cell_id if isinstance(cell_id, str) else None, shell.execution_count)
    screen: Screen = Terminal() if getattr(shell, "kernel", None) is None else Notebook()
    answer = Growing(question.quiet)
    stream: Stream | None = None
    try:
        with asker.asking(question.text, question.last, cell) as stream:
            follow(stream, screen, answer, stop)
            if not stream.ended:
                raise Stopped
    except KeyboardInterrupt:
        stop.wanted = True
        if stream is not None:
            for piece in stream.take(0.0):
                answer.add(piece)
    else:
        answer.note(ended(stream, answer))
    # What it was doing is over, and nothing of it is saved with the notebook.
    answer.doing = ""
    screen.close(answer)
    if stop.wanted:
        # Also where the answer was whole just then: the cells behind are not to run.
        raise Stopped(STOPPED)


def follow(stream: Stream, screen: Screen, answer: Growing, stop: Stop) -> None:
    """Show what comes until the answer has ended, or is to be stopped."""
    shown, changed = 0.0, False
    while not (stream.ended or stop.wanted):
        until_next = shown + 1 / UPDATES - time.monotonic()
        pieces = stream.take(max(0.0, until_next) if changed else WAIT_SECONDS)
        for piece in pieces:
            answer.add(piece)
        changed = changed or bool(pieces)
        there = answer.doing or not answer.empty
        if changed and time.monotonic() - shown >= 1 / UPDATES and there:
            screen.show(answer)
            shown, changed = time.monotonic(), False


def ended(stream: Stream, answer: Growing) -> str:
    """Return what is to be said below an answer that is over, nothing when it is whole."""
    value = stream.value if isinstance(stream.value, dict) else {}
    if stream.lost and isinstance(value.get("text"), str):
        answer.replace(value["text"])
    if stream.error or value.get("error"):
        why = str(stream.error or value["error"])
    else:
        why = _ENDS.get(str(value.get("status"))) or _STOPS.get(str(value.get("stop")), "")
    budget = str(value.get("budget") or "")
    return "\n\n".join(each for each in (why, f"*{budget}*" if budget else "") if each)


def _wrong(what: str) -> CommandError:
    return CommandError(f"{what} The right form is: {USAGE}")
