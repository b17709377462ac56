"""Decoding speed of the block-diffusion engine on one GPU: SDAR's geometries, random weights, bf16, prefill included.

    python benchmarks/decoding.py --out decoding.jsonl [--sizes 4b] [--batches 1 8 64 128] [--hf] [--budget-s 540]

Each line stands beside its own limit: bytes of weights and cache that its forwards must read over the copy bandwidth,
plus its products over the matrix rate, both measured in the same run. Random weights are never sure, so dynamic
decoding is driven by its quota: 1, 2 or 4 tokens accepted per forward; a trained model lies between.
`--without` takes parts of the fast engine out, to see what each is worth.
`--hf` runs the released scheme (five forwards per block of four) with transformers' Qwen3 beside it.
`--lmdeploy FOLDER...` runs the peer: folders for PYTHONPATH (LMDeploy without turbomind, its missing wheels),
`--lmdeploy-script` its script and `--lmdeploy-config` its folder with config.json and a tokenizer.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from one_gpu import PROMPT, machine, random_model

from dice.decoding import cluster_attention, cuda_kernel, fast, products
from dice.decoding.block_diffusion import BlockDiffusion, BlockDiffusionConfig
from dice.decoding.decoder import Decoder
from dice.decoding.memory import PREFILL_TOKENS
from dice.decoding.requests import Request
from dice.jsonl import Journal
from dice.manifest import Stopwatch, write_manifest
from dice.model.attention_masks import block_causal_layout
from dice.model.transformer import ModelConfig, Transformer

SIZES = {"1.7b": (2048, 6144, 28, 16), "4b": (2560, 9728, 36, 32), "8b": (4096, 12288, 36, 32)}
MODES: dict[str, tuple[Literal["static", "dynamic"], int]] = {
    "static": ("static", 4),
    "dynamic-1": ("dynamic", 4),
    "dynamic-2": ("dynamic", 2),
    "dynamic-4": ("dynamic", 1),
}
NEW_TOKENS = {1: 256, 8: 256, 64: 512, 128: 512}
BLOCK = 4
MASK = 151669
PARTS = ("run-ahead", "launch-overlap", "few-rows", "prefill-graph", "cluster-attention")
"""What `--without` can take out: steps that start before the host has seen the last, kernels that are set up before the
last has ended, the kernel for products of up to 8 rows, prefill of short prompts as a graph, attention of few sequences in
clusters."""


def geometry(size: str) -> ModelConfig:
    """SDAR-`size`-Chat."""
    hidden, intermediate, layers, heads = SIZES[size]
    return ModelConfig(
        vocab_size=151936,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=8,
        head_dim=128,
    )


def leave_out(parts: Sequence[str]) -> None:
    """Take these PARTS out of the fast engine, for this process."""
    if "run-ahead" in parts:
        BlockDiffusion.ahead = lambda self, sequences, rows: None
    if "launch-overlap" in parts:
        cuda_kernel.has_dependent_launch = lambda device: False
    if "few-rows" in parts:
        products.MOST_ROWS = 0
    if "prefill-graph" in parts:
        fast.PREFILL_GRAPH_TOKENS = 0
    if "cluster-attention" in parts:
        cluster_attention.MOST_TILES = 0


def limit_s(config: ModelConfig, batch: int, new: int, per_forward: int, at: dict[str, float], commits: bool) -> float:
    """Least seconds of a batch: `commits` gives finished blocks a forward of their own (the released scheme)."""
    weights = config.matmul_parameters + config.head_parameters
    forwards = new // per_forward
    length = PROMPT + new / 2
    blocks = new // BLOCK
    rows = forwards * BLOCK + (0 if commits else blocks * BLOCK)  # commits ride along, but are computed
    total_forwards = forwards + (blocks if commits else 0)
    total_rows = rows + (blocks * BLOCK if commits else 0)
    kv_bytes_per_token = config.num_hidden_layers * 2 * config.num_key_value_heads * config.head_dim * 2  # 16-bit
    read = total_forwards * (2 * weights + batch * length * kv_bytes_per_token) + 2 * config.matmul_parameters
    products = (
        2 * batch * (config.matmul_parameters * (PROMPT + total_rows) + config.head_parameters * forwards * BLOCK)
    )
    return read / at["bandwidth"] + products / at["rate"]


def prefill_seconds(decoder: Decoder, prompts: list[tuple[int, ...]]) -> float:
    """Of the prompts alone, as `Decoder.run` begins with them."""
    parts = [(slot, np.array(prompt)) for slot, prompt in enumerate(prompts)]
    at_once = PREFILL_TOKENS // PROMPT
    torch.cuda.synchronize()
    started = time.perf_counter()
    for first in range(0, len(parts), at_once):
        decoder.forward.prefill(parts[first : first + at_once])
    torch.cuda.synchronize()
    return time.perf_counter() - started


def measure(model: Transformer, batch: int, mode: str, at: dict[str, float]) -> dict[str, object]:
    """One line of the table: warm-up with all graphs, then one whole batch."""
    strategy, steps = MODES[mode]
    new = NEW_TOKENS.get(batch, 256)
    config = BlockDiffusionConfig(strategy=strategy, block_size=BLOCK, denoising_steps=steps, threshold=2.0)
    decoder = Decoder(model, config, mask_id=MASK, stop_ids=(), max_batch=batch, max_length=PROMPT + new, engine="fast")
    generator = torch.Generator().manual_seed(1)
    prompts = [tuple(torch.randint(0, 150000, (PROMPT,), generator=generator).tolist()) for _ in range(batch)]
    for _ in range(2):  # what comes once is no graph
        list(decoder.run([Request(prompt, 16) for prompt in prompts]))
    prefill = prefill_seconds(decoder, prompts)
    steps_before = decoder.steps
    started = time.perf_counter()
    done = list(decoder.run([Request(prompt, new) for prompt in prompts]))
    torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    tokens = sum(len(completion.ids) for completion in done)
    per_forward = BLOCK // steps
    fused, released = (limit_s(model.config, batch, new, per_forward, at, commits) for commits in (False, True))
    return {
        "engine": "dice",
        "mode": mode,
        "batch": batch,
        "prompt": PROMPT,
        "new": new,
        "tokens": tokens,
        "steps": decoder.steps - steps_before,
        "seconds": round(seconds, 4),
        "prefill_s": round(prefill, 4),
        "tokens_per_s": round(tokens / seconds, 1),
        "limit_tokens_per_s": round(tokens / fused, 1),
        "share_of_limit": round(fused / seconds, 3),
        "limit_released_scheme_tokens_per_s": round(tokens / released, 1),
        "memory_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
    }


@torch.no_grad()
def hugging_face(model: Transformer, batch: int, at: dict[str, float], new: int = 64) -> dict[str, object]:
    """The released scheme with transformers' Qwen3 and its growing cache, static, one token a forward."""
    from transformers import DynamicCache, Qwen3Config, Qwen3ForCausalLM

    c = model.config
    settings = Qwen3Config(
        vocab_size=c.vocab_size,
        hidden_size=c.hidden_size,
        intermediate_size=c.intermediate_size,
        num_hidden_layers=c.num_hidden_layers,
        num_attention_heads=c.num_attention_heads,
        num_key_value_heads=c.num_key_value_heads,
        head_dim=c.head_dim,
        tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": c.rope_theta},
        attn_implementation="sdpa",  # pyright: ignore[reportCallIssue]
    )
    with torch.device("meta"):
        qwen = Qwen3ForCausalLM(settings).eval()
    qwen.load_state_dict(model.state_dict(), assign=True)
    with torch.device("cuda"):
        qwen.model.rotary_emb = type(qwen.model.rotary_emb)(settings)
    tokens = torch.randint(0, 150000, (batch, PROMPT + new), device="cuda")

    def decode(blocks: int) -> None:
        tokens[:, PROMPT:] = MASK
        cache = DynamicCache()
        visible = block_causal_layout(PROMPT, BLOCK, "cuda").dense()
        mask = torch.where(visible, 0.0, float("-inf")).to(torch.bfloat16)[None, None].expand(batch, 1, -1, -1)
        qwen(tokens[:, :PROMPT], attention_mask=mask, past_key_values=cache, logits_to_keep=1)
        for start in range(PROMPT, PROMPT + blocks * BLOCK, BLOCK):
            block = tokens[:, start : start + BLOCK]
            positions = torch.arange(start, start + BLOCK, device="cuda")[None]
            all_visible = torch.zeros(batch, 1, BLOCK, start + BLOCK, dtype=torch.bfloat16, device="cuda")
            for _ in range(BLOCK):
                inputs = {"attention_mask": all_visible, "position_ids": positions, "past_key_values": cache}
                logits = qwen(block, **inputs).logits.float()
                cache.crop(-BLOCK)
                logits[..., MASK] = float("-inf")
                confidence, choice = logits.softmax(-1).max(-1)
                best = confidence.masked_fill(block != MASK, -1).argmax(-1, keepdim=True)
                block.scatter_(1, best, choice.gather(1, best))
                bool((block == MASK).any())  # the script looks after every forward
            qwen(block, attention_mask=all_visible, position_ids=positions, past_key_values=cache)

    decode(1)
    torch.cuda.synchronize()
    started = time.perf_counter()
    decode(new // BLOCK)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    limit = limit_s(c, batch, new, 1, at, True)
    return {
        "engine": "transformers, released scheme",
        "mode": "static",
        "batch": batch,
        "prompt": PROMPT,
        "new": new,
        "tokens": batch * new,
        "seconds": round(seconds, 4),
        "tokens_per_s": round(batch * new / seconds, 1),
        "limit_tokens_per_s": round(batch * new / limit, 1),
        "share_of_limit": round(limit / seconds, 3),
    }


_LMDEPLOY_LINE = re.compile(r"low_confidence_(\w+) batch (\d+): in (\d+) out (\d+) in ([\d.]+) s")


def lmdeploy(args: argparse.Namespace) -> list[dict[str, object]]:
    """Run the peer's script in its own process and read its lines."""
    with tempfile.TemporaryDirectory() as folder:
        paths = os.pathsep.join(args.lmdeploy)
        done = subprocess.run(
            [sys.executable, args.lmdeploy_script, f"{folder}/model", args.lmdeploy_config],
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
    rows: list[dict[str, object]] = []
    for strategy, batch, prompt, tokens, seconds in _LMDEPLOY_LINE.findall(done.stdout):
        speed = int(tokens) / float(seconds)
        rows.append(
            {
                "engine": "lmdeploy",
                "size": "4b",
                "mode": "static" if strategy == "static" else "dynamic-4",
                "batch": int(batch),
                "prompt": int(prompt),
                "tokens": int(tokens),
                "seconds": float(seconds),
                "tokens_per_s": round(speed, 1),
            }
        )
    if not rows:
        print(f"lmdeploy gave no line (exit {done.returncode}): {done.stderr[-600:]}", file=sys.stderr)
    return rows


def main() -> None:
    """Measure, append each line to --out at once, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="decoding.jsonl")
    parser.add_argument("--sizes", nargs="+", default=["4b", "1.7b", "8b"], choices=list(SIZES))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 64, 128])
    parser.add_argument("--modes", nargs="+", default=["static", "dynamic-4", "dynamic-2", "dynamic-1"], choices=MODES)
    parser.add_argument("--without", nargs="+", default=[], choices=PARTS, help="parts of the engine to take out")
    parser.add_argument("--hf", action="store_true", help="also the released scheme with transformers (4B)")
    parser.add_argument("--lmdeploy", nargs="+", default=[], help="folders for the peer's PYTHONPATH")
    parser.add_argument("--lmdeploy-script", default="decode.py")
    parser.add_argument("--lmdeploy-config", default="")
    parser.add_argument("--budget-s", type=float, default=540, help="start no further line after so many seconds")
    args = parser.parse_args()
    leave_out(args.without)
    watch, started = Stopwatch(), time.monotonic()
    at = machine()
    print(f"copy {at['bandwidth'] / 1e12:.2f} TB/s, 8192^3 bf16 {at['rate'] / 1e12:.0f} TFLOP/s", flush=True)
    Path(args.out).unlink(missing_ok=True)
    left_out = []
    with Journal(args.out) as journal:

        def note(row: dict[str, object]) -> None:
            journal.append(row | {"without": args.without, "machine": at})
            brief = {name: row.get(name) for name in ("engine", "size", "mode", "batch", "tokens_per_s")}
            shares = {name: row.get(name) for name in ("limit_tokens_per_s", "share_of_limit", "seconds", "prefill_s")}
            print(json.dumps(brief | shares), flush=True)

        for row in lmdeploy(args) if args.lmdeploy else []:
            note(row)
        for size in args.sizes:
            model = random_model(geometry(size))
            for mode in args.modes:
                for batch in args.batches:
                    if time.monotonic() - started > args.budget_s:
                        left_out.append(f"{size} {mode} {batch}")
                        continue
                    note({"size": size} | measure(model, batch, mode, at))
                    gc.collect()
                    torch.cuda.empty_cache()
            if args.hf and size == "4b" and time.monotonic() - started < args.budget_s:
                for batch in (1, 64):
                    note({"size": size} | hugging_face(model, batch, at))
            del model
            gc.collect()
            torch.cuda.empty_cache()
    if left_out:
        print("not run, out of time: " + ", ".join(left_out))
    write_manifest(args.out, stage="benchmark-decoding", spec=vars(args), watch=watch, extra={"left_out": left_out})


if __name__ == "__main__":
    main()
