"""The steps of a candidate's code are counted where its extension was built for it."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from dice.kernels.builder.builder import Builder
from dice.kernels.candidate.extension_call import load_inline
from dice.kernels.candidate.extension_loader import load_extension
from dice.kernels.cpu.runtime import CpuRuntime

SOURCE = r"""
#include <torch/extension.h>
__global__ void doubled(const float* x, float* y, int n, int times) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int t = 0; t < times; ++t)
        if (v < 100.f) v += v;
    y[i] = v;
}
torch::Tensor run(torch::Tensor x, int64_t times) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    doubled<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, times);
    return y;
}
int64_t host(int64_t times) {
    volatile int64_t sum = 0;
    for (int64_t t = 0; t < times; ++t) sum = sum + t;
    return sum;
}
"""


@pytest.mark.parametrize("counted", [False, True])
def test_each_step_of_kernels_and_host_code_counts(cpu_builder: Builder, counted: bool) -> None:
    request = load_inline(
        name="steps",
        cpp_sources="torch::Tensor run(torch::Tensor x, int64_t times); int64_t host(int64_t times);",
        cuda_sources=SOURCE,
        functions=["run", "host"],
    ).model_copy(update={"counts_steps": counted})
    result = cpu_builder.build(request)
    assert result.status == "built", result.message
    assert result.path is not None
    module = load_extension(result.path, "steps")
    runtime = CpuRuntime.loaded()
    assert runtime is not None
    assert isinstance(module, ModuleType)
    x = torch.ones(640)

    def steps(times: int, values: torch.Tensor) -> int:
        before = sum(runtime.steps_taken())
        assert torch.equal(module.run(values, times), values * 2.0**times)
        return sum(runtime.steps_taken()) - before

    few, again, more = steps(1, x), steps(1, x), steps(6, x)
    assert few == again == steps(1, x / 2)  # whatever the values, where none of them decides
    before = runtime.steps_taken()
    assert module.host(1000) == 499500
    by_place = [after - earlier for earlier, after in zip(before, runtime.steps_taken(), strict=True)]
    of_host = sum(by_place)
    if counted:
        assert few > 640
        assert (more - few) % 640 == 0
        assert more - few >= 5 * 640
        assert of_host >= 1000
        assert max(by_place) < of_host  # what stands before the loop counts elsewhere
    else:
        assert (few, more, of_host) == (0, 0, 0)
