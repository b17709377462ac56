"""pass@k against its definition: all ways to take k of n answers."""

import itertools

import pytest

from dice.evaluation.pass_at_k import pass_at_k


@pytest.mark.parametrize("n", range(1, 7))
def test_it_is_the_share_of_draws_with_a_right_answer(n):
    for right in range(n + 1):
        answers = [True] * right + [False] * (n - right)
        for k in range(1, n + 1):
            draws = list(itertools.combinations(answers, k))
            assert pass_at_k(n, right, k) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize(("n", "right", "k"), [(4, 1, 5), (4, 5, 1), (4, -1, 1), (4, 1, 0)])
def test_what_is_not_defined_is_refused(n, right, k):
    with pytest.raises(ValueError, match="not defined"):
        pass_at_k(n, right, k)
