"""What `benchmarks/soak.py` calls growth: rows written by hand."""

from __future__ import annotations

import pytest
from soak import COUNTS, SIZES, growth

HOUR = [dict.fromkeys((*COUNTS, *SIZES), 100.0) | {"at_s": 60.0 * minute} for minute in range(61)]


def with_values(name: str, *values: float) -> list[dict[str, float]]:
    """An hour whose `name` has these values, over and over; the last stands to the end."""
    padded = [*values, *[values[-1]] * len(HOUR)]
    return [row | {name: value} for row, value in zip(HOUR, padded, strict=False)]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("descriptors", [100.0 + minute // 20 for minute in range(61)]),
        ("processes", [100.0] * 40 + [101.0]),
        ("temporary_files", [100.0 + minute for minute in range(61)]),
        ("memory_mib", [100.0 + minute for minute in range(61)]),
        ("service_mib", [1000.0 + 1.5 * minute for minute in range(61)]),
    ],
)
def test_what_grows_is_found(name: str, values: list[float]) -> None:
    assert list(growth(with_values(name, *values))) == [name]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("descriptors", [90.0 + minute for minute in range(11)]),  # the warm-up
        ("descriptors", [100.0, 103.0] * 30),
        ("threads", [100.0] * 30 + [99.0]),
        ("memory_mib", [50.0 * minute for minute in range(10)] + [500.0]),
        ("memory_mib", [500.0, 530.0, 470.0] * 20),
        ("service_mib", [1000.0 + minute / 2 for minute in range(61)]),  # 2 %
    ],
)
def test_what_only_varies_is_not_growth(name: str, values: list[float]) -> None:
    assert growth(with_values(name, *values)) == {}


def test_a_short_run_has_no_growth() -> None:
    assert growth(HOUR[:1]) == {}
