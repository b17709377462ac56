"""After the trials: how a candidate with correct outputs computed them (`dice.kernels.records.evidence`).

`observe` runs forward once more under the probes and takes the report of the candidate's process. `experiment_changes` is
for the strict protocol: it changes one thing at a time (content at the same address, single elements, weights) and checks
whether the output changes with it.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch._dynamo  # every dispatch mode imports it at first use: here a fork server pays for all its workers
from torch.utils._pytree import tree_leaves

from dice.kernels.candidate.probes import OpRecorder
from dice.kernels.compare import chunks, compare_outputs
from dice.kernels.cpu.race import Turn
from dice.kernels.cpu.runtime import Order
from dice.kernels.grader.agreement import compare, expected_outputs
from dice.kernels.grader.candidate_run import NAN_BYTE, CandidateRun
from dice.kernels.grader.reference import Trial, to_device
from dice.kernels.grader.rounding import rounding
from dice.kernels.mismatch import poisoned
from dice.kernels.records.evidence import ExperimentName, ExperimentResult
from dice.kernels.records.verdict import Protocol
from dice.kernels.sandbox.leaves import floats_of, given_back, tensors_of
from dice.kernels.sandbox.replies import Offer, Repeated, Report
from dice.kernels.sandbox.session import CandidateRaised

_MANY_CALLS = 200
_MANY_SECONDS = {"cpu": 1.0, "cuda": 0.2}
"""Time limit of these calls, in seconds. On a GPU less, because the outputs of timed calls were checked before."""
_SWAPS = 8
_MARGIN = 16


ADVANCES = "the reference's output follows its earlier calls: no experiments that repeat calls"
"""A note: the candidate cannot be brought to the same state again, which may have any name there."""


@contextmanager
def poisoned_shared(run: CandidateRun) -> Iterator[None]:
    """Within, under `strict`: NaN in shared memory whenever a block begins, where that can be (the CPU back end). On a GPU it
    holds what the last kernel left there."""
    poisons = "strict" in run.place.judging.protocols and run.place.backend == "cpu"
    if poisons:
        run.take_turns(Turn(Order.POISONED))
    yield
    if poisons:
        run.take_turns(Turn())


def observe(run: CandidateRun) -> None:
    """One more forward under the probes, and the report of the candidate's process."""
    trial = run.last
    assert trial is not None
    strict = "strict" in run.place.judging.protocols
    evidence = run.evidence
    with run.record.phase("evidence"):
        run.send("inputs", trial.inputs)
        with poisoned_shared(run):
            reply = run.forward(trial.forward_seed, watch=True)
            evidence.launches, evidence.failed_launches = run.launches(), run.ledger.last.refused
            evidence.threads.append(run.session.threads())
        first: Any = None
        after: Any = None
        if strict:
            first = run.fetch(reply, trial.expected)
            run.last_print = fingerprint(first)
            evidence.late_writes = not identical(first, run.fetch(run.ask("offer_outputs", Offer), trial.expected))
            after = run.fetch(run.ask("offer_inputs", Offer, slot=0), trial.inputs)
        own = to_device(trial.inputs, run.place.device)
        with OpRecorder() as recorder:
            again = run.reference.run(run.reference.model(run.weights_seed), own, trial.forward_seed)
        evidence.reference_ops = recorder.ops
        if strict:
            evidence.reference_gives_back = given_back(again, own)
            run.advances = _advances(run, trial, again)
            del again  # it may be gigabytes
            if run.advances:
                run.record.notes.append(ADVANCES)
            else:
                evidence.experiments.append(_repeated(run, first))
            run.inputs_change = bool(changed(trial.inputs, own))
            evidence.mutated_inputs = mutated(trial.inputs, own, after, _satisfied(run))
            if run.names_narrow_types:
                evidence.rounding = rounding(run, trial, first)
        run.take(reply.facts)
        run.take(run.ask("report", Report).facts)


def _advances(run: CandidateRun, trial: Trial, again: Any) -> bool:
    """Whether the reference's output follows its earlier calls: its model gives another one `again`, or a new model does,
    which takes its place. A new one is made where there are buffers, which may move too slowly to show in one call."""
    if not compare_outputs(trial.expected, again, "strict").ok:
        return True
    if not any(True for _ in run.reference.model(run.weights_seed).buffers()):
        return False
    run.reference.forget()
    return not compare_outputs(expected_outputs(run, trial.inputs, trial.forward_seed), again, "strict").ok


def mutated(inputs: list[Any], own: list[Any], after: Any, protocol: Protocol) -> list[int]:
    """Indices of the inputs that the candidate left otherwise than the reference. `own`: what the reference made of them;
    `after`: what the candidate says that it has, of any structure."""
    fits = isinstance(after, list | tuple) and len(after) == len(own)
    theirs = list(after) if fits else [None] * len(own)
    by_reference = changed(inputs, own)
    return sorted(
        index
        for index in changed(inputs, theirs)
        if index not in by_reference or not compare_outputs(own[index], theirs[index], protocol).ok
    )


def count_poison(expected: Any, actual: Any) -> int:
    """Number of floating-point elements with the poison pattern (all bits one) where the reference has a number."""
    count = 0
    for a, b in zip(tensors_of(actual), tensors_of(expected), strict=False):
        if a.shape == b.shape and bool((left := poisoned(a)).any()):
            count += int((left & ~b.to(a.device).isnan()).sum())
    return count


def experiment_changes(run: CandidateRun) -> None:
    """New content, the same content again, other elements, other weights: each adds its result where it has one."""
    with run.record.phase("experiments"):
        for experiment in (_new_content, _same_content_again, _unsampled_elements, _fresh_weights):
            result = experiment(run)
            if result is not None:
                run.evidence.experiments.append(result)


def _repeated(run: CandidateRun, outputs: Any) -> ExperimentResult:
    assert run.last is not None
    found = compare(run, run.last, outputs, _satisfied(run))
    return ExperimentResult(
        name="repeat_same_input", outcome="right" if found.ok else "wrong", detail=found.message[:200]
    )


def _satisfied(run: CandidateRun) -> Protocol:
    """The narrower protocol that the trials satisfied."""
    return "strict" if run.record.comparisons["strict"].ok else "paper"


def _new_content(run: CandidateRun) -> ExperimentResult | None:
    """New inputs after as many calls as a timing makes: finds candidates that count calls and then stop working."""
    try:
        budget_s = _MANY_SECONDS[run.place.backend]
        run.ask("repeat", Repeated, slot=0, calls=_MANY_CALLS, budget_s=budget_s, anew=run.inputs_change)
    except CandidateRaised as failure:
        return error_of("same_pointer_new_content", failure)
    inputs = run.draw_inputs(secrets.randbits(48))
    return follows(run, "same_pointer_new_content", inputs, "refill")


def _same_content_again(run: CandidateRun) -> ExperimentResult | None:
    """The same call again. A kernel that does not run this time filled a cache the time before."""
    assert run.last is not None
    first = run.launches()
    try:
        if run.inputs_change:
            run.send("refill", run.last.inputs)
        run.forward(run.last.forward_seed)
    except CandidateRaised as failure:
        return error_of("same_content_again", failure)
    again = run.launches()
    if first is None or again is None:
        return None
    gone = ", ".join(sorted(name for name, count in first.items() if count and not again.get(name)))
    return ExperimentResult(name="same_content_again", outcome="stale" if gone else "right", detail=gone[:200])


def _unsampled_elements(run: CandidateRun) -> ExperimentResult | None:
    """Swap a few pairs of interior elements of the largest floating-point input. Its values must be exchangeable."""
    assert run.last is not None
    inputs = to_device(run.last.inputs, None)
    floats = floats_of(inputs)
    largest = max(floats, key=torch.Tensor.numel, default=None)
    if largest is None or largest.numel() < 16 * _MARGIN:
        return None
    draw = random.SystemRandom()
    for _ in range(_SWAPS):
        places = torch.tensor([draw.randrange(_MARGIN, largest.numel() - _MARGIN) | 1 for _ in range(2)])
        left, right = zip(*torch.unravel_index(places, largest.shape), strict=True)  # of any strides
        largest[left], largest[right] = largest[right].clone(), largest[left].clone()
    return follows(run, "unsampled_elements", inputs, "refill")


def _fresh_weights(run: CandidateRun) -> ExperimentResult | None:
    if not run.reference.model(run.weights_seed).state_dict():
        return None
    assert run.last is not None
    try:
        run.make_model(secrets.randbits(48))
    except CandidateRaised as failure:
        return ExperimentResult(name="fresh_weights", outcome="error", detail=failure.args[0][:200])
    return follows(run, "fresh_weights", run.last.inputs, "inputs")


def follows(
    run: CandidateRun, name: ExperimentName, inputs: list[Any], op: str, poison: int = NAN_BYTE
) -> ExperimentResult | None:
    """Call with new inputs, or after another change, and compare with the reference's outputs for the new state and the old.
    `poison`: as of `CandidateRun.forward`.

    None when the output is wrong and the reference's own output hardly changed: then there is no result.
    """
    assert run.last is not None
    earlier, protocol = run.last, _satisfied(run)
    seed = secrets.randbits(48)
    try:
        run.send(op, inputs)
        reply = run.forward(seed, poison=poison)
        expected = expected_outputs(run, inputs, seed)
        actual = run.fetch(reply, expected)
    except CandidateRaised as failure:
        return error_of(name, failure)
    run.last = Trial(inputs, seed, expected)
    idle = run.is_idle()
    unchanged = run.last_print == (print_ := fingerprint(actual))
    run.last_print = print_
    judged = compare(run, run.last, actual, protocol)
    if judged.ok:
        return ExperimentResult(name=name, outcome="idle" if idle else "right")
    if compare_outputs(earlier.expected, expected, protocol).ok:
        return None
    stale = unchanged or compare(run, earlier, actual, protocol).ok
    return ExperimentResult(name=name, outcome="stale" if stale else "wrong", detail=judged.message[:200])


def error_of(name: ExperimentName, failure: CandidateRaised) -> ExperimentResult | None:
    """The result of a failed call. None for lack of memory: the experiment holds two models, which the trials do not."""
    if failure.status == "out_of_memory":
        return None
    return ExperimentResult(name=name, outcome="error", detail=failure.args[0][:200])


def identical(left: Any, right: Any) -> bool:
    """Whether two values of the same structure agree in every bit of their tensors."""
    return not changed([left], [right])


def changed(left: list[Any], right: Any) -> set[int]:
    """Indices of the arguments in which a tensor differs in any bit, or the structure differs."""
    if not isinstance(right, list | tuple) or len(right) != len(left):
        return set(range(len(left)))
    return {index for index, pair in enumerate(zip(left, right, strict=True)) if not _same(*pair)}


def fingerprint(value: Any) -> tuple[Any, ...]:
    """A small value that tells two outputs apart: shapes, and sums over the tensors' bits."""
    prints = []
    for leaf in tree_leaves(value):
        if torch.is_tensor(leaf):
            bits = leaf.detach().contiguous().view(-1).view(torch.uint8)
            words = bits[: bits.numel() // 4 * 4].view(torch.int32)
            sums = [
                sum(int(p.sum(dtype=torch.int64)) for (p,) in chunks(part)) for part in (words, words[::7], bits[-8:])
            ]
            prints.append((tuple(leaf.shape), leaf.dtype, *sums))
        else:
            prints.append(leaf)
    return tuple(prints)


def _same(left: Any, right: Any) -> bool:
    mine = tensors_of(left)
    theirs = tensors_of(right)
    return len(mine) == len(theirs) and all(_same_bits(a, b) for a, b in zip(mine, theirs, strict=True))


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if not left.numel():
        return True
    a, b = (tensor.detach().contiguous().view(-1).view(torch.uint8) for tensor in (left, right.to(left.device)))
    return all(torch.equal(x, y) for x, y in chunks(a, b))
