"""Pairs as token samples, and samples packed into windows of fixed size.

A sample is a prompt and an answer. It is padded to a whole number of blocks with the end-of-text token, and this padding
is labelled: the model learns to close its last block (SDAR's LLaMA-Factory fork, processor/supervised.py).
Blocks are aligned to the sample's start, as at inference.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dice.data.pair import Pair
from dice.data.tokenizer import CodeTokenizer
from dice.errors import DiceError
from dice.evaluation.prompts import PromptConfig, Task, make_answer, make_prompts

Ints = NDArray[np.int64]
OnLong = Literal["refuse", "drop"]
TrainingTask = Literal["end_to_end", "infilling", "both"]
GPU_ROWS = 1024
"""On a GPU rows are padded to a multiple of this, so that few shapes are compiled."""


@dataclass(frozen=True)
class Sample:
    """One prompt and answer in tokens; the labelled tokens begin at `prompt_length`."""

    id: str
    ids: Ints
    prompt_length: int


@dataclass(frozen=True)
class Pack:
    """Samples side by side. All arrays [tokens]; nothing is padded here."""

    samples: tuple[Sample, ...]

    @cached_property
    def ids(self) -> Ints:
        """Tokens."""
        return np.concatenate([sample.ids for sample in self.samples])

    @cached_property
    def positions(self) -> Ints:
        """Position within the sample."""
        return np.concatenate([np.arange(len(sample.ids)) for sample in self.samples])

    @cached_property
    def sample(self) -> Ints:
        """Number of the sample within the pack."""
        return np.repeat(np.arange(len(self.samples)), [len(sample.ids) for sample in self.samples])

    @cached_property
    def labelled(self) -> NDArray[np.bool_]:
        """Tokens that carry loss."""
        return np.concatenate([np.arange(len(sample.ids)) >= sample.prompt_length for sample in self.samples])


def encode_pairs(
    pairs: Iterable[Pair],
    tokenizer: CodeTokenizer,
    prompt: PromptConfig,
    *,
    block_size: int,
    window: int,
    task: TrainingTask = "end_to_end",
    on_long: OnLong = "refuse",
) -> tuple[list[Sample], list[str]]:
    """(samples, ids of pairs that were dropped because they exceed the window).

    Raises DiceError for the first sample longer than `window` tokens unless `on_long="drop"`, and for a pair without
    the parts that infilling needs.
    """
    given: list[tuple[str, Task, str]] = []  # id, task, answer
    for pair in pairs:
        if task != "infilling":
            given.append((pair.id, Task(pair.pytorch_code), make_answer(pair.cuda_code, prompt)))
        if task != "end_to_end":
            if pair.middle is None:
                if task == "both":
                    continue  # pairs that cannot be split still teach the whole task
                raise DiceError(f"pair '{pair.id}' has no middle; run `dice infill`, or set task to end_to_end.")
            answer = make_answer(pair.middle if prompt.answer == "middle" else pair.cuda_code, prompt)
            given.append((pair.id, Task(pair.pytorch_code, pair.prefix, pair.suffix), answer))
    asked = tokenizer.encode_batch(make_prompts([one for _, one, _ in given], prompt))
    answered = tokenizer.encode_batch([answer for _, _, answer in given])
    samples, dropped = [], []
    for (name, _, _), question, answer in zip(given, asked, answered, strict=True):
        fill = -(len(question) + len(answer)) % block_size
        ids = np.array(question + answer + [tokenizer.ids.ends[-1]] * fill, np.int64)
        if len(ids) <= window:
            samples.append(Sample(name, ids, len(question)))
        elif on_long == "drop":
            dropped.append(name)
        else:
            raise DiceError(
                f"pair '{name}' needs {len(ids)} tokens and the window has {window}; "
                "raise the window, remove the pair, or set on_long to drop."
            )
    if not samples:
        raise DiceError("no pair fits the window, so there is nothing to train on.")
    return samples, dropped


def pack_samples(samples: Sequence[Sample], window: int, rng: np.random.Generator) -> list[Pack]:
    """Every sample once, in packs of at most `window` tokens: shuffled, each put where it leaves the least room.

    (The greedy knapsack of LLaMA-Factory's neat_packing, on a shuffled order.)
    """
    open_packs: list[tuple[int, int]] = []  # (room left, pack), ascending
    packs: list[list[Sample]] = []
    for index in rng.permutation(len(samples)):
        sample = samples[index]
        at = bisect_left(open_packs, (len(sample.ids), -1))
        if at == len(open_packs):
            packs.append([sample])
            insort(open_packs, (window - len(sample.ids), len(packs) - 1))
        else:
            room, pack = open_packs.pop(at)
            packs[pack].append(sample)
            insort(open_packs, (room - len(sample.ids), pack))
    return [Pack(tuple(packs[index])) for index in rng.permutation(len(packs))]
