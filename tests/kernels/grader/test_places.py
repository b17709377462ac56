"""Other values for the constants of a state that a candidate need not have."""

from __future__ import annotations

from dice.kernels.grader.places import another_value


def test_another_value_is_clearly_larger_and_has_the_same_sign() -> None:
    for value in (1.0, 0.25, 1e-6, 7.0):
        assert 1.3 * value < another_value(value) < 1.7 * value
    assert -1.7 < another_value(-1.0) < -1.3
    assert 0.3 < another_value(0.0) < 0.7
