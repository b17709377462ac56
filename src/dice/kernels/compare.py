"""Comparison of the candidate's nested outputs with the reference's, under two protocols. Pure functions.

paper   KernelBench v0.1 as the paper used it (src/eval.py): equal shapes, equal dtypes (torch.allclose raises on
        others), torch.allclose with atol = rtol = 1e-2 in the tensor's own dtype, NaN never equal to anything.
        Floats of eight bits, for which torch.allclose raises, are compared in fp32.
        KernelBench compares one tensor; tuples, lists, dictionaries and scalars are compared part by part.
strict  tolerance by dtype (`STRICT_TOLERANCE`; 1e-4 for fp32, exact for integers and booleans) in float64, with
        atol scaled by the output's magnitude (atol = tol * max(1, rms)), because the error of a long reduction grows
        with its result; where that is wider than the paper's tolerance, at most 5 % of the elements outside of the
        paper's (`FAR_SHARE`); NaN only where the reference has NaN, Inf only with the same sign; and a bound on the
        relative norm, so that zeros are not correct where all outputs are tiny (KernelBench issue 165).

Order: structure and shape, then dtype, then value. The first part of the output that fails gives the status.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

from dice.kernels.records.verdict import Protocol

PAPER_TOLERANCE = 1e-2
STRICT_TOLERANCE: dict[torch.dtype, float] = {
    torch.float64: 1e-9,
    torch.complex128: 1e-9,
    torch.float32: 1e-4,
    torch.complex64: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 1e-2,
}
RELATIVE_NORM_FACTOR = 10.0
"""strict: ||actual - expected|| / ||expected|| must stay under this many tolerances."""
NOISE_RMS = 1e-6
"""strict: outputs with a smaller rms may be rounding noise; then the relative norm means nothing."""
TINY = 1e-12
"""Expected magnitudes up to this have no relative error."""
FAR_SHARE = 0.05
"""strict: where a large rms makes the absolute tolerance wider than the paper's, the largest share of elements that may be
outside the paper's tolerance. A few large elements must not hide that most small elements are wrong."""
CHUNK = {"cpu": 3 << 13, "cuda": 1 << 24}
"""Elements compared at a time. GPU: some hundred MiB of extra memory. CPU: what fits into the cache and what PyTorch computes
on one core (below 32,768), because threads that join after each short step wait for each other on a busy machine."""


def chunks(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Flat pieces of tensors of equal size and device, piece by piece, so that working on them needs little memory."""
    return zip(*(tensor.reshape(-1).split(CHUNK[tensor.device.type]) for tensor in tensors), strict=True)


@dataclass(frozen=True)
class Comparison:
    """The outcome. Errors are over finite elements of all parts; None where nothing numeric was compared."""

    status: Literal["correct", "wrong_value", "wrong_shape", "wrong_dtype"]
    message: str = ""
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    as_noise: bool = False
    """Correct only because an output is so small that it counts as rounding noise."""

    @property
    def ok(self) -> bool:
        """Whether the output counts as correct."""
        return self.status == "correct"


@dataclass
class _Errors:
    """Running maxima over all compared elements, and whether an output counted as noise."""

    noise_rms: float
    abs_error: float | None = None
    rel_error: float | None = None
    as_noise: bool = False

    def add(self, found: torch.Tensor) -> None:
        """found: rows of `_errors_of`."""
        abs_error, rel_error = found[:, 1:3].amax(dim=0).tolist()
        self.abs_error = max(abs_error, self.abs_error or 0.0)
        self.rel_error = max(rel_error, self.rel_error or 0.0)


def compare_outputs(expected: Any, actual: Any, protocol: Protocol, noise_rms: float = NOISE_RMS) -> Comparison:
    """Compare nested outputs: tensors of any dtype and layout, sequences, mappings, numbers, None, strings, dtypes and
    devices: all that a candidate can return (`sandbox.values`), whose output takes the place of `expected` where two of
    its calls are compared.

    `noise_rms`: outputs up to this rms may be rounding noise, and `strict` does not check their relative norm. Tensors
    may be on different devices; `actual` is moved to the device of `expected`. Where tensors of `actual` have no data
    (device meta), only structure, shapes and dtypes are compared. Raises TypeError for an `expected` value of any
    other type.
    """
    errors = _Errors(noise_rms)
    for status, message in _failures(expected, actual, protocol, "output", errors):
        return Comparison(status, message, errors.abs_error, errors.rel_error)
    return Comparison("correct", "", errors.abs_error, errors.rel_error, errors.as_noise)


_Failure = tuple[Literal["wrong_value", "wrong_shape", "wrong_dtype"], str]


def _failures(expected: Any, actual: Any, protocol: Protocol, where: str, errors: _Errors) -> Iterator[_Failure]:
    if isinstance(expected, torch.Tensor):
        if not isinstance(actual, torch.Tensor):
            if protocol == "paper" and expected.ndim == 0 and isinstance(actual, (bool, int, float)):
                try:
                    actual = torch.tensor(actual, dtype=expected.dtype)
                except (RuntimeError, ValueError, OverflowError, TypeError):  # NaN, or what the type does not hold
                    yield "wrong_value", f"{where}: expected {expected.item()}, got {actual}"
                    return
            else:
                yield "wrong_shape", f"{where}: expected a tensor, got {type(actual).__name__}"
                return
        yield from _tensor_failures(expected, actual, protocol, where, errors)
    elif isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)):
            yield "wrong_shape", f"{where}: expected {len(expected)} outputs, got one {type(actual).__name__}"
        elif len(actual) != len(expected):
            yield "wrong_shape", f"{where}: expected {len(expected)} outputs, got {len(actual)}"
        else:
            for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
                yield from _failures(left, right, protocol, f"{where}[{index}]", errors)
    elif isinstance(expected, dict):
        if not isinstance(actual, dict):
            yield "wrong_shape", f"{where}: expected a dictionary, got {type(actual).__name__}"
        elif set(actual) != set(expected):
            missing, extra = (
                sorted(map(str, set(expected) - set(actual))),
                sorted(map(str, set(actual) - set(expected))),
            )
            yield "wrong_shape", f"{where}: keys differ (missing {missing}, unexpected {extra})"
        else:
            for key, left in expected.items():
                yield from _failures(left, actual[key], protocol, f"{where}[{key!r}]", errors)
    elif isinstance(expected, (bool, int, float, complex)):
        yield from _number_failures(expected, actual, protocol, where, errors)
    elif expected is None or isinstance(expected, (str, torch.dtype, torch.device)):
        if type(actual) is not type(expected) or actual != expected:
            yield "wrong_value", f"{where}: expected {expected!r}, got {str(actual)[:80]!r}"
    else:
        raise TypeError(f"{where}: cannot compare a reference output of type {type(expected).__name__}")


def _number_failures(
    expected: bool | int | float | complex, actual: Any, protocol: Protocol, where: str, errors: _Errors
) -> Iterator[_Failure]:
    if isinstance(actual, torch.Tensor) and actual.numel() == 1 and protocol == "paper":
        if actual.is_meta:
            return
        actual = actual.item()
    numbers = (bool, int, float, complex) if isinstance(expected, complex) else (bool, int, float)
    if not isinstance(actual, numbers):
        yield "wrong_dtype", f"{where}: expected {type(expected).__name__}, got {type(actual).__name__}"
        return
    if protocol == "strict" and type(actual) is not type(expected):
        yield "wrong_dtype", f"{where}: expected {type(expected).__name__}, got {type(actual).__name__}"
        return
    # float64 does not hold all integers of strict, which are exact, nor any of Python's
    if isinstance(expected, int) and abs(expected) >= (2**53 if protocol == "strict" else 2**63):
        if actual != expected:
            yield "wrong_value", f"{where}: expected {expected}, got {actual}"
        return
    dtype = torch.complex128 if isinstance(expected, complex) else torch.float64
    left = torch.tensor(expected, dtype=dtype)
    right = torch.tensor(actual if isinstance(actual, complex) else _as_float(actual), dtype=dtype)
    tolerance = PAPER_TOLERANCE if protocol == "paper" else (1e-4 if isinstance(expected, (float, complex)) else 0.0)
    found = _errors_of([(left, right)], tolerance, tolerance, protocol)
    errors.add(found)
    if found[0, 0]:
        yield "wrong_value", f"{where}: expected {expected}, got {actual}"


def _as_float(number: bool | int | float) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer of more than 1,024 bits
        return math.inf if number > 0 else -math.inf


def _tensor_failures(
    expected: torch.Tensor, actual: torch.Tensor, protocol: Protocol, where: str, errors: _Errors
) -> Iterator[_Failure]:
    if expected.shape != actual.shape:
        yield "wrong_shape", f"{where}: expected shape {tuple(expected.shape)}, got {tuple(actual.shape)}"
        return
    if expected.dtype != actual.dtype:
        yield "wrong_dtype", f"{where}: expected {expected.dtype}, got {actual.dtype}"
        return
    if actual.is_meta:
        return
    actual = actual.to(expected.device)
    if expected.numel() == 0:
        return
    rtol, rms = _tolerance(expected, protocol)
    atol = rtol * max(1.0, rms)
    left, right = expected.reshape(-1), actual.reshape(-1)
    pieces = list(chunks(left, right))
    found = _errors_of(pieces, atol, rtol, protocol)
    errors.add(found)
    n_bad = int(found[:, 0].sum())
    if n_bad:
        piece = int(found[:, 0].gt(0).to(torch.uint8).argmax())
        a, b = pieces[piece]
        wrong = _mismatch(a, b, atol, rtol, protocol)
        first_bad = piece * CHUNK[left.device.type] + int(wrong.to(torch.uint8).argmax())
        total = left.numel()
        index = (
            tuple(int(i) for i in torch.unravel_index(torch.tensor(first_bad), expected.shape)) if expected.ndim else ()
        )
        yield (
            "wrong_value",
            f"{where}: {n_bad} of {total} elements differ ({100 * n_bad / total:.2f} %, {expected.dtype}, "
            f"atol {atol:.3g}, rtol {rtol:.3g}); first at {list(index)}: "
            f"expected {left[first_bad].item()}, got {right[first_bad].item()}",
        )
    elif atol > PAPER_TOLERANCE and (far := _share_outside_paper(left, right)) > FAR_SHARE:
        yield (
            "wrong_value",
            f"{where}: {100 * far:.0f} % of the elements are further off than the paper's tolerance of {PAPER_TOLERANCE:g}; "
            f"a few much larger elements make the rms of {rms:.3g}",
        )
    elif rms > 0:
        relative = math.sqrt(float(found[:, 3].sum()) / left.numel()) / rms
        if relative > RELATIVE_NORM_FACTOR * rtol and rms <= errors.noise_rms:
            errors.as_noise = True
        elif relative > RELATIVE_NORM_FACTOR * rtol:
            yield (
                "wrong_value",
                f"{where}: every element is within tolerance, but the relative norm of the error is {relative:.3g} "
                f"(limit {RELATIVE_NORM_FACTOR * rtol:.3g}): the output is too small for the tolerance to mean much",
            )


def _tolerance(expected: torch.Tensor, protocol: Protocol) -> tuple[float, float]:
    """(relative tolerance, the rms that scales it to the absolute one; 0 where none does)."""
    exact = expected.dtype is torch.bool or (protocol == "strict" and expected.dtype not in STRICT_TOLERANCE)
    rtol = 0.0 if exact else PAPER_TOLERANCE if protocol == "paper" else STRICT_TOLERANCE[expected.dtype]
    return rtol, _rms(expected) if protocol == "strict" and not exact else 0.0


def wrong_elements(expected: torch.Tensor, actual: torch.Tensor, protocol: Protocol) -> torch.Tensor:
    """True where an element is beyond the tolerance; in the shape of both, which have one dtype and device."""
    rtol, rms = _tolerance(expected, protocol)
    atol = rtol * max(1.0, rms)
    masks = [_mismatch(a, b, atol, rtol, protocol) for a, b in chunks(expected, actual)]
    return torch.cat(masks).reshape(expected.shape) if masks else torch.zeros_like(expected, dtype=torch.bool)


def _share_outside_paper(expected: torch.Tensor, actual: torch.Tensor) -> float:
    tolerance = PAPER_TOLERANCE
    counts = [_mismatch(a, b, tolerance, tolerance, "strict").sum() for a, b in chunks(expected, actual)]
    return int(torch.stack(counts).sum()) / expected.numel()


def computable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself; in fp32 where it is of floats of eight bits, for which PyTorch has few operators."""
    return tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.dtype.is_complex else torch.float64)


def _rms(tensor: torch.Tensor) -> float:
    """Root of the mean square of finite elements."""
    pieces = [piece for (piece,) in chunks(tensor)]
    wide = (_wide(piece) for piece in pieces)
    sums = torch.stack([(piece.abs() if piece.is_complex() else piece).square().sum() for piece in wide]).cpu()
    for index in (~torch.isfinite(sums)).nonzero().flatten().tolist():
        magnitude = _wide(pieces[index]).abs()
        sums[index] = torch.where(torch.isfinite(magnitude), magnitude, 0.0).square().sum()
    return math.sqrt(float(sums.sum()) / max(1, tensor.numel()))


def _mismatch(a: torch.Tensor, b: torch.Tensor, atol: float, rtol: float, protocol: Protocol) -> torch.Tensor:
    """True where b is not an acceptable value for a (both flat, same dtype)."""
    if a.dtype is torch.bool or (atol == 0 and rtol == 0 and not a.dtype.is_floating_point):
        return a != b
    if protocol == "paper":
        # torch.allclose(reference, candidate): the tolerance is relative to the candidate (KernelBench src/eval.py)
        return ~torch.isclose(computable(a), computable(b), rtol=rtol, atol=atol)
    return ~torch.isclose(_wide(b), _wide(a), rtol=rtol, atol=atol, equal_nan=True)


def _errors_of(pieces: list[tuple[torch.Tensor, ...]], atol: float, rtol: float, protocol: Protocol) -> torch.Tensor:
    """A row for each pair of pieces: mismatches, largest absolute and largest relative error, and sum of squared errors, all
    but the first over finite elements. float64, on the CPU.

    The numbers of all pieces are fetched together: others use the GPU, too, and each answer waits for a turn.
    """
    found = torch.ones(len(pieces), 4, dtype=torch.float64)
    if pieces[0][0].dtype in (torch.float32, torch.float64):
        found = torch.stack([_errors_where_close(a, b, atol, rtol, protocol) for a, b in pieces]).double().cpu()
    if left := found[:, 0].nonzero().flatten().tolist():
        rows = [_all_errors(a, b, atol, rtol, protocol) for a, b in (pieces[index] for index in left)]
        found[left] = torch.stack(rows).cpu()
    return found


def _all_errors(a: torch.Tensor, b: torch.Tensor, atol: float, rtol: float, protocol: Protocol) -> torch.Tensor:
    """One row of `_errors_of`."""
    difference = (_wide(b) - _wide(a)).abs()
    finite = torch.isfinite(difference)
    difference = torch.where(finite, difference, 0.0)
    scale = torch.where(finite, _wide(a).abs(), 1.0)
    # The relative error is undefined at an expected 0 and means nothing near it: only the absolute error counts there.
    relative = torch.where(scale > TINY, difference / scale.clamp_min(TINY), 0.0)
    n_bad = _mismatch(a, b, atol, rtol, protocol).sum()
    return torch.stack([n_bad.double(), difference.max(), relative.max(), difference.square().sum()])


def _errors_where_close(a: torch.Tensor, b: torch.Tensor, atol: float, rtol: float, protocol: Protocol) -> torch.Tensor:
    """A row of `_errors_of` where all elements are finite and acceptable, with a 0 for the squares under `paper`. Else its
    first number is 1 and the others mean nothing.

    Most outputs are so: the formula of torch.isclose in a dozen passes instead of about fifty, because outputs of gigabytes
    are compared on one core.
    """
    if protocol == "strict":
        a, b = _wide(a), _wide(b)
    error = (b - a).abs_()
    largest = error.max()
    scale = a.abs()
    allowed = (b.abs() if protocol == "paper" else scale.clone()).mul_(rtol).add_(atol)
    bad = ~torch.isfinite(largest) | (error > allowed).any()
    squared = error.square().sum() if protocol == "strict" else torch.zeros_like(largest)
    scale.masked_fill_(scale <= TINY, math.inf)
    return torch.stack([bad.to(largest.dtype), largest, error.div_(scale).max(), squared])
