"""The vendors' own models and loops for canvas_decoding.py: LLaDA's generate.py, Dream's generation_utils.py.

`--vendor DIR` names a folder of checkouts with LLaDA (ML-GSAI/LLaDA at b7e6c35: generate.py) and dLLM-RL (Gen-Verse/dLLM-RL
at 10b4fd1: models/llada and models/dream, the modelling files of the hub). They run with transformers 4.57.6, not with 5.
Nothing of them is part of this repository. Their models get our weights, not copies, so both run beside each other.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dice.model.families import FAMILIES
from dice.model.transformer import ModelConfig, Transformer
from dice.standins.checkpoints import published_name

LLADA_CONSTANTS = {
    "rope_full_precision": True,
    "flash_attention": False,  # as the checkpoint's config.json has it: PyTorch's own attention, which is flash, too
    "attention_dropout": 0.0,
    "residual_dropout": 0.0,
    "embedding_dropout": 0.0,
}


def mask_of(config: ModelConfig) -> int:
    """Id of the mask token; the last one of a small model's vocabulary."""
    return min(FAMILIES[config.model_type].mask or 0, config.vocab_size - 1)


def synchronise() -> None:
    """Wait for the GPU, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def vendor_config(config: ModelConfig) -> dict[str, Any]:
    """config.json's fields, as the vendor calls them."""
    family = FAMILIES[config.model_type]
    theirs = {ours: name for name, ours in family.config_names.items()}
    values = {theirs.get(name, name): value for name, value in dataclasses.asdict(config).items()}
    return values | dict(family.must_be)


def vendor_model(root: Path, model: Transformer) -> nn.Module:
    """The vendor's model with the weights of ours."""
    config = model.config
    values = vendor_config(config)
    sys.modules["models"] = package = types.ModuleType("models")  # its own __init__ asks for more than these two need
    package.__path__ = [str(root / "dLLM-RL" / "models")]
    device = model.lm_head.weight.device
    with torch.device("meta"):
        if config.model_type == "llada":
            module = importlib.import_module("models.llada.modeling_llada")
            wanted = {field.name for field in dataclasses.fields(module.ModelConfig)}
            given = {name: value for name, value in values.items() if name in wanted}
            given |= LLADA_CONSTANTS | {"vocab_size": values["embedding_size"], "pad_token_id": 0, "eos_token_id": 0}
            given["mask_token_id"] = mask_of(config)
            settings = module.LLaDAConfig(**given, use_cache=False)
            inner = module.create_model_config_from_pretrained_config(settings)
            inner.init_device = "meta"
            vendor = module.LLaDAModelLM(settings, model=module.LLaDAModel(inner, init_params=False))
        else:
            module = importlib.import_module("models.dream.modeling_dream")
            names = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
            names += ("num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "rope_theta")
            given = {name: values[name] for name in names} | {"attn_implementation": "sdpa", "pad_token_id": 0}
            vendor = module.DreamModel(module.DreamConfig(**given))
    family = FAMILIES[config.model_type]
    weights = {published_name(name, family): tensor for name, tensor in model.state_dict().items()}
    vendor.load_state_dict(weights, assign=True)
    if config.model_type == "dream":  # angles are no weights: made anew where the weights are
        with torch.device(device):
            angles = type(vendor.model.rotary_emb)(config=vendor.config)
        for part in (vendor.model, *(layer.self_attn for layer in vendor.model.layers)):
            part.rotary_emb = angles
    return vendor.eval()


@torch.no_grad()
def likeness(model: Transformer, vendor: nn.Module, tokens: Tensor) -> float:
    """Cosine of the logits of ours and the vendor's at the last 64 of `tokens` [n]: 1 but for rounding."""
    from dice.model.attention_masks import PackedAttention

    positions = torch.arange(len(tokens), device=tokens.device)
    ours = model.logits(model(tokens[None], positions[None], PackedAttention([len(tokens)]))[0, -64:])
    given = () if model.config.model_type == "llada" else ("full", None)
    theirs = vendor(tokens[None], *given).logits[0, -64:]
    return float(nn.functional.cosine_similarity(ours.float().flatten(), theirs.float().flatten(), 0))


class _Enough(Exception):
    """Ends a loop that has been timed long enough."""


def vendor_seconds(
    root: Path, vendor: nn.Module, prompts: Tensor, mask: int, new: int, steps: int, most: int
) -> list[float]:
    """Seconds of each step of the vendor's loop, `steps` steps for `new` tokens behind `prompts` [batch, length].

    The loop is ended before its step number `most` + 1. LLaDA's: greedy, blocks of 32. Dream's: as the paper's script.
    """
    begun: list[float] = []
    forward = vendor.forward

    def counted(*args: Any, **given: Any) -> Any:
        synchronise()
        begun.append(time.perf_counter())
        if len(begun) > most:
            raise _Enough
        return forward(*args, **given)

    loop: Callable[[], object]
    if type(vendor).__name__ == "LLaDAModelLM":
        sys.path.insert(0, str(root / "LLaDA"))
        generate = importlib.import_module("generate").generate

        def loop() -> object:
            return generate(
                vendor, prompts, steps=steps, gen_length=new, block_length=32, temperature=0.0, mask_id=mask
            )
    else:

        def loop() -> object:
            return vendor.diffusion_generate(  # pyright: ignore[reportCallIssue]
                prompts, max_new_tokens=new, steps=steps, alg="entropy", eps=1e-3, alg_temp=0.0, temperature=0.2,
                top_p=0.95, top_k=50, mask_token_id=mask,
            )  # fmt: skip

    vendor.forward = counted
    try:
        with torch.no_grad():
            loop()
            synchronise()
            begun.append(time.perf_counter())
    except _Enough:
        pass
    finally:
        vendor.forward = forward
    return [later - earlier for earlier, later in itertools.pairwise(begun)]
