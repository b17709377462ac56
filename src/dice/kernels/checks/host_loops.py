"""C++ that computes on the host what a kernel should compute: loops over the values of a floating-point tensor.

A helper for host and device, a constructor and a method are the host's work where host code gives them such values.
Allowed on the host: reading integers (lengths, offsets, shapes), writing tables, changing the layout of weights, and passing
addresses on (`&p[i]`, `cudaMemcpyToSymbol(constants, p, bytes)`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from itertools import islice, pairwise

from dice.kernels.checks.trip_counts import constants, loop_spans, rounds
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import Function
from dice.kernels.source.lexer import Token, at_commas, partner, words

_POINTERS = words("data_ptr const_data_ptr mutable_data_ptr accessor")
_FLOATING = words("float double Half BFloat16 scalar_t __half half __nv_bfloat16 T")
_ALGORITHMS = words(
    "transform accumulate for_each inner_product reduce transform_reduce partial_sum inclusive_scan exclusive_scan sort "
    "max_element min_element minmax_element nth_element partial_sort stable_sort adjacent_difference replace_if"
)
_VALUE_BEFORE = words("= += -= *= ( + - , return")
_ARITHMETIC = words("+ - * / += -= *= /= < > <= >= == ?")
_KEPT = words("push_back emplace_back emplace insert")
"""Methods that put a value somewhere as it is."""
_HEAD = 12
"""Tokens of a loop's head in which the colon of `for (const auto& v : values)` is looked for."""
_FEW = 64
"""Rounds of a loop whose values are coefficients of a launch, as a filter's are, not its work."""
_FAR = 1000
"""Tokens of a call's arguments that are looked at."""
_LOOKS = 8
"""Times that a function is looked at for what it hands on."""
_FACTORIES = words("empty zeros ones full empty_strided empty_like zeros_like ones_like full_like")


def host_loops(source: CudaSource) -> Iterator[Token]:
    """Tokens with which host code reads floating-point values of a tensor in a loop, or passes them to an algorithm."""
    hosts = [function for function in source.outer_functions if source.runs_on_host(function)]
    given = given_values(source, hosts)
    known = constants(source)
    repeated = {name for function in hosts for name in _called_in_loops(source.body(function))}
    for function in hosts:
        body = source.body(function)
        tensors = {p.name for p in function.parameters if p.name and re.search(r"\bTensor\b", p.type)}
        few = None if function.name in repeated else known
        yield from _reads(body, _values_of(body, tensors, given[function.brace]), few)


def given_values(source: CudaSource, hosts: Sequence[Function]) -> dict[int, set[str]]:
    """Pointers that functions of the host get with a tensor's data, or with something of that kind that their caller holds or
    has got itself: names of parameters, by the index of the function's `{`. Constructors and methods are functions too."""
    named: defaultdict[str, list[Function]] = defaultdict(list)
    for function in hosts:
        named[function.name].append(function)
    calls = {each.brace: [*_calls(source.tokens[each.first : each.last + 1], named)] for each in hosts}
    given: dict[int, set[str]] = {each.brace: set() for each in hosts}
    taken: defaultdict[str, set[int]] = defaultdict(set)
    """Places at which functions of a name get such values, and the most arguments with which they do."""
    longest = Counter[str]()
    looks = Counter[int]()
    waiting = [*reversed(hosts)]
    while waiting:
        caller = waiting.pop()
        looks[caller.brace] += 1
        if not calls[caller.brace] or looks[caller.brace] > _LOOKS:
            continue
        values = _POINTERS | _values_of(source.body(caller), set(), given[caller.brace])
        more: set[str] = set()
        for name, arguments in calls[caller.brace]:
            places = {place for place, argument in enumerate(arguments) if argument & values}
            if places and not (places <= taken[name] and len(arguments) <= longest[name]):
                taken[name] |= places
                longest[name] = max(longest[name], len(arguments))
                more.add(name)
        for name in sorted(more):
            places = taken[name]
            for called in named[name]:
                whole = longest[name] > len(called.parameters)
                fresh = {
                    parameter.name
                    for place, parameter in enumerate(called.parameters)
                    if parameter.name and (whole or place in places) and _is_floating_pointer(parameter.type)
                } - given[called.brace]
                if fresh:
                    given[called.brace] |= fresh
                    waiting.append(called)
    return given


def _calls(tokens: list[Token], named: Container[str]) -> Iterator[tuple[str, list[set[str]]]]:
    """Calls of functions, `f(a, b)`, and objects that a constructor makes, `Type(a)`, `Type name(a)`, `Type<n>{a}`: the name
    and the words of each argument."""
    for index, token in enumerate(tokens[1:], start=1):
        if token.text not in ("(", "{"):
            continue
        places = [_before_list(tokens, index - 1)]
        if tokens[index - 1].kind == "identifier":  # perhaps the name of a variable, behind its type
            places.append(_before_list(tokens, index - 2))
        names = [tokens[place].text for place in places if place >= 0 and tokens[place].text in named]
        closing = partner(tokens, index) if names else None
        if closing is not None:
            arguments = at_commas(tokens[index + 1 : min(closing, index + _FAR)])
            yield names[0], [{each.text for each in argument} for argument in arguments]


def _before_list(tokens: list[Token], index: int) -> int:
    """`index`, or the place before the template list that ends there."""
    return (
        index + tokens[index].reach - 1 if index >= 0 and tokens[index].text == ">" and tokens[index].reach else index
    )


def _is_floating_pointer(kind: str) -> bool:
    return "*" in kind and bool(set(re.findall(r"\w+", kind)) & _FLOATING)


def _values_of(body: list[Token], tensors: set[str], given: Set[str] = frozenset()) -> set[str]:
    """Variables that give access to floating-point values of tensors: pointers, accessors, and copies on the host.

    tensors: names of the function's tensor arguments. Tensors made by `.cpu()` and similar calls are found here, and those
    that are made beside the arguments, since only kernels write them. given: parameters that are such pointers.
    """
    tensors = tensors | _made_beside(body, tensors)
    values = {*given}
    first = {token.text: index for index, token in reversed(list(enumerate(body)))}
    for statement in _statements(body):
        texts = [token.text for token in statement]
        if "cudaMemcpyDeviceToHost" in texts and "(" in texts:
            copied = texts[texts.index("(") + 1 :]
            name = next((text for text in copied if text.isidentifier()), "")
            declared = body[max(0, first.get(name, 0) - 5) : first.get(name, 0)]
            values |= {name} if _FLOATING & {token.text for token in declared} else set()
        for place, text in enumerate(texts[1:-1], start=1):
            if text == "(" and texts[place - 2 : place - 1] == [">"] and texts[place + 1] in values:
                values.add(texts[place - 1])  # std::vector<float> copy(p, p + n)
        if "=" not in texts[1:]:
            continue
        target, value = texts[texts.index("=") - 1], texts[texts.index("=") + 1 :]
        if target == "]" and value[:1] and value[0] in values:
            values.add(_array(texts[: texts.index("=")]))  # q[j] = p[i]: copied, to be read from there
            continue
        reached = bool(set(value) & _POINTERS) and bool(set(texts) & _FLOATING | ({"auto"} & set(texts[:1])))
        typed = [
            value[index + 2] for index, text in enumerate(value[:-2]) if text in _POINTERS and value[index + 1] == "<"
        ]
        whole = any(name.startswith(("int", "long", "uint", "bool", "char")) for name in typed)
        from_tensor = any(name in tensors and value[index + 1 : index + 2] == ["."] for index, name in enumerate(value))
        if reached and not whole and (from_tensor or _moves(value)):
            values.add(target)
        elif _moves(value) or (value[:1] and value[0] in tensors and value[1:2] == ["."]):
            tensors.add(target)
        elif value[:1] and value[0] in values:
            values.add(target)
    return values


def _made_beside(body: list[Token], tensors: set[str]) -> set[str]:
    """Variables that hold new tensors on the device of an argument: `torch::empty({n}, x.options())`, `zeros_like(x)`."""
    found: set[str] = set()
    for index in range(2, len(body) - 1):
        if body[index].text != "(" or body[index - 1].text not in _FACTORIES:
            continue
        closing = partner(body, index)
        if closing is None or closing > index + _FAR:
            continue
        head = index - 1
        while head >= 2 and body[head - 1].text == "::":
            head -= 2
        given = [token.text for token in body[index + 1 : closing]]
        likened = body[index - 1].text.endswith("_like") and given[:1] and given[0] in tensors | found
        optioned = any(given[place : place + 2] == [".", "options"] for place in range(1, len(given))) and bool(
            {name for name, behind in pairwise(given) if behind == "."} & (tensors | found)
        )
        if (likened or optioned) and not _names_host(given) and head >= 2 and body[head - 1].text == "=":
            found.add(body[head - 2].text)
    return found


def _array(target: list[str]) -> str:
    """The name before the brackets that end a list: `q` of `++i ) q [ i ] [ j ]`."""
    depth = 0
    for text in reversed(target):
        depth += (text == "]") - (text == "[")
        if depth == 0 and text != "[":
            return text
    return ""


def _moves(value: list[str]) -> bool:
    """Whether an expression copies a tensor to the host."""
    return any(
        text == "."
        and (
            value[i + 1 : i + 3] == ["cpu", "("] or (value[i + 1 : i + 2] == ["to"] and _names_host(value[i : i + 14]))
        )
        for i, text in enumerate(value)
    )


def _names_host(call: list[str]) -> bool:
    return bool({"kCPU", '"cpu"', "CPU"} & set(call))


def _statements(body: list[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in body:
        if token.text in (";", "{", "}"):
            yield statement
            statement = []
        else:
            statement.append(token)


def _called_in_loops(body: list[Token]) -> set[str]:
    return {
        body[index].text
        for start, end in loop_spans(body)
        for index in range(start, min(end, len(body) - 1))
        if body[index].kind == "identifier" and body[index + 1].text == "("
    }


def _reads(body: list[Token], values: set[str], known: Mapping[str, int] | None) -> Iterator[Token]:
    """known: constants of the source, by which a loop of at most `_FEW` rounds is known; None where the function itself
    runs in a loop."""
    opened = _opened(body)
    for start, end in loop_spans(body):
        times = rounds(body[start:end], known) if known is not None else None
        if times is not None and times <= _FEW:
            continue
        for index in range(max(start, 1), end):
            if body[index].text in values and body[index - 1].text not in ("&", ".", "->") and _is_read(body, index):
                yield body[index]
        yield from _goes_through(body, start, end, values, known, opened)
    sought = [*_sought(body, values)]
    for index, token in enumerate(body[:-1]):
        if token.text in _ALGORITHMS and body[index - 1].text == "::" and body[index - 2].text == "std":
            closing = partner(body, index + 1) if body[index + 1].text == "(" else None
            first, end = bisect_left(sought, (index, 0)), min(closing or index, index + _FAR)
            if any(sure < end for _, sure in sought[first : first + 6]):  # none is surer than six tokens later
                yield token


def _sought(body: list[Token], values: set[str]) -> Iterator[tuple[int, int]]:
    """Where such values are named, each with the place by which that is clear."""
    for index, token in enumerate(body):
        if token.text in values:
            yield index, index
        elif token.text in _POINTERS:
            sure = (end for end in range(index + 3, index + 7) if _is_data(body[index:end]))
            yield from ((index, end - 1) for end in islice(sure, 1))


def _opened(body: list[Token]) -> dict[str, int]:
    """Where each word first stands before a bracket with something in it."""
    places = range(len(body) - 3, -1, -1)
    return {body[index].text: index for index in places if body[index + 1].text in "([{"}


def _goes_through(
    body: list[Token],
    start: int,
    end: int,
    values: set[str],
    known: Mapping[str, int] | None,
    opened: Mapping[str, int],
) -> Iterator[Token]:
    """Where a loop `for (auto& v : values)` computes with `v`, and `values` is not known to be small."""
    texts = [token.text for token in body[start:end]]
    if ":" not in texts[:_HEAD] or not {*texts[texts.index(":") :][:2]} & values:
        return
    item, holder = texts[texts.index(":") - 1], texts[texts.index(":") + 1]
    declared = opened.get(holder)
    size = body[declared + 2].text if declared is not None else ""
    if known is not None and (int(size[:9]) if size.isdecimal() else known.get(size, _FEW + 1)) <= _FEW:
        return
    for index in range(start + texts.index(":") + 2, end):
        beside = {body[index - 1].text, body[index + 1].text if index + 1 < len(body) else ""}
        called = (
            body[index - 1].text == "(" and body[index - 2].kind == "identifier" and body[index - 2].text not in _KEPT
        )
        if body[index].text == item and (beside & _ARITHMETIC or called):
            yield body[index]


def _is_data(tokens: list[Token]) -> bool:
    """Whether tokens begin with `data_ptr<float>`: floating-point values of a tensor without a name of their own."""
    texts = [token.text for token in tokens]
    return texts[0] in _POINTERS and texts[1:2] == ["<"] and bool(set(texts[2:]) & _FLOATING)


def _is_read(body: list[Token], index: int) -> bool:
    """Whether the value of `p[i]` (or `a[i][j]`, `*p`) is used. Writing it, or moving it (`q[j] = p[i];`), is not a use."""
    after = index + 1
    while after < len(body) and body[after].text == "[":
        after = (partner(body, after) or after) + 1
    if after == index + 1:  # `*p` is a value where no type or number stands before it
        return body[index - 1].text == "*" and body[index - 2].text in _VALUE_BEFORE
    following = body[after].text if after < len(body) else ""
    moved = [body[index - 2].text, body[index - 1].text, following] == ["]", "=", ";"]
    return following != "=" and not moved
