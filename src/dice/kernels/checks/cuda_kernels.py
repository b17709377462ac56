"""What the checks ask of a CUDA source: its kernels, and the libraries that it calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import Function
from dice.kernels.source.lexer import Token, words

_LIBRARIES = ("cublas", "cudnn", "cusparse", "cusolver", "cufft", "cutensor")
_LIBRARY_PLUMBING = ("Create", "Destroy", "Set", "Get", "Init")
_ATEN_COMPUTE = words("""
    matmul mm bmm addmm baddbmm linear einsum conv1d conv2d conv3d convolution cudnn_convolution softmax log_softmax
    relu gelu silu sigmoid tanh layer_norm batch_norm group_norm instance_norm max_pool2d avg_pool2d
    adaptive_avg_pool2d scaled_dot_product_attention conv_transpose1d conv_transpose2d conv_transpose3d cumsum
    native_layer_norm native_batch_norm logsumexp
    """)


def line_of(source: CudaSource, token: Token) -> str:
    """`C++ line N: text`, for a finding's evidence."""
    return f"C++ line {source.line(token.start)}: {source.line_text(token.start)[:200]}"


def kernel_names(source: CudaSource) -> list[str]:
    """Names of the kernels that are defined; `macro NAME` for a macro that may define any number of them."""
    return [*(kernel.name for kernel in source.kernels), *(f"macro {name}" for name in kernel_macros(source))]


def kernel_macros(source: CudaSource) -> list[str]:
    """Macros whose text makes a function a kernel."""
    return [name for name, text in source.macros.items() if re.search(r"\b__global__\b", text)]


def pointers_of(kernel: Function, body: Sequence[Token]) -> frozenset[str]:
    """Names of the parameters by which a kernel reads and writes memory: pointers, and objects (accessors, structures,
    references) that its body indexes, calls or takes a member of."""
    used = {token.text for token, behind in pairwise(body) if behind.text in ("[", "(", ".")}
    return frozenset(p.name for p in kernel.parameters if p.name and ("*" in p.type or p.name in used))


def has_device_lambda(source: CudaSource) -> bool:
    """A `__device__` lambda or functor: custom device code that a library launches."""
    return any(
        "__device__" in function.specifiers and (not function.name or function.name.startswith("operator"))
        for function in source.functions
    )


_FUNCTOR_LAUNCHERS = re.compile(
    r"(?>\w*?gpu_)\w+?_kernel\w*|\w*gpu_kernel\w*|CUDA_tensor_apply\d|multi_tensor_apply\w*"
)
"""Templates of PyTorch's headers that launch what they are given (ATen/native/cuda/Loops.cuh and its neighbours)."""


def launched_functors(units: Sequence[CudaSource]) -> bool:
    """Whether a library launches functors or `__device__` lambdas of the sources: PyTorch's templates are called for it, or
    no kernel stands in any source. Otherwise they are arguments of the source's own kernels."""
    if not any(has_device_lambda(unit) for unit in units):
        return False
    return not any(kernel_names(unit) for unit in units) or any(map(_calls_launchers, units))


def _calls_launchers(source: CudaSource) -> bool:
    own = {function.name for function in source.functions}
    return any(
        token.kind == "identifier"
        and behind.text in ("(", "<")
        and token.text not in own
        and _FUNCTOR_LAUNCHERS.fullmatch(token.text)
        for token, behind in pairwise(source.tokens)
    )


_OF_A_DEVICE = ("Device", "Dispatch")
"""What names of CUB's begin with that the host calls; kernels of the candidate's own call the others."""


def library_calls(source: CudaSource) -> list[str]:
    """Calls of CUDA libraries (cuBLAS, cuDNN, CUB, Thrust, ...): written against CUDA, not against PyTorch."""
    return [name for _, name in library_places(source.tokens)]


def library_places(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Calls of CUDA libraries, each with the place of its token."""
    for index, token in enumerate(tokens[:-1]):
        following = tokens[index + 1].text
        if token.text in ("cub", "thrust", "cutlass") and following == "::" and index + 2 < len(tokens):
            name = tokens[index + 2].text
            if token.text != "cub" or name.startswith(_OF_A_DEVICE):
                yield index, f"{token.text}::{name}"
        elif (
            token.kind == "identifier"
            and token.text.startswith(_LIBRARIES)
            and following in ("(", "<")
            and not any(part in token.text for part in _LIBRARY_PLUMBING)
        ):
            yield index, token.text


def aten_calls(source: CudaSource) -> list[str]:
    """ATen operators that compute, called from C++: PyTorch in another spelling."""
    found: list[str] = []
    tokens = source.tokens
    for index, token in enumerate(tokens[:-1]):
        owner = tokens[index - 2].text if index >= 2 and tokens[index - 1].text == "::" else ""
        if (
            token.text in _ATEN_COMPUTE
            and owner in ("at", "torch", "F", "functional")
            and tokens[index + 1].text == "("
        ):
            found.append(f"{owner}::{token.text}")
    return found


def callable_names(units: Iterable[CudaSource]) -> set[str] | None:
    """Names of functions that the sources write, in assembler too; None where they may spell others, by a macro that joins
    words or by an escape."""
    names: set[str] = set()
    for unit in units:
        pieces: list[str] = []  # strings that stand side by side are one
        for token in unit.tokens:
            if token.kind == "directive":
                names |= set(re.findall(r"\w+", token.text))
                if "##" in token.text or "%:%:" in token.text:
                    return None
            pieces.append(token.text[1:-1] if token.kind == "string" else " ")
            names.add(token.text)
        if names & {"asm", "__asm", "__asm__"}:
            strings = "".join(pieces)
            if re.search(r"\\[xuU0-7]", strings):
                return None
            names |= set(re.findall(r"\w+", strings))
    return names
