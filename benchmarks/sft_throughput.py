"""Training speed: tokens/s and MFU of block-diffusion SFT with packs of 6,144 tokens, random weights and tokens.

    python benchmarks/sft_throughput.py --sizes 1.7b 4b --out sft.jsonl                       (one GPU)
    torchrun --nproc-per-node 2 benchmarks/sft_throughput.py --sizes 8b --engine zero3        (DeepSpeed)

MFU = operations the objective needs (dice.training.losses.step_flops: forward and backward of every row computed, both
copies, head at targets only, attention by visible pairs; recomputation not counted) / time / 989 TFLOP/s per GPU.
`--prompt-share 0` labels every token, so that the noised copy is as long as the clean one (12,288 rows a pack).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time

import numpy as np
import torch
import torch.distributed as dist
from decoding import MASK, SIZES, geometry, random_model

from dice.jsonl import Journal
from dice.manifest import Stopwatch, write_manifest
from dice.model.transformer import compiled_pointwise
from dice.training.engine import OptimizerConfig, make_engine
from dice.training.losses import Objective, diffusion_rows, draw_noise, peak_flops, step_flops
from dice.training.packing import Pack, Sample
from dice.training.sft import GPU_ROWS


def random_pack(rng: np.random.Generator, window: int, prompt_share: float) -> Pack:
    """Four samples of equal length."""
    n = window // 4
    return Pack(tuple(Sample(str(i), rng.integers(0, 150000, n), int(prompt_share * n) // 4 * 4) for i in range(4)))


def measure(size: str, args: argparse.Namespace) -> dict[str, object]:
    """Optimizer steps after warm-up; the median step counts."""
    torch.cuda.reset_peak_memory_stats()
    model = random_model(geometry(size)).train()
    model.checkpointing = not args.no_checkpointing
    model.use(compiled_pointwise())
    world = dist.get_world_size() if dist.is_initialized() else 1
    engine = make_engine(args.engine, Objective(model), OptimizerConfig(), micro_batches=args.packs_per_gpu)
    peak = peak_flops(torch.cuda.get_device_name())
    times, flops, n_rows, n_targets, losses = [], 0, 0, 0, []
    for step in range(args.warm_up + args.steps):
        packs = [
            random_pack(np.random.default_rng([step, engine.rank, place]), args.window, args.prompt_share)
            for place in range(args.packs_per_gpu)
        ]
        batch = [
            diffusion_rows(
                pack,
                draw_noise(pack, np.random.default_rng([1, step, engine.rank, place])),
                block_size=4,
                mask_id=MASK,
                multiple=GPU_ROWS,
            )
            for place, pack in enumerate(packs)
        ]
        normaliser = world * sum(int(pack.labelled.sum()) for pack in packs)
        torch.cuda.synchronize()
        started = time.perf_counter()
        loss = sum(engine.backward(rows, normaliser) for rows in batch)
        engine.step(1e-5)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - started
        assert isinstance(loss, torch.Tensor)
        losses.append(engine.total(loss))
        if step >= args.warm_up:
            times.append(seconds)
            flops += sum(step_flops(model.config, rows) for rows in batch)
            n_rows += sum(len(rows.ids) for rows in batch)
            n_targets += sum(len(rows.targets) for rows in batch)
    total = sum(times)
    return {
        "size": size,
        "engine": args.engine,
        "gpus": world,
        "window": args.window,
        "packs_per_gpu": args.packs_per_gpu,
        "prompt_share": args.prompt_share,
        "activation_checkpointing": model.checkpointing,
        "step_s": round(statistics.median(times), 4),
        "tokens_per_s": round(world * args.packs_per_gpu * args.window * len(times) / total, 1),
        "rows_per_pack": n_rows // (len(times) * args.packs_per_gpu),
        "targets_per_pack": n_targets // (len(times) * args.packs_per_gpu),
        "mfu": round(flops / total / peak, 4) if peak else None,
        "peak_memory_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
        "first_loss": losses[0],
        "last_loss": losses[-1],
    }


def main() -> None:
    """Measure each size, append to --out, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="sft_throughput.jsonl")
    parser.add_argument("--sizes", nargs="+", default=["1.7b", "4b"], choices=list(SIZES))
    parser.add_argument("--engine", default="local", choices=["local", "zero2", "zero3"])
    parser.add_argument("--window", type=int, default=6144)
    parser.add_argument("--packs-per-gpu", type=int, default=1)
    parser.add_argument("--prompt-share", type=float, default=0.4, help="share of a sample that is prompt")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--no-checkpointing", action="store_true")
    args = parser.parse_args()
    watch = Stopwatch()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 or args.engine != "local":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        dist.init_process_group("nccl")
    first = int(os.environ.get("RANK", "0")) == 0
    for size in args.sizes:
        row = measure(size, args)
        if first:
            with Journal(args.out) as journal:
                journal.append(row)
            print(json.dumps(row), flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    if first:
        write_manifest(args.out, stage="benchmark-sft", spec=vars(args), watch=watch)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
