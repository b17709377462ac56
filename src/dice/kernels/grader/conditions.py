"""The protocol `robust`: a candidate under every condition that the reference accepts (`dice.kernels.conditions`).

A run of its own, without timing, checks or experiments: nothing of it reaches the verdicts of other protocols. All
numbers come from one seed, which the verdict names, so a condition can be tried again alone. The candidate's process is
sent inputs, weights and orders of threads as in any other run; no name of a condition reaches it.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import re
import secrets
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map

from dice.errors import DiceError
from dice.kernels.compare import compare_outputs
from dice.kernels.conditions.condition import Condition, Source, cut_like, derived
from dice.kernels.conditions.sizes import SHORTER
from dice.kernels.conditions.table import chosen
from dice.kernels.cpu.race import Turn
from dice.kernels.grader.agreement import expected_outputs
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.consent import Consent, is_safe
from dice.kernels.grader.equal_values import choice_is_told
from dice.kernels.grader.other_weights import OTHER_WEIGHTS
from dice.kernels.grader.reference import Seeds, to_device, widened
from dice.kernels.records.verdict import ConditionResult, Outcome, Status
from dice.kernels.rounding_tolerance import Truth, disagreement, farther, is_known, unit
from dice.kernels.sandbox.leaves import floats_of, tensors_of
from dice.kernels.sandbox.replies import Done
from dice.kernels.sandbox.session import CandidateFailure, CandidateRaised
from dice.kernels.sandbox.strides import strides_of

_MOST_ENDED = 3
"""Processes that a candidate may lose; after that, the remaining conditions are not tried."""
_MORE_MOVES = 8
"""Further moves of inputs and weights by a rounding, where an output seems wrong."""
_CUDA_ERROR = "CUDA error"
"""Words of a failed launch. Nothing runs in its process after some of them, so the next condition gets another process."""
_ORDERS = re.compile(r"\b(?:arg)?sort\(|\b(?:topk|msort|kthvalue|(?:nan)?median|mode|argm(?:ax|in)|cumm(?:ax|in))\(")
"""Text of a reference that puts values in order. The places of equal ones it may turn into numbers of any type."""
_OPEN = "which of equal values comes first is open"


def replayable(seed: int | None) -> tuple[int, Seeds]:
    """The seed of a run under `robust`, and what follows from it. A candidate knows the weights' seed and can conclude
    nothing from it."""
    first = secrets.randbits(48) if seed is None else seed
    return first, Seeds(derived(first, "weights"), (derived(first, "inputs 0"),), (derived(first, "forward"),))


def try_conditions(run: CandidateRun, seed: int) -> None:
    """Try the chosen conditions and record each (`record.conditions`); the first that breaks the candidate gives its
    failure. A candidate that is wrong on the inputs that the problem draws is tried no further, and any that is broken only
    where `judging.first_break` does not end it."""
    run.enter("forward", "forward")
    results = run.record.conditions = list[ConditionResult]()
    ended, draws = 0, _Draws(run)
    for condition in chosen(run.place.judging.conditions):
        if condition.on_cpu_only and (run.place.backend != "cpu" or not run.builds.requests):
            continue
        if ended >= _MOST_ENDED:
            results.append(_result(condition, seed, "not_tried", "it ended its process too often"))
            continue
        run.revive()
        try:
            if results and any(True for _ in run.reference.model(run.seeds.weights).buffers()):
                run.make_model(run.seeds.weights)  # no condition finds what an earlier one left in it
            result = _try(run, condition, seed, draws)
        except CandidateFailure as failure:
            if condition.name == "drawn":
                raise
            result = _failed(run, condition, seed, failure)
            if not run.session.alive or failure.status == "timeout" or _CUDA_ERROR in failure.args[0]:
                ended += 1
                run.end()
        if result is None:
            continue
        results.append(result)
        run.record.trials += result.outcome in ("right", "broken")
        if condition.name == "drawn" and result.outcome != "right":
            break
        if run.place.judging.first_break and result.outcome == "broken" and result.decides:
            break
    broken = next((one for one in results if one.outcome == "broken" and one.decides), None)
    if broken is not None:
        assert broken.status is not None
        replay = f"judging.seed={seed}, judging.conditions=[{broken.name}]"
        run.record.failures["robust"] = broken.status, f"{broken.name}: {broken.detail} (again with {replay})"


class _Draws:
    """Inputs of the problem, by seed. Once `shorten` was called, they are cut, and kept: each condition asks for the same."""

    def __init__(self, run: CandidateRun) -> None:
        self._run = run
        self._like: list[Any] | None = None
        self._cut = dict[int, list[Any]]()
        self.consent = Consent(run, lambda: run.draw_inputs(run.seeds.inputs[0]))

    def shorten(self, like: list[Any]) -> None:
        """From now on, inputs have the sizes of these."""
        self._like = like

    def __call__(self, seed: int) -> list[Any]:
        if self._like is None:
            return self._run.draw_inputs(seed)
        if seed not in self._cut:
            self._cut[seed] = cut_like(self._run.draw_inputs(seed), self._like)
        return self._cut[seed]


def _result(
    condition: Condition, seed: int, outcome: Outcome, detail: str = "", status: Status | None = None
) -> ConditionResult:
    return ConditionResult(
        name=condition.name, outcome=outcome, decides=condition.decides, status=status, seed=seed, detail=detail[:600]
    )


def _failed(run: CandidateRun, condition: Condition, seed: int, failure: CandidateFailure) -> ConditionResult:
    """What an exception or the end of the process means."""
    message = failure.args[0]
    if failure.status == "out_of_memory" or run.lacks_support(failure):
        return _result(condition, seed, "not_tried", message)
    own = isinstance(failure, CandidateRaised) and failure.status == "runtime_error" and not failure.error.exit
    if own and condition.may_refuse and _CUDA_ERROR not in message and "Cuda" not in message.split(":")[0]:
        return _result(condition, seed, "refused", message)
    return _result(condition, seed, "broken", message, failure.status)


def _try(run: CandidateRun, condition: Condition, seed: int, draws: _Draws) -> ConditionResult | None:
    """One condition; None where the problem has nothing that it changes. Raises CandidateFailure."""
    forward_seed = derived(seed, f"forward {condition.name}")
    if condition.ties and _ORDERS.search(run.reference.code):
        return _result(condition, seed, "undefined", _OPEN)
    with _weights(run, condition, seed) as ready, _guards(run, condition):
        if not ready:
            return None
        source = Source(
            draws, lambda inputs: draws.consent.work(inputs, forward_seed), seed, condition.name, run.draw_inputs
        )
        inputs = condition.inputs(source)
        if (
            inputs is None
            and condition.weights in OTHER_WEIGHTS
            and run.reference.model(run.seeds.weights).state_dict()
        ):
            inputs = source.inputs  # none of them has a sign, but the weights have
        if inputs is None:
            return None
        truth = truth_of(run, inputs, forward_seed)
        if truth is None and condition.name == "drawn":
            expected_outputs(run, inputs, forward_seed)  # raises what is wrong with the problem
        if truth is None:
            return _result(condition, seed, "not_accepted")
        if condition.ties and _tells_the_choice(run, inputs, forward_seed):
            return _result(condition, seed, "undefined", _OPEN)
        changes = condition.contained or condition.nan_is_open
        plain = truth_of(run, source.inputs, forward_seed) if changes else None
        if plain is not None:
            more = {"moved": plain.exact} if condition.contained else {"plain": plain.exact}
            truth = dataclasses.replace(truth, **more)
        with _turn(run, condition.turn):
            run.send("inputs", inputs, strides=strides_of(inputs) if condition.keeps_strides else None)
            reply = run.forward(forward_seed)
            outline = compare_outputs(_unvalued(truth.expected), _unvalued(reply.outline.value), "paper")
            if not outline.ok:
                return _result(condition, seed, "broken", outline.message, outline.status)
            actual = run.fetch(reply, truth.expected)
        with run.record.phase("compare"):
            found = disagreement(truth, actual, condition.compares)
        if found.message:
            found = disagreement(_moved_more(run, truth, inputs, forward_seed), actual, condition.compares)
    if found.message and condition.weights in OTHER_WEIGHTS:
        # One that computes with its weights when it is made does not see those that it is given later, and is honest.
        before = truth_of(run, inputs, forward_seed)
        if before is not None and not disagreement(before, actual).message:
            return _result(condition, seed, "undefined", "it computes with its weights when it is made")
    if found.message:
        return _result(condition, seed, "broken", f"{_shapes(inputs)}{found.message}", "wrong_value")
    if condition is SHORTER and found.defined:
        draws.shorten(inputs)
    return _result(condition, seed, "right" if found.defined else "undefined")


def _unvalued(outputs: Any) -> Any:
    """Outputs with 1 for each number: `disagreement` looks at its value, which may be NaN."""

    def one(leaf: Any) -> Any:
        if torch.is_tensor(leaf):
            return leaf if leaf.dim() or leaf.dtype == torch.bool else torch.ones_like(leaf)
        return 1.0 if isinstance(leaf, int | float) and not isinstance(leaf, bool) else leaf

    return tree_map(one, outputs)


def _tells_the_choice(run: CandidateRun, inputs: list[Any], forward_seed: int) -> bool:
    return choice_is_told(lambda: expected_outputs(run, inputs, forward_seed))


def _shapes(inputs: list[Any]) -> str:
    shapes = [list(tensor.shape) for tensor in tensors_of(inputs)]
    return f"inputs {', '.join(map(str, shapes))}: "[:200] if shapes else ""


@contextlib.contextmanager
def _weights(run: CandidateRun, condition: Condition, seed: int) -> Iterator[bool]:
    """The weights of a condition, in the candidate and in the reference; yields False where there are none to change. After
    it the candidate has those of the trials again."""
    if condition.weights == "same":
        yield True
        return
    own = run.reference.model(run.seeds.weights).state_dict()
    if not own:
        yield condition.weights == "positive"  # such a condition changes the inputs besides
        return
    try:
        if condition.weights == "other_seed":
            run.make_model(derived(seed, "other weights"))
            yield True
            return
        before = {name: value.clone() for name, value in own.items()}
        learned = {name for name, _ in run.reference.model(run.seeds.weights).named_parameters()}
        if condition.weights == "small_buffers" and not own.keys() - learned:
            yield False
            return
        for number, (name, value) in enumerate(own.items()):
            if value.is_floating_point():
                other = OTHER_WEIGHTS[condition.weights](value, derived(seed, f"weight {number}"), name in learned)
                own[name].copy_(other)
        try:
            yield run.construct_with(own)
        finally:
            for name, value in before.items():
                own[name].copy_(value)
    finally:
        if run.session.alive:
            run.make_model(run.seeds.weights)


@contextlib.contextmanager
def _guards(run: CandidateRun, condition: Condition) -> Iterator[None]:
    """Guards around all memory that the candidate's model and calls make in the block."""
    if not condition.guarded:
        yield
        return
    run.ask("guard", Done, on=True)
    try:
        run.make_model(run.seeds.weights)
        yield
    finally:
        if run.session.alive:
            run.ask("guard", Done, on=False)
            run.make_model(run.seeds.weights)


@contextlib.contextmanager
def _turn(run: CandidateRun, turn: Turn | None) -> Iterator[None]:
    """An order of threads, for the block."""
    if turn is None:
        yield
        return
    run.take_turns(turn)
    try:
        yield
    finally:
        if run.session.alive:
            run.take_turns(Turn())


# ---- the reference ----


def truth_of(run: CandidateRun, inputs: list[Any], seed: int) -> Truth | None:
    """What the reference gives, in its own dtypes, in fp64 and moved by a rounding; None where it raises."""
    if not is_safe(run, inputs, seed):
        return None
    model = run.reference.model(run.weights_seed)
    with run.record.phase("reference"):
        expected = _called(run, copy.deepcopy(model), inputs, seed)
        if expected is None:
            return None
        exact = _called(run, copy.deepcopy(model).double(), widened(inputs), seed)
        if exact is None or not is_known(expected[0], exact[0]):
            exact = expected
        moved = _called_moved(run, exact is not expected, inputs, seed, 0)
        return Truth(expected[0], exact[0], (moved or exact)[0])


def _moved_more(run: CandidateRun, truth: Truth, inputs: list[Any], seed: int) -> Truth:
    """The truth with more moves, before a candidate is blamed."""
    with run.record.phase("reference"):
        for number in range(1, _MORE_MOVES + 1):
            moved = _called_moved(run, truth.exact is not truth.expected, inputs, seed, number)
            truth = farther(truth, moved[0]) if moved is not None else truth
    return truth


def _called_moved(run: CandidateRun, wide: bool, inputs: list[Any], seed: int, number: int) -> tuple[Any] | None:
    """`_called` with inputs and weights moved, in fp64 where `wide`."""
    model = copy.deepcopy(run.reference.model(run.weights_seed))
    if wide:
        model = model.double()
    moved = _moved(model, inputs, number)
    return _called(run, model, widened(moved) if wide else moved, seed)


def _called(run: CandidateRun, model: torch.nn.Module, inputs: list[Any], seed: int) -> tuple[Any] | None:
    """The outputs of one call on a copy of the inputs; None where it raises."""
    try:
        return (run.reference.run(model, to_device(inputs, run.place.device), seed),)
    except DiceError:
        return None


def _moved(model: torch.nn.Module, inputs: list[Any], number: int) -> list[Any]:
    """Move the model's state, and return inputs moved, by one rounding of the inputs' dtype, up or down by chance."""
    draw = torch.Generator().manual_seed(number)
    floats = floats_of(inputs)
    coarsest = max((unit(leaf.dtype) for leaf in floats), default=unit(torch.float32))

    def moved(value: Any) -> Any:
        if not (torch.is_tensor(value) and value.is_floating_point()):
            return value
        step = max(coarsest, 2 * unit(value.dtype))
        signs = torch.randint(2, value.shape, generator=draw).to(value.device) * 2 - 1
        return value + value * (signs * step)

    with torch.no_grad():
        for value in model.state_dict().values():
            if value.is_floating_point():
                value.copy_(moved(value))
    return tree_map(moved, inputs)
