"""Whether a candidate's kernels also run when it is called in another way than here.

Who serves or measures a model may call it in inference mode, with views of larger memory. None of that is a reason to leave
out a kernel, so two forwards come with all of it: the inputs are parts of larger tensors, as those of a batch are, and
PyTorch is in inference mode. The first has the inputs of a forward just before it, so that an answer which was kept is right;
the second has new ones, so that it is stale. A candidate that is right and runs no kernel keeps its kernels for the call that
it takes for a test. What raises, or is wrong in another way, says nothing here.
"""

from __future__ import annotations

from dice.kernels.grader.agreement import compare
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.outcome import new_trial
from dice.kernels.grader.reference import Trial
from dice.kernels.records.evidence import ExperimentOutcome, ExperimentResult


def experiment_guises(run: CandidateRun) -> None:
    """Add a result `other_guise` where the output is right or stale. A late experiment: what a candidate keeps of
    inference mode cannot be changed in place, so that a new model has to follow."""
    if run.last is None or not run.evidence.launches:
        return
    with run.record.phase("experiments"):
        run.make_model(run.weights_seed)
        before = new_trial(run)
        run.send("inputs", before.inputs)
        run.forward(before.forward_seed)
        outcomes = [_called(run, before, None), _called(run, new_trial(run), before)]
        for outcome in ("stale", "idle", "right"):
            if outcome in outcomes:
                run.evidence.experiments.append(ExperimentResult(name="other_guise", outcome=outcome))
                return


def _called(run: CandidateRun, trial: Trial, before: Trial | None) -> ExperimentOutcome | None:
    """What comes of a call in the other way, after one of `before`; None: nothing that tells."""
    run.send("inputs", trial.inputs, within=True)
    actual = run.fetch(run.forward(trial.forward_seed, inference=True), trial.expected)
    if compare(run, trial, actual, "paper").ok:
        return "idle" if run.is_idle() else "right"
    return "stale" if before is not None and compare(run, before, actual, "paper").ok else None
