"""One table through a real one-node SLURM cluster: array jobs, a single rule, going on after a kill and a cancelled job.

Needs root, Debian's slurm-wlm and munge, and a machine that belongs to no cluster; minutes. `make test-slurm` runs it.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S, wait_for

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "tests" / "slurm" / "cluster.sh"
TABLE = "results/smoke/table1.csv"
PAIRS = "results/smoke/data/cuke.jsonl"

BIN = Path(sys.executable).parent


def missing():
    """What this machine lacks for a cluster of its own, as the reason of the skip; None where nothing is missing."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    absent = [
        name for name in ("slurmctld", "slurmd", "munged", "sbatch", "squeue") if not shutil.which(name, path=path)
    ]
    if os.geteuid() != 0:
        return "needs root: slurmd starts jobs for other users"
    if absent:
        return f"{', '.join(absent)} not installed (Debian: slurm-wlm, munge)"
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        return "snakemake-executor-plugin-slurm is not installed (extra `workflow`)"
    conf = Path("/etc/slurm/slurm.conf")
    if conf.exists() and not conf.is_symlink():
        return f"{conf} is a real cluster's configuration"
    return None


pytestmark = [pytest.mark.slow, pytest.mark.skipif(missing() is not None, reason=str(missing()))]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    try:
        subprocess.run([CLUSTER, "start", folder], check=True)
        yield folder
    finally:
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
        *(sys.executable, "-m", "snakemake", "--profile", "profiles/slurm", "--workflow-profile", "none"),
        *("--default-resources", "mem_mb=1500", "runtime=30", "--slurm-init-seconds-before-status-checks", "3"),
        *("--seconds-between-status-checks", "2", "--config", "scale=smoke", "shards=3", *arguments),
    ]


def environment(checkout):
    """The copy's code, and an squeue that lists every task of an array (docs/guides/slurm.md)."""
    return {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHONPATH": str(checkout / "src"),
        "SQUEUE_ARRAY": "1",
    }


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


def started(checkout, log, *arguments):
    """A call that goes on by itself, its output in `log`."""
    return subprocess.Popen(
        command(*arguments), cwd=checkout, env=environment(checkout), stdout=log, stderr=log, start_new_session=True
    )


def job_of(rule, states, run):
    """The first job of a rule in one of the states; None when `run` ends before there is one."""
    found = []

    def is_there():
        rows = subprocess.run(
            ["squeue", "--noheader", f"--states={states}", "--format=%i %k"], capture_output=True, text=True, check=True
        ).stdout
        found.extend(row.split()[0] for row in rows.splitlines() if f"rule_{rule}" in row)
        return found or run.poll() is not None

    wait_for(is_there, f"a job of rule {rule} is {states}")
    return found[0] if found else None


def test_jobs_of_a_killed_run_are_waited_for(cluster, checkout):
    with (checkout / "killed.log").open("w") as log:
        killed = started(checkout, log, "--", PAIRS)
        job = job_of("synth", "R,PD", killed)
        assert job, (checkout / "killed.log").read_text()[-4000:]
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait(timeout=PATIENCE_S)
    output = run(checkout, "--", PAIRS)
    assert f"SLURM still has its jobs {job}" in output
    assert (checkout / PAIRS).is_file()


def test_table_after_a_cancelled_job(cluster, checkout):
    with (checkout / "first.log").open("w") as log:
        first = started(checkout, log, "--retries", "0", "--", TABLE)
        cancelled = job_of("sft", "R", first)
        assert cancelled, (checkout / "first.log").read_text()[-4000:]
        subprocess.run(["scancel", cancelled], check=True)
        assert first.wait(timeout=600) != 0, "a cancelled job went unnoticed"
    assert not (checkout / TABLE).exists()
    output = run(checkout, "--", TABLE)
    assert (checkout / TABLE).is_file()
    assert "mini: " not in output, "the data were made again"
    assert "SLURM array" in output or "array job" in output.lower()


def test_one_rule_by_itself(cluster, checkout):
    assert (checkout / TABLE).is_file(), "the table's test failed before"
    score = next((checkout / "results/smoke/scores").glob("*.json"))
    before = score.read_bytes()
    name = str(score.relative_to(checkout))
    output = run(checkout, "--allowed-rules", "score", "--force", "--", name)
    assert "1 of 1 done" in output
    assert score.read_bytes() == before
