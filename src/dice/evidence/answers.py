"""One answer beside its verdict: what a cell of a table is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dice.errors import DiceError
from dice.jsonl import read_jsonl
from dice.kernels.api import Problem, Verdict, make_jobs, read_candidates
from dice.manifest import read_manifest, sha256_text


@dataclass(frozen=True)
class JudgedAnswer:
    """A verdict, and the text that it should be about."""

    verdict: Verdict
    code: str | None
    """The kernel as it was extracted; None: the answer has none, or its file is not there."""
    generations: str
    """The file that the answer comes from."""

    @property
    def is_of_this_code(self) -> bool:
        """Whether the verdict names the hash of this text."""
        return sha256_text(self.code or "") == self.verdict.code_sha256


def generations_of(verdicts: str, root: Path) -> str:
    """The file of candidates that a file of verdicts is about. Raises DiceError where the manifests do not say."""
    manifest = read_manifest(root / verdicts)
    while manifest is not None and manifest.stage == "gather" and manifest.inputs:
        manifest = read_manifest(root / next(iter(manifest.inputs)))
    candidates = manifest.spec.get("candidates") if manifest else None
    if not isinstance(candidates, str):
        raise DiceError(f"{verdicts}: its manifest does not say which answers were judged.")
    return candidates


def judged_answers(verdicts: str, root: Path, problems: Iterable[Problem], problem: str) -> Iterator[JudgedAnswer]:
    """The answers to a problem with their verdicts, of one file of verdicts, which was judged on `problems`.

    Raises DiceError."""
    path = generations_of(verdicts, root)
    codes = {(job.problem_id, job.sample): job.code for job in make_jobs(read_candidates(root / path), problems)}
    for verdict in read_jsonl(root / verdicts, Verdict):
        if verdict.problem_id == problem:
            yield JudgedAnswer(verdict, codes.get((problem, verdict.sample)), path)


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """What the verdict says, a fact a line."""
    before = (
        "" if verdict.status == verdict.functional_status else f" (before the robust check {verdict.functional_status})"
    )
    yield f"status: {verdict.status}{before}, stage {verdict.stage}, protocol {verdict.protocol}, {verdict.backend}"
    if verdict.message:
        yield f"message: {verdict.message}"
    if verdict.max_abs_error is not None:
        yield f"largest error: {verdict.max_abs_error:.3g} absolute; {verdict.trials} trials"
    for finding in verdict.deception:
        yield f"finding: {finding.name} ({finding.rule}): {finding.evidence}"
    if verdict.launches:
        yield "launches: " + ", ".join(f"{name} {n}" for name, n in verdict.launches.items())
    if verdict.runtime_ms is not None and verdict.reference_ms is not None:
        yield f"time: {verdict.runtime_ms.median:.4f} ms, the reference's {verdict.reference_ms.median:.4f} ms"
    if verdict.speedup is not None:
        yield f"speed-up: {verdict.speedup.median:.3f}"
    yield f"judged: {verdict.started} in {verdict.seconds:.1f} s, on {verdict.host.gpu or verdict.host.cpu}"
