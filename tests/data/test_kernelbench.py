"""KernelBench's problems from every form in which they are found."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import datasets.config
import pyarrow
import pyarrow.parquet
import pytest
from waiting import PATIENCE_S

from dice.cli import main
from dice.data.kernelbench import (
    VERSIONS,
    content_digest,
    load_kernelbench,
    load_problem_folder,
    published_versions,
)
from dice.errors import DiceError
from dice.jsonl import read_jsonl
from dice.kernels.problems.problem import Problem
from dice.manifest import manifest_path, sha256_file

CODE = """import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return {body}

def get_inputs():
    raise RuntimeError("problem code must not run here")

def get_init_inputs():
    return []

raise RuntimeError("problem code must not run here")
"""
RELU, GELU, FUSED = (CODE.format(body=body) for body in ("torch.relu(x)", "nn.functional.gelu(x)", "torch.relu(x) + 1"))
EXPECTED = [("level1/19_ReLU", RELU), ("level1/26_GELU", GELU), ("level2/3_Add_ReLU", FUSED)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """What `datasets` makes of the files goes with the test."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def write_levels(root, level_name="level{}"):
    for level, name, code in [(1, "26_GELU_.py", GELU), (1, "19_ReLU.py", RELU), (2, "3_Add_ReLU.py", FUSED)]:
        folder = root / level_name.format(level)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(code)
    return root


def write_parquet(root, **changes):
    """The published form: one parquet file per split with columns code, level, name, problem_id."""
    rows = {
        1: [("19_ReLU", 19, RELU), ("26_GELU_", 26, GELU)],
        2: [("3_Add_ReLU", 3, FUSED.replace("\n", "\r\n"))],
    }
    (root / "data").mkdir(parents=True)
    for level, problems in rows.items():
        table = [
            {"code": code, "level": level, "name": name, "problem_id": number, **changes.get(name, {})}
            for name, number, code in problems
        ]
        pyarrow.parquet.write_table(
            pyarrow.Table.from_pylist(table), root / "data" / f"level_{level}-00000-of-00001.parquet"
        )
    return root


def ids_and_code(problems):
    return [(problem.id, problem.code) for problem in problems]


@pytest.mark.parametrize("inside", [".", "KernelBench", "src/KernelBench", "evaluation/KernelBench"])
@pytest.mark.parametrize("level_name", ["level{}", "level_{}"])
def test_every_layout_of_a_checkout_gives_the_same_problems(tmp_path, inside, level_name):
    write_levels(tmp_path / inside, level_name)
    (tmp_path / inside / "test.py").write_text("not a problem")
    problems = load_kernelbench(tmp_path, "kernelbench-v0.1", levels=(1, 2))
    assert ids_and_code(problems) == EXPECTED
    assert [(p.level, p.number, p.name, p.version) for p in problems][1] == (1, 26, "GELU", "kernelbench-v0.1")


def test_the_hub_form_is_read_by_the_datasets_library(tmp_path):
    root = write_parquet(tmp_path / "copy")
    problems = load_kernelbench(root, "kernelbench-v0.1", levels=(1, 2))
    assert ids_and_code(problems) == EXPECTED


def test_a_level_that_the_copy_lacks_is_an_error(tmp_path):
    with pytest.raises(DiceError, match="level_3"):
        load_kernelbench(write_parquet(tmp_path / "copy"), levels=(1, 3))
    with pytest.raises(DiceError, match="no folder for level 3"):
        load_kernelbench(write_levels(tmp_path / "checkout"), levels=(1, 3))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"problem_id": 20}, "does not start with the problem_id 20"),
        ({"level": 2}, "level 2 is not the split's"),
        ({"code": None}, "missing field 'code'"),
        ({"code": "class Model:"}, "does not parse"),
        ({"code": RELU.replace("get_inputs", "inputs")}, "does not define get_inputs"),
        ({"problem_id": 19, "name": "19_Other"}, "level 1 has a problem 19 already"),
    ],
)
def test_bad_hub_rows_are_refused_or_reported_with_their_row(tmp_path, change, reason):
    root = write_parquet(tmp_path / "copy", **{"26_GELU_": change})
    with pytest.raises(DiceError, match="row") as caught:
        load_kernelbench(root, levels=(1,))
    assert reason in str(caught.value)
    skipped = []
    problems = load_kernelbench(root, levels=(1,), skipped=skipped)
    assert [problem.id for problem in problems] == ["level1/19_ReLU"]
    assert reason in skipped[0].reason


def test_plain_folders_of_files(tmp_path):
    (tmp_path / "relu.py").write_text(RELU)
    (tmp_path / "7_gelu.py").write_text(GELU)
    (tmp_path / "level_2_problem_3.py").write_text(FUSED)
    (tmp_path / "__init__.py").write_text("")
    problems = load_problem_folder(tmp_path, version="mine")
    assert [(p.id, p.level, p.number) for p in problems] == [
        ("relu", 0, 0),
        ("7_gelu", 0, 7),
        ("level2/3", 2, 3),
    ]
    assert {problem.version for problem in problems} == {"mine"}


def test_one_level_folder_given_directly_keeps_its_level(tmp_path):
    write_levels(tmp_path)
    assert [p.id for p in load_problem_folder(tmp_path / "level1")] == ["level1/19_ReLU", "level1/26_GELU"]


def test_bad_files_of_a_folder_are_refused_or_reported(tmp_path):
    write_levels(tmp_path)
    (tmp_path / "level1" / "19_Again.py").write_text(RELU)
    (tmp_path / "level1" / "helpers.py").write_text(RELU)
    (tmp_path / "level2" / "4_Broken.py").write_bytes(b"class Model: '\xff'")
    with pytest.raises(DiceError, match=r"2 more bad problems"):
        load_problem_folder(tmp_path)
    skipped = []
    problems = load_problem_folder(tmp_path, skipped=skipped)
    assert [problem.id for problem in problems] == ["level1/19_Again", "level1/26_GELU", "level2/3_Add_ReLU"]
    assert sorted(os.path.basename(row.path) for row in skipped) == ["19_ReLU.py", "4_Broken.py", "helpers.py"]


def test_names_may_be_assigned_rather_than_defined(tmp_path):
    (tmp_path / "1_alias.py").write_text("from torch.nn import ReLU as Base\nModel = Base\nget_inputs = list\n")
    with pytest.raises(DiceError, match="does not define get_init_inputs"):
        load_problem_folder(tmp_path)
    (tmp_path / "1_alias.py").write_text("Model = object\nget_inputs = list\nget_init_inputs = list\n")
    assert load_problem_folder(tmp_path)[0].number == 1


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_an_absent_or_empty_source_says_what_to_place(tmp_path, make):
    make(tmp_path / "kb")
    with pytest.raises(DiceError, match=r"clone github\.com/ScalingIntelligence/KernelBench at 88df56b93"):
        load_kernelbench(tmp_path / "kb")
    with pytest.raises(DiceError, match=r"level1/19_ReLU\.py|no problem files"):
        load_problem_folder(tmp_path / "kb")


def test_unknown_versions_are_named():
    with pytest.raises(DiceError, match=r"kernelbench-v0, kernelbench-v0\.1"):
        load_kernelbench(version="kernelbench-v9")


def test_content_is_told_apart_from_the_published_versions(tmp_path):
    problems = load_problem_folder(write_levels(tmp_path))
    assert published_versions(problems) == {1: [], 2: []}
    one = [problem for problem in problems if problem.level == 1]
    assert content_digest(one) == content_digest(reversed(one))
    renamed = [Problem(**{**problem.model_dump(), "name": "other", "id": f"x{problem.number}"}) for problem in one]
    assert content_digest(renamed) == content_digest(one)
    changed = [one[0], Problem(**{**one[1].model_dump(), "code": one[1].code + "#"})]
    assert content_digest(changed) != content_digest(one)
    assert all(len(digest) == 64 for version in VERSIONS.values() for digest in version.content.values())


def dice(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "dice.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_the_stage_writes_problems_and_a_manifest(tmp_path):
    write_levels(tmp_path / "kb")
    (tmp_path / "kb" / "level1" / "5_Bad.py").write_text("x")
    out = tmp_path / "problems.jsonl"
    refused = dice("problems", "--source", tmp_path / "kb", "--levels", 1, 2, "--out", out)
    assert refused.returncode == 2
    assert "5_Bad.py:1" in refused.stderr
    assert not out.exists()
    done = dice("problems", "--source", tmp_path / "kb", "--levels", 1, 2, "--on-bad", "skip", "--out", out)
    assert done.returncode == 0, done.stderr
    assert ids_and_code(read_jsonl(out, Problem)) == EXPECTED
    assert "no published state of KernelBench, not kernelbench-v0.1" in done.stderr
    manifest = json.loads(manifest_path(out).read_text())
    assert manifest["extra"]["problems"] == {"level1": 2, "level2": 1}
    assert [row["id"] for row in manifest["extra"]["bad_rows"]] == ["5_Bad"]


def write_programs(path):
    rows = [("a", RELU), ("broken", "def ("), ("unfit", "x = 1\n"), ("b", GELU)]
    path.write_text(
        "".join(
            json.dumps({"id": name, "pytorch_code": code, "cuda_code": "", "level": 1}) + "\n" for name, code in rows
        )
    )
    return path


def test_bad_rows_of_a_file_of_programs_are_refused_or_skipped_like_bad_problems(tmp_path, capsys):
    out = tmp_path / "p.jsonl"
    command = [
        "problems",
        "--source",
        str(write_programs(tmp_path / "rows.jsonl")),
        "--version",
        "mine",
        "--levels",
        "1",
    ]
    assert main([*command, "--out", str(out)]) == 2
    assert "rows.jsonl:2: row 'broken'" in capsys.readouterr().err
    assert main([*command, "--out", str(out), "--on-bad", "skip"]) == 0
    assert [problem.name for problem in read_jsonl(out, Problem)] == ["a", "b"]
    manifest = json.loads(manifest_path(out).read_text())
    assert [row["id"] for row in manifest["extra"]["bad_rows"]] == ["broken", "unfit"]
    assert manifest["inputs"] == {command[2]: sha256_file(command[2])}


@pytest.mark.parametrize("make", [write_programs, lambda path: write_levels(path) / "level1"])
def test_no_problem_of_the_levels_is_an_error(tmp_path, capsys, make):
    source, out = make(tmp_path / "source"), tmp_path / "p.jsonl"
    command = ["problems", "--source", str(source), "--version", "mine", "--levels", "3", "--on-bad", "skip"]
    assert main([*command, "--out", str(out)]) == 2
    assert "no problem of level 3" in capsys.readouterr().err
    assert not out.exists()


def test_an_unreachable_hub_is_one_sentence(tmp_path):
    done = dice("problems", "--out", tmp_path / "p.jsonl", HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path / "hf"))
    assert done.returncode == 2
    assert "the Hugging Face hub cannot be read" in done.stderr
    assert "clone github.com/ScalingIntelligence/KernelBench at 88df56b93" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_pinned_revision_is_resolved_in_the_hubs_history():
    """The real hub client against a local server that answers with the history's published form."""
    full = "708b9f6" + "0" * 33

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self):
            commits = [
                {"id": sha, "title": "Upload dataset", "message": "", "date": "2025-07-21T00:00:00.000Z", "authors": []}
                for sha in (full, "16b08a8" + "1" * 33)
            ]
            known = self.path.startswith("/api/datasets/ScalingIntelligence/KernelBench/commits/main")
            body = json.dumps(commits if known else {"error": "not found"}).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    program = (
        "from dice.data.kernelbench import resolve_hub_revision as resolve\n"
        "from dice.errors import DiceError\n"
        "print(resolve('kernelbench-v0.1'), resolve('kernelbench-v0.1', 'main'))\n"
        "for revision in ('abcdef0', None):\n"
        "    try: resolve('kernelbench-v0.2-dev', revision)\n"
        "    except DiceError as error: print(error)\n"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env={**os.environ, "HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}", "HF_HUB_OFFLINE": "0"},
            check=False,
            timeout=PATIENCE_S,
        )
    finally:
        server.shutdown()
        server.server_close()
    lines = done.stdout.splitlines()
    assert lines[0] == f"{full} main", done.stderr
    assert "0 commits start with abcdef0" in lines[1]
    assert "never uploaded to the hub" in lines[2]
