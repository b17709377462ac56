"""Training speed: tokens/s and MFU of block-diffusion SFT with packs of 6,144 tokens, random weights and tokens.

    python benchmarks/sft_throughput.py --sizes 1.7b 4b --variants layers=all layers=0 --out sft.jsonl      (one GPU)
    torchrun --nproc-per-node 2 benchmarks/sft_throughput.py --sizes 8b --engine zero2 --variants layers=all layers=9

A variant is a list of settings: `layers` that are recomputed in the backward pass (a number, or `all`), `gates` (1: the
others recompute their gated product), `packs` of a GPU and optimizer step, `window`, `steps`, `trace` (1: as --trace,
this variant alone). All variants of a size share one start; put those that need most memory last. `--zero name=value`
sets an entry of DeepSpeed's `zero_optimization`.

MFU = operations the objective needs (dice.training.losses.step_flops: forward and backward of every row computed, both
copies, head at targets only, attention by visible pairs; recomputation not counted) / time / 989 TFLOP/s per GPU. The
time is that of whole optimizer steps: all micro-batches, clipping, AdamW, communication. `--prompt-share 0` labels every
token, so that the noised copy is as long as the clean one (12,288 rows a pack). `--trace` shows where a step's time goes.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import torch
import torch.distributed as dist
from decoding import MASK, SIZES, geometry
from one_gpu import random_model
from torch.profiler import ProfilerActivity, profile

from dice.jsonl import Journal
from dice.manifest import Stopwatch, write_manifest
from dice.model.transformer import Transformer, compiled_pointwise
from dice.training.engine import TrainingEngine, make_engine
from dice.training.losses import Objective, TrainingRows, diffusion_rows, draw_noise, peak_flops, step_flops
from dice.training.optimizer import OptimizerConfig
from dice.training.packing import GPU_ROWS, Pack, Sample

SAMPLE = 1536
"""Tokens of a sample."""
KINDS = {
    "communication": ("nccl",),
    "attention": ("flex_attention", "triton_tem", "fmha", "flash"),
    "products": ("gemm", "nvjet", "cutlass", "cublas", "splitkreduce"),
    "optimizer": ("multi_tensor_apply", "adam"),
    "copies": ("memcpy", "memset", "copy_kernel", "catarray"),
    "pointwise": ("triton_poi", "triton_red", "triton_per", "elementwise", "reduce_kernel", "softmax", "embedding"),
}
"""What a kernel does, by parts of its name, the first that fits."""


@dataclass(frozen=True)
class Variant:
    """One way to run the same step."""

    layers: int
    """Layers that are recomputed."""
    gates: bool
    packs: int
    window: int
    steps: int
    trace: bool


def say(text: str) -> None:
    """Progress of rank 0 with the seconds since the process began."""
    if int(os.environ.get("RANK", "0")) == 0:
        print(f"[{time.time() - psutil.Process().create_time():6.1f} s] {text}", flush=True)


def variant_of(text: str, layers: int, args: argparse.Namespace) -> Variant:
    """`layers=all,gates=1,packs=2,window=6144,steps=3,trace=1`; the rest is as the command line says."""
    values = dict(part.split("=", 1) for part in text.split(",") if part)
    count = values.pop("layers", "all")
    found = Variant(
        layers=layers if count == "all" else int(count),
        gates=values.pop("gates", "0") == "1",
        packs=int(values.pop("packs", args.packs_per_gpu)),
        window=int(values.pop("window", args.window)),
        steps=int(values.pop("steps", args.steps)),
        trace=values.pop("trace", str(int(args.trace))) == "1",
    )
    if values:
        raise SystemExit(f"variant '{text}': unknown settings {', '.join(values)}.")
    return found


def random_pack(rng: np.random.Generator, window: int, prompt_share: float) -> Pack:
    """Samples of equal length."""
    n = min(SAMPLE, window)
    prompt = int(prompt_share * n) // 4 * 4
    return Pack(tuple(Sample(str(i), rng.integers(0, 150000, n), prompt) for i in range(window // n)))


class Steps:
    """Optimizer steps of one variant on random packs, other ones each time."""

    def __init__(self, engine: TrainingEngine, variant: Variant, prompt_share: float) -> None:
        self.engine, self.variant, self.prompt_share = engine, variant, prompt_share
        self.number = 0
        self.normaliser = 0

    def rows(self) -> list[TrainingRows]:
        """This process's micro-batches of the next step."""
        found, self.normaliser = [], 0
        for place in range(self.variant.packs):
            seed = [self.number, self.engine.rank, place]
            pack = random_pack(np.random.default_rng(seed), self.variant.window, self.prompt_share)
            noise = draw_noise(pack, np.random.default_rng([1, *seed]))
            found.append(diffusion_rows(pack, noise, block_size=4, mask_id=MASK, multiple=GPU_ROWS))
            self.normaliser += self.engine.world * int(pack.labelled.sum())
        self.number += 1
        return found

    def run(self, batch: list[TrainingRows]) -> tuple[float, float, float]:
        """(seconds of the step, of its update alone, loss)."""
        torch.cuda.synchronize()
        started = time.perf_counter()
        last = len(batch) - 1
        loss = torch.stack(
            [self.engine.backward(rows, self.normaliser, place == last) for place, rows in enumerate(batch)]
        ).sum()
        torch.cuda.synchronize()
        middle = time.perf_counter()
        self.engine.step(1e-5)
        torch.cuda.synchronize()
        ended = time.perf_counter()
        return ended - started, ended - middle, self.engine.total(loss)


def measure(steps: Steps, model: Transformer, args: argparse.Namespace) -> dict[str, Any]:
    """Optimizer steps after warm-up; the median step counts."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    peak = peak_flops(torch.cuda.get_device_name())
    times, updates, flops, n_rows, n_targets, losses = [], [], 0, 0, 0, []
    for number in range(args.warm_up + steps.variant.steps):
        batch = steps.rows()
        seconds, update, loss = steps.run(batch)
        say(f"step {number + 1}: {seconds:.3f} s, of which update {update:.3f} s, loss {loss:.4f}")
        losses.append(loss)
        if number >= args.warm_up:
            times.append(seconds)
            updates.append(update)
            flops += sum(step_flops(model.config, rows) for rows in batch)
            n_rows += sum(len(rows.ids) for rows in batch)
            n_targets += sum(len(rows.targets) for rows in batch)
    total, packs = sum(times), len(times) * steps.variant.packs
    return {
        "step_s": round(statistics.median(times), 4),
        "update_s": round(statistics.median(updates), 4),
        "tokens_per_s": round(steps.engine.world * packs * steps.variant.window / total, 1),
        "rows_per_pack": n_rows // packs,
        "targets_per_pack": n_targets // packs,
        "mfu": round(flops / total / peak, 4) if peak else None,
        "peak_memory_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
        "peak_reserved_gib": round(torch.cuda.max_memory_reserved() / 2**30, 2),
        "first_loss": losses[0],
        "last_loss": losses[-1],
    }


def kind_of(kernel: str) -> str:
    """What a kernel does, by its name."""
    name = kernel.lower()
    return next((kind for kind, parts in KINDS.items() if any(part in name for part in parts)), "other")


def trace(run: Callable[[], float]) -> dict[str, Any]:
    """Milliseconds of device time by kind in one step, and the slowest kernels; all processes take part."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        seconds = run()
    by_kind: Counter[str] = Counter()
    by_name: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for event in profiler.events() or ():
        if event.device_type.name != "CUDA" or event.is_user_annotation or event.name.startswith("##"):
            continue  # a launch, or a named range
        by_kind[kind_of(event.name)] += event.time_range.elapsed_us() / 1e3
        by_name[event.name] += event.time_range.elapsed_us() / 1e3
        calls[event.name] += 1
    busy = sum(by_kind.values())
    say(f"trace: step {1e3 * seconds:.1f} ms, kernels {busy:.1f} ms (streams overlap)")
    for kind, spent in by_kind.most_common():
        say(f"trace: {kind:14} {spent:8.1f} ms {spent / busy:6.1%}")
    for name, spent in by_name.most_common(25):
        say(f"trace: {spent:8.2f} ms {calls[name]:5} x {1e3 * spent / calls[name]:8.1f} us  {name[:110]}")
    return {"step_ms": round(1e3 * seconds, 1)} | {kind: round(spent, 1) for kind, spent in by_kind.most_common()}


def zero_options(texts: list[str]) -> dict[str, bool | int | float]:
    """`name=value` with JSON values."""
    return {name: json.loads(value) for name, value in (text.split("=", 1) for text in texts)}


def measure_size(size: str, args: argparse.Namespace) -> None:
    """All variants of a size, one model and engine; each row is written as it comes."""
    model = random_model(geometry(size)).train()
    model.use(compiled_pointwise())
    say(f"{size}: model made")
    options = zero_options(args.zero)
    engine = make_engine(args.engine, Objective(model), OptimizerConfig(), micro_batches=None, zero_options=options)
    say(f"{size}: engine {args.engine} ready, {torch.cuda.memory_allocated() / 2**30:.1f} GiB")
    for text in args.variants:
        variant = variant_of(text, model.config.num_hidden_layers, args)
        model.checkpointing, model.recompute_gates = variant.layers, variant.gates
        steps = Steps(engine, variant, args.prompt_share)
        row: dict[str, Any] = {"size": size, "engine": args.engine, "zero": options, "gpus": engine.world}
        row |= dataclasses.asdict(variant) | {"prompt_share": args.prompt_share}
        say(f"{size}: variant {text or 'as released'}")
        try:
            append(row | measure(steps, model, args), args)
            if variant.trace:
                append(row | {"trace_ms": trace(lambda steps=steps: steps.run(steps.rows())[0])}, args)
        except torch.OutOfMemoryError as error:
            if engine.world > 1:  # the others wait for this process
                raise
            append(row | {"error": str(error).split(".")[0]}, args)
            model.zero_grad(set_to_none=True)
        gc.collect()


def append(row: dict[str, Any], args: argparse.Namespace) -> None:
    """A result of rank 0 into the journal and onto the screen."""
    if int(os.environ.get("RANK", "0")) == 0:
        with Journal(args.out) as journal:
            journal.append(row)
        print(json.dumps(row), flush=True)


def main() -> None:
    """Measure each size, append to --out, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="sft_throughput.jsonl")
    parser.add_argument("--sizes", nargs="+", default=["1.7b", "4b"], choices=list(SIZES))
    parser.add_argument("--engine", default="local", choices=["local", "zero2", "zero3"])
    parser.add_argument("--variants", nargs="+", default=["layers=all"], help="for example layers=0,gates=1,packs=4")
    parser.add_argument("--zero", nargs="*", default=[], metavar="NAME=VALUE", help="DeepSpeed's zero_optimization")
    parser.add_argument("--window", type=int, default=6144)
    parser.add_argument("--packs-per-gpu", type=int, help="of a step; default: the recipe's 8 over all GPUs")
    parser.add_argument("--prompt-share", type=float, default=0.4, help="share of a sample that is prompt")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--trace", action="store_true", help="profile one more step of each variant")
    args = parser.parse_args()
    watch = Stopwatch()
    world = int(os.environ.get("WORLD_SIZE", "1"))
    args.packs_per_gpu = args.packs_per_gpu or max(1, 8 // world)
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if world > 1 or args.engine != "local":
        for name, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29519"), ("RANK", "0"), ("WORLD_SIZE", "1")):
            os.environ.setdefault(name, value)
        dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    say("imported")
    for size in args.sizes:
        measure_size(size, args)
        gc.collect()
        torch.cuda.empty_cache()
    if int(os.environ.get("RANK", "0")) == 0:
        write_manifest(args.out, stage="benchmark-sft", spec=vars(args), watch=watch)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
