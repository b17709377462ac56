"""The rate of stock's pool, as `benchmarks/against_stock.py` works it out from a sample."""

from __future__ import annotations

import pytest
from against_stock import pool_seconds, stock_rate


@pytest.mark.parametrize(
    ("walls", "workers", "seconds"),
    [([3.0, 1.0, 1.0, 1.0], 2, 3.0), ([1.0, 1.0, 3.0], 2, 4.0), ([2.0, 2.0], 5, 2.0), ([1.0, 2.0, 3.0], 1, 6.0)],
)
def test_a_pool_ends_with_its_last_worker(walls: list[float], workers: int, seconds: float) -> None:
    assert pool_seconds(walls, workers) == seconds


def test_the_rate_counts_start_and_end_of_the_pool() -> None:
    rate, low, high = stock_rate([60.0] * 18, n=300, workers=14)
    assert rate == low == high == pytest.approx(300 / 22)  # 22 rounds of 14, the last one not full
    rate, low, high = stock_rate([30.0, 60.0, 90.0] * 6, n=300, workers=14)
    assert low < rate < high < 14 / 0.75
    assert rate < 14  # below workers over mean wall, which would be a pool without an end
