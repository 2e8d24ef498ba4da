"""What a dream would do: the page of a dry run, and of a plan that waits for a yes.

A page of a notebook is saved with it, so it holds counts of a plan that waits. Every change is
shown by the view of the lab extension, in a terminal, and to whoever asks for it (``--dry-run``).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ipymemory.commands.amounts import counted
from ipymemory.commands.memories import one
from ipymemory.commands.pages import Page
from ipymemory.commands.place import Place
from ipymemory.commands.runs import fence
from ipymemory.errors import CommandError

if TYPE_CHECKING:
    from ipymemory.dream_waiting import Plan
    from ipymemory.jobs.dream import Context

ENGINES = ("extractive", "anthropic")

ASK_SECONDS = 1860.0
"""Longest wait for a dream: above what one may take by `Dream.minutes` (30)."""

_SAID = (
    ("merged", "said again what another one says, and were merged into it with all their origins"),
    ("dated", "named a day as seen from when they were written; the date stands beside it now"),
    ("rewritten", "were put more briefly, in their own sentences"),
    ("removed", "went, contradicted by newer ones or resting on what is gone"),
    ("not_removed", "would go if somebody could be asked, and stayed"),
    ("marked", "name files or functions that are gone (marked), or there again (mark removed)"),
    ("relinked", "had links that lead to a merged memory now"),
    ("asked", "contradict a newer one, or may have to go: questions for you"),
    ("left_out", "were left alone: somebody changed them, or a program should not edit them"),
)


def context(place: Place, engine: str = "", *, confirmed: bool = False) -> Context:
    """Return what a dream in this process works with, a model's part where one may work.

    `engine` is one that was named for this once; raises `CommandError` where it may not work.
    """
    from ipymemory.dream_model import model_of
    from ipymemory.jobs.dream import Context

    model, note = model_of(place.project, place.settings, by_hand=True, wanted=engine)
    if engine == ENGINES[1] and model is None:
        raise CommandError(f"Nothing was tidied. {note}")
    asks = bool(sys.stdin and sys.stdin.isatty())
    return Context(
        place.project, place.settings, confirmed=confirmed, model=model, note=note, asks=asks
    )


def summary(counts: Mapping[str, Any]) -> list[str]:
    """Return what was done, in counts."""
    number = counts.get("memories", 0)
    if not number:
        return ["There is no memory yet, so there was nothing to tidy."]
    lines = [f"{counted(number, 'memory', 'memories')} looked through."]
    found = [f"- **{counts[key]:,}** {words}" for key, words in _SAID if counts.get(key)]
    return [*lines, "", *found] if found else [f"{lines[0]} There was nothing to tidy."]


def dry_run(place: Place, engine: str = "") -> Page:
    """Return what a dream would do now, every change of it; a plan that waits goes before.

    Raises `CommandError`.
    """
    from ipymemory.jobs import dream

    plan = waiting(place)
    if plan is not None:
        title = f"Nothing was changed. This waits for your yes since {plan.time[:19]} UTC:"
        lines = [title, "", *summary(plan.counts), "", _answers(place)]
        return _page(lines, _data(plan), plan.diff)
    if place.live is not None and place.live.worker == "running":
        # A model works in the worker alone, and may be part of it.
        answer = place.live.ask("dream_plan", ASK_SECONDS)
        data: dict[str, Any] = dict(answer) if isinstance(answer, Mapping) else {}
    else:
        data = dream.plan(context(place, engine)).as_plan()
    if data.get("status") != "planned":
        raise CommandError(str(data.get("error") or "The worker gave no answer."))
    counts = data.get("counts") or {}
    lines = ["Nothing was changed. This is what a dream would do now:", "", *summary(counts)]
    if data.get("error"):
        lines += ["", f"Without the model's part: {one(data['error'])}"]
    if data.get("note"):
        lines += ["", one(data["note"])]
    return _page(lines, data, str(data.get("diff") or ""))


def waiting(place: Place) -> Plan | None:
    """Return the plan that waits for a yes, None where none does."""
    from ipymemory import dream_state, dream_waiting
    from ipymemory.errors import IpymemoryError

    try:
        return dream_waiting.read(dream_state.place_of(place.project, place.settings))
    except IpymemoryError:
        return None


def waits(place: Place, plan: Plan, note: str = "") -> Page:
    """Return the page of a plan that waits: in a notebook counts, in a terminal every change."""
    lines = ["Nothing was changed. A dream would do this, and waits for your yes:", ""]
    lines += [*summary(plan.counts), *(["", one(note)] if note else []), "", _answers(place)]
    return _page(lines, _data(plan), "" if place.saved else plan.diff)


def _answers(place: Place) -> str:
    dream = f"{place.prefix}dream"
    return (
        f"`{dream} --yes` does exactly this, `{dream} --no` drops it, `{dream} --dry-run` shows "
        "every change."
    )


def _data(plan: Plan) -> dict[str, Any]:
    return {"status": "waiting", "id": plan.id, "counts": dict(plan.counts)}


def _page(lines: list[str], data: dict[str, Any], diff: str) -> Page:
    text = "\n".join(lines)
    if not diff:
        return Page(text, data)
    marks = fence(diff)
    return Page(
        f"{text}\n\n{marks}diff\n{diff.rstrip()}\n{marks}",
        data,
        text=f"{text}\n\n{diff.rstrip()}".replace("**", ""),
    )
