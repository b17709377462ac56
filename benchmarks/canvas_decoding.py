"""Decoding speed of the models that fill a canvas: LLaDA-8B's and Dream-7B's geometry, random weights, bf16, one GPU.

    python benchmarks/canvas_decoding.py [--batches 1 4] [--steps 32] [--eager] [--out canvas.jsonl]

Prompts of 892 tokens and 1,024 new ones, greedy. The answer takes `--steps` steps where the vendors take one a token; a
step's cost is the same. Each line stands beside its limit: the products of one step (all positions through the layers,
the masks that compete through the head, attention of each canvas) over the matrix rate measured in the same run.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import time
from pathlib import Path

import torch
from decoding import PROMPT, machine, random_model

from dice.decoding.canvas import CanvasDecoder
from dice.decoding.dream import DreamConfig, DreamSchedule
from dice.decoding.llada import LladaConfig, LladaSchedule
from dice.decoding.requests import Request
from dice.jsonl import Journal
from dice.model.families import FAMILIES
from dice.model.transformer import ModelConfig, compiled_pointwise

NEW_TOKENS = 1024
GEOMETRIES = {
    "llada": ModelConfig(
        vocab_size=126464,
        hidden_size=4096,
        intermediate_size=12288,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
        head_dim=128,
        model_type="llada",
        qk_norm=False,
    ),
    "dream": ModelConfig(
        vocab_size=152064,
        hidden_size=3584,
        intermediate_size=18944,
        num_hidden_layers=28,
        num_attention_heads=28,
        num_key_value_heads=4,
        head_dim=128,
        model_type="dream",
        qk_norm=False,
        attention_bias=True,
    ),
}


def step_operations(config: ModelConfig, batch: int, masks: float) -> float:
    """Floating-point operations of one step of `batch` canvases in which `masks` masks of each compete."""
    length = PROMPT + NEW_TOKENS
    attention = 4 * config.num_hidden_layers * config.num_attention_heads * config.head_dim * length**2
    return batch * (2 * config.matmul_parameters * length + attention + 2 * config.head_parameters * masks)


def measure(family: str, batch: int, steps: int, rate: float, eager: bool) -> dict[str, float | str]:
    """One row: seconds a step, and the share of the matrix rate."""
    config = GEOMETRIES[family]
    schedule = LladaSchedule(LladaConfig(steps=steps)) if family == "llada" else DreamSchedule(DreamConfig(steps=steps))
    model = random_model(config)
    if not eager:
        model.use(compiled_pointwise())  # as `dice generate` does
    decoder = CanvasDecoder(
        model,
        schedule,
        mask_id=FAMILIES[config.model_type].mask,
        stop_ids=(),
        max_batch=batch,
        max_length=PROMPT + NEW_TOKENS,
    )
    generator = torch.Generator().manual_seed(0)
    requests = [
        Request(tuple(torch.randint(0, 50_000, (PROMPT,), generator=generator).tolist()), NEW_TOKENS, seed)
        for seed in range(batch)
    ]
    list(decoder.run([Request(one.prompt, NEW_TOKENS, one.seed) for one in requests[:1]]))  # warms up
    decoder.steps = 0
    torch.cuda.synchronize()
    begun = time.perf_counter()
    done = list(decoder.run(requests))
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - begun) / decoder.steps
    # LLaDA's masks compete within the blocks so far; Dream's all do. Both halve on average.
    blocks = NEW_TOKENS // 32
    masks = NEW_TOKENS / 2 if family == "dream" else NEW_TOKENS / blocks * (0.5 + 0.5 / max(1, steps // blocks))
    operations = step_operations(config, batch, masks)
    assert all(len(one.ids) == NEW_TOKENS for one in done)
    return {
        "family": family,
        "batch": batch,
        "eager": eager,
        "steps": decoder.steps,
        "step_s": seconds,
        "operations": operations,
        "of_limit": operations / rate / seconds,
        "answer_s_at_a_step_a_token": seconds * NEW_TOKENS / batch,
        "gpu": torch.cuda.get_device_name(),
    }


def main() -> int:
    """Print a line for each family and batch."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("--families", nargs="+", default=list(GEOMETRIES), choices=list(GEOMETRIES))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--eager", action="store_true", help="PyTorch's own operations between the products")
    parser.add_argument("--out", type=Path, default=Path("canvas.jsonl"))
    options = parser.parse_args()
    rate = machine()["rate"]
    with Journal(options.out) as journal:
        for family in options.families:
            for batch in options.batches:
                row = {**measure(family, batch, options.steps, rate, options.eager), "rate": rate}
                journal.append(row)
                print(json.dumps(row), flush=True)
                torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
