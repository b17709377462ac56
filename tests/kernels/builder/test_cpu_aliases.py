"""Other names of the CPU back end's headers."""

from __future__ import annotations

from extension_requests import inline

from dice.kernels.builder.builder import Builder
from dice.kernels.builder.cpu_aliases import NAMES
from dice.kernels.builder.cpu_toolchain import CPU_CSRC


def test_each_name_can_be_included_and_hides_no_header(cpu_builder: Builder) -> None:
    names = [name for listed in NAMES.values() for name in listed.split()]
    assert len(names) == len(set(names))
    assert not [name for name in names if (CPU_CSRC / "include" / name).exists()]
    source = "".join(f"#include <{name}>\n" for name in names)
    result = cpu_builder.build(inline("int f();", f"{source}int f() {{ return 1; }}", functions=["f"]))
    assert result.status == "built", result.message
