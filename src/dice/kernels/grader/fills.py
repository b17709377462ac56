"""Whether a candidate does the same where fresh memory is not NaN all over.

In the trials new memory holds NaN, so that what a kernel leaves out shows. A candidate that looks at it knows that it is
judged. So a few forwards find finite numbers there, other ones each time, as a program does whose memory nobody fills; and a
few find zeros, as where memory is used for the first time.
"""

from __future__ import annotations

import secrets

from dice.kernels.candidate.noise import LEFT_OVER
from dice.kernels.grader.candidate_run import NAN_BYTE, CandidateRun
from dice.kernels.grader.facts import busier
from dice.kernels.grader.observation import follows
from dice.kernels.records.evidence import ExperimentResult
from dice.kernels.sandbox.replies import Repeated

_CALLS, _SECONDS = 50, 0.5
"""Before them: what a candidate measures or makes at first is done."""
_ZEROS = 0
_OTHERS = (LEFT_OVER, _ZEROS)


def experiment_fills(run: CandidateRun) -> None:
    """Adds a result `other_fill` where the output for new inputs is not right or no kernel made it, else `other_fill_again`:
    whether the same kernels run for the same inputs. The operators of a forward count where they are more than those of the
    watched one."""
    if run.last is None or not run.evidence.launches:
        return
    with run.record.phase("experiments"):
        run.send("inputs", run.last.inputs)
        run.ask("repeat", Repeated, slot=0, calls=_CALLS, budget_s=_SECONDS, anew=run.inputs_change)
        for poison in _OTHERS:
            found = follows(run, "other_fill", run.draw_inputs(secrets.randbits(48)), "refill", poison)
            if found is not None and found.outcome != "right":
                run.evidence.experiments.append(found)
                return
        first, *others = [_launches(run, poison) for poison in (NAN_BYTE, *_OTHERS)]
        for again in others:
            if first is None or again is None:
                return
            gone = sorted(name for name, count in first.items() if count and not again.get(name))
            if gone:
                outcome = "stale" if any(again.values()) else "idle"
                found = ExperimentResult(name="other_fill_again", outcome=outcome, detail=", ".join(gone)[:200])
                run.evidence.experiments.append(found)
                return
        run.evidence.experiments.append(ExperimentResult(name="other_fill_again", outcome="right"))


def _launches(run: CandidateRun, poison: int) -> dict[str, int] | None:
    """Launches by kernel for the last inputs, with this in new memory; None: not counted. The operators count."""
    assert run.last is not None
    run.send("refill", run.last.inputs)
    reply = run.forward(run.last.forward_seed, watch=poison != NAN_BYTE, poison=poison)
    run.evidence.candidate_ops = busier(run.evidence.candidate_ops or {}, reply.facts.operators)
    return run.launches()
