"""The recipes of the base models name settings that exist, and small enough models."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice.config import load_config
from dice.data.synthetic.stage import SynthConfig
from dice.errors import DiceError
from dice.model.transformer import ModelConfig
from dice.training.sft_config import SftConfig

BASE = Path(__file__).resolve().parents[2] / "experiments" / "base"


@pytest.mark.parametrize(("scale", "vocabulary", "least", "most"), [("tiny", 1024, 1e6, 4e6), ("nano", 2048, 2e7, 3e7)])
def test_recipes_of_the_base_models(scale, vocabulary, least, most):
    given = {"pairs": ["p.jsonl"], "out": "run"}
    config = load_config(SftConfig, BASE / f"{scale}.yaml", [], given)
    geometry = ModelConfig(vocab_size=vocabulary, **config.geometry.__dict__)
    assert least < geometry.matmul_parameters + geometry.head_parameters < most
    assert load_config(SynthConfig, BASE / f"{scale}-corpus.yaml", [], {"out": "p.jsonl"}).generator.scale == scale
    with pytest.raises(DiceError, match="windoww"):
        load_config(SftConfig, BASE / f"{scale}.yaml", ["windoww=3"], given)
