"""The CPU image for real: rules of the workflow run in it through the shim. `make container-cpu test-container`."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = shlex.split(os.environ.get("DICE_ENGINE", "podman"))
PAIRS = "results/smoke/data/rl_infilling.jsonl"


def built():
    """Whether the engine has the image."""
    if not shutil.which(ENGINE[0]):
        return False
    inspect = [*ENGINE, "image", "inspect", "localhost/dice-cpu"]
    return subprocess.run(inspect, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.slow


@pytest.mark.skipif(not built(), reason="run `make container-cpu` first")
def test_a_rule_runs_in_the_image(tmp_path):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'containers' / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(tmp_path / "src"),
    }
    done = subprocess.run(
        [
            "snakemake",
            "--cores",
            "2",
            "--software-deployment-method",
            "apptainer",
            "--config",
            "scale=smoke",
            "--",
            PAIRS,
        ],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert len((tmp_path / PAIRS).read_text().splitlines()) == 16
    manifest = json.loads((tmp_path / f"{PAIRS}.manifest.json").read_text())
    assert manifest["image"].startswith("localhost/dice-cpu@sha256:")
    assert (tmp_path / PAIRS).stat().st_uid == os.getuid()
