"""What the reference is seen to do with inputs: what it broadcasts, and how much it makes."""

import torch

from dice.kernels.grader.consent import Watched


def broadcasts(reference, *shapes: tuple[int, ...]) -> set[tuple[str, int]]:
    with Watched() as watched:
        reference(*map(torch.ones, shapes))
    return watched.broadcasts


def test_a_size_of_one_that_meets_a_larger_one_is_noted() -> None:
    assert broadcasts(torch.add, (2, 1, 3), (2, 4, 3)) == {("aten.add.Tensor", -2)}
    assert broadcasts(torch.add, (1, 1), (4, 3)) == {("aten.add.Tensor", -1), ("aten.add.Tensor", -2)}
    assert broadcasts(lambda x: x.expand(5, 3), (1, 3)) == {("aten.expand.default", -2)}


def test_no_other_operator_broadcasts() -> None:
    assert broadcasts(torch.add, (4, 3), (4, 3)) == broadcasts(torch.add, (4, 3), (3,)) == set()
    assert broadcasts(torch.nn.functional.linear, (1, 5), (3, 5), (3,)) == set()
    assert broadcasts(torch.matmul, (1, 4), (4, 4)) == set()


def test_elements_are_those_of_every_operator() -> None:
    with Watched() as watched:
        (torch.ones(4, 1) + torch.ones(1, 5)).sum()
    assert watched.elements == 4 + 5 + 20 + 1
