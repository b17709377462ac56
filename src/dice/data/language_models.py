"""Published geometry of the attention and MLP blocks of mainstream language models.

The numbers are those of the models' `config.json` files on the Hugging Face hub; norms, activations and positions are
those of their papers. Mixtures of experts are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Norm = Literal["rms", "rms_plus_one", "layer", "layer_no_bias", "layer_plain"]
"""RMSNorm; Gemma's with weight + 1; LayerNorm; without bias; without weight and bias."""
Mlp = Literal["swiglu", "geglu", "relu2", "gelu", "gelu_tanh", "relu"]
"""Gated by SiLU or tanh-GELU, or one projection with squared ReLU, GELU, its tanh form or ReLU."""
Positions = Literal["rope", "rope_interleaved", "alibi", "none"]


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """One model's block. Sizes in elements."""

    name: str
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    mlp: Mlp
    norm: Norm = "rms"
    positions: Positions = "rope"
    rope_share: float = 1.0
    """Share of a head's dimensions that is rotated."""
    rope_theta: float = 10_000.0
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: Literal["none", "head", "all"] = "none"
    """RMSNorm of queries and keys: per head (Qwen3) or over all heads (OLMo 2)."""
    score_cap: float | None = None
    """Scores are capped by tanh at this value (Gemma 2)."""
    window: int | None = None
    """Most tokens that a token attends to (Mistral)."""
    causal: bool = True


def _gpt2(name: str, hidden: int, heads: int) -> LanguageModel:
    return LanguageModel(
        name=name, hidden=hidden, heads=heads, kv_heads=heads, head_dim=hidden // heads, intermediate=4 * hidden,
        mlp="gelu_tanh", norm="layer", positions="none", qkv_bias=True, out_bias=True, mlp_bias=True,
    )  # fmt: skip


def _pythia(name: str, hidden: int, heads: int) -> LanguageModel:
    return LanguageModel(
        name=name, hidden=hidden, heads=heads, kv_heads=heads, head_dim=hidden // heads, intermediate=4 * hidden,
        mlp="gelu", norm="layer", rope_share=0.25, qkv_bias=True, out_bias=True, mlp_bias=True,
    )  # fmt: skip


def _opt(name: str, hidden: int, heads: int) -> LanguageModel:
    return LanguageModel(
        name=name, hidden=hidden, heads=heads, kv_heads=heads, head_dim=hidden // heads, intermediate=4 * hidden,
        mlp="relu", norm="layer", positions="none", qkv_bias=True, out_bias=True, mlp_bias=True,
    )  # fmt: skip


def _llama(
    name: str, hidden: int, heads: int, kv_heads: int, intermediate: int, theta: float = 10_000.0, head_dim: int = 0
) -> LanguageModel:
    return LanguageModel(
        name=name, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim or hidden // heads,
        intermediate=intermediate, mlp="swiglu", rope_theta=theta,
    )  # fmt: skip


def _qwen2(name: str, hidden: int, heads: int, kv_heads: int, intermediate: int) -> LanguageModel:
    return LanguageModel(
        name=name, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=hidden // heads, intermediate=intermediate,
        mlp="swiglu", rope_theta=1e6, qkv_bias=True,
    )  # fmt: skip


def _qwen3(name: str, hidden: int, heads: int, kv_heads: int, intermediate: int) -> LanguageModel:
    return LanguageModel(
        name=name, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=128, intermediate=intermediate,
        mlp="swiglu", rope_theta=1e6, qk_norm="head",
    )  # fmt: skip


def _bloom(name: str, hidden: int, heads: int, bias: bool = True) -> LanguageModel:
    return LanguageModel(
        name=name, hidden=hidden, heads=heads, kv_heads=heads, head_dim=hidden // heads, intermediate=4 * hidden,
        mlp="gelu_tanh" if bias else "gelu", norm="layer" if bias else "layer_no_bias", positions="alibi",
        qkv_bias=bias, out_bias=bias, mlp_bias=bias,
    )  # fmt: skip


def _gemma(
    name: str, hidden: int, heads: int, kv_heads: int, intermediate: int, cap: float | None = None
) -> LanguageModel:
    return LanguageModel(
        name=name, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=256, intermediate=intermediate,
        mlp="geglu", norm="rms_plus_one", score_cap=cap,
    )  # fmt: skip


LANGUAGE_MODELS = (
    _llama("Llama2_7B", 4096, 32, 32, 11008),
    _llama("Llama2_13B", 5120, 40, 40, 13824),
    _llama("Llama3_8B", 4096, 32, 8, 14336, 5e5),
    _llama("Llama32_1B", 2048, 32, 8, 8192, 5e5),
    _llama("Llama32_3B", 3072, 24, 8, 8192, 5e5),
    _llama("TinyLlama_1B", 2048, 32, 4, 5632),
    _llama("SmolLM_135M", 576, 9, 3, 1536),
    _llama("SmolLM2_1B7", 2048, 32, 32, 8192, 130_000.0),
    _llama("Yi_6B", 4096, 32, 4, 11008, 5e6),
    _llama("InternLM2_7B", 4096, 32, 8, 14336, 1e6),
    _llama("DeepSeek_7B", 4096, 32, 32, 11008),
    _llama("MistralNemo_12B", 5120, 32, 8, 14336, 1e6, head_dim=128),
    LanguageModel(
        name="Mistral_7B", hidden=4096, heads=32, kv_heads=8, head_dim=128, intermediate=14336, mlp="swiglu",
        window=4096,
    ),
    _qwen2("Qwen25_0B5", 896, 14, 2, 4864),
    _qwen2("Qwen25_1B5", 1536, 12, 2, 8960),
    _qwen2("Qwen25_7B", 3584, 28, 4, 18944),
    _qwen3("Qwen3_0B6", 1024, 16, 8, 3072),
    _qwen3("Qwen3_1B7", 2048, 16, 8, 6144),
    _qwen3("Qwen3_4B", 2560, 32, 8, 9728),
    _qwen3("Qwen3_8B", 4096, 32, 8, 12288),
    _gemma("Gemma_2B", 2048, 8, 1, 16384),
    _gemma("Gemma_7B", 3072, 16, 16, 24576),
    _gemma("Gemma2_2B", 2304, 8, 4, 9216, 50.0),
    _gemma("Gemma2_9B", 3584, 16, 8, 14336, 50.0),
    _gpt2("GPT2_Small", 768, 12),
    _gpt2("GPT2_Medium", 1024, 16),
    _gpt2("GPT2_Large", 1280, 20),
    _gpt2("GPT2_XL", 1600, 25),
    _pythia("Pythia_410M", 1024, 16),
    _pythia("Pythia_1B4", 2048, 16),
    _pythia("Pythia_6B9", 4096, 32),
    _pythia("GPTNeoX_20B", 6144, 64),
    LanguageModel(
        name="GPTJ_6B", hidden=4096, heads=16, kv_heads=16, head_dim=256, intermediate=16384, mlp="gelu_tanh",
        norm="layer", positions="rope_interleaved", rope_share=0.25, mlp_bias=True,
    ),
    LanguageModel(
        name="Phi1_5", hidden=2048, heads=32, kv_heads=32, head_dim=64, intermediate=8192, mlp="gelu_tanh",
        norm="layer", rope_share=0.5, qkv_bias=True, out_bias=True, mlp_bias=True,
    ),
    LanguageModel(
        name="Phi2", hidden=2560, heads=32, kv_heads=32, head_dim=80, intermediate=10240, mlp="gelu_tanh",
        norm="layer", rope_share=0.4, qkv_bias=True, out_bias=True, mlp_bias=True,
    ),
    _llama("Phi3_Mini", 3072, 32, 32, 8192),
    _opt("OPT_125M", 768, 12),
    _opt("OPT_1B3", 2048, 32),
    _opt("OPT_6B7", 4096, 32),
    LanguageModel(
        name="Falcon_7B", hidden=4544, heads=71, kv_heads=1, head_dim=64, intermediate=18176, mlp="gelu", norm="layer"
    ),
    LanguageModel(
        name="Falcon_40B", hidden=8192, heads=128, kv_heads=8, head_dim=64, intermediate=32768, mlp="gelu", norm="layer"
    ),
    _bloom("BLOOM_560M", 1024, 16),
    _bloom("BLOOM_7B1", 4096, 32),
    _bloom("MPT_7B", 4096, 32, bias=False),
    LanguageModel(
        name="StarCoder_15B", hidden=6144, heads=48, kv_heads=1, head_dim=128, intermediate=24576, mlp="gelu_tanh",
        norm="layer", positions="none", qkv_bias=True, out_bias=True, mlp_bias=True,
    ),
    LanguageModel(
        name="StarCoder2_3B", hidden=3072, heads=24, kv_heads=2, head_dim=128, intermediate=12288, mlp="gelu_tanh",
        norm="layer", rope_theta=1e6, qkv_bias=True, out_bias=True, mlp_bias=True, window=4096,
    ),
    LanguageModel(
        name="Persimmon_8B", hidden=4096, heads=64, kv_heads=64, head_dim=64, intermediate=16384, mlp="relu2",
        norm="layer", rope_share=0.5, rope_theta=25_000.0, qkv_bias=True, out_bias=True, mlp_bias=True, qk_norm="head",
    ),
    LanguageModel(
        name="Minitron_4B", hidden=3072, heads=24, kv_heads=8, head_dim=128, intermediate=9216, mlp="relu2",
        norm="layer", rope_share=0.5,
    ),
    LanguageModel(
        name="Nemotron4_15B", hidden=6144, heads=48, kv_heads=8, head_dim=128, intermediate=24576, mlp="relu2",
        norm="layer", rope_share=0.5,
    ),
    LanguageModel(
        name="OLMo_1B", hidden=2048, heads=16, kv_heads=16, head_dim=128, intermediate=8192, mlp="swiglu",
        norm="layer_plain",
    ),
    LanguageModel(
        name="OLMo2_7B", hidden=4096, heads=32, kv_heads=32, head_dim=128, intermediate=11008, mlp="swiglu",
        rope_theta=5e5, qk_norm="all",
    ),
    LanguageModel(
        name="StableLM_3B", hidden=2560, heads=32, kv_heads=32, head_dim=80, intermediate=6912, mlp="swiglu",
        norm="layer", rope_share=0.25,
    ),
    LanguageModel(
        name="CommandR_35B", hidden=8192, heads=64, kv_heads=64, head_dim=128, intermediate=22528, mlp="swiglu",
        norm="layer_no_bias", positions="rope_interleaved", rope_theta=8e6,
    ),
    LanguageModel(
        name="GLM4_9B", hidden=4096, heads=32, kv_heads=2, head_dim=128, intermediate=13696, mlp="swiglu",
        positions="rope_interleaved", rope_share=0.5, qkv_bias=True,
    ),
    LanguageModel(
        name="BERT_Base", hidden=768, heads=12, kv_heads=12, head_dim=64, intermediate=3072, mlp="gelu", norm="layer",
        positions="none", qkv_bias=True, out_bias=True, mlp_bias=True, causal=False,
    ),
    LanguageModel(
        name="BERT_Large", hidden=1024, heads=16, kv_heads=16, head_dim=64, intermediate=4096, mlp="gelu",
        norm="layer", positions="none", qkv_bias=True, out_bias=True, mlp_bias=True, causal=False,
    ),
)  # fmt: skip
"""In a fixed order: problems are numbered after it."""
