"""The causal families against transformers' own models and its `generate`: ragged batches, greedy and sampled."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from tiny_models import STOCK, stock

from dice.decoding.autoregressive import AutoregressiveConfig
from dice.decoding.decoder import Decoder, Request
from dice.decoding.requests import Completion
from dice.decoding.sampling import SamplingConfig, uniforms
from dice.model.attention_masks import DenseAttention
from dice.model.checkpoint import load_model
from dice.model.transformer import Transformer

LENGTHS = (1, 2, 9, 17, 40)
PROMPTS = [tuple(random.Random(length).choices(range(1, 97), k=length)) for length in LENGTHS]
SEEDS = [100 + number for number in range(len(LENGTHS))]
NEW = 16
GREEDY = SamplingConfig()
SAMPLINGS = (
    GREEDY,
    SamplingConfig(temperature=1.0),
    SamplingConfig(temperature=0.7, top_k=9, top_p=0.8),
    SamplingConfig(temperature=1.5, top_p=0.6),
)
SHAPES: dict[str, dict[str, Any]] = {
    "shared keys": {},
    "own keys": {"num_key_value_heads": 4},
    "one key": {"num_attention_heads": 6, "num_key_value_heads": 1},
    "tied": {"tied": True},
}


@dataclass(frozen=True)
class Pair:
    """A model of transformers, and ours with its weights."""

    theirs: Any
    ours: Transformer


@pytest.fixture(scope="module", params=[(name, shape) for name in STOCK for shape in SHAPES], ids=" ".join)
def pair(request, tmp_path_factory) -> Pair:
    name, shape = request.param
    folder = tmp_path_factory.mktemp(name)
    own: dict[str, Any] = {"head_dim": 16} if name == "qwen3" else {}
    theirs = stock(name, folder, **SHAPES[shape] | own)
    return Pair(theirs, load_model(folder))


def padded(prompts: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
    """A batch as transformers takes it: padded on the left."""
    longest = max(map(len, prompts))
    ids = [[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
    seen = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(seen)}


@torch.no_grad()
def generated(model: Any, numbers: Sequence[int], sampling: SamplingConfig, **given: Any) -> Any:
    """transformers' answers to the prompts of these numbers, with our noise in the place of its own; logits come along."""
    lengths, seeds = (np.array([of[number] for number in numbers]) for of in (LENGTHS, SEEDS))
    step = 0

    def token(shares: torch.Tensor, num_samples: int) -> torch.Tensor:
        nonlocal step
        u = uniforms(seeds.astype(np.uint64), lengths + step, np.full_like(lengths, step))
        step += 1
        sums = shares.double().cumsum(-1)
        return torch.searchsorted(sums, torch.from_numpy(u)[:, None].double() * sums[:, -1:], right=True)

    settings: dict[str, Any] = {"do_sample": False}
    if not sampling.greedy:
        settings = {"do_sample": True, "top_k": sampling.top_k, "top_p": sampling.top_p}
        settings["temperature"] = sampling.temperature
    with mock.patch("torch.multinomial", token):
        return model.generate(
            **padded([PROMPTS[number] for number in numbers]), **settings, max_new_tokens=NEW, pad_token_id=0,
            return_dict_in_generate=True, output_logits=True, **given,
        )  # fmt: skip


def decoded(pair: Pair, config: AutoregressiveConfig, max_batch: int, stop: int | None = None) -> list[Completion]:
    """Our answers to all prompts, in one batch of `max_batch` at a time."""
    decoder = Decoder(
        pair.ours, config, mask_id=None, stop_ids=() if stop is None else (stop,), max_batch=max_batch,
        max_length=max(LENGTHS) + NEW,
    )  # fmt: skip
    asked = [Request(prompt, NEW, seed, k) for k, (prompt, seed) in enumerate(zip(PROMPTS, SEEDS, strict=True))]
    return sorted(decoder.run(asked), key=lambda completion: completion.request.key)


def cut(tokens: list[int], stop: int) -> list[int]:
    return tokens[: tokens.index(stop) + 1] if stop in tokens else tokens


@torch.no_grad()
def test_logits_of_a_padded_batch_are_transformers(pair):
    """Ours have no padding: the texts lie behind each other, and none sees another."""
    batch = padded(PROMPTS)
    theirs = pair.theirs(**batch, position_ids=(batch["attention_mask"].cumsum(1) - 1).clamp(min=0)).logits
    expected = torch.cat([row[-length:] for row, length in zip(theirs, LENGTHS, strict=True)])
    ids = torch.tensor([[token for prompt in PROMPTS for token in prompt]])
    positions = torch.cat([torch.arange(length) for length in LENGTHS])
    causal = [torch.ones(length, length, dtype=torch.bool).tril() for length in LENGTHS]

    def ours(mask: torch.Tensor) -> torch.Tensor:
        return pair.ours.logits(pair.ours(ids, positions, DenseAttention(mask)))[0]

    torch.testing.assert_close(ours(torch.block_diag(*causal).bool()), expected, atol=1e-4, rtol=0)
    everything = torch.ones(len(positions), len(positions), dtype=torch.bool).tril()
    assert (ours(everything) - expected).abs().max() > 1e-2, "a text that sees the one before it has other logits"


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
def test_tokens_of_a_ragged_batch_are_those_of_generate(pair, sampling):
    """Beside the tokens log p of each, which the cache gives: from transformers' logits, before all filters."""
    answer = generated(pair.theirs, range(len(PROMPTS)), sampling)
    tokens = answer.sequences[:, max(LENGTHS) :]
    logits = torch.stack(answer.logits, 1)
    known = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
    for max_batch in (2, 5):
        found = decoded(pair, AutoregressiveConfig(sampling=sampling), max_batch)
        assert [list(one.ids) for one in found] == tokens.tolist()
        ours = torch.tensor([one.log_confidence for one in found], dtype=known.dtype)
        torch.testing.assert_close(ours, known, atol=1e-4, rtol=0)
    if not sampling.greedy:
        greedy = generated(pair.theirs, range(len(PROMPTS)), GREEDY)
        assert not torch.equal(greedy.sequences[:, max(LENGTHS) :], tokens), "the noise decides"


@pytest.mark.parametrize("sampling", [SAMPLINGS[0], SAMPLINGS[2]], ids=str)
def test_an_answer_ends_where_generate_ends_it(pair, sampling):
    whole = generated(pair.theirs, range(len(PROMPTS)), sampling).sequences[:, max(LENGTHS) :].tolist()
    stop = whole[2][NEW // 3]
    ended = generated(pair.theirs, range(len(PROMPTS)), sampling, eos_token_id=stop).sequences[:, max(LENGTHS) :]
    expected = [cut(row, stop) for row in ended.tolist()]
    assert len(expected[2]) < NEW
    found = decoded(pair, AutoregressiveConfig(sampling=sampling), 3, stop)
    assert [list(one.ids) for one in found] == expected
    assert [one.finish_reason for one in found] == ["stop" if row[-1] == stop else "length" for row in expected]


@pytest.mark.parametrize("penalty", [1.3, 0.8])
@pytest.mark.parametrize("sampling", [SAMPLINGS[0], SAMPLINGS[2]], ids=str)
def test_a_repetition_penalty_is_that_of_generate(pair, sampling, penalty):
    """Each prompt is alone there: transformers' penalty counts padding as known tokens."""
    expected = [
        generated(pair.theirs, [k], sampling, repetition_penalty=penalty).sequences[0, length:].tolist()
        for k, length in enumerate(LENGTHS)
    ]
    found = decoded(pair, AutoregressiveConfig(sampling=sampling, repetition_penalty=penalty), 3)
    assert [list(one.ids) for one in found] == expected
