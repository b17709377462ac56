"""The baseline that the verifier is measured against: KernelBench's own evaluator over stock `load_inline` builds.

One process per candidate, `--workers` at a time, as KernelBench and the released DICE reward do it: import torch, exec
the candidate (which compiles with ninja), run `eval_kernel_against_ref` with 5 correctness trials. Every `load_inline`
and `load` call is wrapped to record its user+sys CPU seconds (this process and its children), wall time and outcome,
so failures that the candidate hides are seen.

    python benchmarks/stock_pass.py --kernelbench CHECKOUT --out stock.jsonl --seconds 540 candidates.jsonl [more ...]

CHECKOUT is a KernelBench tree of the paper's era (the parent of its commit e395e91, tolerance 1e-2). Only src/eval.py
and src/utils.py are used; the API clients that utils imports are replaced by empty modules, which evaluation never
reaches. Runs resume: candidates already in --out are skipped, so several calls can share the work.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import resource
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

from verify_command import read_pairs

API_CLIENTS = ["dotenv", "together", "openai", "google", "google.generativeai", "anthropic", "litellm", "requests"]


def cpu_seconds() -> float:
    """User + system seconds of this process and its finished children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def record_builds(calls: list[dict[str, Any]]) -> None:
    """Wrap torch's two entry points so that each call leaves a row in `calls`."""
    from torch.utils import cpp_extension

    for kind in ("load_inline", "load"):
        original = getattr(cpp_extension, kind)

        def wrapped(*args: Any, _original: Any = original, _kind: str = kind, **kwargs: Any) -> Any:
            row: dict[str, Any] = {"kind": _kind, "ok": False, "error": ""}
            calls.append(row)
            cpu, wall = cpu_seconds(), time.monotonic()
            try:
                module = _original(*args, **kwargs)
                row["ok"] = True
                return module
            except BaseException as error:
                row["error"] = f"{type(error).__name__}: {error}"[-6000:]
                raise
            finally:
                row["cpu_seconds"] = cpu_seconds() - cpu
                row["seconds"] = time.monotonic() - wall

        setattr(cpp_extension, kind, wrapped)


def stand_in(attribute: str) -> Any:
    """Any public name of an absent API client."""
    if attribute.startswith("__"):
        raise AttributeError(attribute)
    return object


def evaluate_one(kernelbench: str) -> None:
    """Child process: a candidate on standard input, its result on the descriptor named by RESULT_FD."""
    row = json.load(sys.stdin)
    for name in API_CLIENTS:
        stub = types.ModuleType(name)
        stub.__getattr__ = stand_in  # pyright: ignore[reportAttributeAccessIssue]
        sys.modules[name] = stub
    sys.path.insert(0, kernelbench)
    calls: list[dict[str, Any]] = []
    started = time.monotonic()
    import torch

    result: dict[str, Any] = {"import_s": time.monotonic() - started, "extensions": calls}
    record_builds(calls)
    from src.eval import eval_kernel_against_ref  # pyright: ignore[reportMissingImports]

    try:
        verdict = eval_kernel_against_ref(
            row["problem_code"],
            row["code"],
            num_correct_trials=5,
            measure_performance=False,
            build_dir=os.environ["TORCH_EXTENSIONS_DIR"],
            device=torch.device("cuda:0"),
        )
        if verdict is None:
            result["kernelbench"] = None
        else:
            metadata = {key: str(value)[:600] for key, value in verdict.metadata.items()}
            result["kernelbench"] = {
                "compiled": verdict.compiled,
                "correctness": verdict.correctness,
                "metadata": metadata,
            }
    except Exception as error:  # noqa: BLE001  whatever the peer raises is its answer
        result["kernelbench_raised"] = f"{type(error).__name__}: {error}"[:600]
    result["seconds"] = time.monotonic() - started
    with os.fdopen(int(os.environ["RESULT_FD"]), "w") as stream:
        json.dump(result, stream)
    os._exit(0)


def run_one(row: dict[str, Any], kernelbench: str, builds: Path, timeout_s: float) -> dict[str, Any]:
    """Evaluate one candidate in a process of its own."""
    read_fd, write_fd = os.pipe()
    folder = builds / row["sha256"]
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"TORCH_EXTENSIONS_DIR": str(folder), "RESULT_FD": str(write_fd)}
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, __file__, "--one", "--kernelbench", kernelbench],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        pass_fds=[write_fd],
        start_new_session=True,
    )
    os.close(write_fd)
    result: dict[str, Any]
    try:
        _, errors = process.communicate(json.dumps(row).encode(), timeout=timeout_s)
        with os.fdopen(read_fd) as stream:
            text = stream.read()
        result = json.loads(text) if text else {"died": errors.decode(errors="replace")[-1500:]}
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        os.close(read_fd)
        result = {"died": f"timeout after {timeout_s} s"}
    wall = time.monotonic() - started
    return {"id": row["id"], "sha256": row["sha256"], "wall_s": wall, **result}


def main() -> None:
    """Run the pool until the candidates or the seconds are used up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", nargs="*")
    parser.add_argument("--kernelbench", required=True)
    parser.add_argument("--out")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no candidate after this long")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--builds", default="stock_builds", help="folder for the extensions, kept for the next call")
    parser.add_argument("--only", default="", help="only candidates whose code contains this text")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        evaluate_one(args.kernelbench)
        return
    rows = [row for path in args.candidates for row in read_pairs(path) if args.only in row["code"]]
    out = Path(args.out)
    done = {json.loads(line)["sha256"] for line in out.read_text().splitlines()} if out.exists() else set()
    todo = [row for row in rows if row["sha256"] not in done]
    started = time.monotonic()
    finished = 0
    with out.open("a") as stream, concurrent.futures.ThreadPoolExecutor(args.workers) as pool:

        def work(row: dict[str, Any]) -> dict[str, Any] | None:
            if time.monotonic() - started > args.seconds:
                return None
            return run_one(row, args.kernelbench, Path(args.builds).resolve(), args.timeout)

        for future in concurrent.futures.as_completed([pool.submit(work, row) for row in todo]):
            result = future.result()
            if result is not None:
                finished += 1
                stream.write(json.dumps(result) + "\n")
                stream.flush()
                print(f"{finished}/{len(todo)} {time.monotonic() - started:.0f} s {result['id']}", file=sys.stderr)
    minutes = (time.monotonic() - started) / 60
    # No rate: the end of a short run is a pool that runs empty (against_stock.py has the rate).
    print(f"stock: {finished} candidates in {minutes:.2f} min, {args.workers} at a time")


if __name__ == "__main__":
    main()
