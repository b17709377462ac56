"""The device part of a split .cu, as text for nvcc: device code verbatim, without PyTorch's headers.

Template kernels are instantiated explicitly for the arguments that the host unit launches them with. What PyTorch's
headers would have brought along (standard headers, `c10::Half`, tensor accessors) is included only where it is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dice.kernels.builder.host_unit import located, scope_text
from dice.kernels.builder.split_roles import TORCH_ROOTS, Roles
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import SplitRefused, identifiers

# What torch/types.h includes, directly or not: header -> words that need it.
_STANDARD = {
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t intptr_t INT32_MAX INT64_MAX "
    "UINT32_MAX",
    "cfloat": "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON",
    "climits": "INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN LLONG_MAX LLONG_MIN CHAR_BIT SHRT_MAX",
    "limits": "numeric_limits",
    "type_traits": "is_same is_same_v enable_if enable_if_t conditional conditional_t decay_t remove_cv_t is_integral "
    "is_floating_point is_integral_v is_floating_point_v integral_constant true_type false_type remove_reference_t",
    "algorithm": "clamp sort fill copy accumulate",
    "vector": "vector",
    "string": "string to_string",
    "functional": "function plus minus multiplies",
    "iostream": "cout cerr endl",
    "map": "map",
    "unordered_map": "unordered_map",
    "cassert": "assert",
    "cstdio": "printf",
    "tuple": "tuple make_tuple get tie",
    "array": "array",
    "utility": "pair make_pair move forward swap index_sequence make_index_sequence declval",
}
# As PyTorch's headers bring them along when nvcc reads those: header -> part of the words that need it.
_CUDA = {"cuda_fp16.h": "half", "cuda_bf16.h": "bfloat16", "cuda_fp8.h": "fp8"}
_C10 = {
    "c10/util/Half.h": "Half kHalf",
    "c10/util/BFloat16.h": "BFloat16",
    "c10/util/complex.h": "complex",
    "ATen/core/TensorAccessor.h": "PackedTensorAccessor PackedTensorAccessor32 PackedTensorAccessor64 TensorAccessor "
    "GenericPackedTensorAccessor RestrictPtrTraits DefaultPtrTraits",
    "ATen/AccumulateType.h": "acc_type acc_type_device",
    "ATen/NumericUtils.h": "_isnan",
}
_TORCH_MACRO = re.compile(r"(C10|AT|TORCH|CUDA_KERNEL)_[A-Z0-9_]+$")


def render_device(
    split: CudaSource, source: str, first_line: int, instantiations: Iterable[str], headers: Iterable[str] = ()
) -> str:
    """The device unit of `split`; `instantiations` as from `explicit_instantiation`. Raises SplitRefused.

    headers: to include besides those of which the device code names something that is known to need them.
    """
    roles = Roles(split)
    lines = list(instantiations)
    words = set(roles.device_words)
    for line in lines:
        words |= identifiers(line)
    body: list[str] = []
    for item in split.items:
        if not roles.on_device(item):
            continue
        text = scope_text(item) if item.kind == "scope_open" else item.text
        if item.kind in ("kernel", "kernel_declaration"):
            text = re.sub(r"\bstatic\b", "", text, count=1) if _static(item.text) else text
        body.append(located(item, text, source, first_line))
    included = [f"#include <{header}>" for header in sorted(headers)]
    return "\n".join([*included, _prelude(words), *body, '#line 1 "instantiations"', *lines]) + "\n"


def _static(text: str) -> bool:
    return bool(re.match(r"[^({]*\bstatic\b", text))


def _prelude(words: set[str]) -> str:
    includes = [f"#include <{header}>" for header, names in _STANDARD.items() if words & set(names.split())]
    if "std" in words and words & {"min", "max", "swap", "clamp"}:
        includes.append("#include <algorithm>")
    if "std" in words:
        includes.append("#include <cmath>")
    includes += [f"#include <{header}>" for header, part in _CUDA.items() if any(part in word for word in words)]
    macros = {word for word in words if _TORCH_MACRO.match(word)}
    if words & TORCH_ROOTS or macros:
        includes.append("#include <c10/macros/Macros.h>")
        includes += [f"#include <{header}>" for header, names in _C10.items() if words & set(names.split())]
        includes.append("namespace at {}\nnamespace torch { using namespace at; }")
    return "\n".join(dict.fromkeys(includes))


def explicit_instantiation(demangled: str) -> str:
    """`template __global__ void k<float>(float*, int);` from a demangled stub symbol. Raises SplitRefused."""
    if "{" in demangled or "(anonymous" in demangled or "'lambda" in demangled:
        raise SplitRefused("a kernel template with an argument that has no name")
    # c++filt writes a function given as template argument with its parameters: k<&(op(float))>
    plain = re.sub(r"&\(([\w:]+)\((?:[^()]|\([^()]*\))*\)\)", r"&\1", demangled)
    return f"template __global__ {plain};"
