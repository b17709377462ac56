"""Whether a candidate still works after more calls than anybody makes here.

What it counts is found and set ahead (`dice.kernels.candidate.advancing`): by a thousand calls, by more, and to just below
each number that stands in its text. A counter of calls for a log changes nothing then. A candidate that stops working at
one of these numbers gives an old answer, a wrong one, or launches no kernel any more.

Calls may be told by what does not count up, as by the next number of a random sequence. Where something else moves from call
to call, or may move in memory that nobody looks at, the calls are made (`dice.kernels.grader.many_calls`).
"""

from __future__ import annotations

import re
import secrets

from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.many_calls import experiment_many_calls
from dice.kernels.grader.observation import follows
from dice.kernels.records.evidence import ExperimentResult
from dice.kernels.sandbox.replies import Advancing, Done, Repeated
from dice.kernels.sandbox.session import CandidateRaised

_CALLS = 100
_FEWEST_CALLS = 40
"""A ring of fewer places has begun again after so many calls. Nothing is asked where calls are too slow for them."""
_SECONDS = {"cpu": 2.0, "cuda": 0.5}
_FAR = (1_000, 60_000, 10_000_000)
_BEFORE, _BEYOND = 3, 5
"""Calls: so far below a number the candidate is set, and so many it makes then."""
_MOST_NUMBERS = 32
_MOST_RAISED = 3
"""Times that another process goes on."""
_OWN_MEMORY = re.compile(r"\b(cudaMalloc|cuMemAlloc)")
_NUMBER = re.compile(r"(?<![\w.])\d{1,7}(?![\w.])")


def experiment_later(run: CandidateRun) -> None:
    """Add a result `later` where the candidate counts something: `right`, or what came of setting it ahead. Where it only
    raises then, it may have come to a state that calls never bring it to: `many_calls` says what calls alone bring it to.
    It says so, too, where something else moves, or may move."""
    if run.last is None or not run.evidence.launches:
        return
    with run.record.phase("experiments"):
        moved = _moved(run)
        if moved is None:
            return
        result, raised = _set_ahead(run) if moved.numbers else (None, False)
    if moved.numbers and not raised:
        run.evidence.experiments.append(result or ExperimentResult(name="later", outcome="right"))
    if result is None and (raised or moved.moves or _may_move(run)):
        experiment_many_calls(run)


def _may_move(run: CandidateRun) -> bool:
    """Whether something may move that no look finds: in memory of its own, or in variables of kernels on a GPU."""
    return any(map(_OWN_MEMORY.search, run.builds.texts())) or (
        run.place.backend == "cuda" and run.builds.keep_variables()
    )


def _set_ahead(run: CandidateRun) -> tuple[ExperimentResult | None, bool]:
    """The result of setting it ahead that is not right, and whether it only raised: another process goes on then with what is
    left."""
    numbers = sorted({int(text) for text in _NUMBER.findall(run.code)} - set(range(_BEYOND)))[:_MOST_NUMBERS]
    raised = 0
    for near, far in [*((number, 0) for number in numbers), *((0, far) for far in _FAR)]:
        try:
            result = _ahead(run, near, far)
        except CandidateRaised:
            raised += 1
            run.end()
            run.revive()
            moved = _moved(run)
            if raised > _MOST_RAISED or moved is None or not moved.numbers:
                break
            continue
        if result is not None and result.outcome != "right":
            return result, False
    return None, raised > 0


def _moved(run: CandidateRun) -> Advancing | None:
    """What moves with each call: what does is kept in the candidate's process. None where calls are too slow."""
    spared, budget_s = [*run.reference.model(run.weights_seed).state_dict()], _SECONDS[run.place.backend]
    run.send("inputs", run.draw_inputs(secrets.randbits(48)))
    _repeat(run, 2, budget_s)  # what is made once is made
    run.ask("look", Done, spared=spared)
    _repeat(run, 1, budget_s)
    run.ask("look", Done, spared=spared)
    calls = _repeat(run, _CALLS, budget_s)
    run.ask("look", Done, spared=spared)
    return run.ask("advancing", Advancing, calls=calls) if calls >= _FEWEST_CALLS else None


def _ahead(run: CandidateRun, near: int, far: int) -> ExperimentResult | None:
    """What comes of setting it ahead: to just below `near`, or by `far` calls."""
    run.ask("ahead", Done, near=near, before=_BEFORE, far=far)
    _repeat(run, _BEYOND, _SECONDS[run.place.backend])
    found = follows(run, "later", run.draw_inputs(secrets.randbits(48)), "refill")
    if found is None or found.outcome == "right":
        return found
    where = f"about {near} calls" if near else f"{far} more calls"
    return found.model_copy(update={"detail": f"after {where}: {found.detail}"[:200]})


def _repeat(run: CandidateRun, calls: int, budget_s: float) -> int:
    reply = run.ask("repeat", Repeated, slot=0, calls=calls, budget_s=budget_s, anew=run.inputs_change)
    return reply.calls
