"""The training objectives: block diffusion (Eq. 2 of arXiv 2602.11715) and next-token prediction, on packed rows.

Block diffusion, for each sample (or block) with noise level t ~ U(0, 1) and p = (1 - eps) t + eps: each answer token
is masked with probability p, and the loss is the sum over masked tokens of cross-entropy / p, divided by the number
of labelled tokens. The model's input is the noised copy x_t and the clean copy x_0 under the mask of
`dice.model.attention_masks`; position i predicts token i. Details as in SDAR's modeling_sdar.py and
fused_linear_diffusion_cross_entropy.py.

Noised blocks without a labelled token (the prompt's) are left out: no other token attends to them, so loss and gradients
stay exactly the same and the rows shrink by the length of the prompts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dice.model.attention_masks import (
    PAD_SAMPLE,
    Layout,
    SampleAttention,
    flex_attention_for,
    sample_order,
    visible_pairs,
)
from dice.model.transformer import ModelConfig, Transformer
from dice.training.batched_attention import BatchedAttention
from dice.training.packing import Ints, Pack

NoisePer = Literal["sample", "block"]
AttentionName = Literal["auto", "batched"]
REDRAWS = 10


@dataclass(frozen=True)
class Noise:
    """What is masked in a pack; both [tokens]."""

    masked: NDArray[np.bool_]
    probability: NDArray[np.float32]
    """p of each token's draw."""


def draw_noise(
    pack: Pack, rng: np.random.Generator, *, per: NoisePer = "sample", block_size: int = 4, epsilon: float = 1e-3
) -> Noise:
    """One t per sample (as released) or per block (as Eq. 2 is written).

    Per sample, a draw that masks nothing is repeated up to 10 times, and then one token is masked, as released. Per block
    nothing is forced: a block without a mask is part of the expectation.
    """
    masked = np.zeros(len(pack.ids), np.bool_)
    probability = np.ones(len(pack.ids), np.float32)
    end = 0
    for sample in pack.samples:
        start, end = end, end + len(sample.ids)
        span = slice(start, end)
        labelled = pack.labelled[span]
        if per == "block":
            level = rng.random(-(-len(labelled) // block_size))[np.arange(len(labelled)) // block_size]
        else:
            level = np.full(len(labelled), rng.random())
        p = (1 - epsilon) * level + epsilon
        chosen = labelled & (rng.random(len(labelled)) < p)
        if per == "sample" and labelled.any():
            for _ in range(REDRAWS - 1):
                if chosen.any():
                    break
                chosen = labelled & (rng.random(len(labelled)) < p)
            if not chosen.any():
                chosen[rng.choice(np.flatnonzero(labelled))] = True
        masked[span], probability[span] = chosen, p
    return Noise(masked, probability)


@dataclass(frozen=True)
class TrainingRows:
    """One packed row for the model, and which of its positions predict which tokens."""

    ids: Tensor
    """[rows]"""
    positions: Tensor
    """[rows]"""
    layout: Layout
    at: Tensor
    """[targets]: rows whose hidden state predicts."""
    targets: Tensor
    """[targets]: the tokens to predict."""
    weights: Tensor
    """[targets]: fp32 factor of each cross-entropy."""

    def to(self, device: torch.device | str) -> TrainingRows:
        """The same on another device."""
        moved = (getattr(self, name).to(device) for name in ("ids", "positions", "layout", "at", "targets", "weights"))
        return TrainingRows(*moved)

    def by_sample(self) -> TrainingRows:
        """The same in the order of SampleAttention."""
        order = sample_order(self.layout)
        layout = Layout(*(part[order] for part in (self.layout.sample, self.layout.block, self.layout.noised)))
        at = torch.argsort(order)[self.at]
        return replace(self, ids=self.ids[order], positions=self.positions[order], layout=layout, at=at)


def diffusion_rows(pack: Pack, noise: Noise, *, block_size: int, mask_id: int, multiple: int = 1) -> TrainingRows:
    """[noised blocks that hold labels ; clean copy ; padding], as long as `padded_length` says."""
    block = pack.positions // block_size
    name = pack.sample * (int(block.max()) + 1) + block
    group = np.cumsum(np.diff(name, prepend=name[:1]) != 0)  # the tokens of a block stand together
    kept = (np.bincount(group, weights=pack.labelled) > 0)[group]
    noised_ids = np.where(noise.masked, mask_id, pack.ids)[kept]
    at = np.flatnonzero(noise.masked[kept])
    return join_rows(
        ids=(noised_ids, pack.ids),
        positions=(pack.positions[kept], pack.positions),
        sample=(pack.sample[kept], pack.sample),
        block=(block[kept], block),
        multiple=multiple,
        at=at,
        targets=pack.ids[noise.masked],
        weights=1.0 / noise.probability[noise.masked],
    )


def causal_rows(pack: Pack, *, multiple: int = 1) -> TrainingRows:
    """The clean copy alone; each labelled token is predicted by the one before it."""
    targets = np.flatnonzero(pack.labelled & (pack.positions > 0))
    nothing = np.zeros(0, np.int64)
    return join_rows(
        ids=(nothing, pack.ids),
        positions=(nothing, pack.positions),
        sample=(nothing, pack.sample),
        block=(nothing, pack.positions),
        multiple=multiple,
        at=targets - 1,
        targets=pack.ids[targets],
        weights=np.ones(len(targets)),
    )


def padded_length(rows: int, multiple: int) -> int:
    """The next multiple of `multiple` and, unless that is 1, of an eighth of the power of two below `rows`.

    All rows then have one of eight lengths per octave, each of which FlexAttention compiles once; at most 1/8 is padding.
    """
    step = multiple if multiple == 1 else max(multiple, 1 << max(0, rows.bit_length() - 4))
    return -(-rows // step) * step


def join_rows(
    *,
    ids: tuple[Ints, Ints],
    positions: tuple[Ints, Ints],
    sample: tuple[Ints, Ints],
    block: tuple[Ints, Ints],
    multiple: int,
    at: Ints,
    targets: Ints,
    weights: NDArray[np.floating],
    copy: Ints | None = None,
) -> TrainingRows:
    """[noised ; clean ; padding] as one row; `copy`: numbers of the noised copies, where there are several."""
    noised, clean = len(ids[0]), len(ids[1])
    fill = padded_length(noised + clean, multiple) - noised - clean

    def joined(parts: tuple[Ints, Ints], padding: Ints) -> Tensor:
        return torch.from_numpy(np.concatenate((*parts, padding)).astype(np.int64))

    # padding counts as noised, in blocks of 128, so that it attends to little
    layout = Layout(
        joined(sample, np.full(fill, PAD_SAMPLE)),
        joined(block, np.arange(fill) // 128),
        joined(
            (np.ones(noised, np.int64) if copy is None else copy, np.zeros(clean, np.int64)), np.ones(fill, np.int64)
        ),
    )
    return TrainingRows(
        ids=joined(ids, np.zeros(fill, np.int64)),
        positions=joined(positions, np.zeros(fill, np.int64)),
        layout=layout,
        at=torch.from_numpy(at),
        targets=torch.from_numpy(targets),
        weights=torch.from_numpy(np.asarray(weights, np.float32)),
    )


def target_log_probs(
    model: Transformer,
    rows: TrainingRows,
    *,
    chunk: int = 1024,
    attention: AttentionName = "auto",
    never: int | None = None,
) -> Tensor:
    """fp32 log-probabilities [targets] of `rows.targets`, with gradients; `never`: a token that cannot be drawn.

    The head runs over `chunk` targets at a time, and again in the backward pass, so that at any time only the logits of
    one chunk exist.
    """
    if attention == "batched":
        attend = BatchedAttention(rows.layout, model.dtype)
    elif rows.layout.sample.is_cuda:
        attend = flex_attention_for(rows.layout)
    else:
        rows = rows.by_sample()
        attend = SampleAttention(rows.layout)
    hidden = model(rows.ids[None], rows.positions[None], attend)[0]
    return model.log_probs(hidden[rows.at], rows.targets, chunk=chunk, never=never)


class Objective(nn.Module):
    """Model and loss as one module, which a sharding engine can wrap."""

    def __init__(self, model: Transformer, chunk: int = 1024, attention: AttentionName = "auto") -> None:
        super().__init__()
        self.model = model
        self.chunk = chunk
        self.attention: AttentionName = attention

    def forward(self, rows: TrainingRows, normaliser: int) -> Tensor:
        """Weighted cross-entropy divided by `normaliser`, the labelled tokens of the whole optimizer step.

        Its sum over micro-batches and devices is the loss of the step, however the step is divided.
        """
        scores = target_log_probs(self.model, rows, chunk=self.chunk, attention=self.attention)
        return -(scores * rows.weights).sum() / normaliser


def step_flops(config: ModelConfig, rows: TrainingRows) -> int:
    """Floating-point operations of forward and backward that the objective needs (recomputation is not counted).

    6 x weights x rows, both copies counted, padding not; the head only at targets; attention 12 x layers x heads x
    head_dim x visible pairs (two products, forward and twice backward).
    """
    real = rows.layout.sample != PAD_SAMPLE
    pairs = visible_pairs(Layout(rows.layout.sample[real], rows.layout.block[real], rows.layout.noised[real]))
    heads = config.num_hidden_layers * config.num_attention_heads * config.head_dim
    body = 6 * config.matmul_parameters * int(real.sum())
    return body + 6 * config.head_parameters * len(rows.targets) + 12 * heads * pairs


PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}
"""Dense bf16 operations per second from the vendor's data sheets; the denominator of MFU."""


def peak_flops(device_name: str) -> float | None:
    """Peak rate of a GPU by its name; None for a GPU that is not in the table, which gets no MFU."""
    return next((peak for name, peak in PEAK_FLOPS.items() if name in device_name), None)
