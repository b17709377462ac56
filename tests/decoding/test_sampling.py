"""Drawing of tokens: filters against transformers' own, frequencies against the distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dice.decoding.sampling import (
    SamplingConfig,
    draw,
    filter_logits,
    invert,
    uniforms,
    uniforms_of,
    uniforms_on_device,
)


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"), [(1.0, 0, 1.0), (0.5, 0, 0.9), (2.0, 7, 1.0), (1.0, 3, 0.5), (1.0, 500, 0.01)]
)
def test_filters_equal_transformers(temperature, top_k, top_p):
    process = pytest.importorskip("transformers").generation.logits_process
    logits = torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    expected = process.TemperatureLogitsWarper(temperature)(None, logits) if temperature != 1 else logits
    if top_k:
        expected = process.TopKLogitsWarper(top_k)(None, expected)
    if top_p < 1:
        expected = process.TopPLogitsWarper(top_p)(None, expected)
    found = filter_logits(logits, SamplingConfig(temperature=temperature, top_k=top_k, top_p=top_p))
    assert torch.equal(found.isinf(), expected.isinf())
    torch.testing.assert_close(found.softmax(-1), expected.softmax(-1))


@pytest.mark.parametrize("order", [("top_p", "top_k"), ("top_k", "top_p")])
def test_filters_keep_what_a_sorted_list_says(order):
    """By hand over 40 tokens, ties at the last place that top-k keeps among them."""
    logits = torch.randn(200, 40, generator=torch.Generator().manual_seed(1)).mul(2).round(decimals=1)
    kept_k = logits >= logits.sort(-1, descending=True).values[:, 4:5]
    for top_p in (0.3, 0.6, 0.9, 0.999):
        found = filter_logits(logits, SamplingConfig(temperature=1.0, top_k=5, top_p=top_p), order).isfinite()
        for row, kept in enumerate(found):
            pool = kept_k[row].nonzero()[:, 0].tolist() if order[0] == "top_k" else range(40)
            shares = {token: math.exp(logits[row, token]) for token in pool}
            mass = {
                token: sum(s for s in shares.values() if s > shares[token]) / sum(shares.values()) for token in pool
            }
            surely = {
                t
                for t in pool
                if kept_k[row, t] and mass[t] < top_p - 1e-6 and list(shares.values()).count(shares[t]) == 1
            }
            never = set(range(40)) - {t for t in pool if kept_k[row, t] and mass[t] < top_p + 1e-6}
            assert surely <= set(kept.nonzero()[:, 0].tolist())
            assert not never & set(kept.nonzero()[:, 0].tolist())
            assert kept.any()


def test_what_is_not_asked_for_changes_nothing():
    """Also not by rounding: the shares of a vocabulary of 150,000 sum up to more than 1."""
    logits = torch.randn(1, 150_000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(filter_logits(logits, SamplingConfig(temperature=1.0)), logits)
    greedy = [
        SamplingConfig(temperature=t, top_k=k).greedy for t, k in ((0.0, 0), (0.0, 5), (1.0, 1), (1.0, 2), (0.1, 0))
    ]
    assert greedy == [True, True, True, False, False]


def test_frequencies_follow_the_distribution():
    logits = torch.tensor([0.0, 1.0, float("-inf"), 2.0, -1.0])
    n = 20000
    numbers = uniforms(np.full(n, 5, np.uint64), np.arange(n), np.zeros(n, np.int64))
    token, confidence = draw(logits.expand(n, -1), torch.from_numpy(numbers), SamplingConfig(temperature=1.0))
    share = torch.bincount(token, minlength=5) / n
    assert (share - logits.softmax(-1)).abs().max() < 0.01
    assert share[2] == 0
    torch.testing.assert_close(confidence, logits.log_softmax(-1)[token])


@pytest.mark.parametrize("number", [0.0, 1 - 2**-24])
def test_extreme_numbers_hit_possible_tokens(number):
    logits = torch.tensor([[float("-inf"), 0.0, 0.0, float("-inf")]])
    token, _ = draw(logits, torch.tensor([number]), SamplingConfig(temperature=1.0))
    assert token.item() == (1 if number == 0 else 2)


def test_a_number_is_a_share_of_the_whole_whatever_it_sums_to():
    """Shares of 1, 1 and 2: the cumulative sum reaches 1, 2 and 4, of which 0.24 is 0.96 and 0.6 is 2.4."""
    shares = torch.tensor([1.0, 1.0, 2.0]).expand(4, -1)
    assert invert(shares, torch.tensor([0.24, 0.26, 0.49, 0.6])).tolist() == [0, 1, 1, 2]


def test_uniforms_are_uniform_and_differ_in_every_argument():
    grid = [(seed, position, step) for seed in range(20) for position in range(20) for step in range(20)]
    seeds, positions, steps = (np.array(part) for part in zip(*grid, strict=True))
    numbers = uniforms(seeds.astype(np.uint64), positions, steps)
    assert len(set(numbers.tolist())) > 7900
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert np.abs(np.histogram(numbers, 10, (0, 1))[0] - 800).max() < 120


def test_a_seed_is_all_of_its_bits():
    places = np.arange(64)
    numbers = [uniforms_of(seed, places, 1).tolist() for seed in (5, 5 + 2**7, 5 + 2**63, ~5, 5 + 2**64)]
    assert len(set(map(tuple, numbers))) == 4
    assert numbers[0] == numbers[4] == uniforms(np.full(64, 5, np.uint64), places, np.full(64, 1)).tolist()


def test_the_device_draws_the_numbers_of_the_host():
    generator = np.random.default_rng(0)
    seeds = generator.integers(0, 2**64, (50, 1), np.uint64)
    positions, steps = generator.integers(0, 40000, (50, 4)), generator.integers(0, 5000, (50, 1))
    expected = uniforms(np.broadcast_to(seeds, positions.shape), positions, np.broadcast_to(steps, positions.shape))
    parts = [torch.from_numpy(part) for part in (seeds.view(np.int64), positions, steps)]
    assert np.array_equal(uniforms_on_device(*parts).numpy(), expected)
    assert not np.array_equal(uniforms_on_device(parts[0] + 1, *parts[1:]).numpy(), expected)


@pytest.mark.parametrize("compat", ["none", "released"])
def test_a_temperature_of_0_changes_no_logit(compat):
    logits = torch.randn(9, 30, generator=torch.Generator().manual_seed(4))
    token, log_confidence = draw(logits, torch.zeros(9), SamplingConfig(), compat)
    assert torch.equal(token, logits.argmax(-1))
    torch.testing.assert_close(log_confidence, logits.log_softmax(-1).max(-1).values)
    assert torch.equal(filter_logits(logits, SamplingConfig()), logits)
