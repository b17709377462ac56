"""The mini benchmark's loader, its two sizes, its command and its README."""

from __future__ import annotations

import ast
import shutil
from collections import Counter
from pathlib import Path

import pytest
import torch
import yaml

from dice.cli import main
from dice.errors import DiceError
from dice.kernels.problems.mini import (
    GPU_SIZES,
    load_mini,
    markdown_table,
    mini_root,
    module_constants,
    read_gpu_sizes,
    replace_constants,
)
from dice.manifest import manifest_path

PROBLEM = '''import torch
import torch.nn as nn
class Model(nn.Module):
    """Größe."""
    def forward(self, x):
        rows = 1
        return x * rows
naïve = 2; rows = 3  # rows = 3
scale = -0.5
columns = rows
def get_inputs():
    return [torch.randn(rows, columns)]
def get_init_inputs():
    return []
'''


@pytest.fixture
def small_root(tmp_path: Path) -> Path:
    """A benchmark with one problem a level."""
    root = tmp_path / "mini"
    for level in (1, 2, 3):
        (root / f"level{level}").mkdir(parents=True)
        (root / f"level{level}" / "1_Scale.py").write_text(PROBLEM, encoding="utf-8")
    sizes = {f"level{level}/1_Scale": {"rows": 7} for level in (1, 2, 3)}
    (root / GPU_SIZES).write_text(yaml.safe_dump(sizes))
    return root


def test_counts_ids_and_versions() -> None:
    problems = load_mini("cpu")
    counts = Counter(problem.level for problem in problems)
    assert counts[1] >= 24
    assert counts[2] >= 24
    assert counts[3] >= 12
    assert [problem.id for problem in load_mini("gpu")] == [problem.id for problem in problems]
    assert len({problem.id for problem in problems}) == len(problems)
    for level in (1, 2, 3):
        assert [p.number for p in problems if p.level == level] == list(range(1, counts[level] + 1))
    assert {problem.version for problem in problems} == {"mini-2-cpu"}
    assert {problem.version for problem in load_mini("gpu")} == {"mini-2-gpu"}


def test_cpu_code_is_the_file_and_gpu_code_differs_in_constants_only() -> None:
    root = mini_root()
    sizes = read_gpu_sizes(root / GPU_SIZES)
    for small, large in zip(load_mini("cpu"), load_mini("gpu"), strict=True):
        assert small.code == (root / f"{small.id}.py").read_text(encoding="utf-8")
        assert large.code != small.code
        constants = module_constants(small.code, small.id)
        back = {name: ast.literal_eval(constants[name]) for name in sizes[small.id]}
        assert replace_constants(large.code, back, large.id) == small.code


def test_every_gpu_problem_has_inputs_below_two_gib_and_above_a_mebibyte() -> None:
    for problem in load_mini("gpu"):
        names: dict = {}
        exec(problem.code, names)
        with torch.device("meta"):
            inputs, model = names["get_inputs"](), names["Model"](*names["get_init_inputs"]())
        tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
        n_bytes = sum(value.nbytes for value in (*tensors, *model.parameters(), *model.buffers()))
        assert 2**20 < n_bytes < 2**30, problem.id  # outputs and intermediates of one problem are of the same order


def test_replaced_constants_keep_every_other_byte() -> None:
    code = replace_constants(PROBLEM, {"rows": 1234, "scale": 2.0}, "here")
    expected = PROBLEM.replace("; rows = 3  #", "; rows = 1234  #").replace("scale = -0.5", "scale = 2.0")
    assert code == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lines": 3}, "no module-level constant 'lines'"),
        ({"columns": 3}, "no module-level constant 'columns'"),  # an expression, not a number
        ({"rows": 3.0}, "another type"),
        ({"scale": 3}, "another type"),
    ],
)
def test_constants_that_cannot_be_replaced_are_named(values: dict[str, int | float], message: str) -> None:
    with pytest.raises(DiceError, match=message):
        replace_constants(PROBLEM, values, "here")


def test_a_constant_that_is_assigned_twice_is_refused() -> None:
    with pytest.raises(DiceError, match="'rows' is assigned twice"):
        replace_constants(PROBLEM + "rows = 4\n", {"rows": 5}, "here")


def test_another_root(small_root: Path) -> None:
    problems = load_mini("gpu", small_root)
    assert [problem.id for problem in problems] == ["level1/1_Scale", "level2/1_Scale", "level3/1_Scale"]
    assert "rows = 7  #" in problems[0].code


def test_inconsistent_benchmarks_are_refused(small_root: Path) -> None:
    sizes = small_root / GPU_SIZES
    good = sizes.read_text()
    sizes.write_text(good + "level1/2_Absent: {rows: 3}\n")
    with pytest.raises(DiceError, match="'level1/2_Absent' is not a problem"):
        load_mini("cpu", small_root)
    sizes.write_text(good.replace("level2/1_Scale", "level2/1_Other"))
    with pytest.raises(DiceError, match="no entry for level2/1_Scale"):
        load_mini("cpu", small_root)
    sizes.write_text("level1/1_Scale: [3]\n")
    with pytest.raises(DiceError, match="mapping from names of constants to numbers"):
        load_mini("cpu", small_root)
    sizes.write_text("{")
    with pytest.raises(DiceError, match="not valid YAML"):
        load_mini("cpu", small_root)
    sizes.write_text(good)
    (small_root / "level1" / "1_Again.py").write_text(PROBLEM, encoding="utf-8")
    with pytest.raises(DiceError, match="level 1 has a problem 1 already"):
        load_mini("cpu", small_root)
    (small_root / "level1" / "1_Again.py").rename(small_root / "level1" / "again.py")
    with pytest.raises(DiceError, match="does not start with the problem's number"):
        load_mini("cpu", small_root)


def test_absent_benchmark_is_one_clear_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mini", "--root", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert str(tmp_path) in message
    assert "--root" in message
    assert not (tmp_path / "out").exists()


def test_the_working_directory_serves_an_installed_package(
    small_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(small_root, checkout / "experiments" / "benchmarks" / "mini")
    (checkout / "deep").mkdir()
    monkeypatch.setattr(
        "dice.kernels.problems.mini.__file__", str(tmp_path / "site" / "dice" / "kernels" / "problems" / "mini.py")
    )
    monkeypatch.chdir(checkout / "deep")
    assert mini_root() == checkout / "experiments" / "benchmarks" / "mini"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DiceError, match="the mini benchmark is not there"):
        mini_root()


def test_the_command_writes_a_folder_in_kernelbench_form(tmp_path: Path) -> None:
    out = tmp_path / "problems"
    assert main(["mini", "--size", "gpu", "--out", str(out)]) == 0
    problems = load_mini("gpu")
    assert {str(path.relative_to(out)) for path in out.rglob("*.py")} == {f"{problem.id}.py" for problem in problems}
    assert all((out / f"{problem.id}.py").read_text(encoding="utf-8") == problem.code for problem in problems)
    assert manifest_path(out).is_file()
    assert main(["mini", "--size", "cpu", "--out", str(out)]) == 0  # again, at the other size
    assert "batch_size = 37" in (out / "level1" / "1_LeakyReLU.py").read_text()


def test_the_command_does_not_mix_with_other_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "19_ReLU.py").write_text("")
    assert main(["mini", "--out", str(tmp_path)]) == 2
    assert "19_ReLU.py" in capsys.readouterr().err
    assert not (tmp_path / "level2").exists()


def test_readme_has_the_table() -> None:
    readme = (mini_root() / "README.md").read_text(encoding="utf-8")
    assert readme.endswith("\n## Problems\n\n" + markdown_table()), "write the output of markdown_table() to README.md"
    assert f"{len(load_mini('cpu'))} problems of our own" in readme
