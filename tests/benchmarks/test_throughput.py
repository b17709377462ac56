"""`benchmarks/throughput.py` and the sets that `benchmarks/public_candidates.py` makes for it."""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path

import public_candidates
import pytest
import throughput

SOLUTIONS = Path(__file__).parents[1] / "kernels" / "problems" / "mini" / "solutions"


def test_a_batch_has_as_many_different_answers_to_every_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = sorted(SOLUTIONS.glob("level1/*.py"))[:5]
    items = [{"id": path.stem, "pytorch_code": "", "cuda_code": path.read_text()} for path in kernels]
    (tmp_path / "items.json").write_text(json.dumps(items))
    monkeypatch.setattr(public_candidates, "PROBLEMS", 3)

    rows = list(public_candidates.batch(tmp_path / "items.json", random.Random(1)))

    assert len(rows) == 3 * public_candidates.ANSWERS
    assert len({row["code"] for row in rows}) == len(rows)
    originals = {f"rl/{path.stem}": path.read_text() for path in kernels}
    assert all(originals[row["problem_id"]] == row["code"] for row in rows if row["sample"] == 0)


def test_other_names_leave_everything_else_as_it_is() -> None:
    code = "__global__ void add(float* x) {}\nvoid run() { add<<<1, 2>>>(x); added(); }"
    assert public_candidates.renamed(code, 7) == code.replace("add(", "add_7(").replace("add<<<", "add_7<<<")


def test_a_broken_text_has_a_token_less_and_is_python_still() -> None:
    code = next(SOLUTIONS.glob("level1/*.py")).read_text()
    for seed in range(20):
        changed = public_candidates.broken(code, random.Random(seed))
        assert 0 < len(code) - len(changed) <= len("float")
        ast.parse(changed)


def test_input_bytes_counts_tensors_without_making_them() -> None:
    problem = (
        "import torch\ndef get_inputs():\n    return [torch.rand(10**6, 10**5), torch.zeros(3, dtype=torch.int64), 4]\n"
    )
    assert public_candidates.input_bytes(problem) == 4 * 10**11 + 24


def test_only_verdicts_unlike_a_label_are_named() -> None:
    given = [
        {"problem_id": name, "label": label} for name, label in [("a", True), ("b", False), ("c", None), ("d", True)]
    ]
    verdicts = [
        {"problem_id": "a", "sample": 0, "functional_status": "wrong_value"},
        {"problem_id": "b", "sample": 0, "functional_status": "compile_error"},
        {"problem_id": "c", "sample": 0, "functional_status": "timeout"},
        {"problem_id": "d", "sample": 0, "functional_status": "correct"},
    ]
    assert throughput.unlike_labels(given, verdicts) == ["a 0 wrong_value"]


def test_the_end_of_a_verdict_is_its_start_and_its_seconds() -> None:
    assert throughput.ended({"started": "1970-01-01T00:01:00+00:00", "seconds": 2.5}) == 62.5
