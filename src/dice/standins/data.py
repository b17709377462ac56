"""The user's files in their published columns (dice.data.sources), from synthetic pairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dice.data.infilling import split_candidate
from dice.data.pair import Pair
from dice.evaluation.prompts import Task, render_prompt
from dice.jsonl import atomic_writer, write_jsonl, write_text
from dice.standins.programs import Solved

Rows = list[dict[str, Any]]


def _fenced(code: str) -> str:
    return f"Here is the kernel.\n\n```python\n{code.strip()}\n```\n"


def concur(pairs: Sequence[Pair]) -> Rows:
    """Columns of lkongam/ConCuR."""
    return [
        {
            "uuid": f"{number:08d}",
            "problem_name": f"{number}_{pair.id}",
            "pytorch_code": pair.pytorch_code,
            "generated_code": pair.cuda_code,
            "generated_think": "One thread for each element.",
            "speedup_over_eager": 1.5,
        }
        for number, pair in enumerate(pairs)
    ]


def cudallm(pairs: Sequence[Pair]) -> Rows:
    """Columns of ByteDance-Seed/cudaLLM-data: text to text."""
    return [{"prompts": render_prompt(Task(pair.pytorch_code)), "responses": _fenced(pair.cuda_code)} for pair in pairs]


def structural(pairs: Sequence[Pair]) -> Rows:
    """Our own rows: the first try is wrong, the second right."""
    return [
        {
            "id": f"structural/{number}",
            "pytorch_code": pair.pytorch_code,
            "answers": [_fenced("import torch\nclass ModelNew(torch.nn.Module):\n    pass"), _fenced(pair.cuda_code)],
            "level": 3,
        }
        for number, pair in enumerate(pairs)
    ]


def infilling(pairs: Sequence[Pair]) -> Rows:
    """Columns of the authors' kernel_infilling_992.json."""
    rows: Rows = []
    for number, pair in enumerate(pairs):
        split = split_candidate(pair.cuda_code)
        parts = {"prefix": split.prefix, "middle": split.middle, "suffix": split.suffix}
        rows.append({"id": number, "pytorch_code": pair.pytorch_code, "cuda_code": pair.cuda_code, **parts})
    return rows


def end_to_end(pairs: Sequence[Pair]) -> Rows:
    """Columns of the authors' end_to_end_kernel_generation_4000.json; as there, one of the first rows has the level 0."""
    levels = ["0" if number == 1 else str(pair.level) for number, pair in enumerate(pairs)]
    return [
        {
            "idx": number,
            "level": level,
            "pytorch_code": pair.pytorch_code,
            "cuda_code": "",
            "raw_answer": f"The level is \\boxed{{{level}}}.",
        }
        for number, (pair, level) in enumerate(zip(pairs, levels, strict=True))
    ]


ROWS: dict[str, Callable[[Sequence[Pair]], Rows]] = {
    "concur": concur,
    "cudallm": cudallm,
    "structural": structural,
    "infilling": infilling,
    "end_to_end": end_to_end,
}


def write_data(path: Path, name: str, pairs: Sequence[Pair]) -> None:
    """A file in the format `name`; how it is stored follows from the path, for the authors' own files an array."""
    rows = ROWS[name](pairs)
    if path.suffix in (".parquet", ".arrow"):
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.Table.from_pylist(rows)
        with atomic_writer(path, "wb") as stream:
            if path.suffix == ".parquet":
                pyarrow.parquet.write_table(table, stream)
            else:  # as `datasets` saves it
                with pyarrow.ipc.new_stream(stream, table.schema) as writer:
                    writer.write_table(table)
    elif name in ("infilling", "end_to_end"):
        write_text(path, json.dumps(rows, indent=2))
    else:
        write_jsonl(path, rows)


def write_answers(path: Path, problems: Sequence[Solved], model: str) -> None:
    """Answers to the benchmark: by a `model`, as records are (docs/guides/servers.md), or without one as CUDA-L1's.

    Where there is no solution, the answer has no kernel.
    """
    none = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
    rows = []
    for one in problems:
        code = one.solution or none
        if model:
            name = f"level{one.level}/{one.number}_{one.name}"
            rows.append({"problem_id": name, "model": model, "date": "2026-01-05T09:30:00Z", "text": _fenced(code)})
        else:
            rows.append({"level_id": one.level, "task_id": one.number, "custom_code": code})
    write_jsonl(path, rows)
