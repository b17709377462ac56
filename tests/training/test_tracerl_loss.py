"""The replayed trajectory against a literal one, and against what the sampler itself wrote down."""

from __future__ import annotations

import copy
import dataclasses
from typing import Literal

import numpy as np
import pytest
import torch
from tiny_models import make_config, make_model

from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.decoder import Decoder, Request
from dice.decoding.sampling import SamplingConfig
from dice.model.attention_masks import DenseAttention, block_causal_layout
from dice.training.tracerl_loss import (
    PolicyObjective,
    Trajectory,
    advantages,
    blocks_of,
    policy_loss,
    policy_rows,
    rounds_of,
    step_normaliser,
)

MASK = 96
VOCABULARY = 97


def decode(
    model,
    *,
    block_size=4,
    strategy: Literal["static", "dynamic"] = "dynamic",
    threshold=0.12,
    prompts=(3, 8, 13),
    new=18,
    stops=(5,),
):
    config = BlockDiffusionConfig(
        strategy=strategy,
        block_size=block_size,
        denoising_steps=block_size,
        threshold=threshold,
        sampling=SamplingConfig(temperature=1.0),
    )
    decoder = Decoder(model, config, mask_id=MASK, stop_ids=stops, max_batch=2, max_length=64)
    generator = torch.Generator().manual_seed(4)
    requests = [
        Request(tuple(torch.randint(0, 90, (length,), generator=generator).tolist()), new, seed=index, key=index)
        for index, length in enumerate(prompts)
    ]
    done = sorted(decoder.run(requests), key=lambda completion: completion.request.key)
    return [
        Trajectory(
            prompt=np.array(completion.request.prompt),
            response=np.array(completion.trace.ids),
            step_map=np.array(completion.trace.step_map),
            log_probs=np.array(completion.trace.log_confidence, np.float32),
            answer=len(completion.ids),
            advantage=1.5 - index,
        )
        for index, completion in enumerate(done)
    ]


def literal(model, one: Trajectory, block_size: int) -> dict[int, torch.Tensor]:
    """Log-probability of each answer token: one forward for every round of every block, over all that it saw."""
    prompt, ids = len(one.prompt), np.concatenate((one.prompt, one.response))
    found = {}
    for start in range(prompt // block_size * block_size, one.length, block_size):
        span = range(max(start, prompt), start + block_size)
        for forward in sorted({int(one.step_map[place - prompt]) for place in span}):
            seen = ids[: start + block_size].copy()
            targets = []
            for place in span:
                if one.step_map[place - prompt] >= forward:
                    seen[place] = MASK
                if one.step_map[place - prompt] == forward:
                    targets.append(place)
            attend = DenseAttention(block_causal_layout(len(seen), block_size).dense())
            hidden = model(torch.from_numpy(seen)[None], torch.arange(len(seen))[None], attend)[0]
            for place in targets:
                logits = model.logits(hidden[place]).float()
                logits = torch.cat((logits[:MASK], logits[MASK + 1 :]))
                if place - prompt < one.answer:
                    found[place - prompt] = logits.log_softmax(-1)[ids[place]]
    return found


def objective(model, beta=0.01) -> PolicyObjective:
    return PolicyObjective(model, MASK, clip=0.2, beta=beta, chunk=7, attention="auto")


@pytest.mark.parametrize(
    ("block_size", "strategy", "threshold"),
    [(4, "dynamic", 0.05), (4, "static", 0.9), (3, "dynamic", 0.1), (1, "static", 0.9)],
)
def test_log_probs_are_those_of_the_sampler_and_of_the_literal_replay(block_size, strategy, threshold):
    model = make_model(make_config())
    trajectories = decode(model, block_size=block_size, strategy=strategy, threshold=threshold)
    together = any(len(set(one.step_map.tolist())) < len(one.step_map) for one in trajectories)
    assert together == (strategy == "dynamic")  # some forwards fixed several tokens
    batch = policy_rows(trajectories, block_size=block_size, mask_id=MASK)
    with torch.no_grad():
        new = objective(model).log_probs(batch.rows)
        torch.testing.assert_close(new, batch.old, atol=2e-4, rtol=2e-4)  # the ratio is 1 without a second pass
        slow = [literal(model, one, block_size) for one in trajectories]
    expected = sorted(float(value) for one in slow for value in one.values())
    assert len(expected) == sum(one.answer for one in trajectories)
    np.testing.assert_allclose(sorted(new.tolist()), expected, atol=2e-4)


def test_a_shifted_layout_is_another_context():
    """What the released alignment changes: other blocks, other rounds, other log-probabilities."""
    model = make_model(make_config())
    trajectories = decode(model, prompts=(5, 7))
    with torch.no_grad():
        new, moved = (
            objective(model).log_probs(policy_rows(trajectories, block_size=4, mask_id=MASK, align=align).rows)
            for align in ("position", "response")
        )
    assert len(new) == len(moved)
    assert abs(float(new.sum() - moved.sum())) > 1e-2
    aligned = decode(model, prompts=(8,))
    same = [policy_rows(aligned, block_size=4, mask_id=MASK, align=align) for align in ("position", "response")]
    assert torch.equal(same[0].rows.ids, same[1].rows.ids)


@pytest.mark.parametrize("normaliser", ["tokens", "responses", "released"])
def test_loss_and_gradients_equal_the_literal_formula(normaliser):
    """Drawn by one policy, evaluated by another, KL from a third; in two micro-batches and in one."""
    drawn, policy, reference = make_model(make_config()), make_model(make_config()), make_model(make_config())
    with torch.no_grad():
        generator = torch.Generator().manual_seed(9)
        for model, size in ((policy, 0.02), (reference, 0.03)):
            for parameter in model.parameters():
                parameter += size * torch.randn(parameter.shape, generator=generator)
    trajectories = decode(drawn)
    policy.train()
    twin = copy.deepcopy(policy)
    longest = max(len(one.response) for one in trajectories)
    total = step_normaliser(trajectories, normaliser, 4, "position")
    losses, statistics = torch.zeros(()), torch.zeros(4)
    for one in trajectories:
        new, anchor = literal(twin, one, 4), {k: v.detach() for k, v in literal(reference, one, 4).items()}
        for place, value in new.items():
            ratio = (value - float(one.log_probs[place])).exp()
            surrogate = torch.minimum(ratio * one.advantage, ratio.clamp(0.8, 1.2) * one.advantage)
            k3 = (anchor[place] - value).exp() - 1 - (anchor[place] - value)
            share = {"tokens": 1.0, "responses": 1 / one.answer, "released": 1 / longest}[normaliser]
            losses = losses + share * (0.05 * k3 - surrogate)
            clipped = (surrogate < ratio * one.advantage).float()
            statistics += torch.stack((k3, clipped, ratio.log().abs(), torch.ones(()))).detach()
    (losses / total).backward()
    found = 0.0
    module = objective(policy, beta=0.05)
    for part in (trajectories[:2], trajectories[2:]):
        batch = policy_rows(part, block_size=4, mask_id=MASK, normaliser=normaliser, released_length=longest)
        with torch.no_grad():
            anchor = objective(reference).log_probs(batch.rows)
        loss = module(dataclasses.replace(batch, reference=anchor), total)
        loss.backward()
        found += float(loss.detach())
    assert found == pytest.approx(float(losses / total), abs=1e-5)
    for (name, mine), theirs in zip(policy.named_parameters(), twin.parameters(), strict=True):
        assert mine.grad is not None, name
        torch.testing.assert_close(mine.grad, theirs.grad, atol=2e-5, rtol=2e-3, msg=name)
    assert 0 < statistics[1] < statistics[3] == sum(one.answer for one in trajectories)
    torch.testing.assert_close(torch.stack(module.statistics).sum(0), statistics, atol=1e-3, rtol=1e-3)


def test_policy_loss_by_hand():
    new, old = torch.tensor([0.0, 0.5, -0.5, 0.5]), torch.zeros(4)
    advantage = torch.tensor([2.0, 1.0, -1.0, -1.0])
    loss, k3, clipped = policy_loss(new, old, old, advantage, clip=0.2, beta=0.0)
    # rho: 1, 1.6487, 0.6065, 1.6487; clipped where it would gain
    np.testing.assert_allclose(loss.tolist(), [-2.0, -1.2, 0.8, 1.6487], atol=1e-4)
    assert clipped.tolist() == [0, 1, 1, 0]
    np.testing.assert_allclose(k3.tolist(), [0, 0.1065, 0.1487, 0.1065], atol=1e-4)
    huge, _, _ = policy_loss(
        torch.tensor([100.0]), torch.zeros(1), torch.zeros(1), torch.tensor([-1.0]), clip=0.2, beta=0
    )
    assert float(huge) == pytest.approx(float(np.exp(10)), rel=1e-4)


def test_advantages_are_z_scores_by_the_population():
    assert advantages([1, 0, 0, 0]) == pytest.approx([3**0.5, -(3**-0.5), -(3**-0.5), -(3**-0.5)])
    assert advantages([1, 1, 1]) == [0, 0, 0]
    assert advantages([0]) == [0]
    assert advantages([]) == []


def test_blocks_and_rounds_by_hand():
    assert blocks_of(5, 9, 4).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert blocks_of(5, 9, 4, "response").tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 2]
    order, block = np.array([3, 3, 1, 9, 7, 7]), np.array([0, 0, 0, 1, 1, 1])
    assert rounds_of(order, block).tolist() == [1, 1, 0, 1, 0, 0]
    three = np.repeat([4, 5, 6], 3)
    assert rounds_of(np.array([2, 1, 2, 4, 4, 3, 9, 7, 8]), three).tolist() == [1, 0, 1, 1, 1, 0, 2, 0, 1]


def test_what_a_step_is_divided_by():
    """Blocks of 4. The first answer begins in the middle of one and ends before its last token, which has round 2: rounds
    0 1 | 0 0 1, or 0 1 2 2 | 0 where its own start begins a block. The second takes one round."""

    def made(prompt: int, step_map: list[int], answer: int) -> Trajectory:
        n = len(step_map)
        return Trajectory(
            np.zeros(prompt, np.int64), np.zeros(n, np.int64), np.array(step_map), np.zeros(n, np.float32), answer, 0.0
        )

    two = [made(2, [1, 2, 3, 3, 4, 5], 5), made(4, [1, 1, 1, 1], 4)]
    assert step_normaliser(two, "tokens", 4, "position") == 5 + 4
    assert step_normaliser(two, "responses", 4, "position") == 2
    assert step_normaliser(two, "released", 4, "position") == 2 + 1
    assert step_normaliser(two, "released", 4, "response") == 3 + 1
    assert step_normaliser([made(2, [1, 2], 0), made(2, [1, 2], 2)], "released", 4, "position") == 2, "an empty answer"
    for normaliser in ("tokens", "responses", "released"):
        assert step_normaliser([], normaliser, 4, "position") == 1, "a step without a signal divides nothing by 0"


def test_ratios_without_bound_are_clamped_at_both_ends():
    """e^10 is the largest, e^-10 the least; k3 of a policy far above its reference is e^-10 - 1 + 10, far below e^10 - 11."""
    new, zero = torch.tensor([100.0, -100.0]), torch.zeros(2)
    loss, k3, clipped = policy_loss(new, zero, zero, torch.ones(2), clip=0.2, beta=0.0)
    np.testing.assert_allclose(loss.tolist(), [-1.2, -np.exp(-10)], rtol=1e-4)
    np.testing.assert_allclose(k3.tolist(), [np.exp(-10) + 9, np.exp(10) - 11], rtol=1e-4)
    assert clipped.tolist() == [1, 0]


def test_rows_on_another_device_are_all_there():
    batch = policy_rows(decode(make_model(make_config())), block_size=4, mask_id=MASK).to("meta")
    assert all(part.is_meta for part in (batch.rows.ids, batch.old, batch.reference, batch.advantage))
