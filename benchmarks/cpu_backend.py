"""The CPU back end on a file of pairs: status counts, and what building and running cost.

    python benchmarks/cpu_backend.py --cache DIR pairs.json [pairs.jsonl ...] [--only 76,81] [--out rows.jsonl]

A pair is an object with `pytorch_code` and `cuda_code` (or `ref_code` and `custom_code`); the files are JSON lists or JSON
lines. Each candidate runs in a process of its own: its extensions are built by `Builder(backend="cpu")`, then
`ModelNew` is compared with `Model` on two sets of inputs, atol = rtol = 1e-2. A wrong result is run again in other orders
of threads (cpu_race.py). This is not the verifier: nothing is confined, so give it only code that you trust.
"""

from __future__ import annotations

import argparse
import inspect
import json
import multiprocessing
import os
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
import torch.utils.cpp_extension
from torch.utils._pytree import tree_leaves

from dice.kernels import cpu_device
from dice.kernels.build import (
    Builder,
    build_exception,
    load_extension,
    read_launches,
    request_from_load,
    request_from_load_inline,
    reset_launches,
)
from dice.kernels.cpu_race import Turn, prove_race
from dice.kernels.cpu_runtime import CpuRuntime

SLICE = 1 << 22


def read_pairs(path: Path) -> list[dict[str, Any]]:
    """Pairs of one file, whichever names its fields have."""
    text = path.read_text()
    rows = (
        json.loads(text) if text.lstrip().startswith("[") else [json.loads(line) for line in text.splitlines() if line]
    )
    names = (("pytorch_code", "cuda_code"), ("ref_code", "custom_code"))
    pairs = []
    for index, row in enumerate(rows):
        for reference, candidate in names:
            if row.get(reference) and row.get(candidate):
                pairs.append({"name": f"{path.stem}:{index}", "reference": row[reference], "candidate": row[candidate]})
    return pairs


def same(left: Any, right: Any) -> bool:
    """Whether two results agree within 1e-2, tensors compared in slices to spare memory."""
    lefts, rights = tree_leaves(left), tree_leaves(right)
    if len(lefts) != len(rights):
        return False
    for a, b in zip(lefts, rights, strict=True):
        if not torch.is_tensor(a) or not torch.is_tensor(b):
            if a != b:
                return False
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        slices = zip(a.reshape(-1).split(SLICE), b.reshape(-1).split(SLICE), strict=True)
        if not all(torch.allclose(p, q, atol=1e-2, rtol=1e-2, equal_nan=True) for p, q in slices):
            return False
    return True


class Candidate:
    """One pair, in a process that ends with it."""

    def __init__(self, pair: dict[str, Any], builder: Builder) -> None:
        self.pair = pair
        self.builder = builder
        self.row: dict[str, Any] = {
            "name": pair["name"],
            "build_cpu_s": 0.0,
            "extensions": 0,
            "loaded": 0,
            "message": "",
        }

    def run(self) -> dict[str, Any]:
        """The row: status, times in seconds, launches."""
        self._patch()
        try:
            status = self._compare()
        except Exception as error:  # noqa: BLE001 - whatever a candidate raises is its result
            text = str(error)
            self.row["message"] = self.row["message"] or text[:2000]
            status = "unsupported_on_cpu" if "unsupported_on_cpu" in text else "runtime_error"
        if self.row.get("build_status", "built") != "built" and status != "correct":
            status = self.row["build_status"]
        self.row["status"] = status
        return self.row

    def _patch(self) -> None:
        def build(request: Any) -> Any:
            self.row["extensions"] += 1
            result = self.builder.build(request)
            self.row["build_cpu_s"] += result.cpu_seconds
            if result.status != "built":
                self.row.update(build_status=result.status, message=result.message[:2000])
                raise build_exception(result, request.name)
            self.row["fallbacks"] = result.fallbacks
            module = load_extension(result.path or "", request.name)
            self.row["loaded"] += 1
            return module

        torch.utils.cpp_extension.load_inline = lambda *a, **k: build(request_from_load_inline(*a, **k))  # type: ignore[assignment]
        torch.utils.cpp_extension.load = lambda *a, **k: build(request_from_load(*a, **k))  # type: ignore[assignment]

    def _compare(self) -> str:
        device = cpu_device.install()
        reference = self._execute("reference")
        candidate = self._execute("candidate")
        for seed in (0, 1):
            torch.manual_seed(seed)
            arguments = reference["get_init_inputs"]()
            model = self._model(reference["Model"], arguments, seed)
            new = self._model(candidate["ModelNew"], arguments, seed)
            with device.honest():
                state = model.state_dict()
                if {k: v.shape for k, v in state.items()} == {k: v.shape for k, v in new.state_dict().items()}:
                    new.load_state_dict(state)
            torch.manual_seed(seed + 100)
            inputs = reference["get_inputs"]()
            big = sum(x.numel() for x in tree_leaves(inputs) if torch.is_tensor(x)) > 1 << 27
            fresh: Callable[[], list[Any]] = lambda inputs=inputs, big=big: (  # noqa: E731
                list(inputs) if big else [x.clone() if torch.is_tensor(x) else x for x in inputs]
            )
            reset_launches()
            started = time.perf_counter()
            with torch.no_grad():
                result = new(*fresh())
            cpu_device.synchronize()
            self.row["run_s"] = max(self.row.get("run_s", 0.0), time.perf_counter() - started)
            self.row["launches"] = {name: count for name, count in read_launches().items() if count}
            started = time.perf_counter()
            with torch.no_grad():
                expected = model(*fresh())
            self.row["reference_s"] = time.perf_counter() - started
            with device.honest():
                if not same(result, expected):
                    return self._why_wrong(new, fresh)
            del result, expected, inputs
        return "correct"

    def _why_wrong(self, new: Any, fresh: Callable[[], list[Any]]) -> str:
        runtime = CpuRuntime.loaded()
        if runtime is None:
            return "wrong_value"

        def forward(turn: Turn) -> Any:
            runtime.set_order(turn.order, turn.seed, turn.kernel)
            torch.manual_seed(0)
            with torch.no_grad():
                return new(*fresh())

        race = prove_race(forward, list(self.row["launches"]), same)
        if race is None:
            return "wrong_value"
        self.row["message"] = race.message
        return "unsupported_on_cpu"

    def _execute(self, part: str) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": part}
        # A file name that inspect can read, as candidates that look at their own source expect.
        exec(compile(self.pair[part], part, "exec"), names)
        return names

    @staticmethod
    def _model(kind: Any, arguments: Any, seed: int) -> Any:
        torch.manual_seed(seed)
        made = kind(**arguments) if isinstance(arguments, dict) else kind(*arguments)
        return made.eval()


def _child(pair: dict[str, Any], cache: Path, pipe: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(os.devnull, "w") as sink, redirect_stdout(sink), redirect_stderr(sink):
        pipe.send(Candidate(pair, Builder(cache, "cpu")).run())


def main() -> None:
    """Run, print rows as they come and the table at the end."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--cache", type=Path, required=True, help="build cache, as for dice verify")
    parser.add_argument("--only", default="", help="indices, with commas")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one candidate")
    parser.add_argument("--containing", default="", help="only candidates whose code has this text")
    parser.add_argument("--out", type=Path, help="rows as JSON lines")
    options = parser.parse_args()
    pairs = [pair for path in options.files for pair in read_pairs(path) if options.containing in pair["candidate"]]
    if options.only:
        pairs = [pairs[int(index)] for index in options.only.split(",")]
    Builder(options.cache, "cpu").prepare()
    context = multiprocessing.get_context("fork")
    rows: list[dict[str, Any]] = []
    for pair in pairs:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(pair, options.cache, theirs))
        process.start()
        theirs.close()
        row: dict[str, Any] = {"name": pair["name"], "status": "timeout", "message": ""}
        try:
            if ours.poll(options.timeout):
                row = ours.recv()
        except EOFError:
            process.join()
            row["status"] = f"died ({process.exitcode})"
        process.kill()
        process.join()
        rows.append(row)
        times = " ".join(f"{key}={row[key]:.3f}" for key in ("build_cpu_s", "run_s", "reference_s") if key in row)
        print(f"{row['name']:36} {row['status']:20} {times} {row['message'][:300]}", flush=True)
    print(
        "\n"
        + "\n".join(f"{count:5} {status}" for status, count in Counter(row["status"] for row in rows).most_common())
    )
    for key in ("build_cpu_s", "run_s"):
        values = sorted(row[key] for row in rows if key in row)
        if values:
            last = len(values) - 1
            print(
                f"{key}: median {statistics.median(values):.3f}  p95 {values[int(0.95 * last)]:.3f}  max {values[-1]:.3f}"
            )
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
