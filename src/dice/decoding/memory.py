"""How much memory decoding takes, by arithmetic before anything is allocated, and how many answers it decodes at a time.

weights  every parameter
cache    keys and values: 2 x layers x key-value heads x head_dim x positions x (slots + 1); each slot is as long as the
         longest prompt and answer that are decoded beside it
working  the larger one of a step's logits with their copies while tokens are drawn, and a prefill's activations
A canvas (LLaDA, Dream) has no cache; its working memory is the activations of every position of all answers at a time.

A few long prompts would make all slots long. So they are decoded by themselves where that is fewer rounds in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dice.decoding.sampling import SamplingConfig
from dice.errors import DiceError
from dice.model.transformer import ModelConfig

PREFILL_TOKENS = 16384
"""Prompt tokens of one prefill forward: enough to fill a GPU, and few enough for its memory."""
CANVAS_LOGITS = 256
"""Masks of a canvas whose logits are in memory together."""
GIB = 2**30


@dataclass(frozen=True)
class Batch:
    """Requests that share a cache."""

    requests: tuple[int, ...]
    """Their places among all requests, in the order in which they were given."""
    slots: int
    """Answers that are decoded at a time."""
    length: int
    """Positions of a slot."""


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes that decoding takes at most, and the batches that fit."""

    weights: int
    cache: int
    working: int
    available: int | None
    """None: no limit is known."""
    batches: tuple[Batch, ...]

    @property
    def total(self) -> int:
        """Bytes of all parts together."""
        return self.weights + self.cache + self.working

    def __str__(self) -> str:
        answers = " and then ".join(f"{one.slots} answers of up to {one.length:,} tokens" for one in self.batches)
        parts = ", ".join(
            f"{name} {size / GIB:.1f}"
            for name, size in (("weights", self.weights), ("cache", self.cache), ("working memory", self.working))
        )
        limit = "" if self.available is None else f" of {self.available / GIB:.1f}"
        return f"{answers} at a time: {self.total / GIB:.1f}{limit} GiB ({parts})"


def weight_bytes(config: ModelConfig, itemsize: int) -> int:
    """Bytes of the parameters; a tied head counts once."""
    return config.parameters * itemsize


def cache_bytes(config: ModelConfig, slots: int, length: int, itemsize: int) -> int:
    """Bytes of `dice.model.cache.KVCache`, whose last slot takes padding rows."""
    heads = config.num_hidden_layers * config.num_key_value_heads * config.head_dim
    return 2 * heads * (slots + 1) * length * itemsize


def working_bytes(
    config: ModelConfig,
    slots: int,
    length: int,
    prompt: int,
    itemsize: int,
    *,
    block: int,
    sampling: SamplingConfig,
    fast: bool,
) -> int:
    """An upper bound of what a forward needs beside weights and cache; `prompt`: tokens of the longest prompt."""
    logits = slots * block * config.vocab_size
    copies = 4 if sampling.greedy else 14  # fp32 logits, and what a draw makes of them: sorted, index, shares, sums
    step = logits * (itemsize + 4 * copies) + activation_bytes(config, 2 * slots * block, itemsize)
    tokens = max(PREFILL_TOKENS, prompt) if fast else prompt
    prefill = activation_bytes(config, tokens, itemsize)
    if not fast:  # attention without a kernel of its own: scores and shares of one prompt, and its mask
        prefill += prompt * prompt * (2 * 4 * config.num_attention_heads + 5)
        step += 2 * slots * block * length * (2 * 4 * config.num_attention_heads + 5)
        step += 2 * slots * length * 2 * config.num_key_value_heads * config.head_dim * itemsize  # copies of the slots
    return max(step, prefill)


def canvas_bytes(config: ModelConfig, slots: int, length: int, itemsize: int) -> int:
    """An upper bound of what a step of `slots` canvases of `length` positions needs beside the weights."""
    draws = CANVAS_LOGITS * config.vocab_size * 4 * 14
    return draws + activation_bytes(config, slots * length, itemsize)


def activation_bytes(config: ModelConfig, tokens: int, itemsize: int) -> int:
    """A layer's activations, none of which outlives it but the stream: norms in fp32, heads, gate and up."""
    heads = (config.num_attention_heads + 2 * config.num_key_value_heads) * config.head_dim
    return tokens * (
        config.hidden_size * (12 + 6 * itemsize) + heads * (8 + 6 * itemsize) + 4 * config.intermediate_size * itemsize
    )


def plan_memory(
    config: ModelConfig,
    requests: Sequence[tuple[int, int]],
    *,
    block: int,
    itemsize: int,
    sampling: SamplingConfig,
    max_batch: int,
    fast: bool,
    available: int | None,
    beyond: int = 0,
    canvas: bool = False,
) -> MemoryPlan:
    """The batches for these requests (tokens of the prompt, and most new ones) and what they take.

    beyond: positions of the cache behind an answer; canvas: no cache, and a step runs over all positions.
    available: bytes; None: as many slots as there are requests, up to `max_batch`. Raises DiceError, with the arithmetic,
    where not even one answer of the longest request fits.
    """
    weights = weight_bytes(config, itemsize)
    lengths = [-(-(prompt + new + beyond) // block) * block for prompt, new in requests]
    ordered = sorted(range(len(requests)), key=lambda place: -lengths[place])

    def needed(one: Batch) -> tuple[int, int]:
        prompt = max(requests[place][0] for place in one.requests)
        size = (config, one.slots, one.length)
        if canvas:
            return 0, canvas_bytes(*size, itemsize)
        working = working_bytes(*size, prompt, itemsize, block=block, sampling=sampling, fast=fast)
        return cache_bytes(*size, itemsize), working

    def batch(places: Sequence[int]) -> Batch:
        longest = max(lengths[place] for place in places)
        most = max(1, PREFILL_TOKENS // longest) if canvas else max_batch  # more fill no GPU any better
        one = Batch(tuple(sorted(places)), min(most, max_batch, len(places)), longest)
        while available is not None and one.slots > 1 and weights + sum(needed(one)) > available:
            one = replace(one, slots=one.slots - 1)
        return one

    def planned(batches: tuple[Batch, ...]) -> MemoryPlan:
        sizes = [needed(one) for one in batches]
        cache, working = max(sizes, key=sum)
        return MemoryPlan(weights, cache, working, available, batches)

    whole = planned((batch(ordered),))
    if available is None:
        return whole
    if whole.total > available and whole.batches[0].slots == 1:
        raise DiceError(
            f"decoding does not fit the memory of the device: {whole}; lower max_new_tokens, leave out the longest "
            "prompts, or take a larger GPU."
        )
    # one long prompt makes every round long: the longest are decoded apart where that takes fewer rounds
    cuts = [k for k in range(1, len(ordered)) if lengths[ordered[k]] < lengths[ordered[k - 1]]]
    parted = [(batch(ordered[:cut]), batch(ordered[cut:])) for cut in cuts]
    return min(
        [whole, *map(planned, parted)], key=lambda plan: sum(-(-len(b.requests) // b.slots) for b in plan.batches)
    )


def check_cache(config: ModelConfig, slots: int, length: int, itemsize: int, free: int) -> None:
    """Raises DiceError, with the slots that would fit, for a cache that is larger than the free bytes."""
    needed = cache_bytes(config, slots, length, itemsize)
    if needed > free:
        fit = max(0, free // cache_bytes(config, 0, length, itemsize) - 1)
        raise DiceError(
            f"a cache for {slots} answers of up to {length:,} tokens takes {needed / GIB:.1f} GiB, and {free / GIB:.1f} GiB "
            f"of the GPU are free: room for {fit}. Lower rollout.max_batch or rollout.max_new_tokens."
        )
