import csv
from collections import Counter

import pytest

from dice.cli import main
from dice.data.leakage import trace
from dice.data.leakage.index import leak_index
from dice.data.leakage.report import Counts, LeakReport, read_report
from dice.evaluation.score import LevelScore, Score, rate
from dice.jsonl import read_jsonl, write_jsonl
from dice.kernels.api import Problem

PROGRAM = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return {0}
def get_inputs():
    return [torch.randn(4, 6)]
def get_init_inputs():
    return []
"""
PROBLEMS = {
    "level1/1_A": "x.tanh()",
    "level1/2_B": "x.sinh()",
    "level2/1_C": "x.tanh() + 1",
    "level2/2_D": "x.tanh() * x",
}


def score(right):
    levels = [
        LevelScore(
            level=level,
            robust=robust,
            metrics={"exec": rate([[(name, name in right and robust) for name in PROBLEMS if name[5] == str(level)]])},
            statuses={},
        )
        for level in (1, 2)
        for robust in (True, False)
    ]
    return Score(backend="cpu", protocol="paper", seeds=1, problems=4, levels=levels, failures={}, gpus=[])


@pytest.fixture
def files(tmp_path):
    problems = [
        Problem(id=name, level=int(name[5]), number=1, name="P", code=PROGRAM.format(text), version="t")
        for name, text in PROBLEMS.items()
    ]
    write_jsonl(tmp_path / "problems.jsonl", problems)
    for name, operators in {"one": ["tanh"], "two": ["add", "mul"]}.items():
        counts = Counts(operators=Counter(operators))
        LeakReport(name, "dropped", [], 4, counts).write(tmp_path / name)
    (tmp_path / "score.json").write_text(score({"level1/1_A", "level2/1_C"}).model_dump_json())
    return tmp_path


def command(folder, *rows):
    given = ["--problems", str(folder / "problems.jsonl"), "--out", str(folder / "t.csv")]
    leaks = ["--leaks", str(folder / "one.leaks.json"), str(folder / "two.leaks.json")]
    return ["strata", *given, *leaks, "--set", f"rows=[{', '.join(rows)}]"]


def read(path):
    with path.open() as stream:
        return list(csv.DictReader(stream))


def test_exec_is_counted_by_stratum_and_level(files):
    row = f"{{row: DICE, score: {files / 'score.json'}}}"
    assert main(command(files, row)) == 0
    found = {(one["stratum"], one["level"]): (one["exec"], one["problems"]) for one in read(files / "t.csv")}
    assert found == {
        ("same operator seen", "all"): ("100.0", "1"),
        ("same operator seen", "1"): ("100.0", "1"),
        ("composition unseen", "all"): ("50.0", "2"),
        ("composition unseen", "2"): ("50.0", "2"),
        ("operator never trained", "all"): ("0.0", "1"),
        ("operator never trained", "1"): ("0.0", "1"),
    }
    half = next(one for one in read(files / "t.csv") if one["exec"] == "50.0")
    assert (half["exec_low"], half["exec_high"]) == ("9.5", "90.5")  # Wilson's interval of one of two
    problems = {one["problem"]: (one["stratum"], one["untrained"]) for one in read(files / "t.problems.csv")}
    assert problems["level1/2_B"] == ("operator never trained", "sinh")
    assert problems["level2/2_D"] == ("composition unseen", "")


def test_problems_that_a_report_knows_are_placed_as_if_they_were_traced_anew(files, monkeypatch):
    assert main(command(files)) == 0
    anew = (files / "t.problems.csv").read_bytes()
    index = leak_index(read_jsonl(files / "problems.jsonl", Problem))
    for name in ("one", "two"):
        report = read_report(files / f"{name}.leaks.json")
        report.applied = index.applied
        report.write(files / name)
    monkeypatch.delattr(trace, "trace")
    assert main(command(files)) == 0
    assert (files / "t.problems.csv").read_bytes() == anew


def test_a_score_on_other_problems_is_refused(files, capsys):
    write_jsonl(files / "problems.jsonl", [])
    assert main(command(files, f"{{row: DICE, score: {files / 'score.json'}}}")) == 2
    assert "was scored on 'level1/1_A'" in capsys.readouterr().err
