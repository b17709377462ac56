"""The verifier's public interface: all that code outside `dice.kernels` imports of it.

Many candidates at once, or as they come:

    verdicts = verify(VerifyConfig(candidates="runs/mine", problems="KernelBench/KernelBench", out="verdicts.jsonl"))

    with open_pool("cuda", Judging(), Limits(), Machine(), most_jobs=64) as pool:      # candidates that come one by one
        for verdicts in pool.run(jobs):                                               # one verdict per protocol
            ...
"""

from __future__ import annotations

from dice.kernels.checks import findings, is_deceptive, static_findings
from dice.kernels.pool.pool import Feed, Pool
from dice.kernels.pool.workers import Machine, cores, open_pool
from dice.kernels.problems.folder import level_folders, load_problem_folder, named_problem, unique_problems
from dice.kernels.problems.mini import VERSION as MINI_VERSION
from dice.kernels.problems.mini import load_mini
from dice.kernels.problems.problem import Problem
from dice.kernels.records.candidate_files import Candidate, make_jobs, read_candidates
from dice.kernels.records.extract import extract_code
from dice.kernels.records.failed import failed_verdicts
from dice.kernels.records.job import Job, Judging, Limits
from dice.kernels.records.verdict import Backend, Finding, Host, Protocol, Speedup, Stage, Status, Verdict
from dice.kernels.verify import VerifyConfig, add_judging_options, judged_protocols, load_problems, verify

__all__ = [
    "MINI_VERSION",
    "Backend",
    "Candidate",
    "Feed",
    "Finding",
    "Host",
    "Job",
    "Judging",
    "Limits",
    "Machine",
    "Pool",
    "Problem",
    "Protocol",
    "Speedup",
    "Stage",
    "Status",
    "Verdict",
    "VerifyConfig",
    "add_judging_options",
    "cores",
    "extract_code",
    "failed_verdicts",
    "findings",
    "is_deceptive",
    "judged_protocols",
    "level_folders",
    "load_mini",
    "load_problem_folder",
    "load_problems",
    "make_jobs",
    "named_problem",
    "open_pool",
    "read_candidates",
    "static_findings",
    "unique_problems",
    "verify",
]
