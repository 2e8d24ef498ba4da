"""What every call of a model cost: one line each in the project's ``usage.jsonl``, and their sums.

Lines of several processes stand beside each other; one that was torn is passed over. The budget
of a day (behaviour L9) is asked of the same lines, so that all sessions of a project share it. It
stops what runs by itself, never a question of the person's.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ipymemory import lines, prices
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.gates import Gate
from ipymemory.models import Usage
from ipymemory.places import Project
from ipymemory.turns import utc_now

MOST_MONEY = 1e6
MOST_TOKENS = 10**12
"""One call costs less and has fewer; a line that says otherwise is broken."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The sum of some calls. `money` is in US dollars, of those calls whose model has a price."""

    calls: int = 0
    unpriced: int = 0
    """Calls of models without a price."""
    unpriced_tokens: int = 0
    """What those calls read and wrote, in tokens."""
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
            unpriced_tokens=self.unpriced_tokens
            + (usage.prompt + usage.output if money is None else 0),
            money=self.money + (money or 0.0),
            usage=self.usage + usage,
        )


class Ledger:
    """The calls of one project. One that is kept reads only what was written since."""

    def __init__(self, project: Project) -> None:
        self.path = project.folder / "usage.jsonl"
        self._day = ""
        self._offset = 0
        self._today = Spent()

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
            job = str(line.get("job", ""))
            sums[job] = _plus(sums.get(job, Spent()), line)
        return dict(sorted(sums.items()))

    def spent(self, since: str = "") -> Spent:
        """Return what all jobs together spent from `since` on."""
        total = Spent()
        for line in self._calls(since):
            total = _plus(total, line)
        return total

    def today(self, now: datetime | None = None) -> Spent:
        """Return what all jobs spent on the day of `now` (UTC); raises `IpymemoryError`."""
        day = _now(now).strftime("%Y-%m-%d")
        try:
            size = self.path.stat().st_size
        except OSError:
            size = 0
        if day != self._day or size < self._offset:
            self._day, self._offset, self._today = day, 0, Spent()
        told, self._offset = lines.read(self.path, self._offset)
        for line in told:
            if line.get("type") == "call" and str(line.get("time", "")).startswith(day):
                self._today = _plus(self._today, line)
        return self._today

    def left(self, settings: Settings, now: datetime | None = None) -> float:
        """Return what is left of the day's budget, in US dollars; raises `IpymemoryError`."""
        return max(0.0, float(settings.engine.budget_day) - self.today(now).money)

    def gate(self, settings: Settings, now: datetime | None = None) -> Gate:
        """Return whether something that runs by itself may call a model now. Never raises.

        Calls of a model without a price count in tokens, up to `Engine.budget_day_tokens`. What
        cannot be read or noted is not spent either: nobody could tell what it comes to.
        """
        money, most = float(settings.engine.budget_day), int(settings.engine.budget_day_tokens)
        try:
            spent = self.today(now)
        except IpymemoryError as error:
            return Gate(False, str(error).rstrip("."))
        if self.path.exists() and not os.access(self.path, os.W_OK):
            return Gate(False, f"{self.path} cannot be written, so that no call could be counted")
        if not money:
            return Gate(False, "Engine.budget_day is 0, so that no model is called by itself")
        if spent.money >= money:
            what = f"the day's budget of {usd(money)} is spent ({usd(spent.money)} today)"
            return Gate(False, f"{what}; {_again(now)}, or when Engine.budget_day is raised")
        if spent.unpriced_tokens >= most:
            what = f"{spent.unpriced_tokens:,} tokens went today to a model without a known price"
            more = f"or when Engine.budget_day_tokens, now {most:,}, is raised"
            return Gate(False, f"{what}; {_again(now)}, {more}")
        return Gate(True, f"{usd(money - spent.money)} of the day's {usd(money)} are left")

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


def usd(money: float) -> str:
    """Return `money` for a reader, to the cent, and finer where a cent would hide it."""
    return f"{money:.2f} USD" if money >= 0.1 or not money else f"{money:.4f} USD"


def _now(now: datetime | None) -> datetime:
    return datetime.now(UTC) if now is None else now.astimezone(UTC)


def _again(now: datetime | None) -> str:
    """Return when a new day begins, as a clause."""
    moment = _now(now)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    minutes = math.ceil((midnight - moment).total_seconds() / 60)
    length = f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
    return f"it opens again at 00:00 UTC, in {length}"


def _plus(spent: Spent, line: dict[str, Any]) -> Spent:
    """Return `spent` and one line more; a figure that cannot be one counts as none."""
    money, priced = line.get("usd"), None
    # Between the bounds: a line may hold NaN, infinity, and numbers that no float takes.
    if isinstance(money, int | float) and not isinstance(money, bool) and 0 <= money < MOST_MONEY:
        priced = float(money)
    return spent.plus(_usage(line.get("usage")), priced)


def _usage(value: object) -> Usage:
    told = value if isinstance(value, dict) else {}
    names = ("input", "output", "cache_read", "cache_write", "cache_write_hour")
    return Usage(*(_count(told.get(name)) for name in names))


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < MOST_TOKENS else 0
