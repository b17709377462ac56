"""Whether a candidate takes the same steps for inputs that it has just seen as for new ones.

What is kept of the last call can be guarded by a sum of itself, so that a copy that was overwritten is made anew, and the
output is right (`dice.kernels.grader.kept_answers`). But whoever computes takes the same way through his code each time, and
whoever finds what he kept takes another one. So the extensions are built once more to count their steps: the pieces of code
without a branch that run. Only the CPU back end can count them.
"""

from __future__ import annotations

import itertools
import secrets

from dice.kernels.candidate.noise import LEFT_OVER
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.records.evidence import ExperimentOutcome, ExperimentResult
from dice.kernels.sandbox.replies import Repeated, Steps

_CALLS, _SECONDS = 20, 0.5
"""Before them: what a candidate measures or makes at first is done."""
_DRAWS = 3
_ROUNDS, _CALLS_OF_A_ROUND = 3, 4
"""With the same inputs. Two memories may hold the outputs by turns, and each may be known only once it was used."""
_SHARE = 0.01
"""Of the steps of a call. What waits for another thread takes more or fewer of them by chance."""


def experiment_same_steps(run: CandidateRun) -> None:
    """Add a result `same_steps`: `stale` where the steps for the same inputs change, in all draws. Asked where something can
    outlive a call."""
    if run.place.backend != "cpu" or run.last is None or not _may_keep(run):
        return
    with run.record.phase("experiments"), run.counting_steps():
        run.send("inputs", run.draw_inputs(secrets.randbits(48)))
        run.ask("repeat", Repeated, slot=0, calls=_CALLS, budget_s=_SECONDS, anew=run.inputs_change)
        unlike = ""
        for _ in range(_DRAWS):
            if not (unlike := _unlike_steps(run)):
                break
    outcome: ExperimentOutcome = "stale" if unlike else "right"
    run.evidence.experiments.append(ExperimentResult(name="same_steps", outcome=outcome, detail=unlike))


def _may_keep(run: CandidateRun) -> bool:
    """Whether memory that Python leads to follows the inputs (`experiment_kept_values` has found it), or the sources have
    variables that keep their value."""
    found = any(experiment.name == "kept_values" for experiment in run.evidence.experiments)
    return found or run.builds.keep_variables()


def _unlike_steps(run: CandidateRun) -> str:
    """By how many steps the last calls with one draw of inputs differ from the first one, and how many that one took; empty
    where they are the same, or the calls before the last differ from them nearly as much. But for the first they are calls as
    anybody makes them: what is left in the memory of an output stands there at the next one."""
    before = run.ask("steps", Steps).taken
    run.send("refill", run.draw_inputs(secrets.randbits(48)))
    run.forward(secrets.randbits(48), poison=LEFT_OVER)
    taken, calls = [before, run.ask("steps", Steps).taken], [1]
    for _ in range(_ROUNDS):
        repeated = run.ask(
            "repeat", Repeated, slot=0, calls=_CALLS_OF_A_ROUND, budget_s=_SECONDS, anew=run.inputs_change
        )
        calls.append(max(1, repeated.calls))  # a candidate's process that says 0 ends no grader
        taken.append(run.ask("steps", Steps).taken)
    steps = [
        [(b - a) / n for a, b in zip(*pair, strict=True)]
        for pair, n in zip(itertools.pairwise(taken), calls, strict=True)
    ]
    first, *_, another, last = steps
    unlike, of_all = _difference(first, last), sum(first)
    changes = unlike > _SHARE * max(of_all, sum(last)) and _difference(another, last) <= unlike / 8
    return f"{unlike:,.0f} of {of_all:,.0f} steps" if changes else ""


def _difference(some: list[float], others: list[float]) -> float:
    return sum(abs(other - one) for one, other in zip(some, others, strict=True))
