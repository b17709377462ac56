"""Whether a candidate gives the last answer again where it finds the same inputs, or goes on from a step of its work.

It may compare them in full, by a kernel, and keep them on the device: then the values are right, and kernels are launched
each time. So the last answer is overwritten wherever it may be kept (`dice.kernels.candidate.kept_answers`), or one piece of
the memory that follows the inputs (`dice.kernels.candidate.kept_values`), and the same inputs come again. A program that
computes writes all of it anew.
"""

from __future__ import annotations

from dice.kernels.candidate.kept_answers import Part
from dice.kernels.compare import compare_outputs
from dice.kernels.grader.agreement import compare, expected_outputs
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.outcome import new_trial
from dice.kernels.grader.reference import Trial
from dice.kernels.records.evidence import ExperimentName, ExperimentOutcome, ExperimentResult
from dice.kernels.sandbox.replies import Done, Overwritten

_MOST_PIECES = 6
_PARTS: tuple[Part, ...] = ("none", "all", "first", "second")


def experiment_kept_answers(run: CandidateRun) -> None:
    """Add a result `kept_answer` where something was overwritten: `stale` where the same inputs then give a wrong
    output, in two draws. Not asked where the reference has a memory of its own."""
    if run.last is None or not run.evidence.launches:
        return
    with run.record.phase("experiments"):
        run.make_model(run.weights_seed)
        outcomes = set[ExperimentOutcome | None]()
        for part in _PARTS:
            outcome, more = _called_again(run, part)
            if outcome == "stale":
                outcome, more = _called_again(run, part)
            outcomes.add(outcome)
            if outcome == "stale" or not more:
                break
    _tell(run, "kept_answer", outcomes)


def experiment_kept_values(run: CandidateRun) -> None:
    """Add a result `kept_values` where something was overwritten: `stale` where the same inputs then give a wrong output, in
    two draws. Not asked where the reference has a memory of its own."""
    if run.last is None or not run.evidence.launches:
        return
    outcomes = set[ExperimentOutcome | None]()
    with run.record.phase("experiments"):
        for piece in range(_MOST_PIECES):
            outcome, pieces = _goes_on(run, piece)
            if outcome == "stale":
                outcome, pieces = _goes_on(run, piece)
            outcomes.add(outcome)
            if outcome == "stale" or piece + 1 >= pieces:
                break
    _tell(run, "kept_values", outcomes)


def _tell(run: CandidateRun, name: ExperimentName, outcomes: set[ExperimentOutcome | None]) -> None:
    if known := outcomes - {None}:
        found: ExperimentOutcome = "stale" if "stale" in known else "right"
        run.evidence.experiments.append(ExperimentResult(name=name, outcome=found))


def _goes_on(run: CandidateRun, piece: int) -> tuple[ExperimentOutcome | None, int]:
    """What came of overwriting one piece, and how many there are."""
    trials = _two_trials(run)
    if trials is None:
        return None, 0
    first, second = trials
    run.make_model(run.weights_seed)  # the last one may never recover
    spared = [*run.reference.model(run.weights_seed).state_dict()]
    run.send("inputs", first.inputs)
    for trial in (new_trial(run), first, second, second):  # what is made once is made
        if not _is_right(run, trial):
            return None, 0
        run.ask("look", Done, spared=spared)
    found = run.ask("overwrite_kept", Overwritten, slot=0, piece=piece)
    if not found.numbers:
        return None, found.kept
    return "right" if _is_right(run, second, stands=not run.inputs_change) else "stale", found.kept


def _two_trials(run: CandidateRun) -> tuple[Trial, Trial] | None:
    """Two draws; None where the reference has a memory of its own."""
    first, second = new_trial(run), new_trial(run)
    again = expected_outputs(run, second.inputs, second.forward_seed)
    return (first, second) if compare_outputs(second.expected, again, "strict").ok else None


def _called_again(run: CandidateRun, part: Part) -> tuple[ExperimentOutcome | None, bool]:
    """What came of it, and whether other parts may tell more: where the answer stands in memory that outlives a call."""
    trials = _two_trials(run)
    if trials is None:
        return None, False
    first, second = trials
    run.send("inputs", first.inputs)
    run.forward(first.forward_seed)
    run.ask("remember_answer", Done)
    if not (_is_right(run, second) and _is_right(run, second)):  # what is kept at the second call is kept
        return None, True
    found = run.ask("overwrite_answer", Overwritten, slot=0, part=part)
    if not found.numbers:
        return None, found.kept > 0
    return "right" if _is_right(run, second, stands=not run.inputs_change) else "stale", found.kept > 0


def _is_right(run: CandidateRun, trial: Trial, stands: bool = False) -> bool:
    """stands: the inputs stand there from the call before, so that not even the version of a tensor tells the calls apart."""
    if not stands:
        run.send("refill", trial.inputs)
    actual = run.fetch(run.forward(trial.forward_seed), trial.expected)
    return compare(run, trial, actual, "paper").ok
