"""Autoregressive decoding against transformers' own generation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_models import make_config, make_model, oracle_of

from dice.decoding.autoregressive import AutoregressiveConfig
from dice.decoding.decoder import Decoder, Request
from dice.decoding.sampling import SamplingConfig, uniforms_of
from dice.model.attention_masks import DenseAttention

PROMPTS = [(3,), (1, 2, 3, 4, 5), (9, 8, 7), tuple(range(20)), (40, 41)]


@pytest.fixture(scope="module")
def model():
    return make_model(make_config(model_type="qwen3"))


@pytest.mark.parametrize("stop", [None, 30])
@torch.no_grad()
def test_greedy_equals_transformers(model, stop):
    oracle = oracle_of(model)
    decoder = Decoder(
        model,
        AutoregressiveConfig(),
        mask_id=None,
        stop_ids=() if stop is None else (stop,),
        max_batch=2,
        max_length=48,
    )
    done = {c.request.prompt: c for c in decoder.run([Request(prompt, 12) for prompt in PROMPTS])}
    assert len(done) == len(PROMPTS)
    for prompt, completion in done.items():
        expected = oracle.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt)),
            max_new_tokens=12,
            do_sample=False,
            eos_token_id=stop,
            pad_token_id=0,
        )[0, len(prompt) :].tolist()
        assert list(completion.ids) == expected
        assert completion.step_map == tuple(range(1, len(expected) + 1))
        assert completion.n_forwards == len(expected) + (len(prompt) > 1)
        assert completion.finish_reason == ("stop" if expected[-1] == stop else "length")


def test_sampling_repeats_by_seed(model):
    config = AutoregressiveConfig(sampling=SamplingConfig(temperature=1.0))
    decoder = Decoder(model, config, mask_id=None, stop_ids=(), max_batch=2, max_length=48)
    ids = {
        c.request.key: c.ids for c in decoder.run([Request((5, 6), 10, seed=s, key=i) for i, s in enumerate((1, 2, 1))])
    }
    assert ids[0] == ids[2] != ids[1]


@torch.no_grad()
def test_sampled_tokens_and_their_confidence_by_hand(model):
    """Each token is the noise of its place and step under the distribution without the mask token; log p is before the
    temperature. A forward over everything that is known stands for the cache."""
    for forbidden in (None, greedy(model, (1, 2, 3), None)[0]):
        config = AutoregressiveConfig(sampling=SamplingConfig(temperature=0.8))
        decoder = Decoder(model, config, mask_id=forbidden, stop_ids=(), max_batch=2, max_length=48)
        for found in decoder.run([Request(prompt, 10, seed=7, key=i) for i, prompt in enumerate(((1, 2, 3), (40,)))]):
            known = list(found.request.prompt)
            for step, (token, log_confidence) in enumerate(zip(found.ids, found.log_confidence, strict=True)):
                logits = model.logits(model(torch.tensor([known]), torch.arange(len(known)), causal(len(known))))[0, -1]
                if forbidden is not None:
                    logits[forbidden] = float("-inf")
                (noise,) = uniforms_of(7, np.array([len(known)]), step)
                mass = (logits / 0.8).softmax(-1).cumsum(-1)
                assert token == int((mass <= float(noise)).sum())
                assert log_confidence == pytest.approx(float(logits.log_softmax(-1)[token]), abs=1e-4)
                known.append(token)


def causal(length):
    return DenseAttention(torch.ones(length, length, dtype=torch.bool).tril())


def greedy(model, prompt, mask_id):
    decoder = Decoder(model, AutoregressiveConfig(), mask_id=mask_id, stop_ids=(), max_batch=1, max_length=48)
    (found,) = decoder.run([Request(prompt, 12)])
    return found.ids


def test_the_mask_token_is_never_chosen(model):
    favourite = greedy(model, (1, 2, 3), None)[0]
    assert favourite not in greedy(model, (1, 2, 3), favourite)


@pytest.mark.parametrize("penalty", [1.6, 0.7])
@torch.no_grad()
def test_the_repetition_penalty_weighs_the_logits_of_known_tokens_as_transformers_does(model, penalty):
    """log p of each token, by a forward over what was known and transformers' own penalty; small logits among them."""
    process = pytest.importorskip("transformers").RepetitionPenaltyLogitsProcessor(penalty)
    config = AutoregressiveConfig(repetition_penalty=penalty)
    decoder = Decoder(model, config, mask_id=None, stop_ids=(), max_batch=2, max_length=48)
    for found in decoder.run([Request(prompt, 12) for prompt in PROMPTS]):
        known = list(found.request.prompt)
        for token, log_confidence in zip(found.ids, found.log_confidence, strict=True):
            logits = model.logits(model(torch.tensor([known]), torch.arange(len(known)), causal(len(known))))[0, -1:]
            weighed = process(torch.tensor([known]), logits)[0]
            assert token == int(weighed.argmax())
            assert log_confidence == pytest.approx(float(weighed.log_softmax(-1)[token]), abs=1e-4)
            known.append(token)
