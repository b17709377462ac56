"""How much memory of each GPU training takes, by arithmetic before a weight is read.

state        weights, fp32 masters, gradients and two moments: 18 bytes a parameter in 16 bits. Over n GPUs ZeRO-2 shares
             all but the weights, 2 + 16 / n, and ZeRO-3 the weights too, 18 / n; DeepSpeed's buffers come on top
activations  of one micro-batch: what its layers keep for the backward pass, and the larger of what one layer computes with
             and the head's logits
copies       of the weights, in reinforcement learning: for decoding beside a sharding engine, and the model that the KL is
             measured from
answers      in reinforcement learning: cache and working memory of decoding, freed before an update with `rollout.release`

Upper bounds, 2 to 11 % above what was measured (docs/measurements/fine-tuning.md). FlexAttention keeps nothing of its own;
what `attention: batched` of small models takes is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from dice.decoding.memory import GIB, activation_bytes, cache_bytes, weight_bytes, working_bytes
from dice.errors import DiceError
from dice.model.transformer import ModelConfig
from dice.training.losses import padded_length
from dice.training.packing import GPU_ROWS
from dice.training.processes import EngineName
from dice.training.rl_config import RlConfig
from dice.training.sft_config import SftConfig
from dice.training.zero_engine import REDUCE_BUCKET

LIVE_PARAMETERS = 1_000_000_000
"""Parameters that ZeRO-3 gathers at most at a time (DeepSpeed's stage3_max_live_parameters)."""


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of one GPU that training takes at most."""

    state: int
    activations: int
    copies: int = 0
    answers: int = 0
    freed: bool = True
    """Whether the memory of answers is freed before activations take theirs."""

    @property
    def total(self) -> int:
        """Bytes of all parts that are there together."""
        both = (self.activations, self.answers)
        return self.state + self.copies + (max(both) if self.freed else sum(both))

    def __str__(self) -> str:
        named = {"weights and their state": self.state, "copies of the weights": self.copies}
        named |= {"activations": self.activations, "decoding": self.answers}
        parts = ", ".join(f"{name} {size / GIB:.1f}" for name, size in named.items() if size)
        return f"{self.total / GIB:.1f} GiB of each GPU ({parts})"

    def check(self, available: int) -> None:
        """Raises DiceError where the total is more than the available bytes of a GPU."""
        if self.total > available:
            raise DiceError(
                f"training takes up to {self}, and there are {available / GIB:.1f} GiB; take more GPUs with engine zero2 or "
                "zero3, fewer rows at a time (window, micro_batch_rows), or set memory_gib."
            )


def state_bytes(config: ModelConfig, engine: EngineName, gpus: int, itemsize: int) -> int:
    """Weights, masters, gradients and moments on one GPU, and DeepSpeed's buffers."""
    parameters = weight_bytes(config, 1)
    if engine == "local":  # fp32 weights are their own masters
        return parameters * (16 if itemsize == 4 else 16 + itemsize)
    buffers = 2 * REDUCE_BUCKET * itemsize
    if engine == "zero2":
        return parameters * itemsize + 16 * parameters // gpus + min(buffers, 2 * parameters * itemsize)
    gathered = min(LIVE_PARAMETERS, parameters) * itemsize
    return (16 + itemsize) * parameters // gpus + min(buffers, 2 * parameters * itemsize) + gathered


def layers_to_recompute(wanted: bool | int | None, geometry: ModelConfig) -> int:
    """Layers that the backward pass computes again; `wanted`: the setting activation_checkpointing."""
    layers = geometry.num_hidden_layers
    if wanted is None:
        wanted = geometry.hidden_size >= 1024
    return layers * wanted if isinstance(wanted, bool) else min(wanted, layers)


def activations(config: SftConfig | RlConfig, geometry: ModelConfig, rows: int, itemsize: int) -> int:
    """Activations of a micro-batch of `rows`: of a layer that is computed again, only its input is kept."""
    heads, key_value = (n * geometry.head_dim for n in (geometry.num_attention_heads, geometry.num_key_value_heads))
    gates = 2 if isinstance(config, SftConfig) and config.recompute_gates else 3
    layer = 4 * (geometry.hidden_size + heads + key_value) + gates * geometry.intermediate_size
    recomputed = layers_to_recompute(config.activation_checkpointing, geometry)
    values = recomputed * geometry.hidden_size + (geometry.num_hidden_layers - recomputed) * layer
    targets = min(config.head_chunk, rows)
    logits = targets * geometry.vocab_size * (12 + 2 * itemsize)  # in both types, their log-softmax, both gradients
    head = logits + 2 * geometry.head_parameters * itemsize  # a chunk's gradient is added to that of those before it
    return rows * itemsize * values + max(activation_bytes(geometry, rows, itemsize), head)


def sft_memory(
    config: SftConfig, geometry: ModelConfig, gpus: int, itemsize: int, *, answer_share: float = 1.0
) -> TrainingMemory:
    """Memory of `dice sft`; `answer_share`: share of a window's tokens that have a noised copy."""
    copies = 1 + answer_share if config.objective == "block_diffusion" else 1
    rows = padded_length(round(copies * config.window), GPU_ROWS)
    return TrainingMemory(
        state_bytes(geometry, config.engine, gpus, itemsize), activations(config, geometry, rows, itemsize)
    )


def rl_memory(config: RlConfig, geometry: ModelConfig, gpus: int, itemsize: int, *, prompt: int) -> TrainingMemory:
    """Memory of `dice rl`; `prompt`: tokens of the longest prompt. Where each forward fixes one token, an answer is replayed
    in as many noised blocks as it has tokens."""
    rollout = config.rollout
    block = rollout.decoding.block_size
    longest = prompt + rollout.max_new_tokens
    rows = padded_length(max(config.objective.micro_batch_rows, longest + block * rollout.max_new_tokens), GPU_ROWS)
    weights = weight_bytes(geometry, itemsize)
    copies = (config.engine != "local") + (config.objective.kl_reference == "start_model")
    slots = rollout_slots(config, gpus)
    fast = rollout.engine != "plain" and itemsize == 2
    decoding = working_bytes(
        geometry, slots, longest, prompt, itemsize, block=block, sampling=rollout.decoding.sampling, fast=fast
    )
    return TrainingMemory(
        state=state_bytes(geometry, config.engine, gpus, itemsize),
        activations=activations(config, geometry, rows, itemsize),
        copies=copies * weights,
        answers=cache_bytes(geometry, slots, longest, itemsize) + decoding,
        freed=rollout.release,
    )


def rollout_slots(config: RlConfig, gpus: int) -> int:
    """Answers that one process decodes at a time."""
    rollout = config.rollout
    mine = -(-rollout.problems_per_step // gpus) * rollout.samples
    return rollout.max_batch if config.pool.answers else min(rollout.max_batch, mine)
