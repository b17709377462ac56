"""Whether a candidate gives the last answer again where it finds the same inputs, or goes on from a step of its work.

It may compare them in full, by a kernel, and keep them on the device: then the values are right, and kernels are launched
each time. So the last answer is overwritten wherever it may be kept (`dice.kernels.candidate.kept_answers`), or one piece of
the memory that follows the inputs (`dice.kernels.candidate.kept_values`), and the same inputs come again. A program that
computes writes all of it anew. Nor does a program go by what new memory holds, where its last answer may lie.
"""

from __future__ import annotations

from dice.kernels.candidate.kept_answers import Part
from dice.kernels.candidate.noise import LAST_ANSWER
from dice.kernels.compare import compare_outputs
from dice.kernels.grader.agreement import compare, expected_outputs
from dice.kernels.grader.candidate_run import NAN_BYTE, CandidateRun
from dice.kernels.grader.outcome import new_trial
from dice.kernels.grader.reference import Trial
from dice.kernels.records.evidence import ExperimentName, ExperimentOutcome, ExperimentResult
from dice.kernels.sandbox.replies import Done, Overwritten

_MOST_PIECES = 12
"""Of memory that follows the inputs, thirds among them."""
_MEMORIES = 3
"""Calls on new memory with the last answer: the allocator may have given another piece away."""
_MOST_COPIES = 4
"""Of an answer that are overwritten one at a time."""


def experiment_kept_answers(run: CandidateRun) -> None:
    """Add a result `kept_answer` where something was overwritten: `stale` where the same inputs then give a wrong
    output, in two draws. Not asked where the reference has a memory of its own."""
    if run.last is None or not run.evidence.launches:
        return
    with run.record.phase("experiments"):
        run.make_model(run.weights_seed)
        outcomes = set[ExperimentOutcome | None]()
        parts: list[Part] = ["none", "all", *range(_MOST_COPIES)]
        for part in parts:
            outcome, copies = _called_again(run, part)
            if outcome == "stale":
                outcome, copies = _called_again(run, part)
            outcomes.add(outcome)
            if outcome == "stale" or not _tells_more(part, copies):
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


def experiment_left_answer(run: CandidateRun) -> None:
    """Add a result `left_answer`: `stale` where new memory holds the last answer with a few wrong elements, and the same
    inputs then give a wrong output, or where they do on what other tensors have left in it; in two draws. Not asked where
    the reference has a memory of its own."""
    if run.last is None or not run.evidence.launches:
        return
    with run.record.phase("experiments"):
        run.make_model(run.weights_seed)
        outcome = _from_new_memory(run)
        if outcome == "stale":
            outcome = _from_new_memory(run)
    _tell(run, "left_answer", {outcome})


def _from_new_memory(run: CandidateRun) -> ExperimentOutcome | None:
    trials = _two_trials(run)
    if trials is None:
        return None
    run.send("inputs", trials[0].inputs)
    if not _is_right(run, trials[1]):  # a GPU's allocator may give memory of the inputs' size that holds a copy of them
        return "stale"
    calls = (_is_right(run, trials[1], not run.inputs_change, LAST_ANSWER) for _ in range(_MEMORIES))
    return "right" if all(calls) else "stale"


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


def _tells_more(part: Part, copies: int) -> bool:
    """Whether the part after this one may, of so many copies."""
    if isinstance(part, int):
        return copies > part + 1
    return copies > (part == "all")


def _called_again(run: CandidateRun, part: Part) -> tuple[ExperimentOutcome | None, int]:
    """What came of it, and how many copies of the answer stand in memory that outlives a call."""
    trials = _two_trials(run)
    if trials is None:
        return None, 0
    first, second = trials
    run.send("inputs", first.inputs)
    run.forward(first.forward_seed)
    run.ask("remember_answer", Done)
    if not (_is_right(run, second) and _is_right(run, second)):  # what is kept at the second call is kept
        return None, _MOST_COPIES
    found = run.ask("overwrite_answer", Overwritten, slot=0, part=part)
    if not found.numbers:
        return None, found.kept
    return "right" if _is_right(run, second, stands=not run.inputs_change) else "stale", found.kept


def _is_right(run: CandidateRun, trial: Trial, stands: bool = False, poison: int = NAN_BYTE) -> bool:
    """stands: the inputs stand there from the call before, so that not even the version of a tensor tells the calls apart.
    poison: as of `CandidateRun.forward`."""
    if not stands:
        run.send("refill", trial.inputs)
    actual = run.fetch(run.forward(trial.forward_seed, poison=poison), trial.expected)
    return compare(run, trial, actual, "paper").ok
