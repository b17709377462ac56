"""Small checkpoints with random weights in the vendors' own formats: their config.json, their tensor names.

The weights are drawn by numpy's frozen generator, tensor by tensor in the order of the vendor's names, so that the vendors'
modelling files can be given the same ones (tests/decoding/oracles/record.py).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

VOCAB, HIDDEN, MLP, LAYERS, HEADS, HEAD_DIM = 104, 48, 80, 2, 4, 12
MASK, END, OTHER_END = 100, 101, 102
_QWEN2: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": HIDDEN,
    "intermediate_size": MLP,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rope_theta": 5000.0,
    "rms_norm_eps": 1e-3,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llada": {
        "architectures": ["LLaDAModelLM"],
        "model_type": "llada",
        "d_model": HIDDEN,
        "mlp_hidden_size": MLP,
        "n_layers": LAYERS,
        "n_heads": HEADS,
        "n_kv_heads": HEADS,
        "vocab_size": VOCAB - 3,
        "embedding_size": VOCAB,
        "max_sequence_length": 256,
        "rope": True,
        "rope_theta": 5000.0,
        "rope_full_precision": True,
        "rms_norm_eps": 1e-3,
        "weight_tying": False,
        "include_bias": False,
        "include_qkv_bias": False,
        "block_type": "llama",
        "activation_type": "silu",
        "layer_norm_type": "rms",
        "alibi": False,
        "attention_layer_norm": False,
        "input_emb_norm": False,
        "scale_logits": False,
        "flash_attention": False,
        "attention_dropout": 0.0,
        "residual_dropout": 0.0,
        "embedding_dropout": 0.0,
        "init_device": "cpu",
        "mask_token_id": MASK,
        "eos_token_id": END,
        "pad_token_id": END,
        "torch_dtype": "float32",
    },
    "dream": _QWEN2
    | {
        "architectures": ["DreamModel"],
        "model_type": "Dream",
        "use_sliding_window": False,
        "mask_token_id": MASK,
        "eos_token_id": END,
        "pad_token_id": END,
    },
    "stable_diffcoder": _QWEN2
    | {
        "architectures": ["StableDiffcoderForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "mlp_bias": False,
    },
    "wedlm": _QWEN2
    | {
        "architectures": ["WeDLMForCausalLM"],
        "model_type": "wedlm",
        "head_dim": 16,
        "qk_norm": True,
        "attention_bias": False,
        "use_sliding_window": False,
    },
    "sdar": _QWEN2
    | {
        "architectures": ["SDARForCausalLM"],
        "model_type": "sdar",
        "head_dim": 16,
        "attention_bias": False,
        "use_sliding_window": False,
    },
    "wedlm_7b": _QWEN2
    | {"architectures": ["WeDLMForCausalLM"], "model_type": "wedlm", "qk_norm": False, "attention_bias": True},
}


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Tensor name -> shape, as the vendor stores them."""
    if config["model_type"] == "llada":
        top = {"wte.weight": (VOCAB, HIDDEN), "ln_f.weight": (HIDDEN,), "ff_out.weight": (VOCAB, HIDDEN)}
        square = ("q_proj", "k_proj", "v_proj", "attn_out")
        block = {f"{name}.weight": (HIDDEN, HIDDEN) for name in square}
        block |= {"attn_norm.weight": (HIDDEN,), "ff_norm.weight": (HIDDEN,), "ff_out.weight": (HIDDEN, MLP)}
        block |= {"ff_proj.weight": (MLP, HIDDEN), "up_proj.weight": (MLP, HIDDEN)}
        blocks = {f"blocks.{n}.{name}": shape for n in range(LAYERS) for name, shape in block.items()}
        return {f"model.transformer.{name}": shape for name, shape in (top | blocks).items()}
    head_dim = config.get("head_dim", HEAD_DIM)
    queries, keys = HEADS * head_dim, config["num_key_value_heads"] * head_dim
    layer: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj.weight": (queries, HIDDEN),
        "self_attn.k_proj.weight": (keys, HIDDEN),
        "self_attn.v_proj.weight": (keys, HIDDEN),
        "self_attn.o_proj.weight": (HIDDEN, queries),
        "mlp.gate_proj.weight": (MLP, HIDDEN),
        "mlp.up_proj.weight": (MLP, HIDDEN),
        "mlp.down_proj.weight": (HIDDEN, MLP),
        "input_layernorm.weight": (HIDDEN,),
        "post_attention_layernorm.weight": (HIDDEN,),
    }
    if config["model_type"] == "Dream" or config.get("attention_bias"):
        layer |= {f"self_attn.{name}_proj.bias": (size,) for name, size in (("q", queries), ("k", keys), ("v", keys))}
    if config["model_type"] == "sdar" or config.get("qk_norm"):
        layer |= {f"self_attn.{name}_norm.weight": (head_dim,) for name in "qk"}
    top = {
        "model.embed_tokens.weight": (VOCAB, HIDDEN),
        "model.norm.weight": (HIDDEN,),
        "lm_head.weight": (VOCAB, HIDDEN),
    }
    return top | {f"model.layers.{n}.{name}": shape for n in range(LAYERS) for name, shape in layer.items()}


def weights(name: str, seed: int = 0) -> dict[str, Tensor]:
    """fp32 tensors, large enough that every part matters; the head's are larger, so that some tokens are sure."""
    draw = np.random.RandomState(seed)
    found = {}
    for tensor, shape in sorted(shapes(CONFIGS[name]).items()):
        noise = draw.standard_normal(shape)
        if len(shape) == 1:
            values = 0.5 * noise if tensor.endswith("bias") else 1 + 0.3 * noise
        else:
            head = tensor.endswith(("lm_head.weight", "transformer.ff_out.weight"))
            values = noise * (4 if head else 1) / math.sqrt(shape[1])
        found[tensor] = torch.from_numpy(values.astype(np.float32))
    return found


def write_checkpoint(folder: Path, name: str, **changes: Any) -> Path:
    """The checkpoint in two shards; `changes` replace fields of its config.json."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIGS[name] | changes))
    tensors, index = weights(name), {}
    names = list(tensors)
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-{number:05d}-of-00002.safetensors"
        save_file({tensor: tensors[tensor] for tensor in part}, folder / file)
        index |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return folder
