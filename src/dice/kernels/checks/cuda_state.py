"""State of C++ code between calls: caches with a tensor's address as key, and counters of calls."""

from __future__ import annotations

from collections.abc import Iterator

from dice.kernels.checks.messages import is_message, replaces_writers
from dice.kernels.checks.rings import only_resets
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import Token, partner, words

_POINTERS = words("data_ptr const_data_ptr mutable_data_ptr unsafeGetTensorImpl storage")
_NULLS = words("nullptr NULL 0")
_COMPARISONS = words("< > <= >= == != %")
_EXPRESSION_ENDS = words("; { } && || ? ,")
_FAR = 200
"""Tokens: no expression is read further."""
_LONG = 2000
"""Tokens: a longer branch does more than upload."""
_UPLOADS = _POINTERS | words(
    "cudaMemcpyToSymbol cudaMemcpyToSymbolAsync cudaGetErrorString printf fprintf if sizeof TORCH_CHECK C10_CUDA_CHECK "
    "AT_CUDA_CHECK CUDA_CHECK numel nbytes size getCurrentCUDAStream"
)
_LOOKUPS = words("find count at contains emplace try_emplace")


def lasting_state(source: CudaSource) -> Iterator[tuple[str, Token, str]]:
    """Findings as (name, token, note): `result_cache` and `call_counting`."""
    static = {variable.name for variable in source.variables}
    yield from _caches(source.tokens, static)
    yield from _counters(source.tokens, static)


def _caches(tokens: list[Token], static: set[str]) -> Iterator[tuple[str, Token, str]]:
    """Results looked up by a tensor's address: `cache[x.data_ptr()]`, `x.data_ptr() == last`, also through one variable."""
    addresses = _address_variables(tokens)
    for index, token in enumerate(tokens):
        is_address = token.text in _POINTERS and before(tokens, index) in (".", "->")
        if not (is_address or (token.kind == "identifier" and token.text in addresses)):
            continue
        opener = _enclosing(tokens, index)
        if opener is not None and tokens[opener].text == "[" and before(tokens, opener) in static:
            yield "result_cache", token, ""
        if opener is not None and before(tokens, opener) in _LOOKUPS:
            owner = tokens[opener - 3].text if opener >= 3 else ""
            if owner in static:
                yield "result_cache", token, ""
        for place in _comparisons(tokens, index):
            other = _side_names(tokens, place)
            if other & static and not other & _NULLS and not _only_uploads(tokens, place, addresses):
                yield "result_cache", token, ""


def _only_uploads(tokens: list[Token], place: int, addresses: set[str]) -> bool:
    """Whether the `if` around tokens[place] does nothing but copy tensors to `__constant__` memory and note their addresses.
    The kernels that read it run in every call; content that changes in its place is asked for by a run."""
    opener = next((i for i in range(place, max(0, place - _FAR), -1) if tokens[i].text == "if"), None)
    closing = None if opener is None else partner(tokens, opener + 1)
    if closing is None or closing < place or closing + 1 >= len(tokens) or tokens[closing + 1].text != "{":
        return False
    end = partner(tokens, closing + 1)
    if end is None or end > closing + _LONG:
        return False
    body = tokens[closing + 2 : end]
    texts = {token.text for token in body}
    if texts & {"<<<", "return", "goto", "do"} or [t.text for t in tokens[end + 1 : end + 2]] == ["else"]:
        return False
    opened = [index for index, token in enumerate(body) if token.text == "(" and before(body, index).isidentifier()]
    called = {before(body, index) for index in opened}
    sources = [
        {token.text for token in body[index : partner(body, index)]}
        for index in opened
        if before(body, index).startswith("cudaMemcpyToSymbol")
    ]
    return bool(sources) and called <= _UPLOADS and all(names & (_POINTERS | addresses) for names in sources)


def _address_variables(tokens: list[Token]) -> set[str]:
    """Local variables that hold a tensor's address as a number, or a pointer to its data."""
    found: set[str] = set()
    for index, token in enumerate(tokens):
        if token.text == "=" and index and tokens[index - 1].kind == "identifier":
            value = [item.text for item in tokens[index + 1 : index + 30]]
            if "data_ptr" in value[: value.index(";") if ";" in value else None]:
                found.add(tokens[index - 1].text)
    return found


def _enclosing(tokens: list[Token], index: int) -> int | None:
    """Index of the bracket that directly encloses tokens[index], looking back at most 60 tokens.

    Casts and conversions around the address (`(int64_t)x.data_ptr()`, `reinterpret_cast<...>(x.data_ptr())`) are
    looked through.
    """
    depth = 0
    for position in range(index - 1, max(-1, index - 60), -1):
        text = tokens[position].text
        if text in (")", "]", "}"):
            depth += 1
        elif text in ("(", "[", "{"):
            if depth == 0:
                previous = before(tokens, position)
                if text == "(" and previous in (">", "uintptr_t", "int64_t", "size_t", "uint64_t", "("):
                    continue
                return position
            depth -= 1
        elif text == ";":
            return None
    return None


def _comparisons(tokens: list[Token], index: int) -> Iterator[int]:
    """Indices of `==` and `!=` in the same expression as tokens[index]."""
    for step in (1, -1):
        for place in _expression(tokens, index, step):
            if tokens[place].text in ("==", "!="):
                yield place
                break


def _side_names(tokens: list[Token], place: int) -> set[str]:
    return {tokens[i].text for step in (1, -1) for i in _expression(tokens, place, step)}


def _expression(tokens: list[Token], place: int, step: int) -> Iterator[int]:
    """Indices from beside tokens[place] to the end of its expression, in one direction; not further than _FAR."""
    for i in range(place + step, place + step * _FAR, step):
        if not 0 <= i < len(tokens) or tokens[i].text in _EXPRESSION_ENDS:
            return
        yield i


def _counters(tokens: list[Token], static: set[str]) -> Iterator[tuple[str, Token, str]]:
    """A counter that survives the call, is stepped and then compared: `static int calls = 0; if (++calls > 8)`."""
    advanced = {
        tokens[index + step].text
        for index, token in enumerate(tokens)
        if token.text in ("++", "+=", "--", "-=") or _is_a_step(tokens, index)
        for step in ((1, -1) if token.text in ("++", "--") else (-1,))
        if 0 <= index + step < len(tokens) and tokens[index + step].text in static
    }
    heard = replaces_writers(tokens)
    for index, token in enumerate(tokens):
        if token.text in ("if", "while"):
            condition = [item.text for item in tokens[index + 1 : index + 14]]
        elif token.text == "?":
            condition = [item.text for item in reversed(tokens[max(0, index - 12) : index])]
        else:
            continue
        stop = next((place for place, text in enumerate(condition) if text in (";", "{")), None)
        texts = set(condition[:stop])
        counts = bool(advanced & texts and texts & _COMPARISONS) and not only_resets(tokens, index, advanced)
        if counts and (heard or not _only_says(tokens, index, advanced)):
            yield "call_counting", token, ""


def _is_a_step(tokens: list[Token], index: int) -> bool:
    """Whether tokens[index] gives a variable what it was and a number: `calls = calls + 1;`."""
    step = tokens[index + 1 : index + 5]
    if (
        tokens[index].text != "="
        or index == 0
        or len(step) < 4
        or step[1].text not in ("+", "-")
        or step[3].text != ";"
    ):
        return False
    sides = (step[0], step[2])
    return any(each.kind == "number" for each in sides) and tokens[index - 1].text in {each.text for each in sides}


def _only_says(tokens: list[Token], index: int, counters: set[str]) -> bool:
    """Whether `if (calls++ == 0)` and its body only print a message."""
    closing = partner(tokens, index + 1) if index + 1 < len(tokens) else None
    if tokens[index].text != "if" or closing is None or closing > index + _FAR:
        return False
    condition = tokens[index + 2 : closing]
    counts = all(
        token.kind == "number" or token.text in counters or token.text in _COMPARISONS or token.text == "++"
        for token in condition
    )
    return counts and is_message(tokens, closing + 1, counters)


def before(tokens: list[Token], index: int) -> str:
    """Text of the token before tokens[index]; empty at the start."""
    return tokens[index - 1].text if index else ""
