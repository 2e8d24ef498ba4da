"""What every call of a model cost: one line each in the project's ``usage.jsonl``, and their sums.

Lines of several processes stand beside each other; one that was torn is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ipymemory import lines, prices
from ipymemory.errors import IpymemoryError
from ipymemory.models import Usage
from ipymemory.places import Project
from ipymemory.turns import utc_now


@dataclass(frozen=True, slots=True)
class Spent:
    """The sum of some calls. `money` is in US dollars, of those calls whose model has a price."""

    calls: int = 0
    unpriced: int = 0
    """Calls of models without a price."""
    money: float = 0.0
    usage: Usage = field(default_factory=Usage)

    @property
    def cached(self) -> float:
        """The share of the prompts that was read from a cache, from 0 to 1."""
        return self.usage.cache_read / self.usage.prompt if self.usage.prompt else 0.0

    def plus(self, usage: Usage, money: float | None) -> Spent:
        """Return the sum with one call more."""
        return replace(
            self,
            calls=self.calls + 1,
            unpriced=self.unpriced + (money is None),
            money=self.money + (money or 0.0),
            usage=self.usage + usage,
        )


class Ledger:
    """The calls of one project."""

    def __init__(self, project: Project) -> None:
        self.path = project.folder / "usage.jsonl"

    def record(self, job: str, host: str, model: str, usage: Usage, session: str = "") -> None:
        """Note one call; raises `IpymemoryError` when it cannot be noted."""
        line = {"type": "call", "time": utc_now(), "job": job, "host": host, "model": model}
        money = prices.cost(model, usage)
        told = {"usage": asdict(usage), "usd": money, "session": session}
        lines.append(self.path, {**line, **told})

    def by_job(self, since: str = "") -> dict[str, Spent]:
        """Return what each job spent from the time `since` on (ISO 8601, UTC), jobs by name."""
        sums: dict[str, Spent] = {}
        for line in self._calls(since):
            usage = _usage(line.get("usage"))
            money = line.get("usd")
            priced = float(money) if isinstance(money, int | float) else None
            job = str(line.get("job", ""))
            sums[job] = sums.get(job, Spent()).plus(usage, priced)
        return dict(sorted(sums.items()))

    def spent(self, since: str = "") -> Spent:
        """Return what all jobs together spent from `since` on."""
        total = Spent()
        for each in self.by_job(since).values():
            total = Spent(
                total.calls + each.calls,
                total.unpriced + each.unpriced,
                total.money + each.money,
                total.usage + each.usage,
            )
        return total

    def _calls(self, since: str) -> Iterable[dict[str, Any]]:
        try:
            told, _ = lines.read(self.path, 0)
        except (IpymemoryError, FileNotFoundError):
            return []
        return [
            each
            for each in told
            if each.get("type") == "call" and str(each.get("time", "")) >= since
        ]


def _usage(value: object) -> Usage:
    told = value if isinstance(value, dict) else {}
    names = ("input", "output", "cache_read", "cache_write", "cache_write_hour")
    return Usage(*(each if isinstance(each := told.get(name), int) else 0 for name in names))
