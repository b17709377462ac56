"""Memory of training by arithmetic: beside what GPUs were measured to take, by hand, and refused before a weight is read."""

from __future__ import annotations

import json

import pytest
from rl_start import make_start
from rl_start import settings as rl_settings
from sft_start import make_data, settings

from dice.cli import main
from dice.config import parse_config
from dice.errors import DiceError
from dice.model.transformer import ModelConfig
from dice.training.memory import TrainingMemory, activations, rl_memory, rollout_slots, sft_memory, state_bytes
from dice.training.rl import rl
from dice.training.rl_config import RlConfig
from dice.training.sft import sft
from dice.training.sft_config import SftConfig

GIB = 2**30
WIDTHS = {"1.7B": (2048, 6144, 28, 16), "4B": (2560, 9728, 36, 32), "8B": (4096, 12288, 36, 32)}
EIGHT = 8_190_735_360
"""Parameters at 8B: 36 x (2 x 4,096 x 4,096 + 2 x 4,096 x 1,024 + 3 x 4,096 x 12,288 + 2 x 4,096 + 2 x 128), two matrices
of 151,936 x 4,096, one norm."""


def geometry(size: str) -> ModelConfig:
    """As in benchmarks/decoding.py: nothing is tied."""
    width, mlp, layers, heads = WIDTHS[size]
    return ModelConfig(
        vocab_size=151936,
        hidden_size=width,
        intermediate_size=mlp,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=8,
        head_dim=128,
    )


def sft_config(**changes) -> SftConfig:
    return parse_config(SftConfig, {"pairs": ["x"], "out": "x"} | changes, "test")


def rl_config(**changes) -> RlConfig:
    return parse_config(RlConfig, {"model": "x", "out": "x", "phases": [{"problems": ["x"]}]} | changes, "test")


@pytest.mark.parametrize(
    ("size", "gpus", "engine", "layers", "gates", "measured_gib"),
    [
        ("8B", 2, "zero2", 0, True, 119),
        ("8B", 2, "zero2", 9, True, 110),
        ("8B", 2, "zero2", 18, False, 105),
        ("8B", 2, "zero2", True, False, 83),
        ("8B", 2, "zero3", True, False, 77),
        ("4B", 1, "local", 0, False, 114),
        ("4B", 1, "local", 0, True, 108),
        ("4B", 1, "local", True, False, 75),
        ("1.7B", 1, "local", 0, False, 56),
        ("1.7B", 1, "local", True, False, 35),
    ],
)
def test_fine_tuning_takes_no_more_and_not_much_less(size, gpus, engine, layers, gates, measured_gib):
    """docs/measurements/fine-tuning.md: packs of 6,144 tokens, of which 60 % are answer."""
    config = sft_config(engine=engine, activation_checkpointing=layers, recompute_gates=gates)
    total = sft_memory(config, geometry(size), gpus, 2, answer_share=0.6).total / GIB
    assert measured_gib <= total <= 1.11 * measured_gib


@pytest.mark.parametrize(("engine", "measured_gib"), [("zero2", 100), ("zero3", 93)])
def test_an_update_of_reinforcement_learning_takes_no_more_and_not_much_less(engine, measured_gib):
    """docs/measurements/reinforcement-learning.md: two GPUs, the decoder's cache gone."""
    config = rl_config(
        engine=engine,
        rollout={"max_batch": 64, "max_new_tokens": 1024, "release": True},
        objective={"micro_batch_rows": 16384},
    )
    memory = rl_memory(config, geometry("8B"), 2, 2, prompt=900)
    update = (memory.state + memory.copies + memory.activations) / GIB
    assert measured_gib <= update <= 1.05 * measured_gib


@pytest.mark.parametrize(
    ("engine", "gpus", "itemsize", "expected"),
    [
        ("local", 1, 2, 18 * EIGHT),
        ("local", 1, 4, 16 * EIGHT),
        ("local", 4, 2, 18 * EIGHT),
        ("zero2", 8, 2, 4 * EIGHT + 800_000_000),
        ("zero2", 2, 2, 10 * EIGHT + 800_000_000),
        ("zero3", 2, 2, 9 * EIGHT + 800_000_000 + 2_000_000_000),
    ],
)
def test_weights_and_their_state_by_hand(engine, gpus, itemsize, expected):
    assert state_bytes(geometry("8B"), engine, gpus, itemsize) == expected


def test_activations_by_hand():
    """A model of two layers, fp32, 10 rows: what a layer keeps, and a layer worked on or the logits of 5 targets."""
    small = ModelConfig(
        vocab_size=100, hidden_size=8, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=4,
    )  # fmt: skip
    kept = 4 * (8 + 8 + 4) + 3 * 16  # values a row and layer
    head = 5 * 100 * 20 + 2 * 100 * 8 * 4

    def taken(rows: int, checkpointing: bool | int | None) -> int:
        return activations(sft_config(activation_checkpointing=checkpointing, head_chunk=5), small, rows, 4)

    assert taken(10, False) == 10 * 4 * 2 * kept + head
    assert taken(10, None) == 10 * 4 * 2 * kept + head, "narrow: nothing again"
    assert taken(10, 1) == 10 * 4 * (kept + 8) + head
    assert taken(10, True) == 10 * 4 * 2 * 8 + head
    layer = 1000 * (8 * (12 + 24) + (2 + 2) * 4 * (8 + 24) + 4 * 16 * 4)
    assert taken(1000, True) == 1000 * 4 * 2 * 8 + layer


def test_a_cache_that_stays_counts_beside_the_update():
    assert TrainingMemory(5, activations=3, copies=4, answers=2, freed=False).total == 14
    assert TrainingMemory(5, activations=3, copies=4, answers=2).total == 12
    assert TrainingMemory(5, activations=2, copies=4, answers=3).total == 12


def test_copies_of_the_weights_are_those_that_a_run_has():
    def copies(**changes) -> float:
        return rl_memory(rl_config(**changes), geometry("8B"), 2, 2, prompt=900).copies / (2 * EIGHT)

    assert copies(engine="local") == 0
    assert copies(engine="zero3") == 1
    assert copies(engine="zero3", objective={"kl_reference": "start_model"}) == 2


@pytest.mark.parametrize(
    ("changes", "gpus", "slots"),
    [
        ({}, 1, 20),
        ({}, 2, 12),  # the first of two processes has three of five problems
        ({"max_batch": 8}, 2, 8),
        ({"pool": {"answers": 4}}, 2, 64),  # pools have as many problems as there are
    ],
)
def test_a_process_decodes_its_share_of_a_step_at_a_time(changes, gpus, slots):
    rollout = {"problems_per_step": 5, "samples": 4, "max_batch": changes.get("max_batch", 64)}
    config = rl_config(rollout=rollout, pool=changes.get("pool", {}))
    assert rollout_slots(config, gpus) == slots


def test_decoding_of_a_step_by_hand():
    """12 answers and a row of padding, of 900 + 1,024 tokens with 147,456 bytes of keys and values; 319,488 bytes of
    activations for each of the 16,384 tokens that are prefilled together."""
    rollout = {"problems_per_step": 5, "samples": 4, "max_batch": 64, "max_new_tokens": 1024, "engine": "fast"}

    def taken(**objective) -> TrainingMemory:
        return rl_memory(rl_config(rollout=rollout, objective=objective), geometry("8B"), 2, 2, prompt=900)

    assert taken().answers == 13 * 1924 * 147_456 + 16_384 * 319_488
    least = 900 + 1024 + 4 * 1024  # where each forward fixes one token
    assert taken(micro_batch_rows=1).activations == activations(rl_config(), geometry("8B"), 6144, 2) > 0
    assert taken(micro_batch_rows=least).activations == taken(micro_batch_rows=1).activations
    assert taken(micro_batch_rows=2 * least).activations > taken(micro_batch_rows=1).activations


def test_8b_on_one_gpu_is_refused_and_on_eight_it_is_not():
    card = int(79.1 * GIB)
    sft_memory(sft_config(engine="zero2"), geometry("8B"), 8, 2).check(card)
    with pytest.raises(
        DiceError, match=r"up to 14\d\.\d GiB of each GPU \(weights .* there are 79\.1 GiB; take more GPUs"
    ):
        sft_memory(sft_config(), geometry("8B"), 1, 2).check(card)


def nothing_is_read(*args, **given):
    raise AssertionError("weights were read")


def test_fine_tuning_says_what_it_takes_and_is_refused_before_weights_are_made(tmp_path, monkeypatch, capsys):
    data = make_data(tmp_path)
    file = tmp_path / "sft.yaml"
    file.write_text(json.dumps(settings(data, tmp_path / "run", max_steps=1)))
    assert main(["sft", "--config", str(file)]) == 0
    assert "sft: up to 0.0 GiB of each GPU (weights and their state 0.0, activations 0.0)" in capsys.readouterr().err
    monkeypatch.setattr("dice.training.sft.Transformer", nothing_is_read)
    with pytest.raises(DiceError, match=r"training takes up to .* set memory_gib"):
        sft(parse_config(SftConfig, settings(data, tmp_path / "other", memory_gib=1e-4), "test"))


def test_reinforcement_learning_is_refused_before_weights_are_read(tmp_path, monkeypatch):
    start = make_start(tmp_path, steps=1)
    monkeypatch.setattr("dice.training.rl.load_model", nothing_is_read)
    given = rl_settings(start, tmp_path / "run", memory_gib=1e-4)
    with pytest.raises(DiceError, match=r"training takes up to .* decoding .* set memory_gib"):
        rl(parse_config(RlConfig, given, "test"))
