"""Rules that read single words of CUDA and C++ text: which spelling breaks them, and which does not."""

from __future__ import annotations

import pytest

from dice.kernels.checks.cuda_rules import cuda_findings
from dice.kernels.source.cuda_source import CudaSource


@pytest.mark.parametrize(
    ("call", "writes"),
    [
        ('fopen("x", "w")', True),
        ('std::fopen(path.c_str(), "ab")', True),
        ('fopen("x", "r+")', True),
        ('freopen("x", "w", stdout)', True),
        ('fopen(name("a", 1), cond ? "r" : "w")', True),
        ('fopen("weights.bin", "rb")', False),
        ('fopen("a", "r")', False),
        ("fopen(path, mode)", False),
        ('fopen("w")', False),
        ('fopen("w", "a"', False),
        ('fopen("x", R"(w)")', True),
        ('fopen("x", R"(r)")', False),
    ],
)
def test_a_file_is_written_as_the_mode_says(call: str, writes: bool) -> None:
    found = cuda_findings(CudaSource(f"void f() {{ auto file = {call}; }}"), problem_is_narrow=False)
    assert ("file_written" in [finding.name for finding in found]) is writes


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ('"/proc/self/mem"', ["memory_tampering"]),
        ('R"(/proc/self/mem)"', ["memory_tampering"]),
        ('u8R"x(/proc/self/status)x"', ["environment_sniffing"]),
        ('u8"/proc/self/mem"', ["memory_tampering"]),
        ('R"(weights)"', []),
    ],
)
def test_a_path_in_any_kind_of_literal(path: str, found: list[str]) -> None:
    source = CudaSource(f"void f() {{ auto file = open({path}, 0); }}")
    assert [item.name for item in cuda_findings(source, problem_is_narrow=False)] == found
