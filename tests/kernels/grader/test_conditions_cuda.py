"""Orders of threads, shared memory and guards under `robust`: kernels on the CPU back end that pass `paper` by luck."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from execution import job

from dice.kernels.builder.builder import Builder
from dice.kernels.candidate.process import candidate_server
from dice.kernels.grader.executor import Executor
from dice.kernels.records.job import Judging

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x + nn.functional.pad(x, (1, 0))[:, :-1]


def get_inputs():
    return [torch.randn(3, 64)]


def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = '''
#include <torch/extension.h>

// y[i] = x[i] + x[i - 1] in each row, from shared memory.
__global__ void add_left(const float* x, float* y, int n) {
    extern __shared__ float row[];
    __shared__ float nothing[1], hidden;
    int t = threadIdx.x;
    if (t < n) row[t] = x[blockIdx.x * n + t];
    if (t == 0 && !LEAVES_OUT) nothing[0] = 0.0f;
    BARRIER
    if (t < n) y[blockIdx.x * n + t] = row[t] + (t > 0 ? row[t - 1] : 0.0f) + 0.0f * nothing[0];
    if (n == BESIDE && t == n && blockIdx.x == gridDim.x - 1) y[gridDim.x * n] = 0.0f;
    if (LEAVES_OUT && t == n) nothing[0] = 0.0f;
    if (OVERFLOWS && t == n) row[n] = 0.0f;
    if (n < 0) hidden = 0.0f;  // else a compiler knows its value
    if (HIDES && t < n && hidden > 1.0f) y[blockIdx.x * n + t] = hidden;
    if (COPIES && n == 63 && t == n && blockIdx.x == gridDim.x - 1) y[gridDim.x * n] = x[gridDim.x * n];
    if (LOOKS && t == n && blockIdx.x == gridDim.x - 1 && x[gridDim.x * n] == 0x1.2345p-77f) y[0] = 0.0f;
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.size(1);
    TORCH_CHECK(n < 1024);
    add_left<<<x.size(0), n + 1, n * sizeof(float)>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
'''
kernels = load_inline(name="left", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return kernels.run(x.contiguous())
"""
RIGHT = {
    "BARRIER": "__syncthreads();",
    "LEAVES_OUT": "0",
    "BESIDE": "0",
    "LOOKS": "0",
    "COPIES": "0",
    "OVERFLOWS": "0",
    "HIDES": "0",
}


def with_faults(**faults: str) -> str:
    code = CANDIDATE
    for name, value in {**RIGHT, **faults}.items():
        code = code.replace(name, value)
    return code


@pytest.fixture(scope="module")
def executor(build_folder: Path) -> Iterator[Executor]:
    judging = Judging(protocols=("paper", "robust"), correctness_trials=1, seed=5)
    builder = Builder(build_folder, "cpu")
    builder.prepare()
    with (
        candidate_server(visible=builder.visible_folders()) as fork_server,
        Executor(fork_server, builder, "cpu", judging=judging) as value,
    ):
        yield value


@pytest.mark.parametrize(
    ("faults", "broken", "status"),
    [
        ({}, set(), "correct"),
        ({"BARRIER": ""}, {"order_1", "order_2", "order_3"}, "wrong_value"),
        ({"LEAVES_OUT": "1"}, {"poisoned_shared"}, "wrong_value"),
        ({"OVERFLOWS": "1"}, {"fenced_shared"}, "runtime_error"),
        ({"HIDES": "1"}, {"fenced_shared"}, "wrong_value"),  # its comparison leaves NaN out
        ({"BESIDE": "64"}, {"guarded_memory"}, "runtime_error"),
        ({"BESIDE": "65"}, {"guarded_one_more"}, "runtime_error"),
        # of the 504 bytes of the smaller input, the next 8 may be looked at
        ({"LOOKS": "1"}, {"guarded_memory", "guarded_one_more", "guarded_short"}, "runtime_error"),
        ({"COPIES": "1"}, {"guarded_memory"}, "runtime_error"),  # of 756 bytes, the next 12 belong to nobody
    ],
)
def test_what_is_looked_for_on_the_cpu(
    executor: Executor, faults: dict[str, str], broken: set[str], status: str
) -> None:
    problem = PROBLEM.replace("(3, 64)", "(3, 63)") if "COPIES" in faults else PROBLEM
    paper, robust = executor.verify(job(with_faults(**faults), problem))
    assert paper.functional_status == "correct", paper.message
    assert {one.name for one in robust.conditions or [] if one.outcome == "broken"} == broken, robust.message
    assert robust.status == status, robust.message
    names = [one.name for one in robust.conditions or []]
    assert {"order_1", "order_2", "order_3", "poisoned_shared", "fenced_shared", "guarded_memory"} <= set(names)
