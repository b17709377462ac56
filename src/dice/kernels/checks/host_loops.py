"""C++ that computes on the host what a kernel should compute: loops over the values of a floating-point tensor.

Allowed on the host: reading integers (lengths, offsets, shapes), writing tables, changing the layout of weights, and passing
addresses on (`&p[i]`, `cudaMemcpyToSymbol(constants, p, bytes)`).
"""

from __future__ import annotations

from collections.abc import Iterator

from dice.kernels.checks.cuda_kernels import CudaSource
from dice.kernels.checks.python_source import words
from dice.kernels.source.lexer import SplitRefused, Token, matching, split_commas

_POINTERS = words("data_ptr const_data_ptr mutable_data_ptr accessor")
_FLOATING = words("float double Half BFloat16 scalar_t __half half __nv_bfloat16 T")
_ALGORITHMS = words(
    "transform accumulate for_each inner_product reduce transform_reduce partial_sum inclusive_scan exclusive_scan sort "
    "max_element min_element replace_if"
)
_VALUE_BEFORE = words("= += -= *= ( + - , return")
_LOOPS = words("for while do")


def host_loops(source: CudaSource) -> Iterator[Token]:
    """Tokens with which host code reads floating-point values of a tensor in a loop, or passes them to an algorithm."""
    tokens = source.tokens
    hosts = {name: (start, end) for name, start, end in source.functions if _is_host(tokens, start)}
    given = {name for start, end in hosts.values() for name in _given_values(tokens[start:end]) & hosts.keys()}
    for name, (start, end) in hosts.items():
        brace = matching(tokens, start + 1) + 1
        parameters = split_commas(tokens[start + 2 : brace - 1])
        body = tokens[brace : end + 1]
        values = _values_of(body, {group[-1].text for group in parameters if "Tensor" in {item.text for item in group}})
        if name in given:
            values |= {group[-1].text for group in parameters if _is_floating_pointer(group)}
        yield from _reads(body, values)


def _is_host(tokens: list[Token], start: int) -> bool:
    """Whether the function whose name is tokens[start] runs on the host."""
    before: set[str] = set()
    for token in reversed(tokens[max(0, start - 40) : start]):
        if token.text in (";", "}", "{"):
            break
        before.add(token.text)
    return "__host__" in before or not before & {"__global__", "__device__"}


def _is_floating_pointer(group: list[Token]) -> bool:
    texts = {item.text for item in group}
    return "*" in texts and bool(texts & _FLOATING)


def _given_values(function: list[Token]) -> set[str]:
    """What a function calls with a tensor's data, or with something of that kind that it holds."""
    values = _POINTERS | _values_of(function, set())
    given: set[str] = set()
    for index in range(1, len(function) - 1):
        if function[index + 1].text == "(":
            try:
                arguments = {token.text for token in function[index + 2 : matching(function, index + 1)]}
            except SplitRefused:
                continue
            if arguments & values:
                given.add(function[index].text)
    return given


def _values_of(body: list[Token], tensors: set[str]) -> set[str]:
    """Variables that give access to floating-point values of tensors: pointers, accessors, and copies on the host.

    tensors: names of the function's tensor arguments. Tensors made by `.cpu()` and similar calls are found here.
    """
    tensors = set(tensors)
    values: set[str] = set()
    for statement in _statements(body):
        texts = [token.text for token in statement]
        if "cudaMemcpyDeviceToHost" in texts and "(" in texts:
            copied = texts[texts.index("(") + 1 :]
            name = next((text for text in copied if text.isidentifier()), "")
            values |= {name} if _is_declared_floating(body, name) else set()
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
        and (value[i + 1 : i + 3] == ["cpu", "("] or (value[i + 1 : i + 2] == ["to"] and _names_host(value[i:])))
        for i, text in enumerate(value)
    )


def _names_host(call: list[str]) -> bool:
    return bool({"kCPU", '"cpu"', "CPU"} & set(call[:14]))


def _is_declared_floating(body: list[Token], name: str) -> bool:
    first = next((index for index, token in enumerate(body) if token.text == name), 0)
    return bool({token.text for token in body[max(0, first - 5) : first]} & _FLOATING)


def _statements(body: list[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in body:
        if token.text in (";", "{", "}"):
            yield statement
            statement = []
        else:
            statement.append(token)


def _reads(body: list[Token], values: set[str]) -> Iterator[Token]:
    for start, end in _spans(body):
        for index in range(start, end):
            token = body[index]
            if (
                token.text in values
                and index
                and body[index - 1].text not in ("&", ".", "->")
                and _is_read(body, index)
            ):
                yield token
    for index, token in enumerate(body[:-1]):
        if token.text in _ALGORITHMS and body[index - 1].text == "::" and body[index - 2].text == "std":
            closing = matching(body, index + 1) if body[index + 1].text == "(" else index
            if any(item.text in values for item in body[index:closing]):
                yield token


def _spans(body: list[Token]) -> Iterator[tuple[int, int]]:
    """Loops, each from its keyword to the end of its body."""
    for index, token in enumerate(body[:-1]):
        if token.kind == "identifier" and token.text in _LOOPS:
            try:
                after = matching(body, index + 1) + 1 if body[index + 1].text == "(" else index + 1
                braced = after < len(body) and body[after].text == "{"
                end = matching(body, after) if braced else _semicolon(body, after)
            except SplitRefused:
                continue
            yield index, end


def _semicolon(body: list[Token], start: int) -> int:
    """Index of the `;` that ends the statement at `start`; a block that belongs to it (`if (...) {...}`) is skipped."""
    depth = 0
    for index in range(start, len(body)):
        depth += body[index].text in ("(", "{", "[")
        depth -= body[index].text in (")", "}", "]")
        if depth <= 0 and body[index].text in (";", "}"):
            return index
    return len(body)


def _is_read(body: list[Token], index: int) -> bool:
    """Whether `p[i]` (or `a[i][j]`, `*p`) is used for its value. Not so: a store, or a change of layout, `q[j] = p[i];`."""
    after = index + 1
    while after < len(body) and body[after].text == "[":
        after = matching(body, after) + 1
    if after == index + 1:  # `*p` is a value where no type or number stands before it
        return body[index - 1].text == "*" and body[index - 2].text in _VALUE_BEFORE
    following = body[after].text if after < len(body) else ""
    copied = [body[index - 2].text, body[index - 1].text, following] == ["]", "=", ";"]
    return following != "=" and not copied
