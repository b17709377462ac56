"""Several benchmarks: who is asked what, what is kept out of training, and the table of all of them."""

from __future__ import annotations

import json

import pytest
from plans import plan
from stage_specs import specs

from dice.cli import main
from dice.config import parse_config
from dice.data.kernelbench import ProblemsConfig, write_problems
from dice.data.pair import Pair
from dice.errors import DiceError
from dice.evaluation.generate import GenerateConfig
from dice.evaluation.score import LevelScore, PassRate, Score, rate
from dice.jsonl import read_jsonl, write_jsonl
from dice.kernels.api import Problem
from dice.report.exams import ExamsConfig, exams
from dice.report.rows import read_csv
from dice.study import costs
from dice.study.config import check_schema
from dice.study.exams import examined, exams_inputs, exams_path, exams_spec
from dice.study.strata import leaks_spec

EXAM = {"source": "two_operators", "version": "composites-9002", "levels": [2]}
ALONE = {"composites": EXAM | {"further": []}}
DRAWN = {"sampling": {"top_k": 0, "temperature": 1.0}}
SAMPLED = EXAM | {"generate": {"samples": 8, "block_diffusion": DRAWN, "autoregressive": DRAWN}}
PROBLEMS = "results/data/exams/composites/problems.jsonl"


def test_the_models_of_the_tables_are_asked_each_exam():
    one = plan("tiny", exams={"composites": SAMPLED | {"further": []}}, seeds=(0, 1))
    check_schema(one.study, "docs/schema/study.schema.json")
    assert "8B-dice@composites" in examined(one)
    assert {unit.partition("@")[0] for unit in examined(one)} == set(one.units) & set(one.models)
    assert examined(plan("released")) == []
    spec = one.generate_spec("8B-dice@composites", 1)
    assert spec["model"] == one.generate_spec("8B-dice", 1)["model"] == "results/models/8B-dice"
    assert spec["prompts"] == "results/data/exams/composites/prompts.jsonl"
    assert spec["out"] == "results/generations/8B-dice@composites/seed1.jsonl"
    config = parse_config(GenerateConfig, spec, "test")
    assert config.samples == 8
    assert parse_config(GenerateConfig, one.generate_spec("8B-dice", 1), "test").samples == 1
    assert parse_config(GenerateConfig, one.generate_spec("8B-qwen3@composites", 1), "test").samples == 8
    assert not one.is_greedy("8B-qwen3@composites")
    # greedy answers to the suite are made once, sampled ones to the exam for every seed
    assert (one.seeds("8B-dice"), one.seeds("8B-dice@composites")) == ([0], [0, 1])
    assert one.verify_spec("8B-dice@composites", 0)["problems"] == PROBLEMS
    score = one.score_spec("8B-dice@composites")
    assert (score["problems"], score["out"]) == (PROBLEMS, "results/scores/8B-dice@composites.json")
    assert score["verdicts"] == [f"results/verdicts/8B-dice@composites/seed{seed}.jsonl" for seed in (0, 1)]
    assert one.problems_spec("composites") == EXAM | {
        "source": "results/data/two_operators.jsonl",
        "levels": (2,),
        "out": PROBLEMS,
    }


def test_an_exam_of_two_data_sets_asks_the_programs_of_both():
    one = plan("tiny")
    drawn = ["results/data/two_operators.jsonl", "results/data/three_operators.jsonl"]
    spec = one.problems_spec("composites")
    assert (spec["source"], *spec["further"]) == (*drawn,)
    assert one.problem_files("composites") == drawn
    assert costs.problems(one, "composites") == 128
    for name in ("two_operators", "three_operators", "corpus"):
        assert one.synth_spec(name)["benchmarks"] == ["mini"]
    assert one.synth_spec("cuke")["benchmarks"] == ["mini", PROBLEMS]


def test_no_training_set_may_have_an_exam_problem():
    one = plan("tiny", exams=ALONE)
    free = {"two_operators", "corpus"}
    for name in set(one.datasets("synth")) - free:
        assert one.synth_spec(name)["benchmarks"] == ["mini", PROBLEMS]
    # the exam's problems come from the one, and the embedded bases have read the other
    assert all(one.synth_spec(name)["benchmarks"] == ["mini"] for name in free)
    nano = plan("nano", exams={"composites": EXAM | {"source": "somewhere"}})
    kept_out = "results/nano/data/exams/composites/problems.jsonl"
    assert nano.curate_spec("cuke")["benchmarks"] == [nano.problems, kept_out]
    paper = plan("paper", exams={"mini": {"source": "mini", "version": "mini-2-gpu"}})
    exam = f"{paper.study.results}/data/exams/mini/problems.jsonl"
    assert leaks_spec(paper, paper.datasets("file")[0])["benchmarks"] == [paper.problems, exam]
    assert paper.mini_version == "mini-2-gpu"
    # without exams nothing is told otherwise than before
    assert all(not plan("released").kept_out(name) for name in plan("released").study.datasets)
    assert [spec for _, spec in specs(plan("released"))] == [spec for _, spec in specs(plan("released", exams={}))]


@pytest.mark.parametrize(
    ("exams", "text"),
    [
        ({"a": EXAM | {"source": "cuke", "version": "a-1"}}, "trained on the data set 'cuke'"),
        ({"a": EXAM | {"source": "corpus", "version": "a-1"}}, "trained on the data set 'corpus'"),
        ({"composites": EXAM, "b": EXAM}, "two benchmarks have the version 'composites-9002'"),
        ({"a": {"source": "mini", "version": "mini-2-gpu"}}, "two sizes"),
        ({"a": {"source": "mini", "version": "mini-9"}}, r"exams\.a\.version: mini has no 'mini-9'"),
        ({"A b": EXAM}, "exams"),
        ({"a": EXAM | {"further": ["cuke"], "version": "a-1"}}, "trained on the data set 'cuke'"),
        ({"a": EXAM | {"further": ["nothing"], "version": "a-1"}}, "two_operators, nothing are not all data sets"),
        ({"a": {"source": "mini", "version": "mini-2-cpu", "further": ["two_operators"]}}, "are not all data sets"),
    ],
)
def test_exams_that_cannot_be_are_refused(exams, text):
    with pytest.raises(DiceError, match=text):
        plan("tiny", exams=exams)


def test_a_file_of_programs_is_a_benchmark(tmp_path):
    code = "class Model:\n    pass\ndef get_inputs():\n    pass\ndef get_init_inputs():\n    pass\n"
    pairs = [
        Pair(id="made/9001-0", pytorch_code=code, cuda_code="x", source="test", level=1),
        Pair(id="made/9001-1", pytorch_code=code, cuda_code="x", source="test", level=2),
        Pair(id="made/9001-2", pytorch_code=code + "# 2\n", cuda_code="x", source="test", level=2),
    ]
    write_jsonl(tmp_path / "ours.jsonl", pairs)
    published = [{"idx": f"{n}", "level": n, "pytorch_code": code, "cuda_code": "", "raw_answer": ""} for n in (1, 2)]
    write_jsonl(tmp_path / "theirs.jsonl", published)

    def problems(name: str, levels: tuple[int, ...], *further: str) -> list[Problem]:
        out = str(tmp_path / "problems.jsonl")
        more = tuple(str(tmp_path / name) for name in further)
        source = str(tmp_path / name)
        write_problems(ProblemsConfig(source=source, further=more, version="made-1", levels=levels, out=out))
        return list(read_jsonl(out, Problem))

    found = problems("ours.jsonl", (2,))
    assert [(p.id, p.version) for p in found] == [
        ("level2/2_made_9001_1", "made-1"),
        ("level2/3_made_9001_2", "made-1"),
    ]
    assert found[1].code == code + "# 2\n"
    assert [p.id for p in problems("theirs.jsonl", (1, 2, 3))] == ["level1/1_1", "level2/2_2"]
    both = problems("ours.jsonl", (2,), "theirs.jsonl")
    assert [p.id for p in both] == ["level2/2_made_9001_1", "level2/3_made_9001_2", "level2/5_2"]
    manifest = json.loads((tmp_path / "problems.jsonl.manifest.json").read_text())
    assert {*manifest["inputs"]} == {str(tmp_path / "ours.jsonl"), str(tmp_path / "theirs.jsonl")}
    (tmp_path / "folder").mkdir()
    with pytest.raises(DiceError, match=r"ours\.jsonl is read beside a file of pairs, and .*folder is none"):
        problems("folder", (2,), "ours.jsonl")
    theirs, more = str(tmp_path / "theirs.jsonl"), (str(tmp_path / "ours.jsonl"),)
    with pytest.raises(DiceError, match=r"ours\.jsonl is read beside a file of pairs, and kernelbench-v0\.1 is none"):
        write_problems(ProblemsConfig(source=theirs, further=more, version="kernelbench-v0.1", out="x"))


def test_the_table_has_a_row_for_each_model_benchmark_and_level(tmp_path, capsys):
    one = plan("tiny", exams=ALONE, results=str(tmp_path))
    spec = exams_spec(one)
    assert exams_inputs(one) == [row["score"] for row in spec["rows"]]
    answers = rate([[("p1", True), ("p1", False), ("p2", False), ("p2", False)]])
    passed = {
        k: PassRate(value=value, independent=2, low=0.1, high=0.5) for k, value in ((1, 0.25), (8, 0.375), (64, 0.4375))
    }
    for path in exams_inputs(one):
        levels = [
            LevelScore(level=2, robust=robust, metrics={"exec": answers}, pass_at=passed, statuses={})
            for robust in (True, False)
        ]
        kept = Score(
            backend="cpu", protocol="paper", seeds=1, problems=2, levels=levels, failures={}, gpus=[]
        ).model_dump_json()
        (tmp_path / "scores").mkdir(exist_ok=True)
        with open(path, "w") as stream:
            stream.write(kept)
    exams(parse_config(ExamsConfig, spec, "test"))
    rows = read_csv(tmp_path / "exams.csv")
    units = [unit for unit in one.units if unit in set(one.models)]
    assert [(row["unit"], row["measured_on"]) for row in rows] == [
        (unit, benchmark) for unit in units for benchmark in ("mini-2-cpu", "composites-9002")
    ]
    for row in rows:
        assert (row["exec"], row["n"], row["problems"], row["level"]) == ("25.0", "4", "2", "2")
        assert (row["pass_at_1"], row["pass_at_1_low"], row["pass_at_1_high"]) == ("25.0", "10.0", "50.0")
        assert (row["pass_at_8"], row["pass_at_64"], row["pass_at_64_high"]) == ("37.5", "43.8", "50.0")
        assert row["measured_model"].startswith("stand-in 8B-")
    capsys.readouterr()
    assert main(["exams", "--show", str(tmp_path / "exams.csv")]) == 0
    assert (
        capsys.readouterr().out.splitlines()[1]
        == f"{units[0]} on composites-9002, level 2: Exec 25.0 (4.6 to 69.9) of 4, pass@8 37.5, pass@64 43.8"
    )


def test_a_table_has_the_exams_of_its_own_models():
    one = plan("tiny", exams=ALONE)
    spec = exams_spec(one, 1)
    units = [row["unit"] for row in spec["rows"]]
    assert units == [unit for unit in one.table_units(1) for _ in ("suite", "composites")]
    assert {"8B-base", "8B-sft", "8B-dice", "8B-qwen3"} < set(units) < {row["unit"] for row in exams_spec(one)["rows"]}
    assert {row["benchmark"] for row in spec["rows"]} == {"mini-2-cpu", "composites-9002"}
    assert spec["out"] == exams_path(one, 1) == "results/table1.exams.csv"
    assert exams_inputs(one, 1) == [row["score"] for row in spec["rows"]]
