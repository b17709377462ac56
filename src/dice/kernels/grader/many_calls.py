"""Whether a candidate is right after many calls as anybody may make them: with inputs of the problem, in a process that has
seen no others, and in a second model there.

An experiment may end because the candidate raises. Where it was given values that the problem never draws, or a state that
it never comes to by itself, that says nothing. It may also be what becomes of it after some hundreds of calls, or in a second
model. So the calls are made once more, without anything else; also where something moves from call to call that cannot be set
ahead.
"""

from __future__ import annotations

import secrets

from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.observation import error_of, follows
from dice.kernels.records.evidence import ExperimentResult
from dice.kernels.sandbox.replies import Repeated
from dice.kernels.sandbox.session import CandidateRaised

_CALLS = (150, 350, 500, 1_000, 3_000)
"""Calls between two looks at an answer."""
_SECONDS = {"cpu": 4.0, "cuda": 1.0}
"""For all calls."""


def experiment_many_calls(run: CandidateRun) -> None:
    """Add a result `many_calls`: `right`, or what came of the calls; `error` where one of them raised."""
    if run.last is None or not run.evidence.launches:
        return
    with run.record.phase("experiments"):
        run.end()
        run.revive()
        found = _after_calls(run) or _in_a_second_model(run) or ExperimentResult(name="many_calls", outcome="right")
    run.evidence.experiments.append(found)


def _after_calls(run: CandidateRun) -> ExperimentResult | None:
    """What is not right after some of many calls, or in one of them."""
    seconds_a_call = _SECONDS[run.place.backend] / sum(_CALLS)
    try:
        run.send("inputs", run.draw_inputs(secrets.randbits(48)))
        for calls in _CALLS:
            budget_s = calls * seconds_a_call
            repeated = run.ask("repeat", Repeated, slot=0, calls=calls, budget_s=budget_s, anew=run.inputs_change)
            is_slow, is_last = repeated.calls < calls, calls == _CALLS[-1]
            if is_slow and not is_last:  # to look at an answer costs more than it may show
                continue
            found = _unless_right(run, "refill")
            if found is not None:
                return found
    except CandidateRaised as failure:
        return error_of("many_calls", failure)
    return None


def _in_a_second_model(run: CandidateRun) -> ExperimentResult | None:
    """The same of another model. That none can be made says nothing: a name may be taken."""
    try:
        run.make_model(run.weights_seed)
    except CandidateRaised:
        return None
    return _unless_right(run, "inputs")


def _unless_right(run: CandidateRun, op: str) -> ExperimentResult | None:
    found = follows(run, "many_calls", run.draw_inputs(secrets.randbits(48)), op)
    return None if found is None or found.outcome == "right" else found
