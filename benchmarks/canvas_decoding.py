"""Decoding speed of the models that fill a canvas: LLaDA-8B's and Dream-7B's geometry, random weights, bf16, one GPU.

    python benchmarks/canvas_decoding.py [--batches 1 8] [--steps 32] [--vendor DIR] [--early-stop] [--out canvas.jsonl]

Prompts of 892 tokens and 1,024 new ones, LLaDA greedy, Dream as the paper's script (temperature 0.2, top-p 0.95, top-k
50). The answer takes `--steps` steps where the vendors take one a token; a step costs the same. Each line stands beside its
limit: the products of one step (all positions through the layers, the masks that compete through the head, attention of
each canvas) over the matrix rate measured in the same run.

`--vendor DIR` runs the vendors' own models and loops on the same weights (benchmarks/canvas_vendors.py says what DIR holds).
`--early-stop`: LLaDA's 4,096 tokens in 128 steps, whole: the vendor's loop, ours, and ours that leaves when the text before
the end token is final, where that is token 700. Random weights give the same token everywhere, so ours draws at temperature 1
here, which costs it more than the vendor's greedy choice; the end token is what it drew at place 700.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from canvas_vendors import likeness, mask_of, synchronise, vendor_model, vendor_seconds
from one_gpu import PROMPT, machine, random_model

from dice.decoding.canvas import CanvasDecoder
from dice.decoding.dream import DreamConfig, DreamSchedule
from dice.decoding.llada import LladaConfig, LladaSchedule
from dice.decoding.requests import Request
from dice.decoding.sampling import SamplingConfig
from dice.jsonl import Journal
from dice.model.transformer import ModelConfig, Transformer, compiled_pointwise

NEW_TOKENS = 1024
LONG_ANSWER, LONG_STEPS, END = 4096, 128, 700
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


def step_operations(config: ModelConfig, batch: int, masks: float, new: int = NEW_TOKENS) -> float:
    """Floating-point operations of one step of `batch` canvases in which `masks` masks of each compete."""
    length = PROMPT + new
    attention = 4 * config.num_hidden_layers * config.num_attention_heads * config.head_dim * length**2
    return batch * (2 * config.matmul_parameters * length + attention + 2 * config.head_parameters * masks)


def prompts_of(config: ModelConfig, batch: int) -> list[tuple[int, ...]]:
    """Random prompts, without special tokens."""
    tokens = min(50_000, config.vocab_size - 8)
    generator = torch.Generator().manual_seed(0)
    return [tuple(torch.randint(0, tokens, (PROMPT,), generator=generator).tolist()) for _ in range(batch)]


def decoder_of(
    model: Transformer, schedule: LladaConfig | DreamConfig, batch: int, stop_ids: tuple[int, ...] = ()
) -> CanvasDecoder:
    """A decoder; without stop ids an answer has its full length."""
    return CanvasDecoder(
        model,
        LladaSchedule(schedule) if isinstance(schedule, LladaConfig) else DreamSchedule(schedule),
        mask_id=mask_of(model.config),
        max_batch=batch,
        max_length=PROMPT + LONG_ANSWER,
        stop_ids=stop_ids,
    )


def step_seconds(decoder: CanvasDecoder, batch: int) -> float:
    """Of a whole run with `batch` answers."""
    requests = [
        Request(prompt, NEW_TOKENS, seed) for seed, prompt in enumerate(prompts_of(decoder.model.config, batch))
    ]
    synchronise()
    begun = time.perf_counter()
    done = list(decoder.run(requests))
    synchronise()
    assert all(len(one.ids) == NEW_TOKENS for one in done)
    return (time.perf_counter() - begun) / decoder.steps


def row_of(config: ModelConfig, batch: int, steps: int, rate: float, seconds: float) -> dict[str, Any]:
    """A line: seconds a step, and the share of the matrix rate."""
    # LLaDA's masks compete within the blocks so far; Dream's all do. Both halve on average.
    blocks = NEW_TOKENS // 32
    dream = config.model_type == "dream"
    masks = NEW_TOKENS / 2 if dream else NEW_TOKENS / blocks * (0.5 + 0.5 / max(1, steps // blocks))
    operations = step_operations(config, batch, masks)
    return {
        "family": config.model_type,
        "batch": batch,
        "step_s": round(seconds, 5),
        "operations": operations,
        "of_limit": round(operations / rate / seconds, 3),
        "answer_s_at_a_step_a_token": round(seconds * NEW_TOKENS / batch, 2),
    }


def measure(model: Transformer, batch: int, steps: int, rate: float) -> dict[str, Any]:
    """One line of ours."""
    family = model.config.model_type
    warm = LladaConfig(block_size=NEW_TOKENS, steps=2) if family == "llada" else DreamConfig(steps=2)
    step_seconds(decoder_of(model, warm, batch), batch)
    schedule = LladaConfig(steps=steps) if family == "llada" else DreamConfig(steps=steps)
    seconds = step_seconds(decoder_of(model, schedule, batch), batch)
    return {"engine": "dice", "steps": steps} | row_of(model.config, batch, steps, rate, seconds)


def measure_vendor(
    root: Path, model: Transformer, vendor: torch.nn.Module, batch: int, steps: int, rate: float
) -> dict[str, Any]:
    """One line of the vendor's loop; the median step but for two, which warm up."""
    prompts = torch.tensor(prompts_of(model.config, batch), device=model.lm_head.weight.device)
    times = vendor_seconds(root, vendor, prompts, mask_of(model.config), NEW_TOKENS, steps, steps)[2:]
    row = row_of(model.config, batch, steps, rate, statistics.mean(times))
    return {"engine": "vendor", "steps": len(times), "logits_cosine": likeness(model, vendor, prompts[0])} | row


def early_stop(root: Path | None, model: Transformer, vendor: torch.nn.Module | None) -> dict[str, Any]:
    """LLaDA's 4,096 tokens: seconds of the vendor's loop, of ours, and of ours with an end token at place 700."""
    schedule = LladaConfig(steps=LONG_STEPS, sampling=SamplingConfig(temperature=1.0))
    prompt = prompts_of(model.config, 1)[0]

    def run(stop_ids: tuple[int, ...] = ()) -> tuple[float, tuple[int, ...], int]:
        decoder = decoder_of(model, schedule, 1, stop_ids)
        synchronise()
        begun = time.perf_counter()
        (done,) = decoder.run([Request(prompt, LONG_ANSWER, 7)])
        synchronise()
        return time.perf_counter() - begun, done.trace.ids[: len(done.ids)], done.n_forwards

    warm = decoder_of(model, dataclasses.replace(schedule, block_size=LONG_ANSWER, steps=1), 1)
    list(warm.run([Request(prompt, LONG_ANSWER, 7)]))
    seconds, ids, forwards = run()
    place = next(k for k in range(END - 1, 0, -1) if ids[k] not in ids[:k])  # its first place in the answer
    stopped_s, stopped, stopped_forwards = run((ids[place],))
    row: dict[str, Any] = {
        "early_stop": True,
        "new": LONG_ANSWER,
        "end_at": place + 1,
        "steps": forwards,
        "steps_with_stop": stopped_forwards,
        "ours_s": round(seconds, 3),
        "ours_with_stop_s": round(stopped_s, 3),
        "same_tokens": stopped == ids[: place + 1],
        "positions": PROMPT + LONG_ANSWER,
    }
    if root is not None and vendor is not None:
        prompts = torch.tensor([prompt], device=model.lm_head.weight.device)
        vendor_seconds(root, vendor, prompts, mask_of(model.config), LONG_ANSWER, LONG_STEPS, 2)  # warms up
        times = vendor_seconds(root, vendor, prompts, mask_of(model.config), LONG_ANSWER, LONG_STEPS, LONG_STEPS)
        row |= {"vendor_s": round(sum(times), 3), "vendor_steps": len(times)}
        row |= {"of_vendor": round(stopped_s / sum(times), 4)}
    return row


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("--families", nargs="+", default=list(GEOMETRIES), choices=list(GEOMETRIES))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--vendor", type=Path, help="folder of the vendors' checkouts")
    parser.add_argument("--vendor-batches", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--early-stop", action="store_true", help="also LLaDA's row of 4,096 tokens")
    parser.add_argument("--budget-s", type=float, default=540, help="start no further line after so many seconds")
    parser.add_argument("--out", type=Path, default=Path("canvas.jsonl"))
    return parser


def main() -> int:
    """Print a line for each family and batch."""
    options = parser().parse_args()
    started = time.monotonic()
    gpu = torch.cuda.is_available()
    rate = machine()["rate"] if gpu else 1e11
    common = {"rate": rate, "gpu": torch.cuda.get_device_name() if gpu else None}
    with Journal(options.out) as journal:

        def note(row: dict[str, Any]) -> None:
            row |= {"at_s": round(time.monotonic() - started, 1)}
            journal.append(row | common)
            print(json.dumps(row), flush=True)

        def left() -> bool:
            return time.monotonic() - started < options.budget_s

        for family in options.families:
            config = GEOMETRIES[family]
            model = random_model(config)
            vendor = vendor_model(options.vendor, model) if options.vendor else None
            if gpu:
                model.use(compiled_pointwise())  # as `dice generate` does
            for batch in options.batches:
                if left():
                    note(measure(model, batch, options.steps, rate))
            for batch in options.vendor_batches if vendor else ():
                assert vendor is not None
                if left():
                    note(measure_vendor(options.vendor, model, vendor, batch, options.steps, rate))
            if options.early_stop and family == "llada" and left():
                note(early_stop(options.vendor, model, vendor))
            del model, vendor
            if gpu:
                torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
