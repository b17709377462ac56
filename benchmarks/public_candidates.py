"""Candidates of public KernelBench runs, for throughput.py: four files, none of them kept in the repository.

    python benchmarks/public_candidates.py --out DIR --leaderboard LEADERBOARD --fork FORK --infilling infilling.json

v0.jsonl            the 413 solutions of the leaderboard (LEADERBOARD: anneouyang/KernelBenchLeaderboard), sizes of v0
v0_1.jsonl          250 answers of GPT-5.5 and DeepSeek to problems of v0.1 whose inputs are below 2 GB
v0_1_level1.jsonl   100 answers of Qwen 3.6 to the whole of level 1 of v0.1 (FORK, for both: yenhao-huang/KernelBench)
rl.jsonl            64 problems with 16 answers each, like a step of reinforcement learning: DICE's infilling items, each as
                    it is, changed up to six times by a rule of robust_mutants.py, broken three times, cut off once, and
                    otherwise with other names of its kernels

Each file is shuffled, so that its beginning is like the whole. `label`: what the publisher's evaluator said, where it
says something. A text stands in one file only: none is built before its turn.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

from robust_mutants import mutants
from verify_command import Row

CODEX, DEEPSEEK, QWEN = (
    "ralph_codex_cuda_all",
    "openrouter_deepseek_v4_pro_leaderboard",
    "ralph_qwen36_cuda_all_gpu1_server_isolated",
)
LARGE_BYTES = 2e9
N_V0_1 = 250
PROBLEMS, ANSWERS, CHANGED, BROKEN = 64, 16, 6, 3
_KERNEL = re.compile(r"__global__\s+void\s+(\w+)")
_TOKENS = re.compile(r"[;)}]|\bfloat\b")


def leaderboard(checkout: Path) -> Iterator[Row]:
    """Solutions that KernelBench's leaderboard published as correct."""
    assets = checkout / "docs" / "assets"
    for number, row in enumerate(json.loads((assets / "raw_data.json").read_text())):
        problem = (assets / "problems" / f"l{row['level']}_p{row['problem_id'] + 1}.py").read_text()
        name = f"v0/{row['level']}/{row['problem_id'] + 1}/{number}"
        yield {"problem_id": name, "problem_code": problem, "code": row["code"], "label": True}


def problems(checkout: Path, levels: tuple[int, ...]) -> dict[tuple[int, int], str]:
    """(level, number) -> text of a KernelBench checkout's problem."""
    files = [(level, path) for level in levels for path in (checkout / "KernelBench" / f"level{level}").glob("*.py")]
    return {(level, int(path.name.split("_")[0])): path.read_text() for level, path in files}


def loop_run(checkout: Path, run: str, levels: tuple[int, ...]) -> Iterator[Row]:
    """Answers of a run that keeps a folder of kernels and one of results for each level."""
    for (level, number), problem in sorted(problems(checkout, levels).items()):
        kernel = checkout / "runs" / run / "generated_kernels" / f"level_{level}" / f"problem_{number}.py"
        result = checkout / "runs" / run / "per_problem" / f"level_{level}" / f"problem_{number}.json"
        if kernel.exists():
            label = labelled(json.loads(result.read_text()).get("eval_result") or {})
            name = f"{run.split('_')[1]}/{level}/{number}"
            yield {"problem_id": name, "problem_code": problem, "code": kernel.read_text(), "label": label}


def folder_run(checkout: Path, run: str, levels: tuple[int, ...]) -> Iterator[Row]:
    """Answers of a run in KernelBench's own layout, one folder for each level."""
    folders = {level: checkout / "runs" / f"{run}_l{level}" for level in levels}
    results = {level: json.loads((folder / "eval_results.json").read_text()) for level, folder in folders.items()}
    for (level, number), problem in sorted(problems(checkout, levels).items()):
        kernel = folders[level] / f"level_{level}_problem_{number}_sample_0_kernel.py"
        if kernel.exists():
            found = results[level].get(str(number), {})
            label = labelled(found[0] if isinstance(found, list) else found)
            name = f"{run.split('_')[1]}/{level}/{number}"
            yield {"problem_id": name, "problem_code": problem, "code": kernel.read_text(), "label": label}


def labelled(result: Row) -> bool | None:
    """Whether a publisher's evaluator found a candidate correct; None where it says nothing, as when its card was full."""
    said = result.get("metadata") or {}
    is_silent = "error" in said or "torch.OutOfMemoryError" in said.values()  # "error": it found no kernel
    return None if is_silent else result.get("correctness")


def input_bytes(problem: str) -> int:
    """Bytes of the tensors that a problem draws for one call; none is allocated."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    names: dict[str, object] = {"__name__": "problem"}
    exec(compile(problem, "problem", "exec"), names)  # the benchmark's own text
    with FakeTensorMode():
        drawn = names["get_inputs"]()  # pyright: ignore[reportCallIssue]
    return sum(value.nbytes for value in drawn if isinstance(value, torch.Tensor))


def renamed(code: str, number: int) -> str:
    """The same program with other names of its kernels: another text for every compiler and cache."""
    for name in set(_KERNEL.findall(code)):
        code = re.sub(rf"\b{name}\b", f"{name}_{number}", code)
    return code


def broken(code: str, draw: random.Random) -> str:
    """A token less after the first kernel's beginning."""
    kernel = _KERNEL.search(code)
    end = code.find('"""', kernel.end()) if kernel else -1
    tokens = list(_TOKENS.finditer(code, kernel.end() if kernel else 0, end if end > 0 else len(code)))
    token = draw.choice(tokens)
    return code[: token.start()] + code[token.end() :]


def batch(infilling: Path, draw: random.Random) -> Iterator[Row]:
    """PROBLEMS x ANSWERS answers, of which no two are the same text."""
    items = [item for item in json.loads(infilling.read_text()) if _KERNEL.search(item["cuda_code"])]
    for item in draw.sample(items, PROBLEMS):
        code = item["cuda_code"]
        right: Row = {"id": "", "problem_code": item["pytorch_code"], "code": code}
        codes = list(dict.fromkeys(mutant["code"] for mutant in mutants(right, CHANGED, draw)))
        codes += [broken(renamed(code, 100 + number), draw) for number in range(BROKEN)]
        codes.append(renamed(code, 200)[: draw.randrange(len(code) // 3, len(code))])
        codes += [renamed(code, number) for number in range(ANSWERS - 1 - len(codes))]
        for sample, answer in enumerate([code, *codes]):
            problem = {"problem_id": f"rl/{item['id']}", "problem_code": item["pytorch_code"]}
            yield {**problem, "sample": sample, "code": answer, "label": True if sample == 0 else None}


def main() -> None:
    """Write the four files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder")
    parser.add_argument("--leaderboard", type=Path, required=True)
    parser.add_argument("--fork", type=Path, required=True)
    parser.add_argument("--infilling", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    smaller = [
        row
        for rows in (loop_run(args.fork, CODEX, (1, 2, 3)), folder_run(args.fork, DEEPSEEK, (1, 2, 3)))
        for row in rows
        if input_bytes(row["problem_code"]) < LARGE_BYTES
    ]
    sets = {
        "v0": list(leaderboard(args.leaderboard)),
        "v0_1": smaller[:N_V0_1],
        "v0_1_level1": list(loop_run(args.fork, QWEN, (1,))),
        "rl": list(batch(args.infilling, draw)),
    }
    args.out.mkdir(parents=True, exist_ok=True)
    seen: set[str] = set()
    for name, rows in sets.items():
        rows = [row for row in rows if name == "v0" or row["code"] not in seen]
        seen.update(row["code"] for row in rows)
        draw.shuffle(rows)
        (args.out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        gigabytes = [input_bytes(row["problem_code"]) / 1e9 for row in rows] if name.startswith("v0_1") else [0.0]
        print(
            f"{name}: {len(rows)} candidates, {len({row['code'] for row in rows})} texts, at most {max(gigabytes):.1f} GB"
        )


if __name__ == "__main__":
    main()
