"""Broken kernels made from good ones: one small change to a request, of a named kind.

Most of them cannot compile; some still do (a dropped include that nothing needed). What PyTorch's own build says is the
truth either way.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

from dice.kernels.records.extension import ExtensionRequest
from dice.kernels.source.cuda_source import split_source
from dice.kernels.source.items import Item, ItemKind
from dice.kernels.source.lexer import SplitRefused, tokenize

Mutator = Callable[[ExtensionRequest, random.Random], ExtensionRequest | None]
_MISSPELLED = {"return": "retrun", "float": "flot", "const": "cosnt", "int": "itn", "for": "fro", "auto": "atuo"}


def mutants(requests: list[ExtensionRequest], count: int, seed: int) -> Iterator[tuple[str, ExtensionRequest]]:
    """`count` (kind, broken request) pairs; the kinds take turns, the kernels are drawn at random."""
    draw = random.Random(seed)
    kinds = list(MUTATORS)
    made = 0
    for turn in range(count * 50):
        if made == count:
            return
        kind = kinds[turn % len(kinds)]
        try:
            changed = MUTATORS[kind](draw.choice(requests), draw)
        except SplitRefused:
            continue
        if changed is not None:
            made += 1
            yield kind, changed


def _cuda(request: ExtensionRequest, text: str) -> ExtensionRequest:
    return request.model_copy(update={"cuda_sources": (text,)})


def _cpp(request: ExtensionRequest, text: str) -> ExtensionRequest:
    return request.model_copy(update={"cpp_sources": (text,)})


def _text(request: ExtensionRequest) -> str:
    return "\n".join(request.cuda_sources)


def _item(request: ExtensionRequest, draw: random.Random, *kinds: ItemKind) -> Item | None:
    found = [
        item
        for item in split_source(_text(request)).of_kind(*kinds)
        if item.function is None or item.function.is_defined
    ]
    return draw.choice(found) if found else None


def _edit(request: ExtensionRequest, start: int, end: int, new: str) -> ExtensionRequest:
    text = _text(request)
    return _cuda(request, text[:start] + new + text[end:])


def _drop(token: str, *kinds: ItemKind) -> Mutator:
    """Remove one `token` from the body of an item."""

    def mutate(request: ExtensionRequest, draw: random.Random) -> ExtensionRequest | None:
        item = _item(request, draw, *kinds)
        if item is None:
            return None
        places = [t for t in tokenize(item.text) if t.text == token]
        if not places:
            return None
        place = draw.choice(places)
        return _edit(request, item.start + place.start, item.start + place.end, "")

    return mutate


def _replace(pattern: str, new: str, *kinds: ItemKind) -> Mutator:
    """Replace one match of `pattern` in an item (in the whole .cu without kinds)."""

    def mutate(request: ExtensionRequest, draw: random.Random) -> ExtensionRequest | None:
        item = _item(request, draw, *kinds) if kinds else None
        if kinds and item is None:
            return None
        text = item.text if item is not None else _text(request)
        places = list(re.finditer(pattern, text))
        if not places:
            return None
        match = draw.choice(places)
        offset = item.start if item is not None else 0
        return _edit(request, offset + match.start(), offset + match.end(), match.expand(new))

    return mutate


def _rename(*kinds: ItemKind) -> Mutator:
    """Change one use of a name that is used more than once."""

    def mutate(request: ExtensionRequest, draw: random.Random) -> ExtensionRequest | None:
        item = _item(request, draw, *kinds)
        if item is None or item.function is None:
            return None
        names = [t for t in tokenize(item.text) if t.kind == "identifier" and t.start > len(item.function.head)]
        often = [t for t in names if sum(t.text == other.text for other in names) > 1 and t.text not in _MISSPELLED]
        if not often:
            return None
        place = draw.choice(often)
        return _edit(request, item.start + place.start, item.start + place.end, f"{place.text}_x")

    return mutate


def _misspell(*kinds: ItemKind) -> Mutator:
    def mutate(request: ExtensionRequest, draw: random.Random) -> ExtensionRequest | None:
        item = _item(request, draw, *kinds)
        places = [t for t in tokenize(item.text) if t.text in _MISSPELLED] if item is not None else []
        if item is None or not places:
            return None
        place = draw.choice(places)
        return _edit(request, item.start + place.start, item.start + place.end, _MISSPELLED[place.text])

    return mutate


def _insert(statement: str, *kinds: ItemKind) -> Mutator:
    """Put a statement at the beginning of a body."""

    def mutate(request: ExtensionRequest, draw: random.Random) -> ExtensionRequest | None:
        item = _item(request, draw, *kinds)
        if item is None or item.function is None:
            return None
        place = item.function.body_start + 1
        return _edit(request, place, place, f"\n    {statement}")

    return mutate


def _declaration(change: Callable[[str, str], str]) -> Mutator:
    """Change the C++ source: `change(text, name of a bound function)`."""

    def mutate(request: ExtensionRequest, draw: random.Random) -> ExtensionRequest | None:
        text = "\n".join(request.cpp_sources)
        names = [name for name, _ in request.functions or () if re.search(rf"\b{name}\s*\(", text)]
        changed = change(text, draw.choice(names)) if names else text
        return _cpp(request, changed) if changed != text else None

    return mutate


def _functions(
    change: Callable[[tuple[tuple[str, str], ...], ExtensionRequest], tuple[tuple[str, str], ...]],
) -> Mutator:
    def mutate(request: ExtensionRequest, _: random.Random) -> ExtensionRequest | None:
        if not request.functions:
            return None
        changed = change(request.functions, request)
        return request.model_copy(update={"functions": changed}) if changed != request.functions else None

    return mutate


def _name_kernel(functions: tuple[tuple[str, str], ...], request: ExtensionRequest) -> tuple[tuple[str, str], ...]:
    kernels = split_source(_text(request)).kernels
    return (*functions, (kernels[0].name, kernels[0].name)) if kernels else functions


def _fewer_arguments(request: ExtensionRequest, draw: random.Random) -> ExtensionRequest | None:
    text = _text(request)
    places = list(re.finditer(r">>>\s*\(([^(),;]+),", text))
    if not places:
        return None
    match = draw.choice(places)
    return _edit(request, match.start(1), match.end(), "")


def _duplicate(request: ExtensionRequest, draw: random.Random) -> ExtensionRequest | None:
    item = _item(request, draw, "host_function", "kernel")
    return None if item is None or item.namespaces else _edit(request, item.end, item.end, f"\n{item.text}\n")


def _second_module(request: ExtensionRequest, _: random.Random) -> ExtensionRequest | None:
    if not request.functions:
        return None
    module = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.doc() = "twice"; }'
    return _cpp(request, "\n".join([*request.cpp_sources, module]))


def _link_nothing(request: ExtensionRequest, _: random.Random) -> ExtensionRequest | None:
    return request.model_copy(update={"extra_ldflags": (*request.extra_ldflags, "-lno_such_library_anywhere")})


def _old_standard(request: ExtensionRequest, _: random.Random) -> ExtensionRequest | None:
    return request.model_copy(update={"extra_cuda_cflags": (*request.extra_cuda_cflags, "-std=c++14")})


_DEVICE: tuple[ItemKind, ...] = ("kernel", "device_function")
_HOST: tuple[ItemKind, ...] = ("host_function",)
MUTATORS: dict[str, Mutator] = {
    "device: dropped semicolon": _drop(";", *_DEVICE),
    "device: dropped closing brace": _drop("}", *_DEVICE),
    "device: dropped parenthesis": _drop(")", *_DEVICE),
    "device: renamed use": _rename(*_DEVICE),
    "device: misspelled keyword": _misspell(*_DEVICE),
    "device: text in a float": _insert('float wrong = "text";', *_DEVICE),
    "device: unknown function": _insert("float wrong = no_such_function(1.0f);", *_DEVICE),
    "device: unknown type": _insert("floaty wrong;", *_DEVICE),
    "device: assignment to a constant": _insert("const int fixed = 1; fixed = 2;", *_DEVICE),
    "device: too much shared memory": _insert(
        "__shared__ double wide[100000]; wide[threadIdx.x] = 1; wide[1] += wide[2];", "kernel"
    ),
    "device: wrong arguments of an intrinsic": _insert("__syncthreads(1, 2);", "kernel"),
    "device: std::vector": _insert("std::vector<float> v; v.push_back(1.0f);", "kernel"),
    "device: tensor in a kernel": _insert("auto t = torch::zeros({1});", "kernel"),
    "device: undeclared count": _insert("int total = count + 1;", *_DEVICE),
    "kernel: returns a value": _replace(r"\bvoid\b", "int", "kernel"),
    "kernel: no return type": _replace(r"\bvoid\b", "", "kernel"),
    "kernel: misspelled __global__": _replace(r"__global__", "__globl__", "kernel"),
    "kernel: unknown parameter type": _replace(r"\bconst float\s*\*", "const flaot*", "kernel"),
    "host: dropped semicolon": _drop(";", *_HOST),
    "host: dropped opening brace": _drop("{", *_HOST),
    "host: dropped closing brace": _drop("}", *_HOST),
    "host: renamed use": _rename(*_HOST),
    "host: misspelled keyword": _misspell(*_HOST),
    "host: unknown method": _replace(r"\.size\(", ".sizee(", *_HOST),
    "host: unknown element type": _replace(r"data_ptr<float>", "data_ptr<floaty>", *_HOST),
    "host: unknown namespace": _replace(r"\btorch::", "torhc::", *_HOST),
    "host: unknown torch function": _replace(r"\btorch::(empty|zeros)(\w*)", r"torch::\1\2_of", *_HOST),
    "host: wrong return": _insert('return "text";', *_HOST),
    "host: no return type": _replace(r"^\s*(?:static\s+|inline\s+)*torch::Tensor\s+(?=\w+\s*\()", "", *_HOST),
    "host: unterminated string": _insert('printf("text);', *_HOST),
    "host: undeclared stream": _insert("cudaStream_t stream0 = at::cuda::getNoSuchStream();", *_HOST),
    "host: device function called": _insert("__syncthreads();", *_HOST),
    "host: narrowing": _insert("double wide = 1.5; int narrow{wide}; (void)narrow;", *_HOST),
    "launch: one configuration value": _replace(r"<<<\s*([^,<>]+),[^<>;]*>>>", r"<<<\1>>>"),
    "launch: open brackets": _replace(r">>>", ">>"),
    "launch: no configuration": _replace(r"<<<[^<>;]*>>>", ""),
    "launch: an argument too few": _fewer_arguments,
    "launch: unknown kernel": _replace(r"(\w+)<<<", r"\1_missing<<<"),
    "launch: unknown template argument": _replace(r"(\w+)\s*<<<", r"\1<floaty><<<"),
    "file: function defined twice": _duplicate,
    "file: unknown header": _replace(r"#include\s*<torch/extension\.h>", "#include <torch/no_such_header.h>"),
    "file: closing brace at the end": _replace(r"\Z", "\n}\n"),
    "file: #if without #endif": _replace(r"\A", "#if 1\n"),
    "cpp: missing declaration": _declaration(
        lambda text, name: re.sub(rf"[^;]*\b{name}\s*\([^;]*\);", "", text, count=1)
    ),
    "cpp: unknown type": _declaration(lambda text, _: text.replace("torch::Tensor", "torch::Tenzor", 1)),
    "cpp: dropped semicolon": _declaration(
        lambda text, name: re.sub(rf"(\b{name}\s*\([^;]*\));", r"\1", text, count=1)
    ),
    "cpp: misspelled name": _declaration(lambda text, name: re.sub(rf"\b{name}\b", f"{name}s", text, count=1)),
    "cpp: kernel launch": _declaration(lambda text, name: f"{text}\nvoid launch_it() {{ {name}<<<1, 2>>>(); }}"),
    "functions: a name too many": _functions(lambda functions, _: (*functions, ("no_such_function", "doc"))),
    "functions: a kernel": _functions(_name_kernel),
    "module: PYBIND11_MODULE and functions": _second_module,
    "flags: unknown library": _link_nothing,
    "flags: C++14": _old_standard,
    "device: half without its header": _insert("half h = __float2half(1.0f); (void)h;", *_DEVICE),
    "device: half arithmetic": _insert("half a = __float2half(1.0f); half b = a + a; (void)b;", *_DEVICE),
    "device: bfloat16 without its header": _insert("__nv_bfloat16 b = __float2bfloat16(1.0f); (void)b;", *_DEVICE),
    "device: unknown template": _insert("float wrong = no_such_template<float>(1.0f);", *_DEVICE),
    "device: unknown member of std": _insert("float wrong = std::no_such(1.0f);", *_DEVICE),
    "device: wrong type": _insert("float* wrong = 1.0f;", *_DEVICE),
    "device: function of PyTorch": _insert("int q = at::ceil_div(10, 3); (void)q;", *_DEVICE),
    "device: narrowing of a constant": _insert("float f{1e300}; (void)f;", *_DEVICE),
    "host: narrowing of a constant": _insert("float f{1e300}; (void)f;", *_HOST),
    "host: sizes that narrow": _insert("size_t wide = 3; auto z = torch::zeros({wide});", *_HOST),
    "host: stream without its header": _insert("auto s = c10::cuda::getCurrentCUDAStream();", *_HOST),
    "kernel: launch bounds by PyTorch's macro": _replace(
        r"__global__\s+void", "__global__ C10_LAUNCH_BOUNDS_1(1024) void", "kernel"
    ),
    "kernel: launch bounds by an unknown macro": _replace(
        r"__global__\s+void", "__global__ NO_SUCH_BOUNDS(1024) void", "kernel"
    ),
    "file: unknown header of CUDA": _replace(r"\A", "#include <cuda_no_such.h>\n"),
    "file: unknown using-directive": _replace(r"\A", "#include <torch/types.h>\nusing namespace no_such;\n"),
}
