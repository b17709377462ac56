"""Two problems, one of them solved, scored; beside it the paper's table of two rows."""

from __future__ import annotations

from pathlib import Path

from verdicts import verdict

from dice.evaluation.score import ScoreConfig, score
from dice.jsonl import write_jsonl
from dice.kernels.problems.problem import Problem
from dice.manifest import Stopwatch, write_manifest
from dice.report.tables import MeasuredModel, RowEvidence, TableConfig, make_table

REPORTED = "row,model,params,l1_exec,l1_fast1\nDICE-8B,DICE,8B,47.0,15.0\nother,other,8B,1.0,0.0\n"


def scored_folder(folder: Path) -> Path:
    """Two problems, one of them solved, scored on the CPU back end; beside it the paper's table of two rows."""
    names = ["level1/1_A", "level1/2_B"]
    problems = [
        Problem(id=name, level=1, number=k, name=name[-1], code="", version="t") for k, name in enumerate(names)
    ]
    write_jsonl(folder / "problems.jsonl", problems)
    statuses = zip(names, ("correct", "wrong_value"), strict=True)
    verdicts = [verdict(name, status, message="<b>") for name, status in statuses]
    verdicts_of = folder / "verdicts" / "8B-dice"
    write_jsonl(verdicts_of / "seed0.jsonl", verdicts)
    write_manifest(verdicts_of / "seed0.jsonl", stage="gather", spec={}, watch=Stopwatch())
    rows = [{"problem_id": n, "sample": 0, "text": "a", "code": "x < y", "order": [1, 2, 1]} for n in names]
    write_jsonl(folder / "generations" / "8B-dice" / "seed0.jsonl", rows)
    score(
        ScoreConfig(
            verdicts=(str(verdicts_of / "seed0.jsonl"),),
            problems=str(folder / "problems.jsonl"),
            out=str(folder / "scores" / "8B-dice.json"),
        )
    )
    (folder / "reported.csv").write_text(REPORTED)
    return folder


def table(
    place: Path, benchmark: str = "kernelbench-v0.1", rows: tuple[RowEvidence, ...] = (), scale: str = "tiny"
) -> list[dict[str, str]]:
    """Table 1 of the folder: of `rows`, or of a measured one and one that was not measured."""
    measured = RowEvidence(
        row="DICE-8B",
        score=str(place / "scores" / "8B-dice.json"),
        measured=MeasuredModel(model="stand-in 8B-dice", params="2.9M"),
    )
    return make_table(
        TableConfig(
            number=1,
            title="T",
            reported=str(place / "reported.csv"),
            rows=rows or (measured, RowEvidence(row="other", reason="not here")),
            scale=scale,
            benchmark=benchmark,
            out=str(place / "table1.csv"),
        )
    )
