"""The CPU image for real: rules of the workflow run in it, on a container engine through the shim and with Apptainer itself.

`make container-cpu test-container`, with `DICE_ENGINE=apptainer` for the second.
"""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SHIMS = ROOT / "containers" / "bin"
ENGINE = shlex.split(os.environ.get("DICE_ENGINE", "podman"))
SIF = ROOT / "containers" / "dice-cpu.sif"
PAIRS = "results/smoke/data/rl_infilling.jsonl"

pytestmark = pytest.mark.slow


def built():
    """Whether the engine has the image."""
    if ENGINE[0] == "apptainer" or not shutil.which(ENGINE[0]):
        return False
    inspect = [*ENGINE, "image", "inspect", "localhost/dice-cpu"]
    return subprocess.run(inspect, capture_output=True, check=False).returncode == 0


def apptainer():
    """Folder of the real Apptainer; None where there is none."""
    folders = [folder for folder in os.environ["PATH"].split(":") if folder and Path(folder).resolve() != SHIMS]
    found = shutil.which("apptainer", path=":".join(folders))
    return found and str(Path(found).parent)


@pytest.fixture
def checkout(tmp_path):
    """A copy of what git tracks."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def manifest_of_pairs(checkout, binaries):
    """Make the pairs of infilling with the `apptainer` of the folder `binaries`; gives back their manifest."""
    done = subprocess.run(
        [
            *("snakemake", "--cores", "2", "--software-deployment-method", "apptainer"),
            *("--config", "scale=smoke", "--", PAIRS),
        ],
        cwd=checkout,
        env={
            **os.environ,
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "PYTHONPATH": str(checkout / "src"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert len((checkout / PAIRS).read_text().splitlines()) == 16
    assert (checkout / PAIRS).stat().st_uid == os.getuid()
    return json.loads((checkout / f"{PAIRS}.manifest.json").read_text())


def verdict_on_a_kernel(checkout, binaries, image):
    """Compile, run and judge the first of those pairs in the `image`; gives back the verdict."""
    pair = (checkout / PAIRS).read_text().splitlines()[0]
    (checkout / "pair.jsonl").write_text(pair + "\n")
    done = subprocess.run(
        [
            *(
                f"{binaries}/apptainer",
                "exec",
                "--home",
                checkout,
                image,
                "dice",
                "verify",
                "--candidates",
                "pair.jsonl",
            ),
            *("--backend", "cpu", "--protocol", "paper", "--out", "verdicts.jsonl"),
        ],
        cwd=checkout,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return json.loads((checkout / "verdicts.jsonl").read_text())


def judged(verdict):
    """The kernel was run, and behind the walls that a candidate has outside of a container."""
    assert verdict["status"] == "correct", verdict["message"]
    assert {"jail", "pid_namespace", "no_network", "seccomp"} <= set(verdict["host"]["isolation"]), verdict["notes"]


@pytest.mark.skipif(not built(), reason="run `make container-cpu` first")
def test_a_rule_runs_in_the_image(checkout):
    shim = checkout / "containers" / "bin"
    manifest = manifest_of_pairs(checkout, shim)
    assert manifest["image"].startswith("localhost/dice-cpu@sha256:")
    (pulled,) = (checkout / ".snakemake").glob("*/*.simg")
    judged(verdict_on_a_kernel(checkout, shim, pulled))


@pytest.mark.skipif(apptainer() is None, reason="Apptainer is not installed")
@pytest.mark.skipif(not SIF.exists(), reason="run `DICE_ENGINE=apptainer make container-cpu` first")
def test_a_rule_runs_with_apptainer(checkout):
    listed = checkout / "containers" / "images.yaml"
    images = yaml.safe_load(listed.read_text())
    images["images"]["cpu"]["uri"] = str(SIF)
    listed.write_text(yaml.safe_dump(images))
    manifest = manifest_of_pairs(checkout, apptainer())
    assert manifest["image"].startswith("dice-cpu@packages-sha256:")
    judged(verdict_on_a_kernel(checkout, apptainer(), SIF))
