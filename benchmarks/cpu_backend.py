"""The CPU back end on files of (PyTorch, CUDA) pairs, by the verifier itself: statuses, and what each kernel cost.

    python benchmarks/cpu_backend.py --work DIR pairs.json [pairs.jsonl ...] [--jobs 2] [--only 7678,3344]

A pair is an object with `pytorch_code` and `cuda_code`, or any other names that `dice.kernels.records.candidate_files`
reads; the files are JSON lists or JSON lines. The inputs are those of the problems, at the size meant for a GPU: some
need minutes and 20 GiB of memory, so the limits are wider than `dice verify` has them. Verdicts are kept in DIR; the same
command resumes.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections import Counter
from pathlib import Path

from verify_command import quantiles, read_pairs, write_candidates

from dice.kernels.api import Judging, Limits, Machine, Verdict, VerifyConfig, verify


def report(verdicts: list[Verdict]) -> None:
    """Status counts, costs, and every candidate that is not correct, with the reason."""
    first = verdicts[0].host
    print(f"{len(verdicts)} candidates on {first.cpu}, PyTorch {first.torch}")
    for status, count in Counter(verdict.status for verdict in verdicts).most_common():
        print(f"{count:5} {status}")
    for verdict in verdicts:
        if verdict.status != "correct":
            print(f"  {verdict.problem_id}: {verdict.status}: {verdict.message[:400]}")
    print(f"{'':44}   median      p95      max")
    rows = {"build, CPU s": [verdict.build.cpu_seconds for verdict in verdicts if verdict.build is not None]}
    correct = [verdict for verdict in verdicts if verdict.status == "correct"]
    for title, phase in (("candidate's forward", "forward"), ("reference's forward", "reference")):
        calls = [v.phase_seconds.get(phase, 0.0) / max(1, v.trials) for v in correct]
        rows[f"{title}, s a call (of the correct)"] = calls
    rows["whole verification, s"] = [verdict.seconds for verdict in verdicts]
    for title, values in rows.items():
        print(f"{title:44} {quantiles(values)}")


def main() -> None:
    """Verify, print."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="folder of candidates, verdicts and build cache")
    parser.add_argument("--jobs", type=int, default=2, help="candidates at a time; they share the cores")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--memory-gib", type=float, default=64.0, help="limit of a candidate")
    parser.add_argument("--timeout-s", type=float, default=600.0, help="for one forward")
    parser.add_argument("--only", default="", help="problem ids, with commas")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    rows = [row for path in options.files for row in read_pairs(path)]
    chosen = set(filter(None, options.only.split(",")))
    rows = [row for row in rows if not chosen or row["id"] in chosen]
    candidates = write_candidates(options.work / "candidates.jsonl", rows)
    verdicts = verify(
        VerifyConfig(
            candidates=str(candidates),
            out=str(options.work / "verdicts.jsonl"),
            backend="cpu",
            judging=Judging(correctness_trials=options.trials, measure_time=False),
            limits=Limits(
                forward_timeout_s=options.timeout_s,
                total_timeout_s=4 * options.timeout_s,
                memory_gib=options.memory_gib,
            ),
            machine=Machine(jobs=options.jobs, cache=str(options.work / "cache")),
        )
    )
    report(verdicts)


if __name__ == "__main__":
    sys.exit(main())
