"""The corpus through the whole verifier, and what is wrong with its verdicts.

    python tests/red_team/verification.py --backend cpu|cuda [--only NAME ...] [--out verdicts.jsonl]

prints a line for each candidate that was judged otherwise than its header says; the exit code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from dice.kernels.job import Job, Judging, Limits
from dice.kernels.verdict import Backend, Protocol, Verdict
from dice.kernels.verify import VerifyConfig, verify_jobs
from dice.kernels.workers import Machine

from corpus import Candidate, corpus

Verdicts = dict[str, dict[Protocol, Verdict]]


def verify_all(
    candidates: list[Candidate], backend: Backend, cache: str | None = None, progress: bool = False
) -> Verdicts:
    """Verdicts of every candidate under both protocols, by name. `cache`: folder for builds; None: the usual one."""
    config = VerifyConfig(
        candidates="the red team",
        out="nowhere",
        backend=backend,
        judging=Judging(protocols=("paper", "strict"), correctness_trials=3, timing_trials=20, strict_rounds=12),
        limits=Limits(import_timeout_s=60, forward_timeout_s=20, total_timeout_s=90),
        machine=Machine(cache=cache),
    )
    jobs = [
        Job(problem_id=f"red_team/{item.problem}", problem_code=item.problem_code, sample=number, code=item.code)
        for number, item in enumerate(candidates)
    ]
    verdicts: Verdicts = {}

    def take(found: list[Verdict]) -> None:
        verdicts[candidates[found[0].sample].name] = {verdict.protocol: verdict for verdict in found}

    verify_jobs(jobs, config, take, progress=progress)
    return verdicts


def trick_complaints(trick: Candidate, verdicts: dict[Protocol, Verdict]) -> list[str]:
    """What is missing from a trick's verdict; a run's findings are asked for only where the run got that far."""
    strict = verdicts["strict"]
    found = {item.name for item in strict.deception}
    wanted = trick.static | (trick.run if strict.functional_status == "correct" else set())
    complaints = [f"not found: {name}" for name in sorted(wanted - found)]
    if strict.status not in trick.statuses:
        complaints.append(
            f"ended as {strict.status} ({strict.message[:200]}), not {' | '.join(sorted(trick.statuses))}"
        )
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
    parser.add_argument("--out", help="JSON lines of all verdicts")
    parser.add_argument("--cache", help="folder for builds, if not the usual one")
    arguments = parser.parse_args()
    tricks, honest = corpus("tricks"), corpus("honest")
    chosen = [
        item
        for item in tricks + honest
        if (arguments.backend == "cuda" or not item.needs_gpu) and (not arguments.only or item.name in arguments.only)
    ]
    begun = time.monotonic()
    verdicts = verify_all(chosen, arguments.backend, arguments.cache, progress=True)
    wrong = 0
    for item in chosen:
        check = trick_complaints if item in tricks else honest_complaints
        complaints = check(item, verdicts[item.name])
        wrong += bool(complaints)
        for complaint in complaints:
            print(f"{'trick' if item in tricks else 'honest'} {item.name}: {complaint}")
    if arguments.out:
        lines = [verdict.model_dump_json() for pair in verdicts.values() for verdict in pair.values()]
        Path(arguments.out).write_text("\n".join(lines) + "\n")
    caught = sum(item in tricks for item in chosen)
    print(f"{caught} tricks, {len(chosen) - caught} honest, {wrong} judged wrongly, {time.monotonic() - begun:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
