"""The geometries of hub.yaml against transformers' own models, and the memory that a plan makes of them."""

from __future__ import annotations

from functools import cache

import pytest
import torch
import yaml
from plans import EXPERIMENTS, copy_registry, plan
from transformers import AutoConfig, AutoModelForCausalLM

from dice.decoding.memory import GIB, cache_bytes, weight_bytes
from dice.study.config import load_study
from dice.study.memory import decoding_memory, geometry, serving_memory
from dice.study.plan import Plan
from dice.study.registry import load_registry

REGISTRY = load_registry(EXPERIMENTS)
WEDLM = "tencent/WeDLM-8B-Instruct"
ROWS = sorted({entry.hub: name for name, entry in REGISTRY.models.items() if entry.hub}.values())
THEIRS = {
    "Gemma-2-It-2B": "gemma2",
    "Phi-4-Mini-Reasoning-4B": "phi3",
    "Llama-3.2-Instruct-3B": "llama",
    "Deepseek-Coder-Instruct-1.3B": "llama",
    "llada": "llama",
    "stable_diffcoder": "llama",
    "dream": "qwen2",
    "sdar": "qwen3",
    "wedlm": "qwen3",
}
"""Row or family -> the architecture of transformers that has its parameters, where that is not the family itself."""
PUBLISHED = {
    "Qwen2.5-Coder-Instruct-7B": 7.61e9,
    "Qwen2.5-Coder-Instruct-3B": 3.09e9,
    "Qwen2.5-Coder-Instruct-1.5B": 1.54e9,
    "Kevin-32B": 32.5e9,
    "Deepseek-Coder-Instruct-1.3B": 1_346_471_936,
    "Seed-Coder-Reasoning-8B": 8.25e9,
    "Stable-DiffCoder-8B": 8.25e9,
    "WeDLM-8B": 8.19e9,
    "Llama-3.2-Instruct-3B": 3.21e9,
    "Phi-4-Mini-Reasoning-4B": 3.8e9,
    "Gemma-2-It-2B": 2.61e9,
}
"""Parameters as model cards and reports have them, tied embeddings counted once."""


def released() -> Plan:
    return plan("released", accept=[WEDLM])


@cache
def stock(row: str) -> tuple[int, int]:
    """Parameters of transformers' model, and bytes that one token has in its cache of 16 bits."""
    entry = REGISTRY.models[row]
    assert entry.hub is not None
    fields = REGISTRY.hub[entry.hub].geometry
    assert fields is not None
    name = THEIRS.get(row, THEIRS.get(entry.family, entry.family))
    config = AutoConfig.for_model(name, **{key: value for key, value in fields.items() if key != "qk_norm"})
    config.pad_token_id = None
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        kept = model(torch.zeros(1, 3, dtype=torch.long), use_cache=True).past_key_values
    each = [tensor for layer in kept.layers for tensor in (layer.keys, layer.values)]
    return model.num_parameters(), sum(tensor.numel() * tensor.element_size() for tensor in each) // 3


@pytest.mark.parametrize("row", ROWS)
def test_the_geometry_has_transformers_parameters_and_cache(row):
    """To the last parameter, but for the norms of Gemma that a Llama does not have."""
    parameters, cached = stock(row)
    shape = geometry(released(), f"hub-{row}")
    assert shape is not None
    assert weight_bytes(shape, 2) == pytest.approx(2 * parameters, rel=1e-4 if row == "Gemma-2-It-2B" else 0, abs=0)
    assert cache_bytes(shape, 0, 1, 2) == cached
    if row in PUBLISHED:
        assert parameters == pytest.approx(PUBLISHED[row], rel=0.011)


@pytest.mark.parametrize(
    ("row", "tokens", "share"),
    [
        ("Llama-3.2-Instruct-3B", 131_072, 0.9),  # one sequence of all its positions is more than eight answers
        ("Deepseek-Coder-Instruct-1.3B", 6522 + 7 * 900 + 8 * 4096, 0.9),
        ("Gemma-2-It-2B", 6522 + 7 * 900 + 8 * 4096, 0.9),
        ("Phi-4-Mini-Reasoning-4B", 6522 + 7 * 900 + 8 * 32_768, 0.9),
        ("Kevin-32B", 40_960, 0.95),  # memory_gib has room for one answer; --max-model-len is more than that one
    ],
)
def test_vllm_has_room_for_its_weights_and_what_it_is_asked_at_a_time(row, tokens, share):
    parameters, cached = stock(row)
    found = serving_memory(released(), f"served-{row}")
    assert found == (pytest.approx((2 * parameters + tokens * cached) / share / GIB, rel=1e-4), False)


@pytest.mark.parametrize(
    ("given", "tokens", "share"),
    [
        ({"concurrency": 3}, 6522 + 2 * 900 + 3 * 4096, 0.9),
        ({"concurrency": 1}, 16_384, 0.9),
        ({"concurrency": 1, "local": {"arguments": ["--max-model-len=8192"]}}, 6522 + 4096, 0.9),
        ({"concurrency": 1, "local": {"arguments": ["--enforce-eager", "--max-model-len", "12000"]}}, 12_000, 0.9),
        ({"local": {"arguments": ["--gpu-memory-utilization=0.5"]}}, 6522 + 7 * 900 + 8 * 4096, 0.5),
    ],
)
def test_what_vllm_is_told_counts(given, tokens, share):
    row = "Deepseek-Coder-Instruct-1.3B"
    parameters, cached = stock(row)
    found = serving_memory(plan("released", servers={row: given}), f"served-{row}")
    assert found.gib == pytest.approx((2 * parameters + tokens * cached) / share / GIB)


@pytest.mark.parametrize("room", [5.0, 9.0, 10.0])
def test_vllm_is_asked_no_more_at_a_time_than_there_is_room_for(room):
    """9 GiB: its weights, the longest answer and five others; 5 GiB are less than one answer, which counts all the same."""
    row = "Deepseek-Coder-Instruct-1.3B"
    parameters, cached = stock(row)
    totals = [2 * parameters + max(6522 + 900 * others + 4096 * (others + 1), 16_384) * cached for others in range(8)]
    expected = max((total for total in totals if total <= room * GIB), default=totals[0])
    found = serving_memory(plan("released", generate={"memory_gib": room}), f"served-{row}")
    assert found.gib == pytest.approx(expected / 0.9 / GIB)
    assert room == 5 or expected < totals[-1]


PREFILL, SLOTS = 6522, 2 * 4996
"""Tokens of the longest prompt; positions of an answer of 4,096 tokens to a prompt of 900, keys and values."""


@pytest.mark.parametrize(
    ("row", "positions", "working"),
    [
        # 64 answers beside the one to the longest prompt; a token's activations, and scores of all heads with all others
        ("Qwen2.5-Coder-Instruct-7B", 65 * 10_618, PREFILL * 329_728 + PREFILL**2 * (8 * 28 + 5)),
        ("Qwen2.5-Coder-Instruct-3B", 65 * 10_618, PREFILL * 188_416 + PREFILL**2 * (8 * 16 + 5)),
        ("Qwen2.5-Coder-Instruct-1.5B", 65 * 10_618, PREFILL * 149_504 + PREFILL**2 * (8 * 12 + 5)),
        # that one by itself: a step's logits and activations, scores, and copies of keys and values
        ("Seed-Coder-Reasoning-8B", 65 * 4996, 64 * (155_136 * 58 + 2 * 335_872 + SLOTS * (261 + 4096))),
        ("Stable-DiffCoder-8B", 65 * 4996, 64 * (4 * (155_136 * 18 + 2 * 335_872) + SLOTS * (4 * 261 + 4096))),
        ("Deepseek-Coder-Instruct-v1.5-7B", 24 * 4996, 23 * (102_400 * 18 + 2 * 432_128 + SLOTS * (261 + 16_384))),
        # our fast engine: a prefill's activations
        ("SDAR-Chat-8B", 65 * 4996, 16_384 * 319_488),
        ("WeDLM-8B", 53 * 5056, 52 * (32 * (151_936 * 58 + 2 * 319_488) + 2 * 5056 * (32 * 261 + 4096))),
    ],
)
def test_our_engine_fills_the_card_with_answers_to_these_models(row, positions, working):
    """By hand: weights, as many answers as `memory_gib` has room for, and the larger one of a step and a prefill."""
    parameters, cached = stock(row)
    expected = 2 * parameters + positions * cached + working
    assert decoding_memory(released(), f"hub-{row}") == (pytest.approx(expected / GIB), False)
    assert expected <= 73 * GIB


def test_without_a_geometry_the_weights_alone_count(tmp_path):
    """By the size in the name, and marked."""
    copy_registry(tmp_path)
    hub = tmp_path / "hub.yaml"
    known = yaml.safe_load(hub.read_text())
    for name in ("ByteDance-Seed/Seed-Coder-8B-Reasoning", "google/gemma-2-2b-it"):
        del known[name]["geometry"]
    hub.write_text(yaml.safe_dump(known))
    one = Plan(load_study(EXPERIMENTS / "config", "released", {}), load_registry(tmp_path))
    assert decoding_memory(one, "hub-Seed-Coder-Reasoning-8B") == (pytest.approx(16e9 / GIB), True)
    assert serving_memory(one, "served-Gemma-2-It-2B") == (pytest.approx(4e9 / GIB), True)


@pytest.mark.parametrize(
    "suite", [{"version": "kernelbench-v0.1", "levels": [4]}, {"source": "mine", "version": "mine-1"}]
)
def test_a_benchmark_whose_problems_are_not_counted_takes_what_one_problem_takes(suite):
    memory = decoding_memory(plan("released", suite=suite), "hub-DICE-8B")
    config = geometry(released(), "hub-DICE-8B")
    assert config is not None
    assert memory.gib > weight_bytes(config, 2) / GIB
    assert not memory.weights_alone
