"""Memory by arithmetic, against the bytes that a real small model and its cache have on the CPU."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tiny_models import make_config, make_model
from torch.profiler import ProfilerActivity, profile

from dice.decoding.autoregressive import AutoregressiveConfig
from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.decoder import Decoder, Request
from dice.decoding.memory import (
    GIB,
    MemoryPlan,
    cache_bytes,
    canvas_bytes,
    check_cache,
    plan_memory,
    weight_bytes,
    working_bytes,
)
from dice.decoding.sampling import SamplingConfig
from dice.errors import DiceError
from dice.model.cache import KVCache
from dice.model.transformer import ModelConfig

GREEDY, SAMPLED = SamplingConfig(), SamplingConfig(temperature=0.7, top_k=20, top_p=0.9)
EIGHT = ModelConfig(
    vocab_size=151936, hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_attention_heads=32,
    num_key_value_heads=8, head_dim=128,
)  # fmt: skip
"""SDAR-8B's and Qwen3-8B's geometry."""


def bytes_of(*tensors: torch.Tensor) -> int:
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_word_embeddings": True},
        {"heads": 6, "kv_heads": 1},
        {"model_type": "dream", "attention_bias": True, "qk_norm": False},
    ],
)
def test_weights_and_cache_are_the_bytes_that_are_allocated(dtype, changes):
    config = make_config(**changes)
    model = make_model(config).to(dtype)
    if config.tie_word_embeddings:
        model.lm_head.weight = model.model.embed_tokens.weight
    assert weight_bytes(config, dtype.itemsize) == bytes_of(*model.parameters())
    cache = KVCache(config, 5, 44, dtype=dtype, device="cpu")
    assert cache_bytes(config, 5, 44, dtype.itemsize) == bytes_of(cache.key, cache.value)
    assert cache_bytes(config, 6, 44, dtype.itemsize) > bytes_of(cache.key, cache.value), "a slot more is seen"


def peak_of(model, decoding, slots: int, prompt: int, new: int) -> int:
    """Most bytes that the CPU's allocator held at once while `slots` answers were decoded, weights and cache left out."""
    mask = 96 if isinstance(decoding, BlockDiffusionConfig) else None
    decoder = Decoder(model, decoding, mask_id=mask, stop_ids=(), max_batch=slots, max_length=prompt + new)
    requests = [Request(tuple(range(1, 90)) * 9, new, seed=k) for k in range(slots)]
    requests = [Request(request.prompt[:prompt], new, request.seed) for request in requests]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        assert sum(1 for _ in decoder.run(requests)) == slots
    assert profiled.profiler is not None
    results = profiled.profiler.kineto_results
    assert results is not None
    events = [event for event in results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()  # pyright: ignore[reportAttributeAccessIssue] - PyTorch does not declare it
        most = max(most, held)
    return most


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED])
@pytest.mark.parametrize(
    ("decoding", "slots", "prompt", "vocabulary"),
    [("sdar", 12, 24, 3000), ("sdar", 2, 400, 97), ("qwen3", 12, 24, 3000), ("qwen3", 2, 400, 97)],
)
def test_working_memory_is_an_upper_bound_and_no_wild_one(decoding, slots, prompt, vocabulary, sampling):
    """Logits dominate with a large vocabulary, a prefill's attention with a long prompt."""
    model = make_model(make_config(vocab_size=vocabulary, model_type=decoding))
    block = 4 if decoding == "sdar" else 1
    how = BlockDiffusionConfig(sampling=sampling) if decoding == "sdar" else AutoregressiveConfig(sampling=sampling)
    most = peak_of(model, how, slots, prompt, 8)
    bound = working_bytes(model.config, slots, prompt + 8, prompt, 4, block=block, sampling=sampling, fast=False)
    assert most <= bound <= 6 * most, (most, bound)


@pytest.mark.parametrize(
    ("fast", "slots", "length", "prompt", "sampling", "expected"),
    [
        # a token's activations: 4,096 * 24 + (32 + 2 * 8) * 128 * 20 + 4 * 12,288 * 2 = 319,488 bytes
        (True, 64, 6096, 6522, GREEDY, 16_384 * 319_488),
        (True, 64, 6096, 20_000, GREEDY, 20_000 * 319_488),
        # logits of 400 * 4 positions in bf16 and 14 copies in fp32, and their activations beside finished blocks'
        (True, 400, 6096, 6522, SAMPLED, 400 * 4 * 151_936 * 58 + 3200 * 319_488),
        (True, 2000, 6096, 6522, GREEDY, 2000 * 4 * 151_936 * 18 + 16_000 * 319_488),
        # scores and shares of 32 heads in fp32, and a mask: 261 bytes a pair
        (False, 8, 2000, 1000, GREEDY, 1000 * 319_488 + 1000 * 1000 * 261),
        # the same for 64 rows over 2,000 keys, and two copies of the keys and values of 8 slots
        (False, 8, 2000, 100, GREEDY, 32 * 151_936 * 18 + 64 * 319_488 + 64 * 2000 * 261 + 2 * 8 * 2000 * 4096),
    ],
)
def test_working_memory_of_the_8b_models_by_hand(fast, slots, length, prompt, sampling, expected):
    assert working_bytes(EIGHT, slots, length, prompt, 2, block=4, sampling=sampling, fast=fast) == expected


def test_memory_of_a_canvas_by_hand():
    """LLaDA-8B: 442,368 bytes of activations a position, and 256 masks' logits with 13 copies in fp32."""
    llada = dataclasses.replace(
        EIGHT, vocab_size=126_464, num_hidden_layers=32, num_key_value_heads=32, model_type="llada", qk_norm=False
    )
    assert canvas_bytes(llada, 3, 5460, 2) == 3 * 5460 * 442_368 + 256 * 126_464 * 56


def test_the_plan_has_what_the_largest_batch_takes():
    plan = planned([(prompt, 4096) for prompt in PROMPTS], 73)
    sizes = [cache_bytes(EIGHT, batch.slots, batch.length, 2) for batch in plan.batches]
    assert len(sizes) == 2
    assert plan.cache == max(sizes) > min(sizes)


def planned(requests, available_gib: float | None, *, config=EIGHT, block=4, max_batch=64) -> MemoryPlan:
    available = None if available_gib is None else int(available_gib * GIB)
    return plan_memory(
        config, requests, block=block, itemsize=2, sampling=GREEDY, max_batch=max_batch, fast=True, available=available
    )


PROMPTS = [900 + 2 * k for k in range(240)] + [1700, 1800, 1900, 2000, 2200, 2400, 2800, 3400, 4802, 6522]
"""Lengths like those of KernelBench's 250 prompts: one of 6,522 tokens, most below 1,500."""


def test_an_unplanned_cache_of_the_8b_models_takes_what_was_found():
    """65 slots of the longest prompt and answer: 102 GB for SDAR's and DICE's 4,096 tokens, 377 GB for Qwen3's 32,768."""
    for new, gigabytes in ((4096, 102), (32768, 377)):
        plan = planned([(prompt, new) for prompt in PROMPTS], None)
        assert [batch.slots for batch in plan.batches] == [64]
        assert round(plan.cache / 1e9) == gigabytes
        assert plan.weights / 1e9 == pytest.approx(16.38, abs=0.01)


@pytest.mark.parametrize(("new", "block", "slots"), [(4096, 4, 50), (32768, 1, 9)])
def test_the_8b_models_fit_a_gpu_of_80_gigabytes(new, block, slots):
    plan = planned([(prompt, new) for prompt in PROMPTS], 73, block=block)
    assert plan.total <= 73 * GIB
    assert sorted(place for batch in plan.batches for place in batch.requests) == list(range(250)), "each once"
    for batch in plan.batches:
        assert batch.length % block == 0
        assert max(PROMPTS[place] + new for place in batch.requests) <= batch.length
    most = max(plan.batches, key=lambda batch: len(batch.requests))
    assert most.slots >= slots
    one_more = cache_bytes(EIGHT, most.slots + 1, most.length, 2) + plan.weights
    assert one_more > 0.93 * 73 * GIB, "a slot more would not fit"


def test_a_few_long_prompts_are_decoded_apart():
    """Together, all 64 slots would be as long as the longest; memory for 64 short ones is there."""
    lengths = [(500, 500)] * 128 + [(500, 29500)] * 2
    room = (cache_bytes(EIGHT, 64, 1000, 2) + weight_bytes(EIGHT, 2)) / GIB + 6
    long, short = planned(lengths, room).batches
    assert (long.requests, long.length) == ((128, 129), 30000)
    assert (short.requests, short.slots, short.length) == (tuple(range(128)), 64, 1000)
    assert len(planned(lengths, 10 * room).batches) == 1, "where there is memory for all, all go together"


def test_what_does_not_fit_is_refused_with_the_arithmetic():
    with pytest.raises(
        DiceError, match=r"1 answers of up to 36,868 tokens .* of 18\.0 GiB \(weights 15\.3, cache 10\.1, "
    ):
        planned([(4100, 32768)] * 3, 18)
    assert planned([(4100, 32768)] * 3, None).batches[0].slots == 3


def test_a_cache_that_does_not_fit_says_how_many_answers_would():
    slot = 2 * 36 * 8 * 128 * 6096 * 2
    check_cache(EIGHT, 63, 6096, 2, 64 * slot)
    with pytest.raises(DiceError, match=r"64 answers of up to 6,096 tokens takes 54\.4 GiB, .* room for 9\. Lower"):
        check_cache(EIGHT, 64, 6096, 2, 10 * slot)
