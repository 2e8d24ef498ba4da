"""``cost``: what calls of models cost in this project, today and in all."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

from ipymemory.commands.amounts import counted
from ipymemory.commands.memories import one
from ipymemory.commands.pages import JSON, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.cost import Ledger, Spent


def _cost(place: Place, arguments: Arguments) -> Page:
    ledger = Ledger(place.project)
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    total, day, jobs = ledger.spent(), ledger.spent(today), ledger.by_job()
    budget = ledger.gate(place.settings)
    data = {
        "budget": {
            "day": float(place.settings.engine.budget_day),
            "day_tokens": int(place.settings.engine.budget_day_tokens),
            "open": budget.open,
            "reason": budget.reason,
        },
        "today": _as_dict(day),
        "total": _as_dict(total),
        "jobs": {name: _as_dict(each) for name, each in jobs.items()},
    }
    if not total.calls:
        return Page("No model was called in this project yet, so nothing was spent.", data)
    out = [
        f"**Cost** in {one(place.project.root.name or str(place.project.root))}",
        "",
        f"- **Today** (UTC) {_told(day)}",
        f"- **In all** {_told(total)}",
        f"- **Budget** of what runs by itself: {budget.reason}",
        *(f"- {name}: {_told(each)}" for name, each in jobs.items()),
    ]
    return Page("\n".join(out), data)


def _told(spent: Spent) -> str:
    usage = spent.usage
    money = f"{spent.money:.4f} USD, " if spent.calls > spent.unpriced else ""
    told = (
        f"{money}{counted(spent.calls, 'call')}, {usage.prompt:,} tokens in "
        f"({spent.cached:.0%} from the cache), {usage.output:,} out"
    )
    if spent.unpriced:
        told += f"; {counted(spent.unpriced, 'call')} to a model without a known price"
    return told


def _as_dict(spent: Spent) -> dict[str, object]:
    return asdict(spent) | {"cached": spent.cached}


COST = Command("cost", "what calls of models cost in this project", _cost, (JSON,))
