"""Tables on small hand-made results."""

from __future__ import annotations

import json

import pytest
from scored import REPORTED, table
from verdicts import verdict

from dice.cli import main
from dice.errors import DiceError
from dice.evaluation.score import ScoreConfig, score, wilson
from dice.evidence.audit import audit
from dice.jsonl import write_jsonl
from dice.kernels.problems.problem import Problem
from dice.manifest import Stopwatch, write_manifest
from dice.report.check import CheckConfig, check, judge
from dice.report.explorer import ExplorerConfig, explore
from dice.report.rows import label, read_csv
from dice.report.tables import CostEvidence, MeasuredModel, RowEvidence, TableConfig, make_table, print_table


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
    newer = RowEvidence(row="newer", score=str(place / "scores" / "8B-dice.json"), added=True)
    gone = RowEvidence(row="DICE-8B", reason="gone", withdrawn=True)
    rows = table(place, rows=(gone, newer, RowEvidence(row="other")), scale="released")
    assert [row["status"] for row in rows] == ["withdrawn", "measured", "reported"]
    assert (rows[0]["l1_exec"], rows[0]["l1_exec_reported"], rows[0]["reason"]) == ("", "47.0", "gone")
    assert (rows[1]["l1_exec"], rows[1]["l1_exec_reported"], rows[1]["l1_exec_difference"]) == ("50.0", "", "")
    assert [judge(row, "l1_exec") for row in rows] == ["not measured", "not comparable", "not measured"]
    check(CheckConfig(tables=(str(place / "table1.csv"),), out=str(place / "check.csv")))
    with pytest.raises(DiceError, match="no row has 'newer' as row"):
        table(place, rows=tuple(RowEvidence(row=name) for name in ("DICE-8B", "other", "newer")))


def test_a_row_counted_without_the_check_stands_beside_the_same_reported_number(place):
    folder = place / "verdicts" / "8B-dice"
    verdicts = [json.loads(line) for line in (folder / "seed0.jsonl").read_text().splitlines()]
    deceptive = [row | {"status": "deceptive", "functional_status": "correct"} for row in verdicts]
    write_jsonl(folder / "seed0.jsonl", deceptive)
    write_manifest(folder / "seed0.jsonl", stage="gather", spec={}, watch=Stopwatch())
    scored = str(place / "scores" / "8B-dice.json")
    score(
        ScoreConfig(verdicts=(str(folder / "seed0.jsonl"),), problems=str(place / "problems.jsonl"), out=scored),
    )
    again = RowEvidence(row="DICE-8B-unchecked", score=scored, robust=False, paper="DICE-8B")
    rows = (RowEvidence(row="DICE-8B", score=scored), again, RowEvidence(row="other", reason="not here"))
    checked, unchecked, other = table(place, rows=rows)
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


def test_a_training_that_was_resumed_costs_all_its_steps(place):
    """The manifest is the last process's, which may have found nothing left to do."""
    (place / "reported9.csv").write_text("stage,a100_gpu_hours\nsft,22.4\n")
    manifest, history = place / "model.manifest.json", place / "history.jsonl"
    manifest.write_text(json.dumps({"gpus": [{"name": "G"}, {"name": "H"}], "wall_s": 3.0, "cpu": "c"}))
    write_jsonl(history, [{"step": step, "seconds": 1800.0} for step in (1, 2, 3)])
    stage = CostEvidence(stage="sft", manifest=str(manifest), history=str(history))
    config = TableConfig(
        number=9, title="T", kind="cost", reported=str(place / "reported9.csv"), scale="paper", stages=(stage,),
        benchmark="kernelbench-v0.1", out=str(place / "table9.csv"),
    )  # fmt: skip
    assert make_table(config)[0]["gpu_hours"] == "3.0000"
    assert str(history) in json.loads((place / "table9.csv.manifest.json").read_text())["inputs"]


def test_the_histogram_is_that_of_the_curation(place):
    (place / "reported12.csv").write_text("speedup_range,percent\n<1.0,14.0\n>3.0,5.6\n")
    bins = [{"range": "<1.0", "n": 3, "percent_of_rows": 75.0}, {"range": ">3.0", "n": 1, "percent_of_rows": 25.0}]
    (place / "report.json").write_text(json.dumps({"speedups": {"pairs": bins}}))
    common = {"number": 12, "title": "T", "kind": "histogram", "reported": str(place / "reported12.csv")}
    common |= {"scale": "nano", "benchmark": "mini-2-gpu", "out": str(place / "table12.csv"), "reason": "not timed"}
    slow, fast = make_table(TableConfig(**common, speedups=str(place / "report.json")))
    assert (slow["percent"], fast["percent"], fast["n"], fast["status"]) == ("75.0", "25.0", "4", "measured")
    assert slow["manifest"] == str(place / "report.json")
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
    assert (slow["n"], slow["manifest"]) == ("", "")


def test_the_command_prints_a_table_that_was_written(place, capsys):
    table(place)
    assert main(["table", "--show", str(place / "table1.csv")]) == 0
    printed = capsys.readouterr().out
    assert all(row["row"] in printed for row in read_csv(place / "table1.csv"))


def test_a_table_that_is_no_text_is_an_error_of_one_sentence(place):
    (place / "table1.csv").write_bytes(b"row,\xff\n")
    with pytest.raises(DiceError, match=r"table1\.csv: not UTF-8 text\.$"):
        read_csv(place / "table1.csv")


def two_seeds(place) -> str:
    """Two levels under two seeds. With the check the seeds' means over levels are 25 and 75 %, without it 50 and 75 %."""
    names = ["level1/1_A", "level1/2_B", "level2/1_C"]
    problems = [Problem(id=n, level=int(n[5]), number=k, name=n[-1], code="", version="t") for k, n in enumerate(names)]
    write_jsonl(place / "two.jsonl", problems)
    for seed, statuses in enumerate((("correct", "deceptive", "wrong_value"), ("correct", "wrong_value", "correct"))):
        rows = [
            verdict(name, status, functional_status="correct" if status == "deceptive" else status)
            for name, status in zip(names, statuses, strict=True)
        ]
        write_jsonl(place / f"seed{seed}.jsonl", rows)
    out = str(place / "two.json")
    files = tuple(str(place / f"seed{seed}.jsonl") for seed in (0, 1))
    score(ScoreConfig(verdicts=files, problems=str(place / "two.jsonl"), out=out))
    return out


def test_seeds_are_spread_as_their_means_over_levels(place):
    """Standard deviation of two numbers: their distance over the root of 2."""
    scored = two_seeds(place)
    (place / "reported.csv").write_text("row,l1_exec,l2_exec,l3_exec\nDICE-8B,47.0,46.0,45.0\n")
    rows = (
        RowEvidence(row="DICE-8B", score=scored, reason="not said of what was measured"),
        RowEvidence(row="unchecked", score=scored, robust=False, paper="DICE-8B"),
    )
    checked, unchecked = table(place, rows=rows)
    assert (checked["seed_spread"], unchecked["seed_spread"]) == (f"{50 / 2**0.5:.2f}", f"{25 / 2**0.5:.2f}")
    assert {row["n"] for row in (checked, unchecked)} == {"4/2"}
    assert {row["seeds"] for row in (checked, unchecked)} == {"2"}
    assert {row["reason"] for row in (checked, unchecked)} == {""}
    assert (checked["backend"], checked["protocol"], checked["scale"]) == ("cpu", "paper", "tiny")
    assert checked["manifest"] == f"{scored}.manifest.json"
    assert [(row["l1_exec"], row["l2_exec"], row["l3_exec"]) for row in (checked, unchecked)] == [
        ("50.0", "50.0", "n/a"),
        ("75.0", "50.0", "n/a"),
    ]
    assert (checked["l3_exec_low"], checked["l3_exec_difference"], checked["l3_exec_reported"]) == ("n/a", "", "45.0")
    assert table(place, rows=rows[:1])[0]["seed_spread"] == checked["seed_spread"]


def test_a_seed_alone_has_no_spread_and_the_papers_table_may_have_one_row(place):
    (place / "reported.csv").write_text("row,l1_exec\nDICE-8B,47.0\n")
    scored = str(place / "scores" / "8B-dice.json")
    row, newer = table(
        place, rows=tuple(RowEvidence(row=n, score=scored, added=n == "newer") for n in ("DICE-8B", "newer"))
    )
    assert (newer["l1_exec"], newer["l1_exec_reported"]) == ("50.0", "")
    assert (row["seed_spread"], row["seeds"], row["l1_exec"]) == ("", "1", "50.0")


def test_the_command_prints_aligned_columns(place, capsys):
    low, high = (100 * end for end in wilson(1, 2))
    table(place)
    assert main(["table", "--show", str(place / "table1.csv")]) == 0
    name = "DICE-8B: stand-in 8B-dice, 2.9M parameters, on kernelbench-v0.1"
    ours = f"50.0 {low:.1f}-{high:.1f} [47.0]"
    assert capsys.readouterr().out.splitlines() == [
        f"{'row':<{len(name)}}  {'l1_exec':<{len(ours)}}  l1_fast1    status",
        f"{name}  {ours}  n/a [15.0]  measured",
        f"{'other':<{len(name)}}  {'[1.0]':<{len(ours)}}  [0.0]       reported",
        "",
        "measured, 95 % interval, [the paper's number, on KernelBench]; n/a: not measured.",
    ]


def test_the_command_writes_a_table(place, capsys):
    spec = {"number": 1, "title": "T", "reported": str(place / "reported.csv"), "scale": "tiny"}
    spec |= {"benchmark": "kernelbench-v0.1", "out": str(place / "made.csv")}
    scored = str(place / "scores" / "8B-dice.json")
    spec["rows"] = [{"row": "DICE-8B", "score": scored}, {"row": "other"}]
    (place / "spec.json").write_text(json.dumps(spec))
    assert main(["table", "--config", str(place / "spec.json")]) == 0
    assert f"table 1: 2 rows, 1 measured, written to {place / 'made.csv'}" in capsys.readouterr().out
    inputs = json.loads((place / "made.csv.manifest.json").read_text())["inputs"]
    assert inputs.keys() == {spec["reported"], scored}


def test_hours_count_every_gpu(place):
    (place / "reported9.csv").write_text("stage,a100_gpu_hours\nsft,22.4\nrl,960\n")
    manifest = place / "model.manifest.json"
    manifest.write_text(json.dumps({"gpus": [{"name": "G"}, {"name": "H"}], "wall_s": 5400.0, "cpu": "c"}))
    stages = (CostEvidence(stage="sft", manifest=str(manifest)), CostEvidence(stage="rl"))
    config = TableConfig(
        number=9, title="T", kind="cost", reported=str(place / "reported9.csv"), scale="paper", stages=stages,
        benchmark="kernelbench-v0.1", out=str(place / "table9.csv"),
    )  # fmt: skip
    sft, rl = make_table(config)
    assert (sft["gpu_hours"], sft["cpu_hours"], sft["gpu_hours_difference"]) == ("3.0000", "", "-19.4000")
    assert (sft["device"], sft["status"], sft["seeds"], sft["reason"], sft["manifest"]) == (
        "G", "measured", "1", "", str(manifest)
    )  # fmt: skip
    assert (rl["gpu_hours"], rl["device"], rl["seeds"], rl["reason"]) == ("", "", "", "not part of the scale paper")
    assert (rl["gpu_hours_reported"], rl["manifest"]) == ("960", "")
    inputs = json.loads((place / "table9.csv.manifest.json").read_text())["inputs"]
    assert inputs.keys() == {str(place / "reported9.csv"), str(manifest)}


def test_the_histogram_of_the_published_programs_comes_before_that_of_the_own_ones(place):
    (place / "reported12.csv").write_text("speedup_range,percent\n<1.0,14.0\n")
    bins = {
        name: [{"range": "<1.0", "n": n, "percent_of_rows": 20.0 * n}] for name, n in (("pairs", 1), ("cudallm", 2))
    }
    (place / "report.json").write_text(json.dumps({"speedups": bins}))
    (row,) = make_table(
        TableConfig(
            number=12, title="T", kind="histogram", reported=str(place / "reported12.csv"), scale="nano", reason="untimed",
            benchmark="mini-2-gpu", out=str(place / "table12.csv"), speedups=str(place / "report.json"),
        )
    )  # fmt: skip
    assert (row["percent"], row["percent_reported"], row["percent_difference"], row["n"]) == (
        "40.0",
        "14.0",
        "+26.0",
        "2",
    )
    assert (row["status"], row["reason"]) == ("measured", "")
    assert str(place / "report.json") in json.loads((place / "table12.csv.manifest.json").read_text())["inputs"]
