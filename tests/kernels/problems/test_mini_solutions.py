"""The mini benchmark's reference solutions and plausible mistakes, judged by the verifier itself.

`mini/solutions/` beside this file has one CUDA solution a problem, `mini/wrong/` patches that make it wrong and the
status that each must get. Run as a program, this file writes both as candidates for `dice verify`
(the mistakes are meant for the cpu size: some need its odd sizes to show):

    python tests/kernels/problems/test_mini_solutions.py DIR      # DIR/solutions.jsonl, DIR/mistakes.jsonl
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from dice.jsonl import write_jsonl
from dice.kernels.problems.mini import load_mini
from dice.kernels.records.job import Judging
from dice.kernels.records.verdict import Backend, Verdict
from dice.kernels.verify import VerifyConfig, verify

HERE = Path(__file__).parent / "mini"
PROBLEMS = {problem.id: problem for problem in load_mini("cpu")}
QUICK = (  # one of each style: float4, template and dispatch, shuffles, shared memory, atomics, tiles, several outputs
    "level1/1_LeakyReLU",
    "level1/2_GELUTanh",
    "level1/6_CumulativeSum",
    "level1/8_MaxWithIndices",
    "level1/32_BinCount",
    "level2/8_LinearLogSoftmax",
    "level3/6_GRUCell",
)


@dataclass(frozen=True)
class Candidate:
    """A CUDA program and the status that it must get. Sample 0 is the solution, sample n its n-th mistake."""

    problem_id: str
    sample: int
    code: str
    expected: str
    mistake: str = ""

    @property
    def row(self) -> dict[str, Any]:
        return {"problem_id": self.problem_id, "sample": self.sample, "code": self.code}


def solution(problem_id: str) -> Candidate:
    code = (HERE / "solutions" / f"{problem_id}.py").read_text(encoding="utf-8")
    return Candidate(problem_id, 0, code, "correct")


def mistakes() -> list[Candidate]:
    found = []
    for path in sorted((HERE / "wrong").glob("level*.yaml")):
        for problem_id, patches in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            code = solution(problem_id).code
            for sample, patch in enumerate(patches, 1):
                assert code.count(patch["old"]) == 1, f"{problem_id}: '{patch['mistake']}' does not find its place"
                wrong = code.replace(patch["old"], patch["new"])
                found.append(Candidate(problem_id, sample, wrong, patch["status"], patch["mistake"]))
    return found


def verdicts_of(candidates: Sequence[Candidate], backend: Backend, folder: Path) -> list[Verdict]:
    """Through the whole of `dice verify`: candidates file, builds, sandbox, trials, comparison, both protocols."""
    write_jsonl(folder / "candidates.jsonl", [candidate.row for candidate in candidates])
    config = VerifyConfig(
        candidates=str(folder / "candidates.jsonl"),
        out=str(folder / "verdicts.jsonl"),
        problems="mini",
        backend=backend,
        judging=Judging(protocols=("paper", "strict"), correctness_trials=3, measure_time=False),
    )
    return verify(config, progress=False)


def differences(candidates: Iterable[Candidate], verdicts: Iterable[Verdict]) -> list[str]:
    """What the verifier said otherwise than expected, one line a verdict."""
    expected = {(candidate.problem_id, candidate.sample): candidate for candidate in candidates}
    lines, judged = [], set()
    for verdict in verdicts:
        candidate = expected[verdict.problem_id, verdict.sample]
        judged.add((verdict.problem_id, verdict.sample, verdict.protocol))
        if verdict.status != candidate.expected:
            name = candidate.mistake or "solution"
            lines.append(
                f"{verdict.problem_id} ({name}): {verdict.protocol} says {verdict.status}, not {candidate.expected}: "
                f"{verdict.message[:300]} {[finding.name for finding in verdict.deception]}"
            )
    due = {(*key, protocol) for key in expected for protocol in ("paper", "strict")}
    return lines + [f"no verdict for {key}" for key in sorted(due - judged)]


def without_build(code: str) -> dict[str, Any]:
    """The names of a solution, its kernels left unbuilt."""
    tree = ast.parse(code)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.Assign) and _target(node) == "kernels")]
    names: dict[str, Any] = {"__name__": "solution"}
    exec(compile(tree, "solution.py", "exec"), names)
    return names


def _target(node: ast.Assign) -> str:
    return node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""


def test_every_problem_has_a_solution_and_a_mistake() -> None:
    solved = {str(path.relative_to(HERE / "solutions").with_suffix("")) for path in HERE.glob("solutions/level*/*.py")}
    assert solved == set(PROBLEMS)
    wrong = mistakes()
    assert {candidate.problem_id for candidate in wrong} == set(PROBLEMS)
    assert {candidate.expected for candidate in wrong} == {"wrong_value", "wrong_shape", "wrong_dtype"}
    codes = [candidate.code for candidate in wrong] + [solution(problem_id).code for problem_id in PROBLEMS]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_solution_has_the_weights_of_the_reference(problem_id: str) -> None:
    """By name, so that a state dictionary loads, and by seed, as KernelBench matches them."""
    reference: dict[str, Any] = {"__name__": "problem"}
    exec(PROBLEMS[problem_id].code, reference)
    states = []
    for model in (reference["Model"], without_build(solution(problem_id).code)["ModelNew"]):
        torch.manual_seed(5)
        states.append(model(*reference["get_init_inputs"]()).state_dict())
    assert list(states[0]) == list(states[1])
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


def test_differences_are_reported() -> None:
    """The check below would notice a verdict that is not the expected one, and a missing one."""
    candidate = Candidate("level1/1_LeakyReLU", 0, "", "wrong_value", "a mistake")
    lines = differences([candidate], [])
    assert len(lines) == 2
    assert "no verdict" in lines[0]


def test_a_few_solutions_and_mistakes_on_the_cpu(tmp_path: Path) -> None:
    candidates = [solution(problem_id) for problem_id in QUICK]
    candidates += [wrong for wrong in mistakes() if wrong.problem_id in QUICK and wrong.sample == 1]
    assert differences(candidates, verdicts_of(candidates, "cpu", tmp_path)) == []


@pytest.mark.slow
def test_all_solutions_and_mistakes_on_the_cpu(tmp_path: Path) -> None:
    candidates = [solution(problem_id) for problem_id in PROBLEMS] + mistakes()
    assert differences(candidates, verdicts_of(candidates, "cpu", tmp_path)) == []


@pytest.mark.gpu
def test_all_solutions_at_the_gpu_size(tmp_path: Path) -> None:
    candidates = [solution(problem_id) for problem_id in PROBLEMS]
    assert differences(candidates, verdicts_of(candidates, "cuda", tmp_path)) == []


if __name__ == "__main__":
    write_jsonl(Path(sys.argv[1]) / "solutions.jsonl", [solution(problem_id).row for problem_id in PROBLEMS])
    write_jsonl(Path(sys.argv[1]) / "mistakes.jsonl", [candidate.row for candidate in mistakes()])
