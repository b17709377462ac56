"""Host code that uses the standard library, whose functions the precompiled header only declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dice.kernels.builder.builder import Builder
from dice.kernels.candidate.extension_call import load_inline
from dice.kernels.candidate.extension_loader import load_extension

SOURCE = Path(__file__).parents[1] / "cpu" / "fixtures" / "standard_library.cu"


def arguments(source: str, **more: object) -> dict[str, object]:
    return {"cpp_sources": "torch::Tensor run();", "cuda_sources": source, "functions": ["run"], **more}


@pytest.mark.parametrize("flags", [[], ["-std=c++17"], ["-DNDEBUG", "-O3"]])
def test_host_code_finds_the_standard_library_behind_the_precompiled_header(
    cpu_builder: Builder, flags: list[str]
) -> None:
    request = load_inline(name="standard", **arguments(SOURCE.read_text(), extra_cuda_cflags=flags))
    result = cpu_builder.build(request)
    assert (result.status, result.fallbacks) == ("built", []), result.message
    module: Any = load_extension(result.path or "", "standard")
    assert module.run().tolist() == list(range(20))


def test_a_literal_in_a_constant_expression_takes_the_untouched_headers(cpu_builder: Builder) -> None:
    use = 'using namespace std::string_view_literals; constexpr auto name = "abc"sv; static_assert(name.size() == 3);'
    source = (
        f"#include <torch/extension.h>\n{use}\ntorch::Tensor run() {{ return torch::full({{1}}, int(name.size())); }}"
    )
    result = cpu_builder.build(load_inline(name="constant", **arguments(source)))
    assert result.status == "built", result.message
    assert result.fallbacks
    module: Any = load_extension(result.path or "", "constant")
    assert module.run().item() == 3
