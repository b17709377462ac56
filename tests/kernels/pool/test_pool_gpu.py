"""The pool with workers that use a GPU."""

import pytest
import torch
from execution import HONEST, job

from dice.kernels.pool.workers import Machine, open_pool
from dice.kernels.records.job import Judging, Limits

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]


def test_workers_use_the_gpu():
    judging = Judging(correctness_trials=2, measure_time=False)
    with open_pool("cuda", judging, Limits(), Machine(jobs=2, builders=1), 2) as pool:
        verdicts = [v for group in pool.run([job(HONEST), job("raise SystemExit", sample=1)]) for v in group]
    assert {v.sample: v.functional_status for v in verdicts} == {0: "correct", 1: "runtime_error"}
    assert all(v.backend == "cuda" for v in verdicts)
