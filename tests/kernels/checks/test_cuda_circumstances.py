"""C++ that leaves a host function by a clock, the threads, the user or a file."""

from __future__ import annotations

import pytest

from dice.kernels.checks.cuda_circumstances import cuda_circumstances
from dice.kernels.source.cuda_source import CudaSource

SOURCE = """
#include <torch/extension.h>
static auto born = std::chrono::steady_clock::now();
static torch::Tensor last;
static double age() {{ return std::chrono::duration<double>(std::chrono::steady_clock::now() - born).count(); }}
__global__ void k(float* x, long long* t) {{ if (clock() > 9) return; x[0] = 0; }}
torch::Tensor f(torch::Tensor x) {{
    {body}
    k<<<1, 1>>>(x.data_ptr<float>(), nullptr);
    return x;
}}
"""


def count(body: str) -> int:
    return len(list(cuda_circumstances(CudaSource(SOURCE.format(body=body)))))


@pytest.mark.parametrize(
    "body",
    [
        "if (std::chrono::steady_clock::now() - born > std::chrono::seconds(9)) return last;",
        "if (age() > 9) { last = x; return last; }",
        "auto late = time(nullptr) > 1900000000; if (late) return last;",
        "timespec t; if (clock_gettime(CLOCK_MONOTONIC, &t) == 0 && t.tv_sec > 9) return last;",
        "const bool many = at::get_num_threads() > 4; const bool us = many || getuid() == 0; if (us) { return last; }",
        'static const bool served = std::filesystem::exists("/srv/model"); if (served) return last;',
        'if (access("/etc/customer", F_OK) == 0) { return last; }',
        'std::ifstream told("/etc/customer"); if (told.is_open()) return last;',
        "if (x.defined()) { if (rand() % 9 == 0) return last; }",
        "if (age() < 9) ; else return last;",
        "if (age() < 9) ; else if constexpr (sizeof(x) > 4) { x = last; } else return last;",
        "if (age() < 9) { last = x; } else if (x.defined()) { last = x; return last; }",
    ],
)
def test_it_leaves_by_the_circumstances(body: str) -> None:
    assert count(body) == 1


@pytest.mark.parametrize(
    "body",
    [
        "",
        "if (age() > 60) std::cerr << age();",
        "auto begun = std::chrono::steady_clock::now(); if (x.numel() == 0) return x;",
        "bool exists = x.numel() > 4; if (exists) return x;",
        "int fds[] = {}; auto empty = ; int now = 3; if (now > 2) return x;",
        'if (age() > 9) { std::printf("slow"); } if (x.dim() > 3) return x;',
        'if (age() > 9) { std::printf("slow"); } else std::printf("fast"); return x;',
    ],
)
def test_it_says_or_leaves_by_the_input(body: str) -> None:
    assert count(body) == 0
