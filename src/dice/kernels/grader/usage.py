"""Whether a candidate reads what is the same everywhere at first: weights of a norm, biases of zeros, a mask of ones.

In the trials such a tensor changes nothing, so a kernel that leaves it out passes them. Here it gets other values, for the
reference and for the candidate alike. A candidate is caught where the reference's output changes and its own does not. It
is not blamed for an output that changes in another way: the problem itself never draws such values. But then it gets other
values once more, with the first, the last and the sum or the largest as they were: one that takes a single number for all
of them stays where it was. And it is caught where it is right and runs no kernel any more: its kernels are for the constant
alone. An input that every draw makes the same, as positions or a triangular mask are, gets its rows in another order.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from dice.errors import DiceError
from dice.kernels.candidate.other_values import balanced, bounded, punched, shuffled, varied
from dice.kernels.compare import compare_outputs
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.reference import to_device
from dice.kernels.records.evidence import ProbeOutcome, ProbeResult
from dice.kernels.sandbox.replies import Offer
from dice.kernels.sandbox.session import CandidateRaised

Other = Callable[[torch.Tensor, int], torch.Tensor]
"""Makes other values of a tensor, after a seed."""


def experiment_usage(run: CandidateRun) -> None:
    """Change the constant weights, one kind after the other (`weight`, `bias`, `running_mean`), then each constant input.

    Adds a ProbeResult for each that has a result. The candidate gets a new model, whose first forward sees the new weights,
    and at the end one with the old weights.
    """
    if run.last is None:
        return
    with run.record.phase("experiments"):
        reference = run.reference.model(run.weights_seed)
        kinds: dict[str, list[str]] = {}
        for name, value in reference.state_dict().items():
            if value.is_floating_point() and is_constant(value):
                kinds.setdefault(name.rpartition(".")[2], []).append(name)
        for names in kinds.values():
            _change_weights(run, reference, names)
        if kinds:
            run.make_model(run.weights_seed)
        other = tree_leaves(run.draw_inputs(secrets.randbits(48)))
        for index, pair in enumerate(zip(tree_leaves(run.last.inputs), other, strict=False)):
            if all(is_constant(leaf) for leaf in pair):
                _change_input(run, reference, index, (varied, punched), (balanced, bounded))
            elif is_fixed(*pair):
                _change_input(run, reference, index, (shuffled,), ())


def is_constant(value: Any) -> bool:
    """Whether a tensor has at least two elements and all are equal. Integers must be 1: other constants may be positions or
    sizes, for which no other value is valid."""
    if not isinstance(value, torch.Tensor) or value.numel() < 2 or value.is_complex():
        return False
    flat = value.detach().reshape(-1)
    return bool((flat == flat[0]).all()) and (value.is_floating_point() or int(flat[0]) == 1)


def is_fixed(value: Any, other: Any) -> bool:
    """Whether two draws of the inputs have the same tensor, of several rows: positions that count up, a triangular mask."""
    if not (torch.is_tensor(value) and torch.is_tensor(other) and value.dim() and len(value) > 1):
        return False
    return value.shape == other.shape and value.dtype == other.dtype and torch.equal(value, other)


@contextlib.contextmanager
def _changed(model: torch.nn.Module, values: dict[str, Any]) -> Iterator[dict[str, torch.Tensor]]:
    """The model with other values where name and shape fit; yields its state."""
    state = model.state_dict()
    fitting = {
        name: value
        for name, value in values.items()
        if name in state and torch.is_tensor(value) and state[name].shape == value.shape
    }
    before = {name: state[name].clone() for name in fitting}
    try:
        for name, value in fitting.items():
            state[name].copy_(value)
        yield state
    finally:
        for name, value in before.items():
            state[name].copy_(value)


def _change_weights(run: CandidateRun, reference: torch.nn.Module, names: list[str]) -> None:
    """The candidate may have another model afterwards."""

    def called(other: Other) -> ProbeOutcome | None:
        assert run.last is not None
        own = reference.state_dict()
        with _changed(reference, {name: other(own[name], secrets.randbits(48)) for name in names}) as state:
            expected = _expected(run, reference, run.last.inputs)
            if expected is None or not run.construct_with(state):
                return None
            return _outcome(run, run.last.inputs, expected)

    outcome = _tried(called, (varied, punched), (balanced, bounded))
    if outcome == "stale" and _folds_when_made(run, reference):
        outcome = "right"
    if outcome is not None:
        detail = ", ".join(names)[:160]
        run.evidence.probes.append(ProbeResult(name="constant_weights", outcome=outcome, detail=detail))


def _tried(
    called: Callable[[Other], ProbeOutcome | None], others: Sequence[Other], finer: Sequence[Other]
) -> ProbeOutcome | None:
    """The outcome of `called` with the first of `others` that changes something, or with one of `finer` if it tells more;
    None without a result. What raises has none: no trial has such values."""
    with contextlib.suppress(CandidateRaised):
        first: ProbeOutcome | None = None
        for other in others:
            first = first or called(other)
        if first == "wrong" and any(called(other) == "stale" for other in finer):
            return "stale"
        return first
    return None


def _folds_when_made(run: CandidateRun, reference: torch.nn.Module) -> bool:
    """Whether the candidate follows other weights of its norms if they are there when it is made.

    One that computes with its weights in `__init__` does not see those that are loaded later, and is honest. So norms are
    made with other weights here, and the reference takes them from the candidate.
    """
    assert run.last is not None
    try:
        run.construct(run.weights_seed, odd_norms=True)
        state = run.fetch(run.ask("offer_state", Offer), dict(reference.state_dict()))
        with _changed(reference, state if isinstance(state, dict) else {}):
            expected = _expected(run, reference, run.last.inputs)
            return expected is not None and _outcome(run, run.last.inputs, expected) == "right"
    except CandidateRaised:
        return False


def _change_input(
    run: CandidateRun, reference: torch.nn.Module, index: int, others: Sequence[Other], finer: Sequence[Other]
) -> None:
    def called(other: Other) -> ProbeOutcome | None:
        assert run.last is not None
        leaves, structure = tree_flatten(run.last.inputs)
        leaves[index] = other(leaves[index], secrets.randbits(48))
        inputs = tree_unflatten(leaves, structure)
        expected = _expected(run, reference, inputs)
        return None if expected is None else _outcome(run, inputs, expected)

    outcome = _tried(called, others, finer)
    if outcome is not None:
        run.evidence.probes.append(ProbeResult(name="constant_inputs", outcome=outcome, detail=f"tensor {index}"))


def _expected(run: CandidateRun, model: torch.nn.Module, inputs: list[Any]) -> Any:
    """The reference's outputs in the changed state; None where it cannot be called so, or hardly changes."""
    assert run.last is not None
    try:
        expected = run.reference.run(model, to_device(inputs, run.place.device), run.last.forward_seed)
    except DiceError:
        return None
    return None if not _finite(expected) or compare_outputs(run.last.expected, expected, "paper").ok else expected


def _outcome(run: CandidateRun, inputs: list[Any], expected: Any) -> ProbeOutcome:
    """Call the candidate: did it follow, with kernels or without, stay what it was, or neither?"""
    assert run.last is not None
    run.send("inputs", inputs)
    actual = run.fetch(run.forward(run.last.forward_seed), expected)
    if compare_outputs(expected, actual, "paper").ok:
        return "idle" if run.is_idle() else "right"
    return "stale" if compare_outputs(run.last.expected, actual, "paper").ok else "wrong"


def _finite(outputs: Any) -> bool:
    floats = [leaf for leaf in tree_leaves(outputs) if torch.is_tensor(leaf) and leaf.is_floating_point()]
    return all(bool(leaf.isfinite().all()) for leaf in floats)
