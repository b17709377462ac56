"""Which C++ of the host reads numbers of a tensor: what `dice.kernels.checks.numbers_read` finds in Python."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set

from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import Function
from dice.kernels.source.lexer import Token, partner, words

OWNERS = words("at torch F functional native cpu cuda")
"""Namespaces of PyTorch's functions."""
_READS = words("item equal allclose is_nonzero _local_scalar_dense")
"""Methods and functions of PyTorch's that bring what values say to the host."""
_POINTERS = words("data_ptr const_data_ptr mutable_data_ptr accessor")
"""Methods that give what memory of a tensor is indexed by."""
_BY_POINTER = words(
    "memcpy memcmp accumulate reduce transform_reduce inner_product any_of all_of none_of count count_if find find_if equal "
    "mismatch max_element min_element minmax_element copy copy_n for_each for_each_n"
)
"""Functions of the standard library that read what pointers point to."""
_BEFORE_STAR = words("( = , return { ; ! && || + - < > ? : [ *")
"""Tokens behind which `*` reads from a pointer."""
_NO_NUMBERS = words("void* char* void char")
"""Types of which a pointer points to no numbers of a tensor."""
_FAR = 60
"""Tokens of an expression that are looked at."""
_ROUNDS = 6
"""Calls by which a reading is followed."""
_NESTING = 20
"""All lambdas that are bound have at most so many times the source's tokens: those in others count again."""


def readers(source: CudaSource) -> set[str]:
    """The host functions that read numbers of a tensor and return something else than tensors, by the names that C++ and
    Python have for them."""
    hosts = {function.name: function for function in source.outer_functions if source.runs_on_host(function)}
    asking = {name: each for name, each in hosts.items() if each.return_type and _returns_numbers(each)}
    found: set[str] = set()
    for _ in range(_ROUNDS):
        more = {name for name, each in asking.items() if name not in found and _body_reads(source, each, found)}
        if not more:
            break
        found |= more
    return found | set(_bound(source, found))


def writers(source: CudaSource) -> set[str]:
    """The host functions that return tensors, or nothing but what they write to those that they are given."""
    hosts = (function for function in source.outer_functions if source.runs_on_host(function))
    return {function.name for function in hosts if function.return_type and not _returns_numbers(function)}


def reads(tokens: Sequence[Token], names: Set[str], pointers: Set[str] = frozenset()) -> bool:
    """Whether tokens read numbers of a tensor, or name one of `names`, which hold them. pointers: variables that point to
    some."""
    texts = [token.text for token in tokens]
    for index, token in enumerate(tokens):
        if token.kind != "identifier":
            continue
        before = ["", "", "", *texts[max(0, index - 3) : index]]
        if before[-1] == "template":
            before.pop()
        owner, joint = before[-2:]
        if token.text in names and joint not in (".", "->"):
            return True
        of_pytorch = joint in (".", "->") or (joint == "::" and owner in OWNERS)
        if token.text in _READS and texts[index + 1 : index + 2] in (["<"], ["("]) and of_pytorch:
            return True
        if token.text in _POINTERS and _is_indexed(texts[index : index + 12]):
            return True
        if token.text in pointers and joint not in (".", "->", "::") and _is_followed(tokens, texts, index):
            return True
    return False


def pointers_of(body: Sequence[Token], function: Function | None = None) -> set[str]:
    """Variables that point to numbers of a tensor: pointers that a function is given, and what `data_ptr` gives."""
    given = function.parameters if function is not None else ()
    found = {one.name for one in given if one.name and "*" in one.type and not _NO_NUMBERS & set(one.type.split())}
    begin = 0
    for index, token in enumerate(body):
        if token.text in (";", "{", "}"):
            texts = [item.text for item in body[begin:index]]
            place = texts.index("=", 1) if "=" in texts[1:] else 0
            if place and (_POINTERS | found) & set(texts[place:]) and not _is_indexed(texts[place:]):
                found.add(texts[place - 1])
            begin = index + 1
    return found


def copied(body: Sequence[Token]) -> set[str]:
    """Variables that a copy from the device fills: `cudaMemcpy(&first, x.data_ptr(), 4, cudaMemcpyDeviceToHost)`."""
    texts = [token.text for token in body]
    commas = [index for index, text in enumerate(texts) if text == ","]
    found: set[str] = set()
    for index, text in enumerate(texts):
        if text in ("cudaMemcpy", "cudaMemcpyAsync") and "cudaMemcpyDeviceToHost" in texts[index : index + _FAR]:
            begin = index + 2
            place = bisect_left(commas, begin)
            end = commas[place] if place < len(commas) else begin
            found.update(token.text for token in body[begin:end][:2] if token.kind == "identifier")
    return found


def _returns_numbers(function: Function) -> bool:
    return "Tensor" not in function.return_type + function.suffix and function.return_type != "void"


def _body_reads(source: CudaSource, function: Function, found: Set[str]) -> bool:
    body = source.body(function)
    return bool(copied(body)) or reads(body, found, pointers_of(body, function))


def _bound(source: CudaSource, found: Set[str]) -> Iterator[str]:
    """Names that Python has for readers: `m.def("odd", &is_odd)`, also of lambdas that read themselves."""
    tokens = source.tokens
    lambdas: Mapping[int, Function] = {each.first: each for each in source.functions if not each.name}
    named = [index for index, token in enumerate(tokens) if token.text in found]
    left = _NESTING * len(tokens)
    for index, token in enumerate(tokens[:-3]):
        if token.text not in ("def", "impl") or tokens[index + 1].text != "(" or tokens[index + 2].kind != "string":
            continue
        name = tokens[index + 2].text.strip('"').partition("(")[0]
        own = lambdas.get(index + 4)
        left -= own.last - own.brace if own is not None else 0
        if left < 0:
            return
        end = partner(tokens, index + 1) or index
        if (own is not None and _returns_numbers(own) and _body_reads(source, own, found)) or (
            own is None and bisect_left(named, index + 3) < bisect_left(named, end)
        ):
            yield name


def _is_indexed(texts: Sequence[str]) -> bool:
    """Whether tokens begin with `data_ptr<float>()[`: one number, read by the host."""
    return ")" in texts and [*texts[texts.index(")") + 1 :]][:1] == ["["]


def _is_followed(tokens: Sequence[Token], texts: Sequence[str], index: int) -> bool:
    """Whether what the pointer at `index` points to is read: `p[0]`, `*p`, `std::any_of(p, p + 4, ...)`."""
    if texts[index + 1 : index + 2] == ["["]:
        closing = partner(tokens, index + 1)
        return closing is None or [*texts[closing + 1 : closing + 2]] != ["="]
    opening = index - 1
    while opening > 0 and texts[opening] == "(":
        opening -= 1
    if texts[opening : opening + 1] == ["*"] and (opening == 0 or texts[opening - 1] in _BEFORE_STAR):
        return [*texts[index + 1 : index + 2]] != ["="]
    return bool(_BY_POINTER.intersection(texts[max(0, index - _FAR // 4) : index]))
