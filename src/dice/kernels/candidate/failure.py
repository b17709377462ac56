"""An exception of the candidate as plain data that is sent to the grader."""

from __future__ import annotations

from typing import Any

from dice.kernels.candidate.extension_proxy import BUILD_KEY
from dice.kernels.candidate.full_memory import lacked_memory

_MESSAGE_CHARACTERS = 4000


def describe(error: BaseException, path: str) -> dict[str, Any]:
    """Type, text, the innermost line of the file `path` in the traceback, and the kind of failure."""
    return {
        "type": type(error).__name__,
        "text": str(error)[:_MESSAGE_CHARACTERS],
        "place": _place(error, path),
        "exit": isinstance(error, SystemExit),
        "out_of_memory": lacked_memory(error),
        "build_key": _build_key(error),
    }


def _place(error: BaseException, path: str) -> str:
    """Where in the file; step by step, since an endless recursion has ten million frames and has used up the memory."""
    last, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == path:
            last = step
        step = step.tb_next
    return "" if last is None else f"line {last.tb_lineno}, in {last.tb_frame.f_code.co_name}"


def _build_key(error: BaseException | None) -> str | None:
    """The refused build that an exception comes from, directly or as the cause of another one."""
    for _ in range(20):
        if error is None:
            return None
        if (key := getattr(error, BUILD_KEY, None)) is not None:
            return str(key)
        error = error.__cause__ or error.__context__
    return None
