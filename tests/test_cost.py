"""What calls cost: the prices, and the sums of the ledger."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ipymemory import prices
from ipymemory.cost import Ledger
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
