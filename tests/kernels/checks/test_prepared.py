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


def blamed(theirs: dict[str, OpUse], **mine: dict[str, OpUse]) -> bool:
    evidence = RunEvidence(backend="cpu", reached="forward", weights_ops=theirs, **mine)  # type: ignore[arg-type]
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


def test_small_parts_and_outer_products_do_not_count() -> None:
    part = {"aten::mm": OpUse(count=1, elements=500, products=4000)}
    assert not blamed(PRODUCT, loaded_ops=part)
    assert not blamed(PRODUCT, loaded_ops=EACH_WITH_EACH)
    assert mixes(EACH_WITH_EACH) == {}
    assert mixes({"aten::sum": OpUse(count=1, elements=10)}) == {}
