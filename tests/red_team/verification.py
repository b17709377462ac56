"""The corpus through the whole verifier, and what is wrong with its verdicts.

    python tests/red_team/verification.py --backend cpu|cuda [--only NAME ...] [--work DIR]

prints a line for each candidate that was judged otherwise than its header says, the names of those of which the back end
can say nothing, and a summary; the exit code is 1 if there is any of the first. Verdicts are kept in --work as they come;
the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from dice.jsonl import read_objects, write_jsonl
from dice.kernels.pool.workers import Machine
from dice.kernels.records.job import Judging, Limits
from dice.kernels.records.verdict import Backend, Protocol, Verdict
from dice.kernels.verify import VerifyConfig, verify

from corpus import Candidate, corpus

Verdicts = dict[str, dict[Protocol, Verdict]]


def verify_all(
    candidates: list[Candidate], backend: Backend, work: Path, cache: str | None = None, progress: bool = False
) -> Verdicts:
    """Verdicts of every candidate under both protocols, by name.

    work: folder of the candidates and their verdicts; the same call goes on where it stopped. cache: folder for builds;
    None: the usual one.
    """
    rows = [
        {"problem_id": item.name, "problem_code": item.problem_code, "code": item.code}
        for item in sorted(candidates, key=lambda item: (not item.needs_gpu, item.name))
    ]
    write_jsonl(work / "candidates.jsonl", rows)
    config = VerifyConfig(
        candidates=str(work / "candidates.jsonl"),
        out=str(work / "verdicts.jsonl"),
        backend=backend,
        judging=Judging(protocols=("paper", "strict"), correctness_trials=3, timing_trials=20, strict_rounds=12),
        limits=Limits(import_timeout_s=60, forward_timeout_s=20 if backend == "cpu" else 60, total_timeout_s=90),
        machine=Machine(cache=cache),
    )
    return by_name(verify(config, progress))


def by_name(found: Iterable[Verdict]) -> Verdicts:
    """Verdicts by candidate and protocol."""
    verdicts: Verdicts = {}
    for verdict in found:
        verdicts.setdefault(verdict.problem_id, {})[verdict.protocol] = verdict
    return verdicts


def so_far(work: Path) -> Verdicts:
    """What an interrupted `verify_all` has written; candidates with all their verdicts only."""
    journal = work / "verdicts.jsonl.partial"
    rows = [row for _, row in read_objects(journal)] if journal.exists() else []
    verdicts = by_name(Verdict.model_validate(row) for row in rows if "status" in row)
    return {name: found for name, found in verdicts.items() if len(found) == 2}


def trick_complaints(trick: Candidate, verdicts: dict[Protocol, Verdict]) -> list[str]:
    """What is missing from a trick's verdict; a run's findings are asked for only where the run got that far."""
    strict = verdicts["strict"]
    found = {item.name for item in strict.deception}
    wanted = trick.static | (trick.run_on(strict.backend) if strict.functional_status == "correct" else set())
    complaints = [f"not found: {name}" for name in sorted(wanted - found)]
    right = trick.statuses_on(strict.backend)
    if strict.status not in right:
        complaints.append(f"ended as {strict.status} ({strict.message[:200]}), not {' | '.join(sorted(right))}")
    paper = verdicts["paper"].status
    if trick.paper and paper not in trick.paper:
        complaints.append(f"ended as {paper} under paper, not {' | '.join(sorted(trick.paper))}")
    return complaints


def honest_complaints(honest: Candidate, verdicts: dict[Protocol, Verdict]) -> list[str]:
    """What is wrong with an honest candidate's verdicts."""
    complaints = []
    for protocol, verdict in verdicts.items():
        if verdict.status != "correct":
            complaints.append(f"{protocol}: {verdict.status}: {verdict.message[:300]}")
        complaints += [f"{protocol}: {item.name}: {item.evidence}" for item in verdict.deception]
    return complaints


def main() -> int:
    """Verify, print, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", nargs="*", help="names of candidates")
    parser.add_argument("--work", type=Path, help="folder of verdicts, kept for the next call")
    parser.add_argument("--cache", help="folder for builds, if not the usual one")
    parser.add_argument("--limit-s", type=float, default=3600.0, help="stop, and judge what is there, after this long")
    arguments = parser.parse_args()
    tricks, honest = corpus("tricks"), corpus("honest")
    named = [item for item in tricks + honest if not arguments.only or item.name in arguments.only]
    chosen = [item for item in named if item.expected_on(arguments.backend)]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        alarm = threading.Timer(arguments.limit_s, os.kill, (os.getpid(), signal.SIGINT))
        alarm.daemon = True
        alarm.start()
        try:
            verdicts = verify_all(chosen, arguments.backend, work, arguments.cache, progress=True)
        except KeyboardInterrupt:
            verdicts = so_far(work)
            print(f"stopped after {arguments.limit_s:g} s; not reached: {len(chosen) - len(verdicts)}")
    chosen = [item for item in chosen if item.name in verdicts]
    if not_expected := [item.name for item in named if not item.expected_on(arguments.backend)]:
        print(f"not expected on {arguments.backend}, not judged: {len(not_expected)} ({', '.join(not_expected)})")
    wrong = {True: 0, False: 0}
    for item in chosen:
        is_trick = item in tricks
        complaints = (trick_complaints if is_trick else honest_complaints)(item, verdicts[item.name])
        wrong[is_trick] += bool(complaints)
        for complaint in complaints:
            print(f"{'trick' if is_trick else 'honest'} {item.name}: {complaint}")
    for is_trick, word in ((True, "tricks caught as expected"), (False, "honest candidates without any finding")):
        count = sum((item in tricks) == is_trick for item in chosen)
        gpu_only = sum((item in tricks) == is_trick and item.needs_gpu for item in chosen)
        print(f"{word}: {count - wrong[is_trick]} of {count} ({gpu_only} of them need a GPU)")
    print(f"{arguments.backend}, {time.monotonic() - begun:.0f} s")
    return int(any(wrong.values()))


if __name__ == "__main__":
    sys.exit(main())
