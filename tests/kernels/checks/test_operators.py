"""Operators that no list of work names and that mix no elements."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dice.kernels.checks.operators import may_mix
from dice.kernels.checks.workload import work_of
from dice.kernels.records.evidence import OpUse


def harmless_operators() -> list[str]:
    """ATen's operators that give views, take no tensor, or work on single elements, as their own schemas say."""
    by_name: dict[str, list[Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::") and any("Tensor" in str(each.type) for each in schema.returns):
            by_name.setdefault(schema.name, []).append(schema)

    def is_harmless(name: str, schemas: list[Any]) -> bool:
        schemas = [each for each in schemas if not each.overload_name.endswith("out")]
        if all(any(a.alias_info and not a.alias_info.is_write for a in each.arguments) for each in schemas):
            return True
        if not any("Tensor" in str(a.type) for each in schemas for a in each.arguments):
            return True
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
        return any(torch.Tag.pointwise in getattr(packet, each).tags for each in packet.overloads())

    return [name for name, schemas in by_name.items() if is_harmless(name, schemas)]


def test_what_mixes_nothing_is_no_single_operator() -> None:
    known = {"contraction", "reduction", "elementwise", "movement", "adding", "ordering", "scan"}
    use = OpUse(count=1, elements=9)
    names = harmless_operators()
    assert len(names) > 300
    assert [name for name in names if work_of({name: use}).keys() - known] == []


@pytest.mark.parametrize(
    "name",
    ["clone", "copy", "_to_copy", "zero", "fill", "empty_like", "uniform", "_local_scalar_dense", "_to_sparse_csr"],
)
def test_copies_and_questions_mix_nothing(name: str) -> None:
    assert not may_mix(name)


@pytest.mark.parametrize(
    "name", ["_linalg_solve_ex", "_histogramdd_from_bin_cts", "hash_tensor", "an_operator_of_tomorrow"]
)
def test_what_is_not_known_may_mix(name: str) -> None:
    assert may_mix(name)
