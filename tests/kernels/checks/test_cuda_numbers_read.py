"""Host functions of C++ that read numbers of a tensor, and functions that look like it."""

from __future__ import annotations

import pytest

from dice.kernels.checks.cuda_numbers_read import readers
from dice.kernels.source.cuda_source import CudaSource


@pytest.mark.parametrize(
    "text",
    [
        "bool odd(torch::Tensor x) { return x.data_ptr<float>()[0] > 3; }",
        "bool odd(torch::Tensor x) { const float* p = x.data_ptr<float>(); return *p > 3; }",
        "int odd(const at::Tensor& x) { auto a = x.accessor<float, 2>(); return a[0][0] > 3 ? 1 : 0; }",
        "float odd(torch::Tensor x) { return x.max().template item<float>(); }",
        "bool near(torch::Tensor x) { return at::allclose(x, x.round()); } bool odd(torch::Tensor x) { return !near(x); }",
        'extern "C" int odd(const float* p, int n) { float s = 0; for (int i = 0; i < n; ++i) s += p[i]; return s > 9; }',
        "bool odd(torch::Tensor x) { float h[4]; cudaMemcpy(h, x.data_ptr(), 16, cudaMemcpyDeviceToHost); return h[1] > 3; }",
        "bool odd(torch::Tensor x) { auto p = x.data_ptr<float>(); return std::any_of(p, p + 4, big); }",
        'bool f(torch::Tensor x) { return x.item<float>() > 3; } PYBIND11_MODULE(T, m) { m.def("odd", &f, "it"); }',
        'PYBIND11_MODULE(T, m) { m.def("odd", [](torch::Tensor x) { return x.item<float>() > 2; }); }',
        'bool f(at::Tensor x) { return x.item<float>() > 3; } TORCH_LIBRARY(t, m) { m.def("odd(Tensor x) -> bool", &f); }',
    ],
)
def test_numbers_are_read(text: str) -> None:
    assert "odd" in readers(CudaSource(text))


@pytest.mark.parametrize(
    "text",
    [
        "bool fits(torch::Tensor x) { return x.size(1) % 4 == 0 && x.is_contiguous(); }",
        "bool fits(torch::Tensor x) { return reinterpret_cast<uintptr_t>(x.data_ptr<float>()) % 16 == 0; }",
        "int fits(torch::Tensor x) { k<<<1, 1>>>(x.data_ptr<float>(), 2 * x.numel()); return cudaGetLastError(); }",
        "int fits(float* p, int n) { for (int i = 0; i < n; ++i) p[i] = 0; return 0; }",
        "torch::Tensor most(torch::Tensor x) { float m = x.max().item<float>(); return x / m; }",
        "__global__ void k(const float* x, float* y) { y[0] = x[0]; }",
        "__device__ bool odd(const float* x) { return x[0] > 3; }",
    ],
)
def test_less_is_read(text: str) -> None:
    assert not readers(CudaSource(text))
