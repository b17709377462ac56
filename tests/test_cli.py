"""What the command line makes of bad input: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dice.cli import STAGES, main

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"\xff\xfe{}\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "good.jsonl").write_text(
        '{"problem_id": "p", "problem_code": "x", "sample": 0, "code": null}\n', encoding="utf-8"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("mini --out file/x", "name a path that can be used"),
        ("gather --shards empty.jsonl --out folder", "Is a directory"),
        ("gather --shards file --out out.jsonl", "file:1: not valid JSON"),
        ("score --config file", "file: not valid YAML"),
        ("table --show file", "file: not UTF-8 text"),
        ("lease --gpus 0 -- nosuchcommand", "nosuchcommand: no such command"),
        ("verify --candidates good.jsonl --out out.jsonl --trials 0", "correctness_trials"),
        ("verify --candidates good.jsonl --out out.jsonl --jobs -2", "machine.jobs"),
        ('score --config {"verdicts":[],"problems":"p","out":"o"}', "verdicts"),
    ],
)
def test_bad_input_is_one_sentence(place, capsys, command, sentence):
    assert main(command.split()) != 0
    told = capsys.readouterr().err
    assert sentence in told
    assert len(told.strip().splitlines()) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_explains_its_options(stage, capsys):
    with pytest.raises(SystemExit) as ended:
        main([stage, "--help"])
    assert ended.value.code == 0
    assert f"usage: dice {stage}" in capsys.readouterr().out


def test_an_interrupt_while_a_stage_is_imported_is_one_sentence(monkeypatch, capsys):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("dice.cli.importlib.import_module", interrupted)
    assert main(["mini"]) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize(("argv", "collects"), [(None, [False, True]), (["mini"], [True, True])])
def test_the_collector_rests_during_the_imports_of_a_process_of_our_own(monkeypatch, argv, collects):
    found = []

    class Stage:
        def add_arguments(self, parser):
            found.append(gc.isenabled())

        def run(self, args):
            found.append(gc.isenabled())
            return 0

    monkeypatch.setattr("sys.argv", ["dice", "mini"])
    monkeypatch.setattr("dice.cli.importlib.import_module", lambda name: Stage())
    assert main(argv) == 0
    assert found == collects


BLOCK = """
import importlib.abc, sys
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}.split():
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
"""
EXTRA_PACKAGES = (
    "datasets datasketch deepspeed fastapi jsonschema matplotlib safetensors snakemake tensorboard tokenizers "
    "transformers uvicorn"
)


def without_extras(script):
    code = BLOCK.format(names=EXTRA_PACKAGES) + script
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_verifier_needs_no_extra():
    script = """
import importlib, pkgutil, dice.kernels
for module in pkgutil.walk_packages(dice.kernels.__path__, "dice.kernels."):
    importlib.import_module(module.name)
from dice.cli import main
main(["verify", "--help"])
"""
    done = without_extras(script)
    assert done.returncode == 0, done.stderr


def test_a_stage_without_its_extra_says_which(tmp_path):
    pair = {"id": "p", "pytorch_code": "x = 1", "cuda_code": "y = 1", "source": "test"}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
    words = ["tokenizer", "--pairs", f"{tmp_path}/pairs.jsonl", "--out", f"{tmp_path}/out"]
    done = without_extras(f"from dice.cli import main\nsys.exit(main({words}))")
    assert done.stderr == "dice tokenizer: needs the package 'tokenizers': pip install 'dice-repro[data]'.\n"
    assert done.returncode == 2


def test_a_fault_of_our_own_imports_is_not_called_a_missing_package(monkeypatch):
    monkeypatch.setitem(STAGES, "mini", ("dice.no_such_module", "x"))
    with pytest.raises(ModuleNotFoundError):
        main(["mini"])


def test_the_packages_of_the_extras_are_not_among_the_verifiers():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = {re.split(r"[<>=]", name)[0] for name in project["dependencies"]}
    extras = {re.split(r"[<>=]", name)[0] for group in project["optional-dependencies"].values() for name in group}
    assert set(EXTRA_PACKAGES.split()) <= extras
    assert not own & set(EXTRA_PACKAGES.split())
