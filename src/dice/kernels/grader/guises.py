"""Whether a candidate's kernels also run when it is called in another way than here.

Who serves or measures a model may call it in inference mode, with views of larger memory. None of that is a reason to leave
out a kernel, so one forward comes with all of it: the inputs are parts of larger tensors, as those of a batch are, and
PyTorch is in inference mode. A candidate that is right then and runs no kernel keeps its kernels for the call that it takes
for a test. What raises, or is wrong, says nothing here.
"""

from __future__ import annotations

import secrets

from dice.kernels.grader.agreement import compare, expected_outputs
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.reference import Trial
from dice.kernels.records.evidence import ProbeResult


def experiment_guises(run: CandidateRun) -> None:
    """Add a ProbeResult `other_guise` where the output is right. The last experiment: what a candidate keeps of inference
    mode cannot be changed in place afterwards."""
    if run.last is None or not run.evidence.launches:
        return
    with run.record.phase("experiments"):
        run.make_model(run.weights_seed)
        inputs, seed = run.draw_inputs(secrets.randbits(48)), secrets.randbits(48)
        run.send("inputs", inputs, within=True)
        reply = run.forward(seed, inference=True)
        trial = Trial(inputs, seed, expected_outputs(run, inputs, seed))
        actual = run.fetch(reply, trial.expected)
        if compare(run, trial, actual, "paper").ok:
            outcome = "idle" if run.is_idle() else "right"
            run.evidence.probes.append(ProbeResult(name="other_guise", outcome=outcome))
