"""Functions that CUDA and newer versions of glibc both declare (`sinpi`: 2.41, `rsqrt`: 2.42) are CUDA's in a kernel."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dice.kernels.builder.headers import CSRC

DECLARED = "\n".join(
    f'extern "C" double {name}(double) noexcept; extern "C" float {name}f(float) noexcept;'
    for name in ("sinpi", "cospi", "rsqrt")
)
NEWER = f"#include <features.h>\n#undef __GLIBC_PREREQ\n#define __GLIBC_PREREQ(major, minor) 1\n{DECLARED}\n"
PROGRAM = """
#include <dice_cpu/math.h>
#include <cstdio>
int main() {
    volatile double d = 2.5;
    volatile float f = 0.25f;
    std::printf("%a %a %a ", sinpi(d), cospi(d), rsqrt(d));
    std::printf("%a %a %a ", sinpif(f), cospif(f), rsqrtf(f));
    std::printf("%a %a %a", sinpi(f), cospi(f), rsqrt(f));
    static_assert(sizeof sinpi(1.0f) == 4 && sizeof rsqrt(1.0f) == 4 && sizeof cospi(1.0) == 8);
}
"""


@pytest.mark.parametrize("before", ["", NEWER], ids=["not declared", "declared"])
def test_a_name_of_the_libc_has_our_body(tmp_path: Path, before: str) -> None:
    source, program = tmp_path / "a.cpp", tmp_path / "a"
    source.write_text(before + PROGRAM)
    include = CSRC / "cpu" / "include"
    command = ["c++", "-std=c++20", "-O2", "-w", "-I", include, source, "-o", program]
    subprocess.run(command, check=True)  # an undefined one would not link
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    values = [float.fromhex(word) for word in said.split()]
    half = 0.5**0.5
    assert values == pytest.approx([1, 0, 2.5**-0.5, half, half, 2, half, half, 2], rel=1e-7)
