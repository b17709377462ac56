"""The correctness trials of one candidate, and whether a wrong value depends on the order of threads."""

from __future__ import annotations

import contextlib
import random
from typing import Any

from dice.kernels.compare import Comparison, compare_outputs
from dice.kernels.cpu.race import Turn, prove_race
from dice.kernels.grader.agreement import compare, expected_outputs
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.observation import count_poison
from dice.kernels.grader.record import worse
from dice.kernels.grader.reference import Trial
from dice.kernels.mismatch import locate
from dice.kernels.records.verdict import Protocol
from dice.kernels.sandbox.leaves import tensors_of
from dice.kernels.sandbox.replies import Offer
from dice.kernels.sandbox.session import CandidateFailure


def try_inputs(run: CandidateRun) -> None:
    """Compare outputs on the inputs of each seed. Stops when no protocol can be satisfied any more."""
    run.enter("forward", "forward")
    if run.counts_launches:
        run.evidence.launches_init = run.ledger.read().launches
    # One trial is recorded unannounced, but neither the first nor the last, whose launches are compared.
    trials = len(run.seeds.inputs)
    recorded = random.SystemRandom().randrange(1, trials - 1) if trials > 2 else None
    for index, (seed, forward_seed) in enumerate(zip(run.seeds.inputs, run.seeds.forward, strict=True)):
        run.last = trial = inputs = actual = None  # they may be gigabytes: keep one trial at a time
        with run.record.phase("inputs"):
            inputs = run.draw_inputs(seed)
        run.send("inputs", inputs)
        reply = run.forward(forward_seed, watch=index == recorded)
        run.take(reply.facts)
        run.evidence.threads.append(run.session.threads())
        if index != recorded and (launches := run.launches()) is not None:
            run.evidence.unwatched_launches.append(sum(launches.values()))
        trial = Trial(inputs, forward_seed, expected_outputs(run, inputs, forward_seed))
        if _compare_outline(run, trial, reply):
            actual = run.fetch(reply, trial.expected)
            with run.record.phase("compare"):
                _compare(run, trial, actual)
        run.record.trials = index + 1
        run.last = trial
        if not run.standing():
            return


def _compare_outline(run: CandidateRun, trial: Trial, offer: Offer) -> bool:
    """Compare structure, shapes and dtypes, before gigabytes of the wrong ones are copied; True where some protocol is
    still satisfied. Raises CandidateFailure for outputs on another device."""
    theirs = {tensor.device.type for tensor in tensors_of(trial.expected)}
    if theirs and offer.outline.places - theirs:
        mine, others = (", ".join(sorted(side)) for side in (offer.outline.places, theirs))
        raise CandidateFailure("runtime_error", f"its outputs are on {mine}, the reference's on {others}")
    for protocol in _unbroken(run):
        found = compare_outputs(trial.expected, offer.outline.value, protocol)
        if not found.ok:
            _take(run, protocol, found)
    return bool(_unbroken(run))


def _compare(run: CandidateRun, trial: Trial, actual: Any) -> None:
    """Compare under each protocol that is still satisfied."""
    for protocol in _unbroken(run):
        found = compare(run, trial, actual, protocol)
        if found.status == "wrong_value":
            run.evidence.poison_left = count_poison(trial.expected, actual) or run.evidence.poison_left
            if run.place.judging.explain and (mismatch := locate(trial.expected, actual, protocol)) is not None:
                run.record.mismatches[protocol] = mismatch
        _take(run, protocol, found)


def _unbroken(run: CandidateRun) -> list[Protocol]:
    """Protocols under which no trial has failed yet."""
    comparisons = run.record.comparisons
    return [name for name in run.place.judging.protocols if name not in comparisons or comparisons[name].ok]


def _take(run: CandidateRun, protocol: Protocol, found: Comparison) -> None:
    earlier = run.record.comparisons.get(protocol)
    run.record.comparisons[protocol] = found if earlier is None else worse(earlier, found)


def look_for_races(run: CandidateRun) -> None:
    """Check whether a wrong value depends on the order of threads; then it says nothing about a GPU. The author of one
    kernel is also told where a right one does."""
    wrong = [item for item in run.record.comparisons.values() if item.status == "wrong_value"]
    if not (wrong or (run.place.judging.explain and run.standing())) or run.last is None or not run.evidence.extensions:
        return
    trial = run.last

    def forward(turn: Turn) -> Any:
        run.take_turns(turn)
        run.send("inputs", trial.inputs)
        reply = run.forward(trial.forward_seed)
        found = compare_outputs(trial.expected, reply.outline.value, "paper")
        if found.status in ("wrong_shape", "wrong_dtype"):  # it may be of a type that cannot be compared
            raise CandidateFailure(found.status, found.message)
        return run.fetch(reply, trial.expected)

    def same(left: Any, right: Any) -> bool:
        return compare_outputs(left, right, "paper").ok

    with run.record.phase("races"), contextlib.suppress(CandidateFailure):  # a failure here proves nothing
        kernels = sorted(run.launches() or {})
        race = prove_race(forward, kernels, same)
        run.record.orders_tried = bool(kernels)
        run.record.race = race
        if race is not None:
            run.record.notes.append(race.note)
    with contextlib.suppress(CandidateFailure):
        run.take_turns(Turn())
