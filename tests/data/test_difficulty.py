import json

import pytest
from test_operators import module

from dice.cli import main
from dice.data.difficulty import FREE, Difficulty, difficulties, difficulty_of, level_of
from dice.data.pair import Pair
from dice.jsonl import read_jsonl, write_jsonl
from dice.manifest import sha256_file


@pytest.mark.parametrize(
    ("operators", "level"),
    [
        ([], 1),
        (["relu"], 1),
        (["view", "relu", "clone"], 1),
        (["relu", "sum"], 2),
        (["transpose", "relu"], 2),
        (["Linear", "GroupNorm", "mul", "add", "sigmoid"], 2),
        (["Linear", "ReLU", "Linear"], 2),
        (["Linear", "ReLU", "Linear", "ReLU", "Linear"], 3),
        (["LSTM"], 3),
        (["relu"] * 9, 2),
        (["relu"] * 10, 3),
    ],
)
def test_levels(operators, level):
    assert level_of(operators) == level


def test_an_operator_that_is_free_never_counts():
    assert level_of(["exp", *sorted(FREE)]) == 1


def test_labels_come_first_and_can_be_ignored():
    pair = Pair(id="a", pytorch_code=module("return x.exp().sum()"), cuda_code="", source="s", level=1)
    assert list(difficulties([pair])) == [Difficulty(id="a", level=1, by="label")]
    anew = next(difficulties([pair], use_labels=False))
    assert (anew.level, anew.by, anew.operators) == (2, "source", 2)


def test_a_label_of_zero_is_a_label():
    pair = Pair(id="a", pytorch_code=module("return x.exp()"), cuda_code="", source="s", origin={"label": 0})
    assert next(difficulties([pair])).level == 0


def test_code_without_a_model_has_no_level():
    row = difficulty_of("a", "import torch\n")
    assert (row.level, row.reason) == (None, "the code defines no class Model")


def test_the_stage_writes_levels_and_a_manifest(tmp_path):
    programs = enumerate(("return x.exp()", "return x.exp().sum()"), 1)
    data = [
        {"idx": n, "level": str(n), "pytorch_code": module(code), "cuda_code": "", "raw_answer": f"\\boxed{{{n}}}"}
        for n, code in programs
    ]
    (tmp_path / "rl.json").write_text(json.dumps(data))
    arguments = ["difficulty", "--data", str(tmp_path / "rl.json"), "--format", "end_to_end"]
    assert main([*arguments, "--out", str(tmp_path / "labels.jsonl")]) == 0
    assert [row.by for row in read_jsonl(tmp_path / "labels.jsonl", Difficulty)] == ["label", "label"]
    assert main([*arguments, "--ignore-labels", "--out", str(tmp_path / "rule.jsonl")]) == 0
    assert [row.level for row in read_jsonl(tmp_path / "rule.jsonl", Difficulty)] == [1, 2]
    manifest = json.loads((tmp_path / "rule.jsonl.manifest.json").read_text())
    assert manifest["stage"] == "difficulty"
    assert manifest["extra"] == {"levels": {"1": 1, "2": 1}, "by": {"source": 2}, "bad_rows": 0}


def test_a_folder_with_one_file_is_read_and_the_file_recorded(tmp_path):
    (tmp_path / "data").mkdir()
    pair = Pair(id="a", pytorch_code=module("return x.exp()"), cuda_code="", source="s")
    write_jsonl(tmp_path / "data" / "pairs.jsonl", [pair])
    assert main(["difficulty", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "out.jsonl")]) == 0
    manifest = json.loads((tmp_path / "out.jsonl.manifest.json").read_text())
    assert manifest["inputs"] == {str(path): sha256_file(path) for path in (tmp_path / "data").iterdir()}


def test_a_missing_file_is_one_sentence(tmp_path, capsys):
    assert main(["difficulty", "--data", str(tmp_path / "none.json"), "--out", str(tmp_path / "x.jsonl")]) == 2
    assert "no such file" in capsys.readouterr().err
