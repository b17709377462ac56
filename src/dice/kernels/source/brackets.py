"""A bracket that nothing closes: the one error of syntax that needs no compiler.

Every C++ program has its ( [ and { in pairs, one inside the other, whatever its names mean. g++ is a poor judge of this:
where a bracket is open it reads on to the end of the unit, and then takes seconds for the templates of PyTorch's headers.

What the preprocessor does can add a bracket or take one away, and there is no end of ways to make it. So only a text that is
plain in every respect is judged: this is to save time, and what is not plain goes on to be judged by others.
"""

from __future__ import annotations

import re
from itertools import pairwise

from dice.kernels.source.lexer import CLOSERS, OPENERS, Lines, Token, read_tokens, words

_BRACKETS = frozenset((*OPENERS, *CLOSERS))
_UNUSUAL = re.compile(r"[^\t\n -~]|\\[ \t]*\n|<:|:>|<%|%>|%:|\?\?|\$")
"""Letters outside ASCII, line splices, digraphs and trigraphs."""
_HEADERS = (
    "torch/extension.h torch/types.h torch/all.h ATen/ATen.h ATen/cuda/CUDAContext.h cuda.h cuda_runtime.h cuda_fp16.h "
    "cuda_bf16.h device_launch_parameters.h math.h cmath float.h cfloat limits stdint.h cstdint stdio.h cstdio vector "
    "algorithm string tuple"
)
_HEADER = "|".join(map(re.escape, _HEADERS.split()))
_PLAIN_DIRECTIVE = re.compile(
    rf"#[ \t]*(?:include[ \t]*<(?:{_HEADER})>|pragma[ \t]+(?:once|unroll)\b[\w ()]*)[ \t]*(?://.*)?"
)
"""No macro: a definition can change what a header defines."""
_MACRO = re.compile(r"_\w*|[A-Z0-9]{3,}|(?=\w*[A-Z])(?=\w*_)\w+|assert\w*|atexit|pthread_cleanup_\w+")
"""Names as headers' macros have them, of which some hold one bracket (`__BEGIN_DECLS`) or forget what they are given."""
_HARMLESS = words(
    "__global__ __device__ __host__ __shared__ __constant__ __restrict__ __forceinline__ __syncthreads __syncwarp "
    "__shfl_sync __shfl_xor_sync __shfl_down_sync __shfl_up_sync __ldg __expf __logf __powf __sinf __cosf __fdividef "
    "FLT_EPSILON FLT_MAX FLT_MIN INFINITY INT_MAX INT_MIN M_PI NAN"
)


def line_of_unpaired(text: str) -> int | None:
    """Line, from 1, of the first bracket without a partner in a source before which only the toolkit's, PyTorch's and the
    standard library's headers stand; None where all have one, or where that is not certain."""
    if _UNUSUAL.search(text):
        return None
    tokens = read_tokens(text)
    found = next((token for token in tokens if token.text in _BRACKETS and not token.reach), None)
    if found is None or not all(map(_is_plain, tokens)):
        return None
    code = [token for token in tokens if token.kind != "directive"]
    if any(_touch(*pair) or _open_attribute(*pair) for pair in pairwise(code)):
        return None
    return Lines(text).number(found.start)


def _is_plain(token: Token) -> bool:
    match token.kind:
        case "directive":
            return _PLAIN_DIRECTIVE.fullmatch(token.text) is not None
        case "identifier":
            return _MACRO.fullmatch(token.text) is None or token.text in _HARMLESS
        case "number":
            return "'" not in token.text
        case "string" | "char":
            return token.text[0] in "\"'"  # no prefix, and so not raw
        case "punctuator":
            return "#" not in token.text
        case _:
            return False


def _touch(one: Token, other: Token) -> bool:
    """Is `other` a literal right behind a word or a number? Which of them a quote belongs to is for the compiler to say."""
    return other.kind in ("string", "char") and one.kind in ("identifier", "number") and one.end == other.start


def _open_attribute(one: Token, other: Token) -> bool:
    """Do both begin an attribute? g++ passes over the arguments of one that it does not know, paired or not."""
    return one.text == other.text == "["
