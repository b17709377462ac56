"""Published geometry of the attention and MLP blocks of mainstream language models.

The numbers are those of the models' `config.json` files on the Hugging Face hub; norms, activations and positions are
those of their papers. Mixtures of experts are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Norm = Literal["rms", "rms_plus_one", "layer", "layer_no_bias", "layer_plain"]
"""RMSNorm; Gemma's with weight + 1; LayerNorm; without bias; without weight and bias."""
Mlp = Literal["swiglu", "geglu", "relu2", "gelu", "gelu_tanh", "relu"]
"""Gated by SiLU or tanh-GELU, or one projection with squared ReLU, GELU, its tanh form or ReLU."""
Positions = Literal["rope", "rope_interleaved", "alibi", "none"]
Changes = dict[str, Any]
"""Fields of LanguageModel and their values."""


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


def _gated(name: str, hidden: int, heads: int, kv_heads: int, intermediate: int, **changes: Any) -> LanguageModel:
    """Llama's block, RMSNorm and SwiGLU without biases, with these changes."""
    sizes: Changes = {"hidden": hidden, "heads": heads, "kv_heads": kv_heads, "intermediate": intermediate}
    return LanguageModel(name=name, **sizes | {"head_dim": hidden // heads, "mlp": "swiglu"} | changes)


def _ungated(name: str, hidden: int, heads: int, mlp: Mlp, *, bias: bool = True, **changes: Any) -> LanguageModel:
    """GPT's block, LayerNorm and an MLP of four times the width with biases everywhere, with these changes."""
    sizes: Changes = {"hidden": hidden, "heads": heads, "kv_heads": heads, "intermediate": 4 * hidden}
    biases: Changes = {"qkv_bias": bias, "out_bias": bias, "mlp_bias": bias}
    usual = {"head_dim": hidden // heads, "mlp": mlp, "norm": "layer"}
    return LanguageModel(name=name, **sizes | biases | usual | changes)


_QWEN2: Changes = {"rope_theta": 1e6, "qkv_bias": True}
_QWEN3: Changes = {"rope_theta": 1e6, "head_dim": 128, "qk_norm": "head"}
_GEMMA: Changes = {"head_dim": 256, "mlp": "geglu", "norm": "rms_plus_one"}
_GEMMA2: Changes = {**_GEMMA, "score_cap": 50.0}
_PYTHIA: Changes = {"mlp": "gelu", "rope_share": 0.25}
_OPT: Changes = {"mlp": "relu", "positions": "none"}
_BERT: Changes = {"mlp": "gelu", "positions": "none", "causal": False}

LANGUAGE_MODELS = (
    _gated("Llama2_7B", 4096, 32, 32, 11008),
    _gated("Llama2_13B", 5120, 40, 40, 13824),
    _gated("Llama3_8B", 4096, 32, 8, 14336, rope_theta=5e5),
    _gated("Llama32_1B", 2048, 32, 8, 8192, rope_theta=5e5),
    _gated("Llama32_3B", 3072, 24, 8, 8192, rope_theta=5e5),
    _gated("TinyLlama_1B", 2048, 32, 4, 5632),
    _gated("SmolLM_135M", 576, 9, 3, 1536),
    _gated("SmolLM2_1B7", 2048, 32, 32, 8192, rope_theta=130_000.0),
    _gated("Yi_6B", 4096, 32, 4, 11008, rope_theta=5e6),
    _gated("InternLM2_7B", 4096, 32, 8, 14336, rope_theta=1e6),
    _gated("DeepSeek_7B", 4096, 32, 32, 11008),
    _gated("MistralNemo_12B", 5120, 32, 8, 14336, rope_theta=1e6, head_dim=128),
    _gated("Mistral_7B", 4096, 32, 8, 14336, window=4096),
    _gated("Qwen25_0B5", 896, 14, 2, 4864, **_QWEN2),
    _gated("Qwen25_1B5", 1536, 12, 2, 8960, **_QWEN2),
    _gated("Qwen25_7B", 3584, 28, 4, 18944, **_QWEN2),
    _gated("Qwen3_0B6", 1024, 16, 8, 3072, **_QWEN3),
    _gated("Qwen3_1B7", 2048, 16, 8, 6144, **_QWEN3),
    _gated("Qwen3_4B", 2560, 32, 8, 9728, **_QWEN3),
    _gated("Qwen3_8B", 4096, 32, 8, 12288, **_QWEN3),
    _gated("Gemma_2B", 2048, 8, 1, 16384, **_GEMMA),
    _gated("Gemma_7B", 3072, 16, 16, 24576, **_GEMMA),
    _gated("Gemma2_2B", 2304, 8, 4, 9216, **_GEMMA2),
    _gated("Gemma2_9B", 3584, 16, 8, 14336, **_GEMMA2),
    _ungated("GPT2_Small", 768, 12, "gelu_tanh", positions="none"),
    _ungated("GPT2_Medium", 1024, 16, "gelu_tanh", positions="none"),
    _ungated("GPT2_Large", 1280, 20, "gelu_tanh", positions="none"),
    _ungated("GPT2_XL", 1600, 25, "gelu_tanh", positions="none"),
    _ungated("Pythia_410M", 1024, 16, **_PYTHIA),
    _ungated("Pythia_1B4", 2048, 16, **_PYTHIA),
    _ungated("Pythia_6B9", 4096, 32, **_PYTHIA),
    _ungated("GPTNeoX_20B", 6144, 64, **_PYTHIA),
    _ungated(
        "GPTJ_6B", 4096, 16, "gelu_tanh", positions="rope_interleaved", rope_share=0.25, qkv_bias=False, out_bias=False
    ),
    _ungated("Phi1_5", 2048, 32, "gelu_tanh", rope_share=0.5),
    _ungated("Phi2", 2560, 32, "gelu_tanh", rope_share=0.4),
    _gated("Phi3_Mini", 3072, 32, 32, 8192),
    _ungated("OPT_125M", 768, 12, **_OPT),
    _ungated("OPT_1B3", 2048, 32, **_OPT),
    _ungated("OPT_6B7", 4096, 32, **_OPT),
    _ungated("Falcon_7B", 4544, 71, "gelu", kv_heads=1, bias=False),
    _ungated("Falcon_40B", 8192, 128, "gelu", kv_heads=8, bias=False),
    _ungated("BLOOM_560M", 1024, 16, "gelu_tanh", positions="alibi"),
    _ungated("BLOOM_7B1", 4096, 32, "gelu_tanh", positions="alibi"),
    _ungated("MPT_7B", 4096, 32, "gelu", norm="layer_no_bias", positions="alibi", bias=False),
    _ungated("StarCoder_15B", 6144, 48, "gelu_tanh", kv_heads=1, positions="none"),
    _ungated("StarCoder2_3B", 3072, 24, "gelu_tanh", kv_heads=2, rope_theta=1e6, window=4096),
    _ungated("Persimmon_8B", 4096, 64, "relu2", rope_share=0.5, rope_theta=25_000.0, qk_norm="head"),
    _ungated("Minitron_4B", 3072, 24, "relu2", kv_heads=8, intermediate=9216, rope_share=0.5, bias=False),
    _ungated("Nemotron4_15B", 6144, 48, "relu2", kv_heads=8, rope_share=0.5, bias=False),
    _gated("OLMo_1B", 2048, 16, 16, 8192, norm="layer_plain"),
    _gated("OLMo2_7B", 4096, 32, 32, 11008, rope_theta=5e5, qk_norm="all"),
    _gated("StableLM_3B", 2560, 32, 32, 6912, norm="layer", rope_share=0.25),
    _gated("CommandR_35B", 8192, 64, 64, 22528, norm="layer_no_bias", positions="rope_interleaved", rope_theta=8e6),
    _gated("GLM4_9B", 4096, 32, 2, 13696, positions="rope_interleaved", rope_share=0.5, qkv_bias=True),
    _ungated("BERT_Base", 768, 12, **_BERT),
    _ungated("BERT_Large", 1024, 16, **_BERT),
)
"""In a fixed order, since it numbers the problems."""
