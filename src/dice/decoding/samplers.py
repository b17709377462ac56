"""The decoder of each decoding: one line a sampler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dice.decoding.autoregressive import AutoregressiveConfig
from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.canvas import CanvasDecoder
from dice.decoding.decoder import Decoder, Engine, lacks_fast
from dice.decoding.dream import DreamConfig, DreamSchedule
from dice.decoding.llada import LladaConfig, LladaSchedule
from dice.decoding.requests import AnyDecoder
from dice.decoding.window import WindowConfig, WindowDecoder
from dice.model.transformer import ModelConfig, Transformer

Decoding = BlockDiffusionConfig | AutoregressiveConfig | LladaConfig | DreamConfig | WindowConfig


def lacks_fast_engine(model: ModelConfig, decoding: Decoding) -> str | None:
    """What the fast engine lacks for this decoding of this model; None: nothing."""
    if isinstance(decoding, BlockDiffusionConfig | AutoregressiveConfig):
        return lacks_fast(model, decoding)
    return "decoding without blocks"


def memory_layout(decoding: Decoding) -> dict[str, Any]:
    """What `plan_memory` has to know of a decoding."""
    if isinstance(decoding, LladaConfig | DreamConfig):
        return {"block": 1, "canvas": True}
    if isinstance(decoding, WindowConfig):
        return {"block": 2 * decoding.window, "beyond": 2 * decoding.window}
    return {"block": decoding.block_size if isinstance(decoding, BlockDiffusionConfig) else 1}


def make_decoder(
    model: Transformer,
    decoding: Decoding,
    *,
    mask_id: int | None,
    stop_ids: Iterable[int],
    max_batch: int,
    max_length: int,
    engine: Engine = "plain",
) -> AnyDecoder:
    """The decoder for `decoding`; `max_length` bounds the positions of one answer. Raises DiceError."""
    given: dict[str, Any] = {
        "mask_id": mask_id,
        "stop_ids": tuple(stop_ids),
        "max_batch": max_batch,
        "max_length": max_length,
    }
    if isinstance(decoding, LladaConfig):
        if decoding.compat == "released":  # the vendor's loop has no end: words behind it are part of the answer
            given["stop_ids"] = ()
        return CanvasDecoder(model, LladaSchedule(decoding), **given)
    if isinstance(decoding, DreamConfig):
        return CanvasDecoder(model, DreamSchedule(decoding), **given)
    if isinstance(decoding, WindowConfig):
        return WindowDecoder(model, decoding, **given)
    return Decoder(model, decoding, engine=engine, **given)
