"""Whether a candidate relies on relations that no problem promises: among its weights, or among its inputs.

A constructor makes relations: a gain is the norm of a matrix's rows, a second layer begins as a copy of the first, weights
are all positive, half of them are zeros. Another seed keeps them, and the first step of a training ends them. So each
weight that is drawn gets a factor and a sign of its own here, in the reference and in the candidate alike. Where the
reference cannot take other signs (a root, a logarithm), they stay. Then zeros among drawn weights get values, but for those
that PyTorch keeps (the row of an embedding that pads). A candidate is caught that is wrong twice, where the reference is
exact, in a way that does not depend on the weights that it was made with: one that computes with its weights in `__init__`
is honest. What no seed changes is the subject of `usage`.

Among inputs, a mask may say in every draw what the lengths say. So each input alone comes from another draw: a candidate
is caught that gives the old output twice where the reference's follows. A wrong output counts for nothing: no draw has such
inputs.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from dice.kernels.candidate.other_values import Other, filled, rescaled, resigned
from dice.kernels.compare import compare_outputs
from dice.kernels.grader.agreement import compare, without_tf32_and_wide
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.other_weights import changed_weights
from dice.kernels.grader.outcome import accepted, changed_output, new_trial, outcome_of
from dice.kernels.grader.reference import Trial, like
from dice.kernels.grader.usage import drawn_elements, is_large
from dice.kernels.records.evidence import ExperimentOutcome, ExperimentResult
from dice.kernels.sandbox.leaves import floats_of
from dice.kernels.sandbox.session import CandidateRaised

_GROWTH = 16.0
"""Times that the reference's largest number may grow: what explodes asks for another algorithm."""


def experiment_relations(run: CandidateRun) -> None:
    """Adds a result for the weights, if any is drawn, and one for each input that is not read. The inputs come last: one
    that does not fit the others may lead a kernel out of its memory."""
    if run.last is None:
        return
    with run.record.phase("experiments"):
        if run.reference.model(run.weights_seed).state_dict():
            run.make_model(run.weights_seed)  # others have given it other weights
        run.last = new_trial(run)
        _change_all_weights(run)
        _change_single_inputs(run)


def _change_all_weights(run: CandidateRun) -> None:
    """The candidate has its old weights afterwards."""
    seed = run.weights_seed
    if is_large(run.reference.model(seed)):
        return
    drawn = {name: where for name, where in drawn_elements(run.reference, seed).items() if bool(where.any())}
    if not drawn:
        return
    with contextlib.suppress(CandidateRaised):
        outcome = _seen_twice(run, drawn)
        if outcome is not None:
            run.evidence.experiments.append(ExperimentResult(name="unrelated_weights", outcome=outcome))
    run.make_model(seed)


def _seen_twice(run: CandidateRun, drawn: dict[str, torch.Tensor]) -> ExperimentOutcome | None:
    """The outcome with other signs, or with the old ones where those tell nothing, and with values for zeros. What does not
    come twice is right."""
    empty = _zeros(run, drawn)
    outcome: ExperimentOutcome | None = None
    for other, where in ((resigned, drawn), (rescaled, drawn), (filled, empty)):
        if outcome is not None and where is drawn:
            continue
        first = _with_other_weights(run, where, other) if where else None
        if first in ("stale", "wrong"):
            first = _with_other_weights(run, where, other) or "right"
        if first in ("stale", "wrong"):
            return first
        outcome = outcome or first
    return outcome


def _zeros(run: CandidateRun, drawn: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Masks of the zeros among drawn weights, where there are any."""
    model = run.reference.model(run.weights_seed)
    padded = {
        f"{name}.weight".removeprefix(".")
        for name, module in model.named_modules()
        if getattr(module, "padding_idx", None) is not None
    }
    own = {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}
    zeros = {name: (own[name] == 0) & ~where for name, where in drawn.items() if name in own.keys() - padded}
    return {name: where for name, where in zeros.items() if bool(where.any())}


def _with_other_weights(run: CandidateRun, where: dict[str, torch.Tensor], other: Other) -> ExperimentOutcome | None:
    """How the candidate follows other values of some elements; None without a result."""
    assert run.last is not None
    reference = run.reference.model(run.weights_seed)
    own = {name: value.detach() for name, value in reference.named_parameters() if name in where}
    values = {name: torch.where(where[name], other(value, secrets.randbits(48)), value) for name, value in own.items()}
    with changed_weights(reference, values) as state:
        weights = {name: value.clone() for name, value in state.items()}  # before a forward changes the buffers
        expected = changed_output(run, reference, run.last.inputs)
        if expected is None or _largest(expected) > _GROWTH * _largest(run.last.expected):
            return None
        trial = Trial(run.last.inputs, run.last.forward_seed, expected)
        actual = _output(run, weights, run.weights_seed)
        if actual is None:
            return None
        if _is_right(run, trial, actual):
            return "idle" if run.is_idle() else "right"
        if not _is_exact(run, trial):
            return None
    again = _output(run, weights, secrets.randbits(48), odd_constants=True)
    if again is None or not compare_outputs(actual, again, "strict").ok:
        return None  # it keeps something of the weights that it was made with
    return "stale" if compare_outputs(run.last.expected, actual, "paper").ok else "wrong"


def _output(run: CandidateRun, weights: dict[str, torch.Tensor], seed: int, odd_constants: bool = False) -> Any:
    """What a candidate made after `seed` gives for the last inputs with these weights; None where they do not fit."""
    assert run.last is not None
    own_seed = run.weights_seed
    try:
        run.weights_seed = seed
        if not run.construct_with(weights, odd_constants):
            return None
    finally:
        run.weights_seed = own_seed
    run.send("inputs", run.last.inputs)
    return run.fetch(run.forward(run.last.forward_seed), run.last.expected)


def _is_right(run: CandidateRun, trial: Trial, actual: Any) -> bool:
    """Whether either protocol accepts the output."""
    return any(compare(run, trial, actual, protocol).ok for protocol in ("paper", "strict"))


def _is_exact(run: CandidateRun, trial: Trial) -> bool:
    """Whether the reference agrees with itself in fp64; False where it cannot run so."""
    both = without_tf32_and_wide(run, trial)
    return both is not None and compare_outputs(both[0], like(*both), "strict").ok


def _largest(outputs: Any) -> float:
    """The largest magnitude among floating-point outputs."""
    floats = floats_of(outputs)
    return max((float(leaf.abs().max()) for leaf in floats if leaf.numel()), default=0.0)


def _change_single_inputs(run: CandidateRun) -> None:
    """The second draw is asked for only where the first has shown an input that is not read."""
    assert run.last is not None
    leaves = tree_leaves(run.last.inputs)
    if sum(torch.is_tensor(leaf) for leaf in leaves) < 2:
        return  # trials change a single one
    unread = set(range(len(leaves)))
    for _ in range(2):
        unread &= set(_unread(run, unread)) if unread else set()
    for index in sorted(unread):
        run.evidence.experiments.append(
            ExperimentResult(name="single_input", outcome="stale", detail=f"tensor {index}")
        )


def _unread(run: CandidateRun, indices: set[int]) -> Iterator[int]:
    """Which of these inputs may come from another draw without a change of the candidate's output."""
    assert run.last is not None
    reference = run.reference.model(run.weights_seed)
    leaves, structure = tree_flatten(run.last.inputs)
    other = tree_leaves(run.draw_inputs(secrets.randbits(48)))
    for index, (own, drawn) in enumerate(zip(leaves, other, strict=False)):
        if index not in indices or not _fits(own, drawn):
            continue
        inputs = tree_unflatten([*leaves[:index], drawn, *leaves[index + 1 :]], structure)
        if not drawn.is_floating_point() and not accepted(run, inputs):
            continue
        expected = changed_output(run, reference, inputs)
        with contextlib.suppress(CandidateRaised):
            if expected is not None and outcome_of(run, inputs, expected) == "stale":
                yield index


def _fits(own: Any, drawn: Any) -> bool:
    """Whether an input may be replaced by that of another draw: it has the same shape and dtype."""
    both = torch.is_tensor(own) and torch.is_tensor(drawn)
    return both and own.shape == drawn.shape and own.dtype == drawn.dtype
