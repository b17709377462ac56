"""The objectives against a literal implementation: a sample at a time, both whole copies, a mask by definition."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from tiny_models import make_config, make_model

from dice.model.attention_masks import DenseAttention, flex_attention_for, visible_pairs
from dice.training.losses import (
    Noise,
    Objective,
    causal_rows,
    diffusion_rows,
    draw_noise,
    padded_length,
    peak_flops,
    step_flops,
    target_log_probs,
)
from dice.training.packing import Pack, Sample, pack_samples

MASK = 96


def test_the_first_token_of_a_sample_is_predicted_by_nothing():
    """Not by the last one of the sample before it."""
    pack = Pack((Sample("a", np.array([1, 2, 3]), 2), Sample("b", np.array([4, 5]), 0)))
    rows = causal_rows(pack)
    assert rows.at.tolist() == [1, 3]
    assert rows.targets.tolist() == [3, 5]


def test_rows_have_one_of_eight_lengths_per_octave():
    lengths = {padded_length(rows, 8): rows for rows in range(1024, 2048)}  # the longest of each length
    assert sorted(lengths) == [*range(1024, 2049, 128)]
    assert all(rows <= length < rows + 128 for length, rows in lengths.items())
    assert [padded_length(rows, 128) for rows in (1, 128, 129, 3000)] == [128, 128, 256, 3072]
    assert padded_length(1001, 1) == 1001


def make_pack(lengths=((7, 5), (4, 8), (1, 11), (9, 7)), seed=0) -> Pack:
    rng = np.random.default_rng(seed)
    return Pack(tuple(Sample(str(i), rng.integers(0, 96, p + a), p) for i, (p, a) in enumerate(lengths)))


def literal_mask(length: int, block: int) -> torch.Tensor:
    """Allowed pairs of [x_t ; x_0], rule by rule."""
    mask = torch.zeros(2 * length, 2 * length, dtype=torch.bool)
    for query in range(2 * length):
        for key in range(2 * length):
            q_clean, k_clean = query >= length, key >= length
            q_block, k_block = query % length // block, key % length // block
            if q_clean == k_clean and q_block == k_block:
                mask[query, key] = True
            if not q_clean and k_clean and k_block < q_block:
                mask[query, key] = True
            if q_clean and k_clean and k_block <= q_block:
                mask[query, key] = True
    return mask


def literal_loss(model, pack: Pack, noise: Noise, block: int) -> torch.Tensor:
    """Eq. 2 sample by sample: sum over masked tokens of cross-entropy / p, over the number of labelled tokens."""
    total, labelled, start = torch.zeros(()), 0, 0
    for sample in pack.samples:
        n = len(sample.ids)
        masked, p = noise.masked[start : start + n], noise.probability[start : start + n]
        start += n
        clean = torch.from_numpy(sample.ids)
        noised = torch.where(torch.from_numpy(masked), MASK, clean)
        positions = torch.cat((torch.arange(n), torch.arange(n)))
        hidden = model(torch.cat((noised, clean))[None], positions, DenseAttention(literal_mask(n, block)))
        log_probs = model.logits(hidden)[0, :n].log_softmax(-1)
        for place in np.flatnonzero(masked):
            total = total - log_probs[place, clean[place]] / float(p[place])
        labelled += n - sample.prompt_length
    return total / labelled


def gradients(model) -> list[torch.Tensor]:
    found = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    return found


@pytest.mark.parametrize("block", [1, 2, 4])
@pytest.mark.parametrize("per", ["sample", "block"])
@pytest.mark.parametrize(("multiple", "chunk", "checkpointing"), [(1, 1024, False), (64, 3, True)])
def test_loss_and_gradients_equal_the_formula(block, per, multiple, chunk, checkpointing):
    model = make_model(make_config())
    pack = make_pack(((7, 5), (4, 8), (1, 11), (10, 6)) if block < 4 else ((7, 5), (4, 8), (1, 11), (9, 7)))
    noise = draw_noise(pack, np.random.default_rng(1), per=per, block_size=block)
    expected = literal_loss(model, pack, noise, block)
    expected.backward()
    expected_gradients = gradients(model)
    model.checkpointing = checkpointing
    rows = diffusion_rows(pack, noise, block_size=block, mask_id=MASK, multiple=multiple)
    loss = Objective(model, chunk)(rows, int(pack.labelled.sum()))
    loss.backward()
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    for found, wanted in zip(gradients(model), expected_gradients, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    wrong = Noise(noise.masked, np.ones_like(noise.probability))  # the weight 1/p matters
    rows = diffusion_rows(pack, wrong, block_size=block, mask_id=MASK)
    assert (Objective(model)(rows, int(pack.labelled.sum())) - expected).abs() > 1e-2


def test_rows_on_another_device_are_the_same():
    pack = make_pack()
    rows = diffusion_rows(pack, draw_noise(pack, np.random.default_rng(0)), block_size=4, mask_id=MASK)
    moved = rows.to("cpu")
    for name in ("ids", "positions", "at", "targets", "weights"):
        assert torch.equal(getattr(moved, name), getattr(rows, name)), name
    assert torch.equal(moved.layout.dense(), rows.layout.dense())
    assert rows.to("meta").ids.is_meta


def test_prompt_rows_of_the_noised_copy_are_left_out():
    pack = make_pack(((101, 3),))
    noise = draw_noise(pack, np.random.default_rng(0))
    assert len(diffusion_rows(pack, noise, block_size=4, mask_id=MASK).ids) == 104 + 4


def test_causal_loss_equals_the_formula():
    model = make_model(make_config(model_type="qwen3"))
    pack = make_pack()
    total, count = torch.zeros(()), 0
    for sample in pack.samples:
        ids = torch.from_numpy(sample.ids)
        mask = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
        log_probs = model.logits(model(ids[None], torch.arange(len(ids)), DenseAttention(mask)))[0].log_softmax(-1)
        for place in range(max(1, sample.prompt_length), len(ids)):
            total, count = total - log_probs[place - 1, ids[place]], count + 1
    (total / count).backward()
    expected = gradients(model)
    loss = Objective(model, 5)(causal_rows(pack, multiple=32), count)
    loss.backward()
    torch.testing.assert_close(loss, total / count)
    for found, wanted in zip(gradients(model), expected, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@torch.no_grad()
def test_flex_mask_equals_dense_mask():
    model = make_model(make_config())
    pack = make_pack(((20, 30), (5, 60), (40, 4)))
    rows = diffusion_rows(pack, draw_noise(pack, np.random.default_rng(0)), block_size=4, mask_id=MASK, multiple=128)
    dense = model(rows.ids[None], rows.positions[None], DenseAttention(rows.layout.dense()))
    flex = model(rows.ids[None], rows.positions[None], flex_attention_for(rows.layout))
    torch.testing.assert_close(flex, dense, atol=1e-4, rtol=1e-4)
    assert visible_pairs(rows.layout) == int(rows.layout.dense().sum())


def test_noise_statistics():
    pack = make_pack(((10, 4000),))
    shares = []
    for seed in range(200):
        noise = draw_noise(pack, np.random.default_rng(seed))
        assert not noise.masked[:10].any()
        assert len(set(noise.probability.tolist())) == 1
        assert 1e-3 <= noise.probability[0] <= 1
        assert abs(noise.masked[10:].mean() - noise.probability[0]) < 0.05
        shares.append(noise.probability[0])
    assert abs(np.mean(shares) - 0.5) < 0.06
    per_block = draw_noise(pack, np.random.default_rng(0), per="block", block_size=4)
    levels = per_block.probability[: 4 * (4010 // 4)].reshape(-1, 4)
    assert (levels == levels[:, :1]).all()
    assert len(np.unique(levels)) > 900


class Given:
    """In the place of a random generator: the numbers of a test, in their order, and no more."""

    def __init__(self, level: float, draws: list[list[float]], forced: int | None = None) -> None:
        self.level, self.draws, self.forced = level, draws, forced

    def random(self, size: int | None = None):
        return self.level if size is None else np.array(self.draws.pop(0))

    def choice(self, places):
        assert self.forced in places
        return self.forced


def drawn(given: Given, **how: Any) -> Noise:
    return draw_noise(make_pack(((1, 3),)), cast(np.random.Generator, given), **how)


@pytest.mark.parametrize(
    ("level", "epsilon", "p"), [(0.0, 1e-3, 1e-3), (0.0, 0.1, 0.1), (0.5, 0.1, 0.55), (1.0, 0.1, 1)]
)
def test_epsilon_keeps_the_probability_of_a_mask_above_zero(level, epsilon, p):
    """p = (1 - eps) t + eps by hand; a token is masked where its number lies below p."""
    noise = drawn(Given(level, [[0.0, p - 1e-6, p + 1e-6, 0.0]]), epsilon=epsilon)
    assert noise.probability == pytest.approx(p)
    assert noise.masked.tolist() == [False, True, False, True]
    if epsilon == 1e-3:
        assert drawn(Given(level, [[0.0] * 4])).probability == pytest.approx(p)  # the default
    blocks = Given(level, [[level], [0.0] * 4])
    blocks.random = lambda size=None: np.array(blocks.draws.pop(0))
    assert drawn(blocks, per="block", epsilon=epsilon).probability == pytest.approx(p)


EMPTY = [0.0, 0.9, 0.9, 0.9]
"""A draw at t = 0.5 that masks nothing but the prompt's token, which does not count."""


@pytest.mark.parametrize("empty", [0, 1, 9])
def test_a_draw_that_masks_nothing_is_repeated_at_the_same_level(empty):
    noise = drawn(Given(0.5, [*[EMPTY] * empty, [0.9, 0.9, 0.1, 0.9]]))
    assert noise.masked.tolist() == [False, False, True, False]
    assert noise.probability == pytest.approx(0.5005)


def test_after_ten_empty_draws_one_token_is_masked():
    draws = [EMPTY] * 11
    noise = drawn(Given(0.5, draws, forced=3))
    assert noise.masked.tolist() == [False, False, False, True]
    assert len(draws) == 1


def test_a_sample_is_never_without_noise():
    pack = make_pack(((3, 1), (7, 1)))
    for seed in range(300):
        assert (np.add.reduceat(draw_noise(pack, np.random.default_rng(seed)).masked, [0, 4]) == 1).all()
    empty = [draw_noise(pack, np.random.default_rng(seed), per="block").masked.sum() for seed in range(50)]
    assert 0 in empty


def test_log_probs_without_gradient():
    model = make_model(make_config())
    pack = make_pack()
    rows = diffusion_rows(pack, draw_noise(pack, np.random.default_rng(2)), block_size=4, mask_id=MASK)
    with torch.no_grad():
        found = target_log_probs(model, rows, chunk=2)
    torch.testing.assert_close(found, target_log_probs(model, rows))
    assert found.shape == rows.targets.shape


def test_flops_count_real_rows_only():
    config = make_config()
    pack = make_pack()
    noise = draw_noise(pack, np.random.default_rng(2))
    plain, filled = (diffusion_rows(pack, noise, block_size=4, mask_id=MASK, multiple=m) for m in (1, 256))
    assert len(filled.ids) == 256 > len(plain.ids)
    assert step_flops(config, plain) == step_flops(config, filled)
    pairs = int(plain.layout.dense().sum())
    body = sum(p.numel() for n, p in make_model(config).named_parameters() if p.dim() == 2 and "layers" in n)
    expected = 6 * body * len(plain.ids) + 6 * 97 * 48 * len(plain.targets) + 12 * 3 * 4 * 16 * pairs
    assert step_flops(config, plain) == expected


def test_packs_hold_every_sample_once_within_the_window():
    rng = np.random.default_rng(0)
    samples = [Sample(str(i), np.zeros(int(rng.integers(4, 90)), np.int64), 2) for i in range(200)]
    packs = pack_samples(samples, 100, np.random.default_rng(1))
    assert sorted(s.id for pack in packs for s in pack.samples) == sorted(s.id for s in samples)
    assert max(len(pack.ids) for pack in packs) <= 100
    total = sum(len(s.ids) for s in samples)
    assert len(packs) <= 1.15 * total / 100
    again = pack_samples(samples, 100, np.random.default_rng(1))
    other = pack_samples(samples, 100, np.random.default_rng(2))
    names = [[[s.id for s in pack.samples] for pack in found] for found in (packs, again, other)]
    assert names[0] == names[1] != names[2]


def test_layout_keeps_samples_apart():
    pack = make_pack(((2, 6), (2, 6)))
    rows = diffusion_rows(pack, draw_noise(pack, np.random.default_rng(0)), block_size=4, mask_id=MASK)
    mask = rows.layout.dense()
    other = rows.layout.sample[:, None] != rows.layout.sample[None]
    assert not mask[other].any()


def test_a_block_of_labels_does_not_keep_the_prompt_of_the_sample_behind_it():
    """Two samples of a prompt's block and an answer's: 16 clean rows, and a noised block of each answer."""
    pack = make_pack(((4, 4), (4, 4)))
    rows = diffusion_rows(pack, draw_noise(pack, np.random.default_rng(0)), block_size=4, mask_id=MASK)
    assert rows.positions.tolist() == [4, 5, 6, 7] * 2 + [*range(8)] * 2
    assert rows.layout.sample.tolist() == [0] * 4 + [1] * 4 + [0] * 8 + [1] * 8


def test_padding_attends_to_little_and_belongs_to_no_sample():
    pack = make_pack(((4, 4),))
    plain, filled = (
        diffusion_rows(pack, draw_noise(pack, np.random.default_rng(0)), block_size=4, mask_id=MASK, multiple=multiple)
        for multiple in (1, 512)
    )
    assert (len(plain.ids), len(filled.ids)) == (12, 512)
    seen = filled.layout.dense()
    assert not seen[:12, 12:].any()
    assert not seen[12:, :12].any()
    assert int(seen[12:].sum(1).max()) == 128


def test_a_gpu_has_the_rate_of_its_data_sheet():
    names = ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090")
    assert [peak_flops(name) for name in names] == [989e12, 989e12, 312e12, None]
