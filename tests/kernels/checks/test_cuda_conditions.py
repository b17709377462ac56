"""Conditional compilation that gives one compiler another program."""

from __future__ import annotations

import pytest

from dice.kernels.checks.cuda_conditions import cuda_conditions
from dice.kernels.source.cuda_source import CudaSource

SOURCE = """
#include <torch/extension.h>
{top}
__global__ void k(float* x) {{ {device} }}
torch::Tensor f(torch::Tensor x, torch::Tensor w) {{
    auto y = torch::empty_like(x);
    {body}
    k<<<1, 1>>>(y.data_ptr<float>());
    return y;
}}
"""


def count(body: str = "", top: str = "", device: str = "") -> int:
    return len(list(cuda_conditions(CudaSource(SOURCE.format(top=top, body=body, device=device)))))


@pytest.mark.parametrize(
    ("top", "body"),
    [
        ("", "\n#ifdef __CUDACC_VER_BUILD__\ny = at::mm(x, w);\n#endif\n"),
        ("", "\n#if defined(__CUDACC_VER_BUILD__) && 1\ny = x.mm(w);\n#else\nk<<<1, 1>>>(0);\n#endif\n"),
        ("", "\n#ifndef __CUDA_ARCH__\nat::mm_out(y, x, w);\n#endif\n"),
        ("", "\n#ifndef NDEBUG\nk<<<1, 1>>>(0);\n#elif 1\ny = at::_ops::mm::call(x, w);\n#endif\n"),
        ("", '\n#if __has_include("/usr/local/cuda/x.h")\ncublasSgemm(h, 1);\n#endif\n'),
        ("#ifdef __NVCC_DIAG_PRAGMA_SUPPORT__\n#define OURS 1\n#endif", "\n#ifdef OURS\ny = at::mm(x, w);\n#endif\n"),
        ("#ifdef __EDG__\n#define STEP at::mm(x, w)\n#else\n#define STEP own(x, w)\n#endif", "y = STEP;"),
        (
            "#ifdef __linux__\nat::Tensor g(at::Tensor a) { return a.mm(a); }\n#else\nat::Tensor g(at::Tensor a) { return a; }\n#endif",  # noqa: E501
            "y = g(x);",
        ),
        (
            "#ifdef __EDG__\nat::Tensor g(at::Tensor a) { return a.mm(a); }\n#endif\n#ifndef __EDG__\n"
            "at::Tensor g(at::Tensor a) { return a; }\n#endif",
            "y = g(x);",
        ),
        (
            "#ifdef __EDG__\nconstexpr bool b = true;\n#else\nconstexpr bool b = false;\n#endif",
            "if constexpr (b) y = x.mm(w);",
        ),
        ("#ifdef __EDG__\n#define B 1\n#else\n#define B 0\n#endif", "y = B ? x.mm(w) : own(x, w);"),
    ],
)
def test_one_compiler_gets_a_librarys_work(top: str, body: str) -> None:
    assert count(body, top) == 1


@pytest.mark.parametrize(
    ("top", "body", "device"),
    [
        ("", "", "\n#if __CUDA_ARCH__ >= 800\n__pipeline_commit();\n#else\nx[0] = 1;\n#endif\n"),
        ("#ifdef __CUDACC__\n__device__ float g(float a) { return a; }\n#endif", "", ""),
        ("#ifdef __CUDACC__\nvoid g(at::Tensor a) { k2<<<1, 1>>>(0); a.mm(a); }\n#endif", "", ""),
        ("", "\n#if TORCH_VERSION_MAJOR >= 2\ny = at::linalg_vector_norm(x);\n#else\ny = at::norm(x);\n#endif\n", ""),
        ("#ifndef TILE\n#define TILE 16\n#endif", "y = at::mm(x, w); if (TILE > 8) y = y;", ""),
        ("", "\n#if CUDART_VERSION >= 12000\ncublasGemmEx(h, A);\n#else\ncublasSgemm(h, B);\n#endif\n", ""),
        ("#define USE_LIBRARY 0", "\n#if USE_LIBRARY\ny = at::mm(x, w);\n#endif\n", ""),
        ("", "\n#ifdef DEBUG_CHECKS\nTORCH_CHECK(at::allclose(y, x.mm(w)));\n#endif\n", ""),
        ("", "\n#ifndef NDEBUG\nTORCH_CHECK(x.is_contiguous());\n#endif\ny = x.mm(w);", ""),
        (
            "#if CUDART_VERSION >= 12000\nconstexpr int W = 8;\n#else\nconstexpr int W = 4;\n#endif",
            "if (W > 4) k<<<W, 1>>>(0);",
            "",
        ),
        ("", "\n#ifdef __CUDACC__\nk<<<1, 1>>>(0);\n#else\nTORCH_CHECK(false);\n#endif\n", ""),
        ("", "\n#if __cplusplus >= 201703L\nauto a = std::max(1, 2);\n#else\nint a = 2;\n#endif\n", ""),
    ],
)
def test_conditions_that_choose_no_other_work(top: str, body: str, device: str) -> None:
    assert count(body, top, device) == 0
