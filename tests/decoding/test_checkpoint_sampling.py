"""A checkpoint's own sampling defaults, against transformers' reading of the same file."""

from __future__ import annotations

import json

import pytest

from dice.decoding.autoregressive import AutoregressiveConfig
from dice.decoding.checkpoint_sampling import checkpoint_sampling
from dice.errors import DiceError

QWEN3 = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [151645, 151643]}


@pytest.mark.parametrize(
    "values",
    [
        QWEN3,
        QWEN3 | {"do_sample": False},
        {"do_sample": False, "temperature": 0.0},
        {"eos_token_id": 5},
        {"do_sample": True},
        {"do_sample": True, "temperature": 0.8},
        {"do_sample": True, "top_k": 0, "top_p": 0.9},
        QWEN3 | {"repetition_penalty": 1.05},
        {"repetition_penalty": 1.1},
        QWEN3 | {"repetition_penalty": 1.0, "num_beams": 1, "min_p": None},
    ],
)
def test_the_defaults_are_those_of_transformers(tmp_path, values):
    transformers = pytest.importorskip("transformers")
    (tmp_path / "generation_config.json").write_text(json.dumps(values))
    theirs = transformers.GenerationConfig.from_pretrained(tmp_path)
    found = checkpoint_sampling(tmp_path)
    assert found.repetition_penalty == (theirs.repetition_penalty or 1.0)
    ours = found.sampling
    assert (not ours.greedy) == bool(theirs.do_sample)
    if theirs.do_sample:
        usual = {"temperature": 1.0, "top_k": 50, "top_p": 1.0}  # newer versions keep None until they generate
        for name, value in usual.items():
            given = getattr(theirs, name)
            assert getattr(ours, name) == (value if given is None else given), name


def test_without_a_file_it_is_greedy(tmp_path):
    assert checkpoint_sampling(tmp_path) == AutoregressiveConfig()


OFF = {
    "encoder_repetition_penalty": 1.0, "typical_p": 1.0, "min_p": 0.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0,
    "no_repeat_ngram_size": 0, "num_beams": 1, "penalty_alpha": 0.0, "guidance_scale": 1.0,
}  # fmt: skip
"""Settings of transformers and the values at which they change nothing, by its documentation."""


@pytest.mark.parametrize("name", OFF)
def test_a_setting_that_is_off_is_no_setting(tmp_path, name):
    file = tmp_path / "generation_config.json"
    file.write_text(json.dumps(QWEN3 | {name: OFF[name]}))
    assert checkpoint_sampling(tmp_path).sampling.top_k == 20
    for other in (OFF[name] + 1, OFF[name] - 0.5):
        file.write_text(json.dumps(QWEN3 | {name: other}))
        with pytest.raises(DiceError, match=f"{name} .* is not supported"):
            checkpoint_sampling(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (json.dumps(QWEN3 | {"min_p": 0.1}), "min_p 0.1 is not supported"),
        (json.dumps({"num_beams": 4}), "num_beams 4 is not supported"),
        (json.dumps(QWEN3 | {"temperature": 0.0}), "temperature 0 is not supported"),
        (json.dumps(QWEN3 | {"top_p": 0}), "top_p 0 is not supported"),
        (json.dumps({"repetition_penalty": 0}), "repetition_penalty 0 is not supported"),
        (json.dumps(QWEN3 | {"temperature": "hot"}), "the sampling cannot be read"),
        (json.dumps(QWEN3 | {"top_p": 1.5}), "the sampling cannot be read"),
        (json.dumps({"repetition_penalty": [1]}), "the sampling cannot be read"),
        ("{", "not valid JSON"),
        ("[]", "expected a JSON object"),
    ],
)
def test_what_the_decoder_lacks_is_refused(tmp_path, text, sentence):
    (tmp_path / "generation_config.json").write_text(text)
    with pytest.raises(DiceError, match=sentence):
        checkpoint_sampling(tmp_path)
