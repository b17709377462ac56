"""One table through a real one-node SLURM cluster: array jobs, a single rule, and going on after a cancelled job.

Needs root and Debian's slurm-wlm and munge; minutes. `make test-slurm` runs it.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "tests" / "slurm" / "cluster.sh"
TABLE = "results/smoke/table1.csv"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("slurmd"), reason="needs root and slurm-wlm"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    subprocess.run([CLUSTER, "start", folder], check=True)
    yield folder
    subprocess.run([CLUSTER, "stop", folder], check=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of what git tracks, so that nothing is built in the developer's results."""
    folder = tmp_path_factory.mktemp("checkout")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def command(*arguments):
    """Snakemake as a user of the cluster calls it, with the memory and the patience of a small machine."""
    return [
        *("snakemake", "--profile", "profiles/slurm", "--workflow-profile", "none"),
        *("--default-resources", "mem_mb=1500", "runtime=30", "--slurm-init-seconds-before-status-checks", "3"),
        *("--seconds-between-status-checks", "2", "--config", "scale=smoke", "shards=3", *arguments),
    ]


def environment(checkout):
    """The copy's code, and an squeue that lists every task of an array (docs/cluster.md)."""
    return {**os.environ, "PYTHONPATH": str(checkout / "src"), "SQUEUE_ARRAY": "1"}


def run(checkout, *arguments):
    """Output of one call, in the copy and with its code."""
    done = subprocess.run(
        command(*arguments),
        cwd=checkout,
        env=environment(checkout),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_table_after_a_cancelled_job(cluster, checkout):
    with (checkout / "first.log").open("w") as log:
        first = subprocess.Popen(
            command("--retries", "0", "--", TABLE), cwd=checkout, env=environment(checkout), stdout=log, stderr=log
        )
        deadline = time.monotonic() + 300
        cancelled = None
        while cancelled is None and time.monotonic() < deadline:
            rows = subprocess.run(
                ["squeue", "--noheader", "--states=R", "--format=%i %k"], capture_output=True, text=True, check=True
            ).stdout
            cancelled = next((row.split()[0] for row in rows.splitlines() if "rule_sft" in row), None)
            time.sleep(0.5)
        assert cancelled, "no training job ran within five minutes"
        subprocess.run(["scancel", cancelled], check=True)
        assert first.wait(timeout=600) != 0, "a cancelled job went unnoticed"
    assert not (checkout / TABLE).exists()
    output = run(checkout, "--", TABLE)
    assert (checkout / TABLE).is_file()
    assert "rule mini:" not in output, "the data were made again"
    assert "SLURM array" in output or "array job" in output.lower()


def test_one_rule_by_itself(cluster, checkout):
    assert (checkout / TABLE).is_file(), "the table's test failed before"
    score = next((checkout / "results/smoke/scores").glob("*.json"))
    before = score.read_bytes()
    name = str(score.relative_to(checkout))
    output = run(checkout, "--allowed-rules", "score", "--force", "--", name)
    assert "1 of 1 steps (100%) done" in output
    assert score.read_bytes() == before
