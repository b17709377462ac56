"""What of CUDA a compiler's messages say is missing; an error of the candidate's own says nothing."""

from __future__ import annotations

import pytest

from dice.kernels.builder.cpu_unsupported import unsupported


@pytest.mark.parametrize(
    ("output", "missing"),
    [
        ('a.h:1: error: #error "unsupported_on_cpu: textures"', "textures"),
        ("u.cpp:3:10: fatal error: cub/cub.cuh: No such file or directory", "<cub/cub.cuh>"),
        ("u.cpp:3:10: fatal error: ATen/cuda/Exceptions.h: No such file or directory", "<ATen/cuda/Exceptions.h>"),
        ("u.cpp:3:10: fatal error: mine.h: No such file or directory", None),
        ("u.cpp:9:3: error: 'cublasSgemmEx' was not declared in this scope", "cublasSgemmEx"),
        ("u.cpp:9:3: error: ‘curandState’ does not name a type", "curandState"),
        ("u.cpp:9:3: error: '__cvta_generic_to_shared' was not declared in this scope", "__cvta_generic_to_shared"),
        ("u.cpp:9:3: error: '__isShared' was not declared in this scope", "__isShared"),
        ("u.cpp:9:3: error: '__isSharedMine' was not declared in this scope", None),
        ("u.cpp:9:3: error: 'getStream' is not a member of 'at::cuda'", "at::cuda::getStream"),
        ("u.cpp:9:3: error: no matching function for call to 'cub::A<int>::Sum(int)'", "cub::A<int>::Sum(int)"),
        ("u.cpp:9:3: error: no matching function for call to 'mine::Sum(int)'", None),
        ("u.cpp:9:3: error: 'helper' is not a member of 'mine'", None),
        ("u.cpp:9:3: error: 'total' was not declared in this scope", None),
        # Only the first complaint counts, and a kernel that is said to be a variable is none.
        ("error: 'total' was not declared in this scope\nerror: 'cudaMalloc3D' was not declared in this scope", None),
        ("error: variable 'k' declared void\nerror: 'cudaPitchedPtr' was not declared in this scope", "cudaPitchedPtr"),
        ("", None),
    ],
)
def test_the_first_message_names_what_is_missing(output: str, missing: str | None) -> None:
    assert unsupported(output) == missing
