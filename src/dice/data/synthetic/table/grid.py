"""Tensors as planes of one to three dimensions: an output index taken apart, and the element that is read."""

from __future__ import annotations

from collections.abc import Sequence

AXES = {1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}
"""Names of a plane's dimensions. A size is `W` in the input and `OW` in the output, a place `iw` and `ow`."""


def _times(sizes: Sequence[str]) -> str:
    return sizes[0] if len(sizes) == 1 else f"({' * '.join(sizes)})"


def places(rank: int, channels: str = "", index: str = "{i}") -> tuple[str, ...]:
    """Statements that take the output `index` apart: places in the plane, and the plane's number `ch`.

    `channels`: size key of the output's channels; then it is `oc` and `img`.
    """
    lines, inner = [], []
    for axis in reversed(AXES[rank]):
        rest = f"({index} / {_times(inner)})" if inner else index
        lines.append(f"int o{axis} = {rest} % {{O{axis.upper()}}};")
        inner.append(f"{{O{axis.upper()}}}")
    if not channels:
        return (*lines, f"int ch = {index} / {_times(inner)};")
    below = f"int oc = ({index} / {_times(inner)}) % {{{channels}}};"
    return (*lines, below, f"int img = {index} / {_times([*inner, f'{{{channels}}}'])};")


def element(rank: int, plane: str) -> str:
    """The input's element at the place `iw`, ... of a plane."""
    place = plane
    for axis in AXES[rank]:
        place = (
            f"({place}) * {{{axis.upper()}}} + i{axis}" if " " in place else f"{place} * {{{axis.upper()}}} + i{axis}"
        )
    return f"{{x}}[{place}]"


def plane_sizes(rank: int, outputs: Sequence[str]) -> dict[str, str]:
    """Host expressions of the input's and the output's sizes; `outputs`: the latter in {SIZE}, one for each dimension."""
    inputs = {axis.upper(): f"{{x}}.size({2 + at})" for at, axis in enumerate(AXES[rank])}
    named = zip(AXES[rank], outputs, strict=True)
    return inputs | {f"O{axis.upper()}": text.replace("SIZE", f"{{{axis.upper()}}}") for axis, text in named}


def plane_out(rank: int, channels: str = "{x}.size(1)") -> tuple[str, ...]:
    """Host expressions of the output's sizes."""
    return ("{x}.size(0)", channels, *(f"{{O{axis.upper()}}}" for axis in AXES[rank]))
