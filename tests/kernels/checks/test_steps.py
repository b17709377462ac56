"""What operators that do several steps at once count for beside a reference that writes the steps out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from dice.kernels.candidate.probes import OpRecorder
from dice.kernels.checks.steps import as_spelled_out
from dice.kernels.checks.workload import work_of
from dice.kernels.records.evidence import OpUse

Call = Callable[[torch.Tensor], torch.Tensor]


def recorded(call: Call) -> dict[str, OpUse]:
    with torch.no_grad(), OpRecorder() as recorder:
        call(torch.rand(4, 64, 32))
    return recorder.ops


def written_norm(x: torch.Tensor) -> torch.Tensor:
    away = x - x.mean(-1, keepdim=True)
    return away / torch.sqrt((away**2).mean(-1, keepdim=True) + 1e-5)


def written_attention(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ x.transpose(-1, -2) / 32**0.5, dim=-1) @ x


def written_gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))


WRITTEN: dict[str, tuple[Call, Call]] = {
    "norm": (written_norm, lambda x: functional.layer_norm(x, (32,))),
    "gain and shift": (
        lambda x: written_norm(x) * torch.ones(32) + torch.ones(32),
        lambda x: functional.layer_norm(x, (32,), torch.ones(32), torch.ones(32)),
    ),
    "attention": (written_attention, lambda x: functional.scaled_dot_product_attention(x, x, x)),
    "gelu": (written_gelu, functional.gelu),
    "softmax": (lambda x: x.exp() / x.exp().sum(-1, keepdim=True), lambda x: torch.softmax(x, -1)),
    "columns": (
        lambda x: torch.ones(6, 9) @ functional.unfold(x[:, None], 3),
        lambda x: functional.conv2d(x[:, None], torch.ones(6, 1, 3, 3)),
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_an_operator_counts_for_the_steps_that_the_reference_writes_out(name: str) -> None:
    theirs, mine = map(recorded, WRITTEN[name])
    spelled, work = as_spelled_out(mine, theirs), work_of(theirs)
    for kind in work.keys() - {"contraction"}:  # products are compared by their multiplications
        assert 0.9 * work[kind] <= spelled.get(kind, 0.0), kind
        assert spelled[kind] <= 2 * work[kind], kind


@pytest.mark.parametrize("name", WRITTEN)
def test_nothing_is_added_where_both_do_the_same(name: str) -> None:
    for call in WRITTEN[name]:
        assert as_spelled_out(recorded(call), recorded(call)) == work_of(recorded(call))


def test_steps_that_the_candidate_runs_itself_count_once() -> None:
    theirs = recorded(lambda x: written_gelu(written_norm(x)))
    mine = recorded(lambda x: written_gelu(functional.layer_norm(x, (32,))))
    assert as_spelled_out(mine, theirs)["elementwise"] <= 1.15 * work_of(theirs)["elementwise"]


def test_an_operator_of_the_candidates_own_counts_for_nothing() -> None:
    theirs, gelu = recorded(written_gelu), recorded(functional.gelu)["aten::gelu"]
    assert as_spelled_out({"mine::gelu": gelu}, theirs) == {}
