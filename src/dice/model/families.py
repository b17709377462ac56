"""The model families whose published checkpoints are read, and how they differ: one entry each.

All families share one transformer (`dice.model.transformer`) with two switches. Whatever else differs stands in this
table, so a new family is a new entry; a new way of decoding is a new module of `dice.decoding`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ModelType = Literal["sdar", "qwen3", "qwen2", "llama", "llada", "dream", "stable_diffcoder", "wedlm"]
Sampler = Literal["block_diffusion", "llada", "dream", "window", "autoregressive"]


@dataclass(frozen=True, kw_only=True)
class Family:
    """What a checkpoint of the family looks like, and how it is decoded."""

    checkpoints: str
    """Published checkpoints of the paper's tables."""
    sampler: Sampler
    """Field of GenerateConfig that holds the decoding, with the vendor's settings as defaults. `block_diffusion` and
    `autoregressive` use the key-value cache; `llada` and `dream` see all positions at each step; `window` is causal over
    a window in which filled tokens stand before masks."""
    qk_norm: bool | None
    """Heads are normed; None: config.json's field `qk_norm` says so."""
    attention_bias: bool | None
    """Query, key and value have a bias; None: config.json's field `attention_bias` says so."""
    predicts_next: bool
    """Position i predicts token i + 1, not token i."""
    mask: int | None = None
    """Id of the mask token."""
    ends: tuple[int, ...] = ()
    """Ids that end an answer; none: `eos_token_id` of the checkpoint's generation_config.json or config.json."""
    end_strings: tuple[str, ...] = ()
    """Tokens that end an answer in those checkpoints of the family that have them."""
    pad: int | None = None
    """Id of the padding token; None: the first end."""
    chat: Literal["ours", "checkpoint"] = "checkpoint"
    """Markup around a prompt: the checkpoint's own template, or `ours`: the same text, which training uses too."""
    config_names: Mapping[str, str] = field(default_factory=dict)
    """config.json's name of a field -> ours, where they differ."""
    must_be: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of config.json, and the only value of each that is supported."""
    weight_names: Mapping[str, str] = field(default_factory=dict)
    """A tensor's name -> ours, where they differ; N stands for a layer's number."""
    keeps_declared_dtype: bool = False
    """The weights have the type that config.json declares; other vendors' files do not always."""


_QWEN_ENDS = (151645, 151643)
_QWEN_PLAIN = {"hidden_act": "silu", "use_sliding_window": False}
_LLAMA_PLAIN = {"hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
_LLADA_LAYER = {
    "attn_norm": "input_layernorm",
    "ff_norm": "post_attention_layernorm",
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "ff_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "ff_out": "mlp.down_proj",
}

FAMILIES: dict[ModelType, Family] = {
    "sdar": Family(
        checkpoints="JetLM/SDAR-*-Chat, Gen-Verse/TraDo-*-Instruct, DeadlyKitt3n/DICE-*",
        sampler="block_diffusion",
        qk_norm=True,
        attention_bias=False,
        predicts_next=False,
        mask=151669,
        ends=_QWEN_ENDS,
        pad=151643,
        chat="ours",
        must_be=_QWEN_PLAIN | {"attention_bias": False},
        keeps_declared_dtype=True,
    ),
    "qwen3": Family(
        checkpoints="Qwen/Qwen3-*, ByteDance-Seed/cudaLLM-8B",
        sampler="autoregressive",
        qk_norm=True,
        attention_bias=False,
        predicts_next=True,
        ends=_QWEN_ENDS,
        pad=151643,
        chat="ours",
        must_be=_QWEN_PLAIN | {"attention_bias": False},
        keeps_declared_dtype=True,
    ),
    "qwen2": Family(
        checkpoints="Qwen/Qwen2.5-Coder-*-Instruct, cognition-ai/Kevin-32B",
        sampler="autoregressive",
        qk_norm=False,
        attention_bias=True,
        predicts_next=True,
        must_be=_QWEN_PLAIN,
    ),
    "llama": Family(
        checkpoints="ByteDance-Seed/Seed-Coder-8B-Reasoning, deepseek-ai/deepseek-coder-7b-instruct-v1.5",
        sampler="autoregressive",
        qk_norm=False,
        attention_bias=False,  # where Llama's config has a bias, the output's projection has one too
        predicts_next=True,
        must_be=_LLAMA_PLAIN,
    ),
    "llada": Family(
        checkpoints="GSAI-ML/LLaDA-8B-Instruct, GSAI-ML/LLaDA-1.5",
        sampler="llada",
        qk_norm=False,
        attention_bias=False,
        predicts_next=False,
        mask=126336,
        ends=(126348, 126081),
        pad=126081,
        config_names={
            "d_model": "hidden_size",
            "mlp_hidden_size": "intermediate_size",
            "n_layers": "num_hidden_layers",
            "n_heads": "num_attention_heads",
            "n_kv_heads": "num_key_value_heads",
            "embedding_size": "vocab_size",  # rows of the embedding: more than the `vocab_size` that it declares
            "max_sequence_length": "max_position_embeddings",
            "weight_tying": "tie_word_embeddings",
        },
        must_be={
            "block_type": "llama",
            "activation_type": "silu",
            "layer_norm_type": "rms",
            "rope": True,
            "alibi": False,
            "include_bias": False,
            "include_qkv_bias": False,
            "attention_layer_norm": False,
            "input_emb_norm": False,
            "scale_logits": False,
        },
        weight_names={
            "model.transformer.wte.weight": "model.embed_tokens.weight",
            "model.transformer.ln_f.weight": "model.norm.weight",
            "model.transformer.ff_out.weight": "lm_head.weight",
        }
        | {f"model.transformer.blocks.N.{a}.weight": f"model.layers.N.{b}.weight" for a, b in _LLADA_LAYER.items()},
    ),
    "dream": Family(
        checkpoints="Dream-org/Dream-v0-Instruct-7B, Dream-org/Dream-Coder-v0-Instruct-7B, apple/DiffuCoder-7B-Instruct",
        sampler="dream",
        qk_norm=False,
        attention_bias=True,
        predicts_next=True,
        mask=151666,
        ends=_QWEN_ENDS,
        end_strings=("<|dlm_pad|>",),
        pad=151643,
        must_be=_QWEN_PLAIN,
    ),
    "stable_diffcoder": Family(
        checkpoints="ByteDance-Seed/Stable-DiffCoder-8B-Instruct",
        sampler="block_diffusion",
        qk_norm=False,
        attention_bias=False,
        predicts_next=False,
        mask=5,
        ends=(2,),
        pad=1,
        must_be=_LLAMA_PLAIN,
    ),
    "wedlm": Family(
        checkpoints="tencent/WeDLM-8B-Instruct",
        sampler="window",
        qk_norm=None,
        attention_bias=None,
        predicts_next=False,
        mask=151665,
        ends=_QWEN_ENDS,
        pad=151643,
        must_be=_QWEN_PLAIN,
    ),
}

_BY_MODEL_TYPE: dict[str, ModelType] = {name.lower(): name for name in FAMILIES}
_BY_ARCHITECTURE: dict[str, ModelType] = {"StableDiffcoderForCausalLM": "stable_diffcoder"}
"""Its config.json has the model_type `llama`."""


def family_name(config: Mapping[str, Any]) -> ModelType | None:
    """The family of a config.json; None: none that we know."""
    for architecture in config.get("architectures") or ():
        if architecture in _BY_ARCHITECTURE:
            return _BY_ARCHITECTURE[architecture]
    return _BY_MODEL_TYPE.get(str(config.get("model_type")).lower())
