"""Whether a candidate reads what is the same everywhere at first: weights of a norm, biases of zeros, a mask of ones,
lengths that are all full, a learned number, an input that equals another one.

In the trials such a tensor changes nothing, so a kernel that leaves it out passes them. Here it gets other values, for the
reference and for the candidate alike. A candidate is caught where the reference's output changes and its own does not. It
is not blamed for an output that changes in another way where an input changed: the problem itself never draws such values.
It is where that is so for each kind of values that the input may stand for (`dice.kernels.grader.taken_for_granted`). And it
gets other values once more, with the first, the last and the sum or the largest as they were, or in a quarter of the slices
alone: one that takes a single number, a column or a row for all of them stays where it was. One that follows gets the old
values but for one element, or two rows: it may have looked at a sample only. A model's weights are
there to change: an output that follows them in another way than the reference's counts too. And a candidate is caught where
it is right and runs no kernel any more: its kernels are for the constant alone. An input that every draw makes the same, as
positions or a triangular mask are, gets its rows in another order. One that is wrong then must follow when some of a mask's
closed elements open, or open ones close. Weights that another seed leaves as they are (an identity) count as the same
everywhere, and so do zero points and masks among the buffers of the state. Of the numbers among the inputs, a whole one
becomes the next, and a flag turns.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from dice.kernels.candidate.other_values import (
    Other,
    balanced,
    bounded,
    emptied,
    grown,
    has_fractions,
    mixed,
    partly,
    punched,
    shuffled,
    swapped,
    touched,
    varied,
)
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.consent import is_taken_on_cpu
from dice.kernels.grader.other_weights import changed_weights
from dice.kernels.grader.outcome import accepted, changed_output, new_trial, outcome_of
from dice.kernels.grader.places import look_for_places
from dice.kernels.grader.reference import Reference
from dice.kernels.grader.taken_for_granted import taken_for_granted
from dice.kernels.records.evidence import ExperimentOutcome, ExperimentResult
from dice.kernels.sandbox.replies import Offer
from dice.kernels.sandbox.session import CandidateRaised

_OTHERS: tuple[Other, ...] = (varied, punched, grown) * 4
"""Until one changes the reference's output clearly: where many elements share in one number, as in a weighed mean, one draw
in three does not."""
_FINER: tuple[Other, ...] = (balanced, bounded)
_TOUCHES = 3
"""Times that a single element, or two rows, are changed: a candidate that looks at a sample of a constant notices when all of
it changes, but hardly this."""
_TOUCHED: tuple[Other, ...] = (touched,) * _TOUCHES
_MIXED: tuple[Other, ...] = tuple(partial(mixed, rarer=rarer) for rarer in (False, True) for _ in range(_TOUCHES))
_MOST_AXES = 3
_DRAWS = 3
"""Parts of a constant that are drawn along each axis, and other numbers in the place of one."""
_MODELS = 6
"""Models with other constants that are made until one gives a clearly different output: a single learned number may begin
close to what it was."""
_RIGHTS = 2
"""Of these models that a candidate has to be right with."""
_LARGE_MODEL = 1 << 24
"""Parameters of a model that is not built a second time to see which of them stay."""


def experiment_usage(run: CandidateRun) -> None:
    """Change the constant weights, one kind after the other (`weight`, `bias`, `running_mean`), then each constant input.

    Adds a result for each that has a result. The candidate gets a new model, whose first forward sees the new weights,
    and at the end one with the old weights.
    """
    if run.last is None:
        return
    with run.record.phase("experiments"):
        fixed = fixed_weights(run.reference, run.weights_seed)
        reference = run.reference.model(run.weights_seed)
        kinds: dict[str, list[str]] = {}
        learned = dict(reference.named_parameters())
        for name, value in reference.state_dict().items():
            buffer = name not in learned and value.numel() > 1  # a number in a buffer is a setting
            if (has_fractions(value) and name in fixed) or (buffer and is_constant(value)):
                kinds.setdefault(name.rpartition(".")[2], []).append(name)
        state = reference.state_dict()
        if kinds and run.construct_with(state):
            for names in kinds.values():
                _change_weights(run, reference, names)
        elif kinds:
            names = [name for kind in kinds.values() for name in kind]
            usable = {name: state[name] for name in names if has_fractions(state[name]) and is_constant(state[name])}
            look_for_places(run, reference, usable)
        if kinds:
            run.make_model(run.weights_seed)
        run.last = new_trial(run)  # other experiments have changed single elements of the last one
        leaves, other = tree_leaves(run.last.inputs), tree_leaves(run.draw_inputs(secrets.randbits(48)))
        for index, pair in enumerate(zip(leaves, other, strict=False)):
            if all(is_constant(leaf) for leaf in pair):
                _change_input(run, reference, index, _OTHERS, (*_FINER, *_parts(pair[0])), _TOUCHED)
            elif is_fixed(*pair):
                _change_input(run, reference, index, (shuffled,), _MIXED, (swapped,) * _TOUCHES)
            elif is_twin(leaves, index) and is_twin(other, index):
                _change_input(run, reference, index, (lambda _, __, drawn=pair[1]: drawn,), ())
        for index, (number, drawn) in enumerate(zip(leaves, other, strict=False)):  # last: a whole one may be a size
            if isinstance(number, int | float) and number == drawn:
                _change_input(run, reference, index, (_another_number,) * _DRAWS, ())


def is_constant(value: Any) -> bool:
    """Whether all elements of a tensor are equal. There must be at least two integers, none negative: a single one may be a
    size, and what is valid beside negative ones is not known."""
    if not isinstance(value, torch.Tensor) or not value.numel():
        return False
    flat = value.detach().reshape(-1)
    valid = has_fractions(value) or (value.numel() > 1 and int(flat[0]) >= 0)
    return valid and bool((flat == flat[0]).all())


def _parts(value: torch.Tensor) -> list[Other]:
    """Changes of a part of a constant."""
    kinds = (varied, emptied) if has_fractions(value) else (varied,)
    axes = [axis for axis in range(value.dim()) if value.shape[axis] > 1][:_MOST_AXES]
    return [partly(kind, axis) for axis in axes for kind in kinds for _ in range(_DRAWS)]


def is_fixed(value: Any, other: Any) -> bool:
    """Whether two draws of the inputs have the same tensor, of several elements: positions that count up, a triangular
    mask."""
    if not (torch.is_tensor(value) and torch.is_tensor(other) and value.numel() > 1):
        return False
    return value.shape == other.shape and value.dtype == other.dtype and torch.equal(value, other)


def is_twin(leaves: list[Any], index: int) -> bool:
    """Whether an input has the values of one before it, in memory of its own."""
    mine = leaves[index]
    return any(is_fixed(mine, other) and mine.data_ptr() != other.data_ptr() for other in leaves[:index])


def fixed_weights(reference: Reference, seed: int) -> set[str]:
    """Names of the parameters with fractions that another seed leaves as they are: ones, zeros, an identity, slopes after
    a formula. Of a very large model, those that are the same everywhere."""
    if is_large(reference.model(seed)):
        return {name for name, value in reference.model(seed).named_parameters() if is_constant(value)}
    return {name for name, drawn in drawn_elements(reference, seed).items() if not bool(drawn.any())}


def is_large(model: torch.nn.Module) -> bool:
    """Whether a model is too large to be built a second time."""
    return sum(value.numel() for value in model.parameters()) > _LARGE_MODEL


def drawn_elements(reference: Reference, seed: int) -> dict[str, torch.Tensor]:
    """Masks of the parameters with fractions: true where another seed gives another value."""
    learned = reference.model(seed).named_parameters()
    before = {name: value.detach().clone() for name, value in learned if has_fractions(value)}
    other = dict(reference.model(secrets.randbits(48)).named_parameters())
    fitting = {name for name, value in before.items() if name in other and other[name].shape == value.shape}
    return {name: before[name] != other[name].detach() for name in fitting}


def _another_number(value: Any, seed: int) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return float(varied(torch.tensor(value, dtype=torch.float64), seed))


def _change_weights(run: CandidateRun, reference: torch.nn.Module, names: list[str]) -> None:
    """The candidate may have another model afterwards."""

    def called(other: Other) -> ExperimentOutcome | None:
        assert run.last is not None
        own = reference.state_dict()
        values = {name: other(own[name], secrets.randbits(48)) for name in names}
        whole = {name: value for name, value in values.items() if not has_fractions(value)}
        if whole and not is_taken_on_cpu(run, run.last.inputs, run.last.forward_seed, whole):
            return None
        with changed_weights(reference, values) as state:
            expected = changed_output(run, reference, run.last.inputs)
            if expected is None or not run.construct_with(state):
                return None
            return outcome_of(run, run.last.inputs, expected)

    outcome = _tried(called, _OTHERS, _FINER)
    if outcome in ("stale", "wrong") and _folds_when_made(run, reference):
        outcome = "right"
    elif outcome == "right":
        outcome = _overlooked(called, _TOUCHED, ("stale", "wrong")) or outcome
    if outcome is not None:
        detail = ", ".join(names)[:160]
        run.evidence.experiments.append(ExperimentResult(name="constant_weights", outcome=outcome, detail=detail))


def _tried(
    called: Callable[[Other], ExperimentOutcome | None], others: Sequence[Other], finer: Sequence[Other]
) -> ExperimentOutcome | None:
    """The outcome of `called` with the first of `others` that changes something, or with one of `finer` if it tells more;
    None without a result. What raises has none: no trial has such values."""
    with contextlib.suppress(CandidateRaised):
        first: ExperimentOutcome | None = None
        for other in others:
            first = first or called(other)
        if first == "wrong" and any(called(other) == "stale" for other in finer):
            return "stale"
        return first
    return None


def _overlooked(
    called: Callable[[Other], ExperimentOutcome | None],
    single: Sequence[Other],
    counts: Sequence[ExperimentOutcome] = ("stale",),
) -> ExperimentOutcome | None:
    """The first outcome that counts, of a candidate that follows other values and may overlook these."""
    with contextlib.suppress(CandidateRaised):
        return next((outcome for outcome in map(called, single) if outcome in counts), None)
    return None


def _folds_when_made(run: CandidateRun, reference: torch.nn.Module) -> bool:
    """Whether the candidate follows other values of its constant weights if they are there when it is made.

    One that computes with its weights in `__init__` does not see those that are loaded later, and is honest. So constant
    weights begin with other values here, and the reference takes them from the candidate. Twice, since a single number may
    begin close to what it was.
    """
    assert run.last is not None
    rights = 0
    with contextlib.suppress(CandidateRaised):
        for _ in range(_MODELS):
            run.construct(run.weights_seed, odd_constants=True)
            state = run.fetch(run.ask("offer_state", Offer), dict(reference.state_dict()))
            values = state if isinstance(state, dict) else {}
            with changed_weights(reference, values):
                taken = is_taken_on_cpu(run, run.last.inputs, run.last.forward_seed, values)  # it may say anything
                expected = changed_output(run, reference, run.last.inputs) if taken else None
                if expected is not None and outcome_of(run, run.last.inputs, expected) != "right":
                    return False
                rights += expected is not None
            if rights == _RIGHTS:
                break
    return rights > 0


def _change_input(
    run: CandidateRun,
    reference: torch.nn.Module,
    index: int,
    others: Sequence[Other],
    finer: Sequence[Other],
    single: Sequence[Other] = (),
) -> None:
    def called(other: Other) -> ExperimentOutcome | None:
        assert run.last is not None
        leaves, structure = tree_flatten(run.last.inputs)
        leaves[index] = other(leaves[index], secrets.randbits(48))
        inputs = tree_unflatten(leaves, structure)
        if not _is_floating(leaves[index]) and not accepted(run, inputs):
            return None
        expected = changed_output(run, reference, inputs)
        return None if expected is None else outcome_of(run, inputs, expected)

    outcome, detail = _tried(called, others, finer), f"input {index}"
    if outcome == "right":
        outcome = _overlooked(called, single) or outcome
    if outcome is not None:
        run.evidence.experiments.append(ExperimentResult(name="constant_inputs", outcome=outcome, detail=detail))
    if outcome in (None, "right", "wrong"):
        assert run.last is not None
        found = taken_for_granted(tree_leaves(run.last.inputs)[index], called)
        if found is not None:
            run.evidence.experiments.append(ExperimentResult(name="other_kinds", outcome=found, detail=detail))


def _is_floating(value: Any) -> bool:
    return value.is_floating_point() if torch.is_tensor(value) else isinstance(value, float)
