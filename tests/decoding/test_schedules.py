"""How many masks each step fixes, by hand; and lengths that a schedule cannot fill."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dice.decoding.canvas import Plan
from dice.decoding.dream import TIES, DreamConfig, DreamSchedule, filtered_shares
from dice.decoding.llada import LladaConfig, LladaSchedule
from dice.decoding.sampling import SamplingConfig, uniforms_of
from dice.errors import DiceError


def quotas(plan: Plan, new: int, *, most: int | None = None) -> list[tuple[int, int, int]]:
    """(step, tokens fixed, masks that compete) of each step, when the leftmost are fixed; `most`: no more than these."""
    masked, found = np.ones(new, np.bool_), []
    while (move := plan.next(masked)) is not None:
        competing, quota = move
        found.append((plan.step, quota, int(competing.sum())))
        masked[np.flatnonzero(competing)[: quota if most is None else min(quota, most)]] = False
    return found


@pytest.mark.parametrize(
    ("new", "config", "expected"),
    [
        (4, {"block_size": 2}, [(1, 1, 2), (2, 1, 1), (3, 1, 2), (4, 1, 1)]),
        (4, {"block_size": 4, "steps": 1}, [(1, 4, 4)]),
        (16, {"block_size": 8, "steps": 6}, [(1, 3, 8), (2, 3, 5), (3, 2, 2), (4, 3, 8), (5, 3, 5), (6, 2, 2)]),
        # more steps than masks: the later steps of a block fix nothing, and are steps all the same
        (4, {"block_size": 2, "steps": 6}, [(1, 1, 2), (2, 1, 1), (4, 1, 2), (5, 1, 1)]),
    ],
)
def test_the_steps_of_llada(new, config, expected):
    schedule = LladaSchedule(LladaConfig(**config))
    schedule.check(new)
    assert quotas(schedule.plan(new, 0, 0), new) == expected


def test_a_hole_of_llada_competes_in_the_next_block():
    """Where the mask token was chosen, a mask is left; the next block's quotas are those of its own masks."""
    plan = LladaSchedule(LladaConfig(block_size=2, steps=2)).plan(4, 0, 0)
    assert quotas(plan, 4, most=1) == [(1, 2, 2), (2, 2, 3)]


def test_the_steps_of_dream_are_those_of_the_vendor_at_1024_tokens():
    """None in the first two steps, one in each of 1,021, three in the last: counted in the vendor's loop."""
    found = quotas(DreamSchedule(DreamConfig()).plan(1024, 0, 0), 1024)
    assert [step for step, _, _ in found] == list(range(3, 1025))
    assert [quota for _, quota, _ in found] == [1] * 1021 + [3]


def test_the_steps_of_dream_are_few_or_many():
    def steps(**config):
        return [(step, quota) for step, quota, _ in quotas(DreamSchedule(DreamConfig(**config)).plan(10, 0, 0), 10)]

    assert steps(steps=1) == [(1, 10)]
    assert steps(steps=2) == [(1, 4), (2, 6)]  # 10 * (1 - 0.5005) is 4.995
    assert sum(quota for _, quota in steps(steps=40)) == 10
    assert steps(steps=2, eps=0.5) == [(1, 2), (2, 8)]


def test_dream_draws_positions_by_their_score():
    score = np.array([0.0, -1.0, -3.0], np.float32)
    places = np.arange(3)
    greedy, drawn = (DreamSchedule(DreamConfig(position_temperature=t)) for t in (0.0, 1.0))
    assert np.array_equal(greedy.order(score, 3, places, 1), score)
    firsts = np.bincount([np.argmax(drawn.order(score, seed, places, 1)) for seed in range(4000)], minlength=3) / 4000
    assert firsts == pytest.approx(np.exp(score) / np.exp(score).sum(), abs=0.03)


def test_a_place_whose_number_is_0_can_be_drawn():
    """Gumbel noise of 0 would be minus infinity, and no score would bring it before a place that is less than sure."""
    place = np.array([11_114_461])
    assert uniforms_of(~0, place, 1) == 0
    found = DreamSchedule(DreamConfig(position_temperature=0.5)).order(np.array([-1.0], np.float32), 0, place, 1)
    assert found == pytest.approx(-2 - math.log(25 * math.log(2)))


@pytest.mark.parametrize("algorithm", ["entropy", "maskgit_plus", "topk_margin"])
def test_scores_of_dream_are_those_of_the_filtered_distribution(algorithm):
    """top-p leaves one token: it is sure, whatever the model's own distribution says."""
    sampling = SamplingConfig(temperature=0.5, top_p=0.5)
    schedule = DreamSchedule(DreamConfig(algorithm=algorithm, sampling=sampling))
    logits = torch.tensor([[2.0, 1.0, 0.0], [0.4, 0.3, 0.2]])
    token, score = schedule.choose(logits, 0, np.arange(2), 1)
    assert token[0] == 0
    assert score[0] == pytest.approx(0 if algorithm == "entropy" else 1, abs=1e-6)
    assert score[1] < score[0] - 0.3


def test_dream_filters_by_top_p_before_top_k():
    """0.4 + 0.3 passes one half, so two tokens stay; two tokens alone, of 0.57 and 0.43, would leave one."""
    schedule = DreamSchedule(DreamConfig(sampling=SamplingConfig(temperature=1.0, top_p=0.5, top_k=2)))
    _, score = schedule.choose(torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log(), 0, np.arange(1), 1)
    assert score[0] == pytest.approx(4 / 7 * np.log(4 / 7) + 3 / 7 * np.log(3 / 7))


def test_dream_without_settings_draws_from_the_best_fifty_tokens_and_orders_by_score():
    """Of 100 tokens that are almost equal top-p 0.95 keeps 95, and transformers' default, top-k, keeps 50."""
    schedule = DreamSchedule(DreamConfig())
    logits = torch.linspace(1e-3, 0, 100).expand(500, -1)
    token, _ = schedule.choose(logits, 0, np.arange(500), 1)
    assert 40 < int(token.max()) < 50
    shares, _ = filtered_shares(logits[:1], schedule.config.sampling)
    assert shares.count_nonzero() == 50
    score = np.array([0.0, -1.0], np.float32)
    assert np.array_equal(schedule.order(score, 0, np.arange(2), 1), score)


@pytest.mark.parametrize("eps", [0.0, 1.0])
def test_times_of_dream_end_between_0_and_1(eps):
    with pytest.raises(ValueError, match="eps"):
        DreamConfig(eps=eps)


@pytest.mark.parametrize(
    ("new", "config", "sentence"),
    [(30, {}, "no multiple of llada.block_size 32"), (64, {"steps": 33}, "no multiple of the answer's 2 blocks")],
)
def test_lengths_that_llada_cannot_fill_are_refused(new, config, sentence):
    with pytest.raises(DiceError, match=sentence):
        LladaSchedule(LladaConfig(**config)).check(new)


@pytest.mark.parametrize("top_p", [0.3, 0.95, 1.0])
@pytest.mark.parametrize(("step", "few"), [(1e-6, True), (0.25, True), (4.0, False)])
def test_the_shares_of_the_best_tokens_are_those_of_the_whole_vocabulary(top_p, step, few):
    """Against transformers' filters; logits in steps, so that many or all tokens are as probable as the last of the top-k."""
    process = pytest.importorskip("transformers").generation.logits_process
    logits = torch.randn(50, 300, generator=torch.Generator().manual_seed(3)).mul(2).div(step).round().mul(step)
    if not few:
        logits = logits.clamp(max=0)
    expected = process.TemperatureLogitsWarper(0.5)(None, logits)
    expected = process.TopPLogitsWarper(top_p)(None, expected) if top_p < 1 else expected
    expected = process.TopKLogitsWarper(20)(None, expected).softmax(-1)
    shares, tokens = filtered_shares(logits, SamplingConfig(temperature=0.5, top_k=20, top_p=top_p))
    if few:
        assert tokens is not None
        assert tokens.shape == (50, 20 + TIES)
        assert (tokens.diff(dim=-1) > 0).all()
        shares = torch.zeros_like(logits).scatter(-1, tokens, shares)
    else:
        assert tokens is None, "more tokens tie than were looked at"
    # which of several equal tokens top-p keeps is nobody's promise: how many, and their share
    torch.testing.assert_close(shares.sort(-1).values, expected.sort(-1).values)
    if step < 0.1:
        torch.testing.assert_close(shares, expected)
