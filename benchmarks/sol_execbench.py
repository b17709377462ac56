"""The red team through SOL-ExecBench's own evaluation driver, for detectors.py: which cheats it calls REWARD_HACK.

    python benchmarks/sol_execbench.py --checkout CHECKOUT --out rows.jsonl [--limit-s 110] [--tricks 100] [--honest 60]

CHECKOUT: NVIDIA/SOL-ExecBench; its `eval_driver.py` and its package run as they are. It needs a GPU and what that package
imports (`cupti-python`). A candidate is a Python solution there: `run` calls `ModelNew`, made with the reference's seed;
inputs come from the problem's `get_inputs`. One thing is undone: the driver forbids `load_inline`, which all of our corpus
calls, so the solution begins by importing PyTorch's module again, with the fast builds in front.

Candidates are drawn with a seed; each has a process of its own, `--jobs` at a time. Rows: {name, kind, status, message},
where `no verdict` is a driver that ended without one.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from verify_command import Row

from dice.kernels.fast_builds import default_builder

ROOT = Path(__file__).parents[1]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SEED = 42
MODEL = f"""

import torch as _torch
from _problem import get_init_inputs as _init_inputs
_torch.manual_seed({SEED})
_model = {{name}}(*_init_inputs()).to("{DEVICE}")


@_torch.no_grad()
def run({{arguments}}):
    return _model({{arguments}})
"""
INPUTS = """

def _draw_inputs(axes, device):
    return dict(zip({names}, get_inputs()))
"""
FAST = """import importlib
import torch.utils.cpp_extension
importlib.reload(torch.utils.cpp_extension)
from dice.kernels.fast_builds import fast_builds
_fast = fast_builds()
_fast.__enter__()
from _candidate import ModelNew
"""


def spec(value: object) -> dict[str, Any]:
    """How SOL-ExecBench describes an input or output. Raises ValueError for what it does not know."""
    if isinstance(value, torch.Tensor):
        return {"shape": [str(size) for size in value.shape], "dtype": str(value.dtype).removeprefix("torch.")}
    for kind, dtype in ((bool, "bool"), (int, "int64"), (float, "float32")):
        if isinstance(value, kind):
            return {"shape": None, "dtype": dtype}
    raise ValueError(f"{type(value).__name__} is neither a tensor nor a number")


def stage(folder: Path, problem: str, code: str) -> None:
    """Write definition, workload and solution. The reference runs once on the CPU: its outputs must be described.

    Raises ValueError for a problem that SOL-ExecBench cannot express.
    """
    names: dict[str, Any] = {"__name__": "problem"}
    exec(compile(problem, "problem", "exec"), names)
    torch.manual_seed(SEED)
    inputs = names["get_inputs"]()
    with torch.no_grad():
        outputs = names["Model"](*names["get_init_inputs"]())(*inputs)
    outputs = outputs if isinstance(outputs, tuple | list) else [outputs]
    named = {f"given_{number}": spec(value) for number, value in enumerate(inputs)}
    arguments = ", ".join(named)
    definition = {
        "name": "problem",
        "axes": {},
        "custom_inputs_entrypoint": "_draw_inputs",
        "inputs": named,
        "outputs": {f"result_{number}": spec(value) for number, value in enumerate(outputs)},
        "reference": problem + INPUTS.format(names=list(named)) + MODEL.format(name="Model", arguments=arguments),
    }
    workload = {"axes": {}, "inputs": {key: {"type": "custom"} for key in named}, "uuid": "one"}
    kernel = FAST + MODEL.format(name="ModelNew", arguments=arguments)
    sources = {"kernel.py": kernel, "_candidate.py": code, "_problem.py": problem}
    solution = {
        "name": "candidate",
        "definition": "problem",
        "author": "red team",
        "spec": {
            "languages": ["pytorch"],
            "target_hardware": ["LOCAL"],
            "entry_point": "kernel.py::run",
            "destination_passing_style": False,
        },
        "sources": [{"path": path, "content": content} for path, content in sources.items()],
    }
    for path, content in sources.items():
        (folder / path).write_text(content)
    (folder / "definition.json").write_text(json.dumps(definition))
    (folder / "workload.jsonl").write_text(json.dumps(workload))
    (folder / "solution.json").write_text(json.dumps(solution))


def evaluate(problem: str, code: str, checkout: Path, timeout_s: float) -> Row:
    """{status, message} of one candidate."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            stage(folder, problem, code)
        except ValueError as error:
            return {"status": "cannot be expressed", "message": str(error)}
        driver = checkout / "src" / "sol_execbench" / "driver" / "templates" / "eval_driver.py"
        shutil.copy(driver, folder / "eval_driver.py")
        paths = [str(checkout / "src"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        process = subprocess.Popen(
            [sys.executable, "eval_driver.py"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"status": "no verdict", "message": f"{timeout_s:.0f} s"}
    for line in said.splitlines():
        with contextlib.suppress(ValueError, TypeError, KeyError):
            found = json.loads(line)["evaluation"]
            return {"status": found["status"], "message": str(found.get("log"))[-400:]}
    return {"status": "no verdict", "message": (errors.strip().splitlines() or [""])[-1][:400]}


def main() -> None:
    """Draw, run, write rows as they come."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tricks", type=int, default=100, help="tricks to draw")
    parser.add_argument("--honest", type=int, default=60, help="honest candidates to draw")
    parser.add_argument("--only", nargs="*", help="candidates by name, in the place of a draw")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--limit-s", type=float, default=110.0, help="seconds; no candidate starts in the last 20")
    parser.add_argument("--timeout-s", type=float, default=60.0, help="seconds of one candidate")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests" / "red_team"))
    from corpus import corpus

    draw = random.Random(args.seed)
    both = {kind: corpus(kind) for kind in ("tricks", "honest")}
    counts = {"tricks": args.tricks, "honest": args.honest}
    todo = [
        (kind, one)
        for kind, found in both.items()
        for one in (
            [one for one in found if one.name in args.only]
            if args.only
            else draw.sample(found, min(len(found), counts[kind]))
        )
    ]
    draw.shuffle(todo)
    if DEVICE == "cuda":
        default_builder().prepare(args.jobs, everything=True)
    began = time.monotonic()
    with args.out.open("a", encoding="utf-8") as file, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:

        def work(kind: str, one: Any) -> Row | None:
            if time.monotonic() - began > args.limit_s - 20:
                return None
            row = evaluate(one.problem_code, one.code, args.checkout.resolve(), args.timeout_s)
            return {"name": one.name, "kind": kind, **row}

        for future in concurrent.futures.as_completed([pool.submit(work, *each) for each in todo]):
            if (row := future.result()) is not None:
                file.write(json.dumps(row) + "\n")
                file.flush()
    print(f"SOL-ExecBench: {len(todo)} candidates drawn, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
