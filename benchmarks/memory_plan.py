"""GPU memory of decoding at 8B and the paper's lengths: what `dice generate` plans beside what PyTorch took.

    python benchmarks/memory_plan.py [--hold-gb 80] [--memory-gib 73] [--answer 64] [--seconds 26 8 6] [--out memory.jsonl]

Random weights in bf16; SDAR-8B's geometry with answers of 4,096 tokens, Qwen3-8B's with 32,768, LLaDA-8B's with 4,096;
250 prompts of lengths like KernelBench's, the longest 6,522. PyTorch is held to `--hold-gb` (it raises beyond it), whatever
the card has. Batches and caches are the plan's. Two runs of each batch:
`all`    every prompt; answers end after `--answer` tokens, so that slots are refilled and the batch shrinks at the end;
`long`   the first prompts of the batch, answers to their full length, ended after `--seconds` (of each model).
A canvas has no cache and no refill to look at: its `long` run alone, LLaDA in 128 steps.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from canvas_decoding import GEOMETRIES
from one_gpu import random_model

from dice.decoding.autoregressive import AutoregressiveConfig
from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.canvas import CanvasDecoder
from dice.decoding.llada import LladaConfig
from dice.decoding.memory import GIB, Batch, MemoryPlan, plan_memory
from dice.decoding.requests import Request
from dice.decoding.samplers import Decoding, make_decoder, memory_layout
from dice.decoding.sampling import SamplingConfig
from dice.jsonl import Journal
from dice.model.transformer import ModelConfig, Transformer, compiled_pointwise

PROMPTS = [900 + 2 * k for k in range(240)] + [1700, 1800, 1900, 2000, 2200, 2400, 2800, 3400, 4802, 6522]
"""Tokens of the prompts."""
EIGHT: dict[str, Any] = {
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
MODELS: dict[str, tuple[ModelConfig, Decoding, int]] = {
    "sdar": (
        ModelConfig(**EIGHT),
        BlockDiffusionConfig(sampling=SamplingConfig(temperature=1.0, top_k=1)),
        4096,
    ),
    "qwen3": (
        ModelConfig(**EIGHT, model_type="qwen3", max_position_embeddings=40960),
        AutoregressiveConfig(sampling=SamplingConfig(temperature=0.6, top_k=20, top_p=0.95)),
        32768,
    ),
    "llada": (GEOMETRIES["llada"], LladaConfig(steps=128), 4096),
}
ENGINE: Any = "fast" if torch.cuda.is_available() else "plain"


class _Enough(Exception):
    """Ends a run."""


def until(step: Callable[..., Any], deadline: float) -> Callable[..., Any]:
    """`step`, which ends the run after the deadline."""

    def timed(*args: Any) -> Any:
        if time.monotonic() > deadline:
            raise _Enough
        return step(*args)

    return timed


def planned(
    config: ModelConfig, decoding: Decoding, prompts: list[int], new: int, slots: int, available: int | None
) -> MemoryPlan:
    """As `dice generate` plans."""
    return plan_memory(
        config,
        [(prompt, new) for prompt in prompts],
        **memory_layout(decoding),
        itemsize=2,
        sampling=decoding.sampling,
        max_batch=slots,
        fast=ENGINE == "fast",
        available=available,
    )


def decode(model: Transformer, decoding: Decoding, batch: Batch, new: int, lengths: list[int], seconds: float) -> str:
    """Decode prompts of these lengths in the planned batch; returns what was done."""
    decoder: Any = make_decoder(
        model,
        decoding,
        mask_id=model.config.vocab_size - 1,
        stop_ids=(),
        max_batch=batch.slots,
        max_length=batch.length,
        engine=ENGINE,
    )
    deadline = time.monotonic() + seconds
    stepping, name = (decoder, "_step") if isinstance(decoder, CanvasDecoder) else (decoder.forward, "finish")
    setattr(stepping, name, until(getattr(stepping, name), deadline))
    draw = torch.Generator().manual_seed(0)
    most = model.config.vocab_size - 8
    prompts = [tuple(torch.randint(0, most, (length,), generator=draw).tolist()) for length in lengths]
    done = 0
    try:
        for completion in decoder.run([Request(prompt, new, seed) for seed, prompt in enumerate(prompts)]):
            done += len(completion.ids) == new
    except _Enough:
        pass
    finally:
        delattr(stepping, name)  # which would keep the decoder and its cache: a method of an object that it belongs to
    return f"{done} of {len(lengths)} answers of {new} tokens, {decoder.steps} steps"


def measure(
    model: Transformer, decoding: Decoding, new: int, plan: MemoryPlan, answer: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """A line for each batch and run."""
    for batch in plan.batches:
        lengths = [PROMPTS[place] for place in batch.requests]
        longest = sorted(lengths, reverse=True)[: batch.slots]
        runs = {"all": (answer, lengths), "long": (new, longest)}
        if isinstance(decoding, LladaConfig):
            del runs["all"]
        for run, (tokens, given) in runs.items():
            begun = time.monotonic()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            done = decode(model, decoding, batch, tokens, given, seconds if run == "long" else 1e9)
            row: dict[str, Any] = {"run": run, "slots": batch.slots, "length": batch.length, "done": done}
            row["seconds"] = round(time.monotonic() - begun, 1)
            own = planned(model.config, decoding, lengths, new, batch.slots, None)
            parts = {"weights": own.weights, "cache": own.cache, "working": own.working, "total": own.total}
            row |= {f"planned_{part}_gb": round(size / 1e9, 2) for part, size in parts.items()}
            if torch.cuda.is_available():
                row["peak_allocated_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
                row["peak_reserved_gb"] = round(torch.cuda.max_memory_reserved() / 1e9, 2)
            yield row


def main() -> int:
    """Print a line for each model, batch and run."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--hold-gb", type=float, default=80)
    parser.add_argument("--memory-gib", type=float, default=73, help="memory to plan for, as at the scale released")
    parser.add_argument("--answer", type=int, default=64)
    parser.add_argument("--seconds", type=float, nargs="+", default=[26, 8, 6])
    parser.add_argument("--budget-s", type=float, default=540, help="start no further model after so many seconds")
    parser.add_argument("--out", type=Path, default=Path("memory.jsonl"))
    args = parser.parse_args()
    started = time.monotonic()
    if torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(
            args.hold_gb * 1e9 / torch.cuda.get_device_properties(0).total_memory
        )
    with Journal(args.out) as journal:
        for place, name in enumerate(args.models):
            if time.monotonic() - started > args.budget_s:
                print(f"not run, out of time: {name}")
                continue
            config, decoding, new = MODELS[name]
            plan = planned(config, decoding, PROMPTS, new, 64, int(args.memory_gib * GIB))
            print(f"{name}: {plan}", flush=True)
            model = random_model(config)
            if torch.cuda.is_available() and isinstance(decoding, LladaConfig):
                model.use(compiled_pointwise())
            for row in measure(model, decoding, new, plan, args.answer, args.seconds[place % len(args.seconds)]):
                row = {"model": name} | row
                journal.append(row | {"hold_gb": args.hold_gb})
                print(json.dumps(row), flush=True)
            del model
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
