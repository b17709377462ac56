"""Whether the builder's final refusals are right: what stock's compilers say of the same sources.

    python benchmarks/refused_builds.py --infilling pairs.json --work DIR [--sources 110] [--budget-s 280]

Right kernels are changed in one place each (mutations.py); some of the changes are harmless. The fast routes build each
source without stock: it is built, left to stock, or refused for good. Each source that is refused for good goes to the
compilers that stock would call, with stock's flags on stock's text: nvcc on the .cu with PyTorch's headers, g++ on
main.cpp. A source that they accept is a wrong verdict, and is printed with its message. Refusals by the linker or for a
flag are counted, not compared. The CPU route's word stands beside.

It needs nvcc, but no GPU and no PyTorch with CUDA. About 25 CPU seconds for each refusal; rows go to DIR/rows.jsonl as they
come, and the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from build_cost import read_rows
from mutations import mutants
from recorded_requests import candidates, record
from tqdm import tqdm

from dice.kernels.builder.builder import Builder
from dice.kernels.builder.request_sources import sources_of
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.records.extension import BuildResult, ExtensionRequest

_PRELUDE = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"  # load_inline's, before a .cu
_NOT_COMPILED = ("cannot find -l", "multiple definition of", "nvcc fatal", "unrecognized command-line option")


def word(result: BuildResult) -> str:
    """One word for what the fast routes say."""
    if result.status == "built":
        return "built"
    if result.status == "compile_error":
        return "left to stock" if result.fallbacks and result.fallbacks[-1] == result.message else "refused"
    return result.status


def refused_by_stock(request: ExtensionRequest, message: str, tools: Toolchain) -> str:
    """The first error of stock's compilers, "" when they accept the source. The unit that `message` names goes first."""
    sources = sources_of(request)
    number = tools.arches[-1].replace(".", "")
    name = f"-DTORCH_EXTENSION_NAME={request.name}"
    by_nvcc = [tools.nvcc, name, *tools.nvcc_flags, tools.standard, f"-gencode=arch=compute_{number},code=sm_{number}"]
    by_nvcc += request.extra_cuda_cflags
    by_gcc = [tools.cxx, name, *tools.cxx_flags("cuda"), *request.extra_cflags]
    units = [(main.source, main.stock_text(), by_gcc) for main in sources.mains]
    if sources.cuda is not None:
        units.append((sources.cuda_name, (_PRELUDE if sources.inline else "") + sources.cuda, by_nvcc))
    with tempfile.TemporaryDirectory() as folder:
        for file, text, command in sorted(units, key=lambda unit: unit[0] not in message):
            Path(folder, file).write_text(text)
            call = [*command, "-c", file, "-o", "unit.o"]
            done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                said = done.stdout + done.stderr
                return next((line for line in said.splitlines() if "error" in line), said)[:300]
    return ""


def judged(request: ExtensionRequest, cuda: Builder, cpu: Builder | None) -> dict[str, Any]:
    """What the fast routes, the CPU route and stock's compilers say of one source; "-" for who was not asked."""
    result = cuda.build(request)
    row: dict[str, Any] = {"fast": word(result), "message": result.message[:2000], "cpu": "-", "stock": "-"}
    if row["fast"] != "refused":
        return row
    if any(sign in result.message for sign in _NOT_COMPILED):
        return row | {"fast": "refused: flag or linker"}
    if cpu is not None:
        row["cpu"] = word(cpu.build(request))
    row["stock_message"] = refused_by_stock(request, result.message, cuda.toolchain)
    return row | {"stock": "refused" if row["stock_message"] else "accepted"}


def main() -> None:
    """Judge what is missing, print the table."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("--infilling", nargs="*", type=Path, default=[], help="JSON list of pairs with cuda_code")
    parser.add_argument("--jsonl", nargs="*", type=Path, default=[], help="any JSON lines with code")
    parser.add_argument("--work", type=Path, required=True, help="folder of the rows")
    parser.add_argument("--cache", type=Path, help="build cache; default: in --work")
    parser.add_argument("--sources", type=int, default=110)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arch", default="9.0")
    parser.add_argument("--no-cpu", action="store_true", help="do not ask the CPU route")
    parser.add_argument("--budget-s", type=float, default=3600.0, help="no source is begun after this")
    options = parser.parse_args()
    deadline = time.monotonic() + options.budget_s
    options.work.mkdir(parents=True, exist_ok=True)
    cache = options.cache or options.work / "cache"
    cuda = Builder(cache, "cuda", arch=options.arch, stock_fallback=False)
    cpu = None if options.no_cpu else Builder(cache, "cpu")

    requests = options.work / "requests.jsonl"
    if not requests.exists():
        right = [r for _, code in candidates(options.infilling, [], options.jsonl) for r in record(code)]
        wrong = enumerate(mutants(right, options.sources, options.seed))
        rows = [{"name": f"{i:03d} {kind}", "request": r.model_dump(mode="json")} for i, (kind, r) in wrong]
        requests.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done, out = read_rows(options.work / "rows.jsonl"), options.work / "rows.jsonl"
    for name, row in tqdm(read_rows(requests).items()):
        if name not in done and time.monotonic() < deadline:
            done[name] = {"name": name} | judged(ExtensionRequest.model_validate(row["request"]), cuda, cpu)
            with out.open("a") as stream:
                stream.write(json.dumps(done[name]) + "\n")

    print(f"\n{len(done)} sources; fast routes, stock's compilers, CPU route:")
    for words, count in Counter((row["fast"], row["stock"], row["cpu"]) for row in done.values()).most_common():
        print(f"{count:5d}  {words[0]:26s} {words[1]:10s} {words[2]}")
    for row in done.values():
        if row["stock"] == "accepted":
            print(f"WRONG: {row['name']}: {' '.join(row['message'].split())[:300]}")


if __name__ == "__main__":
    sys.exit(main())
