"""What is left to be found of the package in a process that conceals it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from waiting import PATIENCE_S

import dice
from dice.kernels.candidate.concealment import holds_the_package_alone

SCRIPT = """
import gc, importlib.util, json, sys
from dice.kernels.candidate import concealment, opaque

concealment.conceal("/scratch/home/candidate.py")
concealment.ctypes.string_at(0, 0)  # what is loaded goes on working
found = {
    "modules": [name for name in sys.modules if name.split(".")[0] == "dice"],
    "main": sorted(vars(sys.modules["__main__"])),
    "spec": importlib.util.find_spec("dice") is not None,
    "argv": [sys.argv, sys.orig_argv[1:]],
    "command": open("/proc/self/cmdline").read().split("\\0")[1],
    "objects": [repr(each)[:80] for each in gc.get_objects() if str(getattr(each, "__module__", "")).startswith("dice")],
    "functions": opaque.stand_in.__name__,
}
print(json.dumps(found))
"""


def test_the_package_has_no_name_any_more(tmp_path: Path) -> None:
    script = tmp_path / ("a_name_that_is_long_enough_for_another_command" * 2 + ".py")
    script.write_text(SCRIPT)
    environment = {"PYTHONPATH": str(Path(dice.__file__ or "").parents[1]), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-P", str(script)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["modules"] == []
    assert set(found["main"]) == {"__builtins__", "__doc__", "__loader__", "__name__", "__package__", "__spec__"}
    assert found["spec"] is False
    assert found["argv"] == [["/scratch/home/candidate.py"], ["/scratch/home/candidate.py"]]
    assert found["command"] == "/scratch/home/candidate.py"
    assert found["objects"] == []


def test_a_folder_with_pytorch_stays_on_the_path(tmp_path: Path) -> None:
    assert not holds_the_package_alone(str(tmp_path))
    (tmp_path / "dice" / "kernels").mkdir(parents=True)
    assert holds_the_package_alone(str(tmp_path))
    (tmp_path / "torch").mkdir()
    assert not holds_the_package_alone(str(tmp_path))
