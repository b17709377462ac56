"""Whole numbers that a source gives a name."""

from __future__ import annotations

import pytest

from dice.kernels.checks.trip_counts import constants
from dice.kernels.source.cuda_source import CudaSource


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#define N 4  // rounds\nconst int M = N * 2;", {"N": 4, "M": 8}),
        ("const int M = 1; void f() { const int M = 2; }", {}),
        ("const int M = N - 1;", {}),
    ],
)
def test_constants(text: str, found: dict[str, int]) -> None:
    assert constants(CudaSource(text)) == found


def test_products_of_products_end_where_no_type_holds_them() -> None:
    lines = [f"const long a{i} = {' * '.join([f'a{i - 1}'] * 9)};" for i in range(1, 12)]
    assert constants(CudaSource("const long a0 = 99; " + " ".join(lines))) == {"a0": 99, "a1": 99**9}
