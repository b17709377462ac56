"""Other values for a model's state keep it a state that the model can have."""

import torch

from dice.kernels.grader.other_weights import OTHER_WEIGHTS


def test_only_buffers_are_small_and_only_parameters_far_below_zero() -> None:
    value = torch.tensor([-2.0, 0.0, 0.5])
    small, below = OTHER_WEIGHTS["small_buffers"], OTHER_WEIGHTS["far_below_zero"]
    assert torch.equal(small(value, 1, True), value)
    assert torch.allclose(small(value, 1, False), torch.tensor([-2e-3, 0.0, 5e-4]))
    assert below(value, 1, True).tolist() == [-3000.0, -1000.0, -1500.0]
    assert torch.equal(below(value, 1, False), value)


def test_no_weight_is_negative_or_the_same_everywhere() -> None:
    ones = torch.ones(40)
    assert OTHER_WEIGHTS["positive"](-ones, 1, True).min() == 1
    assert len(OTHER_WEIGHTS["varied"](ones, 1, True).unique()) > 20
