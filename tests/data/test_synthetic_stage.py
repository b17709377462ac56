"""`dice synth`: the file, its manifest, and what it refuses to write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dice.cli import main
from dice.data.leakage.index import leak_index
from dice.data.pair import read_pairs
from dice.data.synthetic import NANO, pairs
from dice.kernels.problems.folder import load_problem_folder

PROBLEM = '''import torch
import torch.nn as nn


class Model(nn.Module):
    """{what}"""

    def __init__(self):
        super(Model, self).__init__()

    def forward(self, A):
        return {code}


def get_inputs():
    return [torch.rand(64, 64)]


def get_init_inputs():
    return []
'''


def test_the_same_command_writes_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        out = tmp_path / f"{name}.jsonl"
        assert main(["synth", "--n", "40", "--seed", "3", "--scale", "tiny", "--out", str(out), "--quiet"]) == 0
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    manifest = json.loads((tmp_path / "one.jsonl.manifest.json").read_text())
    assert manifest["seeds"] == [3]
    assert manifest["spec"]["generator"]["scale"] == "tiny"
    assert sum(manifest["extra"]["kinds"].values()) == 40
    rows, bad = read_pairs(tmp_path / "one.jsonl")
    assert len(rows) == 40
    assert not bad


def test_a_part_of_the_stream_can_be_written(tmp_path: Path) -> None:
    common = ["synth", "--seed", "3", "--scale", "tiny", "--quiet"]
    assert main([*common, "--n", "30", "--out", str(tmp_path / "all.jsonl")]) == 0
    assert main([*common, "--n", "10", "--start", "20", "--out", str(tmp_path / "end.jsonl")]) == 0
    assert (tmp_path / "all.jsonl").read_text().splitlines()[20:] == (tmp_path / "end.jsonl").read_text().splitlines()


def test_problems_of_a_benchmark_folder_are_not_written(tmp_path: Path) -> None:
    folder = tmp_path / "KernelBench" / "level1"
    folder.mkdir(parents=True)
    for number, code in enumerate(("torch.relu(A)", "torch.sum(A, dim=1)", "torch.tanh(A)", "torch.sigmoid(A)"), 1):
        (folder / f"{number}_Problem.py").write_text(PROBLEM.format(what=code, code=code))
    index = leak_index(load_problem_folder(tmp_path / "KernelBench"))
    chosen = ["--set", "generator.families=[relu, sum, tanh, sigmoid]", "--set", "generator.level_weights=[1, 0, 0]"]
    common = ["synth", "--n", "60", "--seed", "1", "--quiet", *chosen]
    out = tmp_path / "pairs.jsonl"
    assert main([*common, "--benchmark", str(tmp_path / "KernelBench"), "--out", str(out)]) == 0
    rows, _ = read_pairs(out)
    assert not [row.id for row in rows if index.check(row.pytorch_code)]
    assert json.loads((tmp_path / "pairs.jsonl.manifest.json").read_text())["extra"]["redrawn_for_leakage"] > 0
    assert main([*common, "--benchmark", "mini", "--out", str(out)]) == 0
    rows, _ = read_pairs(out)
    assert [row.id for row in rows if index.check(row.pytorch_code)], "without the folder they would have been written"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n", "0"], "must be positive"),
        (["--flawed-share", "2"], "not a share"),
        (["--set", "generator.families=[sofmax]"], "no operator is called 'sofmax'"),
        (["--set", "generator.scales=nano"], "generator.scales"),
        (["--benchmark", "/nowhere"], "no such folder"),
    ],
)
def test_bad_requests_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    out = tmp_path / "pairs.jsonl"
    assert main(["synth", "--out", str(out), "--quiet", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said
    assert not out.exists()


def test_a_missing_output_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synth", "--quiet"]) == 2
    assert "out" in capsys.readouterr().err


def test_rows_are_those_of_the_library(tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    assert main(["synth", "--n", "20", "--seed", "9", "--quiet", "--out", str(out), "--set", "benchmarks=[]"]) == 0
    rows, _ = read_pairs(out)
    assert rows == list(pairs(NANO, 9, 20))
