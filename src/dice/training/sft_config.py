"""Settings of `dice sft`: the model, the data, the objective, and the learning rate's schedule."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, NonNegativeInt

from dice.config import stage_config
from dice.data.pair import OnBad
from dice.evaluation.prompts import PromptConfig
from dice.model.checkpoint import Dtype
from dice.training.losses import AttentionName, NoisePer
from dice.training.optimizer import OptimizerConfig
from dice.training.packing import OnLong, TrainingTask
from dice.training.processes import DeviceName, EngineName


@stage_config
class Geometry:
    """A model to train from scratch; the vocabulary is the tokenizer's."""

    hidden_size: int = 160
    """Width of the residual stream."""
    intermediate_size: int = 448
    """Width of the MLP."""
    num_hidden_layers: int = 6
    """Layers."""
    num_attention_heads: int = 5
    """Query heads."""
    num_key_value_heads: int = 5
    """Key-value heads; queries share them in equal groups."""
    head_dim: int = 32
    """Width of a head."""
    tie_word_embeddings: bool = True
    """One matrix for embedding and head."""
    rope_theta: float = 10000.0
    """Base of the rotary positions."""


@stage_config
class SftConfig:
    """Settings of `dice sft`. Defaults are the authors' recipe where it has the setting."""

    pairs: tuple[str, ...]
    """Files of pairs to train on."""
    out: str
    """Folder of the run."""
    objective: Literal["block_diffusion", "autoregressive"] = "block_diffusion"
    """Eq. 2, or next-token prediction (the AR rows of Table 7)."""
    model: str | None = None
    """Checkpoint folder to start from; None: from scratch with `geometry`."""
    geometry: Geometry = Geometry()
    """Model to train from scratch."""
    tokenizer: str | None = None
    """Folder of the tokenizer; None: the model's."""
    prompt: PromptConfig = PromptConfig()
    """How a pair becomes prompt and answer."""
    task: TrainingTask = "end_to_end"
    """Whole programs, middles of split pairs, or both."""
    window: int = Field(default=6144, ge=8)
    """Tokens of a pack, and of the longest sample."""
    on_long: OnLong = "refuse"
    """`refuse` the data when a sample is longer than the window, or `drop` it (the released behaviour) and say so."""
    on_bad: OnBad = "refuse"
    """`refuse` a file when a row is bad, or `skip` it."""
    block_size: int = Field(default=4, ge=1)
    """Tokens of a block."""
    noise_per: NoisePer = "sample"
    """One noise level per `sample` (released) or per `block` (as Eq. 2 is written)."""
    epsilon: float = Field(default=1e-3, gt=0, lt=1)
    """Smallest mask probability."""
    epochs: int = Field(default=3, ge=1)
    """Times that every pair is seen."""
    max_steps: int | None = Field(default=None, ge=1)
    """Stop after this many steps; `epochs` is then ignored, and the data are repeated as often as needed."""
    max_minutes: float | None = Field(default=None, gt=0)
    """Stop after so many minutes of training; warm-up and schedule then follow the clock where it is ahead of the
    steps, so the curve depends on the machine. A resumed run's clock goes on where its checkpoint was."""
    packs_per_step: int = Field(default=8, ge=1)
    """Packs of one optimizer step, over all devices; each is a micro-batch of its own."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """AdamW."""
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    """Learning rate after the warm-up; `cosine` and `linear` end at zero."""
    warmup_ratio: float = Field(default=0.03, ge=0, le=1)
    """Share of the steps over which the rate rises linearly."""
    engine: EngineName = "local"
    """`local`: one device, or replicas under torchrun; `zero2`, `zero3`: DeepSpeed."""
    zero_options: dict[str, bool | int | float] = Field(default_factory=dict)
    """Entries of DeepSpeed's `zero_optimization` that replace those of `dice.training.zero_engine`."""
    device: DeviceName = "auto"
    """`auto` takes a GPU where there is one."""
    memory_gib: float | None = Field(default=None, gt=0)
    """Memory of a GPU in GiB; what takes more is refused before a weight is read. None: what the GPU has, no limit on a
    CPU."""
    dtype: Dtype | None = None
    """Type of the products' weights (masters are fp32); None: bfloat16 on a GPU, float32 on a CPU."""
    activation_checkpointing: bool | NonNegativeInt | None = None
    """Recompute layers in the backward pass instead of keeping their activations: all (true), none (false), or this
    many, spread evenly; None: all, for models at least 1,024 wide."""
    recompute_gates: bool = False
    """Recompute the MLP's gated product in the other layers: this saves a sixth of their activations for 1 % of time."""
    attention: AttentionName = "auto"
    """`auto`: FlexAttention on a GPU, sample by sample on a CPU. `batched`: all samples of a pack in one padded batch
    with an explicit mask, for small models on short samples."""
    compile: bool = True
    """Compile the operations between products on a GPU."""
    head_chunk: int = Field(default=1024, ge=1)
    """Targets whose logits exist at one time."""
    save_every: int = Field(default=200, ge=1)
    """Steps between checkpoints."""
    keep_checkpoints: int = Field(default=1, ge=1)
    """Newest checkpoints to keep."""
    seed: int = 0
    """Seed of the initial weights, the packs and the noise."""
    tensorboard: bool = True
    """Write TensorBoard files beside the history."""


RESUMABLE_CHANGES = {
    "out", "engine", "zero_options", "device", "memory_gib", "activation_checkpointing", "recompute_gates", "attention",
    "compile", "head_chunk", "max_minutes", "save_every", "keep_checkpoints", "tensorboard",
}  # fmt: skip
"""Settings that may change when a run is resumed. They change no loss beyond rounding, but for `max_minutes`: where it is
set, the rate follows the clock."""


def learning_rate(config: SftConfig, step: float, total: int) -> float:
    """Learning rate of `step` (from 0) of `total`."""
    warm = round(config.warmup_ratio * total)
    factor = min(1.0, (step + 1) / warm) if warm else 1.0
    if config.schedule != "constant" and step >= warm:
        share = (step - warm) / max(1, total - warm)
        factor = 1 - share if config.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * share))
    return config.optimizer.learning_rate * factor
