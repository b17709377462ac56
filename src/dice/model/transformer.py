"""The transformer of all model families: pre-norm, grouped queries, rotary positions, SwiGLU.

The families (`dice.model.families`) differ in two switches, normed heads and a bias of query, key and value; in what a
token sees; and in which token a position predicts. The last two are not decided here: a caller passes an `Attention`,
which receives the queries, keys and values of every layer (`dice.model.attention_masks` for training,
`dice.model.cache` for decoding).
Difference in fp32 to transformers' Qwen3, Qwen2 and Llama and to the vendors' own modelling files: rounding only
(tests/model).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from dice.errors import DiceError
from dice.model.families import ModelType


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Geometry, under the names of Hugging Face's config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    model_type: ModelType = "sdar"
    """The family: an entry of `dice.model.families`, which says what tokens see and which token a position predicts."""
    qk_norm: bool = True
    """Queries and keys are RMS-normed, head by head."""
    attention_bias: bool = False
    """The projections of query, key and value have a bias; that of the output has none."""
    tie_word_embeddings: bool = False
    rope_theta: float = 1_000_000.0
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 32768
    block_size: int | None = None
    """Block that a `sdar` model was trained with; the hub's config.json often lacks it."""
    mask_token_id: int | None = None
    eos_token_id: int | tuple[int, ...] | None = None
    """Kept for other programs that read the checkpoint; decoding takes its end tokens from the tokenizer."""

    def __post_init__(self) -> None:
        for name in (
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
            "head_dim",
        ):
            if getattr(self, name) < 1:
                raise DiceError(f"model config: {name} is {getattr(self, name)}; it must be positive.")
        if self.num_key_value_heads < 1 or self.num_attention_heads % self.num_key_value_heads:
            raise DiceError(
                f"model config: {self.num_attention_heads} heads are not a multiple of "
                f"{self.num_key_value_heads} key-value heads."
            )
        if self.head_dim % 2:
            raise DiceError(f"model config: head_dim {self.head_dim} is odd; rotary positions need pairs.")

    @property
    def matmul_parameters(self) -> int:
        """Weights of one layer stack that multiply every token (embedding, norms and head excluded)."""
        heads = (self.num_attention_heads + self.num_key_value_heads) * 2 * self.head_dim
        return self.num_hidden_layers * self.hidden_size * (heads + 3 * self.intermediate_size)

    @property
    def parameters(self) -> int:
        """Weights of the whole model; a tied head counts once. No model is built to count: a plan asks for hundreds."""
        biases = (self.num_attention_heads + 2 * self.num_key_value_heads) * self.head_dim * self.attention_bias
        norms = 2 * self.hidden_size + 2 * self.head_dim * self.qk_norm
        tables = self.head_parameters * (1 if self.tie_word_embeddings else 2)
        return self.matmul_parameters + self.num_hidden_layers * (biases + norms) + self.hidden_size + tables

    @property
    def head_parameters(self) -> int:
        """Weights of the output head."""
        return self.vocab_size * self.hidden_size


class Attention(Protocol):
    """What tokens see. Called once a layer, in order."""

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """query [n, heads, tokens, head_dim], key and value [n, kv_heads, tokens, head_dim] -> like query."""
        ...


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / rms(x) * weight over the last dimension, in fp32."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return weight * wide.to(x.dtype)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up."""
    return F.silu(gate) * up


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: the first half of the last dimension pairs with the second (GPT-NeoX's layout)."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


@dataclass(frozen=True)
class Pointwise:
    """The operations between products; compiled, each is one kernel forward and one or two backward."""

    rms_norm: Callable[[Tensor, Tensor, float], Tensor] = rms_norm
    swiglu: Callable[[Tensor, Tensor], Tensor] = swiglu
    rotate: Callable[[Tensor, Tensor, Tensor], Tensor] = rotate


EAGER = Pointwise()


@cache
def compiled_pointwise() -> Pointwise:
    """The operations through torch.compile: for training on GPUs."""
    return Pointwise(
        torch.compile(rms_norm, dynamic=True), torch.compile(swiglu, dynamic=True), torch.compile(rotate, dynamic=True)
    )


class RMSNorm(nn.Module):
    """Scaled by a learned weight."""

    pointwise = EAGER

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return self.pointwise.rms_norm(x, self.weight, self.eps)


def rotary_angles(positions: Tensor, config: ModelConfig) -> tuple[Tensor, Tensor]:
    """cos and sin [..., head_dim] in fp32 of integer `positions` [...]."""
    pairs = torch.arange(0, config.head_dim, 2, device=positions.device, dtype=torch.float32)
    angles = positions.float()[..., None] / config.rope_theta ** (pairs / config.head_dim)
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


class SelfAttention(nn.Module):
    """Projections, norms of heads and rotation around an `Attention`."""

    pointwise = EAGER

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        queries, keys = (n * config.head_dim for n in (config.num_attention_heads, config.num_key_value_heads))
        self.q_proj = nn.Linear(config.hidden_size, queries, bias=config.attention_bias)
        self.k_proj = nn.Linear(config.hidden_size, keys, bias=config.attention_bias)
        self.v_proj = nn.Linear(config.hidden_size, keys, bias=config.attention_bias)
        self.o_proj = nn.Linear(queries, config.hidden_size, bias=False)
        norm = RMSNorm if config.qk_norm else nn.Identity  # which takes any arguments
        self.q_norm = norm(config.head_dim, config.rms_norm_eps)
        self.k_norm = norm(config.head_dim, config.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attention) -> Tensor:
        n, tokens, _ = x.shape

        def heads(projected: Tensor) -> Tensor:
            return projected.view(n, tokens, -1, self.head_dim)

        rotate = self.pointwise.rotate
        query = rotate(self.q_norm(heads(self.q_proj(x))).transpose(1, 2), cos, sin)
        key = rotate(self.k_norm(heads(self.k_proj(x))).transpose(1, 2), cos, sin)
        value = heads(self.v_proj(x)).transpose(1, 2)
        seen = attend(self.layer, query, key, value)
        return self.o_proj(seen.transpose(1, 2).reshape(n, tokens, -1))


class MLP(nn.Module):
    """SwiGLU."""

    pointwise = EAGER

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor, recompute: bool = False) -> Tensor:
        """`recompute`: the gated product is computed again in the backward pass instead of being kept."""
        gate, up = self.gate_proj(x), self.up_proj(x)
        if recompute and torch.is_grad_enabled():  # ends where down_proj has its input: no product runs again
            return checkpoint(self._down, gate, up, use_reentrant=False, preserve_rng_state=False)
        return self._down(gate, up)

    def _down(self, gate: Tensor, up: Tensor) -> Tensor:
        return self.down_proj(self.pointwise.swiglu(gate, up))


class Layer(nn.Module):
    """Attention and MLP, each on a normed copy of the stream and added to it."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.self_attn = SelfAttention(config, layer)
        self.mlp = MLP(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attention, recompute_gates: bool = False) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, attend)
        return x + self.mlp(self.post_attention_layernorm(x), recompute_gates)


class Head(nn.Linear):
    """Scores of the vocabulary; or, chunk by chunk, the log-probabilities of given tokens.

    All chunks belong to one call of the module: ZeRO-3 gathers the weights once a call and on all devices together,
    and devices have different numbers of targets.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config.hidden_size, config.vocab_size, bias=False)

    def forward(
        self, input: Tensor, targets: Tensor | None = None, chunk: int = 1024, never: int | None = None
    ) -> Tensor:
        """Scores [..., vocab] of hidden states `input` [..., hidden].

        With `targets` [n] for `input` [n, hidden]: fp32 log-probabilities [n], from the scores of `chunk` rows at a
        time, which are computed again in the backward pass. `never`: a token that cannot be drawn.
        """
        if targets is None:
            return super().forward(input)

        def score(part: Tensor, wanted: Tensor) -> Tensor:
            logits = F.linear(part, self.weight).float()
            if never is not None:
                logits = logits.index_fill(-1, torch.tensor([never], device=logits.device), float("-inf"))
            return -F.cross_entropy(logits, wanted, reduction="none")

        kept = torch.is_grad_enabled()
        parts = zip(input.split(chunk), targets.split(chunk), strict=True)
        return torch.cat(
            [
                checkpoint(score, *part, use_reentrant=False, preserve_rng_state=False) if kept else score(*part)
                for part in parts
            ]
        )


class Body(nn.Module):
    """Embedding, layers and last norm: what Hugging Face calls `model`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        # Nothing is drawn, since `initialise` or a checkpoint follows: on the meta device it would import torch._dynamo.
        weight = torch.empty(config.vocab_size, config.hidden_size)
        self.embed_tokens = nn.Embedding.from_pretrained(weight, freeze=False)
        self.layers = nn.ModuleList(Layer(config, index) for index in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Transformer(nn.Module):
    """The whole model. `forward` ends at the last norm; `logits` applies the head where a caller needs it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Body(config)
        self.lm_head = Head(config)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
        self.checkpointing: bool | int = False
        """Layers that the backward pass computes again instead of keeping their activations: all (True), none (False),
        or this many, spread evenly."""
        self.recompute_gates = False
        """In the other layers, compute the MLP's gated product again: a sixth of the activations that they keep."""

    def forward(self, ids: Tensor, positions: Tensor, attend: Attention) -> Tensor:
        """Hidden states [n, tokens, hidden] of `ids` [n, tokens] at `positions` (same shape, or [tokens])."""
        x = self.model.embed_tokens(ids)
        cos, sin = rotary_angles(positions.expand(ids.shape), self.config)
        cos, sin = (part.to(x.dtype)[:, None] for part in (cos, sin))
        for layer, again in zip(self.model.layers, self._recomputed(), strict=True):
            if again and torch.is_grad_enabled():
                x = checkpoint(layer, x, cos, sin, attend, use_reentrant=False, preserve_rng_state=False)
            else:
                x = layer(x, cos, sin, attend, self.recompute_gates)
        return self.model.norm(x)

    def _recomputed(self) -> list[bool]:
        """For each layer: does the backward pass compute it again?"""
        layers = self.config.num_hidden_layers
        count = (layers if self.checkpointing else 0) if isinstance(self.checkpointing, bool) else self.checkpointing
        return [(index + 1) * count // layers > index * count // layers for index in range(layers)]

    def use(self, pointwise: Pointwise) -> Transformer:
        """Run the operations between products by `pointwise` (EAGER or compiled_pointwise())."""
        for module in self.modules():
            if isinstance(module, RMSNorm | SelfAttention | MLP):
                module.pointwise = pointwise
        return self

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights."""
        return self.lm_head.weight.dtype

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores [..., vocab] of hidden states [..., hidden]."""
        return self.lm_head(hidden)

    def log_probs(self, hidden: Tensor, targets: Tensor, *, chunk: int = 1024, never: int | None = None) -> Tensor:
        """fp32 log-probabilities [n] of `targets` [n] at hidden states [n, hidden]; see Head."""
        return self.lm_head(hidden, targets, chunk, never)

    @torch.no_grad()
    def initialise(self, seed: int) -> Transformer:
        """Random weights for training from scratch: N(0, 0.02); residual outputs smaller by sqrt(2 layers)."""
        std = 0.02
        generator = torch.Generator().manual_seed(seed)
        residual = std / (2 * self.config.num_hidden_layers) ** 0.5
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)
                continue
            scale = residual if name.endswith(("o_proj.weight", "down_proj.weight")) else std
            values = torch.randn(parameter.shape, generator=generator) * scale
            parameter.copy_(values.to(parameter))
        return self
