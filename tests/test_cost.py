"""What calls cost: the prices, and the sums of the ledger."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import hundred_turns
import pytest
from traitlets.config import Config

from ipymemory import lines, prices
from ipymemory.config import Settings
from ipymemory.cost import Ledger
from ipymemory.gates import Gate
from ipymemory.models import Usage
from ipymemory.places import Project


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Project(tmp_path, "p-1", tmp_path / "p-1"))


@pytest.mark.spec("L9")
@pytest.mark.parametrize(
    ("model", "usage", "money"),
    [
        ("claude-haiku-5-5", Usage(input=1_000, output=1_000), 0.0006),
        ("claude-haiku-5-5", Usage(100_000, 0, 1), 0.05 + 0.00000005),  # past 100,000: fivefold
        ("claude-haiku-5-5", Usage(99_999, 0, 1), 0.00999991),
        ("claude-opus-4-5-20251101", Usage(output=1_000_000), 25.0),
        ("claude-sonnet-5-5", Usage(0, 0, 1_000_000, 1_000_000, 1_000_000), 0.10 + 2.5 + 4),
        ("qwen3", Usage(1, 1), None),
    ],
)
def test_prices(model: str, usage: Usage, money: float | None) -> None:
    assert prices.cost(model, usage) == (None if money is None else pytest.approx(money))


@pytest.mark.spec("L9")
def test_calls_are_summed_by_job_and_no_money_is_invented(ledger: Ledger) -> None:
    ledger.record("ask", "h", "claude-haiku-5-5", Usage(1_000, 100, 3_000), "s")
    ledger.record("ask", "h", "claude-haiku-5-5", Usage(0, 100, 4_000), "s")
    ledger.record("notes", "h", "qwen3", Usage(500, 50), "s")
    jobs = ledger.by_job()
    assert list(jobs) == ["ask", "notes"]
    assert jobs["ask"].cached == 7_000 / 8_000
    assert (jobs["notes"].money, jobs["notes"].unpriced) == (0.0, 1)
    total = ledger.spent()
    assert (total.calls, total.unpriced, total.usage.prompt) == (3, 1, 8_500)
    assert total.money == pytest.approx(jobs["ask"].money) and total.money > 0
    assert ledger.spent("9999").calls == 0


def test_torn_and_foreign_lines_are_passed_over_and_many_may_write(ledger: Ledger) -> None:
    assert ledger.spent().calls == 0
    with ThreadPoolExecutor(8) as pool:
        for _ in range(40):
            pool.submit(ledger.record, "ask", "h", "qwen3", Usage(1, 1))
    with ledger.path.open("a") as file:
        file.write('{"type":"call","usage":{"input":"x"}}\n{"type":"call","usd":')
    found = ledger.spent()
    assert found.calls == 41 and found.usage.input == 40


def _settings(**engine: float) -> Settings:
    return Settings(Config({"Engine": engine}))


def _call(ledger: Ledger, time: str, usd: object, **usage: object) -> None:
    lines.append(
        ledger.path, {"type": "call", "time": time, "job": "j", "usd": usd, "usage": usage}
    )


EVENING = datetime(2026, 12, 2, 18, 30, tzinfo=UTC)


@pytest.mark.spec("L9")
def test_the_budget_of_a_day_closes_the_gate_and_the_next_day_opens_it(ledger: Ledger) -> None:
    settings = _settings()
    assert ledger.gate(settings, EVENING) == (Gate(True, "0.50 USD of the day's 0.50 USD are left"))
    _call(ledger, "2026-12-01T23:59:59.999Z", 40.0)
    _call(ledger, "2026-12-02T00:00:00.000Z", 0.3)
    assert ledger.left(settings, EVENING) == pytest.approx(0.2)
    assert ledger.gate(settings, EVENING).open
    # Another process of the project spends too.
    _call(Ledger(Project(ledger.path, "", ledger.path.parent)), "2026-12-02T18:00:00.000Z", 0.22)
    closed = ledger.gate(settings, EVENING)
    assert closed == Gate(
        False,
        "the day's budget of 0.50 USD is spent (0.52 USD today); it opens again at 00:00 UTC, in "
        "6 h, or when Engine.budget_day is raised",
    )
    assert ledger.left(settings, EVENING) == 0.0
    assert "in 1 min," in ledger.gate(settings, EVENING.replace(hour=23, minute=59)).reason
    assert ledger.gate(_settings(budget_day=1.0), EVENING).open
    assert ledger.gate(settings, EVENING + timedelta(hours=6)).open
    assert "is 0" in ledger.gate(_settings(budget_day=0.0), EVENING + timedelta(hours=6)).reason


@pytest.mark.spec("L9")
def test_a_model_without_a_price_is_bounded_in_tokens_and_no_money_is_invented(
    ledger: Ledger,
) -> None:
    settings = _settings(budget_day_tokens=1_000)
    _call(ledger, "2026-12-02T10:00:00.000Z", None, input=600, cache_read=200, output=199)
    assert ledger.gate(settings, EVENING).open
    _call(ledger, "2026-12-02T10:00:00.000Z", None, output=1)
    gate = ledger.gate(settings, EVENING)
    assert not gate.open and "1,000 tokens went today" in gate.reason
    assert "Engine.budget_day_tokens" in gate.reason and "00:00 UTC" in gate.reason
    assert ledger.today(EVENING).money == 0.0
    # Tokens of a model with a price are counted in money alone.
    assert ledger.today(EVENING).unpriced_tokens == 1_000
    _call(ledger, "2026-12-02T10:00:00.000Z", 0.1, input=9_000)
    assert ledger.today(EVENING).unpriced_tokens == 1_000


@pytest.mark.spec("L9")
@pytest.mark.parametrize("usd", ["NaN", "Infinity", "-40", "1e400", "true", '"9"', "9" * 400])
def test_no_broken_line_opens_or_closes_the_gate(ledger: Ledger, usd: str) -> None:
    _call(ledger, "2026-12-02T00:00:00.000Z", 0.4)
    with ledger.path.open("a") as file:
        for usage in ("[]", "7", '{"input":-5,"output":true,"cache_read":1e3}'):
            line = f'"time":"2026-12-02","usd":{usd},"usage":{usage}'
            file.write(f'{{"type":"call",{line}}}\n')
    assert ledger.left(_settings(), EVENING) == pytest.approx(0.1)
    assert ledger.gate(_settings(), EVENING).open
    _call(ledger, "2026-12-02T00:00:00.000Z", 0.2)
    assert not ledger.gate(_settings(), EVENING).open


@pytest.mark.spec("L9")
def test_what_cannot_be_counted_is_not_spent(ledger: Ledger) -> None:
    ledger.path.mkdir(parents=True)
    gate = ledger.gate(_settings(), EVENING)
    assert not gate.open and "cannot be read" in gate.reason


def test_a_ledger_that_was_purged_begins_anew(ledger: Ledger) -> None:
    for _ in range(3):
        _call(ledger, "2026-12-02T00:00:00.000Z", 0.4)
    assert not ledger.gate(_settings(), EVENING).open
    ledger.path.unlink()
    assert ledger.gate(_settings(), EVENING).open
    _call(ledger, "2026-12-02T00:00:00.000Z", 0.4)
    assert ledger.left(_settings(), EVENING) == pytest.approx(0.1)


@pytest.mark.slow
@pytest.mark.spec("L9")
def test_a_hundred_turns_cost_at_most_a_fifth_of_a_loop_that_resends_everything() -> None:
    figures = hundred_turns.measure()
    assert figures.notes == 4
    assert figures.least >= 0.95
    assert 0 < figures.money <= figures.plain / 5
