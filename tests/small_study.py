"""A finished study of two problems and two models, by the real stages: answers and verdicts are given, the rest is made."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from verdicts import verdict

from dice.evaluation.score import ScoreConfig, score
from dice.jsonl import write_jsonl
from dice.kernels.problems.problem import Problem
from dice.kernels.records.verdict import Finding, Speedup, Timing, Verdict
from dice.manifest import Stopwatch, sha256_file, write_manifest
from dice.report.check import CheckConfig, check
from dice.report.claims import ClaimEvidence, ClaimRow, ClaimsConfig, Contrast, make_claims
from dice.report.figures import FigureConfig, make_figure
from dice.report.pairs import PairEvidence
from dice.report.tables import MeasuredModel, RowEvidence, TableConfig, make_table
from dice.study.publish import publish

PROBLEMS = ("level1/1_Add", "level1/2_Halve")
REFERENCE = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + {k}\n"
KERNEL = (
    'source = """\n#include <torch/extension.h>\n__global__ void kernel(float* x) {{ x[0] = {k}; }}\n"""\n# <b>é😀\n'
)
STATUSES = {"8B-base": ("wrong_value", "deceptive"), "8B-dice": ("correct", "wrong_value")}
TOKENS = ((1, "source"), (3, " = "), (2, '"""\n#include <torch/extension.h>\n'), (3, ""))
"""(forward, text) of the first tokens; the rest of the answer is one more, fixed in forward 4, then the end token."""


def answer(problem: str, kernel: str) -> dict[str, Any]:
    """A row of generations.jsonl."""
    ends = [sum(len(text) for _, text in TOKENS[: k + 1]) for k in range(len(TOKENS))]
    order = [*(step for step, _ in TOKENS), 4, 5]
    row = {"problem_id": problem, "sample": 0, "text": kernel, "code": kernel, "order": order}
    return row | {"ends": [*ends, len(kernel), len(kernel)]}


def judged(problem: str, kernel: str, status: str) -> Verdict:
    """The verdict on a kernel, with all that a page may show."""
    found = Finding(
        name="kernel_never_launched", rule="paper_1", source="dynamic", evidence="0 < 1", fatal={"paper": True}
    )
    timing = Timing(median=0.5, mean=0.5, std=0.0, n=3)
    return verdict(
        problem, status, code_sha256=hashlib.sha256(kernel.encode()).hexdigest(), backend="cuda",
        functional_status="correct" if status == "deceptive" else status,
        message="" if status == "correct" else "first at [0, 0]: expected 1.0, got <b>2.0",
        runtime_ms=timing, reference_ms=timing, speedup=Speedup(median=1.25, ci_low=None, ci_high=None),
        deception=[found] if status == "deceptive" else [], launches={"kernel": 1},
    )  # fmt: skip


def write_evidence(results: str) -> None:
    """Problems, a model's folder, answers and verdicts, each with its manifest."""
    problems = f"{results}/data/problems.jsonl"
    rows = [
        Problem(id=name, level=1, number=k, name=name[9:], code=REFERENCE.format(k=k), version="t")
        for k, name in enumerate(PROBLEMS)
    ]
    write_jsonl(problems, rows)
    write_manifest(problems, stage="problems", spec={"out": problems}, watch=Stopwatch())
    pairs = f"{results}/data/pairs.jsonl"
    write_jsonl(pairs, [{"id": k} for k in range(3)])
    write_manifest(pairs, stage="synth", spec={"out": pairs}, watch=Stopwatch())
    for unit, statuses in STATUSES.items():
        state, model = Path(results, "state", unit), f"{results}/models/{unit}"
        state.mkdir(parents=True)
        (state / "model.safetensors").write_bytes(unit.encode() * 100)
        write_jsonl(state / "history.jsonl", [{"step": k, "reward": 0.5} for k in (1, 2)])
        write_manifest(state / "model", stage="sft", spec={"out": str(state)}, watch=Stopwatch(), inputs=[pairs])
        publish([state], model)
        generations, verdicts = (f"{results}/{kind}/{unit}/seed0.jsonl" for kind in ("generations", "verdicts"))
        kernels = [KERNEL.format(k=f"{k}.0f") for k in range(len(PROBLEMS))]
        write_jsonl(generations, [answer(name, text) for name, text in zip(PROBLEMS, kernels, strict=True)])
        spec = {"model": model, "out": generations}
        weights = {"weights": {"model.safetensors": sha256_file(f"{model}/model.safetensors")}}
        write_manifest(generations, stage="generate", spec=spec, watch=Stopwatch(), extra=weights)
        write_jsonl(verdicts, map(judged, PROBLEMS, kernels, statuses))
        spec = {"candidates": generations, "problems": problems, "out": verdicts}
        write_manifest(verdicts, stage="verify", spec=spec, watch=Stopwatch(), inputs=[generations, problems])


def write_study(results: str = "results") -> None:
    """The whole study below the working folder: evidence, scores, table 1, figures 1 and 6, the comparison, a claim."""
    write_evidence(results)
    for unit in STATUSES:
        verdicts, out = (f"{results}/verdicts/{unit}/seed0.jsonl",), f"{results}/scores/{unit}.json"
        score(ScoreConfig(verdicts=verdicts, problems=f"{results}/data/problems.jsonl", out=out))
    Path("reported.csv").write_text("row,l1_exec,l1_fast1\nSDAR,8.0,1.0\nDICE,47.0,15.0\nother,1.0,0.0\n")
    measured = [
        RowEvidence(
            row=row,
            score=f"{results}/scores/{unit}.json",
            measured=MeasuredModel(model=f"stand-in {unit}", params="1M"),
        )
        for row, unit in (("SDAR", "8B-base"), ("DICE", "8B-dice"))
    ]
    make_table(
        TableConfig(
            number=1, title="T", reported="reported.csv", rows=(*measured, RowEvidence(row="other", reason="not here")),
            scale="tiny", benchmark="mini-2-cpu", out=f"{results}/table1.csv",
        )
    )  # fmt: skip
    histories = {unit: f"{results}/models/{unit}/history.jsonl" for unit in STATUSES}
    figure = functools.partial(FigureConfig, title="F", scale="tiny")
    scores = {"8B-dice": f"{results}/scores/8B-dice.json"}
    make_figure(figure(number=6, kind="failures", scores=scores, out=f"{results}/figure6.csv"))
    make_figure(figure(number=1, kind="overview", histories=histories, out=f"{results}/figure1.csv"))
    pair = PairEvidence(
        table="table1", row="DICE", against="SDAR", score=f"{results}/scores/8B-dice.json",
        score_against=f"{results}/scores/8B-base.json",
    )  # fmt: skip
    check(CheckConfig(tables=(f"{results}/table1.csv",), pairs=(pair,), out=f"{results}/check.csv"))
    more, less = (
        ClaimRow(name=unit, verdicts=(f"{results}/verdicts/{unit}/seed0.jsonl",)) for unit in ("8B-dice", "8B-base")
    )
    contrast = Contrast(more=(more,), less=(less,))
    claim = ClaimEvidence(name="c", text="T", where="W", benchmark="mini-2-cpu", contrasts=(contrast,))
    make_claims(ClaimsConfig(claims=(claim,), scale="tiny", out=f"{results}/claims.csv"))


def edited(path: Path, old: str, new: str) -> None:
    """Replace a text in a file that has it."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def edited_json(path: Path, **changes: Any) -> None:
    """Other values in a JSON object."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
