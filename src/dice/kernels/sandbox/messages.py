"""Bytes from a process that nobody trusts, as clean data: JSON within bounds, and text that every file can hold.

This is one half of the boundary; the other is `dice.kernels.sandbox.replies`, which knows what each message may say.
Behind both, no number is too large to count with, no nesting too deep to walk, no text impossible to write.
"""

from __future__ import annotations

import json
import math
from typing import Any

from dice.jsonl import valid_text

MAX_DEPTH = 128
MAX_PARTS = 4 << 20
"""Commas and opening brackets, those in texts included: what decides how much memory the parsed message takes."""
_INTEGERS = range(-(1 << 63), 1 << 63)


class Malformed(ValueError):
    """The bytes are not a message; the text says why."""


def parse_message(data: bytes) -> dict[str, Any]:
    """The JSON object in `data`, with integers of 64 bits, finite floats, and lone surrogates as escapes in its texts.

    Raises Malformed.
    """
    if sum(data.count(mark) for mark in (b",", b"[", b"{")) > MAX_PARTS:
        raise Malformed("too many parts")
    try:
        message = json.loads(data.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON ({str(error)[:100]})") from error
    if not isinstance(message, dict):
        raise Malformed("not an object")
    return _clean(message, 0)


def _clean(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise Malformed(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, dict):
        return {valid_text(name): _clean(part, depth + 1) for name, part in value.items()}
    if isinstance(value, list):
        return [_clean(part, depth + 1) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise Malformed("a number that is not finite")
    if isinstance(value, int) and value not in _INTEGERS:
        raise Malformed("an integer of more than 64 bits")
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
