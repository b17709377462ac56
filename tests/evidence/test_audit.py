"""Audits of cells and models."""

from __future__ import annotations

from pathlib import Path

import pytest
from scored import table
from small_study import edited_json
from verdicts import verdict

from dice.errors import DiceError
from dice.evidence.answers import judged_answers
from dice.evidence.audit import audit
from dice.evidence.chain import chain
from dice.jsonl import write_jsonl
from dice.kernels.problems.problem import Problem
from dice.manifest import Stopwatch, sha256_text, write_manifest
from dice.report.check import CheckConfig, check
from dice.study.publish import publish

BASE = Path(__file__).resolve().parents[2] / "experiments" / "base" / "tiny"


def test_audit_counts_again_and_finds_a_changed_file(place):
    table(place)
    lines, good = audit(str(place / "table1.csv"), "DICE-8B:l1_exec")
    assert good
    assert any("the same" in line for line in lines)
    verdicts = place / "verdicts" / "8B-dice" / "seed0.jsonl"
    verdicts.write_text(verdicts.read_text().replace('"wrong_value"', '"correct"'))
    lines, good = audit(str(place / "table1.csv"), "DICE-8B:l1_exec")
    assert not good
    assert any("NOT THE SAME" in line for line in lines)
    assert any(line.strip().startswith("changed") for line in lines)


@pytest.mark.parametrize(
    ("file", "change", "state"),
    [
        ("verdicts/8B-dice/seed0.jsonl.manifest.json", None, "unverified"),
        ("verdicts/8B-dice/seed0.jsonl.manifest.json", "{", "changed"),
        ("verdicts/8B-dice/seed0.jsonl.manifest.json", "{}", "changed"),
        ("verdicts/8B-dice/seed0.jsonl.manifest.json", {"output_sha256": "0"}, "changed"),
        ("verdicts/8B-dice/seed0.jsonl.manifest.json", {"spec": {"seed": 7}}, "changed"),
        ("verdicts/8B-dice/seed0.jsonl", "", "changed"),
        ("scores/8B-dice.json", None, "missing"),
        ("problems.jsonl", None, "missing"),
    ],
)
def test_audit_says_what_it_cannot_verify(place, file, change, state):
    table(place)
    lines, good = audit(str(place / "table1.csv"), "DICE-8B:l1_exec")
    assert any("level1/1_A, seed 0, sample 0, code 0" in line for line in lines)
    if change is None:
        (place / file).unlink()
    elif isinstance(change, dict):
        edited_json(place / file, **change)
    else:
        (place / file).write_text(change)
    lines, good = audit(str(place / "table1.csv"), "DICE-8B:l1_exec")
    assert good is (state == "unverified")
    assert f"  {state}: {place / file.removesuffix('.manifest.json')}" in lines


def test_audit_goes_on_without_the_verdicts(place):
    table(place)
    (place / "verdicts" / "8B-dice" / "seed0.jsonl").unlink()
    lines, good = audit(str(place / "table1.csv"), "DICE-8B:l1_exec")
    assert not good
    assert any(line.startswith("cannot be counted again:") for line in lines)
    assert any("problems.jsonl" in line for line in lines)


def test_audit_finds_the_history_of_a_published_model(place):
    model = place / "models" / "8B-dice"
    model.mkdir(parents=True)
    (model / "history.jsonl").write_text("{}\n")
    gone = place / "state" / "history.jsonl"
    gone.parent.mkdir()
    gone.write_text("{}\n")
    write_manifest(model / "model", stage="rl", spec={}, watch=Stopwatch(), inputs=[gone])
    gone.unlink()
    states = {link.path: link.state for link in chain(str(model), place)}
    assert states[str(model / "history.jsonl")] == "verified"
    (model / "history.jsonl").write_text("[]\n")
    assert "changed" in {link.state for link in chain(str(model), place)}


def test_audit_of_a_given_checkpoint_finds_no_fault_and_names_what_did_not_come_along(tmp_path):
    """The base that the tiny scale begins with: its files are verified, what it was trained on is not here."""
    model = tmp_path / "models" / "8B-base"
    publish([BASE], model)
    folder, *data = chain(str(model), tmp_path)
    assert folder.state == "verified"
    assert {link.state for link in data} == {"elsewhere"}
    edited_json(model / "model.manifest.json", wall_s=1.0)
    assert next(chain(str(model), tmp_path)).state == "changed"


def test_audit_misses_what_a_stage_of_these_results_read(tmp_path):
    (tmp_path / "pairs.jsonl").write_text("{}\n")
    out = tmp_path / "models" / "model"
    spec = {"out": str(out)}
    write_manifest(out, stage="sft", spec=spec, watch=Stopwatch(), inputs=[tmp_path / "pairs.jsonl"])
    (tmp_path / "pairs.jsonl").unlink()
    assert [link.state for link in chain(str(out), tmp_path)] == ["missing", "missing"]


@pytest.mark.parametrize("text", ["", "row,status,scale\n", "a,b\n1,2\n"])
def test_what_is_no_table_is_refused(place, text):
    (place / "other.csv").write_text(text)
    with pytest.raises(DiceError, match="not a table by"):
        audit(str(place / "other.csv"), "a:b")
    with pytest.raises(DiceError, match="not a table by"):
        check(CheckConfig(tables=(str(place / "other.csv"),), out=str(place / "check.csv")))


def test_audit_of_a_reported_cell_has_no_chain(place):
    table(place)
    lines, good = audit(str(place / "table1.csv"), "other:l1_exec")
    assert good
    assert "only the paper's number" in lines[1]


def test_audit_refuses_a_cell_that_is_not_there(place):
    table(place)
    with pytest.raises(DiceError, match="DICE-8B, other"):
        audit(str(place / "table1.csv"), "DICE:l1_exec")


def test_published_solutions_name_a_problem_by_its_number(tmp_path, monkeypatch):
    """As CUDA-L1's: a verdict has the whole id, and is about the text of that row."""
    monkeypatch.chdir(tmp_path)
    problem = Problem(id="level1/19_ReLU", level=1, number=19, name="ReLU", code="", version="t")
    write_jsonl("answers.jsonl", [{"level_id": 1, "task_id": 19, "custom_code": "x = 1"}])
    write_jsonl("verdicts.jsonl", [verdict(problem.id, "correct", code_sha256=sha256_text("x = 1"))])
    write_manifest("verdicts.jsonl", stage="verify", spec={"candidates": "answers.jsonl"}, watch=Stopwatch())
    (answer,) = judged_answers("verdicts.jsonl", tmp_path, [problem], problem.id)
    assert answer.is_of_this_code
