"""Which steps of a reference PyTorch did, told by the values of both forwards. A kernel is what no mode of PyTorch's sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import _disable_current_modes

from dice.kernels.candidate.probes import OpRecorder
from dice.kernels.candidate.value_recorder import ValueRecorder
from dice.kernels.checks.workload import work_of
from dice.kernels.grader.shared_values import ReferenceRecorder, candidate_values, one_element_changed, shared_ops

Forward = Callable[..., torch.Tensor]
WEIGHT = torch.randn(24, 32, generator=torch.Generator().manual_seed(1))
BIAS = torch.linspace(-1, 1, 24)
ZEROS = torch.zeros(24)
LEARNED = (WEIGHT, BIAS, ZEROS)


def by_kernel(function: Forward) -> Forward:
    """The function, out of sight."""

    def call(*values: Any) -> torch.Tensor:
        with _disable_current_modes():
            return function(*values)

    return call


@by_kernel
def put_on(x: torch.Tensor) -> torch.Tensor:
    return x * (1 + torch.arange(len(x)) % 5).view(-1, *[1] * (x.dim() - 1))


@by_kernel
def take_off(x: torch.Tensor) -> torch.Tensor:
    return x / (1 + torch.arange(len(x)) % 5).view(-1, *[1] * (x.dim() - 1))


def shares(reference: Forward, candidate: Forward) -> dict[str, float]:
    """Share of each kind of the reference's work that the candidate's operators did. Inputs: [40, 32], [48, 32]."""
    inputs, other = ([torch.randn(40, 32), torch.randn(48, 32)] for _ in range(2))
    with torch.no_grad():
        with ValueRecorder([*inputs, *LEARNED]) as first:
            candidate(*inputs)
        inputs = one_element_changed(inputs, other)
        with ValueRecorder([*inputs, *LEARNED], first) as second:
            outputs = candidate(*inputs)
        with OpRecorder() as counted:
            expected = reference(*inputs)
        with ReferenceRecorder([*inputs, *LEARNED], sum(use.count for use in counted.ops.values())) as recorder:
            recorder.end(reference(*inputs))
    torch.testing.assert_close(outputs, expected, rtol=1e-3, atol=1e-3)
    done = work_of(shared_ops(recorder, candidate_values(second.offer())))
    return {kind: done.get(kind, 0.0) / amount for kind, amount in work_of(counted.ops).items()}


def distances(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return ((x[:, None] - y[None]) ** 2).sum(2).sqrt()


def running_sums(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(40, 32)
    out[:, 0] = x[:, 0]
    for t in range(1, 32):
        out[:, t] = out[:, t - 1] + x[:, t]
    return torch.relu(out)


def scaled_rows(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.exp(x - torch.logsumexp(x, 1, keepdim=True)) * 2


def recurrence(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    state = torch.zeros(24)
    for t in range(40):
        state = torch.tanh(WEIGHT @ x[t] + 0.1 * state)
    return state


WHOLE: dict[str, tuple[Forward, Forward]] = {
    "one operator": (distances, lambda x, y: take_off(put_on(torch.cdist(x, y)))),
    "gains before and after": (
        distances,
        lambda x, y: by_kernel(lambda d: d / 2)(torch.cdist(put_on_all(x), put_on_all(y))),
    ),
    "gains of weights": (
        lambda x, y: torch.log1p(torch.exp(x @ WEIGHT.t())),
        lambda x, y: functional.softplus(take_off(put_on(WEIGHT) @ x.t()).t()),
    ),
    "a buffer that is filled": (running_sums, lambda x, y: torch.relu(torch.cumsum(x, 1))),
    "written into a buffer": (distances, lambda x, y: torch.empty(40, 48).copy_(torch.cdist(x, y))),
}
put_on_all = by_kernel(lambda x: 2 * x)


@pytest.mark.parametrize("name", WHOLE)
def test_what_pytorch_did_as_a_whole(name: str) -> None:
    assert min(shares(*WHOLE[name]).values()) > 0.99


def test_a_last_step_by_a_kernel() -> None:
    found = shares(
        lambda x, y: torch.exp(-distances(x, y)), lambda x, y: by_kernel(lambda d: torch.exp(-d))(torch.cdist(x, y))
    )
    assert found["reduction"] == 1.0
    assert 0.9 < found["elementwise"] < 0.97


def test_a_bias_that_a_kernel_adds_does_not_count() -> None:
    def linear(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, WEIGHT, BIAS)

    gains = shares(linear, lambda x, y: take_off((put_on(WEIGHT) @ x.t()).add_(0)).t() + BIAS)
    assert gains == {"contraction": 1.0, "elementwise": 0.0}
    by_itself = shares(linear, lambda x, y: by_kernel(lambda p: p + BIAS)(x @ WEIGHT.t()))
    assert by_itself == {"contraction": 0.0, "elementwise": 0.0}  # operators count that
    assert shares(linear, linear) == {"contraction": 1.0, "elementwise": 1.0}


def test_a_bias_of_zeros_that_a_kernel_adds_does_not_count() -> None:
    """Without it the product is the same."""

    def linear(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, WEIGHT, ZEROS)

    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return by_kernel(torch.add)(x @ WEIGHT.T, ZEROS)

    assert shares(linear, product) == {"contraction": 1.0, "elementwise": 0.0}


NOTHING: dict[str, tuple[Forward, Forward]] = {
    "by kernels alone": (distances, by_kernel(torch.cdist)),
    "operators on what a kernel has made": (distances, lambda x, y: by_kernel(distances)(x, y) * 1),
    "a root of what no step gives": (
        lambda x, y: torch.linalg.vector_norm(x, dim=1) * 1,
        lambda x, y: by_kernel(lambda x: x.square().sum(1))(x).sqrt() * 1,
    ),
    "a factor behind a mean": (
        lambda x, y: (3 * x).mean(1).exp(),
        lambda x, y: by_kernel(lambda m: torch.exp(3 * m))(x.mean(1)),
    ),
    "the means of a norm alone": (
        lambda x, y: functional.layer_norm(x, (32,)),
        lambda x, y: by_kernel(lambda x, m: functional.layer_norm(x - m, (32,)))(x, x.mean(1, keepdim=True)),
    ),
    "a shift that is a sum": (
        scaled_rows,
        lambda x, y: by_kernel(lambda x: torch.log_softmax(x, 1))(x).exp() * 2,
    ),
    "a number that the host reads": (
        lambda x, y: x / x.abs().sum(),
        lambda x, y: x / by_kernel(lambda x: x.abs().sum())(x).item(),
    ),
    "a product that no step gives": (recurrence, lambda x, y: by_kernel(lambda g: recurrence_from(g))(x @ WEIGHT.t())),
}


def recurrence_from(given: torch.Tensor) -> torch.Tensor:
    state = torch.zeros(24)
    for row in given:
        state = torch.tanh(row + 0.1 * state)
    return state


@pytest.mark.parametrize("name", NOTHING)
def test_what_kernels_did(name: str) -> None:
    found = shares(*NOTHING[name])
    assert min(found.values()) < 0.6
    assert found.get("reduction", 0.0) == found.get("contraction", 0.0) == 0.0


def test_a_part_by_a_kernel_in_place() -> None:
    def taps(x: torch.Tensor, y: torch.Tensor, first: int = 0, out: torch.Tensor | None = None) -> torch.Tensor:
        out = torch.zeros(40, 29) if out is None else out
        for k in range(first, 4):
            out += BIAS[k] * x[:, k : k + 29]
        return out

    def halves(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = by_kernel(lambda x: BIAS[0] * x[:, :29] + BIAS[1] * x[:, 1:30])(x)
        return taps(x, y, 2, out)

    assert shares(taps, halves) == {"elementwise": pytest.approx(0.5, abs=0.02)}


def test_what_does_not_fit_together_is_nothing() -> None:
    with ValueRecorder([WEIGHT]) as recorder:
        WEIGHT.relu()
    names, rows, prints, changed, given = recorder.offer()
    assert len(candidate_values([names, rows, prints, changed, given]).calls) == 1
    for forged in (
        None,
        [names, rows],
        [names, rows + 1, prints, changed, given],
        [[], rows, prints, changed, given],
        [names, rows, prints[:, 1:], changed, given],
        [names, rows, torch.tensor(0.0, dtype=torch.float64), changed, given],
        [names, torch.tensor(0), prints, changed, given],
        [names, rows, prints, torch.tensor(0), given],
        [names, rows, prints.float(), changed, given],
        [names, rows, prints, changed[1:], given],
        [names, rows, prints, changed, 99],
        [names, None, prints, changed, given],
    ):
        assert not candidate_values(forged).calls
