"""Tables, check, LaTeX, figures, explorer and audit on small hand-made results."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

from dice.errors import DiceError
from dice.evaluation.score import ScoreConfig, score, wilson
from dice.evidence.audit import audit
from dice.evidence.chain import chain
from dice.jsonl import write_jsonl
from dice.kernels.problems.problem import Problem
from dice.kernels.records.verdict import Host, Verdict
from dice.manifest import Stopwatch, write_manifest
from dice.report.check import CheckConfig, answers_behind, check, difference_interval, judge
from dice.report.explorer import ExplorerConfig, explore
from dice.report.figures import FigureConfig, make_figure
from dice.report.latex import escape, table_tex
from dice.report.tables import (
    CostEvidence,
    MeasuredModel,
    RowEvidence,
    TableConfig,
    label,
    make_table,
    print_table,
    read_csv,
    write_csv,
)
from dice.report.tex import TexConfig, write_tex
from dice.study.publish import publish

HOST = Host(gpu=None, driver=None, cuda=None, torch="2", cpu="test", isolation=[])
BASE = Path(__file__).resolve().parents[2] / "experiments" / "base" / "tiny"
REPORTED = "row,model,params,l1_exec,l1_fast1\nDICE-8B,DICE,8B,47.0,15.0\nother,other,8B,1.0,0.0\n"


@pytest.fixture
def place(tmp_path) -> Path:
    """Two problems, one of them solved, scored on the CPU back end; beside it the paper's table of two rows."""
    names = ["level1/1_A", "level1/2_B"]
    problems = [
        Problem(id=name, level=1, number=k, name=name[-1], code="", version="t") for k, name in enumerate(names)
    ]
    write_jsonl(tmp_path / "problems.jsonl", problems)
    verdicts = [
        Verdict(
            problem_id=name, sample=0, code_sha256="0", status=status, functional_status=status, stage="done",
            message="<b>", protocol="paper", backend="cpu", trials=5, host=HOST,
        )
        for name, status in zip(names, ("correct", "wrong_value"), strict=True)
    ]  # fmt: skip
    folder = tmp_path / "verdicts" / "8B-dice"
    write_jsonl(folder / "seed0.jsonl", verdicts)
    write_manifest(folder / "seed0.jsonl", stage="gather", spec={}, watch=Stopwatch())
    rows = [{"problem_id": n, "sample": 0, "text": "a", "code": "x < y", "order": [1, 2, 1]} for n in names]
    write_jsonl(tmp_path / "generations" / "8B-dice" / "seed0.jsonl", rows)
    score(
        ScoreConfig(
            verdicts=(str(folder / "seed0.jsonl"),),
            problems=str(tmp_path / "problems.jsonl"),
            out=str(tmp_path / "scores" / "8B-dice.json"),
        )
    )
    (tmp_path / "reported.csv").write_text(REPORTED)
    return tmp_path


def table(place: Path, benchmark: str = "kernelbench-v0.1") -> list[dict[str, str]]:
    return make_table(
        TableConfig(
            number=1,
            title="T",
            reported=str(place / "reported.csv"),
            rows=(
                RowEvidence(
                    row="DICE-8B",
                    score=str(place / "scores" / "8B-dice.json"),
                    measured=MeasuredModel(model="stand-in 8B-dice", params="2.9M"),
                ),
                RowEvidence(row="other", reason="not here"),
            ),
            scale="tiny",
            benchmark=benchmark,
            out=str(place / "table1.csv"),
        )
    )


def test_measured_stands_beside_reported_and_never_mixes(place):
    measured, other = table(place)
    assert (measured["l1_exec"], measured["l1_exec_reported"]) == ("50.0", "47.0")
    assert measured["l1_exec_difference"] == "+3.0"
    assert float(measured["l1_exec_low"]) < 50 < float(measured["l1_exec_high"])
    assert (measured["status"], measured["n"], measured["seeds"]) == ("measured", "2", "1")
    assert (other["l1_exec"], other["l1_exec_reported"], other["status"]) == ("", "1.0", "reported")
    assert other["reason"] == "not here"
    assert read_csv(place / "table1.csv") == [measured, other]


def test_a_row_that_the_paper_lacks_stands_between_the_others(place):
    rows = make_table(
        TableConfig(
            number=1,
            title="T",
            reported=str(place / "reported.csv"),
            rows=(
                RowEvidence(row="DICE-8B", reason="gone", withdrawn=True),
                RowEvidence(row="newer", score=str(place / "scores" / "8B-dice.json"), added=True),
                RowEvidence(row="other"),
            ),
            scale="released",
            benchmark="kernelbench-v0.1",
            out=str(place / "table1.csv"),
        )
    )
    assert [row["status"] for row in rows] == ["withdrawn", "measured", "reported"]
    assert (rows[0]["l1_exec"], rows[0]["l1_exec_reported"], rows[0]["reason"]) == ("", "47.0", "gone")
    assert (rows[1]["l1_exec"], rows[1]["l1_exec_reported"], rows[1]["l1_exec_difference"]) == ("50.0", "", "")
    assert [judge(row, "l1_exec") for row in rows] == ["not measured", "not comparable", "not measured"]
    check(CheckConfig(tables=(str(place / "table1.csv"),), out=str(place / "check.csv")))
    with pytest.raises(DiceError, match="no row has 'newer' as row"):
        make_table(
            TableConfig(
                number=1,
                title="T",
                reported=str(place / "reported.csv"),
                rows=(RowEvidence(row="DICE-8B"), RowEvidence(row="other"), RowEvidence(row="newer")),
                scale="released",
                benchmark="kernelbench-v0.1",
                out=str(place / "table1.csv"),
            )
        )


def test_a_row_counted_without_the_check_stands_beside_the_same_reported_number(place):
    folder = place / "verdicts" / "8B-dice"
    rows = [json.loads(line) for line in (folder / "seed0.jsonl").read_text().splitlines()]
    deceptive = [row | {"status": "deceptive", "functional_status": "correct"} for row in rows]
    write_jsonl(folder / "seed0.jsonl", deceptive)
    write_manifest(folder / "seed0.jsonl", stage="gather", spec={}, watch=Stopwatch())
    scored = str(place / "scores" / "8B-dice.json")
    score(
        ScoreConfig(verdicts=(str(folder / "seed0.jsonl"),), problems=str(place / "problems.jsonl"), out=scored),
    )
    checked, unchecked, other = make_table(
        TableConfig(
            number=1,
            title="T",
            reported=str(place / "reported.csv"),
            rows=(
                RowEvidence(row="DICE-8B", score=scored),
                RowEvidence(row="DICE-8B-unchecked", score=scored, robust=False, paper="DICE-8B"),
                RowEvidence(row="other", reason="not here"),
            ),
            scale="tiny",
            benchmark="kernelbench-v0.1",
            out=str(place / "table1.csv"),
        )
    )
    assert (checked["l1_exec"], unchecked["l1_exec"]) == ("0.0", "100.0")
    assert checked["l1_exec_reported"] == unchecked["l1_exec_reported"] == "47.0"
    assert other["l1_exec_reported"] == "1.0"
    for row, value in (("DICE-8B", "0.0"), ("DICE-8B-unchecked", "100.0")):
        lines, good = audit(str(place / "table1.csv"), f"{row}:l1_exec")
        assert good, lines
        assert f"counted again from the verdicts: {value} (the same)" in lines


def test_what_was_measured_on_another_benchmark_has_no_number_of_the_paper_beside_it(place, capsys):
    """A row says which model it is, how large, and on what; a row that was not measured keeps the paper's numbers."""
    measured, other = table(place, "mini-2-cpu")
    assert (measured["row"], measured["l1_exec"]) == ("DICE-8B", "50.0")
    assert {value for name, value in measured.items() if name.endswith(("_reported", "_difference"))} == {""}
    said = [measured[f"measured_{name}"] for name in ("model", "params", "on")]
    assert said == ["stand-in 8B-dice", "2.9M", "mini-2-cpu"]
    assert other["l1_exec_reported"] == "1.0"
    assert {value for name, value in other.items() if name.startswith("measured_")} == {""}
    name = "DICE-8B: stand-in 8B-dice, 2.9M parameters, on mini-2-cpu"
    assert [label(row) for row in (measured, other)] == [name, "other"]
    print_table([measured, other])
    shown = capsys.readouterr().out
    assert name in shown
    assert "[" not in shown.splitlines()[1]
    assert f"  50.0 {measured['l1_exec_low']}-{measured['l1_exec_high']}  " in shown.splitlines()[1]
    assert "1.0-" not in shown.splitlines()[2], "what was not measured has no interval"
    assert "[1.0]" in shown.splitlines()[2]
    text = (place / "table1.tex").read_text()
    assert name in text
    assert r"\reported{}" not in text
    site = place / "site"
    explore(ExplorerConfig(results=str(place), problems=str(place / "problems.jsonl"), out=str(site)))
    index = (site / "index.html").read_text()
    assert name in index
    assert "[1.0]" in index
    assert "50.0 [" not in " ".join(index.split())


def test_other_versions_of_kernelbench_are_other_benchmarks(place):
    assert table(place, "kernelbench-v0")[0]["l1_exec_reported"] == ""
    assert table(place)[0]["l1_exec_reported"] == "47.0"


def test_hours_of_a_stand_in_have_no_hours_of_the_paper_beside_them(place):
    (place / "reported9.csv").write_text("stage,a100_gpu_hours\nsft,22.4\nrl,960\n")
    manifest = place / "model.manifest.json"
    manifest.write_text(json.dumps({"gpus": [{"name": "G"}], "wall_s": 3600.0, "cpu": "c"}))
    stages = (
        CostEvidence(
            stage="sft", manifest=str(manifest), measured=MeasuredModel(model="stand-in 8B-sft", params="26M")
        ),
        CostEvidence(stage="rl"),
    )
    config = {"number": 9, "title": "T", "kind": "cost", "reported": str(place / "reported9.csv"), "stages": stages}
    config |= {"scale": "nano", "out": str(place / "table9.csv")}
    sft, rl = make_table(TableConfig(**config, benchmark="mini-2-gpu"))
    assert (sft["gpu_hours"], sft["gpu_hours_reported"], sft["gpu_hours_difference"]) == ("1.0000", "", "")
    assert (label(sft), rl["gpu_hours_reported"]) == ("sft: stand-in 8B-sft, 26M parameters", "960")
    sft, _ = make_table(TableConfig(**config, benchmark="kernelbench-v0.1"))
    assert (sft["gpu_hours_reported"], sft["gpu_hours_difference"]) == ("22.4", "-21.4000")


def test_speed_on_the_cpu_is_not_available_and_not_zero(place):
    measured, _ = table(place)
    assert measured["l1_fast1"] == measured["l1_fast1_low"] == "n/a"
    assert measured["l1_fast1_difference"] == ""


def test_the_papers_rows_are_joined_by_name(place):
    """Their order means nothing, and a number that changes there changes in the row of that name alone."""
    first = table(place)
    head, dice, other = REPORTED.splitlines()
    (place / "reported.csv").write_text("\n".join((head, other, dice)))
    assert table(place) == first
    (place / "reported.csv").write_text(REPORTED.replace("other,8B,1.0", "other,8B,9.0"))
    changed = table(place)
    assert [row["l1_exec_reported"] for row in (*first, *changed)] == ["47.0", "1.0", "47.0", "9.0"]
    assert changed[0] == first[0]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("other,other,8B,1.0,0.0\n", "", "no row has 'other' as row"),
        ("other,other", "othre,other", "no row has 'other' as row"),
        (
            "other,other,8B,1.0,0.0\n",
            "other,other,8B,1.0,0.0\nthird,other,8B,1.0,0.0\n",
            "leaves out the paper's row 'third'",
        ),
        ("other,other", "DICE-8B,other", "two rows have 'DICE-8B' as row"),
        ("row,model", "name,model", "two rows have '' as row"),
    ],
)
def test_rows_that_are_not_those_of_the_paper_are_refused(place, old, new, sentence):
    (place / "reported.csv").write_text(REPORTED.replace(old, new))
    with pytest.raises(DiceError, match=sentence):
        table(place)


def test_the_size_of_a_data_set_is_that_of_the_one_that_was_read(place):
    """Three pairs are not 6,303; of what is not measured here only the paper's number is known."""
    columns = "row,dataset_size,max_new_tokens,l1_exec"
    (place / "reported.csv").write_text(f"{columns}\nCuKe,6303,4096,34.0\nother,8920,4096,24.0\n")
    write_jsonl(place / "pairs.jsonl", [{"id": k} for k in range(3)])
    here = {"sizes": {"dataset_size": (str(place / "pairs.jsonl"),)}, "settings": {"max_new_tokens": 640}}
    config = TableConfig(
        number=5, title="T", reported=str(place / "reported.csv"), numbers=("dataset_size", "max_new_tokens"),
        rows=(
            RowEvidence(row="CuKe", score=str(place / "scores" / "8B-dice.json"), **here),
            RowEvidence(row="other", **here),
        ),
        scale="tiny", benchmark="kernelbench-v0.1", out=str(place / "table5.csv"),
    )  # fmt: skip
    measured, other = make_table(config)
    assert (measured["dataset_size"], measured["dataset_size_reported"]) == ("3", "6303")
    assert (measured["max_new_tokens"], measured["max_new_tokens_reported"]) == ("640", "4096")
    assert (other["dataset_size"], other["dataset_size_reported"]) == ("", "8920")
    (place / "pairs.jsonl").write_text('[{"id": 1},\n {"id": 2}]')  # as the authors publish theirs
    assert make_table(config)[0]["dataset_size"] == "2"
    write_jsonl(place / "pairs.jsonl", [{"id": k} for k in range(3)])
    make_table(config)
    assert str(place / "pairs.jsonl") in json.loads((place / "table5.csv.manifest.json").read_text())["inputs"]
    assert r"\measured{3} \reported{6303}" in (place / "table5.tex").read_text()


def test_cost_on_a_cpu_is_no_gpu_hours(place):
    (place / "reported9.csv").write_text("stage,a100_gpu_hours\nsft,22.4\nrl,960\n")
    manifest = place / "model.manifest.json"
    manifest.write_text(json.dumps({"gpus": [], "wall_s": 3600.0, "cpu": "c"}))
    sft, rl = make_table(
        TableConfig(
            number=9, title="T", kind="cost", reported=str(place / "reported9.csv"), scale="tiny", benchmark="mini-2-cpu",
            stages=(CostEvidence(stage="sft", manifest=str(manifest)), CostEvidence(stage="rl")),
            out=str(place / "table9.csv"),
        )
    )  # fmt: skip
    assert (sft["gpu_hours"], sft["cpu_hours"], sft["gpu_hours_difference"]) == ("n/a", "1.0000", "")
    assert rl["status"] == "reported"


def test_the_histogram_is_that_of_the_curation(place):
    (place / "reported12.csv").write_text("speedup_range,percent\n<1.0,14.0\n>3.0,5.6\n")
    bins = [{"range": "<1.0", "n": 3, "percent_of_rows": 75.0}, {"range": ">3.0", "n": 1, "percent_of_rows": 25.0}]
    (place / "report.json").write_text(json.dumps({"speedups": {"pairs": bins}}))
    common = {"number": 12, "title": "T", "kind": "histogram", "reported": str(place / "reported12.csv")}
    common |= {"scale": "nano", "benchmark": "mini-2-gpu", "out": str(place / "table12.csv"), "reason": "not timed"}
    slow, fast = make_table(TableConfig(**common, speedups=str(place / "report.json")))
    assert (slow["percent"], fast["percent"], fast["n"], fast["status"]) == ("75.0", "25.0", "4", "measured")
    (place / "reported12.csv").write_text("speedup_range,percent\n>3.0,5.6\n<1.0,14.0\n")  # in another order
    turned = make_table(TableConfig(**common, speedups=str(place / "report.json")))
    assert [(row["row"], row["percent"], row["percent_reported"]) for row in turned] == [
        (">3.0", "25.0", "5.6"),
        ("<1.0", "75.0", "14.0"),
    ]
    (place / "reported12.csv").write_text("speedup_range,percent\n<1.0,14.0\n>2.0,5.6\n")
    with pytest.raises(DiceError, match=r"no row has '>3\.0' as speedup_range"):
        make_table(TableConfig(**common, speedups=str(place / "report.json")))
    (place / "reported12.csv").write_text("speedup_range,percent\n<1.0,14.0\n>3.0,5.6\n")
    slow, _ = make_table(TableConfig(**common))
    assert (slow["percent"], slow["status"], slow["reason"]) == ("", "reported", "not timed")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "cannot be told"),
        ({"l1_exec_reported": "61.0"}, "cannot be told"),  # outside the interval, but the paper's number has one too
        ({"l1_exec_reported": "70.0"}, "differs"),
        ({"l1_exec_reported": "29.0"}, "differs"),
        ({"l1_exec_low": "49.0", "l1_exec_high": "51.0"}, "differs"),
        ({"l1_exec_low": "49.0", "l1_exec_high": "51.0", "l1_exec_reported": "49.0"}, "agrees"),
        ({"scale": "tiny"}, "not comparable"),
        ({"l1_exec": "n/a"}, "not comparable"),
        ({"status": "reported", "l1_exec": ""}, "not measured"),
    ],
)
def test_check_says_what_agrees(change, word):
    row = {"l1_exec": "50.0", "l1_exec_low": "40.0", "l1_exec_high": "60.0", "l1_exec_reported": "47.0"}
    assert judge(row | {"status": "measured", "scale": "paper"} | change, "l1_exec") == word


@pytest.mark.parametrize(("hits", "n"), [(0, 40), (7, 100), (50, 100), (100, 100), (4.5, 12.25)])
def test_the_number_of_answers_is_read_off_the_interval(hits, n):
    assert answers_behind(*wilson(hits, n)) == pytest.approx(n)


def test_two_equal_models_seldom_differ():
    draw = random.Random(1)
    differ = 0
    for _ in range(500):
        mine, theirs = (sum(draw.random() < 0.3 for _ in range(100)) / 100 for _ in range(2))
        least, most = difference_interval(mine, *wilson(100 * mine, 100), theirs)
        differ += least > 0 or most < 0
    assert differ / 500 < 0.08


def test_check_writes_every_cell(place):
    table(place)
    cells = check(CheckConfig(tables=(str(place / "table1.csv"),), out=str(place / "check.csv")))
    assert [cell["result"] for cell in cells] == ["not comparable", "not comparable", "not measured", "not measured"]
    assert "| table1 | 0 | 0 | 0 | 2 | 2 |" in (place / "check.md").read_text()
    assert {cell["power_5_points"] for cell in cells} == {""}
    compared = [row | {"scale": "paper"} for row in read_csv(place / "table1.csv")]
    write_csv(place / "table1.csv", compared)
    told = check(CheckConfig(tables=(str(place / "table1.csv"),), out=str(place / "check.csv")))
    assert [(cell["result"], bool(cell["power_5_points"])) for cell in told][:2] == [
        ("cannot be told", True),
        ("not comparable", False),
    ]
    assert "A model 5 points above the paper's number would be said to differ in" in (place / "check.md").read_text()


def test_latex_escapes_and_marks():
    assert escape("a_b & 5 % {x}") == r"a\_b \& 5 \% \{x\}"
    row = {"row": "r", "l1_exec": "", "l1_exec_reported": "3.0", "status": "reported", "scale": "tiny"}
    text = table_tex(1, "T", [row])
    assert r"\reported{3.0}" in text
    assert r"\measured" not in text


def test_numbers_of_the_prose_come_from_the_tables(place):
    table(place)
    config = TexConfig(tables=(str(place / "table1.csv"),), figures=(), out=str(place / "numbers.tex"))
    assert write_tex(config) == 5
    text = (place / "numbers.tex").read_text()
    assert r"dice@table1@DICE-8B@l1_exec\endcsname{50.0}" in text
    assert r"dice@table1@other@l1_exec\endcsname{1.0\reportedmark{}}" in text


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("overview", {"tables": ()}),
        ("decoding_order", {"generations": "generations/8B-dice/seed0.jsonl"}),
        ("failures", {"scores": {"8B-dice": "scores/8B-dice.json"}}),
        ("pipeline", {"files": {"problems": "problems.jsonl"}}),
    ],
)
def test_figures_are_csv_pdf_and_png(place, monkeypatch, kind, extra):
    monkeypatch.chdir(place)
    make_figure(FigureConfig(number=1, title="F", kind=kind, scale="tiny", out="figure1.csv", **extra))
    assert (place / "figure1.pdf").read_bytes().startswith(b"%PDF")
    assert (place / "figure1.png").read_bytes().startswith(b"\x89PNG")
    assert list(csv.DictReader((place / "figure1.csv").open()))


def test_the_gain_of_fine_tuning_is_a_difference_of_rows(place):
    text = "model,params,sft," + ",".join(f"l{k}_exec,l{k}_exec_reported" for k in (1, 2, 3))
    (place / "t7.csv").write_text(f"{text}\nS,8B,no,1,2,1,2,1,2\nS,8B,yes,4,3,4,3,4,3\n")
    config = FigureConfig(
        number=5, title="F", kind="sft_gain", scale="tiny", tables=(str(place / "t7.csv"),), out=str(place / "f.csv")
    )
    rows = make_figure(config)
    assert {row["status"]: row["y"] for row in rows} == {"measured": "3.00", "reported": "1.00"}


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


def edited(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


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
        edited(place / file, **change)
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
    edited(model / "model.manifest.json", wall_s=1.0)
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
