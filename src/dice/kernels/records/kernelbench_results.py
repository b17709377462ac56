"""Verdicts in the shape of KernelBench's `eval_results.json`, one file per level, for its analysis scripts.

Shape: {"19": [{"sample_id", "compiled", "correctness", "metadata", "runtime", "runtime_stats"}]} with runtimes in
milliseconds and -1 where there is none (KernelBench scripts/eval_from_generations.py; its comment says microseconds,
its values are milliseconds). A `host_error` is left out, as KernelBench leaves out candidates that it could not evaluate.
KernelBench counts the entries of a problem as its samples, so a sample has one: of several protocols the first given.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dice.jsonl import atomic_writer
from dice.kernels.problems.problem import level_and_number
from dice.kernels.records.verdict import Verdict

_NOT_COMPILED = {"compile_error", "refused_flag", "import_error", "no_code", "unsupported_on_cpu"}
_BEFORE_A_MODEL = {"extract", "build", "import"}
"""Stages: a failure there, such as a compiler that takes too long, leaves nothing compiled."""


def to_eval_results(verdicts: Iterable[Verdict]) -> dict[int, dict[str, list[dict[str, Any]]]]:
    """Level -> problem number -> samples. Verdicts whose problem id has no level and number are skipped."""
    levels: dict[int, dict[int, dict[int, dict[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
    for verdict in verdicts:
        level_number = level_and_number(verdict.problem_id)
        if level_number is None or verdict.status == "host_error":
            continue
        timing = verdict.runtime_ms
        stats = {} if timing is None else {"mean": timing.mean, "std": timing.std, "num_trials": timing.n}
        level, number = level_number
        levels[level][number].setdefault(
            verdict.sample,
            {
                "sample_id": verdict.sample,
                "compiled": verdict.functional_status not in _NOT_COMPILED and verdict.stage not in _BEFORE_A_MODEL,
                "correctness": verdict.status == "correct",
                "metadata": {
                    "status": verdict.status,
                    "functional_status": verdict.functional_status,
                    "message": verdict.message,
                    "deception": [finding.name for finding in verdict.deception],
                    "hardware": verdict.host.gpu or verdict.host.cpu,
                    "protocol": verdict.protocol,
                },
                "runtime": -1.0 if timing is None else timing.mean,
                "runtime_stats": stats,
            },
        )
    return {
        level: {str(number): [row for _, row in sorted(rows[number].items())] for number in sorted(rows)}
        for level, rows in sorted(levels.items())
    }


def write_eval_results(folder: str | Path, verdicts: Iterable[Verdict]) -> list[Path]:
    """Write `folder/level_N/eval_results.json` for each level seen and return the paths."""
    paths = []
    for level, results in to_eval_results(verdicts).items():
        path = Path(folder) / f"level_{level}" / "eval_results.json"
        with atomic_writer(path) as stream:
            json.dump(results, stream, indent=4)
        paths.append(path)
    return paths
