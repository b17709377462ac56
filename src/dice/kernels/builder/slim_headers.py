"""Headers derived from the installed ones: slim versions of PyTorch's, and CUDA's for host code that g++ compiles.

A precompiled `torch/extension.h` loads in 0.1 s, but GCC then instantiates every template that the headers left pending
(about 5 s in every unit). A handful of headers cause nearly all of it: those that reach `IValue`, `Library` and the
autograd graph. The slim folder shadows them: with it, all of `ATen/Functions.h` costs 0.3 s. Whatever they leave out
makes a unit fail to compile, never compile to something else, and the builder then takes the untouched headers.

Functions whose inline bodies need the heavy headers (`torch::empty`, `at::cat`, ...) stay as declarations; their bodies
are compiled once into the support library (`support_functions.cpp`, written here too).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dice.kernels.source.declaration import parse_parameter
from dice.kernels.source.lexer import at_commas, tokenize


class SlimRefused(Exception):
    """A header of this PyTorch has not the shape that is expected; the message says which and why."""


@dataclass(frozen=True)
class SlimHeaders:
    """Files to write: path relative to the folder that goes before PyTorch's own on the include path -> text."""

    files: dict[str, str]
    support: str
    """A C++ unit with the bodies of the functions that the slim headers only declare."""


_CONTEXT = """#pragma once
// Without the context itself: its functions need the heavy headers.
#include <ATen/core/ATenGeneral.h>
#include <ATen/core/Generator.h>
#include <c10/util/Exception.h>
#include <c10/util/irange.h>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
"""

_TENSOR_UTILS = """#pragma once
#include <ATen/DimVector.h>
#include <ATen/Tensor.h>
#include <utility>
"""

_ATEN = """#pragma once
#include <ATen/DeviceGuard.h>
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Scalar.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Allocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/Exception.h>
#include <c10/util/irange.h>
"""

_EXTENSION = """#pragma once
#include <torch/types.h>
namespace torch {
using NoGradGuard = at::NoGradGuard;
using AutoGradMode = at::AutoGradMode;
}
"""

_HEAVY_INCLUDE = re.compile(
    r"^#include <(?:ATen/ATen\.h|torch/library\.h|torch/csrc/autograd/(?:variable|generated/variable_factories)\.h)>.*$",
    re.MULTILINE,
)


def slim_headers(torch_include: Path) -> SlimHeaders:
    """The slim headers for the PyTorch whose `include` folder this is. Raises SlimRefused."""
    types = _read(torch_include, "torch/csrc/api/include/torch/types.h")
    factories = _read(torch_include, "torch/csrc/autograd/generated/variable_factories.h")
    cat = _read(torch_include, "ATen/ops/cat.h")
    declared = _declarations(factories)
    if not any(" empty(" in line for line in declared):
        raise SlimRefused("variable_factories.h declares no torch::empty")
    factory_header = "#pragma once\n#include <ATen/ATen.h>\n#include <functional>\nnamespace torch {\n"
    factory_header += "using Deleter = std::function<void(void*)>;\nusing at::MemoryFormat;\n"
    factory_header += "\n".join(declared) + "\n}\n"
    slim_cat, cat_support = _cat(cat)
    files = {
        "ATen/ATen.h": _ATEN,
        "ATen/Context.h": _CONTEXT,
        "ATen/DeviceGuard.h": _device_guard(_read(torch_include, "ATen/DeviceGuard.h")),
        "ATen/TensorUtils.h": _TENSOR_UTILS,
        "ATen/ops/cat.h": slim_cat,
        "torch/types.h": _types(types),
        "torch/csrc/api/include/torch/types.h": "#pragma once\n#include <torch/types.h>\n",
        "torch/csrc/autograd/generated/variable_factories.h": factory_header,
        "torch/extension.h": _EXTENSION,
        "torch/all.h": "#pragma once\n#include <torch/extension.h>\n",
        "torch/torch.h": "#pragma once\n#include <torch/extension.h>\n",
    }
    return SlimHeaders(files, _support(declared, cat_support))


def cuda_host_headers(cuda_include: Path, torch_include: Path) -> dict[str, str]:
    """Headers whose host code waits for nvcc though g++ could compile it, without the wait: path -> text.

    `cuda_runtime.h`: templates such as `cudaMemcpyToSymbol<T>`. `TensorAccessor.h`: `RestrictPtrTraits`.
    Raises SlimRefused.
    """
    text = _read(cuda_include, "cuda_runtime.h")
    # The first condition includes the device functions; the later ones guard templates that are host code.
    first, *rest = re.split(r"^#if defined(?: __CUDACC__|\(__CUDACC__\))[ \t]*$", text, flags=re.MULTILINE)
    if len(rest) != 3 or "cudaMemcpyToSymbol" not in rest[1]:
        raise SlimRefused("cuda_runtime.h has not the expected shape")
    files = {"cuda_runtime.h": f"{first}#if defined(__CUDACC__){rest[0]}#if 1{rest[1]}#if 1{rest[2]}"}
    for name in ("ATen/core/TensorAccessor.h", "torch/headeronly/core/TensorAccessor.h"):
        if (torch_include / name).exists():
            files[name] = re.sub(r"(?m)^#if defined\(__CUDACC__\) \|\| .*$", "#if 1", _read(torch_include, name))
    return files


def _read(root: Path, name: str) -> str:
    try:
        return (root / name).read_text()
    except OSError as error:
        raise SlimRefused(f"{name} cannot be read ({error.strerror})") from error


def _device_guard(text: str) -> str:
    """Without `device_of(ITensorListRef)`, the only user of IListRef.h."""
    slim = re.sub(r"#include <ATen/core/IListRef\.h>\n", "", text)
    slim, removed = re.subn(
        r"inline std::optional<Device> device_of\(ITensorListRef t\) \{\n.*?\n\}\n", "", slim, flags=re.S
    )
    if removed != 1 or "IListRef" in re.sub(r"//.*", "", slim):
        raise SlimRefused("DeviceGuard.h uses IListRef in an unknown way")
    return slim


def _types(text: str) -> str:
    slim, removed = _HEAVY_INCLUDE.subn("", text)
    if removed != 4 or "using namespace at;" not in slim:
        raise SlimRefused("torch/types.h includes other headers than expected")
    new_includes = "#include <ATen/ATen.h>\n#include <torch/csrc/autograd/generated/variable_factories.h>\n"
    return slim.replace("#pragma once\n", "#pragma once\n" + new_includes, 1)


_FACTORY = re.compile(r"^inline (at::Tensor (\w+)\((.*?)\)) \{$", re.MULTILINE | re.DOTALL)


def _declarations(factories: str) -> list[str]:
    """`at::Tensor empty(...);` for each inline function of the header but those that take a TensorDataContainer."""
    found = []
    for match in _FACTORY.finditer(factories):
        if "TensorDataContainer" not in match.group(3):
            found.append(" ".join(match.group(1).split()) + ";")
    return found


_CAT = re.compile(
    r"^inline (at::Tensor &?\s?(cat\w*)\(([^)]*ITensorListRef[^)]*)\)) \{\n(.*?)\n\}\n", re.MULTILINE | re.DOTALL
)


def _cat(text: str) -> tuple[str, list[str]]:
    """cat.h with TensorList in the place of ITensorListRef, and the definitions of those functions."""
    definitions: list[str] = []

    def declare(match: re.Match[str]) -> str:
        declaration = match.group(1).replace("const at::ITensorListRef &", "at::TensorList")
        definitions.append(re.sub(r"\s*=\s*\w+", "", declaration) + " {\n" + match.group(4) + "\n}\n")
        return declaration + ";\n"

    slim = _CAT.sub(declare, text)
    if not definitions or "ITensorListRef" in slim:
        raise SlimRefused("ATen/ops/cat.h uses ITensorListRef in an unknown way")
    return slim, definitions


def _support(declared: list[str], cat_definitions: list[str]) -> str:
    """Definitions for what the slim headers declare: take the address of each inline function, so that it is emitted."""
    lines = ["#include <torch/types.h>", "namespace at {", *cat_definitions, "}", "namespace dice_support {"]
    for i, declaration in enumerate(declared):
        match = re.match(r"at::Tensor (\w+)\((.*)\);$", declaration)
        assert match is not None
        types = ", ".join(_parameter_types(match.group(2)))
        lines.append(
            f'__attribute__((used, visibility("default"))) at::Tensor (*keep_{i})({types}) = &torch::{match.group(1)};'
        )
    return "\n".join([*lines, "}"]) + "\n"


def _parameter_types(parameters: str) -> list[str]:
    """Types of `at::IntArrayRef size, at::TensorOptions options = {}`: names and defaults cut off."""
    types = [parse_parameter(parameters, group).type for group in at_commas(tokenize(parameters))]
    return [re.sub(r"\bDeleter\b", "torch::Deleter", kind) for kind in types]
