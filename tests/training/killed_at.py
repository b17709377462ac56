"""A `dice` command that is killed (SIGKILL) when it calls one of our functions, or a library's, for the n-th time.

python killed_at.py dice.training.sft:Trainer.step 5 sft --config FILE
"""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dice.cli import main


def kill_at(place: str, count: int, arguments: Sequence[str | Path]) -> None:
    """Run the command in a process of its own until it is killed there; it must not end before."""
    done = subprocess.run(
        [sys.executable, __file__, place, str(count), *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, f"{place} was not called {count} times"


def _watch(place: str, count: int) -> None:
    module, _, name = place.partition(":")
    *owners, last = name.split(".")
    owner = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    function, calls = getattr(owner, last), itertools.count(1)

    def watched(*args, **kwargs):
        if next(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    setattr(owner, last, watched)


if __name__ == "__main__":
    _watch(sys.argv[1], int(sys.argv[2]))
    sys.exit(main(sys.argv[3:]))
