"""Which work on weights counts that PyTorch does before the calls that are timed."""

from __future__ import annotations

import pytest

from dice.kernels.checks.prepared import mixes, prepared_findings
from dice.kernels.records.evidence import OpUse, RunEvidence

PRODUCT = {"aten::mm": OpUse(count=1, elements=3000, products=40_000)}
SUM = {"aten::sum": OpUse(count=1, elements=3000)}
WRITTEN_OUT = {"aten::sum": OpUse(count=1, elements=41_000)}
EACH_WITH_EACH = {"aten::mm": OpUse(count=1, elements=3000, products=2800)}
ELEMENTWISE = {"aten::mul": OpUse(count=9, elements=90_000), "aten::cat": OpUse(count=1, elements=9000)}


def blamed(theirs: dict[str, OpUse] | None, **mine: dict[str, OpUse]) -> bool:
    evidence = RunEvidence(backend="cpu", reached="forward", weights_ops=theirs, **mine)  # pyright: ignore[reportArgumentType]
    found = [finding.name for finding in prepared_findings(evidence)]
    assert set(found) <= {"work_done_by_pytorch"}
    return bool(found)


@pytest.mark.parametrize("when", ["made_ops", "loaded_ops", "first_ops"])
def test_a_product_counts_whenever_it_is_made(when: str) -> None:
    assert blamed(PRODUCT, **{when: PRODUCT})
    assert blamed(PRODUCT, **{when: WRITTEN_OUT})
    assert not blamed(PRODUCT, **{when: ELEMENTWISE})
    assert not blamed(PRODUCT, **{when: SUM}), "a size for each row"
    assert not blamed({}, **{when: PRODUCT}), "the reference makes none of its weights"
    assert not blamed(None, **{when: PRODUCT}), "nobody looked"


def test_elementwise_work_may_be_done_before() -> None:
    assert not blamed(ELEMENTWISE, made_ops=ELEMENTWISE, first_ops=ELEMENTWISE)


def test_a_reduction_may_be_made_with_the_model_only() -> None:
    assert blamed(SUM, loaded_ops=SUM)
    assert blamed(SUM, first_ops=SUM)
    assert not blamed(SUM, made_ops=SUM)
    assert blamed(SUM, made_ops=PRODUCT), "a product with ones"


def test_what_the_constructor_of_the_reference_does_gives_first_values() -> None:
    assert not blamed(PRODUCT, made_ops=PRODUCT, constructor_ops=PRODUCT)
    twice = {"aten::mm": OpUse(count=2, elements=6000, products=80_000)}
    assert blamed(PRODUCT, made_ops=twice, constructor_ops=PRODUCT)


def test_what_every_forward_does_is_timed() -> None:
    assert not blamed(PRODUCT, first_ops=PRODUCT, candidate_ops=PRODUCT)
    outer = {"aten::mm": OpUse(count=2, elements=6000, products=42_800)}
    assert not blamed(PRODUCT, first_ops=outer, candidate_ops=PRODUCT), "what is more adds nothing up"
    unlike = {"aten::mm": OpUse(count=2, elements=6000, products=8000)}
    assert blamed(PRODUCT, first_ops=unlike, candidate_ops=PRODUCT), "what is more has unknown multiplications"
    attention = {"aten::_scaled_dot_product_attention_math": OpUse(count=99, elements=9000, products=10**6)}
    assert not blamed({"aten::sum": OpUse(count=1, elements=99)}, first_ops=attention, candidate_ops=attention)


@pytest.mark.parametrize(
    ("part", "counts"),
    [
        ({"aten::mm": OpUse(count=1, elements=750, products=10_000)}, True),
        ({"aten::mm": OpUse(count=1, elements=749, products=10_000)}, False),
        ({"aten::sum": OpUse(count=1, elements=10_000)}, True),
        ({"aten::sum": OpUse(count=1, elements=9999)}, False),
        (EACH_WITH_EACH, False),
    ],
)
def test_a_quarter_counts(part: dict[str, OpUse], counts: bool) -> None:
    assert blamed(PRODUCT, loaded_ops=part) is counts


def test_sums_beside_outer_products_are_no_products() -> None:
    assert not blamed(EACH_WITH_EACH | {"aten::sum": OpUse(count=1, elements=64)}, made_ops=SUM)
    assert blamed(EACH_WITH_EACH | {"aten::sum": OpUse(count=1, elements=64)}, loaded_ops=SUM)


@pytest.mark.parametrize(
    ("name", "elements", "products", "kinds"),
    [
        ("sum", 64, 0, {"reduction": 64}),
        ("sum", 63, 0, {}),
        ("mm", 3000, 0, {"contraction": 3000}),  # unknown
        ("mm", 3000, 3001, {"contraction": 3000}),
        ("mm", 3000, 3000, {}),
        ("mul", 3000, 0, {}),
    ],
)
def test_coefficients_and_outer_products_mix_nothing(
    name: str, elements: int, products: int, kinds: dict[str, float]
) -> None:
    assert mixes({f"aten::{name}": OpUse(count=1, elements=elements, products=products)}) == kinds
