"""Kernels that only copy: what is written into an element, and what counts as nothing done to it."""

from __future__ import annotations

import pytest

from dice.kernels.checks.arithmetic import all_kernels_copy, no_kernel_reads
from dice.kernels.source.cuda_source import CudaSource


@pytest.mark.parametrize(
    ("value", "copies"),
    [
        ("in[i]", True),
        ("in[i] * 1.0f", True),
        ("0 + in[i]", True),
        ("(float)in[i] / 1", True),
        ("(scalar_t)in[i]", True),
        ("(int)in[i]", False),
        ("(float)(int)in[i]", False),
        ("(float)(unsigned)in[i] + 0", False),
        ("static_cast<int>(in[i])", False),
        ("in[i] * 2", False),
        ("in[i] * 1.5f", False),
        ("in[i + 1]", False),
        ("in[i] * 1e999", False),  # a literal that no number holds
        ("in[i] * 1e400f", False),
    ],
)
def test_a_kernel_copies_where_nothing_is_done_to_an_element(value: str, copies: bool) -> None:
    source = CudaSource(f"__global__ void move(const float* in, float* out, int i) {{ out[i] = {value}; }}")
    assert (all_kernels_copy([source]) == "move") is copies


@pytest.mark.parametrize(
    ("head", "value", "reads"),
    [
        ("const float* in", "in[i]", True),
        ("torch::PackedTensorAccessor64<float, 2> in", "in[i][0]", True),
        ("at::GenericPackedTensorAccessor<float, 1> in", "in[i]", True),
        ("Inputs in", "in.values[i]", True),
        ("const float (&in)[4]", "in[i]", True),
        ("View in", "in(i)", True),
        ("float in", "in", False),
        ("const float* in", "2", False),
    ],
)
def test_what_a_kernel_reads(head: str, value: str, reads: bool) -> None:
    source = CudaSource(f"__global__ void work({head}, float* out, int i) {{ out[i] = {value} * 2; }}")
    assert (no_kernel_reads([source]) is None) is reads
