"""`dice rl` in one of several processes, judged by tests/training/judge.py. python judged_rl.py FILE"""

import json
import sys
from pathlib import Path

import pytest
from judge import Judge

from dice.config import parse_config
from dice.training.rl import rl
from dice.training.rl_config import RlConfig

if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        Judge().install(patch)
        rl(parse_config(RlConfig, json.loads(Path(sys.argv[1]).read_text()), "test"))
