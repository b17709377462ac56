"""The transformer against transformers' Qwen3 with the same weights."""

from __future__ import annotations

import pytest
import torch
from tiny_models import make_config, make_model, oracle_of
from torch.nn.attention.flex_attention import create_block_mask
from torch.utils.flop_counter import FlopCounterMode

from dice.errors import DiceError
from dice.model.attention_masks import DenseAttention, Layout, block_causal_layout, flex_attention_for, may_attend
from dice.model.cache import CachedAttention, KVCache
from dice.model.transformer import Transformer


def additive(mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, 0.0, torch.finfo(torch.float32).min)[None, None]


GRID = [
    (heads, kv_heads, head_dim, length, block)
    for heads, kv_heads, head_dim in ((4, 2, 16), (4, 4, 8), (6, 1, 16), (3, 3, 32))
    for length, block in ((1, 1), (7, 1), (12, 4), (13, 4), (30, 8), (33, 16))
]


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim", "length", "block"), GRID)
@torch.no_grad()
def test_logits_equal_qwen3(heads, kv_heads, head_dim, length, block):
    model = make_model(make_config(heads, kv_heads, head_dim))
    oracle = oracle_of(model)
    ids = torch.randint(0, 97, (2, length), generator=torch.Generator().manual_seed(length))
    mask = block_causal_layout(length, block).dense()
    expected = oracle(ids, attention_mask=additive(mask).expand(2, 1, -1, -1)).logits
    if block == 1:
        torch.testing.assert_close(expected, oracle(ids).logits, atol=1e-4, rtol=0)
    hidden = model(ids, torch.arange(length), DenseAttention(mask))
    torch.testing.assert_close(model.logits(hidden), expected, atol=1e-4, rtol=0)
    if block > 1 and length > 1:  # the mask matters: another one gives other logits
        other = model.logits(model(ids, torch.arange(length), DenseAttention(block_causal_layout(length, 1).dense())))
        assert (other - expected).abs().max() > 1e-2


@pytest.mark.parametrize("change", [{"rope_theta": 10_000.0}, {"rms_norm_eps": 1e-2}, {"tie_word_embeddings": True}])
@torch.no_grad()
def test_what_the_config_says_decides(change):
    model, usual = make_model(make_config(**change)), make_model(make_config())
    if "tie_word_embeddings" in change:
        model.lm_head.weight = model.model.embed_tokens.weight
    ids = torch.randint(0, 97, (1, 20), generator=torch.Generator().manual_seed(0))
    seen = DenseAttention(block_causal_layout(20, 1).dense())
    found, otherwise = (one.logits(one(ids, torch.arange(20), seen)) for one in (model, usual))
    torch.testing.assert_close(found, oracle_of(model)(ids).logits, atol=1e-4, rtol=0)
    assert (found - otherwise).abs().max() > 1e-2


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim", "length", "block"), GRID)
@torch.no_grad()
def test_cache_gives_the_same_logits(heads, kv_heads, head_dim, length, block):
    config = make_config(heads, kv_heads, head_dim)
    model = make_model(config)
    ids = torch.randint(0, 97, (2, length), generator=torch.Generator().manual_seed(length))
    expected = oracle_of(model)(
        ids, attention_mask=additive(block_causal_layout(length, block).dense()).expand(2, 1, -1, -1)
    ).logits
    cache = KVCache(config, 3, 64, dtype=torch.float32, device="cpu")
    slots = torch.tensor([2, 0])
    parts, start = [], 0
    cut = length // 2 // block * block
    for end in [cut, *range(cut + block, length, block), length]:
        if end == start:
            continue
        attend = CachedAttention(
            cache, slots, torch.tensor([start, start]), tokens=end - start, block_size=block, longest=end
        )
        parts.append(model.logits(model(ids[:, start:end], attend.positions, attend)))
        start = end
    torch.testing.assert_close(torch.cat(parts, 1), expected, atol=1e-4, rtol=0)


@torch.no_grad()
def test_rows_of_one_slot_see_each_other():
    """The commit of a block and the next block in one call: the same as one after the other."""
    config = make_config()
    model = make_model(config)
    ids = torch.randint(0, 97, (1, 16))
    full = model(ids, torch.arange(16), DenseAttention(block_causal_layout(16, 4).dense()))
    cache = KVCache(config, 1, 16, dtype=torch.float32, device="cpu")
    attend = CachedAttention(cache, torch.tensor([0]), torch.tensor([0]), tokens=8, block_size=4, longest=8)
    model(ids[:, :8], attend.positions, attend)
    both = CachedAttention(cache, torch.tensor([0, 0]), torch.tensor([12, 8]), tokens=4, block_size=4, longest=16)
    hidden = model(torch.stack((ids[0, 12:], ids[0, 8:12])), both.positions, both)
    torch.testing.assert_close(hidden, torch.stack((full[0, 12:], full[0, 8:12])), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("slots", "ends", "in_place"),
    [
        ([0, 8, 8], [24, 36, 40], False),
        (list(range(21)), [4 + 4 * (n * 7 % 9) for n in range(21)], True),
        ([5, 3, 4, 4], [8, 40, 12, 16], True),
    ],
    ids=["apart", "many", "two rows of a slot"],
)
@torch.no_grad()
def test_rows_see_their_own_slot_up_to_their_own_end(slots, ends, in_place):
    config = make_config()
    cache = KVCache(config, 21, 40, dtype=torch.float32, device="cpu")
    for part in (cache.key, cache.value):
        part.normal_()
    attend = CachedAttention(
        cache, torch.tensor(slots), torch.tensor(ends) - 4, tokens=4, block_size=4, longest=max(ends)
    )
    assert (attend.places is not None) == in_place
    query, key, value = (
        torch.randn(len(slots), heads, 4, config.head_dim)
        for heads in (config.num_attention_heads, config.num_key_value_heads, config.num_key_value_heads)
    )
    found = attend(1, query, key, value)
    group = config.num_attention_heads // config.num_key_value_heads
    for row, (slot, end) in enumerate(zip(slots, ends, strict=True)):
        keys, values = (part[1, slot, :, :end].repeat_interleave(group, 0) for part in (cache.key, cache.value))
        weights = (query[row] @ keys.transpose(1, 2) / config.head_dim**0.5).softmax(-1)
        torch.testing.assert_close(found[row], weights @ values, atol=1e-5, rtol=0)


@pytest.mark.parametrize("length", [300, 512, 1280])
def test_tiles_are_those_that_torch_finds_in_the_dense_mask(length):
    generator = torch.Generator().manual_seed(length)
    sample = torch.randint(0, 4, (length,), generator=generator).sort().values
    block, noised = (torch.randint(0, top, (length,), generator=generator) for top in (20, 2))
    layout = Layout(sample, block, noised)

    def rule(batch, head, query, key):
        return may_attend(sample, block, noised, query, key)

    expected = create_block_mask(rule, None, None, length, length, device="cpu")
    found = flex_attention_for(layout).block_mask
    assert torch.equal(found.to_dense(), expected.to_dense())
    for name in ("kv_num_blocks", "full_kv_num_blocks", "q_num_blocks", "full_q_num_blocks"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention_equals_dense():
    model = make_model(make_config())
    ids = torch.randint(0, 97, (1, 128))
    layout = block_causal_layout(128, 4)
    dense = model(ids, torch.arange(128), DenseAttention(layout.dense()))
    torch.testing.assert_close(model(ids, torch.arange(128), flex_attention_for(layout)), dense, atol=1e-4, rtol=0)


def train_once(checkpointing: bool | int, recompute_gates: bool) -> tuple[list[torch.Tensor], int, int]:
    """(gradients, operations of products, bytes kept for the backward pass)."""
    ids = torch.randint(0, 97, (1, 9), generator=torch.Generator().manual_seed(0))
    attend = DenseAttention(block_causal_layout(9, 1).dense())
    model = make_model(make_config())
    model.checkpointing, model.recompute_gates = checkpointing, recompute_gates
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with FlopCounterMode(display=False) as counter:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = model.logits(model(ids, torch.arange(9), attend)).square().mean()
        loss.backward()
    found = [parameter.grad for parameter in model.parameters()]
    assert all(gradient is not None for gradient in found)
    return [gradient for gradient in found if gradient is not None], counter.get_total_flops(), sum(kept.values())


def test_recomputation_changes_no_gradient_and_only_what_it_says():
    plain, operations, kept = train_once(False, False)
    more, less = [operations], [kept]
    for checkpointing in (1, 2, True):
        found, count, bytes_ = train_once(checkpointing, False)
        torch.testing.assert_close(found, plain)
        more.append(count)
        less.append(bytes_)
    assert more == sorted(set(more))
    assert less == sorted(set(less), reverse=True)
    found, count, bytes_ = train_once(False, True)
    torch.testing.assert_close(found, plain)
    assert count == operations  # the gated product is no matrix product
    assert bytes_ < kept
    found, count, bytes_ = train_once(True, True)
    torch.testing.assert_close(found, plain)
    assert (count, bytes_) == (more[-1], less[-1])


def test_layers_that_are_computed_again_are_spread_evenly():
    model = Transformer(make_config(num_hidden_layers=6))
    for asked, again in (
        (True, "++++++"), (False, "------"), (0, "------"), (1, "-----+"), (2, "--+--+"), (3, "-+-+-+"), (6, "++++++"),
    ):  # fmt: skip
        model.checkpointing = asked
        assert "".join("-+"[one] for one in model._recomputed()) == again


def test_a_model_from_scratch_has_the_spreads_that_are_said():
    """N(0, 0.02), what is added to the stream smaller by the root of twice the layers; norms 1, biases 0."""
    config = make_config(hidden_size=64, intermediate_size=128, num_hidden_layers=8, attention_bias=True)
    model = Transformer(config).initialise(3)
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            assert not weight.any(), name
        elif weight.dim() == 1:
            assert (weight == 1).all(), name
        else:
            spread = 0.005 if "o_proj" in name or "down_proj" in name else 0.02
            assert float(weight.detach().std()) == pytest.approx(spread, rel=0.1), name
            assert abs(float(weight.detach().mean())) < 0.1 * spread, name
    twin, other = (Transformer(config).initialise(seed).lm_head.weight for seed in (3, 4))
    assert torch.equal(model.lm_head.weight, twin)
    assert not torch.equal(model.lm_head.weight, other)


def test_log_probs_of_given_tokens():
    """Chunk by chunk as from all scores at once; also without a target, when every weight still gets a gradient."""
    model = make_model(make_config())
    hidden = torch.randn(7, model.config.hidden_size, generator=torch.Generator().manual_seed(0))
    targets = torch.arange(7) * 5
    scores = model.logits(hidden)
    expected = scores.log_softmax(-1).gather(-1, targets[:, None])[:, 0]
    torch.testing.assert_close(model.log_probs(hidden, targets, chunk=3), expected)
    scores[:, 90] = float("-inf")
    without = scores.log_softmax(-1).gather(-1, targets[:, None])[:, 0]
    torch.testing.assert_close(model.log_probs(hidden, targets, chunk=3, never=90), without)
    assert not torch.allclose(without, expected)
    calls = []
    model.lm_head.register_forward_hook(lambda *_: calls.append(1))
    for count in (7, 0):
        model.log_probs(hidden[:count], targets[:count], chunk=3).sum().backward()
        assert model.lm_head.weight.grad is not None
    assert len(calls) == 2  # ZeRO-3 gathers the head's weights once a call, on all devices together


def test_cache_refuses_what_does_not_fit():
    config = make_config(max_position_embeddings=32)
    with pytest.raises(DiceError, match="33 tokens are more than the 32 positions"):
        KVCache(config, 1, 33, dtype=torch.float32, device="cpu")
    for slots, positions in ((0, 8), (2, 0)):
        with pytest.raises(DiceError, match=f"a slot and a position; {slots} slots of {positions} tokens"):
            KVCache(config, slots, positions, dtype=torch.float32, device="cpu")
    assert KVCache(config, 1, 1, dtype=torch.float32, device="cpu").key.shape == (3, 2, 2, 1, 16)
    cache = KVCache(config, 1, 8, dtype=torch.float32, device="cpu")
    with pytest.raises(DiceError, match="12 tokens does not fit a cache of 8"):
        CachedAttention(cache, torch.tensor([0]), torch.tensor([8]), tokens=4, block_size=4, longest=12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"num_key_value_heads": 3}, "not a multiple"), ({"head_dim": 15}, "odd"), ({"hidden_size": 0}, "positive")],
)
def test_impossible_geometry(changes, message):
    with pytest.raises(DiceError, match=message):
        make_config(**changes)
