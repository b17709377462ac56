"""Checkpoints in the vendors' formats with random weights: config.json, safetensors, tokenizer, generation_config.json.

Vocabulary, control tokens, names of fields and tensors are the published ones; widths and layers are not. The head's rows
of the drawn tokens point along the axes of the hidden state, so that one of them is likely wherever the state points, and
the other tokens of a vocabulary of 150,000 are not.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from dice.data.tokenizer import TOKENIZER_FILE
from dice.jsonl import write_text
from dice.model.checkpoint import CONFIG_FILE, GENERATION_CONFIG, INDEX_FILE
from dice.model.families import FAMILIES, Family, ModelType
from dice.model.transformer import ModelConfig, Transformer
from dice.standins.vocabulary import FIRST_ANSWER, FIRST_WORD, vocabulary

HIDDEN = 32
"""Two heads of 16: fewer numbers of a head run neither in FlexAttention nor in the fast engine, so on no GPU."""
_LIKELY = 14.0
"""Length of a drawn token's row; a hidden state of `HIDDEN` numbers has one of at least 1, and exp(14) is 8 vocabularies."""
_NOISE = 0.05
_QWEN = {
    151643: "<|endoftext|>",
    151644: "<|im_start|>",
    151645: "<|im_end|>",
    151667: "<think>",
    151668: "</think>",
}
_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True, kw_only=True)
class Published:
    """What the checkpoints of one architecture have in common, and stand-ins keep."""

    model_type: ModelType
    vocab_size: int
    """Rows of the embedding."""
    control: Mapping[int, str]
    end: int
    """Id that ends an answer."""
    chat_template: str = _CHATML
    config: Mapping[str, Any] = field(default_factory=dict)
    """Fields of config.json beside the geometry."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """generation_config.json."""


_SEED = {0: "<[begin_of_sentence]>", 1: "<[PAD]>", 2: "<[end_of_sentence]>"}
_LLADA = {
    126080: "<|startoftext|>",
    126081: "<|endoftext|>",
    126336: "<|mdm_mask|>",
    126346: "<|start_header_id|>",
    126347: "<|end_header_id|>",
    126348: "<|eot_id|>",
}
_HEADERS = (
    "{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n{{ message.content }}<|eot_id|>"
    "{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
_TURNS = (
    "{% for message in messages %}<[begin_of_sentence]>{{ message.role }}\n{{ message.content }}<[end_of_sentence]>"
    "{% endfor %}{% if add_generation_prompt %}<[begin_of_sentence]>assistant\n{% endif %}"
)
_SAYS_END = {"eos_token_id": [151645, 151643], "pad_token_id": 151643}

PUBLISHED: dict[str, Published] = {
    "sdar": Published(
        model_type="sdar",
        vocab_size=151936,
        control=_QWEN | {151669: "<|MASK|>"},
        end=151645,
        config={"architectures": ["SDARForCausalLM"], "mask_token_id": 151669, "eos_token_id": 151645},
        generation=_SAYS_END,
    ),
    "qwen3": Published(
        model_type="qwen3",
        vocab_size=151936,
        control=_QWEN,
        end=151645,
        config={"architectures": ["Qwen3ForCausalLM"], "eos_token_id": 151645},
        generation={"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95} | _SAYS_END,
    ),
    "qwen2": Published(
        model_type="qwen2",
        vocab_size=152064,
        control=_QWEN,
        end=151645,
        config={"architectures": ["Qwen2ForCausalLM"], "eos_token_id": 151645},
        generation={"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "repetition_penalty": 1.1}
        | _SAYS_END,
    ),
    "llama": Published(
        model_type="llama",
        vocab_size=155136,
        control=_SEED,
        end=2,
        chat_template=_TURNS,
        config={"architectures": ["LlamaForCausalLM"], "eos_token_id": 2},
        generation={"do_sample": True, "temperature": 0.6, "eos_token_id": 2, "pad_token_id": 1},
    ),
    "llada": Published(
        model_type="llada",
        vocab_size=126464,
        control=_LLADA,
        end=126348,
        chat_template=_HEADERS,
        config={
            "architectures": ["LLaDAModelLM"],
            "mask_token_id": 126336,
            "eos_token_id": 126081,
            "vocab_size": 126464,
        },
    ),
    "dream": Published(
        model_type="dream",
        vocab_size=152064,
        control=_QWEN | {151665: "<|beginoftext|>", 151666: "<|mask|>"},
        end=151645,
        config={
            "architectures": ["DreamModel"],
            "model_type": "Dream",
            "mask_token_id": 151666,
            "eos_token_id": 151643,
        },
        generation=_SAYS_END,
    ),
    "stable_diffcoder": Published(
        model_type="stable_diffcoder",
        vocab_size=155136,
        control=_SEED | {5: "<[MASK]>"},
        end=2,
        chat_template=_TURNS,
        config={"architectures": ["StableDiffcoderForCausalLM"], "model_type": "llama", "eos_token_id": 2},
        generation={"eos_token_id": 2, "pad_token_id": 1},
    ),
    "wedlm": Published(
        model_type="wedlm",
        vocab_size=151936,
        control=_QWEN | {151665: "<tool_response>"},
        end=151645,
        config={"architectures": ["WeDLMForCausalLM"], "eos_token_id": 151645},
        generation=_SAYS_END,
    ),
}
"""By the family of dice.model.families."""


def write_checkpoint(
    folder: Path, kind: Published, words: Mapping[str, Any], answers: Sequence[str], seed: int
) -> None:
    """The folder of a repository. `words`: see `train_words`; `answers`: programs that the model may draw."""
    family = FAMILIES[kind.model_type]
    config = ModelConfig(
        model_type=kind.model_type,
        qk_norm=family.qk_norm is not False,
        attention_bias=bool(family.attention_bias),
        vocab_size=kind.vocab_size,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=HIDDEN // 2,
    )
    directions = 2 * HIDDEN
    drawn = max(1, len(answers))
    rows = torch.arange(FIRST_ANSWER, FIRST_ANSWER + directions * drawn).view(directions, drawn)
    if not answers:  # then it draws words
        rows = rows - FIRST_ANSWER + FIRST_WORD
    state = _random(config, rows, kind.end, seed).to(torch.bfloat16).state_dict()
    _save({published_name(name, family): tensor for name, tensor in state.items()}, folder)
    theirs = {ours: name for name, ours in family.config_names.items()}
    geometry = {
        theirs.get(name, name): value for name, value in dataclasses.asdict(config).items() if value is not None
    }
    _json(folder / CONFIG_FILE, geometry | {"torch_dtype": "bfloat16"} | dict(family.must_be) | dict(kind.config))
    _json(folder / GENERATION_CONFIG, kind.generation)
    _json(folder / "tokenizer_config.json", {"chat_template": kind.chat_template, "eos_token": kind.control[kind.end]})
    write_text(folder / TOKENIZER_FILE, vocabulary(words, answers, directions, kind.control).to_str())


@torch.no_grad()
def _random(config: ModelConfig, drawn: Tensor, end: int, seed: int) -> Transformer:
    """`drawn` [directions, tokens]: the tokens of each direction, the two ways of each axis of the hidden state."""
    model = Transformer(config).initialise(seed)
    generator = torch.Generator().manual_seed(seed)
    head = model.lm_head.weight
    head.copy_(torch.randn(head.shape, generator=generator) * _NOISE)
    for axis in range(config.hidden_size):
        for way, sign in enumerate((1.0, -1.0)):
            head[drawn[2 * axis + way], axis] += sign * _LIKELY
    head[end, 0] += _LIKELY
    for name, parameter in model.named_parameters():
        if "norm" not in name and "embed" not in name and "lm_head" not in name:
            parameter.mul_(10)  # what stands before a position must matter for what is drawn there
    return model


def published_name(name: str, family: Family) -> str:
    """The vendor's name of a tensor."""
    number = re.search(r"\.(\d+)\.", name)
    theirs = {ours: name for name, ours in family.weight_names.items()}
    if number is None:
        return theirs.get(name, name)
    found = theirs.get(name.replace(number[0], ".N.", 1))
    return name if found is None else found.replace(".N.", number[0])


def _save(state: dict[str, Tensor], folder: Path) -> None:
    """Two shards and their index, as large models are published."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(state)
    shards = (names[: len(names) // 2], names[len(names) // 2 :])
    files = [f"model-{number:05d}-of-{len(shards):05d}.safetensors" for number in range(1, len(shards) + 1)]
    for file, part in zip(files, shards, strict=True):
        save_file({name: state[name].contiguous() for name in part}, folder / file, metadata={"format": "pt"})
    size = sum(tensor.nbytes for tensor in state.values())
    weight_map = {name: file for file, part in zip(files, shards, strict=True) for name in part}
    _json(folder / INDEX_FILE, {"metadata": {"total_size": size}, "weight_map": weight_map})


def _json(path: Path, values: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(values, indent=2) + "\n")
