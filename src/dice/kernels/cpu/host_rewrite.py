"""Host code of an extension for the CPU back end: questions whether a tensor is on the GPU are answered with yes.

Tensors are on the CPU there, so `x.is_cuda()` becomes `x.is_cpu()`, `torch::kCUDA` becomes `torch::kCPU`, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dice.kernels.cpu.edits import Edits
from dice.kernels.source.lexer import Token, read_tokens, tokenize

_CUDA_LITERAL = re.compile(r'^"cuda(:\d+)?"$')


def rewrite_host(text: str) -> str:
    """Rewrite C++ without kernels (`cpp_sources`)."""
    edits = Edits(text)
    edit_device_queries(tokenize(text), edits)
    return edits.apply()


def edit_device_queries(tokens: Sequence[Token], edits: Edits) -> None:
    """Rewrite host code that asks for a tensor's device or moves it to the GPU, so that it behaves as on a GPU."""
    for token in tokens:
        if token.kind == "directive" and "define" in token.text:
            edit_device_queries(read_tokens(token.text, directives=False, offset=token.start), edits)
    have_cpu = _registered_for_cpu(tokens)
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else ""
        following = [t.text for t in tokens[i + 1 : i + 5]]
        member = before in (".", "->")
        replacement = None
        if member and following[:1] == ["("]:
            # is_xla and is_meta are false for every tensor here; as an index that is device 0.
            simple = {"is_cuda": "is_cpu", "is_cpu": "is_xla", "get_device": "is_meta", "is_pinned": "is_meta"}
            replacement = simple.get(token.text)
            if token.text == "type" and [t.text for t in tokens[i + 2 : i + 5]] == [")", ".", "is_cuda"]:
                replacement = "device"
            if token.text == "cuda":
                replacement = "to"
                edits.insert(tokens[i + 1].end, "::at::kCPU" if following[1:2] == [")"] else "::at::kCPU, ")
            elif token.text == "index" and [t.text for t in tokens[max(i - 4, 0) : i - 1]] == ["device", "(", ")"]:
                replacement = "is_meta"
            elif token.text == "pin_memory":
                replacement = "contiguous"
        elif token.text == "kCUDA" and token.kind == "identifier":
            replacement = "kCPU"
        elif (
            token.text == "CUDA"
            and before == "::"
            and i >= 2
            and tokens[i - 2].text in ("DeviceType", "Backend", "DispatchKey")
        ) or (token.text == "CUDA" and _registers(tokens, i) and tokens[i - 2].text not in have_cpu):
            replacement = "CPU"
        elif token.kind == "string" and _CUDA_LITERAL.match(token.text) and not _is_binding(tokens, i):
            replacement = '"cpu"'
        elif token.text == "torch" and following[:3] == ["::", "cuda", "::"]:
            edits.replace(token.start, tokens[i + 2].end, "dice_cpu::torch_cuda")
        if replacement is not None:
            edits.replace(token.start, token.end, replacement)


def _is_binding(tokens: Sequence[Token], i: int) -> bool:
    """Whether tokens[i] is the name in `m.def("name", &function)`."""
    return [t.text for t in tokens[max(i - 2, 0) : i]] == ["def", "("]


def _registers(tokens: Sequence[Token], i: int) -> bool:
    """Whether tokens[i] is the dispatch key of `TORCH_LIBRARY_IMPL(library, key, m)`."""
    head = [t.text for t in tokens[max(i - 4, 0) : i]]
    return head[:2] == ["TORCH_LIBRARY_IMPL", "("] and head[3:] == [","]


def _registered_for_cpu(tokens: Sequence[Token]) -> set[str]:
    """Libraries whose operators have a CPU version in the source, beside the one for CUDA."""
    heads = (
        [t.text for t in tokens[i : i + 5]] for i, token in enumerate(tokens) if token.text == "TORCH_LIBRARY_IMPL"
    )
    return {head[2] for head in heads if head[1:2] + head[3:] == ["(", ",", "CPU"]}
