"""The processes of a training run that torchrun started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from waiting import PATIENCE_S, is_gone, wait_for

WORKER = """
import os, signal, sys
from pathlib import Path
from dice.training.processes import process_group

with process_group("local", "cpu"):
    Path(sys.argv[1], os.environ["RANK"]).write_text(str(os.getpid()))
    signal.pause()
"""

ALONE = """
import os, sys
import torch.distributed as dist
from dice.training.processes import process_group

with process_group("zero2", "cpu"):
    assert dist.get_world_size() == 1
    print(os.environ["LOCAL_RANK"], flush=True)
    sys.stdin.readline()
"""


def test_runs_of_one_process_do_not_meet():
    """DeepSpeed's engines without torchrun, as `dice sft --engine zero2` or a study with `processes=1` starts them."""
    told = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    env = {name: value for name, value in os.environ.items() if name not in told}
    command = [sys.executable, "-c", ALONE]
    runs = [subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=env) for _ in range(2)]
    try:
        for run in runs:
            assert run.stdout is not None
            assert run.stdout.readline() == "0\n"  # DeepSpeed asks for it
        for run in runs:
            run.communicate("\n", timeout=PATIENCE_S)
            assert run.returncode == 0
    finally:
        for run in runs:
            run.kill()


def test_no_process_outlives_torchrun(tmp_path: Path):
    """A run that is killed with all of its process group leaves nobody behind who trains on in its folder."""
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "pids").mkdir()
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = subprocess.Popen(
        [*torchrun, str(tmp_path / "worker.py"), str(tmp_path / "pids")],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    try:
        wait_for(
            lambda: [path.read_text() != "" for path in (tmp_path / "pids").iterdir()] == [True, True], "two processes"
        )
        pids = [int(path.read_text()) for path in (tmp_path / "pids").iterdir()]
        assert all(os.getpgid(pid) != run.pid for pid in pids), "the group's end reaches them now: drop what ends them"
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait(timeout=PATIENCE_S)
    wait_for(lambda: all(map(is_gone, pids)), "its processes have ended with torchrun")
