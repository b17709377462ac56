"""Is the text of a training program that of an exam problem? The rules of `dice.data.leakage.index` that run nothing.

text       the whole file is a problem's file, except for comments, docstrings and layout
structure  the model is a problem's model, except for names, annotations and temporaries; its inputs may differ
ngram      most of a problem's distinctive token n-grams occur in the program; names are replaced by one placeholder, and
           an n-gram is distinctive if at most `MAX_SHARING` problems of the benchmark have it

Boilerplate (`super().__init__()`, imports, input functions) does not count: it is in no model or in all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from dice.data.normal_form import NormalForms, normal_forms
from dice.kernels.api import Problem
from dice.manifest import sha256_text

Kind = Literal["text", "structure", "graph", "outputs", "heldout", "ngram"]
"""The rules; see dice.data.leakage.index."""

NGRAM = 10
"""Tokens of an n-gram."""
CONTAINMENT = 0.6
"""Share of a problem's distinctive n-grams that makes a leak."""
MIN_DISTINCTIVE = 40
"""A problem with fewer distinctive n-grams is too small for this check; text and structure are still compared."""
MAX_SHARING = 3
"""An n-gram that more problems than this have is not distinctive."""


@dataclass(frozen=True)
class Leak:
    """One sign that a program is an exam problem, or applies an operator that is never trained."""

    kind: Kind
    problem_id: str
    evidence: str


def _ngrams(form: NormalForms) -> set[int]:
    tokens = form.tokens
    return {hash(tuple(tokens[i : i + NGRAM])) for i in range(len(tokens) - NGRAM + 1)}


@dataclass
class TextIndex:
    """Fingerprints of the problems' texts. Made by `text_index`."""

    texts: dict[str, str] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    holders: dict[int, list[int]] = field(default_factory=dict)
    """Distinctive n-gram -> positions of the problems that have it."""
    ids: list[str] = field(default_factory=list)
    distinctive: list[int] = field(default_factory=list)
    """Number of distinctive n-grams of each problem."""

    def check(self, pytorch_code: str) -> Leak | None:
        """The first of these rules that `pytorch_code` breaks; None where there is none."""
        return self.same(pytorch_code) or self.containment(pytorch_code)

    def same(self, pytorch_code: str) -> Leak | None:
        """The problem that the program is, but for its wording."""
        form = normal_forms(pytorch_code)
        problem = self.texts.get(sha256_text(form.text))
        if problem is not None:
            return Leak("text", problem, "same program but for comments and layout")
        if form.tree is not None:
            problem = self.models.get(sha256_text(form.model))
            if problem is not None:
                return Leak("structure", problem, "same model but for names and input shapes")
        return None

    def containment(self, pytorch_code: str) -> Leak | None:
        """The problem of which the program has most distinctive n-grams."""
        form = normal_forms(pytorch_code)
        found = Counter(problem for gram in _ngrams(form) for problem in self.holders.get(gram, ()))
        shares = [
            (count / self.distinctive[problem], -problem)
            for problem, count in found.items()
            if self.distinctive[problem] >= MIN_DISTINCTIVE
        ]
        if not shares:
            return None
        share, negative = max(shares)
        if share < CONTAINMENT:
            return None
        problem = -negative
        total = self.distinctive[problem]
        return Leak("ngram", self.ids[problem], f"{round(share * total)} of {total} distinctive {NGRAM}-grams")


def text_index(problems: Iterable[Problem]) -> TextIndex:
    """An index of `problems`; where two problems share a model, the first one is named."""
    index = TextIndex()
    grams: list[set[int]] = []
    for problem in problems:
        form = normal_forms(problem.code)
        index.ids.append(problem.id)
        index.texts.setdefault(sha256_text(form.text), problem.id)
        if form.tree is not None:
            index.models.setdefault(sha256_text(form.model), problem.id)
        grams.append(_ngrams(form))
    sharing = Counter(gram for one in grams for gram in one)
    for number, one in enumerate(grams):
        kept = [gram for gram in one if sharing[gram] <= MAX_SHARING]
        index.distinctive.append(len(kept))
        for gram in kept:
            index.holders.setdefault(gram, []).append(number)
    return index
