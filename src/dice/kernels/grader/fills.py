"""Whether a candidate does the same where fresh memory is not NaN all over.

In the trials new memory holds NaN, so that what a kernel leaves out shows. A candidate that looks at it knows that it is
judged. So a few forwards find finite numbers there, other ones each time, as a program does whose memory nobody fills.
"""

from __future__ import annotations

import secrets

from dice.kernels.grader.candidate_run import LEFT_OVER, NAN_BYTE, CandidateRun
from dice.kernels.grader.facts import busier
from dice.kernels.grader.observation import follows
from dice.kernels.records.evidence import ProbeResult
from dice.kernels.sandbox.replies import Repeated

_CALLS, _SECONDS = 50, 0.5
"""Before them: what a candidate measures or makes at first is done."""
_DRAWS = 2


def experiment_fills(run: CandidateRun) -> None:
    """Adds ProbeResults `other_fill`, of new inputs and of the same ones again, and the operators of a forward where they are
    more than those of the watched one."""
    if run.last is None or not run.evidence.launches:
        return
    with run.record.phase("experiments"):
        run.send("inputs", run.last.inputs)
        run.ask("repeat", Repeated, slot=0, calls=_CALLS, budget_s=_SECONDS, anew=run.inputs_change)
        for _ in range(_DRAWS):
            found = follows(run, "other_fill", run.draw_inputs(secrets.randbits(48)), "refill", LEFT_OVER)
            if found is not None and found.outcome != "right":
                run.evidence.probes.append(found)
                return
        if (gone := _gone_on_the_same_inputs(run)) is not None:
            outcome = "idle" if run.is_idle() else "stale" if gone else "right"
            run.evidence.probes.append(ProbeResult(name="other_fill_again", outcome=outcome, detail=gone[:200]))


def _gone_on_the_same_inputs(run: CandidateRun) -> str | None:
    """Kernels that run for the last inputs where new memory is NaN, and not where it holds numbers; None: not counted."""
    assert run.last is not None
    counts = []
    for poison in (NAN_BYTE, LEFT_OVER):
        run.send("refill", run.last.inputs)
        reply = run.forward(run.last.forward_seed, watch=poison == LEFT_OVER, poison=poison)
        counts.append(run.launches())
        run.evidence.candidate_ops = busier(run.evidence.candidate_ops or {}, reply.facts.operators)
    first, again = counts
    if first is None or again is None:
        return None
    return ", ".join(sorted(name for name, count in first.items() if count and not again.get(name)))
