"""Where the time of an RL step goes.

    python benchmarks/rl_step.py --run runs/rl                        (a run of `dice rl`: time by part, share of waiting)
    python benchmarks/rl_step.py --geometry 8b --gpus 2 --out rl_step.jsonl          (one step at random weights)

The second form decodes `--problems` x `--samples` answers of up to `--new-tokens` tokens to prompts of
`--prompt-tokens`, gives them random rewards, and updates: real decoder, replay, loss and engine. Random weights write no
kernels, so with `--pairs` a kernel of that file is verified in the place of every answer, from the moment the answer is
finished, and the time is reported in which decoding is over and verdicts are missing. Random weights are never sure
either, so a forward fixes one token: a lower bound of decoding speed. It then projects the GPU-hours of the paper's
20 + 100 steps of 1,024 answers (paper, Table 9: 120 + 960 on A100), with the arithmetic printed:
GPU-hours = steps x (rollout + wait + update) x (1,024 / answers measured) x GPUs / 3,600.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from decoding import MASK, SIZES, geometry
from one_gpu import random_model

from dice.config import parse_config
from dice.data.pair import Pair
from dice.decoding.decoder import Decoder
from dice.decoding.requests import Completion, Request
from dice.errors import DiceError
from dice.jsonl import Journal, read_jsonl
from dice.manifest import Stopwatch, write_manifest
from dice.model.transformer import Transformer, compiled_pointwise
from dice.training.engine import make_engine
from dice.training.history import read_history
from dice.training.rl_config import RlConfig
from dice.training.rl_data import Candidate, RlProblem
from dice.training.rl_history import RlRow
from dice.training.rl_update import Updater, compare, trajectory_of
from dice.training.rollout import Answer, Asked, PendingVerdicts, Verifier
from dice.training.tracerl_loss import PolicyObjective

OnAnswer = Callable[[Completion], None]
PAPER = {"steps": 120, "answers": 1024, "a100_hours": 1080}
PARTS = ("rollout_s", "wait_s", "update_s", "seconds")


def of_run(folder: str) -> dict[str, Any]:
    """Means over the steps of a run but the first, which warms up."""
    rows = list(read_history(folder, RlRow))
    rows = rows[1:] or rows
    report: dict[str, Any] = {"run": folder, "steps": len(rows)}
    for name in (*PARTS, "verify_s"):
        report[name] = round(sum(getattr(row, name) for row in rows) / len(rows), 3)
    report["other_s"] = round(report["seconds"] - report["rollout_s"] - report["wait_s"] - report["update_s"], 3)
    report["wait_share"] = round(report["wait_s"] / report["seconds"], 4)
    report["answers"] = rows[0].samples
    return report


def projection(step_s: float, answers: int, gpus: int) -> dict[str, Any]:
    """GPU-hours of the paper's run at this pace."""
    hours = PAPER["steps"] * step_s * PAPER["answers"] / answers * gpus / 3600
    return {
        "gpu_hours": round(hours, 1),
        "arithmetic": f"{PAPER['steps']} x {step_s:.1f} s x {PAPER['answers']}/{answers} x {gpus} GPUs / 3600",
        "paper_a100_hours": PAPER["a100_hours"],
    }


def config_of(args: argparse.Namespace) -> RlConfig:
    """What the step is measured with."""
    values = {
        "model": "-",
        "out": "-",
        "phases": [{"problems": ["-"]}],
        "objective": {"updates_per_step": args.updates, "micro_batch_rows": args.micro_batch_rows},
        "engine": args.engine,
        "reward": {"backend": args.reward_backend},
    }
    return parse_config(RlConfig, values, "benchmark")


def draw(decoder: Decoder, args: argparse.Namespace, rank: int, world: int, on_answer: OnAnswer) -> list[Completion]:
    """This process's answers: all of `--new-tokens`; with verification beside, of a quarter of them to all."""
    least = args.new_tokens // 4 if args.pairs else args.new_tokens
    rng = np.random.default_rng(5)
    found = []
    requests = []
    for group in range(args.problems):
        prompt = tuple(rng.integers(0, 150000, args.prompt_tokens).tolist())
        lengths = rng.integers(least, args.new_tokens + 1, args.samples).tolist()
        if group % world == rank:
            requests += [Request(prompt, n, group * 64 + k, (group, k)) for k, n in enumerate(lengths)]
    for completion in decoder.run(requests):
        found.append(completion)
        on_answer(completion)
        if rank == 0 and len(found) % 16 == 0:
            print(f"{len(found)} of {len(requests)} answers", flush=True)
    return found


def stand_in(completion: Completion, pair: Pair) -> Answer:
    """An answer whose text is the kernel of `pair`."""
    group, sample = completion.request.key
    problem = RlProblem(pair.id, pair.pytorch_code, (), 0)
    return Answer(Asked(problem, group, sample), completion, "", Candidate(pair.cuda_code))


def measure(args: argparse.Namespace, config: RlConfig, pending: PendingVerdicts | None) -> dict[str, Any]:
    """One step: decoding with verification beside it, waiting for what is still missing, updating."""
    model = random_model(geometry(args.geometry)).train()
    model.checkpointing = True
    model.use(compiled_pointwise())
    objective = PolicyObjective(model, MASK, clip=0.2, beta=0.01, chunk=1024, attention="auto")
    engine = make_engine(args.engine, objective, config.optimizer, micro_batches=None)
    sampler: Transformer = model
    if args.engine != "local":
        sampler = random_model(geometry(args.geometry)).eval().requires_grad_(False)
        engine.copy_to(sampler)
    updater = Updater(config, engine, objective, step_start=sampler, reference=None, block_size=4)
    memory = {"loaded": gib()}
    torch.cuda.synchronize()
    began = time.perf_counter()
    decoder = Decoder(
        sampler,
        config.rollout.decoding,
        mask_id=MASK,
        stop_ids=(),
        max_batch=args.max_batch,
        max_length=args.prompt_tokens + args.new_tokens + 4,
        engine="fast",
    )
    pairs = list(read_jsonl(args.pairs, Pair)) if pending else []

    def hand_over(completion: Completion) -> None:
        group, sample = completion.request.key
        if pending:
            pending.submit(stand_in(completion, pairs[(group * args.samples + sample) % len(pairs)]))

    completions = draw(decoder, args, engine.rank, engine.world, hand_over)
    torch.cuda.synchronize()
    decoded = time.perf_counter()
    rollout_s = decoded - began
    if pending and not pending.finish():
        raise DiceError("the verifier fell silent.")
    wait_s = time.perf_counter() - decoded
    memory["rollout"] = gib()
    del decoder
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    if engine.world > 1:
        parts: list[Any] = [None] * engine.world
        dist.all_gather_object(parts, completions)
        completions = [completion for part in parts for completion in part]
    completions.sort(key=lambda completion: completion.request.key)
    rewards = np.random.default_rng(1).integers(0, 2, (args.problems, args.samples)).tolist()
    scores = [score for group in compare(rewards).advantages for score in group]
    trajectories = [
        trajectory_of(completion, score, config.released_behaviour, None)  # pyright: ignore[reportArgumentType]
        for completion, score in zip(completions, scores, strict=True)
        if score is not None
    ]
    updates = [time.perf_counter()]

    untimed = engine.step

    def step(learning_rate: float) -> float:
        norm = untimed(learning_rate)
        updates.append(time.perf_counter())
        if engine.rank == 0:
            print(f"update {len(updates) - 1}: {updates[-1] - updates[-2]:.1f} s", flush=True)
        return norm

    engine.step = step
    report = updater.update(trajectories, 1)
    if sampler is not model:
        engine.copy_to(sampler)
    torch.cuda.synchronize()
    update_s = time.perf_counter() - began
    memory["update"] = gib()
    answers = args.problems * args.samples
    tokens = sum(len(completion.ids) for completion in completions)
    return {
        "geometry": args.geometry,
        "engine": args.engine,
        "gpus": engine.world,
        "gpu": torch.cuda.get_device_name(),
        "answers": answers,
        "prompt_tokens": args.prompt_tokens,
        "new_tokens": args.new_tokens,
        "rollout_s": round(rollout_s, 2),
        "wait_s": round(wait_s, 2),
        "update_s": round(update_s, 2),
        "wait_share": round(wait_s / (rollout_s + wait_s + update_s), 4),
        "updates_s": [round(b - a, 2) for a, b in itertools.pairwise(updates)],
        "rollout_tokens_per_s_per_gpu": round(tokens / rollout_s / engine.world, 1),
        "trained_answers": len(trajectories),
        "tokens_per_forward": round(tokens / sum(c.n_forwards for c in completions), 3),
        "mismatch": report.mismatch,
        "peak_memory_gib": memory,
        "projection": projection(rollout_s + wait_s + update_s, answers, engine.world),
    }


def gib() -> float:
    """Most memory that tensors of this process took since the last reset."""
    return round(torch.cuda.max_memory_allocated() / 2**30, 2)


def main() -> None:
    """Report a run, or measure a step; started anew under torchrun where several GPUs are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="folder of a run of `dice rl`")
    parser.add_argument("--geometry", choices=list(SIZES), default="8b")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--engine", choices=["local", "zero2", "zero3"], help="default: zero3 on several GPUs")
    parser.add_argument("--problems", type=int, default=16)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--prompt-tokens", type=int, default=900)
    parser.add_argument("--new-tokens", type=int, default=1024)
    parser.add_argument("--max-batch", type=int, default=128)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--micro-batch-rows", type=int, default=16384)
    parser.add_argument("--pairs", help="pairs.jsonl: kernels that are verified in the answers' place")
    parser.add_argument("--reward-backend", choices=["cuda", "cpu"], default="cpu", help="that judges these")
    parser.add_argument("--out", default="rl_step.jsonl")
    args = parser.parse_args()
    args.engine = args.engine or ("zero3" if args.gpus > 1 else "local")
    watch = Stopwatch()
    if args.run:
        print(json.dumps(of_run(args.run), indent=1))
        return
    if args.gpus > 1 and "RANK" not in os.environ:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(args.gpus)]
        sys.exit(subprocess.run([*command, __file__, *sys.argv[1:]]).returncode)
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if args.gpus > 1 or args.engine != "local":
        for name, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29517"), ("RANK", "0"), ("WORLD_SIZE", "1")):
            os.environ.setdefault(name, value)
        dist.init_process_group("nccl")
    config = config_of(args)
    with contextlib.ExitStack() as stack:
        pending = None
        if args.pairs:
            world, gpu = int(os.environ.get("WORLD_SIZE", "1")), torch.cuda.current_device()
            verifier = Verifier(config.reward, most_jobs=args.problems * args.samples, gpu=gpu, share=world)
            pending = stack.enter_context(verifier).begin()
        row = measure(args, config, pending)
    if int(os.environ.get("RANK", "0")) == 0:
        with Journal(args.out) as journal:
            journal.append(row)
        print(json.dumps(row, indent=1), flush=True)
        write_manifest(args.out, stage="benchmark-rl-step", spec=vars(args), watch=watch)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
