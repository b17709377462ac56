"""What a build costs, in CPU seconds (user + system, children included): the fast routes beside PyTorch's own.

    python benchmarks/build_cost.py --infilling pairs.json --cuda-l1 cuda_l1.jsonl --work DIR [--budget-s 460] [--jobs 14]

All extensions that the candidate files ask for are built by the fast routes alone (what they leave to stock counts as
not built), and so are `--mutants` broken versions of them (mutations.py). Stock, at about 90 CPU seconds each, builds
random samples: `--stock-sample` of the extensions and `--stock-mutants` of the mutants, in an order fixed by `--seed`,
until `--budget-s` is spent. Right before each of those the same worker builds it by the fast routes once more, without a
cache: what a CPU second is worth depends on who else is at work, so a ratio is of two builds in one place. Rows go to
DIR/fast.jsonl and DIR/stock.jsonl as they come; the same command goes on where it stopped, and with all rows there it only
prints. `--stock-results` adds rows of an earlier stock_pass.py. `--backend cpu` builds for the CPU, which stock cannot.

Printed: the one-off cost; per group, cost of both and the ratio kernel by kernel; how many of those that stock builds
were built without it; and every extension or mutant for which the two do not agree, by name.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import random
import shutil
import sys
import tempfile
import time
from concurrent.futures import Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from mutations import mutants
from recorded_requests import candidates, record
from tqdm import tqdm
from verify_command import quantiles

from dice.kernels.api import Backend
from dice.kernels.builder.builder import Builder
from dice.kernels.builder.compiler import Meter, ToolLimits, Workbench
from dice.kernels.builder.outcome import FinalRefusal, OutOfLimits
from dice.kernels.builder.stock import build_stock
from dice.kernels.records.extension import ExtensionRequest

Rows = dict[str, dict[str, Any]]
_TIMEOUT_S = 400.0
_WALL_S = 2.0
"""Goal for a source with torch/extension.h that nobody changed for us, on a machine that does nothing else."""


def read_rows(path: Path) -> Rows:
    """Rows by name; a half-written last line is left out."""
    rows: Rows = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows[row["name"]] = row
    return rows


def collect(options: argparse.Namespace) -> Rows:
    """Every extension that the candidates ask for, and the mutants: name -> {request, sha256 of the file, index}."""
    path = options.work / "requests.jsonl"
    if path.exists():
        return read_rows(path)
    rows: list[dict[str, Any]] = []
    for identity, code in tqdm(list(candidates(options.infilling, options.cuda_l1, options.jsonl)), desc="requests"):
        digest = hashlib.sha256(code.encode()).hexdigest()
        for i, request in enumerate(record(code)):
            name = f"{identity}:{i}" if i else identity
            rows.append({"name": name, "request": request.model_dump(mode="json"), "sha256": digest, "index": i})
    good = [ExtensionRequest.model_validate(row["request"]) for row in rows if row["name"].startswith("infilling/")]
    good = good or [ExtensionRequest.model_validate(row["request"]) for row in rows]
    for i, (kind, request) in enumerate(mutants(good, options.mutants, options.seed)):
        rows.append(
            {"name": f"mutant/{i:03d} {kind}", "request": request.model_dump(mode="json"), "sha256": "", "index": 0}
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_rows(path)


def build_fast(name: str, request: dict[str, Any], cache: Path, backend: Backend, arch: str | None) -> dict[str, Any]:
    """One build by the fast routes, compilers and our own Python together."""
    global _builder
    if _builder is None:
        _builder = Builder(cache, backend, arch=arch, timeout_s=_TIMEOUT_S, stock_fallback=False)
        if backend == "cuda":
            _builder.precompiled.vocabulary()
    started, cpu = time.monotonic(), time.process_time()  # the compilers are metered one by one
    result = _builder.build(ExtensionRequest.model_validate(request))
    ours = time.process_time() - cpu
    left = result.status == "compile_error" and bool(result.fallbacks) and result.fallbacks[-1] == result.message
    return {
        "name": name,
        "ok": result.status == "built",
        "left": left,
        "status": result.status,
        "route": result.route,
        "cpu_seconds": result.cpu_seconds + ours,
        "python_cpu_seconds": ours,
        "seconds": time.monotonic() - started,
        "fallbacks": result.fallbacks,
        "message": result.message[:600],
    }


_builder: Builder | None = None


def build_as_stock(
    name: str, request: dict[str, Any], cache: Path, backend: Backend, arch: str | None
) -> dict[str, Any]:
    """One build by the fast routes, then one by PyTorch's load_inline, compilers only: its import of torch is not counted."""
    beside = build_fast(name, request, _empty_cache(cache), backend, arch)
    assert _builder is not None
    work = Path(tempfile.mkdtemp(prefix="dice-stock-"))
    meter, started = Meter(_builder.jail), time.monotonic()
    row: dict[str, Any] = {"name": name, "ok": True, "message": "", "fast_cpu_seconds": beside["cpu_seconds"]}
    try:
        bench = Workbench(work / "stock", meter, ToolLimits(_TIMEOUT_S), started + _TIMEOUT_S)
        build_stock(ExtensionRequest.model_validate(request), "sample", _builder.toolchain, bench, None)
    except (FinalRefusal, OutOfLimits) as failure:
        row |= {"ok": False, "message": failure.message[-2000:], "timeout": isinstance(failure, OutOfLimits)}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return row | {"cpu_seconds": meter.cpu_seconds, "seconds": time.monotonic() - started}


def _empty_cache(cache: Path) -> Path:
    """A cache of this process's own that has the toolchain's headers and no build."""
    own = cache.with_name(f"{cache.name}_{os.getpid()}")
    if not own.exists():
        own.mkdir()
        (own / "toolchains").symlink_to(cache / "toolchains")
    return own


def run(todo: list[tuple[str, Any]], work: Any, out: Path, options: argparse.Namespace, deadline: float) -> None:
    """`work` on each request until the deadline, `--jobs` at a time, rows appended to `out` as they come."""
    if not todo:
        return
    waiting, running = list(reversed(todo)), set[Future[dict[str, Any]]]()
    with (
        ProcessPoolExecutor(options.jobs) as pool,
        out.open("a") as stream,
        tqdm(total=len(todo), desc=out.stem) as bar,
    ):
        while running or (waiting and time.monotonic() < deadline):
            while waiting and len(running) < options.jobs and time.monotonic() < deadline:
                name, request = waiting.pop()
                cache = options.work / "cache"
                running.add(pool.submit(work, name, request, cache, options.backend, options.arch))
            done, running = wait(running, timeout=5.0, return_when="FIRST_COMPLETED")
            for future in done:
                stream.write(json.dumps(future.result()) + "\n")
                stream.flush()
                bar.update()


def recorded(paths: list[Path], requests: Rows) -> Rows:
    """Rows of stock_pass.py, for the extensions of the same files; a call that was not made is not there."""
    calls: dict[tuple[str, int], dict[str, Any]] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            row = json.loads(line)
            for i, call in enumerate(row.get("extensions", [])):
                calls[row["sha256"], i] = call
    rows: Rows = {}
    for name, request in requests.items():
        call = calls.get((request["sha256"], request["index"]))
        if call is not None:
            rows[name] = {"name": name, "ok": call["ok"], "message": call["error"], "cpu_seconds": call["cpu_seconds"]}
    return rows


def report(title: str, names: list[str], fast: Rows, stock: Rows) -> None:
    """One group: what both cost, and where they differ."""
    both = [name for name in names if name in fast and name in stock]
    print(f"\n{title}: {len(names)} extensions; stock did {len(both)} of them")
    print(f"{'CPU seconds':34}  median      p95      max")
    for ok, word in ((True, "built"), (False, "refused")):
        group = [name for name in both if stock[name]["ok"] == ok]
        if not group:
            continue
        ours = {name: stock[name].get("fast_cpu_seconds", fast[name]["cpu_seconds"]) for name in group}
        ratios = [stock[name]["cpu_seconds"] / max(ours[name], 1e-3) for name in group]
        print(f"  stock, {word} ({len(group)})".ljust(34) + quantiles([stock[name]["cpu_seconds"] for name in group]))
        print(f"  fast, the same ({len(group)})".ljust(34) + quantiles(list(ours.values())))
        print("  stock / fast, one by one".ljust(34) + quantiles(ratios))
        decided = [name for name in group if fast[name]["ok"] == ok and not fast[name]["left"]]
        print(f"  {word} without stock: {len(decided)} of {len(group)} ({100 * len(decided) / len(group):.1f} %)")
        if not ok:
            cheap = [n for n in decided if ours[n] <= 0.1 * stock[n]["cpu_seconds"]]
            print(f"  refused at a tenth of stock's cost or less: {len(cheap)} of {len(group)}")
            for name in set(decided) - set(cheap):
                print(f"    dearer: {name}: {ours[name]:.2f} of stock's {stock[name]['cpu_seconds']:.1f}")
    print(
        f"  fast, all {len(names)}".ljust(34) + quantiles([fast[name]["cpu_seconds"] for name in names if name in fast])
    )
    wall = [fast[name]["seconds"] for name in names if name in fast]
    within = sum(seconds <= _WALL_S for seconds in wall)
    print("  fast, wall seconds".ljust(34) + quantiles(wall) + f"   {within} of {len(wall)} within {_WALL_S:g} s")
    routes: dict[str, int] = {}
    for name in names:
        if name in fast:
            row = fast[name]
            word = (
                "left to stock" if row["left"] else row["route"] if row["ok"] else f"{row['status']} ({row['route']})"
            )
            routes[word] = routes.get(word, 0) + 1
    print("  fast routes: " + ", ".join(f"{word} {count}" for word, count in sorted(routes.items())))
    for name in names:
        if name in fast and fast[name]["left"]:
            print(f"  left to stock: {name}: {fast[name]['message'][:160]}")
    differ = [name for name in both if not fast[name]["left"] and fast[name]["ok"] != stock[name]["ok"]]
    print(f"  verdicts that differ: {len(differ)} of {len(both)}")
    for name in differ:
        loser = stock[name] if fast[name]["ok"] else fast[name]
        word = "stock refuses" if fast[name]["ok"] else "only the fast route refuses"
        print(f"    {name}: {word}: {' '.join(loser['message'].split())[-300:]}")


def main() -> None:
    """Build what is missing, print the tables."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("--infilling", nargs="*", type=Path, default=[], help="JSON list of pairs with cuda_code")
    parser.add_argument("--cuda-l1", nargs="*", type=Path, default=[], help="JSON lines with custom_code")
    parser.add_argument("--jsonl", nargs="*", type=Path, default=[], help="any JSON lines with code")
    parser.add_argument("--work", type=Path, required=True, help="folder of rows and caches")
    parser.add_argument("--stock-sample", type=int, default=60, help="extensions that stock builds")
    parser.add_argument("--stock-mutants", type=int, default=60, help="mutants that stock builds")
    parser.add_argument("--stock-results", nargs="*", type=Path, default=[], help="rows of stock_pass.py")
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0)) - 2))
    parser.add_argument("--backend", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--arch", help="compute capability, e.g. 9.0; default: the visible GPU's")
    parser.add_argument(
        "--budget-s", type=float, default=460.0, help="no build starts after this; a stock one takes 1-2 min"
    )
    options = parser.parse_args()
    if options.backend == "cpu" and options.stock_sample + options.stock_mutants > 0:
        parser.error("PyTorch builds nothing for the CPU back end: add --stock-sample 0 --stock-mutants 0")
    deadline = time.monotonic() + options.budget_s
    options.work.mkdir(parents=True, exist_ok=True)
    requests = collect(options)
    fast_path, stock_path = options.work / "fast.jsonl", options.work / "stock.jsonl"
    fast = read_rows(fast_path)
    todo = [(name, row["request"]) for name, row in requests.items() if name not in fast]
    if todo:
        builder = Builder(options.work / "cache", options.backend, arch=options.arch)
        made = builder.prepare(options.jobs, everything=True)
        cost = sum(made.cpu_seconds.values())
        print(f"once per machine: {cost:.1f} CPU s, {made.seconds:.1f} s; not prepared: {made.failures or 'nothing'}")
        run(todo, build_fast, fast_path, options, deadline)
    stock = recorded(options.stock_results, requests) | read_rows(stock_path)
    broken = [name for name in requests if name.startswith("mutant/")]
    sound = [name for name in requests if name not in set(broken)]
    draw = random.Random(options.seed)
    samples = ((sound, options.stock_sample), (broken, options.stock_mutants))
    chosen = [draw.sample(group, min(len(group), count)) for group, count in samples]
    order = [name for pair in zip(*chosen, strict=False) for name in pair]
    order += [name for group in chosen for name in group if name not in set(order)]
    left = [(name, requests[name]["request"]) for name in order if name not in stock]
    run(left, build_as_stock, stock_path, options, deadline)
    fast, stock = read_rows(fast_path), recorded(options.stock_results, requests) | read_rows(stock_path)
    missing = sum(name not in stock for name in order)
    if missing:
        print(f"stock has {missing} of its sample of {len(order)} still to do: run the same command again")
    groups = sorted({name.split("/")[0] for name in sound})
    for group in groups:
        report(group, [name for name in sound if name.split("/")[0] == group], fast, stock)
    if len(groups) > 1:
        report("all", sound, fast, stock)
    if broken:
        report("mutants", broken, fast, stock)


if __name__ == "__main__":
    sys.exit(main())
