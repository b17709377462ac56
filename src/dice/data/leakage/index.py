"""Is a training program one of an exam's problems? The one check of all data that is trained on.

The rules, from certain to suggestive; the first that matches is reported with its evidence:

text       the whole file is a problem's file, except for comments, docstrings and layout
structure  the model's source is a problem's, except for names, annotations and temporaries
graph      the traced operator graph is a problem's, except for sizes and hyper-parameters, whatever its spelling
outputs    the program gives a problem's outputs on the problem's own inputs and weights
heldout    the program applies an operator that is never trained (`heldout.yaml`), whatever its spelling
ngram      most of a problem's distinctive token n-grams occur in the program

The texts are compared first, since that is cheap; a program that cannot be run is compared by them alone.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from dice.data.leakage.heldout import all_applied, applied
from dice.data.leakage.outputs import Exam, answered, exam_of
from dice.data.leakage.program import Failed
from dice.data.leakage.report import Applied, Counts, LeakReport
from dice.data.leakage.texts import Leak, TextIndex, text_index
from dice.data.leakage.trace import Traced, trace
from dice.kernels.api import Problem
from dice.manifest import sha256_text

HELDOUT = "heldout/"
"""Prefix of the name of a leak that is a held-out operator, not an exam problem."""


@dataclass
class LeakIndex:
    """Fingerprints of exam problems. Made by `leak_index`; `check` compares one program with all of them."""

    texts: TextIndex
    heldout: bool = True
    """Whether a program that applies an operator of `heldout.yaml` leaks."""
    graphs: dict[str, str] = field(default_factory=dict)
    """Digest of a problem's graph -> its id."""
    exams: list[tuple[str, Exam]] = field(default_factory=list)
    """Problems that can be run, with their ids."""
    not_traced: dict[str, str] = field(default_factory=dict)
    """Problem -> why its graph is not compared."""
    not_run: dict[str, str] = field(default_factory=dict)
    """Problem -> why its outputs are not compared."""
    applied: dict[str, Applied | None] = field(default_factory=dict)
    """sha256 of a problem's code -> what it applies; None: it is not traced."""
    counts: Counts = field(default_factory=Counts)
    """What `check` found so far, programs that are checked again included."""
    _known: dict[str, tuple[Leak | None, tuple[str, ...], str | None]] = field(default_factory=dict)
    """Code -> leak, operators, why it could only be compared by its text."""

    def check(self, pytorch_code: str) -> Leak | None:
        """The first sign that `pytorch_code` is one of the problems; None where there is none.

        The code is a file of KernelBench's format (`Model`, `get_inputs`, `get_init_inputs`). It is executed in this
        process, as the verifier's grader executes references. Answers are remembered by the code's sha256.
        """
        key = sha256_text(pytorch_code)
        if key not in self._known:
            self._known[key] = self._compared(pytorch_code)
        leak, operators, unjudged = self._known[key]
        self.counts.checked += 1
        if unjudged is not None:
            self.counts.unjudged[unjudged] += 1
        if leak is None:
            self.counts.operators.update(operators)
        else:
            self.counts.found.setdefault(leak.problem_id, Counter())[leak.kind] += 1
        return leak

    def leaks(self, pytorch_code: str) -> bool:
        """Whether `check` finds a sign."""
        return self.check(pytorch_code) is not None

    def report(self, data: str | Path, done: str, benchmarks: Sequence[str], found: Mapping[str, Leak]) -> LeakReport:
        """What was found in a data set; `found`: row id -> its leak."""
        dropped = [{"id": name, **vars(leak)} for name, leak in found.items()]
        problems = len(self.texts.ids)
        name = Path(data).name
        return LeakReport(
            name, done, list(benchmarks), problems, self.counts, dropped, self.not_traced, self.not_run, self.applied
        )

    def _compared(self, code: str) -> tuple[Leak | None, tuple[str, ...], str | None]:
        """The leak, the operators that the program applies, and why it could only be compared by its text."""
        leak = self.texts.same(code)
        if leak is not None:
            return leak, (), None
        operators: tuple[str, ...] = ()
        try:
            traced = trace(code)
            operators = tuple(traced.operators)
            return self._computes(code, traced) or self.texts.containment(code), operators, None
        except Failed as failed:
            return self.texts.containment(code), operators, str(failed)

    def _computes(self, code: str, traced: Traced) -> Leak | None:
        digest = traced.digest
        if digest in self.graphs:
            return Leak("graph", self.graphs[digest], "same operator graph but for sizes and hyper-parameters")
        names = applied(traced) if self.heldout else []
        heldout = Leak("heldout", HELDOUT + names[0], "applies " + ", ".join(names)) if names else None
        try:
            problem = answered(code, traced, self.exams)
        except Failed:
            if heldout is None:
                raise
            return heldout  # what it applies is known, whatever its outputs are
        return heldout if problem is None else Leak("outputs", problem, "same outputs on the problem's own inputs")


def leak_index(problems: Iterable[Problem], heldout: bool = True) -> LeakIndex:
    """An index of `problems` and, with `heldout`, of the operators that nothing is trained on.

    index = leak_index([*load_mini("cpu"), *load_problem_folder("KernelBench")])
    leak = index.check(pair.pytorch_code)     # None, or a Leak with kind, problem_id and evidence

    Where two problems compute the same, the first one is named. A problem that cannot be traced or run is listed in
    `not_traced` or `not_run`, and compared by the other rules.
    """
    given = list(problems)
    index = LeakIndex(text_index(given), heldout)
    for problem in given:
        graph, applies, exam = _fingerprint(problem.code)
        index.applied[sha256_text(problem.code)] = applies
        if isinstance(graph, Failed):
            index.not_traced[problem.id] = str(graph)
        else:
            index.graphs.setdefault(graph, problem.id)
        if isinstance(exam, Failed):
            index.not_run[problem.id] = str(exam)
        else:
            index.exams.append((problem.id, exam))
    return index


def add_benchmark_option(parser: argparse.ArgumentParser, meaning: str) -> None:
    """The option of a stage that names exams, once for each; `meaning`: what they are to the stage."""
    parser.add_argument(
        "--benchmark", dest="benchmarks", action="append", metavar="PLACE", help=f"{meaning} (default: mini)"
    )


@cache
def _fingerprint(code: str) -> tuple[str | Failed, Applied | None, Exam | Failed]:
    """The digest of a problem's graph with what it applies, and the problem run once; where one cannot be had, why."""
    graph: str | Failed
    applies: Applied | None = None
    exam: Exam | Failed
    try:
        traced = trace(code)
        graph, applies = traced.digest, all_applied(traced)
    except Failed as failed:
        graph = failed
    try:
        exam = exam_of(code)
    except Failed as failed:
        exam = failed
    return graph, applies, exam
