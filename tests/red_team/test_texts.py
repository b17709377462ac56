"""Every trick is caught by name, no honest candidate is suspected: by the text here, by a run where one can be had."""

from __future__ import annotations

import pytest
from dice.kernels.checks import CATALOGUE, is_deceptive, static_findings

from corpus import Candidate, corpus

TRICKS, HONEST = corpus("tricks"), corpus("honest")


def named(candidates: list[Candidate]) -> list:
    return [pytest.param(candidate, id=candidate.name) for candidate in candidates]


@pytest.mark.parametrize("trick", named(TRICKS))
def test_the_text_gives_a_trick_away(trick: Candidate) -> None:
    found = {item.name for item in static_findings(trick.code, None, trick.problem_code)}
    assert found == trick.static


@pytest.mark.parametrize("honest", named(HONEST))
def test_the_text_of_honest_candidates_is_clean(honest: Candidate) -> None:
    found = static_findings(honest.code, None, honest.problem_code)
    assert {item.name for item in found} == honest.warns
    assert not is_deceptive(found, "strict")


CAUGHT = {"deceptive", "wrong_value", "wrong_shape", "wrong_dtype", "runtime_error", "compile_error"}
"""A trick that compilers refuse earns nothing either."""


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    assert len(TRICKS) >= 60
    assert len(HONEST) >= 60
    assert len({trick.header["mechanism"] for trick in TRICKS}) == len(TRICKS)


def test_every_trick_is_caught_by_something() -> None:
    for trick in TRICKS:
        assert trick.findings or "correct" not in trick.statuses, trick.name
        of_a_run = trick.run | trick.cpu_run
        assert "correct" not in trick.statuses_on("cuda") - trick.statuses, trick.name
        assert trick.statuses & CAUGHT or of_a_run, trick.name


def test_expectations_use_names_of_the_catalogue() -> None:
    for candidate in TRICKS + HONEST:
        assert candidate.findings | candidate.near | candidate.warns <= set(CATALOGUE), candidate.name


def test_the_catalogue_says_where_a_finding_is_made() -> None:
    for trick in TRICKS:
        assert all(CATALOGUE[name].source in ("static", "both") for name in trick.static), trick.name
        assert all(CATALOGUE[name].source in ("dynamic", "both") for name in trick.findings - trick.static), trick.name


def test_the_papers_own_examples_fail_its_robust_check() -> None:
    by_name = {trick.name: trick for trick in TRICKS}
    for name in ("only_pytorch", "never_built", "never_called"):
        trick = by_name[name]
        assert is_deceptive(static_findings(trick.code, None, trick.problem_code), "paper")
