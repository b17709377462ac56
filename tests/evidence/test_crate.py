"""The RO-Crate of a recorded study: what its metadata say, and that a validator accepts it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from small_study import write_study

from dice.cli import main
from dice.errors import DiceError
from dice.evidence.crate import write_crate
from dice.evidence.record import record

ROOT = Path(__file__).resolve().parents[2]
rocrate = pytest.importorskip("rocrate", reason="needs rocrate, of the extra workflow")


@pytest.fixture(scope="module")
def crate(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("crate")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        write_study()
        record("results", Path("recorded/tiny"), with_data=True)
    assert (
        main(
            [
                "crate",
                str(place / "recorded/tiny"),
                "--out",
                str(place / "crate"),
                "--workflow",
                str(ROOT / "Snakefile"),
            ]
        )
        == 0
    )
    return place / "crate"


def entities(crate: Path) -> dict[str, dict]:
    graph = json.loads((crate / "ro-crate-metadata.json").read_text())["@graph"]
    assert len({one["@id"] for one in graph}) == len(graph)
    return {one["@id"]: one for one in graph}


def ids(values) -> set[str]:
    return {one["@id"] for one in (values if isinstance(values, list) else [values])}


def test_an_action_says_what_a_stage_read_and_wrote(crate):
    found = entities(crate)
    judged = found["#run/results/verdicts/8B-dice/seed0.jsonl"]
    assert judged["@type"] == "CreateAction"
    assert ids(judged["instrument"]) == {"#dice-verify"}
    assert ids(judged["object"]) == {"generations/8B-dice/seed0.jsonl", "data/problems.jsonl"}
    assert ids(judged["result"]) == {"verdicts/8B-dice/seed0.jsonl"}
    assert judged["startTime"] <= judged["endTime"]
    trained = found["#run/results/models/8B-dice"]
    assert ids(trained["object"]) == {"data/pairs.jsonl"}
    assert ids(trained["result"]) == {"models/8B-dice/"}
    assert ids(found["#run/results/generations/8B-dice/seed0.jsonl"]["object"]) == {"models/8B-dice/"}
    assert {"table1.csv", "figure1.csv", "scores/8B-dice.json"} <= ids(found["#run"]["result"])
    assert "outside/reported.csv" in ids(found["#run"]["object"])


def test_what_is_named_is_there_and_what_is_there_is_named(crate):
    found = entities(crate)
    files = {str(path.relative_to(crate)) for path in crate.rglob("*") if path.is_file()}
    named = {name for name, one in found.items() if "File" in one["@type"]}
    assert files - {"ro-crate-metadata.json"} == named
    mentioned = {
        value["@id"]
        for one in found.values()
        for held in one.values()
        for value in (held if isinstance(held, list) else [held])
        if isinstance(value, dict)
    }
    assert {name for name in mentioned if not name.startswith("https://")} <= found.keys()
    weights = found["#results/models/8B-dice/model.safetensors"]
    assert (weights["@type"], len(weights["sha256"])) == ("CreativeWork", 64)


def test_the_same_study_gives_the_same_crate(crate, tmp_path):
    write_crate(crate.parent / "recorded/tiny", tmp_path / "again", ROOT / "Snakefile")
    metadata = "ro-crate-metadata.json"
    assert (tmp_path / "again" / metadata).read_text() == (crate / metadata).read_text()


def test_a_changed_study_or_a_missing_workflow_is_refused(crate, tmp_path):
    folder = tmp_path / "tiny"
    shutil.copytree(crate.parent / "recorded/tiny", folder)
    with pytest.raises(DiceError, match="no workflow there"):
        write_crate(folder, tmp_path / "out", tmp_path / "Snakefile")
    (folder / "table1.csv").write_text("a\n1\n")
    with pytest.raises(DiceError, match=r"table1\.csv: changed since it was recorded"):
        write_crate(folder, tmp_path / "out", ROOT / "Snakefile")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
def test_a_validator_accepts_it_and_refuses_one_without_its_steps(crate, tmp_path, whole):
    """All REQUIRED checks of Provenance Run Crate 0.5; ROCRATE_VALIDATOR may name the command."""
    command = os.environ.get("ROCRATE_VALIDATOR") or shutil.which("rocrate-validator")
    if command is None:
        pytest.skip("needs rocrate-validator: pipx install roc-validator")
    folder = shutil.copytree(crate, tmp_path / "crate")
    if not whole:
        metadata = folder / "ro-crate-metadata.json"
        values = json.loads(metadata.read_text())
        del next(one for one in values["@graph"] if one["@id"] == "Snakefile")["step"]
        metadata.write_text(json.dumps(values))
    context = Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld"
    words = [
        Path(command).with_name("python"),
        Path(__file__).with_name("offline_validator.py"),
        context,
        "-y",
        "validate",
    ]
    words += ["-np", "-p", "provenance-run-crate-0.5", "-l", "required", "--no-cache", "--no-paging", "-v", folder]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, words)], env=environment, capture_output=True, text=True, check=False)
    assert ("[OK] RO-Crate is a valid provenance-run-crate-0.5" in done.stdout) == whole, done.stdout[-4000:]
    assert (done.returncode == 0) == whole
