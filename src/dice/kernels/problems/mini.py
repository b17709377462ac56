"""The mini benchmark: our own problems in KernelBench's format, small enough for a CPU, with a variant for a GPU.

The problem files lie outside the package, in `experiments/benchmarks/mini/level{1,2,3}/`. They carry the `cpu` size
in module-level constants, as KernelBench's files do; `gpu_sizes.yaml` beside the levels gives the values that replace
some of them at the `gpu` size. The code is parsed here and never executed.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml

from dice.errors import DiceError
from dice.jsonl import atomic_writer
from dice.kernels.problems.folder import load_problem_folder
from dice.kernels.problems.problem import Problem
from dice.manifest import Stopwatch, write_manifest

Size = Literal["cpu", "gpu"]
VERSION = "mini-2"
"""Raised whenever a problem changes; a problem's version adds the size: `mini-2-cpu`, `mini-2-gpu`."""
LEVELS = (1, 2, 3)
GPU_SIZES = "gpu_sizes.yaml"
PLACE = Path("experiments") / "benchmarks" / "mini"


def mini_root(path: str | Path | None = None) -> Path:
    """The folder of the benchmark: `path`, or the one of this checkout, or of a checkout around the working directory.

    Raises DiceError where there is none.
    """
    here = Path.cwd()
    around = [base / PLACE for base in (Path(__file__).resolve().parents[4], here, *here.parents)]
    for folder in around if path is None else [Path(path)]:
        if (folder / GPU_SIZES).is_file() and (folder / "level1").is_dir():
            return folder
    looked = path or f"{PLACE} of this checkout or around the working directory"
    raise DiceError(
        f"{looked}: the mini benchmark is not there; give the folder with level1/ and {GPU_SIZES} (--root)."
    )


def load_mini(size: Size, root: str | Path | None = None) -> list[Problem]:
    """All problems at one size, ordered by level and number. Raises DiceError for a benchmark that is inconsistent."""
    if size not in ("cpu", "gpu"):
        raise DiceError(f"mini benchmark: unknown size '{size}'; the sizes are cpu and gpu.")
    folder = mini_root(root)
    sizes = read_gpu_sizes(folder / GPU_SIZES)
    problems = load_problem_folder(folder, version=f"{VERSION}-{size}", levels=LEVELS)
    large = [_at_gpu_size(problem, sizes, folder) for problem in problems]
    unknown = sorted(set(sizes) - {problem.id for problem in problems})
    if unknown:
        raise DiceError(f"{folder / GPU_SIZES}: '{unknown[0]}' is not a problem of the mini benchmark.")
    return large if size == "gpu" else problems


def _at_gpu_size(problem: Problem, sizes: Mapping[str, Mapping[str, int | float]], folder: Path) -> Problem:
    if problem.id not in sizes:
        raise DiceError(f"{folder / GPU_SIZES}: no entry for {problem.id}; add the constants of the gpu size.")
    code = replace_constants(problem.code, sizes[problem.id], str(folder / f"{problem.id}.py"))
    return problem.model_copy(update={"code": code})


def read_gpu_sizes(path: Path) -> dict[str, dict[str, int | float]]:
    """Problem id -> constant -> value. Raises DiceError naming the entry that is not of that form."""
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DiceError(f"{path}: not valid YAML ({' '.join(str(error).split())}).") from error
    if not isinstance(loaded, dict):
        raise DiceError(f"{path}: expected a mapping from problem ids to constants.")
    for key, constants in loaded.items():
        numbers = isinstance(constants, dict) and all(type(value) in (int, float) for value in constants.values())
        if not numbers:
            raise DiceError(f"{path}: '{key}': expected a mapping from names of constants to numbers.")
    return loaded


def module_constants(code: str, where: str) -> dict[str, ast.expr]:
    """Module-level `name = number` assignments, in order. Raises DiceError when the code does not parse."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise DiceError(f"{where}: line {error.lineno} is not valid Python ({error.msg}).") from error
    constants: dict[str, ast.expr] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
            if isinstance(target, ast.Name) and _number(value) is not None:
                if target.id in constants:
                    raise DiceError(f"{where}: the constant '{target.id}' is assigned twice.")
                constants[target.id] = value
    return constants


def _number(value: ast.expr) -> int | float | None:
    try:
        number = ast.literal_eval(value)
    except ValueError:
        return None
    return number if type(number) in (int, float) else None


def replace_constants(code: str, values: Mapping[str, int | float], where: str) -> str:
    """`code` with the module-level constants named in `values` replaced; every other byte stays.

    Raises DiceError when a name is no such constant or the new value has another type.
    """
    constants = module_constants(code, where)
    lines = code.encode().splitlines(keepends=True)  # the tree's columns count UTF-8 bytes
    edits: list[tuple[int, int, int, bytes]] = []
    for name, new in values.items():
        if name not in constants:
            raise DiceError(f"{where}: no module-level constant '{name}' (there are: {', '.join(constants)}).")
        node = constants[name]
        if type(_number(node)) is not type(new):
            raise DiceError(f"{where}: '{name}' is {_number(node)!r}; {new!r} is of another type.")
        if node.end_lineno != node.lineno or node.end_col_offset is None:
            raise DiceError(f"{where}: the value of '{name}' must lie on one line.")
        edits.append((node.lineno - 1, node.col_offset, node.end_col_offset, repr(new).encode()))
    for line, start, end, text in sorted(edits, reverse=True):
        lines[line] = lines[line][:start] + text + lines[line][end:]
    return b"".join(lines).decode()


def summary_of(problem: Problem) -> str:
    """First line of the docstring of the problem's Model."""
    for statement in ast.parse(problem.code).body:
        if isinstance(statement, ast.ClassDef) and statement.name == "Model":
            return (ast.get_docstring(statement) or "").partition("\n")[0]
    return ""


def markdown_table() -> str:
    """The table of the benchmark's README: every problem with its constants at both sizes."""
    lines = ["| problem | what it computes | constants: cpu size, and gpu size where it differs |", "|---|---|---|"]
    for small, large in zip(load_mini("cpu"), load_mini("gpu"), strict=True):
        cpu, gpu = (
            {name: _number(value) for name, value in module_constants(problem.code, problem.id).items()}
            for problem in (small, large)
        )
        cells = [f"{name} {cpu[name]}" + (f" → {gpu[name]}" if gpu[name] != cpu[name] else "") for name in cpu]
        lines.append(f"| `{small.id}` | {summary_of(small)} | {', '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_folder(problems: Sequence[Problem], out: str | Path) -> list[Path]:
    """Write KernelBench's folder form: `out/level1/19_ReLU.py`, ... Raises DiceError rather than mix with others."""
    out = Path(out)
    paths = [out / f"{problem.id}.py" for problem in problems]
    strangers = sorted({path for level in LEVELS for path in (out / f"level{level}").glob("*.py")} - set(paths))
    if strangers:
        raise DiceError(f"{strangers[0]}: not a file of this benchmark; give an empty folder (--out).")
    for problem, path in zip(problems, paths, strict=True):
        with atomic_writer(path) as stream:
            stream.write(problem.code)
    return paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice mini`."""
    parser.add_argument("--size", choices=("cpu", "gpu"), default="cpu", help="size of the inputs (default: cpu)")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write level1/, level2/, level3/ to")
    parser.add_argument("--root", metavar="DIR", help=f"folder of the benchmark (default: {PLACE} of the checkout)")


def run(args: argparse.Namespace) -> int:
    """Write the benchmark as a folder in KernelBench's form."""
    watch = Stopwatch()
    root = mini_root(args.root)
    problems = load_mini(args.size, root)
    paths = write_folder(problems, args.out)
    spec: dict[str, Any] = {"size": args.size, "version": problems[0].version}
    sources = [root / f"{problem.id}.py" for problem in problems]
    write_manifest(Path(args.out).resolve(), stage="mini", spec=spec, watch=watch, inputs=[root / GPU_SIZES, *sources])
    print(f"{len(paths)} problems ({problems[0].version}) written to {args.out}")
    return 0
