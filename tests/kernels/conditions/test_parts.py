"""What each condition makes of inputs: values, sizes, layouts, without any program but a toy for the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from dice.kernels.conditions.condition import Condition, Source, cut_like, derived
from dice.kernels.conditions.layouts import padded, swapped
from dice.kernels.conditions.sizes import groups, resized
from dice.kernels.conditions.table import CONDITIONS
from dice.kernels.conditions.values import VALUES
from dice.kernels.sandbox.strides import copied, laid, relaid, strides_of


def source(draw: Callable[[], list[Any]], accepts: Callable[..., Any] = lambda *inputs: None, seed: int = 1) -> Source:
    """Of a problem that draws inputs by `draw`; `accepts` raises for what it does not take."""

    def drawn(number: int) -> list[Any]:
        torch.manual_seed(number)
        return draw()

    def taken(inputs: list[Any]) -> int | None:
        try:
            accepts(*inputs)
        except RuntimeError:
            return None
        return sum(leaf.numel() for leaf in tree_leaves(inputs) if torch.is_tensor(leaf))

    return Source(drawn, taken, seed, "name")


def made(name: str, *arguments: Any, **more: Any) -> list[Any] | None:
    return CONDITIONS[name].inputs(source(*arguments, **more))


def a_batch() -> list[Any]:
    return [torch.randn(6, 32), torch.randint(3, 9, (6, 20)), torch.rand(6, 4) < 0.5, 3]


@pytest.mark.parametrize("name", [name for name, one in CONDITIONS.items() if one.turn is None])
def test_the_same_seed_gives_the_same_and_the_drawn_inputs_stay(name: str) -> None:
    own = source(a_batch)
    before = [leaf.clone() for leaf in own.inputs[:3]]
    first, again = CONDITIONS[name].inputs(own), made(name, a_batch)
    assert (first is None) == (again is None)
    for left, right in zip(tree_leaves(first or []), tree_leaves(again or []), strict=True):
        assert torch.equal(torch.as_tensor(left).nan_to_num(), torch.as_tensor(right).nan_to_num())
    assert all(torch.equal(leaf, old) for leaf, old in zip(own.inputs, before, strict=False))


@pytest.mark.parametrize("condition", VALUES, ids=lambda one: one.name)
def test_other_values_come_in_the_same_shapes_and_types(condition: Condition) -> None:
    def draw() -> list[Any]:
        return [torch.randn(6, 32).half(), torch.randn(40).double(), *a_batch()]

    inputs = condition.inputs(source(draw))
    assert inputs is not None
    for left, right in zip(inputs, draw(), strict=True):
        assert type(left) is type(right)
        assert not torch.is_tensor(left) or (left.shape, left.dtype) == (right.shape, right.dtype)


def test_special_numbers_stand_at_one_place_each() -> None:
    nan, infinite = made("one_nan", a_batch), made("infinities", a_batch)
    assert nan is not None
    assert infinite is not None
    assert int(nan[0].isnan().sum()) == 1
    assert (infinite[0] == float("inf")).sum() == (infinite[0] == float("-inf")).sum() == 1


def test_values_in_order_are_the_drawn_ones() -> None:
    rising, falling = made("rising", a_batch), made("falling", a_batch)
    assert rising is not None
    assert falling is not None
    assert torch.equal(rising[0].reshape(-1).sort().values, source(a_batch).inputs[0].reshape(-1).sort().values)
    assert rising[0].shape == falling[0].shape == (6, 32)
    assert rising[0][-1, -1] == rising[0].max() == falling[0][0, 0]


def test_far_from_zero_is_the_first_floating_point_input_alone() -> None:
    def draw() -> list[Any]:
        return [torch.tensor([3, 1]), torch.tensor([0.0, -2.0]), torch.tensor([-0.5, 0.25])]

    below, above = made("below_zero", draw), made("above_zero", draw)
    assert [leaf.tolist() for leaf in below or []] == [[3, 1], [-1000, -3000], [0.5, 0.25]]
    assert [leaf.tolist() for leaf in above or []] == [[3, 1], [1000, 3000], [0.5, 0.25]]


def test_ids_are_those_of_the_problem() -> None:
    allowed = set(range(3, 9))
    for name in ("skewed_ids", "one_id", "first_and_last_id"):
        inputs = made(name, a_batch)
        assert inputs is not None
        assert (inputs[1].shape, inputs[1].dtype) == ((6, 20), torch.int64)
        assert set(inputs[1].unique().tolist()) <= allowed
    assert set(made("first_and_last_id", a_batch)[1].unique().tolist()) == {3, 8}  # pyright: ignore[reportOptionalSubscript]
    assert len(made("one_id", a_batch)[1].unique()) == 1  # pyright: ignore[reportOptionalSubscript]
    counts = made("skewed_ids", a_batch)[1].unique(return_counts=True)[1]  # pyright: ignore[reportOptionalSubscript]
    assert counts.max() > 60


@pytest.mark.parametrize(
    "draw",
    [
        lambda: [torch.randperm(50)],  # each row once
        lambda: [torch.tensor([0, 4, 4, 9, 20])],  # bounds of segments
        lambda: [torch.randint(0, 9, (40,)).sort().values],
        lambda: [torch.rand(4)],
        lambda: [7],
    ],
)
def test_integers_with_a_meaning_together_are_left_alone(draw: Callable[[], list[Any]]) -> None:
    assert made("one_id", draw) is None


def shapes(inputs: list[Any] | None) -> list[tuple[int, ...]] | None:
    return None if inputs is None else [tuple(leaf.shape) for leaf in inputs]


def test_a_batch_is_changed_in_every_input() -> None:
    weight = torch.randn(8, 8)

    def draw() -> list[Any]:
        return [torch.randn(6, 8), torch.randn(6, 1)]

    def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x @ weight) * y.expand(x.shape[0], 1)

    assert shapes(made("one_more", draw, reference)) == [(7, 8), (7, 1)]
    assert shapes(made("one_less", draw, reference)) == [(5, 8), (5, 1)]
    assert shapes(made("half", draw, reference)) == [(3, 8), (3, 1)]
    assert shapes(made("twice", draw, reference)) == [(13, 8), (13, 1)]
    assert shapes(made("batch_of_one", draw, reference)) == [(1, 8), (1, 1)]


def test_short_sizes_are_four_or_five_or_one_more() -> None:
    assert shapes(made("short", lambda: [torch.ones(12, 3, 65, 5)])) == [(4, 4, 5, 6)]


def test_few_are_two_or_three() -> None:
    assert shapes(made("few", lambda: [torch.ones(12, 3, 65, 5)])) == [(2, 2, 3, 3)]


def test_many_grow_by_the_first_size_while_the_work_allows_it() -> None:
    assert shapes(made("many", lambda: [torch.ones(24, 91)])) == [(1599, 91)]
    assert made("many", lambda: [torch.ones(300, 500)]) is None  # are as many already
    pairs = Source(lambda _: [torch.ones(700)], lambda inputs: inputs[0].numel() ** 2, 1, "name")
    assert CONDITIONS["many"].inputs(pairs) is None


def test_zeros_are_among_the_values_in_every_density() -> None:
    sparse = made("sparse", lambda: [torch.randn(64, 256)])
    assert sparse is not None
    rows = (sparse[0] == 0).sum(1).tolist()
    assert rows[0] > 240
    assert 96 < rows[32] < 160
    assert rows[-1] < 16


def test_whole_numbers_are_small() -> None:
    whole = made("whole", lambda: [torch.randn(500)])
    assert whole is not None
    assert set(whole[0].tolist()) == {-3, -2, -1, 0, 1, 2, 3}


def test_large_inputs_are_cut_to_few_full_rows() -> None:
    assert made("shorter", lambda: [torch.ones(181, 181)]) is None
    assert shapes(made("shorter", lambda: [torch.ones(64, 8, 96, 112)])) == [(4, 4, 20, 112)]
    assert shapes(made("shorter", lambda: [torch.ones(3, 1000, 1000)])) == [(3, 12, 928)]
    assert shapes(made("shorter", lambda: [torch.ones(1024, 600), torch.ones(600, 700)], torch.matmul)) == [
        (36, 256),
        (256, 256),
    ]
    weights = torch.ones(4000)
    assert shapes(made("shorter", lambda: [torch.ones(80, 4000)], lambda x: x @ weights)) == [(12, 4000)]
    assert made("shorter", lambda: [torch.ones(80, 4000)], lambda x: x.reshape(80, 4000)) is None


def test_other_draws_are_cut_as_the_first() -> None:
    cut = cut_like([torch.arange(12).reshape(3, 4), 5, torch.zeros(2)], [torch.zeros(2, 3), 4, torch.zeros(2)])
    assert cut[0].tolist() == [[0, 1, 2], [4, 5, 6]]
    assert cut[0].is_contiguous()
    assert cut[1] == 5


def test_one_free_size_is_long_and_the_others_short() -> None:
    def draw() -> list[Any]:
        return [torch.randn(40, 3, 64), torch.randn(64, 90)]

    assert shapes(made("long_1", draw, torch.matmul)) == [(1025, 4, 4), (4, 4)]
    assert shapes(made("long_2", draw, torch.matmul)) == [(4, 1025, 4), (4, 4)]
    assert shapes(made("long_3", draw, torch.matmul)) == [(4, 4, 1025), (1025, 4)]
    assert made("long_3", lambda: [torch.randn(40, 64), torch.randn(40, 64)], torch.add) is None
    assert shapes(made("long_1", lambda: [torch.ones(9, 9)], torch.linalg.det)) == [(257, 257)]
    drawn = made("long_1", lambda: [torch.randn(40)])
    assert drawn is not None
    assert len(drawn[0].unique()) == 1025  # no value twice: the first of equal ones would be open


def test_the_long_size_is_one_that_the_reference_takes() -> None:
    assert made("long_1", lambda: [torch.randn(40)], lambda x: x + torch.zeros(99)[: len(x)]) is None


def test_several_sizes_change_together_where_each_may() -> None:
    def draw() -> list[Any]:
        return [torch.randn(4, 6), torch.randn(6, 10)]

    assert shapes(made("one_more", draw, torch.matmul)) == [(5, 7), (7, 11)]


def test_rows_and_columns_of_a_square_change_together() -> None:
    def draw() -> list[Any]:
        return [torch.randn(2, 6, 4), torch.ones(6, 6)]

    def reference(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (x @ x.transpose(1, 2)) * mask

    assert shapes(made("one_more", draw, reference)) == [(3, 7, 5), (7, 7)]


def test_nothing_changes_where_the_reference_refuses_or_draws_sizes_itself() -> None:
    assert made("one_more", lambda: [torch.randn(4, 8)], lambda x: x.view(32) + torch.zeros(32)) is None
    assert made("one_more", lambda: [torch.randn(int(torch.randint(2, 999, ())), 8)]) is None


def test_a_size_that_is_accepted_by_accident_is_not_free() -> None:
    """Broadcasting takes 7 of 12 columns: six, and one. The length of 5 is free."""

    def halves(x: torch.Tensor) -> torch.Tensor:
        return x[:, :6] - x[:, 6:]

    assert shapes(made("half", lambda: [torch.randn(5, 12)], halves)) == [(3, 12)]


def test_a_table_is_not_cut_behind_the_ids_that_point_into_it() -> None:
    def draw() -> list[Any]:
        return [torch.randn(10, 4), torch.tensor([9, 3, 9, 1, 9])]

    assert made("one_less", draw, lambda table, ids: None) is None
    assert shapes(made("one_more", draw, lambda table, ids: None))[0][0] == 11  # pyright: ignore[reportOptionalSubscript]


def test_grown_inputs_continue_with_the_problems_own_values() -> None:
    leaves = [torch.arange(6.0).reshape(2, 3), torch.zeros(2)]

    def more(number: int) -> list[torch.Tensor]:
        return [leaves[0] + 100 * number, torch.full((2,), number)]

    grown = resized(leaves, more, [(0, 0), (1, 0)], 3)
    assert grown[0].tolist() == [[0, 1, 2], [3, 4, 5], [100, 101, 102]]
    assert grown[1].tolist() == [0, 0, 1]
    assert resized(grown, more, [(0, 1)], 2)[0].tolist() == [[0, 1], [3, 4], [100, 101]]
    assert resized(grown, more, [(0, 1)], 7)[0][0].tolist() == [0, 1, 2, 100, 101, 102, 200]
    table = [torch.arange(8.0).reshape(2, 4)]  # a draw of more columns gives more rows
    cut = [torch.full((1, 2), -1.0)]
    assert resized(cut, lambda number: table, [(0, 0)], 5)[0].tolist() == [[-1, -1], [0, 1], [4, 5], [2, 3], [6, 7]]
    assert list(groups([torch.zeros(4, 4), 3, torch.zeros(4)])) == [
        [[(0, 0), (2, 0)], [(0, 1)], [(0, 0), (0, 1), (2, 0)]]
    ]


def test_layouts_hold_the_same_values() -> None:
    x = torch.randn(2, 5, 7)
    for strides in (swapped(x), padded(x)):
        other = laid(x, strides)
        assert torch.equal(other, x)
        assert other.stride() == strides
        assert not other.is_contiguous()
    assert swapped(x) == (35, 1, 5)
    assert padded(x) == (50, 10, 1)
    memory = torch.as_strided(laid(x, padded(x)), (10 * 10 - 3,), (1,))
    assert int(memory.isnan().sum()) == 9 * 3


def test_strides_cross_as_numbers() -> None:
    x = {"a": torch.randn(3, 4).T, "b": (torch.zeros(2), 5)}
    assert strides_of(x) == [[1, 4], None, None]
    sent = {"a": x["a"].contiguous(), "b": x["b"]}
    again = relaid(sent, strides_of(x))
    assert again["a"].stride() == (1, 4)
    assert torch.equal(again["a"], x["a"])
    assert copied([torch.zeros(3, 1).expand(3, 4)], torch.device("cpu"))[0].shape == (3, 4)
    assert copied([laid(torch.zeros(3, 4), (6, 1))], torch.device("cpu"))[0].stride() == (6, 1)


def test_derived_seeds_differ_and_stay() -> None:
    assert derived(1, "a") == derived(1, "a")
    assert len({derived(seed, name) for seed in (1, 2, 11) for name in ("a", "b", "1/a")}) == 9
    assert 0 <= derived(1, "a") < 1 << 48
