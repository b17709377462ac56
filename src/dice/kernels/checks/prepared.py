"""Work that PyTorch does for a candidate before the forwards that are timed, and that the reference does in each of them.

Folding a norm into a scale, casts, other layouts, weights put together: all of that may be done beforehand, and what reads
each weight once (their sum, a norm) in the constructor. Products, scans and sorting of weights may not, where the reference's
forward has them, nor reductions when weights come or in the first forward. What the reference's constructor does as well (a
matrix made orthogonal) only gives the weights their first values.
"""

from __future__ import annotations

from collections.abc import Iterator

from dice.kernels.checks.finding import finding
from dice.kernels.checks.workload import NO_MIXING, with_stand_ins, work_of
from dice.kernels.records.evidence import OpUse, RunEvidence
from dice.kernels.records.verdict import Finding

_PART = 1 / 4
"""Share of the reference's work of a kind that counts."""
_FEWEST = 64
"""Elements; fewer are coefficients, which the host may prepare."""


def mixes(ops: dict[str, OpUse]) -> dict[str, float]:
    """Elements by kind of work that mixes them. Products of single elements (of two vectors, each with each) mix none."""
    mixing = {name: use for name, use in ops.items() if _sums(use)}
    return {kind: amount for kind, amount in work_of(mixing).items() if kind not in NO_MIXING and amount >= _FEWEST}


def _sums(use: OpUse) -> bool:
    """Whether what may be a product adds up. Other operators have no multiplications, and a product's may be unknown."""
    return not use.products or use.products > use.elements


def prepared_findings(evidence: RunEvidence) -> Iterator[Finding]:
    """Where PyTorch does a part of what the reference makes of its weights, and does it when no forward is timed."""
    weights_ops = evidence.weights_ops or {}
    theirs = mixes(weights_ops)
    first = _more(evidence.first_ops or {}, evidence.candidate_ops or {})
    made = mixes(_more(evidence.made_ops or {}, evidence.constructor_ops or {}))
    later = _sum(mixes(first), mixes(evidence.loaded_ops or {}))
    products = sum(use.products for use in weights_ops.values()) if "contraction" in theirs else 0
    summed = made.pop("reduction", 0.0) + later.get("reduction", 0.0)
    done = with_stand_ins(_sum(made, later), theirs)
    if products and summed >= _PART * products:
        done["contraction"] = theirs["contraction"]  # written out as products and sums
    for kind, amount in theirs.items():
        if done.get(kind, 0.0) >= _PART * amount:
            what = f"{kind} of weights, {done[kind]:.3g} of {amount:.3g} elements"
            yield finding("work_done_by_pytorch", "dynamic", f"before the calls that are timed, PyTorch does {what}")


def _more(ops: dict[str, OpUse], others: dict[str, OpUse]) -> dict[str, OpUse]:
    """What `ops` have more than `others`."""
    found: dict[str, OpUse] = {}
    for name, use in ops.items():
        less = others.get(name, OpUse(count=0, elements=0))
        if use.elements > less.elements:
            numbers = {key: max(0, getattr(use, key) - getattr(less, key)) for key in ("elements", "products")}
            found[name] = use.model_copy(update=numbers)
    return found


def _sum(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {kind: one.get(kind, 0.0) + other.get(kind, 0.0) for kind in one | other}
