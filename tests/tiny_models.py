"""Small models with weights large enough that every part matters, and transformers' Qwen3 with the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from dice.model.attention_masks import DenseAttention, block_causal_layout
from dice.model.checkpoint import save_state
from dice.model.transformer import ModelConfig, Transformer


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tiny models are fastest on one thread; more only wait for each other. For the conftest of a folder."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def make_config(heads: int = 4, kv_heads: int = 2, head_dim: int = 16, **changes) -> ModelConfig:
    values: dict[str, Any] = {
        "vocab_size": 97,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 3,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
    }
    return ModelConfig(**(values | changes))


def make_model(config: ModelConfig, seed: int = 0) -> Transformer:
    """Weights large enough that every part matters, norms included."""
    model = Transformer(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.3 * noise if parameter.dim() == 1 else 0.15 * noise)
    return model.eval()


def save_model(model: Transformer, folder: Path, **options) -> None:
    """The model as a checkpoint's folder; `options`: of `save_state`."""
    state = model.state_dict()
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight")
    save_state(state, model.config, folder, **options)


@torch.no_grad()
def causal_logits(model: Transformer, ids: torch.Tensor) -> torch.Tensor:
    """Scores of every position, each of which sees itself and what came before."""
    attend = DenseAttention(block_causal_layout(ids.shape[1], 1).dense())
    return model.logits(model(ids, torch.arange(ids.shape[1]), attend))


def oracle_of(model: Transformer):
    transformers = pytest.importorskip("transformers")
    config = model.config
    settings = transformers.Qwen3Config(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        num_key_value_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        rms_norm_eps=config.rms_norm_eps,
        tie_word_embeddings=config.tie_word_embeddings,
        max_position_embeddings=config.max_position_embeddings,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
        attn_implementation="eager",
    )
    oracle = transformers.Qwen3ForCausalLM(settings).eval()
    oracle.load_state_dict(model.state_dict(), strict=True)
    return oracle


STOCK = {"qwen2": "Qwen2", "qwen3": "Qwen3", "llama": "Llama"}
"""Our family -> transformers' name of it."""


def stock(name: str, folder: Path, *, tied: bool = False, **changes):
    """A tiny model of transformers' own class, saved to `folder`."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    sizes = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-3}
    rope = {"rope_type": "default", "rope_theta": 5000.0}
    config = getattr(transformers, f"{STOCK[name]}Config")(
        **(sizes | {"bos_token_id": None, "eos_token_id": None} | changes),
        rope_parameters=rope,
        tie_word_embeddings=tied,
        attn_implementation="eager",
    )
    model = getattr(transformers, f"{STOCK[name]}ForCausalLM")(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 1.0 if parameter.dim() == 1 else 0.0, 0.3 if parameter.dim() == 1 else 0.2)
    model.save_pretrained(folder)
    return model
