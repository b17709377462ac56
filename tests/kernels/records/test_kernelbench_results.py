"""KernelBench's result files, in the shape that its scripts/eval_from_generations.py writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dice.kernels.records.kernelbench_results import to_eval_results, write_eval_results
from dice.kernels.records.verdict import Finding, Host, Status, Timing, Verdict

HOST = Host(gpu=None, driver=None, cuda=None, torch="2", cpu="a cpu", isolation=[])


def verdict(problem: str, sample: int = 0, status: Status = "correct", **fields: object) -> Verdict:
    given = {"functional_status": status, "host": HOST, "message": "", "protocol": "paper", "stage": "done"} | fields
    rest = {"code_sha256": "", "backend": "cpu", "trials": 5}
    return Verdict.model_validate({"problem_id": problem, "sample": sample, "status": status, **rest, **given})


def test_the_shape() -> None:
    timing = Timing(median=1.0, mean=2.5, std=0.5, n=100)
    finding = Finding(name="cached", rule="paper_1", source="static", evidence="", fatal={"paper": True})
    found = to_eval_results(
        [
            verdict("level2/19_ReLU", 1, runtime_ms=timing, host=HOST.model_copy(update={"gpu": "a gpu"})),
            verdict("level2/19_ReLU", 0, "deceptive", functional_status="correct", deception=[finding], message="why"),
        ]
    )
    assert found == {
        2: {
            "19": [
                {
                    "sample_id": 0,
                    "compiled": True,
                    "correctness": False,
                    "metadata": {
                        "status": "deceptive",
                        "functional_status": "correct",
                        "message": "why",
                        "deception": ["cached"],
                        "hardware": "a cpu",
                        "protocol": "paper",
                    },
                    "runtime": -1.0,
                    "runtime_stats": {},
                },
                {
                    "sample_id": 1,
                    "compiled": True,
                    "correctness": True,
                    "metadata": {
                        "status": "correct",
                        "functional_status": "correct",
                        "message": "",
                        "deception": [],
                        "hardware": "a gpu",
                        "protocol": "paper",
                    },
                    "runtime": 2.5,
                    "runtime_stats": {"mean": 2.5, "std": 0.5, "num_trials": 100},
                },
            ]
        }
    }


@pytest.mark.parametrize(
    ("status", "compiled"),
    [
        ("compile_error", False),
        ("refused_flag", False),
        ("import_error", False),
        ("no_code", False),
        ("unsupported_on_cpu", False),
        ("runtime_error", True),
        ("wrong_value", True),
        ("timeout", True),
        ("out_of_memory", True),
    ],
)
def test_what_counts_as_compiled(status: Status, compiled: bool) -> None:
    for row in (verdict("level1/1", 0, status), verdict("level1/1", 0, "deceptive", functional_status=status)):
        (written,) = to_eval_results([row])[1]["1"]
        assert (written["compiled"], written["correctness"]) == (compiled, False)


@pytest.mark.parametrize(
    ("stage", "compiled"), [("build", False), ("import", False), ("init", True), ("forward", True)]
)
def test_what_ends_before_there_is_a_model_is_not_compiled(stage: str, compiled: bool) -> None:
    rows = [verdict("level1/1", 0, "timeout", stage=stage), verdict("level1/1", 1, "out_of_memory", stage=stage)]
    assert [row["compiled"] for row in to_eval_results(rows)[1]["1"]] == [compiled, compiled]


def test_problems_are_in_order_of_their_numbers_and_levels_apart(tmp_path: Path) -> None:
    names = ["level2/3", "level1/10_b", "level1/9_a", "mine", "level1/x", "level1/10_b/c_of_another"]
    rows = [verdict(name, sample) for sample, name in enumerate(names)]
    rows.append(verdict("level3/1", 0, "host_error"))
    paths = write_eval_results(tmp_path / "results", rows)
    assert paths == [tmp_path / "results" / f"level_{level}" / "eval_results.json" for level in (1, 2)]
    first = json.loads(paths[0].read_text())
    assert list(first) == ["9", "10"]
    assert [row["sample_id"] for row in first["10"]] == [1, 5]
    assert list(json.loads(paths[1].read_text())) == ["3"]
    assert write_eval_results(tmp_path / "none", []) == []


def test_a_sample_is_counted_once_whatever_the_number_of_protocols() -> None:
    rows = [verdict("level1/1", 3, protocol="paper"), verdict("level1/1", 3, "deceptive", protocol="strict")]
    (row,) = to_eval_results([*rows, verdict("level1/2", 3, protocol="strict")])[1]["1"]
    assert (row["sample_id"], row["correctness"], row["metadata"]["protocol"]) == (3, True, "paper")
