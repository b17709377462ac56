"""What the plan of the memory and the fast engine are told of each decoding, and settings that no decoding can have."""

from __future__ import annotations

import gc
import weakref
from itertools import islice

import pytest
from tiny_models import make_config

from dice.config import parse_config
from dice.decoding.autoregressive import AutoregressiveConfig
from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.dream import DreamConfig
from dice.decoding.llada import LladaConfig
from dice.decoding.requests import Request
from dice.decoding.samplers import lacks_fast_engine, make_decoder, memory_layout
from dice.decoding.sampling import SamplingConfig
from dice.decoding.window import WindowConfig
from dice.errors import DiceError
from dice.model.transformer import Transformer


def test_the_memory_of_each_decoding():
    """Rows of a step and answer: a block, one token, twice a window; a canvas has no cache."""
    assert memory_layout(BlockDiffusionConfig(block_size=8)) == {"block": 8}
    assert memory_layout(AutoregressiveConfig()) == {"block": 1}
    assert memory_layout(LladaConfig()) == memory_layout(DreamConfig()) == {"block": 1, "canvas": True}
    window = WindowConfig(window=5)
    assert memory_layout(window) == {"block": 10, "beyond": 10}
    assert window.positions(100, 20) == 100 + 20 + memory_layout(window)["beyond"]


@pytest.mark.parametrize(
    ("changes", "decoding", "lacks"),
    [
        ({}, BlockDiffusionConfig(), None),
        ({}, BlockDiffusionConfig(ends="budget"), "partial last block"),
        ({"model_type": "qwen3"}, AutoregressiveConfig(), None),
        ({"model_type": "qwen3"}, AutoregressiveConfig(repetition_penalty=1.1), "repetition penalty"),
        ({"model_type": "qwen2", "qk_norm": False}, AutoregressiveConfig(), "heads without a norm"),
        ({"model_type": "wedlm", "attention_bias": True}, BlockDiffusionConfig(), "bias of query, key and value"),
        ({"model_type": "llada", "qk_norm": False}, LladaConfig(), "decoding without blocks"),
        ({"model_type": "wedlm"}, WindowConfig(), "decoding without blocks"),
    ],
)
def test_what_the_fast_engine_lacks(changes, decoding, lacks):
    assert lacks_fast_engine(make_config(**changes), decoding) == lacks


@pytest.mark.parametrize(
    ("config", "name", "least"),
    [
        (SamplingConfig, "top_k", 0),
        (SamplingConfig, "temperature", 0),
        (LladaConfig, "steps", 1),
        (LladaConfig, "block_size", 1),
        (DreamConfig, "steps", 1),
        (BlockDiffusionConfig, "block_size", 1),
        (BlockDiffusionConfig, "denoising_steps", 1),
        (BlockDiffusionConfig, "threshold", 0),
        (WindowConfig, "window", 1),
        (WindowConfig, "threshold", 0),
        (WindowConfig, "position_penalty", 0),
    ],
)
def test_the_least_value_of_a_setting(config, name, least):
    assert getattr(parse_config(config, {name: least}, "test"), name) == least
    for less in (least - 1, least - 0.5):
        with pytest.raises(DiceError, match=name):
            parse_config(config, {name: less}, "test")


@pytest.mark.parametrize(
    ("name", "kept", "refused"),
    [("top_p", (1.0, 1e-9), (0.0, -0.5, 1.0001)), ("temperature", (0.0, 50.0), (-1e-9, -0.5))],
)
def test_a_share_is_above_0_and_at_most_1_and_a_temperature_not_below_0(name, kept, refused):
    for value in kept:
        assert getattr(parse_config(SamplingConfig, {name: value}, "test"), name) == value
    for value in refused:
        with pytest.raises(DiceError, match=name):
            parse_config(SamplingConfig, {name: value}, "test")


def test_the_defaults_of_block_diffusion_are_those_of_the_released_script():
    config = BlockDiffusionConfig()
    assert (config.strategy, config.block_size, config.denoising_steps, config.threshold) == ("static", 4, 4, 0.9)
    assert config.sampling == SamplingConfig(temperature=0.0, top_k=0, top_p=1.0)


@pytest.mark.parametrize(
    ("changes", "decoding"),
    [
        ({}, BlockDiffusionConfig()),
        ({"model_type": "qwen3"}, AutoregressiveConfig()),
        ({"model_type": "llada", "qk_norm": False}, LladaConfig(steps=4, block_size=4)),
        ({"model_type": "dream", "qk_norm": False}, DreamConfig(steps=4)),
        ({"model_type": "wedlm"}, WindowConfig()),
    ],
)
def test_a_decoders_memory_is_free_when_its_last_name_goes(changes, decoding):
    """The next batch makes its cache then: nothing may wait for the collector, not after a run that was left early either."""
    config = make_config(**changes)
    model = Transformer(config).eval()
    requests = [Request((1, 2, 3), 4, seed) for seed in range(3)]
    gc.disable()
    try:
        for answers in (3, 1):
            decoder = make_decoder(
                model, decoding, mask_id=config.vocab_size - 1, stop_ids=(), max_batch=2, max_length=64
            )
            running = decoder.run(requests)
            assert len(list(islice(running, answers))) == answers
            gone = weakref.ref(decoder)
            del running, decoder
            assert gone() is None
    finally:
        gc.enable()
