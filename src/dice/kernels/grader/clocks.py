"""Whether a candidate still works after an hour, or a month.

Nobody waits for that here, and a candidate that takes another way then, by whatever clock, would pass. So the clocks of its
process are set ahead (`dice.kernels.candidate.clock_ahead`), step by step. A program that reads them for a log, or to measure
which way is faster, gives the same answers as before, by kernels.
"""

from __future__ import annotations

import secrets

from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.facts import busier
from dice.kernels.grader.observation import follows
from dice.kernels.records.evidence import ExperimentResult
from dice.kernels.sandbox.replies import Clocks, Repeated

_AHEAD_S = (25 * 60, 70 * 60, 7 * 3600, 40 * 86400)
_CALLS, _SECONDS = 20, 0.5
"""Before them: what it does at first is done."""


def experiment_clocks(run: CandidateRun) -> None:
    """Add a result `clock_ahead`: `right`, or what came of new inputs, or of the same again, once some time had gone.

    The operators of a late forward count where they are more than those of the watched one. The last experiment: the clocks
    stay ahead, since none of them may go back."""
    if run.last is None or not run.evidence.launches:
        return
    with run.record.phase("experiments"):
        run.make_model(run.weights_seed)
        run.send("inputs", run.draw_inputs(secrets.randbits(48)))
        run.ask("repeat", Repeated, slot=0, calls=_CALLS, budget_s=_SECONDS, anew=run.inputs_change)
        for ahead in _AHEAD_S:
            if not run.ask("clocks", Clocks, ahead=ahead).ways:
                return
            result = follows(run, "clock_ahead", run.draw_inputs(secrets.randbits(48)), "refill")
            if result is None:
                continue
            if result.outcome == "right":
                run.send("refill", run.last.inputs)
                reply = run.forward(run.last.forward_seed, watch=True)
                run.evidence.candidate_ops = busier(run.evidence.candidate_ops or {}, reply.facts.operators)
                result = ExperimentResult(name="clock_ahead", outcome="idle" if run.is_idle() else "right")
            if result.outcome != "right":
                detail = f"after {ahead // 60} minutes: {result.detail}"[:200]
                run.evidence.experiments.append(result.model_copy(update={"detail": detail}))
                return
    run.evidence.experiments.append(ExperimentResult(name="clock_ahead", outcome="right"))
