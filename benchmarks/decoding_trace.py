"""Where a decoding step's time goes: its kernels in order of what they add, the gaps, and what the host does meanwhile.

    python benchmarks/decoding_trace.py [--size 4b] [--mode static] [--batches 1 8] [--out decoding_trace]

The steps are graph replays of a running batch. A kernel that starts before its predecessor has ended (programmatic
dependent launch) waits inside itself, so a kernel is charged from its predecessor's end to its own; `gap` is the part of
that in which no kernel ran. Tracing slows the GPU down; `step` is measured without it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import torch
from decoding import BLOCK, MASK, MODES, PARTS, SIZES, geometry, leave_out
from one_gpu import PROMPT, random_model
from torch.profiler import ProfilerActivity, profile

from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.decoder import Decoder
from dice.decoding.requests import Request
from dice.decoding.rows import StepResult

NEW = 128
FIRST, TRACED = 24, 40
"""Steps before the window, and in it."""


class Window:
    """Some steps in the middle of a batch, without prefill and without the graphs' first runs."""

    def __init__(self, decoder: Decoder, enter: Callable[[], object], leave: Callable[[], object]) -> None:
        self.seconds = self.waited_s = self._waited = self._started = 0.0
        self._steps, self._finish, self._enter, self._leave = 0, decoder.forward.finish, enter, leave
        wait, self._synchronize = self._wait, torch.cuda.Event.synchronize
        decoder.forward.finish = self._watched
        torch.cuda.Event.synchronize = lambda self: wait(self)

    def close(self, decoder: Decoder) -> None:
        """Watch no longer."""
        decoder.forward.finish, torch.cuda.Event.synchronize = self._finish, self._synchronize

    def _watched(self, ahead: tuple[int, int] | None) -> tuple[StepResult, int]:
        if self._steps == FIRST:
            torch.cuda.synchronize()
            self._enter()
            self._waited, self._started = 0.0, time.perf_counter()
        result = self._finish(ahead)
        self._steps += 1
        if self._steps == FIRST + TRACED:
            torch.cuda.synchronize()
            self.seconds, self.waited_s = time.perf_counter() - self._started, self._waited
            self._leave()
        return result

    def _wait(self, event: torch.cuda.Event) -> None:
        started = time.perf_counter()
        self._synchronize(event)
        self._waited += time.perf_counter() - started


def watched(
    decoder: Decoder, requests: list[Request], enter: Callable[[], object], leave: Callable[[], object]
) -> Window:
    """Decode, and look at the window."""
    window = Window(decoder, enter, leave)
    list(decoder.run(requests))
    window.close(decoder)
    return window


def kernels(trace: str) -> list[tuple[str, float, float]]:
    """(name, start, end) in microseconds of what ran on the device, in order of the ends."""
    events = json.loads(Path(trace).read_text())["traceEvents"]
    wanted = ("kernel", "gpu_memcpy", "gpu_memset")
    found = [(e["name"], float(e["ts"]), float(e["ts"]) + float(e["dur"])) for e in events if e.get("cat") in wanted]
    return sorted(found, key=lambda each: each[2])


def table(ran: list[tuple[str, float, float]], steps: int) -> list[str]:
    """One line for each kernel name, the dearest first; all per step."""
    count, added, busy, gap = (defaultdict(float) for _ in range(4))
    before = ran[0][1]
    for name, start, end in ran:
        count[name] += 1
        added[name] += max(0.0, end - before)
        busy[name] += end - start
        gap[name] += max(0.0, start - before)
        before = max(before, end)
    lines = [
        f"{'added us':>9s} {'count':>6s} {'each us':>8s} {'gap us':>7s} {'runs us':>8s}  a step; {steps} steps traced"
    ]
    for name in sorted(added, key=lambda each: -added[each]):
        each = count[name]
        lines.append(
            f"{added[name] / steps:9.1f} {each / steps:6.1f} {added[name] / each:8.2f} {gap[name] / each:7.2f} "
            f"{busy[name] / each:8.2f}  {name[:90]}"
        )
    lines.append(
        f"{sum(added.values()) / steps:9.1f} {len(ran) / steps:6.1f} {'':8s} {sum(gap.values()) / steps:7.1f} all"
    )
    return lines


def main() -> None:
    """Trace and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="4b", choices=list(SIZES))
    parser.add_argument("--mode", default="static", choices=MODES)
    parser.add_argument("--batches", nargs="+", type=int, default=[1])
    parser.add_argument("--without", nargs="+", default=[], choices=PARTS, help="parts of the engine to take out")
    parser.add_argument("--out", default="decoding_trace", help="prefix of the traces")
    args = parser.parse_args()
    leave_out(args.without)
    model = random_model(geometry(args.size))
    strategy, denoising = MODES[args.mode]
    config = BlockDiffusionConfig(strategy=strategy, block_size=BLOCK, denoising_steps=denoising, threshold=2.0)
    for batch in args.batches:
        decoder = Decoder(
            model, config, mask_id=MASK, stop_ids=(), max_batch=batch, max_length=PROMPT + NEW, engine="fast"
        )
        requests = [Request(tuple(range(1, PROMPT + 1)), NEW) for _ in range(batch)]
        list(decoder.run([Request(request.prompt, 16) for request in requests]))
        plain = watched(decoder, requests, lambda: None, lambda: None)
        step, waits = (1e6 * seconds / TRACED for seconds in (plain.seconds, plain.waited_s))
        print(f"{args.size} {args.mode} batch {batch}: a step {step:.0f} us, of it the host waits {waits:.0f} us")
        trace = profile(activities=[ProfilerActivity.CUDA])
        watched(decoder, requests, trace.start, trace.stop)
        path = f"{args.out}_{args.size}_{args.mode}_{batch}.json"
        trace.export_chrome_trace(path)
        print("\n".join(table(kernels(path), TRACED)), flush=True)
        del decoder
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
