"""One candidate's run, step by step: import, weights, trials, evidence, timing, experiments. The result is a record.

The candidate always runs before the reference, on inputs made from a seed that it does not know, in a process that
never holds an expected value. `dice.kernels.grader.record` makes the verdicts.
"""

from __future__ import annotations

import os
import re
import traceback

from dice.errors import DiceError
from dice.kernels.checks import findings
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.clocks import experiment_clocks
from dice.kernels.grader.conditions import replayable, try_conditions
from dice.kernels.grader.crossing import experiment_crossing
from dice.kernels.grader.explaining import explain
from dice.kernels.grader.fills import experiment_fills
from dice.kernels.grader.guises import experiment_guises
from dice.kernels.grader.kept_answers import experiment_kept_answers, experiment_kept_values, experiment_left_answer
from dice.kernels.grader.later import experiment_later
from dice.kernels.grader.lending import definitions_of
from dice.kernels.grader.many_calls import experiment_many_calls
from dice.kernels.grader.mixing import experiment_mixing
from dice.kernels.grader.observation import experiment_changes, observe
from dice.kernels.grader.place import Place
from dice.kernels.grader.precision import experiment_precision
from dice.kernels.grader.prepared import experiment_prepared
from dice.kernels.grader.record import Record
from dice.kernels.grader.reference import Reference, Seeds, kept_flags
from dice.kernels.grader.relations import experiment_relations
from dice.kernels.grader.same_steps import experiment_same_steps
from dice.kernels.grader.shared_values import experiment_shared_values
from dice.kernels.grader.speed import measure, prepare
from dice.kernels.grader.trials import look_for_races, try_inputs
from dice.kernels.grader.usage import experiment_usage
from dice.kernels.grader.without_kernels import experiment_without_kernels
from dice.kernels.records.job import Job
from dice.kernels.sandbox.replies import Done
from dice.kernels.sandbox.session import CandidateFailure, CandidateRaised

_CONCURRENT = re.compile(r"Stream(?:Create|FromPool|FromExternal|BeginCapture)|cuda\.[sS]tream|[gG]raph|[tT]hread\s*\(")
"""Text that may put work on more than PyTorch's current stream: other streams, graphs, threads."""


def connections(code: str) -> int | None:
    """Hardware queues that a candidate's CUDA context needs: 1 for a single stream, else None, the driver's default.

    The driver makes contexts one at a time, and a context is most of a candidate's cost on a GPU: 0.24 s with the default
    of 8 queues, 0.07 s with one (H200). A single stream uses one queue, so its timing does not change.
    """
    return None if _CONCURRENT.search(code) else 1


_NARROW = re.compile(r"half|bf(?:loat)?16|fp?16|float16|tf32|fp8|float8|autocast|__dp[24]a", re.IGNORECASE)
"""Text that may name a type narrower than fp32, or sums of bytes."""

_EXPERIMENTS = (
    experiment_changes,
    experiment_prepared,
    experiment_fills,
    experiment_usage,
    experiment_shared_values,
    experiment_without_kernels,
    experiment_mixing,
    experiment_crossing,
    experiment_precision,
    experiment_relations,
    experiment_kept_answers,
    experiment_kept_values,
    experiment_left_answer,
    experiment_later,
    experiment_guises,
    experiment_clocks,
    experiment_same_steps,
)
_DRAWN = (
    experiment_changes,
    experiment_prepared,
    experiment_fills,
    experiment_without_kernels,
    experiment_many_calls,
)
"""Experiments with values of the problem alone, in states that the candidate comes to there too: what ends it in one of them
counts. In all others it says nothing."""
_OF_ONE_CALL = (experiment_prepared, experiment_shared_values, experiment_without_kernels)
"""Experiments that compare no two calls, so that a state which each call advances changes nothing."""
_NOTE = 300
"""Characters of a note."""


def run_candidate(place: Place, reference: Reference, job: Job, seeds: Seeds, lent: list[str] | None = None) -> Record:
    """Run one candidate from import to timing, or under other conditions where that is what `place.judging` asks for. Raises
    HarnessError, OSError or an out-of-memory error of the host.

    `lent`: names of the reference's module that the candidate is lent; None: lending is off.
    """
    robust = place.judging.protocols == ("robust",)
    seed, replayed = replayable(place.judging.seed)
    run = CandidateRun(place, reference, replayed if robust else seeds)
    record = run.record
    record.lent = lent
    with kept_flags():
        try:
            with run.gpu():
                run.start(connections(job.code or ""))
                run.names_narrow_types = _NARROW.search(job.code or "") is not None
                run.import_code(job.code or "", job.problem_code if lent else "")
                run.make_model(run.seeds.weights)
                run.builds.refuse_unsupported()
                if robust:
                    try_conditions(run, seed)
                else:
                    _try_trials(run)
                measurement = prepare(run)
            if measurement is not None:
                measure(measurement)
            if run.standing() and "strict" in place.judging.protocols and "strict" not in record.failures:
                _experiments(run)
            if run.standing():
                run.enter("done", run.evidence.reached)
        except CandidateRaised as failure:
            record.on_gpu = failure.error.out_of_memory == "gpu"
            run.take(failure.facts)
            record.fail("unsupported_on_cpu" if run.lacks_support(failure) else failure.status, failure.args[0])
        except CandidateFailure as failure:
            record.fail(failure.status, failure.args[0])
        finally:
            reference.forget()  # to free its memory; the trials may have changed its buffers
            run.leave()
    if not robust:
        with record.phase("checks"):
            _check(record, job, run)
    return record


def _try_trials(run: CandidateRun) -> None:
    """The trials of `paper` and `strict`, and what is seen of them."""
    try_inputs(run)
    if run.standing():
        observe(run)
    if run.place.backend == "cpu":
        look_for_races(run)  # may end the process: only what needs none, or makes another, comes after it
    if run.place.judging.explain:
        explain(run)


def _experiments(run: CandidateRun) -> None:
    """The strict protocol's experiments; each finds a live process. What ends the candidate there says nothing against it
    under another protocol, and where it is given values that the problem never draws, nothing at all: a note says so, and
    where it raised, one more experiment asks whether it does so by itself."""
    assert run.last is not None
    reached = run.evidence.reached
    experiments = [*(_OF_ONE_CALL if run.advances else _EXPERIMENTS)]
    for experiment in experiments:
        try:
            with run.gpu():
                run.revive()
                if run.place.backend == "cuda":
                    run.ask("forget", Done)  # the sets of the timed calls
                run.send("inputs", run.last.inputs)  # a new process has none
                experiment(run)
        except CandidateFailure as failure:
            if experiment in _DRAWN:
                run.fail_under("strict", failure)
                return
            run.end()
            if isinstance(failure, CandidateRaised) and not run.advances and experiment_many_calls not in experiments:
                experiments.append(experiment_many_calls)
            name = experiment.__name__.removeprefix("experiment_")
            run.record.notes.append(f"no result of the experiment {name}: {failure.status}, {failure.args[0]}"[:_NOTE])
        finally:
            run.evidence.reached = reached  # a new model is no earlier stage


def _check(record: Record, job: Job, run: CandidateRun) -> None:
    """Find what is wrong with the candidate's text and with what was seen. A text that the checks cannot read is the
    candidate's failure: it may hide anything."""
    try:
        code = job.code or ""
        if record.lent:
            code = f"{code}\n{definitions_of(record.lent, job.problem_code)}"
        record.findings = findings(code, job.problem_code, run.builds.requests, record.evidence)
    except DiceError as error:
        if record.status == "correct":
            record.fail("import_error", str(error))
    except Exception as error:  # noqa: BLE001 - any text may come here, and none may end the batch
        place = traceback.extract_tb(error.__traceback__)[-1]
        if record.status == "correct":
            where = f"{type(error).__name__} at {os.path.basename(place.filename)}:{place.lineno}"
            record.fail("import_error", f"its text cannot be checked ({where})")


def prebuild_candidate(place: Place, job: Job, lent: list[str] | None = None) -> Record | None:
    """Import a candidate to build its extensions. Returns the record where its failure is final on any machine.

    A candidate that built nothing yet may build in `__init__`, so its model is made too; a failure there without a GPU is
    not final.
    """
    run = CandidateRun(place, Reference(job.problem_id, job.problem_code, place.device), Seeds.draw(None, 1))
    record = run.record
    record.lent = lent
    try:
        run.start()
        run.import_code(job.code or "", job.problem_code if lent else "")
        if not run.builds.requests:
            run.construct(run.seeds.weights)
        return None
    except CandidateFailure as failure:
        # Without a line of the candidate: raised by the parser, not by code that ran.
        error = failure.error if isinstance(failure, CandidateRaised) else None
        broken_text = (
            error is not None and error.type in ("SyntaxError", "IndentationError", "TabError") and not error.place
        )
        if record.stage != "build" and not broken_text:
            return None
        record.fail(failure.status, failure.args[0])
    finally:
        run.end()
    _check(record, job, run)
    return record
