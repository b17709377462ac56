"""How a checkpoint says that it is to be sampled: generation_config.json, as transformers' `generate` reads it.

What the file leaves out has transformers' default: no sampling; with sampling temperature 1, top-k 50, top-p 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dice.decoding.autoregressive import AutoregressiveConfig
from dice.decoding.sampling import SamplingConfig
from dice.errors import DiceError
from dice.jsonl import read_object
from dice.model.checkpoint import GENERATION_CONFIG

_NEUTRAL = {
    "encoder_repetition_penalty": 1.0,
    "typical_p": 1.0,
    "min_p": 0.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "no_repeat_ngram_size": 0,
    "num_beams": 1,
    "penalty_alpha": 0.0,
    "guidance_scale": 1.0,
}
"""Settings that change the answers and that the decoder lacks, with the value that changes nothing."""


def checkpoint_sampling(folder: str | Path) -> AutoregressiveConfig:
    """The sampling that the checkpoint asks for; greedy where it says nothing.

    Raises DiceError for a file that cannot be read, and for a setting that the decoder lacks.
    """
    path = Path(folder) / GENERATION_CONFIG
    if not path.is_file():
        return AutoregressiveConfig()
    values = read_object(path)
    for name, neutral in _NEUTRAL.items():
        if values.get(name) not in (None, neutral):
            raise DiceError(f"{path}: {name} {values[name]} is not supported; say how to sample in `autoregressive`.")
    read = ("temperature", "top_p", "repetition_penalty") if values.get("do_sample") else ("repetition_penalty",)
    for name in read:
        if values.get(name) == 0:  # transformers refuses the first and the last, and takes the arg-max at the second
            raise DiceError(f"{path}: {name} 0 is not supported; say how to sample in `autoregressive`.")
    try:
        return _config_from(values)
    except (TypeError, ValueError) as error:
        raise DiceError(
            f"{path}: the sampling cannot be read ({error}); say how to sample in `autoregressive`."
        ) from error


def _config_from(values: Mapping[str, Any]) -> AutoregressiveConfig:
    penalty = float(values.get("repetition_penalty") or 1.0)
    if not values.get("do_sample"):
        return AutoregressiveConfig(repetition_penalty=penalty)
    temperature, top_p = (float(values.get(name) or 1.0) for name in ("temperature", "top_p"))
    sampling = SamplingConfig(temperature=temperature, top_p=top_p, top_k=int(values.get("top_k", 50) or 0))
    return AutoregressiveConfig(sampling=sampling, repetition_penalty=penalty)
