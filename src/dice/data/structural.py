"""`dice structural`: attention and MLP blocks of mainstream language models as problems in KernelBench's format.

The paper (section 3) adds 291 "structural samples" to its training data: attention submodules and MLP blocks with
varied input dimensions. Neither they nor their generator are published, so these are our own: four kinds of block for
every model of `dice.data.language_models`, each with several input shapes. Their order is fixed, and the first `n` are
taken. The same arguments give the same problems, byte for byte.

attention       projections, positions, scores with the model's mask, output projection
attention_core  the same between the projections: queries, keys and values are inputs
mlp             the feed-forward block
normed_mlp      the same after the model's norm and with the residual connection
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.difficulty import level_of
from dice.data.language_models import LANGUAGE_MODELS, LanguageModel
from dice.data.operators import operators_of_source
from dice.errors import DiceError
from dice.jsonl import write_jsonl, write_text
from dice.kernels.api import Problem
from dice.manifest import Stopwatch, write_manifest

Kind = Literal["attention", "attention_core", "mlp", "normed_mlp"]
KINDS: tuple[Kind, ...] = ("attention", "mlp", "attention_core", "normed_mlp")
VERSION = "structural-1"
"""Raised whenever a problem changes."""
PAPER_COUNT = 291

SHAPES = ((2, 512), (8, 128), (1, 1024), (4, 256), (16, 64), (1, 2048), (2, 333), (32, 32))
"""(batch, length) of the inputs; (2, 333) fits no tile size."""


# ---- geometry ----------------------------------------------------------------------------------------------------


def _multiple(value: float, of: int) -> int:
    return max(of, round(value / of) * of)


def scaled(model: LanguageModel, scale: float) -> LanguageModel:
    """The model with its sizes multiplied by `scale`; the number of query heads per key head stays if possible."""
    if scale == 1:
        return model
    kv_heads = max(1, round(model.kv_heads * scale))
    heads = kv_heads * max(1, min(model.heads // model.kv_heads, round(model.heads * scale / kv_heads) or 1))
    head_dim = _multiple(model.head_dim * min(1.0, 4 * scale), 16)
    square = model.heads * model.head_dim == model.hidden
    return dataclasses.replace(
        model,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        hidden=heads * head_dim if square else _multiple(model.hidden * scale, 16),
        intermediate=_multiple(model.intermediate * scale, 16),
        window=None if model.window is None else max(4, round(model.window * scale)),
    )


# ---- source ------------------------------------------------------------------------------------------------------

_HEAD = "import math\n\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"

_RMS_NORM = '''class RMSNorm(nn.Module):
    """Root-mean-square normalisation over the last dimension."""

    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.{fill}(width))
        self.eps = eps

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return x * scale * {weight}


'''
_ROTATE = {
    "rope": '''def rotate(x, cos, sin):
    """Rotary positions: the first half of the dimensions is paired with the second."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


''',
    "rope_interleaved": '''def rotate(x, cos, sin):
    """Rotary positions: neighbouring dimensions are paired."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)


''',
}


def _rms_norm(plus_one: bool = False) -> str:
    """The class RMSNorm; `plus_one`: Gemma's, whose weight is added to one."""
    fill, weight = ("zeros", "(1.0 + self.weight)") if plus_one else ("ones", "self.weight")
    return _RMS_NORM.format(fill=fill, weight=weight)


def _norm_call(model: LanguageModel) -> str:
    match model.norm:
        case "rms" | "rms_plus_one":
            return "RMSNorm(hidden)"
        case "layer":
            return "nn.LayerNorm(hidden)"
        case "layer_no_bias":
            return "nn.LayerNorm(hidden, bias=False)"
        case "layer_plain":
            return "nn.LayerNorm(hidden, elementwise_affine=False)"


def _position_buffers(model: LanguageModel, length: int) -> list[str]:
    """Lines of `__init__` that make the buffers for positions and masks."""
    lines: list[str] = []
    if model.positions in _ROTATE:
        lines += [
            f"self.rotary_dim = {_rotary_dim(model)}",
            f"frequency = {model.rope_theta!r} ** (-torch.arange(0, self.rotary_dim, 2).float() / self.rotary_dim)",
            f"angle = torch.outer(torch.arange({length}).float(), frequency)",
            'self.register_buffer("cos", angle.cos(), persistent=False)',
            'self.register_buffer("sin", angle.sin(), persistent=False)',
        ]
    if model.causal:
        lines.append(f"hidden_from = torch.ones({length}, {length}, dtype=torch.bool).triu(1)")
        if model.window is not None and model.window < length:
            lines.append(f"hidden_from |= torch.ones({length}, {length}, dtype=torch.bool).tril(-{model.window})")
        lines.append('self.register_buffer("masked", hidden_from, persistent=False)')
    if model.positions == "alibi":
        lines += [
            "slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1).float() / heads)",
            f"distance = torch.arange({length}).view(1, -1) - torch.arange({length}).view(-1, 1)",
            'self.register_buffer("bias", slopes.view(-1, 1, 1) * distance, persistent=False)',
        ]
    return lines


def _rotary_dim(model: LanguageModel) -> int:
    return max(2, int(model.head_dim * model.rope_share) // 2 * 2)


def _core(model: LanguageModel) -> list[str]:
    """Lines of `forward` from q, k, v of (batch, heads, length, head_dim) to `mixed` of the same shape."""
    lines: list[str] = []
    if model.positions in _ROTATE:
        if _rotary_dim(model) == model.head_dim:
            lines += [f"{name} = rotate({name}, self.cos, self.sin)" for name in "qk"]
        else:
            for name in "qk":
                lines += [
                    f"turned, kept = {name}[..., : self.rotary_dim], {name}[..., self.rotary_dim :]",
                    f"{name} = torch.cat((rotate(turned, self.cos, self.sin), kept), dim=-1)",
                ]
    if model.kv_heads != model.heads:
        lines += [f"{name} = {name}.repeat_interleave(self.heads // self.kv_heads, dim=1)" for name in "kv"]
    lines.append("scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)")
    if model.positions == "alibi":
        lines.append("scores = scores + self.bias")
    if model.score_cap is not None:
        lines.append(f"scores = torch.tanh(scores / {model.score_cap!r}) * {model.score_cap!r}")
    if model.causal:
        lines.append('scores = scores.masked_fill(self.masked, float("-inf"))')
    return [*lines, "mixed = torch.softmax(scores, dim=-1) @ v"]


def _indented(lines: Sequence[str]) -> str:
    return "".join(f"        {line}\n" for line in lines)


def _file(
    parts: str,
    title: str,
    parameters: Sequence[str],
    init: Sequence[str],
    arguments: str,
    forward: Sequence[str],
    values: Sequence[tuple[str, int]],
    inputs: str,
) -> str:
    settings = "".join(f"{name} = {value}\n" for name, value in values)
    return (
        f'{_HEAD}{parts}class Model(nn.Module):\n    """{title}"""\n\n'
        f"    def __init__(self, {', '.join(parameters)}):\n        super().__init__()\n{_indented(init)}\n"
        f"    def forward(self, {arguments}):\n{_indented(forward)}\n\n{settings}\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\n\n"
        f"def get_init_inputs():\n    return [{', '.join(parameters)}]\n"
    )


def _attention(model: LanguageModel, batch: int, length: int) -> str:
    init = ["self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim"]
    init += [
        f"self.q_proj = nn.Linear(hidden, heads * head_dim, bias={model.qkv_bias})",
        f"self.k_proj = nn.Linear(hidden, kv_heads * head_dim, bias={model.qkv_bias})",
        f"self.v_proj = nn.Linear(hidden, kv_heads * head_dim, bias={model.qkv_bias})",
        f"self.o_proj = nn.Linear(heads * head_dim, hidden, bias={model.out_bias})",
    ]
    widths = {"head": ("head_dim", "head_dim"), "all": ("heads * head_dim", "kv_heads * head_dim")}.get(model.qk_norm)
    if widths:
        init += [f"self.{name}_norm = RMSNorm({width})" for name, width in zip("qk", widths, strict=True)]
    forward = ["batch, length, _ = x.shape"]
    for name, count in (("q", "heads"), ("k", "kv_heads"), ("v", "kv_heads")):
        projected = f"self.{name}_proj(x)"
        if model.qk_norm == "all" and name != "v":
            projected = f"self.{name}_norm({projected})"
        split = f"{projected}.view(batch, length, self.{count}, self.head_dim)"
        if model.qk_norm == "head" and name != "v":
            split = f"self.{name}_norm({split})"
        forward.append(f"{name} = {split}.transpose(1, 2)")
    forward += [*_core(model), "return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))"]
    return _file(
        (_rms_norm() if model.qk_norm != "none" else "") + _ROTATE.get(model.positions, ""),
        f"{_attention_name(model)} of {_title(model)}.",
        ["hidden", "heads", "kv_heads", "head_dim"],
        [*init, *_position_buffers(model, length)],
        "x",
        forward,
        [("batch", batch), ("length", length), ("hidden", model.hidden), ("heads", model.heads),
         ("kv_heads", model.kv_heads), ("head_dim", model.head_dim)],
        "torch.randn(batch, length, hidden)",
    )  # fmt: skip


def _attention_core(model: LanguageModel, batch: int, length: int) -> str:
    return _file(
        _ROTATE.get(model.positions, ""),
        f"{_attention_name(model)} of {_title(model)} between its projections.",
        ["heads", "kv_heads", "head_dim"],
        ["self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim", *_position_buffers(model, length)],
        "q, k, v",
        [*_core(model), "return mixed"],
        [("batch", batch), ("length", length), ("heads", model.heads), ("kv_heads", model.kv_heads),
         ("head_dim", model.head_dim)],
        "torch.randn(batch, heads, length, head_dim), torch.randn(batch, kv_heads, length, head_dim), "
        "torch.randn(batch, kv_heads, length, head_dim)",
    )  # fmt: skip


def _attention_name(model: LanguageModel) -> str:
    if model.kv_heads == model.heads:
        return "Multi-head attention"
    return "Multi-query attention" if model.kv_heads == 1 else "Grouped-query attention"


def _title(model: LanguageModel) -> str:
    return model.name.replace("_", " ")


_ACTIVATION = {
    "relu2": "torch.relu(self.up(x)).square()",
    "gelu": "F.gelu(self.up(x))",
    "gelu_tanh": 'F.gelu(self.up(x), approximate="tanh")',
    "relu": "torch.relu(self.up(x))",
    "swiglu": "F.silu(self.gate(x)) * self.up(x)",
    "geglu": 'F.gelu(self.gate(x), approximate="tanh") * self.up(x)',
}


def _mlp(model: LanguageModel, batch: int, length: int, normed: bool = False) -> str:
    bias = f"bias={model.mlp_bias}"
    init = [f"self.norm = {_norm_call(model)}"] if normed else []
    if model.mlp in ("swiglu", "geglu"):
        init.append(f"self.gate = nn.Linear(hidden, intermediate, {bias})")
    init += [
        f"self.up = nn.Linear(hidden, intermediate, {bias})",
        f"self.down = nn.Linear(intermediate, hidden, {bias})",
    ]
    result = f"self.down({_ACTIVATION[model.mlp]})"
    forward = ["residual = x", "x = self.norm(x)", f"return residual + {result}"] if normed else [f"return {result}"]
    return _file(
        _rms_norm(model.norm == "rms_plus_one") if normed and model.norm.startswith("rms") else "",
        f"Feed-forward block of {_title(model)}" + (" with its norm and residual." if normed else "."),
        ["hidden", "intermediate"],
        init,
        "x",
        forward,
        [("batch", batch), ("length", length), ("hidden", model.hidden), ("intermediate", model.intermediate)],
        "torch.randn(batch, length, hidden)",
    )


def source(model: LanguageModel, kind: Kind, batch: int, length: int) -> str:
    """The problem's file for inputs of `batch` sequences of `length` tokens."""
    match kind:
        case "attention":
            return _attention(model, batch, length)
        case "attention_core":
            return _attention_core(model, batch, length)
        case "mlp":
            return _mlp(model, batch, length)
        case "normed_mlp":
            return _mlp(model, batch, length, normed=True)


# ---- problems ----------------------------------------------------------------------------------------------------


def problems(n: int = PAPER_COUNT, scale: float = 1.0) -> list[Problem]:
    """The first `n` structural problems, with sizes multiplied by `scale`. Raises DiceError where there are fewer.

    Attention and MLP blocks of all models come first, each model with another shape; then the other kinds; then all of
    them again with the next shape.
    """
    found: list[Problem] = []
    seen: set[str] = set()
    for name, code in _sources(scale):
        if len(found) == n:
            break
        if code not in seen:  # at a small scale two models can become one
            seen.add(code)
            number = len(found) + 1
            level = level_of(operators_of_source(code) or [])
            found.append(
                Problem(id=f"structural/{name}", level=level, number=number, name=name, code=code, version=VERSION)
            )
    if len(found) < n:
        raise DiceError(
            f"structural: {n} problems were requested, and only {len(found)} distinct ones exist at scale {scale:g}."
        )
    return found


def _sources(scale: float) -> Iterator[tuple[str, str]]:
    for turn in range(len(SHAPES)):
        for kind in KINDS:
            for position, model in enumerate(LANGUAGE_MODELS):
                batch, length = SHAPES[(turn + position + KINDS.index(kind)) % len(SHAPES)]
                if scale != 1:
                    batch, length = max(1, round(batch * min(1.0, scale * 4))), max(8, round(length * scale))
                name = f"{model.name}_{kind}_b{batch}_n{length}"
                yield name, source(scaled(model, scale), kind, batch, length)


@stage_config
class StructuralConfig:
    """Settings of `dice structural`."""

    n: int = Field(default=PAPER_COUNT, ge=1)
    """Problems (paper, section 3: 291)."""
    scale: float = Field(default=1.0, gt=0, le=1)
    """Factor on all sizes; 1 is the published geometry."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice structural`."""
    add_options(parser, StructuralConfig, "n", "scale")
    parser.add_argument("--out", required=True, help="where the problems are written, as JSON lines")
    parser.add_argument("--folder", help="also write every problem as a file into this folder")


def run(args: argparse.Namespace) -> int:
    """Write the problems. Raises DiceError."""
    watch = Stopwatch()
    config = config_from(args, StructuralConfig)
    found = problems(config.n, config.scale)
    if args.folder:
        for problem in found:
            write_text(Path(args.folder) / f"{problem.number}_{problem.name}.py", problem.code)
    write_jsonl(args.out, found)
    write_manifest(args.out, stage="structural", spec=to_spec(config), watch=watch, extra={"problems": len(found)})
    print(f"{len(found)} problems: {args.out}")
    return 0
