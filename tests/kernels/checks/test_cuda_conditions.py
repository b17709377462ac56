"""Conditional compilation that gives one compiler another program."""

from __future__ import annotations

import pytest

from dice.kernels.checks.cuda_conditions import cuda_conditions
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import words

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


@pytest.mark.parametrize(
    "name",
    sorted(
        words(
            """
            __GNUC__ _OPENMP CUDA_VERSION CUDART_VERSION CUDNN_MAJOR CUBLAS_VER_MAJOR NVTX_VERSION TORCH_VERSION_MAJOR
            C10_MOBILE AT_PARALLEL_OPENMP CAFFE2_BUILD PYBIND11_VERSION_HEX Py_LIMITED_API PY_VERSION_HEX USE_ROCM WITH_CUDA
            DICE_CPU dice_cpu NDEBUG linux unix EIGEN_VERSION BOOST_VERSION FLT_MAX DBL_MAX RAND_MAX EOF ENOENT
            """
        )
    ),
)
def test_macros_that_tell_about_the_compiler_or_the_machine(name: str) -> None:
    assert count(f"\n#ifdef {name}\ny = at::mm(x, w);\n#endif\n") == 1
    assert count(f"\n#ifdef MY{name}\ny = at::mm(x, w);\n#endif\n") == 0
    assert count(f"\n#ifdef {name}\ny = at::mm(x, w);\n#endif\n", f"#define {name} 1") == 0, "the source's own"


@pytest.mark.parametrize(
    ("text", "works"),
    [
        ("cblas_sgemm(1);", 1),
        ("mkl_sparse_s_mm(1);", 1),
        ("LAPACKE_sgetrf(1);", 1),
        ("dgemm_(1);", 1),
        ("sgemv_(1);", 1),
        ("at::mm(x, w);", 1),
        ("x.mm(w);", 1),
        ("p->mm(w);", 1),
        ("at::_ops::mm::call(x, w);", 1),
        ("auto op = at::_ops::mm::call;", 1),
        ("cublasSgemm(h);", 1),
        ("thrust::sort(a, b);", 1),
        ("sgemm_ = 0;", 0),
        ("at::mm;", 0),
        ("mm(x, w);", 0),
        ("x.size(0);", 0),
        ("std::max(1, 2);", 0),
        ("c10::mul(1, 2);", 0),
        ("cub::sum(1);", 0),
        ("\n#define PRODUCT cublasSgemm(h)\n", 1),
        ("\n#define PRODUCT(x, w) at::mm(x, w)\n", 1),
        ("\n#define PRODUCT(x, w) own(x, w)\n", 0),
    ],
)
def test_what_is_a_librarys_work(text: str, works: int) -> None:
    assert count(f"\n#ifdef __EDG__\n{text}\n#endif\n") == works


@pytest.mark.parametrize(
    ("body", "asks"),
    [
        ("if (B) y = x.mm(w);", 1),
        ("if (w > 1 && B) y = x.mm(w);", 1),
        ("if (w > 1) { v(B); y = x.mm(w); }", 0),
        ("y = B ? x.mm(w) : w;", 1),
        ("y = B ? w ? x.mm(w) : w : w;", 1),
        ("y = w ? B : w ? x.mm(w) : w;", 0),
        ("int a = B; v(w ? x.mm(w) : w);", 0),
        ("while (B) { v(w ? x.mm(w) : w); }", 0),
        ("{ B } v(w ? x.mm(w) : w);", 0),
        ("a[B] = w ? x.mm(w) : w;", 0),
        ("v(B, w ? x.mm(w) : w);", 0),
        ("if (B) y = w;", 0),
        ("y = x.mm(w); if", 0),
        ("y = x.mm(w); if constexpr", 0),
    ],
)
def test_what_a_constant_of_the_compilers_decides(body: str, asks: int) -> None:
    assert count(body, "#ifdef __EDG__\n#define B 1\n#else\n#define B 0\n#endif") == asks
    assert count(body, "#define B 1") == 0


@pytest.mark.parametrize(
    ("top", "asks"),
    [
        ("#ifdef __EDG__\n#define B 1\n#endif", 1),
        ("#ifdef __EDG__\nint B = 1;\n#endif", 1),
        ("#ifdef __EDG__\n#define B 1\n#ifdef __linux__\nint q = 0;\n#endif\n#endif", 1),
        ("#ifdef __EDG__\nint q = 1;\n#endif\n#ifdef __EDG__\n#define B 1\n#endif", 1),
        ("#ifdef __EDG__\n#if OURS\n#define B 1\n#endif\n#endif", 1),
        ("#if OURS\n#elif defined(__EDG__)\n#define B 1\n#endif", 1),
        ("#ifdef __EDG__\nint* B = 0;\n#endif", 1),
        ("#define B 1\n#ifdef __EDG__\nint q = 1;\n#endif", 0),
        ("#ifdef __EDG__\nvoid h() { use(B); v[0] = 1; }\n#endif", 0),
        ("#ifdef __EDG__\nint q = 1;\n#endif\n#define B 1", 0),
        ("#ifdef OURS\n#define B 1\n#endif", 0),
        ("#endif\n#ifdef OURS\n#define B 1\n#else", 0),
        ("#else\n#endif", 0),
    ],
)
def test_which_constants_tell(top: str, asks: int) -> None:
    assert count("if (B || n[0]) y = x.mm(w);", top) == asks


FUNCTION = "at::Tensor g(at::Tensor a) { return a.mm(a); }\n"
OTHER = "at::Tensor g(int a) { return own(a); }\n"


@pytest.mark.parametrize(
    ("top", "chooses"),
    [
        (f"#ifdef __CUDACC__\n{FUNCTION}#endif", 0),
        (f"{OTHER}#ifdef __CUDACC__\n{FUNCTION}#endif", 1),
        (f"#ifdef __CUDACC__\n{FUNCTION}#endif\n{OTHER}", 1),
        (f"void h() {{ }}\n#ifdef __CUDACC__\n{FUNCTION}#endif", 0),
        (f"#ifdef __CUDACC__\n{FUNCTION}#elif 1\n#endif", 1),
        (f"#ifdef __CUDACC__\n{FUNCTION}{OTHER}#endif", 0),
        ("#ifdef __CUDACC__\nauto tensor = at::mm(x, w);\n#endif", 1),
    ],
)
def test_guards_around_functions_that_stand_nowhere_else(top: str, chooses: int) -> None:
    assert count(top=top) == chooses
